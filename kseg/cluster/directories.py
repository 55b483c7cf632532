"""A log directory (`log.dirs`) and several of them: the partitions of a broker's disks."""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kseg.errors import FileError, KsegError, OpenError, UnreadableError, plural
from kseg.formats.file_names import (
    BOOTSTRAP_CHECKPOINT,
    KINDS_BESIDE,
    KINDS_OF_LOG_DIR,
    KINDS_WITH_OFFSET,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kseg.log.partition import (
    Checkpoints,
    PartitionLog,
    read_checkpoints,
    read_small_file,
)
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.system.directory_names import DirectoryNames, list_names
from kseg.system.placed_path import PlacedPath, as_path

META_PROPERTIES = "meta.properties"
_BROKER_ID = re.compile("[0-9]{1,10}")
_LARGEST_BROKER_ID = 2**31 - 1
LOST_AND_FOUND = "lost+found"
"""A directory of the file system, or of `salvage`: neither a log directory nor a partition."""


Refuse = Callable[[OpenError], None]
"""Called with the error of a path without contents, or of something inside it (UnreadableError); reading continues."""


class DirectoryIdentity(NamedTuple):
    """The fields of a `meta.properties` file. Missing fields are None.

    version: of the file, "1" with KRaft.
    """

    broker: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    version: str | None = None


NOBODY = DirectoryIdentity()


class LogDir:
    """One log directory: a disk of partitions, and its checkpoints.

    names: the directory's entries. listed: the entries of each listed partition directory. problems: unreadable
    checkpoints. Source: LogManager.
    """

    def __init__(self, path: str | os.PathLike[str], names: DirectoryNames | None = None) -> None:
        """List the directory, unless `names` are its entries, and read its checkpoints.

        Raises OpenError if it can't be listed.
        """
        self.path = as_path(path)
        self.names = list_names(self.path) if names is None else names
        self.problems: list[KsegError] = []
        self.checkpoints = read_checkpoints(self.path, self.problems)
        self.listed: dict[Path, DirectoryNames] = {}
        self.directories = sorted(self._partitions(), key=_order)

    def _partitions(self) -> Iterator[Path]:
        for name in self.names.directories:
            path = self.path / name
            if name == LOST_AND_FOUND:
                continue
            try:
                names = list_names(path)
            except OpenError:
                if parse_partition_directory(name) is not None:
                    yield path
                continue
            if is_partition_of(path, names):
                self.listed[path] = names
                yield path

    def partitions(
        self, refuse: "Refuse | None" = None, choice: PartitionChoice = EVERY_PARTITION
    ) -> Iterator[PartitionLog]:
        """Yield its chosen partitions by topic and number, one at a time, without those deleted meanwhile.

        Directories that are being removed (`-delete`, `-stray`) or added (`-future`) come after those in use. `refuse`
        is called with the error of a directory that can't be listed; without it, the error is raised.
        """
        absolute_path = self.path.absolute()
        for path in filter(choice.takes_directory, self.directories):
            name = parse_partition_directory(path)
            own = Checkpoints()
            if name is not None and name.state is None:
                own = self.checkpoints.get((name.topic, name.partition), own)
            try:
                partition = PartitionLog(path, own, self.listed.get(path))
            except OpenError as error:
                if not path.exists():
                    continue
                unreadable = UnreadableError(error.message, error.path)
                if refuse is None:
                    raise unreadable from error
                refuse(unreadable)
                continue
            partition.log_dir = absolute_path  # set once: each partition would look it up
            yield partition

    def partition(self, topic: str, partition: int) -> PartitionLog | None:
        """Return a partition that is in use, or None if it isn't in this directory."""
        path = self.path / f"{topic}-{partition}"
        if not path.is_dir():
            return None
        return PartitionLog(path, self.checkpoints.get((topic, partition), Checkpoints()), self.listed.get(path))

    @property
    def is_one(self) -> bool:
        """Return True if it is a log directory, either with partitions or on a new disk."""
        return bool(self.directories) or any(self.path.glob(META_PROPERTIES))

    @cached_property
    def identity(self) -> DirectoryIdentity:
        """Return the identity of the directory. All fields are None if `meta.properties` can't be read."""
        return identity_of(self.path)


def identity_of(log_dir: Path) -> DirectoryIdentity:
    """Return the identity of a log directory, or an empty one if `meta.properties` can't be read."""
    try:
        return read_identity(log_dir)
    except FileError:
        return NOBODY


def read_identity(log_dir: Path) -> DirectoryIdentity:
    """Read a log directory's identity; empty without `meta.properties`. Raises KsegError if that can't be read."""
    content = read_small_file(log_dir / META_PROPERTIES)
    return NOBODY if content is None else parse_identity(content)


def parse_identity(content: bytes) -> DirectoryIdentity:
    """Parse a `meta.properties`. Raises KsegError if it can't be read."""
    from kseg.formats.checkpoints import parse_meta_properties

    found = dict(parse_meta_properties(content).properties)
    return DirectoryIdentity(broker_of(found), found.get("cluster.id"), found.get("directory.id"), found.get("version"))


def broker_of(properties: Mapping[str, str]) -> int | None:
    """Return the broker id in a `meta.properties` or a `server.properties`, or None if it has no valid id."""
    text = properties.get("node.id", properties.get("broker.id", ""))
    return int(text) if _BROKER_ID.fullmatch(text) and int(text) <= _LARGEST_BROKER_ID else None


def _order(path: Path) -> tuple[str, int, str]:
    name = parse_partition_directory(path)
    return (path.name, -1, "") if name is None else (name.topic, name.partition, name.unique_id or "")


MOST_LEVELS = 7
"""The depth of the search for log directories below a path: a support bundle has brokers with disks."""


def find_log_dirs(
    path: str | os.PathLike[str], refuse: Refuse | None = None, levels: int = MOST_LEVELS
) -> list[LogDir]:
    """Return the log directories at a path: itself, and those up to some levels below it.

    A broker's new disk has no partitions, but `meta.properties`. `refuse` is called with the error of a directory
    below that can't be listed; without it, the error is raised. Raises OpenError if the path itself can't be listed.
    """
    return [each for each in _all_below(LogDir(path), refuse, levels, {_identity(path)}) if each.is_one]


class FoundAt(NamedTuple):
    """The contents of a path, which are either a partition or log directories.

    path: as given. here: the directory; a file's own. walked: the directories searched for log directories, in order.
    names: the entries of a partition's directory, if it was listed.
    """

    path: Path
    here: Path
    is_partition: bool
    walked: tuple[LogDir, ...]
    log_dirs: tuple[LogDir, ...]
    names: DirectoryNames | None = None

    @property
    def has_partitions(self) -> bool:
        """True if there is a partition; a broker's new disk has none."""
        return self.is_partition or any(each.directories for each in self.log_dirs)

    def partitions(self) -> Iterator[Path]:
        """Yield the directories of partitions."""
        if self.is_partition:
            yield self.here
        for each in self.log_dirs:
            yield from each.directories


def find_at(path: str | os.PathLike[str], refuse: Refuse | None = None, levels: int = MOST_LEVELS) -> FoundAt:
    """Find the partitions and log directories at a path. The result may be empty."""
    directory, is_one, names = listed_at(path)
    walked: tuple[LogDir, ...] = ()
    if not is_one:
        walked = tuple(_all_below(LogDir(directory, names), refuse, levels, {_identity(directory)}))
    return FoundAt(as_path(path), directory, is_one, walked, tuple(each for each in walked if each.is_one), names)


def _all_below(log_dir: LogDir, refuse: Refuse | None, levels: int, seen: set[tuple[int, int]]) -> Iterator[LogDir]:
    """Yield a directory and all subdirectories that aren't partitions, each of them only once."""
    yield log_dir
    if not levels:
        return
    known = {LOST_AND_FOUND, *(directory.name for directory in log_dir.directories)}
    for name in sorted(log_dir.names.directories):
        path = log_dir.path / name
        if name in known or not path.is_dir():
            continue
        identity = _identity(path)
        if identity in seen:
            continue
        seen.add(identity)
        below = _log_dir_below(path, refuse)
        if below is not None:
            yield from _all_below(below, refuse, levels - 1, seen)


def _identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    status = Path(path).stat()
    return status.st_dev, status.st_ino


def _log_dir_below(path: Path, refuse: Refuse | None) -> LogDir | None:
    try:
        return LogDir(path)
    except OpenError as error:
        unreadable = UnreadableError(error.message, error.path)
        if refuse is None:
            raise unreadable from error
        refuse(unreadable)
        return None


class NoPartitionError(OpenError):
    """A directory exists, but has no partition in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        problem = "no partition here; specify a partition's directory, a log directory, or a parent of it"
        others = next(_foreign_below(as_path(path)), None)
        there = _describe_contents(as_path(path)) if others is None else f"{others[0]} is {others[1]}"
        super().__init__(f"{problem}; {there}" if there else problem, path)


_MOST_NAMED = 3
"""The most names of other contents in a message."""


def _describe_contents(path: Path) -> str:
    """Return the names of other files in a directory without partitions."""
    if isinstance(path, PlacedPath):
        return ""
    try:
        names = list_names(path)
    except OpenError:
        return ""
    directories, files = sorted(names.directories), sorted(names.files)
    if not directories and not files:
        return "it is empty"
    counts = [plural(len(directories), "directory", "directories")] if directories else []
    counts += [plural(len(files), "file")] if files else []
    shown = [*directories, *files]
    more = ", …" if len(shown) > _MOST_NAMED else ""
    absent = "" if META_PROPERTIES in files else ", no meta.properties"
    return f"it holds {' and '.join(counts)} ({', '.join(shown[:_MOST_NAMED])}{more}){absent}"


_MOST_LOOKED_AT = 1 << 12
"""The most names below a path that are checked for other known contents."""


def _foreign_below(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a description of all known files below a path that aren't Kafka logs."""
    from kseg.formats.foreign import what_has_name

    waiting, left = [(path, MOST_LEVELS)], _MOST_LOOKED_AT
    while waiting and left > 0:
        directory, levels = waiting.pop(0)
        names: list[str] = []
        with suppress(OSError):
            names = sorted(os.listdir(directory))[:left]  # noqa: PTH208  many
        left -= len(names)
        for name in names:
            what = what_has_name(name)
            if what is not None:
                yield (directory / name).relative_to(path), what
            elif levels and (directory / name).is_dir():
                waiting.append((directory / name, levels - 1))


def partition_directories(path: str | os.PathLike[str]) -> list[Path]:
    """Return the partition directories at a path, or an empty list if the path can't be listed."""
    try:
        directory, is_one = directory_at(path)
        return (
            [directory]
            if is_one
            else [each for found in find_log_dirs(directory, pass_over) for each in found.directories]
        )
    except OpenError:
        return []


def report_once(refuse: Refuse) -> Refuse:
    """Return a function that passes each path's error on once, even if the path is listed several times."""
    reported_paths: set[object] = set()

    def refuse_new(error: OpenError) -> None:
        if error.path not in reported_paths:
            reported_paths.add(error.path)
            refuse(error)

    return refuse_new


def limit_to_contents(refuse: Refuse) -> Refuse:
    """Return a function that passes on the errors below the paths, and raises those of the paths themselves."""

    def refuse_below(error: OpenError) -> None:
        if not isinstance(error, UnreadableError):
            raise error
        refuse(error)

    return refuse_below


def pass_over(_: KsegError) -> None:
    """Ignore an error that is reported elsewhere: before, or when the place itself is read."""


def directory_at(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """Return the directory of a path, and whether it is a partition's, like `listed_at`."""
    directory, is_one, _ = listed_at(path)
    return directory, is_one


def listed_at(path: str | os.PathLike[str]) -> tuple[Path, bool, DirectoryNames | None]:
    """Return the directory of a path (of a file, its own), whether it is a partition's, and names if it was listed.

    A Kafka file is recognised by its name alone. Raises OpenError if the path doesn't exist, or is a file that isn't
    one of Kafka's.
    """
    directory = as_path(path)
    if not directory.exists():
        raise OpenError("no such file or directory", path)
    if directory.is_file():
        name = parse_file_name(directory)
        if name.kind is FileKind.UNKNOWN or (name.base_offset is None and name.kind in KINDS_WITH_OFFSET):
            from kseg.reading.other_files import refusal_of

            raise OpenError(refusal_of(path), path)
        return directory.parent, name.base_offset is not None or is_partition(directory.parent), None
    try:
        names = list_names(directory)
    except OpenError:
        return directory, _may_be_partition(directory), None
    return directory, is_partition_of(directory, names), names


def is_partition(directory: Path) -> bool:
    """Return True if a directory is a partition's, like `is_partition_of`; by its name if it can't be listed."""
    try:
        return is_partition_of(directory, list_names(directory))
    except OpenError:
        return _may_be_partition(directory)


def _may_be_partition(directory: Path) -> bool:
    return parse_partition_directory(directory.absolute()) is not None


def is_partition_of(directory: Path, names: DirectoryNames) -> bool:
    """Return True if a directory with some entries is a partition's: because of its segments, or by its own name.

    A log directory may be named like a partition (`disk-1`), and so may a parent of one (`broker-1/kafka-logs`): it
    has partitions or `meta.properties` in it or below, and no segments of its own. A directory of any other name may
    have another program's file that is named like a segment.
    """
    if not _may_be_partition(directory):
        return META_PROPERTIES not in names.files and any(map(_is_segment, names.files))
    return any(map(is_of_partition, names.files)) or not _leads_to_log_dir(directory, names, MOST_LEVELS)


def _leads_to_log_dir(directory: Path, names: DirectoryNames, levels: int) -> bool:
    """Return True if a path is a log directory or contains one within a few levels."""
    if META_PROPERTIES in names.files or any(map(parse_partition_directory, names.directories)):
        return True
    return levels > 0 and any(_child_leads_to_log_dir(directory / name, levels - 1) for name in names.directories)


def _child_leads_to_log_dir(directory: Path, levels: int) -> bool:
    try:
        return _leads_to_log_dir(directory, list_names(directory), levels)
    except OpenError:
        return False


def _is_segment(name: str) -> bool:
    if not name.endswith(".log"):
        return False
    found = parse_file_name(name)
    return found.kind is FileKind.LOG and found.base_offset is not None and found.remote_id is None


def is_of_partition(name: str) -> bool:
    """Return True if brokers use this name for files in a partition directory."""
    found = parse_file_name(name)
    if found.kind in KINDS_WITH_OFFSET or found.kind is FileKind.METADATA_SNAPSHOT:
        return found.base_offset is not None and found.remote_id is None
    return found.kind in KINDS_BESIDE or found.suffix is not None


def is_of_log_dir(name: str) -> bool:
    """Return True if brokers use this name for files in a log directory itself."""
    found = parse_file_name(name)
    return found.kind in KINDS_OF_LOG_DIR or name == BOOTSTRAP_CHECKPOINT or found.suffix is not None
