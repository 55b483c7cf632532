"""Files to read: regular files only, sparse files, and files whose bytes are stored elsewhere."""

import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from kseg.errors import FileError, KsegError, OpenError, UnreadableError, plural
from kseg.named_tuple import NamedTuple
from kseg.system.placed_path import PlacedPath, RangedBytes

Identity = tuple[int, int]
"""A file's device and inode."""
_RANGE_PIECE = 8 << 20


def _fill(path: PlacedPath, source: RangedBytes) -> None:
    """Copy all bytes of a file's source into the file, which then has its own. Raises OSError as the source does."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        position = 0
        while position < source.size:
            piece = source.read(position, min(_RANGE_PIECE, source.size - position))
            if not piece:
                raise OSError(errno.EIO, f"it ends at {position}, {source.size - position} bytes early")
            position += os.pwrite(descriptor, piece, position)
    finally:
        os.close(descriptor)
    del path.placement.sources[os.fspath(path)]


_BLOCK = 512
"""The unit, in bytes, in which the system counts a file's storage."""
_SEEK_DATA, _SEEK_HOLE = getattr(os, "SEEK_DATA", None), getattr(os, "SEEK_HOLE", None)


def next_data(descriptor: int, position: int, end: int) -> int:
    """Return the position of the next bytes outside of holes; `end` if there are none before it.

    Returns the position itself if the system can't tell; the bytes there may be zeros then.
    """
    return _seek(descriptor, position, end, _SEEK_DATA, after_last=end, unknown=position)


def data_end(descriptor: int, position: int, end: int) -> int:
    """Return the start of the next hole from a position on; `end` if there is none, or the system can't tell."""
    return _seek(descriptor, position, end, _SEEK_HOLE, after_last=position, unknown=end)


def stored_stretches(descriptor: int, position: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield start and end of the stretches between holes, from a position up to an end."""
    while (start := next_data(descriptor, position, end)) < end:
        position = max(data_end(descriptor, start, end), start + 1)  # the file may change meanwhile
        yield start, position


def stored_size(descriptor: int) -> int:
    """Return the bytes that the file takes on the disk; its size if the system can't tell."""
    found = os.fstat(descriptor)
    blocks: int | None = getattr(found, "st_blocks", None)
    return found.st_size if blocks is None else min(blocks * _BLOCK, found.st_size)


def _seek(descriptor: int, position: int, end: int, whence: int | None, *, after_last: int, unknown: int) -> int:
    if position >= end:
        return end
    if whence is None:
        return unknown
    try:
        found = os.lseek(descriptor, position, whence)
    except OSError as error:
        if error.errno == errno.ENXIO:  # only a hole, or nothing, is left
            return after_last
        return unknown
    return min(found, end)


def cache_directory() -> Path | None:
    """Return `kseg` in XDG_CACHE_HOME, else in `~/.cache`, or None if there is no home. It need not exist.

    Source: the XDG Base Directory Specification, by which a relative path is ignored.
    """
    given = os.environ.get("XDG_CACHE_HOME", "")
    place = Path(given if Path(given).is_absolute() else os.path.expanduser("~/.cache"))  # noqa: PTH111 (never raises)
    return place / "kseg" if place.is_absolute() else None


LARGEST_TEXT = 1 << 26
"""The largest size of a text file, in bytes; a checkpoint of a million partitions has fewer."""
_PIECE = 1 << 20


class OpenedFile(NamedTuple):
    """A file to read from: its descriptor, its bytes, and its source if the bytes are in another place."""

    descriptor: int
    size: int
    source: RangedBytes | None = None


def open_regular(path: str | os.PathLike[str]) -> tuple[int, int]:
    """Open a file; return its descriptor and size. A file with a remote source gets all of its bytes first.

    Raises OpenError if it can't be opened, or is a directory, a pipe or a device.
    """
    descriptor, size, source = open_ranged(path)
    if source is not None:
        assert isinstance(path, PlacedPath)
        try:
            _fill(path, source)
        except OSError as error:
            os.close(descriptor)
            raise OpenError(f"can't be read: {error.strerror}", path) from error
    return descriptor, size


def open_ranged(path: str | os.PathLike[str]) -> OpenedFile:
    """Open a file as `open_regular` does, but leave the bytes of a remote source in `source`.

    Raises OpenError also if none of them can be read.
    """
    try:
        # A pipe must not block the opening.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NONBLOCK", 0))
    except OSError as error:
        raise OpenError(f"can't be opened: {error.strerror}", path) from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode):
        os.close(descriptor)
        raise OpenError("isn't a regular file", path)
    source = path.source if isinstance(path, PlacedPath) else None
    if source is not None:
        try:
            source.check()
        except KsegError as error:
            os.close(descriptor)
            error.path = error.path or str(path)
            raise
    return OpenedFile(descriptor, found.st_size, source)


def read_small(path: str | os.PathLike[str], most: int) -> bytes:
    """Return the content of a file that has at most `most` bytes. Raises OpenError if it has more, or can't be read."""
    content = read_regular(path, most + 1)
    if len(content) > most:
        raise OpenError(f"has more than {plural(most, 'byte')}, too many for such a file", path)
    return content


def secrets_risk(path: Path) -> str | None:
    """Return a warning if other users of this machine can read a file with secrets."""
    if path.stat().st_mode & (stat.S_IRGRP | stat.S_IROTH):
        return f"{path}: other users of this machine can read the passwords; run `chmod 600 {path}` to prevent that"
    return None


def read_regular(path: str | os.PathLike[str], most: int | None = None) -> bytes:
    """Return the content of a file, or the first `most` bytes of it.

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
    """Return the content of a Kafka text file.

    Raises OpenError if it can't be opened or read, KsegError if it is too large for one.
    """
    content = read_regular(path, LARGEST_TEXT + 1)
    if len(content) > LARGEST_TEXT:
        raise FileError(f"has more than {LARGEST_TEXT} bytes, too many for one of Kafka's text files", path)
    return content
