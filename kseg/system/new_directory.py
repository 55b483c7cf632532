"""A run's own directories, removed at its end or by a later run; and copies of files."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kseg.errors import KsegError, OpenError, UnreadableError, plural
from kseg.system.files import open_regular, stored_stretches
from kseg.system.signals import Uninterrupted

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Processes:
    """A check for ended processes of this machine's present boot."""

    def own(self) -> dict[str, Any]:
        """Return an identification of this process on any machine; null for values that the system doesn't have."""
        import socket

        return {
            "host": socket.gethostname(),
            "boot": _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else None,
            "namespace": _namespace(),
            "pid": os.getpid(),
            "started": _state_and_start(os.getpid())[1],
        }

    def is_over(self, process: Mapping[str, Any]) -> bool | None:
        """Return True if a process that `own` described has ended; None if it can't be determined here."""
        own = self.own()
        if own["boot"] is None or any(own[name] != process[name] for name in ("boot", "namespace")):
            return None
        try:
            os.kill(process["pid"], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it exists, and belongs to another user
        state, started = _state_and_start(process["pid"])
        return None if started is None else state in "ZX" or started != process["started"]


HERE = Processes()


def _namespace() -> str | None:
    """Return the namespace in which process numbers are valid: each container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _state_and_start(pid: int) -> tuple[str, int | None]:
    """Return a process' state, and its start in ticks since the boot; see proc_pid_stat(5)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, IndexError, ValueError):
        return "", None


try:
    import fcntl
except ImportError:  # then nothing that a killed run left is removed
    _HAS_LOCKS = False
else:
    _HAS_LOCKS = True

PREFIX = "kseg-scratch-"
"""The beginning of names in TMPDIR."""
_RANDOM = 8
"""The number of characters that `tempfile` adds to a prefix."""


def temporary_place() -> Path:
    """Return TMPDIR, or the system's own place for temporary files if that isn't set.

    If TMPDIR can't be used, `tempfile` silently takes another place, which may have too little room.
    """
    named = os.environ.get("TMPDIR")
    return Path(named).absolute() if named else Path(tempfile.gettempdir())


@contextmanager
def scratch_directory(parent: Path | None = None, prefix: str = PREFIX) -> Iterator[Path]:
    """Create a directory for this run only, in TMPDIR or another place; removed with its contents at the end.

    First removes directories with the same prefix whose runs were killed. If it is renamed meanwhile, it stays. Raises
    OSError if it can't be created there; OpenError if it can't be created in TMPDIR.
    """
    place = temporary_place() if parent is None else parent
    remove_dead(place, prefix)
    path, lock = None, None
    try:
        with Uninterrupted():
            path, lock = _new(place, prefix) if parent is not None else _new_temporary(place, prefix)
        yield path
    finally:
        with Uninterrupted():
            if path is not None and (lock is None or _is_still(path, lock)):
                shutil.rmtree(path, ignore_errors=True)
            if lock is not None:
                os.close(lock)


def remove_dead(place: Path | None = None, prefix: str = PREFIX) -> None:
    """Remove the directories of killed runs: unlocked ones of this user with kseg's names."""
    place = temporary_place() if place is None else place
    with suppress(OSError):
        for path in list(place.iterdir()):
            if path.name.startswith(prefix) and len(path.name) == len(prefix) + _RANDOM:
                with suppress(OSError):
                    _remove_if_dead(path)


def _remove_if_dead(path: Path) -> None:
    lock = _lock(path)
    if lock is None:
        return
    try:
        if os.fstat(lock).st_uid == os.geteuid() and _is_still(path, lock):
            shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)


def _new_temporary(place: Path, prefix: str) -> tuple[Path, int | None]:
    try:
        return _new(place, prefix)
    except OSError as error:
        problem = f"temporary files can't be written there: {error.strerror}; set TMPDIR to another place"
        raise OpenError(problem, place) from error


def _new(place: Path, prefix: str) -> tuple[Path, int | None]:
    """Return a directory and its lock, which is None if the file system has no locks."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        try:
            lock = _lock(path)
        except (FileNotFoundError, BlockingIOError):
            continue  # another run removed it before it was locked
        if lock is None or _is_still(path, lock):
            return path, lock
        os.close(lock)


def _lock(path: Path) -> int | None:
    """Lock a directory, and return the descriptor, or None without locks, as on some network file systems.

    Raises BlockingIOError if another process holds the lock; OSError if it isn't a directory.
    """
    if not _HAS_LOCKS:
        return None
    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise
    except OSError:
        os.close(lock)
        return None
    return lock


def _is_still(path: Path, lock: int) -> bool:
    """Return True if the path still leads to the locked directory."""
    with suppress(OSError):
        found, own = path.lstat(), os.fstat(lock)
        return stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
    return False


COPIED_AT_ONCE = 32 << 20
"""Bytes that are copied by one call; then the disk begins to store them, while the next ones are read."""
_SECTOR = 512
"""The size of a disk's block, of which all bytes can be read, or none."""
_PIECE = 1 << 20
_WORTH_HOLES = 1 << 20
"""The least size of a range whose holes are worth a search."""


class WriteError(KsegError):
    """A file can't be written."""


def copy_file(path: Path, target_path: Path) -> None:
    """Copy a file and its timestamps to a path that doesn't exist.

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
    """Append bytes of one open file to another, inside the kernel if the platform can. Large holes stay holes.

    Raises:
        WriteError: if the source has fewer bytes.
        UnreadableError: if the disk can't read the source's bytes.
        OSError: if the system can't read or write.
    """
    end = position + size
    stretches = [(position, end)] if size < _WORTH_HOLES else stored_stretches(source, position, end)
    for start, stop in stretches:
        os.lseek(target, start - position, os.SEEK_CUR)
        _copy_stored(source, target, start, stop - start)
        position = stop
    if position < end:
        left = end - os.fstat(source).st_size
        if left > 0:
            raise _cut(left, position)
        os.ftruncate(target, os.lseek(target, end - position, os.SEEK_CUR))


def _cut(left: int, position: int) -> WriteError:
    return WriteError(
        f"the source ends {plural(left, 'byte')} early, since another program truncated it; run the command again",
        position=position,
    )


def _copy_stored(source: int, target: int, position: int, size: int) -> None:
    """Copy as `copy_range` does, without a search for holes."""
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
            raise _cut(size, position)
        position += count
        size -= count
        _begin_to_store(target, count)


def _begin_to_store(target: int, count: int) -> None:
    """Start writing the last bytes of a file to the disk now; otherwise this would start at its sync."""
    if hasattr(os, "posix_fadvise"):
        end = os.lseek(target, 0, os.SEEK_CUR)
        os.posix_fadvise(target, end - count, count, os.POSIX_FADV_DONTNEED)  # unsaved bytes stay in memory


def _ways_to_copy() -> Iterator[Callable[[int, int, int, int], int]]:
    """Return this system's ways to copy, the fastest first. Each returns the number of copied bytes."""
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
    """Return bytes of a file, up to the first unreadable one. Raises UnreadableError if that is the first byte."""
    while True:
        try:
            return os.pread(source, size, position)
        except OSError as error:
            if size <= _SECTOR:
                reason = f"can't be read: {error.strerror}; run `kseg salvage` to keep the intact batches"
                raise UnreadableError(reason, position=position) from error
            size = max(size // 2, _SECTOR)


def _copy_by_hand(source: int, target: int, position: int, size: int) -> int:
    piece = _piece_at(source, position, min(size, _PIECE))
    write_whole(target, piece)
    return len(piece)


def write_whole(target: int, piece: bytes) -> None:
    """Append bytes to an open file: a single write may take only some of them."""
    left = memoryview(piece)
    while left:
        left = left[os.write(target, left) :]
