"""Files whose bytes lie elsewhere: an empty file stands for each here, and ranges of its bytes are fetched when read.

Which file stands for what is in one table for the process, by device and inode: so every path that leads to a file, and
everything that opens one, finds the same bytes.
"""

import errno
import os
from collections.abc import Iterable
from typing import Protocol

Identity = tuple[int, int]
"""A file's device and inode."""


class RangedBytes(Protocol):
    """The bytes of a file that lie elsewhere. size: how many there are."""

    size: int

    def check(self) -> None:
        """Raises OpenError if none of the bytes can be had: a key is missing."""

    def read(self, position: int, size: int) -> bytes:
        """Bytes from a position on, fewer at the end. Raises OSError if they can't be had, ClusterError as a store."""

    def stretch_end(self, position: int) -> int:
        """Up to where bytes come with those at a position, at no further cost: the end of their chunk."""


_STANDS_FOR: dict[Identity, RangedBytes] = {}
_PIECE = 8 << 20


def let_stand_for(path: str, source: RangedBytes) -> Identity:
    """Makes an empty file of the source's size at a path; from now on it stands for the source."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.ftruncate(descriptor, source.size)
        identity = _identity(os.fstat(descriptor))
        _STANDS_FOR[identity] = source
    finally:
        os.close(descriptor)
    return identity


def forget(identities: Iterable[Identity]) -> None:
    """Forgets what files stand for; to be called before they are removed, since others may get their inodes."""
    for identity in identities:
        _STANDS_FOR.pop(identity, None)


def source_of(found: os.stat_result) -> RangedBytes | None:
    """What an open file stands for; None if its bytes are its own."""
    return _STANDS_FOR.get(_identity(found)) if _STANDS_FOR else None


def fill(path: str | os.PathLike[str], source: RangedBytes) -> None:
    """Gives a file all bytes of what it stands for: from now on they are its own. Raises OSError as they do."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        position = 0
        while position < source.size:
            piece = source.read(position, min(_PIECE, source.size - position))
            if not piece:
                raise OSError(errno.EIO, f"it ends at {position}, {source.size - position} bytes early")
            position += os.pwrite(descriptor, piece, position)
        _STANDS_FOR.pop(_identity(os.fstat(descriptor)), None)
    finally:
        os.close(descriptor)


def _identity(found: os.stat_result) -> Identity:
    return found.st_dev, found.st_ino
