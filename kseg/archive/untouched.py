"""What is read stays as it is: the place that a command writes to lies outside of it."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from kseg.errors import UsageError
from kseg.formats.names import FileKind, parse_file_name, parse_partition_directory

_OF_A_LOG_DIRECTORY = ("meta.properties", "recovery-point-offset-checkpoint", "replication-offset-checkpoint")
"""Any of these in it makes a directory a broker's log directory."""


def check_outside(target: str | os.PathLike[str], inputs: Iterable[str | os.PathLike[str] | None]) -> None:
    """Raises UsageError if `target` lies within what is read, or holds it: input stays as it is.

    A file of Kafka's counts with its directory, a partition with the log directory that a broker has it in. Directories
    are compared as the system knows them: links, `..` and other mounts of the same place hide none.
    """
    real = os.path.realpath(target)
    above = set(map(_identity, _with_parents(real)))
    for path in inputs:
        for directory in () if path is None else _directories_read(Path(os.path.realpath(path))):
            identity = _identity(directory)
            if identity is None:
                continue
            if identity in above:
                raise UsageError(f"lies within {directory}, which is read: nothing is written there", target)
            if _identity(real) in map(_identity, _with_parents(directory)):
                raise UsageError(f"holds {directory}, which is read: nothing is written there", target)


def _with_parents(path: str | Path) -> tuple[Path, ...]:
    return (Path(path), *Path(path).parents)


def _directories_read(path: Path) -> Iterator[Path]:
    """The directories whose files are looked at to read a path."""
    if path.is_dir():
        own = path
    elif parse_file_name(path).kind is not FileKind.UNKNOWN or parse_partition_directory(path.parent) is not None:
        own = path.parent
    else:
        return  # a file of another kind, such as records for `kseg build`: what lies beside it isn't looked at
    yield own
    if any((own.parent / name).exists() for name in _OF_A_LOG_DIRECTORY):
        yield own.parent


def _identity(path: str | Path) -> tuple[int, int] | None:
    """What the system knows a directory by; None for what isn't there."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return None
    return status.st_dev, status.st_ino
