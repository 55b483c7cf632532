"""A log that is opened again when it is sent: it must be the one that was read before."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import FileIO
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError
from kseg.system.ranged_files import RangedBytes
from kseg.system.regular_file import open_ranged


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


@contextmanager
def open_same(log: StoredLog) -> Iterator[FileIO | RangedBytes]:
    """The log's file, or what it stands for. Raises OpenError if the path leads to nothing, or to another file."""
    descriptor, _, source = open_ranged(log.path)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        found = os.fstat(descriptor)
        if (found.st_dev, found.st_ino) != log.file:
            raise OpenError("has been replaced since it was read", log.path)
        yield file if source is None else source
