"""Opens files to read, but only regular ones: a pipe would make kseg wait, and a device might never end."""

import os
import stat
from typing import NamedTuple

from kseg.errors import KsegError, OpenError, UnreadableError
from kseg.system.ranged_files import RangedBytes, fill, source_of

LARGEST_TEXT = 1 << 26
"""The largest size of a text file, in bytes; a checkpoint of a million partitions has fewer."""
_PIECE = 1 << 20


class OpenedFile(NamedTuple):
    """A file to read from: its descriptor, its bytes, and the bytes elsewhere that it stands for, if it does."""

    descriptor: int
    size: int
    source: RangedBytes | None = None


def open_regular(path: str | os.PathLike[str]) -> tuple[int, int]:
    """A descriptor to read from, and the file's size in bytes. A file that stands for bytes elsewhere gets all of them.

    Raises OpenError if it can't be opened, or is a directory, a pipe or a device.
    """
    descriptor, size, source = open_ranged(path)
    if source is not None:
        try:
            fill(path, source)
        except OSError as error:
            os.close(descriptor)
            raise OpenError(f"can't be read: {error.strerror}", path) from error
    return descriptor, size


def open_ranged(path: str | os.PathLike[str]) -> OpenedFile:
    """As `open_regular`, but a file that stands for bytes elsewhere stays empty: `source` has these.

    Raises OpenError also if none of them can be had.
    """
    try:
        # A pipe must not make the opening wait.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OpenError("isn't a regular file", path)
    source = source_of(found)
    if source is not None:
        try:
            source.check()
        except KsegError as error:
            os.close(descriptor)
            error.path = error.path or os.fspath(path)
            raise
    return OpenedFile(descriptor, found.st_size, source)


def read_small(path: str | os.PathLike[str], most: int) -> bytes:
    """The content of a file that has at most `most` bytes. Raises OpenError if it has more, or can't be read."""
    content = read_regular(path, most + 1)
    if len(content) > most:
        raise OpenError(f"has more than {most} bytes, too many for such a file", path)
    return content


def read_regular(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """The content of a file, or the first `most` bytes of it.

    Raises OpenError if it can't be opened, UnreadableError if the disk can't read it.
    """
    descriptor, size = open_regular(path)
    pieces: list[bytes] = []
    left = (size or None) if most is None else min(size or most, most)  # some systems' own files have size 0
    try:
        while left != 0 and (piece := os.read(descriptor, _PIECE if left is None else min(left, _PIECE))):
            pieces.append(piece)
            left = None if left is None else left - len(piece)
    except OSError as error:
        raise UnreadableError(f"can't be read: {error.strerror}", path) from error
    finally:
        os.close(descriptor)
    return b"".join(pieces)


def read_text_file(path: str | os.PathLike[str]) -> bytes:
    """The content of one of Kafka's text files.

    Raises OpenError if it can't be opened or read, KsegError if it is too large for one.
    """
    content = read_regular(path, LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise KsegError(f"more than {LARGEST_TEXT} bytes: too large for a text file of Kafka", path)
    return content
