"""Block devices that hold a path: those of its mount, and the ones that these consist of."""

import os
from collections.abc import Iterator
from pathlib import Path


def devices_below(path: Path) -> Iterator[int | tuple[int, int]]:
    """Yield the block devices that hold a path, and device and inode of the files behind loop devices."""
    waiting = [os.stat(path).st_dev, *_mounted_devices(path)]  # noqa: PTH116
    known: set[int] = set()
    while waiting:
        device = waiting.pop()
        if device in known:
            continue
        known.add(device)
        yield device
        folder = Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}")
        if not folder.exists():
            continue
        real = folder.resolve()
        above = [real.parent] if (real / "partition").exists() else []
        slaves = [each.resolve() for each in sorted((real / "slaves").glob("*"))]
        waiting += [_device_in(each) for each in (*above, *slaves)]
        backing = real / "loop" / "backing_file"
        if backing.exists():
            file = Path(backing.read_text(encoding="utf-8").rstrip("\n"))
            if file.exists():
                status = file.stat()
                yield status.st_dev, status.st_ino


def _device_in(folder: Path) -> int:
    major, _, minor = (folder / "dev").read_text(encoding="ascii").strip().partition(":")
    return os.makedev(int(major), int(minor))


def _mounted_devices(path: Path) -> Iterator[int]:
    """Yield the device in the table of mounts: files on btrfs have another number than their device."""
    try:
        lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return
    points = {}
    for line in lines:
        mount, _, rest = line.partition(" - ")
        point = mount.split()[4].encode("ascii", "surrogateescape").decode("unicode_escape", "surrogateescape")
        points[point] = rest.split()[1]
    real = path.resolve()
    source = next((points[str(each)] for each in (real, *real.parents) if str(each) in points), "")
    if source.startswith("/dev/") and Path(source).exists():
        yield Path(source).stat().st_rdev
