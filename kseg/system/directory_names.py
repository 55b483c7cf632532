"""Names in a directory, listed once."""

import os
import time
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError


class DirectoryNames(NamedTuple):
    """Names in a directory, as it was listed; a link counts as its target.

    files: all that aren't directories. settled_ns: the last change of the names; 0 if unknown, or too recent for a
    coarse clock.
    """

    files: tuple[str, ...]
    directories: tuple[str, ...]
    settled_ns: int


def list_names(path: Path) -> DirectoryNames:
    """List a directory. Raises OpenError if it can't be listed."""
    files: list[str] = []
    directories: list[str] = []
    settled_ns = find_settled_ns(path)
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                (directories if _is_directory(entry) else files).append(entry.name)
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error
    return DirectoryNames(tuple(files), tuple(directories), settled_ns)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself
        return False


def find_settled_ns(directory: Path) -> int:
    """Return the last change of the names of a directory, as `DirectoryNames.settled_ns`."""
    changed = os.stat(directory).st_mtime_ns if os.path.isdir(directory) else 0  # noqa: PTH112, PTH116  quicker
    return changed if time.time_ns() - changed > 1_000_000_000 else 0
