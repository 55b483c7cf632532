"""A directory that appears when it is complete, or not at all; and copies of file ranges inside the kernel."""

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from kseg.errors import KsegError, UnreadableError, UsageError
from kseg.system.interrupts import Uninterrupted
from kseg.system.regular_file import open_regular
from kseg.system.scratch import scratch_directory

COPIED_AT_ONCE = 32 << 20
"""Bytes that are copied by one call; then the disk begins to store them, while the next ones are looked for."""
_SECTOR = 512
"""A disk can read all bytes of such a block, or none."""
_PIECE = 1 << 20
_NAME_KEPT = 200
"""Characters of a directory's name in its unfinished name, which mustn't become too long."""


class WriteError(KsegError):
    """Something can't be written."""


@contextmanager
def new_directory(path: Path) -> Iterator[Path]:
    """Yields a directory to fill, which becomes `path` at the end; after a failure nothing is left of it.

    First removes what a killed run into the same place left.

    Raises:
        UsageError: if the path is there and isn't an empty directory.
        WriteError: if something can't be written, in the block too.
    """
    check_absent(path)
    parent = path.absolute().parent
    missing: list[Path] = []
    try:
        with ExitStack() as stack:
            try:
                missing += [folder for folder in (parent, *parent.parents) if not folder.exists()]
                parent.mkdir(parents=True, exist_ok=True)
                unfinished = stack.enter_context(scratch_directory(parent, f".{path.name[:_NAME_KEPT]}-kseg-"))
            except OSError as error:
                raise WriteError(f"can't be created: {error.strerror}", path) from error
            try:
                yield unfinished
                _sync(unfinished)
                unfinished.chmod(0o755)
                unfinished.replace(path)
            except OSError as error:
                raise WriteError(f"can't be written: {error.strerror}", _final_path(error, unfinished, path)) from error
    finally:
        with Uninterrupted():
            _remove_empty(missing)


def _final_path(error: OSError, unfinished: Path, path: Path) -> Path:
    """The path of an error, with the name that it would have at the end."""
    if error.filename is None:
        return path
    about = Path(os.fsdecode(error.filename))
    return path / about.relative_to(unfinished) if about.is_relative_to(unfinished) else about


def _remove_empty(folders: list[Path]) -> None:
    """Removes folders again, the innermost first, unless something is in them."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def check_absent(path: Path) -> None:
    """Raises UsageError if the path is there and isn't an empty directory: nothing is ever overwritten."""
    try:
        if not path.exists():
            return
        if path.is_dir() and not any(path.iterdir()):
            return
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", path) from error
    raise UsageError("exists already: give a new or an empty directory", path)


def _sync(directory: Path) -> None:
    for path in (*directory.rglob("*"), directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def copy_file(path: Path, target_path: Path) -> None:
    """Copies a file and its times to a path where there is none.

    Raises UnreadableError if the disk can't read all of it, WriteError if it was cut meanwhile, OSError if the system
    can't read or write.
    """
    source, _ = open_regular(path)
    target = os.open(target_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        status = os.fstat(source)
        try:
            copy_range(source, target, 0, status.st_size)
        except (UnreadableError, WriteError) as error:
            raise type(error)(error.message, path, error.position) from error
        os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
    finally:
        os.close(source)
        os.close(target)


def copy_range(source: int, target: int, position: int, size: int) -> None:
    """Appends bytes of one open file to another, inside the kernel if the platform can.

    Raises:
        WriteError: if the source has fewer bytes.
        UnreadableError: if the disk can't read the source's bytes.
        OSError: if the system can't read or write.
    """
    ways = _ways_to_copy()
    copy = next(ways)
    while size > 0:
        try:
            count = copy(source, target, position, min(size, COPIED_AT_ONCE))
        except OSError:
            if copy is _copy_by_hand:
                raise
            copy = next(ways)
            continue
        if count == 0:
            if copy is not _copy_by_hand:
                copy = _copy_by_hand  # some file systems copy nothing this way
                continue
            raise WriteError(f"the source ends {size} bytes early: it was cut meanwhile", position=position)
        position += count
        size -= count
        _begin_to_store(target, count)


def _begin_to_store(target: int, count: int) -> None:
    """Lets the system write the last bytes of a file to the disk now, which it would do when they are waited for."""
    if hasattr(os, "posix_fadvise"):
        end = os.lseek(target, 0, os.SEEK_CUR)
        os.posix_fadvise(target, end - count, count, os.POSIX_FADV_DONTNEED)  # what isn't stored yet stays in memory


def _ways_to_copy() -> Iterator[Callable[[int, int, int, int], int]]:
    """Those of this system, the quickest first. Each gives how many bytes it copied."""
    if hasattr(os, "copy_file_range"):
        yield _copy_by_system
    if hasattr(os, "sendfile"):
        yield _send
    yield _copy_by_hand


def _copy_by_system(source: int, target: int, position: int, size: int) -> int:
    return os.copy_file_range(source, target, size, offset_src=position)


def _send(source: int, target: int, position: int, size: int) -> int:
    return os.sendfile(target, source, position, size)


def _piece_at(source: int, position: int, size: int) -> bytes:
    """Bytes of a file, up to what can't be read. Raises UnreadableError if that is the first byte."""
    while True:
        try:
            return os.pread(source, size, position)
        except OSError as error:
            if size <= _SECTOR:
                reason = f"can't be read: {error.strerror}; `kseg salvage` saves what is intact"
                raise UnreadableError(reason, position=position) from error
            size = max(size // 2, _SECTOR)


def _copy_by_hand(source: int, target: int, position: int, size: int) -> int:
    piece = _piece_at(source, position, min(size, _PIECE))
    write_whole(target, piece)
    return len(piece)


def write_whole(target: int, piece: bytes) -> None:
    """Appends bytes to an open file: a single write may take only some of them."""
    left = memoryview(piece)
    while left:
        left = left[os.write(target, left) :]
