"""Protects the input: checks that a command writes only outside of what it reads."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kseg.errors import UsageError
from kseg.formats.names import FileKind, parse_file_name, parse_partition_directory

_OF_A_LOG_DIRECTORY = ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""A directory with any of these is a broker's log directory."""


def check_outside(target: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None]) -> None:
    """Raises UsageError if `target` is within the input or contains it, so that the input is never changed.

    A Kafka file counts with its directory, a partition with the broker's log directory that it is in. Directories are
    compared by device and inode, so links, `..` and other mounts of the same directory don't matter.
    """
    real = os.path.realpath(target)
    above = set(map(_identity, _with_parents(real)))
    for path in inputs:
        for directory in () if path is None else _directories_read(Path(os.path.realpath(path))):
            identity = _identity(directory)
            if identity is None:
                continue
            if identity in above:
                raise UsageError(f"is inside {directory}, which is read: kseg writes nothing there", target)
            if _identity(real) in map(_identity, _with_parents(directory)):
                raise UsageError(f"contains {directory}, which is read: kseg writes nothing there", target)


def _with_parents(path: str | Path) -> tuple[Path, ...]:
    return (Path(path), *Path(path).parents)


def _directories_read(path: Path) -> Iterator[Path]:
    """The directories whose files are used to read a path."""
    if path.is_dir():
        own = path
    elif parse_file_name(path).kind is not FileKind.UNKNOWN or parse_partition_directory(path.parent) is not None:
        own = path.parent
    else:
        return  # a file of another kind, such as records for `kseg build`: the files next to it aren't used
    yield own
    if any((own.parent / name).exists() for name in _OF_A_LOG_DIRECTORY):
        yield own.parent


def _identity(path: str | Path) -> tuple[int, int] | None:
    """A directory's device and inode; None if it isn't there."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino
