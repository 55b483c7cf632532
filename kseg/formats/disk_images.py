"""Recognition of disks whose bytes aren't those of their files: encrypted, compressed, and containers of images."""

from struct import Struct
from typing import NamedTuple


class Obstacle(NamedTuple):
    """A reason why files aren't in a disk as their bytes, with the next step.

    is_complete: whether no file is; otherwise some may be.
    """

    text: str
    is_complete: bool


class _Mark(NamedTuple):
    """Bytes at a position of a disk, and the text of the obstacle."""

    position: int
    content: bytes
    text: str


_CONVERT = "run `qemu-img convert -O raw` and carve its output"
_MARKS = (
    _Mark(0, b"QFI\xfb", f"is a qcow2 image; {_CONVERT}"),
    _Mark(0, b"KDMV", f"is a VMDK image; {_CONVERT}"),
    _Mark(0, b"vhdxfile", f"is a VHDX image; {_CONVERT}"),
    _Mark(0, b"<<< Oracle VM VirtualBox Disk Image", f"is a VDI image; {_CONVERT}"),
    _Mark(0, b"EVF\x09\x0d\x0a\xff\x00", "is an E01 image; run `ewfexport -f raw` and carve its output"),
    _Mark(0, b"LUKS\xba\xbe", "is encrypted by LUKS; run `cryptsetup open --readonly` and carve the opened device"),
    _Mark(3, b"-FVE-FS-", "is encrypted by BitLocker; decrypt it and carve the copy"),
)
_ZFS_LABEL = range(128 << 10, 256 << 10, 1 << 10)
"""Places of uberblocks in the first label of a disk. Source: uberblock_impl.h."""
_ZFS_MAGIC = (0x00BAB10C).to_bytes(8, "little"), (0x00BAB10C).to_bytes(8, "big")
_BTRFS = 64 << 10
"""The place of btrfs's superblock, and in it those of its magic and of its features. Source: btrfs_tree.h."""
_BTRFS_MAGIC, _BTRFS_FEATURES = _BTRFS + 64, Struct(f"<{_BTRFS + 188}xQ")
_BTRFS_COMPRESSION = 0x8 | 0x10
"""Features of a file system that has had files compressed by lzo or zstd."""
EXAMINED = _ZFS_LABEL.stop
"""Bytes from the beginning of a disk that `obstacle_of` examines."""


def obstacle_of(content: bytes) -> Obstacle | None:
    """Return what hides files in a disk, by its first EXAMINED bytes, or None without an obstacle."""
    for mark in _MARKS:
        if content.startswith(mark.content, mark.position):
            return Obstacle(mark.text, is_complete=True)
    if any(content.startswith(_ZFS_MAGIC, place) for place in _ZFS_LABEL):
        return Obstacle("has zfs, which compresses files by default; look for its snapshots", is_complete=False)
    if content.startswith(b"_BHRfS_M", _BTRFS_MAGIC) and len(content) >= _BTRFS_FEATURES.size:
        (features,) = _BTRFS_FEATURES.unpack_from(content)
        if features & _BTRFS_COMPRESSION:
            return Obstacle("has btrfs with compressed files; kseg can't find batches in these", is_complete=False)
    return None
