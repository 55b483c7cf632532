"""A run's own directories, removed at its end or by a later run; and copies of files."""

import os
import shutil
import stat
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from kseg.errors import KsegError, OpenError, UnreadableError, counted
from kseg.system.files import open_regular, stored_stretches
from kseg.system.signals import Uninterrupted

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Processes:
    """Knows of processes whether they are over: of those that this boot of this machine's system has started."""

    def own(self) -> dict[str, Any]:
        """What tells this process from any other, here and elsewhere; null where the system doesn't say."""
        import socket

        return {
            "host": socket.gethostname(),
            "boot": _BOOT_ID.read_text(encoding="ascii").strip() if _BOOT_ID.exists() else None,
            "namespace": _namespace(),
            "pid": os.getpid(),
            "started": _state_and_start(os.getpid())[1],
        }

    def is_over(self, process: Mapping[str, Any]) -> bool | None:
        """Whether a process that `own` described has ended; None if it can't be told from here."""
        own = self.own()
        if own["boot"] is None or any(own[name] != process[name] for name in ("boot", "namespace")):
            return None
        try:
            os.kill(process["pid"], 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it is another user's, but there
        state, started = _state_and_start(process["pid"])
        return None if started is None else state in "ZX" or started != process["started"]


HERE = Processes()


def _namespace() -> str | None:
    """Numbers of processes mean something in it only: each container has its own."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _state_and_start(pid: int) -> tuple[str, int | None]:
    """A process' state, and when it was started, in ticks since the boot; see proc_pid_stat(5)."""
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
"""Characters that `tempfile` adds to a prefix."""


def temporary_place() -> Path:
    """TMPDIR, or the system's own place for temporary files if that isn't set.

    Where TMPDIR can't be used, `tempfile` takes another place without a word, which may have no room for what comes.
    """
    named = os.environ.get("TMPDIR")
    return Path(named).absolute() if named else Path(tempfile.gettempdir())


@contextmanager
def scratch_directory(parent: Path | None = None, prefix: str = PREFIX) -> Iterator[Path]:
    """A new directory for this run only, in TMPDIR or another place; removed with all its contents at the end.

    First removes directories with the same prefix whose runs were killed. If it is renamed meanwhile, it stays.
    Raises OSError if it can't be created there; OpenError if it can't be created in TMPDIR.
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
    """Removes the directories of killed runs: those of this user, with kseg's names, that aren't locked."""
    place = temporary_place() if place is None else place
    with suppress(OSError):
        for path in list(place.iterdir()):
            if path.name.startswith(prefix) and len(path.name) == len(prefix) + _RANDOM:
                with suppress(OSError):
                    _remove_if_dead(path)


def _remove_if_dead(path: Path) -> None:
    lock = _locked(path)
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
        problem = f"temporary files can't be kept there: {error.strerror}; set TMPDIR to another place"
        raise OpenError(problem, place) from error


def _new(place: Path, prefix: str) -> tuple[Path, int | None]:
    """A directory and its lock, which is None if the file system has no locks."""
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        try:
            lock = _locked(path)
        except (FileNotFoundError, BlockingIOError):
            continue  # another run removed it before it was locked
        if lock is None or _is_still(path, lock):
            return path, lock
        os.close(lock)


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of a directory; None if there are no locks, as on some network file systems.

    Raises BlockingIOError if another process holds it; OSError if it isn't a directory.
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
    """Whether the path still leads to the locked directory."""
    with suppress(OSError):
        found, own = path.lstat(), os.fstat(lock)
        return stat.S_ISDIR(found.st_mode) and (found.st_dev, found.st_ino) == (own.st_dev, own.st_ino)
    return False


COPIED_AT_ONCE = 32 << 20
"""Bytes that are copied by one call; then the disk begins to store them, while the next ones are looked for."""
_SECTOR = 512
"""A disk can read all bytes of such a block, or none."""
_PIECE = 1 << 20
_WORTH_HOLES = 1 << 20
"""Bytes from which a range may have holes that are worth looking for."""


class WriteError(KsegError):
    """Something can't be written."""


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
    """Appends bytes of one open file to another, inside the kernel if the platform can. Large holes stay holes.

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
    return WriteError(f"the source ends {counted(left, 'byte')} early: it was cut meanwhile", position=position)


def _copy_stored(source: int, target: int, position: int, size: int) -> None:
    """As `copy_range`, for bytes that may all be stored."""
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
