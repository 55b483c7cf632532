"""A log that is opened again when it is sent: it must be the one that was read before."""

import os
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.system.regular_file import open_regular


class StoredLog(NamedTuple):
    """A log's path, which file it led to, and that file's state; both are None if there was none.

    file: device and number. state: size, and time of the last modification in nanoseconds.
    """

    path: str
    file: tuple[int, int] | None
    state: tuple[int, int] | None


def stored_log(path: Path) -> StoredLog:
    """The log at a path as it is now. To be taken before it is read, so that one that replaces it meanwhile differs."""
    try:
        found = os.stat(path)  # noqa: PTH116  quicker
    except OSError:
        return StoredLog(str(path), None, None)
    return StoredLog(str(path), (found.st_dev, found.st_ino), (found.st_size, found.st_mtime_ns))


def open_same(log: StoredLog) -> int:
    """A descriptor to read from. Raises OpenError if the path leads to nothing, or to another file."""
    descriptor, _ = open_regular(log.path)
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != log.file:
        os.close(descriptor)
        raise OpenError("has been replaced since it was read", log.path)
    return descriptor
