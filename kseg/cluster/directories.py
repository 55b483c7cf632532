"""A log directory (`log.dirs`) and several of them: the partitions of a broker's disks."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kseg.errors import FileError, KsegError, OpenError, UnreadableError, counted
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
from kseg.log.selection import EVERY_PARTITION, NoSuchPartitionError, PartitionChoice
from kseg.system.directory_names import DirectoryNames, list_names
from kseg.system.placed_path import PlacedPath, as_path

META_PROPERTIES = "meta.properties"
_BROKER_ID = re.compile("[0-9]{1,10}")
_LARGEST_BROKER_ID = 2**31 - 1
LOST_AND_FOUND = "lost+found"
"""A directory of the file system, or of `salvage`: neither a log directory nor a partition."""


Refuse = Callable[[OpenError], None]
"""Called with the error of a path without anything, or of something inside it (UnreadableError); others follow."""


class DirectoryIdentity(NamedTuple):
    """What `meta.properties` tells of a log directory: its broker, its cluster's id and its own; None if it doesn't.

    version: of the file, "1" with KRaft.
    """

    broker: int | None = None
    cluster_id: str | None = None
    directory_id: str | None = None
    version: str | None = None


NOBODY = DirectoryIdentity()


class LogDir:
    """One log directory: a disk of partitions, and its checkpoints.

    names: those in it. listed: those in each of its partitions' directories that could be listed. problems: checkpoints
    that can't be read. Source: LogManager.
    """

    def __init__(self, path: str | os.PathLike[str], names: DirectoryNames | None = None) -> None:
        """List the directory, unless `names` are those in it, and read its checkpoints.

        Raises OpenError if it can't be listed.
        """
        self.path = as_path(path)
        self.names = list_names(self.path) if names is None else names
        self.problems: list[KsegError] = []
        self.checkpoints = read_checkpoints(self.path, self.problems)
        self.listed: dict[Path, DirectoryNames] = {}
        self.directories = sorted(self._partitions(), key=_order)

    def _partitions(self) -> Iterator[Path]:
        """Yield the directories in it that are partitions."""
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
        """Its partitions that are meant, by topic and number, one at a time; those that vanish meanwhile are left out.

        Directories that are being removed (`-delete`, `-stray`) or added (`-future`) come after those in use. `refuse`
        is called with the error of a directory that can't be listed; without it, the error is raised.
        """
        here = self.path.absolute()
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
            partition.log_dir = here  # the same for all: it is looked up for each of them
            yield partition

    def partition(self, topic: str, partition: int) -> PartitionLog | None:
        """One partition that is in use; None if it isn't here."""
        path = self.path / f"{topic}-{partition}"
        if not path.is_dir():
            return None
        return PartitionLog(path, self.checkpoints.get((topic, partition), Checkpoints()), self.listed.get(path))

    @property
    def is_one(self) -> bool:
        """Whether it is a log directory: it has partitions, or is a broker's new disk."""
        return bool(self.directories) or any(self.path.glob(META_PROPERTIES))

    @cached_property
    def identity(self) -> DirectoryIdentity:
        """Whose directory it is; nothing is known if `meta.properties` can't be read."""
        return identity_of(self.path)


def identity_of(log_dir: Path) -> DirectoryIdentity:
    """Whose a log directory is, without listing it; nothing is known if `meta.properties` can't be read."""
    try:
        return read_identity(log_dir)
    except FileError:
        return NOBODY


def read_identity(log_dir: Path) -> DirectoryIdentity:
    """Whose a log directory is; nothing is known without `meta.properties`. Raises KsegError if that can't be read."""
    content = read_small_file(log_dir / META_PROPERTIES)
    return NOBODY if content is None else parse_identity(content)


def parse_identity(content: bytes) -> DirectoryIdentity:
    """What a `meta.properties` tells. Raises KsegError if it can't be read."""
    from kseg.formats.checkpoints import parse_meta_properties

    found = dict(parse_meta_properties(content).properties)
    return DirectoryIdentity(broker_of(found), found.get("cluster.id"), found.get("directory.id"), found.get("version"))


def broker_of(properties: Mapping[str, str]) -> int | None:
    """The broker that a `meta.properties` or a `server.properties` is of; None if it has no valid id."""
    text = properties.get("node.id", properties.get("broker.id", ""))
    return int(text) if _BROKER_ID.fullmatch(text) and int(text) <= _LARGEST_BROKER_ID else None


def _order(path: Path) -> tuple[str, int, str]:
    name = parse_partition_directory(path)
    return (path.name, -1, "") if name is None else (name.topic, name.partition, name.unique_id or "")


MOST_LEVELS = 5
"""How deep log directories are looked for below a path: a support bundle has brokers, and disks of these."""


def find_log_dirs(
    path: str | os.PathLike[str], refuse: Refuse | None = None, levels: int = MOST_LEVELS
) -> list[LogDir]:
    """The log directories at a path: itself, and those up to some levels below it.

    A broker's new disk has no partitions, but `meta.properties`. `refuse` is called with the error of one below it that
    can't be listed; without it, the error is raised. Raises OpenError if the path itself can't be listed.
    """
    return [each for each in _all_below(LogDir(path), refuse, levels, {_identity(path)}) if each.is_one]


class FoundAt(NamedTuple):
    """What a path stands for: a partition's directory, or log directories.

    path: as it was given. here: the directory; a file's own. walked: where log directories were looked for, in order.
    names: those in a partition's directory, if it was listed.
    """

    path: Path
    here: Path
    is_partition: bool
    walked: tuple[LogDir, ...]
    log_dirs: tuple[LogDir, ...]
    names: DirectoryNames | None = None

    @property
    def has_partitions(self) -> bool:
        """Whether there is one; a broker's new disk has none."""
        return self.is_partition or any(each.directories for each in self.log_dirs)

    def partitions(self) -> Iterator[Path]:
        """Yield the directories of partitions."""
        if self.is_partition:
            yield self.here
        for each in self.log_dirs:
            yield from each.directories


def find_at(path: str | os.PathLike[str], refuse: Refuse | None = None, levels: int = MOST_LEVELS) -> FoundAt:
    """What a path stands for; refuse and errors as for `find_log_dirs`. None of the log directories is no error."""
    here, is_one, names = listed_at(path)
    walked: tuple[LogDir, ...] = ()
    if not is_one:
        walked = tuple(_all_below(LogDir(here, names), refuse, levels, {_identity(here)}))
    return FoundAt(as_path(path), here, is_one, walked, tuple(each for each in walked if each.is_one), names)


def _all_below(log_dir: LogDir, refuse: Refuse | None, levels: int, seen: set[tuple[int, int]]) -> Iterator[LogDir]:
    """A directory, and those below it that aren't partitions; each once, whatever links lead to it."""
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
    """A directory is there, but no partition in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        problem = "no partition here: give a partition's directory, a log directory, or a parent of it"
        others = next(_foreign_below(as_path(path)), None)
        there = _held(as_path(path)) if others is None else f"{others[0]} is {others[1]}"
        super().__init__(f"{problem}; {there}" if there else problem, path)


_MOST_NAMED = 3
"""Names of what a directory holds instead of partitions, in a message."""


def _held(path: Path) -> str:
    """Return what a directory without partitions holds; nothing of one that can't be listed, or stands for a bucket."""
    if isinstance(path, PlacedPath):
        return ""
    try:
        names = list_names(path)
    except OpenError:
        return ""
    directories, files = sorted(names.directories), sorted(names.files)
    if not directories and not files:
        return "it is empty"
    counts = [counted(len(directories), "directory", "directories")] if directories else []
    counts += [counted(len(files), "file")] if files else []
    shown = [*directories, *files]
    more = ", …" if len(shown) > _MOST_NAMED else ""
    absent = "" if META_PROPERTIES in files else ", no meta.properties"
    return f"it holds {' and '.join(counts)} ({', '.join(shown[:_MOST_NAMED])}{more}){absent}"


_MOST_LOOKED_AT = 1 << 12
"""Names below a path that are looked at for what it may be instead."""


def _foreign_below(path: Path) -> Iterator[tuple[Path, str]]:
    """What lies below a path and is known as something else: where from it, and what."""
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


def require_choice(paths: Iterable[str | os.PathLike[str]], choice: PartitionChoice) -> None:
    """Raises NoSuchPartitionError if there are partitions at some paths, but none that is meant."""
    there = [] if choice.is_everything else [directory for path in paths for directory in partition_directories(path)]
    if there and not any(map(choice.takes_directory, there)):
        raise NoSuchPartitionError(choice, there)


def partition_directories(path: str | os.PathLike[str]) -> list[Path]:
    """The directories of partitions at a path; none if it can't be listed."""
    try:
        here, is_one = directory_at(path)
        return [here] if is_one else [each for found in find_log_dirs(here, pass_over) for each in found.directories]
    except OpenError:
        return []


def once(refuse: Refuse) -> Refuse:
    """Passes each path's error on once, however often the path is looked at."""
    told: set[object] = set()

    def refuse_new(error: OpenError) -> None:
        if error.path not in told:
            told.add(error.path)
            refuse(error)

    return refuse_new


def only_below(refuse: Refuse) -> Refuse:
    """Passes on the errors of what is below the paths; those of the paths themselves are raised."""

    def refuse_below(error: OpenError) -> None:
        if not isinstance(error, UnreadableError):
            raise error
        refuse(error)

    return refuse_below


def pass_over(_: KsegError) -> None:
    """Takes an error that was told before, or is told where the place itself is asked for."""


def directory_at(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """The directory that a path stands for, and whether it is a partition's, as `listed_at`."""
    here, is_one, _ = listed_at(path)
    return here, is_one


def listed_at(path: str | os.PathLike[str]) -> tuple[Path, bool, DirectoryNames | None]:
    """The directory of a path (a file stands for its own), whether it is a partition's, and names if it was listed.

    The name of a Kafka file is trusted. Raises OpenError if the path isn't there, or is a file that isn't one of
    Kafka's.
    """
    here = as_path(path)
    if not here.exists():
        raise OpenError("no such file or directory", path)
    if here.is_file():
        name = parse_file_name(here)
        if name.kind is FileKind.UNKNOWN or (name.base_offset is None and name.kind in KINDS_WITH_OFFSET):
            from kseg.reading.other_files import refusal_of

            raise OpenError(refusal_of(path), path)
        return here.parent, name.base_offset is not None or is_partition(here.parent), None
    try:
        names = list_names(here)
    except OpenError:
        return here, _may_be_partition(here), None
    return here, is_partition_of(here, names), names


def is_partition(directory: Path) -> bool:
    """Whether a directory is a partition's, as `is_partition_of`; one that can't be listed is what its name says."""
    try:
        return is_partition_of(directory, list_names(directory))
    except OpenError:
        return _may_be_partition(directory)


def _may_be_partition(directory: Path) -> bool:
    return parse_partition_directory(directory.absolute()) is not None


def is_partition_of(directory: Path, names: DirectoryNames) -> bool:
    """Whether a directory with some names in it is a partition's: because it has segments, or by its own name.

    A log directory may be named like a partition (`disk-1`), and so may a parent of one (`broker-1/kafka-logs`): it has
    partitions or `meta.properties` in it or below, and no segments of its own. A directory of any other name may have
    another program's file that is named like a segment.
    """
    if not _may_be_partition(directory):
        return META_PROPERTIES not in names.files and any(map(_is_segment, names.files))
    return any(map(is_of_partition, names.files)) or not _leads_to_log_dir(directory, names, MOST_LEVELS)


def _leads_to_log_dir(directory: Path, names: DirectoryNames, levels: int) -> bool:
    """Whether a directory is a log directory, or has one up to some levels below it."""
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
    """Whether brokers use this name for files in a partition's directory."""
    found = parse_file_name(name)
    if found.kind in KINDS_WITH_OFFSET or found.kind is FileKind.METADATA_SNAPSHOT:
        return found.base_offset is not None and found.remote_id is None
    return found.kind in KINDS_BESIDE or found.suffix is not None


def is_of_log_dir(name: str) -> bool:
    """Whether brokers use this name for files in a log directory itself."""
    found = parse_file_name(name)
    return found.kind in KINDS_OF_LOG_DIR or name == BOOTSTRAP_CHECKPOINT or found.suffix is not None
