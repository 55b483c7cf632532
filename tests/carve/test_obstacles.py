"""Disks that can't be carved are recognised by their first bytes."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.carve.made_images import make_log
from tests.commands.test_carve import carve, carved_logs
from tests.loops import for_each

LOG = make_log("a", [(1, 300)] * 30, 1)
ZFS = bytes(132 << 10) + bytes.fromhex("0cb1ba00 00000000")  # an uberblock's magic, little-endian
BTRFS = bytes((64 << 10) + 64) + b"_BHRfS_M" + bytes(116)  # up to the features


@for_each(
    "start, message",
    [
        (b"QFI\xfb", "is a qcow2 image; run `qemu-img convert -O raw`"),
        (b"KDMV", "is a VMDK image; run `qemu-img convert -O raw`"),
        (b"EVF\x09\x0d\x0a\xff\x00", "is an E01 image; run `ewfexport -f raw`"),
        (b"LUKS\xba\xbe\0\2", "is encrypted by LUKS; run `cryptsetup open --readonly`"),
    ],
)
def test_containers_and_encrypted_disks_are_refused_unless_forced(start: bytes, message: str, tmp_path: Path) -> None:
    content = start.ljust(4096, b"\0") + LOG.content
    ran = carve(tmp_path, content)
    assert ran.status == 2
    assert message in ran.stderr.decode()
    assert not (tmp_path / "carved").exists()
    carve(tmp_path, content, "--force")
    assert list(carved_logs(tmp_path).values()) == [LOG.content]


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (ZFS, b"kseg: disk.img: has zfs, which compresses files by default"),
        (BTRFS + (0x10).to_bytes(8, "little"), b"kseg: disk.img: has btrfs with compressed files"),
    ],
)
def test_file_systems_that_compress_are_carved_with_a_warning(start: bytes, message: bytes, tmp_path: Path) -> None:
    ran = carve(tmp_path, start.ljust(256 << 10, b"\0") + LOG.content)
    assert ran.stderr.startswith(message)
    assert list(carved_logs(tmp_path).values()) == [LOG.content]


def test_btrfs_without_compression_is_carved_silently(tmp_path: Path) -> None:
    ran = carve(tmp_path, (BTRFS + (0x1).to_bytes(8, "little")).ljust(256 << 10, b"\0") + LOG.content)
    assert (ran.status, ran.stderr) == (0, b"")


def test_deleted_files_of_a_real_ext4_come_back(tmp_path: Path) -> None:
    assert shutil.which("mke2fs"), "install e2fsprogs"
    logs = [make_log(name, [(3, 700)] * 400, 1) for name in "abc"]
    for log in logs:
        (tmp_path / "root" / f"{log.name}-0").mkdir(parents=True)
        (tmp_path / "root" / f"{log.name}-0" / f"{0:020}.log").write_bytes(log.content)
    disk = tmp_path / "ext4.img"
    subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", tmp_path / "root", disk, "16M"], check=True)
    for log in logs:
        subprocess.run(["debugfs", "-w", "-R", f"rm {log.name}-0/{0:020}.log", disk], check=True, capture_output=True)
    carve(tmp_path, disk.read_bytes())
    assert sorted(carved_logs(tmp_path).values()) == sorted(log.content for log in logs)
