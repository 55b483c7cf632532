"""A run's own directories: locked while it lives, removed when it ends, or by a later run if it was killed."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kseg.errors import OpenError
from kseg.system.interrupts import Uninterrupted

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
            if path is not None:
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
