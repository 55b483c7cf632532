"""A log that is opened again when it is sent: it must be the one that was read before."""

import os
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.system.regular_file import open_regular


class StoredLog(NamedTuple):
    """A log's path, and which file it led to; `file` is None if there was none."""

    path: str
    file: tuple[int, int] | None


def stored_log(path: Path) -> StoredLog:
    """The log at a path as it is now. To be taken before it is read, so that one that replaces it meanwhile differs."""
    try:
        found = path.stat()
    except OSError:
        return StoredLog(str(path), None)
    return StoredLog(str(path), (found.st_dev, found.st_ino))


def open_same(log: StoredLog) -> int:
    """A descriptor to read from. Raises OpenError if the path leads to nothing, or to another file."""
    descriptor, _ = open_regular(log.path)
    found = os.fstat(descriptor)
    if (found.st_dev, found.st_ino) != log.file:
        os.close(descriptor)
        raise OpenError("has been replaced since it was read", log.path)
    return descriptor
