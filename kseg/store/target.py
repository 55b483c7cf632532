"""New directories and files of a command: outside of its inputs, and complete or absent."""

import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path

from kseg.errors import SwappedError, UsageError
from kseg.formats.file_names import FileKind, parse_file_name, parse_partition_directory
from kseg.system.files import Identity
from kseg.system.held_directory import HeldDirectory
from kseg.system.new_directory import WriteError, scratch_directory, write_whole
from kseg.system.signals import Uninterrupted

Paths = Iterable[str | os.PathLike[str] | None]
"""Inputs; None for an absent one."""
_NAME_KEPT = 200
"""Characters of a directory's name that its unfinished name keeps, so that it doesn't become too long."""
_OF_A_LOG_DIRECTORY = ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""Files that mark a directory as a broker's log directory."""


def check_outside(target: str | os.PathLike[str], inputs: Paths) -> None:
    """Raise UsageError if `target` is within an input or contains one, so that inputs are never changed.

    A Kafka file stands for its directory, a partition for its broker's log directory. Directories are compared by
    device and inode, so links, `..` and other mounts of the same directory don't matter.
    """
    real = os.path.realpath(target)
    _require_apart(target, [_identity(path) for path in _with_parents(real)], inputs)


def check_held(held: HeldDirectory, shown: str | os.PathLike[str], inputs: Paths) -> None:
    """Check an open directory as `check_outside` does, wherever its path leads now; shown: its name in messages."""
    _require_apart(shown, list(held.iter_ancestors()), inputs)


def _check_within(held: HeldDirectory, target: Path, inputs: Paths) -> None:
    """Check a target to be made in a held directory, which may be next to the inputs."""
    _require_apart(target, [None, *held.iter_ancestors()], inputs)


def _require_apart(target: str | os.PathLike[str], above: Sequence[Identity | None], inputs: Paths) -> None:
    """Raise UsageError if the target is in or above an input.

    above: identities of the target and of the directories above it; None for one that doesn't exist.
    """
    inside = _Surroundings(above[0])
    for path in inputs:
        for directory in () if path is None else inside.directories_read(path):
            identity = inside.identity(directory)
            if identity is None:
                continue
            if identity in above:
                raise UsageError(f"is inside {directory}, which kseg reads; specify a place outside of it", target)
            if inside.target_contains(directory):
                raise UsageError(f"contains {directory}, which kseg reads; specify another place", target)


class _Surroundings:
    """The directories around inputs. Each is examined once, since thousands of inputs may have the same parents."""

    def __init__(self, target: Identity | None) -> None:
        self._target = target
        self._apart: set[str] = set()
        self.identity = cache(_identity)
        self._real = cache(os.path.realpath)
        self._is_log_directory = cache(_is_log_directory)

    def directories_read(self, path: str | os.PathLike[str]) -> Iterator[str]:
        """Yield the directories whose files are used to read a path."""
        real = self._real_path(os.fspath(path))
        if os.path.isdir(real):  # noqa: PTH112  faster
            own = real
        elif (
            parse_file_name(Path(real)).kind is not FileKind.UNKNOWN
            or parse_partition_directory(Path(real).parent) is not None
        ):
            own = os.path.dirname(real)  # noqa: PTH120
        else:
            return  # other files, such as records for `kseg build`, are read without their neighbours
        yield own
        above = os.path.dirname(own)  # noqa: PTH120
        if self._is_log_directory(above):
            yield above

    def _real_path(self, path: str) -> str:
        parent, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):  # noqa: PTH114
            return os.path.realpath(path)
        return os.path.join(self._real(parent), name)  # noqa: PTH118

    def target_contains(self, directory: str) -> bool:
        """Return True if a directory is the target, or below it."""
        passed = []
        while self._target is not None and directory not in self._apart:
            if self.identity(directory) == self._target:
                return True
            passed.append(directory)
            directory = os.path.dirname(directory)  # noqa: PTH120  the root's is itself
            if directory == passed[-1]:
                break
        self._apart.update(passed)
        return False


def _with_parents(path: str) -> tuple[Path, ...]:
    return (Path(path), *Path(path).parents)


def _is_log_directory(path: str) -> bool:
    return any(os.path.exists(os.path.join(path, name)) for name in _OF_A_LOG_DIRECTORY)  # noqa: PTH110, PTH118


def _identity(path: str | Path) -> Identity | None:
    """Return a directory's device and inode, or None if it doesn't exist."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino


@contextmanager
def new_directory(path: Path, inputs: Paths = ()) -> Iterator[Path]:
    """Yield a directory to fill, which becomes `path` at the end; a failure leaves nothing.

    Removes the remains of a killed run first. The parent directory is held open from the beginning.

    Raises:
        UsageError: if the path exists and isn't an empty directory, or lies within an input.
        WriteError: if something can't be written, in the block too.
        SwappedError: if the directory or its parent was replaced meanwhile.
    """
    check_absent(path)
    parent = path.absolute().parent
    missing: list[Path] = []
    try:
        try:
            missing += [folder for folder in (parent, *parent.parents) if not folder.exists()]
            parent.mkdir(parents=True, exist_ok=True)
            held = HeldDirectory(parent)
        except OSError as error:
            raise WriteError(f"can't be created: {error.strerror}", path) from error
        _check_within(held, path, inputs)
        with _make_unfinished(path, held) as unfinished:
            yield unfinished
    finally:
        with Uninterrupted():
            _remove_empty(missing)


@contextmanager
def _make_unfinished(path: Path, held: HeldDirectory) -> Iterator[Path]:
    """Yield a new directory in a held one, and rename it at the end. Raises WriteError, SwappedError."""
    made = filled = None
    try:
        with scratch_directory(held.path, f".{path.name[:_NAME_KEPT]}-kseg-") as made:
            own = HeldDirectory(made)
            _require_within(own, held)
            filled = own.lasting_path
            yield filled
            _require_within(own, held)
            sync((*filled.rglob("*"), filled))
            os.fchmod(own.descriptor, 0o755)
            os.rename(made.name, path.name, src_dir_fd=held.descriptor, dst_dir_fd=held.descriptor)
            held.require_in_place()
    except SwappedError:
        if made is not None:
            shutil.rmtree(made.name, ignore_errors=True, dir_fd=held.descriptor)
        raise
    except OSError as error:
        if filled is None:
            raise WriteError(f"can't be created: {error.strerror}", path) from error
        raise WriteError(f"can't be written: {error.strerror}", _final_path(error, filled, path)) from error


def _require_within(own: HeldDirectory, held: HeldDirectory) -> None:
    """Raise SwappedError if a directory is no longer in the held one by its name, or if either path leads elsewhere."""
    found = held.status(own.path.name)
    if found is None or (found.st_dev, found.st_ino) != own.identity:
        raise SwappedError(held.path)
    for each in (held, own):
        each.require_in_place()


def _final_path(error: OSError, unfinished: Path, path: Path) -> Path:
    """Return the path of an error, with the directory's final name."""
    if error.filename is None:
        return path
    about = Path(os.fsdecode(error.filename))
    if not about.is_absolute():  # the system knows the name relative to its directory
        return path
    return path / about.relative_to(unfinished) if about.is_relative_to(unfinished) else about


def _remove_empty(folders: list[Path]) -> None:
    """Remove folders from the innermost outwards, as long as they are empty."""
    for folder in folders:
        with suppress(OSError):
            folder.rmdir()


def check_absent(path: Path) -> None:
    """Raise UsageError if the path exists and isn't an empty directory: nothing is ever overwritten."""
    try:
        if not os.path.lexists(path):
            return
        if path.is_dir() and not path.is_symlink() and not any(path.iterdir()):
            return
    except OSError as error:
        raise UsageError(f"can't be read: {error.strerror}", path) from error
    raise UsageError("already exists; specify a new or an empty directory", path)


def sync(paths: Iterable[Path]) -> None:
    """Wait until files and directories are on the disk. Raises OSError if the system can't write them."""
    for path in paths:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class NewFile:
    """A file that is written once and completely, in a directory that is held open from the beginning.

    Raises UsageError if the file exists, or would lie within an input; WriteError if it can't be made.
    """

    def __init__(self, path: Path, inputs: Paths = ()) -> None:
        self.path = path
        check_outside(path, inputs)
        try:
            self._held = HeldDirectory(path.absolute().parent)
            found = self._held.status(path.name)
        except OSError as error:
            raise WriteError(f"can't be written: {error.strerror}", path) from error
        _check_within(self._held, path, inputs)
        if found is not None:
            raise UsageError("already exists; specify the name of a new file", path)

    def write(self, content: bytes) -> None:
        """Write the file; a failure leaves nothing.

        Raises UsageError if the file exists by now, WriteError; SwappedError if its directory was replaced.
        """
        try:
            descriptor = self._held.open_new(self.path.name)
        except FileExistsError as error:
            raise UsageError("already exists; specify the name of a new file", self.path) from error
        except OSError as error:
            raise WriteError(f"can't be written: {error.strerror}", self.path) from error
        try:
            try:
                write_whole(descriptor, content)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
            self._held.require_in_place()
        except BaseException as error:
            with suppress(OSError):
                os.unlink(self.path.name, dir_fd=self._held.descriptor)
            if isinstance(error, OSError):
                raise WriteError(f"can't be written: {error.strerror}", self.path) from error
            raise
