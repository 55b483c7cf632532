"""File systems of log directories: how full they are."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kseg.views.doctor.trouble import Disk, Trouble

_NEARLY_FULL, _FREE_ENOUGH = 20, 10
"""Less than one in so many bytes is free; one in so many is enough."""


def disks_of(log_dirs: Iterable[Path]) -> tuple[Disk, ...]:
    """The file systems of log directories, the fullest first; of those that tell their size."""
    homes: dict[int, list[Path]] = {}
    sizes: dict[int, tuple[int, int]] = {}
    for log_dir in log_dirs:
        try:
            device, status = log_dir.stat().st_dev, os.statvfs(log_dir)
        except (OSError, AttributeError):
            continue  # it has gone, or the system can't tell
        homes.setdefault(device, []).append(log_dir)
        sizes[device] = status.f_blocks * status.f_frsize, status.f_bavail * status.f_frsize
    disks = [Disk(tuple(homes[device]), size, available) for device, (size, available) in sizes.items() if size]
    return tuple(sorted(disks, key=lambda disk: disk.available / disk.size))


def disk_troubles(disks: Iterable[Disk]) -> Iterator[Trouble]:
    """Those that are full, or nearly; `size` is what has to be freed on them."""
    for disk in disks:
        if disk.available * _NEARLY_FULL >= disk.size:
            continue
        name = "disk-nearly-full" if disk.available else "disk-full"
        sentence = f"{disk.available} of {disk.size} bytes are free"
        yield Trouble(name, disk.log_dirs[0], sentence, size=disk.size // _FREE_ENOUGH - disk.available)
