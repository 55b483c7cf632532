"""Extent lists of ext4 and xfs: the places of a file's blocks, without a walk through the file system.

Source: fs/ext4/ext4_extents.h, fs/ext4/ext4.h, fs/xfs/libxfs/xfs_format.h.
"""

from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from struct import Struct
from typing import NamedTuple


class Structure(Enum):
    """Structures on a disk that a signature shows."""

    EXT4_SUPERBLOCK = "ext4 superblock"
    EXT4_INODE = "list in an ext4 inode"
    EXT4_LEAF = "ext4 block with a list"
    XFS_SUPERBLOCK = "xfs superblock"
    XFS_INODE = "xfs inode"
    XFS_LEAF = "xfs block with a list"

    @property
    def is_superblock(self) -> bool:
        """True if it describes a file system."""
        return self in (Structure.EXT4_SUPERBLOCK, Structure.XFS_SUPERBLOCK)

    @property
    def is_inode(self) -> bool:
        """True if it is in an inode."""
        return self in (Structure.EXT4_INODE, Structure.XFS_INODE)

    @property
    def is_xfs(self) -> bool:
        """True if it is xfs's."""
        return self in (Structure.XFS_SUPERBLOCK, Structure.XFS_INODE, Structure.XFS_LEAF)


class Signature(NamedTuple):
    """The first two bytes of a structure's magic. They are at `place` modulo `slot`, `before` bytes after its start."""

    structure: Structure
    magic: bytes
    place: int
    slot: int
    before: int = 0


_EXT4_MAGIC = b"\x0a\xf3"
SIGNATURES = (
    Signature(Structure.EXT4_SUPERBLOCK, b"\x53\xef", 56, 512, before=56),
    Signature(Structure.EXT4_INODE, _EXT4_MAGIC, 0x28, 256),
    Signature(Structure.EXT4_LEAF, _EXT4_MAGIC, 0, 512),
    Signature(Structure.XFS_SUPERBLOCK, b"XF", 0, 512),
    Signature(Structure.XFS_INODE, b"IN", 0, 512),
    Signature(Structure.XFS_LEAF, b"BM", 0, 512),
)


class Extent(NamedTuple):
    """Adjacent blocks of a file. file_block, block: numbers of the first one in the file and in the file system."""

    file_block: int
    block: int
    size: int
    """In blocks."""


class FileSystem(NamedTuple):
    """The geometry of a file system, xfs or ext4.

    start: its position. size: in bytes. block: bytes of a block. group_blocks: blocks of an allocation group.
    group_bits: bits of a block's number in its group; 0 if blocks are numbered without groups.
    """

    is_xfs: bool
    start: int
    size: int
    block: int
    group_blocks: int = 0
    group_bits: int = 0

    def position(self, block: int) -> int:
        """Return the position of a block."""
        if self.group_bits:
            block = (block >> self.group_bits) * self.group_blocks + (block & ((1 << self.group_bits) - 1))
        return self.start + block * self.block


_EXT4_SUPERBLOCK = Struct("<4xI12xII4xI20xH30xHH")
_EXT4_SUPERBLOCK_PLACE = 1024
_EXT4_LIST = Struct("<HHHH4x")
_EXT4_EXTENT = Struct("<IHHI")
_EXT4_LONGEST = 32768
"""Blocks of the longest extent; a greater length marks blocks that are reserved and not written."""
_XFS_SUPERBLOCK = Struct(">4sIQ68xII8xHHH18xB")
_XFS_GROUP = Struct(">4s4xI")
_XFS_LEAF = Struct(">4sHH64x")
_XFS_INODE = Struct(">4xBB170x")
_XFS_EXTENT = Struct(">QQ")
_XFS_INODE_VERSION, _XFS_FORMAT_EXTENTS = 3, 2
_XFS_INODE_EXTENTS = 21
"""Extents in an inode of 512 bytes."""
_BLOCK_SIZES = frozenset(1 << bits for bits in range(10, 17))
_SECTOR_SIZES = frozenset(1 << bits for bits in range(9, 16))
LARGEST_SUPERBLOCK = max(_SECTOR_SIZES) + _XFS_GROUP.size
"""Bytes of a superblock, and of the part of the next sector that has its number."""
SIZE_OF_INODE = 512
"""Bytes of an inode that can have extents."""


def parse_file_system(structure: Structure, content: bytes, position: int) -> FileSystem | None:
    """Return the file system that a superblock describes, or None if the bytes aren't one.

    A copy of a superblock has its own number, so that it also gives the start of the file system. content: what begins
    at `position`.
    """
    if structure is Structure.XFS_SUPERBLOCK:
        return _parse_xfs_superblock(content, position)
    return _parse_ext4_superblock(content, position)


def _parse_ext4_superblock(content: bytes, position: int) -> FileSystem | None:
    if len(content) < _EXT4_SUPERBLOCK.size:
        return None
    blocks, first_block, size_bits, group_blocks, _, _, group = _EXT4_SUPERBLOCK.unpack_from(content)
    if size_bits > 6 or not 0 < group_blocks <= 1 << 19 or first_block > 1 or not blocks:
        return None
    block = 1024 << size_bits
    before = (first_block + group * group_blocks) * block if group else _EXT4_SUPERBLOCK_PLACE
    return FileSystem(False, position - before, blocks * block, block)


def _parse_xfs_superblock(content: bytes, position: int) -> FileSystem | None:
    if len(content) < _XFS_SUPERBLOCK.size:
        return None
    magic, block, blocks, group_blocks, groups, _, sector, _, bits = _XFS_SUPERBLOCK.unpack_from(content)
    is_likely = magic == b"XFSB" and block in _BLOCK_SIZES and sector in _SECTOR_SIZES and 0 < bits < 32
    if not is_likely or not 0 < group_blocks <= 1 << bits or len(content) < sector + _XFS_GROUP.size:
        return None
    group_magic, group = _XFS_GROUP.unpack_from(content, sector)
    if group_magic != b"XAGF" or group >= groups:
        return None
    start = position - group * group_blocks * block
    return FileSystem(
        is_xfs=True, start=start, size=blocks * block, block=block, group_blocks=group_blocks, group_bits=bits
    )


def parse_extents(structure: Structure, content: bytes) -> list[Extent]:
    """Return the written extents of a list in the order of the file; none if the bytes aren't a list."""
    if structure is Structure.XFS_INODE:
        found = list(_xfs_inode_extents(content))
    elif structure is Structure.XFS_LEAF:
        found = list(_xfs_leaf_extents(content))
    else:
        found = list(_ext4_extents(content, 4 if structure is Structure.EXT4_INODE else len(content)))
    ends_before = all(one.file_block + one.size <= other.file_block for one, other in pairwise(found))
    return found if ends_before else []


def _ext4_extents(content: bytes, most: int) -> Iterator[Extent]:
    if len(content) < _EXT4_LIST.size:
        return
    _, entries, room, depth = _EXT4_LIST.unpack_from(content)
    if depth or not 0 < entries <= room or room > most or _EXT4_LIST.size + entries * _EXT4_EXTENT.size > len(content):
        return
    for number in range(entries):
        file_block, count, high, low = _EXT4_EXTENT.unpack_from(content, _EXT4_LIST.size + number * _EXT4_EXTENT.size)
        if 0 < count <= _EXT4_LONGEST:
            yield Extent(file_block, high << 32 | low, count)


def _xfs_inode_extents(content: bytes) -> Iterator[Extent]:
    """Yield extents up to the first entry that can't be one: a freed inode doesn't have their number any more."""
    if len(content) < _XFS_INODE.size or _XFS_INODE.unpack_from(content) != (_XFS_INODE_VERSION, _XFS_FORMAT_EXTENTS):
        return
    end = 0
    for number in range(_XFS_INODE_EXTENTS):
        place = _XFS_INODE.size + number * _XFS_EXTENT.size
        found = _xfs_extent(content, place) if place + _XFS_EXTENT.size <= len(content) else None
        if found is None or not found[0].size or found[0].file_block < end:
            return
        extent, is_written = found
        end = extent.file_block + extent.size
        if is_written:
            yield extent


def _xfs_leaf_extents(content: bytes) -> Iterator[Extent]:
    if len(content) < _XFS_LEAF.size:
        return
    magic, level, count = _XFS_LEAF.unpack_from(content)
    if magic != b"BMA3" or level or _XFS_LEAF.size + count * _XFS_EXTENT.size > len(content):
        return
    for number in range(count):
        extent, is_written = _xfs_extent(content, _XFS_LEAF.size + number * _XFS_EXTENT.size)
        if is_written and extent.size:
            yield extent


def _xfs_extent(content: bytes, place: int) -> tuple[Extent, bool]:
    """Return an extent, and whether its blocks are written: a flag, then 54, 52 and 21 bits of numbers."""
    high, low = _XFS_EXTENT.unpack_from(content, place)
    bits = high << 64 | low
    extent = Extent(bits >> 73 & (1 << 54) - 1, bits >> 21 & (1 << 52) - 1, bits & (1 << 21) - 1)
    return extent, not bits >> 127
