"""Holes of sparse files: stretches that the file system doesn't store; they read as zeros."""

import errno
import os
from collections.abc import Iterator

_BLOCK = 512
"""The unit, in bytes, in which the system counts a file's storage."""
_SEEK_DATA, _SEEK_HOLE = getattr(os, "SEEK_DATA", None), getattr(os, "SEEK_HOLE", None)


def next_data(descriptor: int, position: int, end: int) -> int:
    """Position of the next bytes that aren't in a hole; `end` if there are none before it.

    The position itself if the system doesn't say; the bytes there may be zeros then.
    """
    return _sought(descriptor, position, end, _SEEK_DATA, after_last=end, unknown=position)


def data_end(descriptor: int, position: int, end: int) -> int:
    """Where the first hole begins from a position on; `end` if none does, or where the system doesn't tell."""
    return _sought(descriptor, position, end, _SEEK_HOLE, after_last=position, unknown=end)


def stored_stretches(descriptor: int, position: int, end: int) -> Iterator[tuple[int, int]]:
    """Start and end of the stretches between holes, from a position up to an end."""
    while (start := next_data(descriptor, position, end)) < end:
        position = max(data_end(descriptor, start, end), start + 1)  # the file may change meanwhile
        yield start, position


def stored_size(descriptor: int) -> int:
    """Bytes that the file takes on the disk; its size if the system doesn't say."""
    found = os.fstat(descriptor)
    blocks: int | None = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else min(blocks * _BLOCK, found.st_size)


def _sought(descriptor: int, position: int, end: int, whence: int | None, *, after_last: int, unknown: int) -> int:
    if position >= end:
        return end
    if whence is None:
        return unknown
    try:
        found = os.lseek(descriptor, position, whence)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole is left, or nothing
            return after_last
        return unknown
    return min(found, end)
