"""A log directory (`log.dirs`) and several of them: the partitions of a broker's disks."""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from kseg.errors import KsegError, OpenError, UnreadableError, UsageError
from kseg.formats.file_names import (
    KINDS_BESIDE,
    KINDS_OF_LOG_DIR,
    KINDS_WITH_OFFSET,
    FileKind,
    parse_file_name,
    parse_partition_directory,
)
from kseg.log.partition import Checkpoints, PartitionLog, read_checkpoints, read_small_file
from kseg.log.selection import EVERY_PARTITION, NoSuchPartitionError, PartitionChoice

META_PROPERTIES = "meta.properties"
BOOTSTRAP_CHECKPOINT = "bootstrap.checkpoint"
_BROKER_ID = re.compile("[0-9]{1,10}")
_LARGEST_BROKER_ID = 2**31 - 1
LOST_AND_FOUND = "lost+found"
"""A directory of the file system, or of `salvage`: neither a log directory nor a partition."""


Refuse = Callable[[OpenError], None]
"""Called with the error of a path without anything, or of something inside it (UnreadableError); others follow."""


class LogDir:
    """One log directory: a disk of partitions, and its checkpoints.

    problems: checkpoints that can't be read. Source: LogManager.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        """Lists the directory and reads its checkpoints. Raises OpenError if it can't be listed."""
        self.path = Path(path)
        self.problems: list[KsegError] = []
        self.checkpoints = read_checkpoints(self.path, self.problems)
        self.directories = sorted(_partition_directories(self.path), key=_order)

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
                partition = PartitionLog(path, own)
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
        return PartitionLog(path, self.checkpoints.get((topic, partition), Checkpoints()))

    def read_properties(self) -> dict[str, str]:
        """`meta.properties`, empty if there is none. Raises KsegError if it can't be read."""
        from kseg.formats.checkpoints import parse_meta_properties

        return dict(parse_meta_properties(read_small_file(self.path / META_PROPERTIES) or b"").properties)

    def cluster_id(self) -> str | None:
        """The id of its cluster; None if `meta.properties` has none. KsegError as above."""
        return self.read_properties().get("cluster.id")

    def broker_id(self) -> int | None:
        """The id of its broker; None if `meta.properties` has no valid one. KsegError as above."""
        properties = self.read_properties()
        text = properties.get("node.id", properties.get("broker.id", ""))
        if not _BROKER_ID.fullmatch(text):
            return None
        return broker_id if (broker_id := int(text)) <= _LARGEST_BROKER_ID else None


def _order(path: Path) -> tuple[str, int, str]:
    name = parse_partition_directory(path)
    return (path.name, -1, "") if name is None else (name.topic, name.partition, name.unique_id or "")


def _partition_directories(path: Path) -> Iterator[Path]:
    """Directories in it that are partitions."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if _is_dir(entry) and entry.name != LOST_AND_FOUND and is_partition(place := Path(entry.path)):
                    yield place
    except OSError as error:
        raise OpenError(f"can't be listed: {error.strerror}", path) from error


def _is_dir(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a directory, also by links; False of a link that leads to itself."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def holds_segments(path: str | os.PathLike[str]) -> bool:
    """Whether a directory has log files in it; False if it can't be listed."""
    try:
        with os.scandir(path) as entries:
            return any(_is_segment(entry.name) for entry in entries)
    except OSError:
        return False


def _is_segment(name: str) -> bool:
    if not name.endswith(".log"):
        return False
    kind, base_offset, *_ = parse_file_name(name)
    return kind is FileKind.LOG and base_offset is not None


def find_log_dirs(path: str | os.PathLike[str], refuse: Refuse | None = None) -> list[LogDir]:
    """The log directories at a path: itself, if it has partitions, and those directly below it.

    `refuse` is called with the error of one below it that can't be listed; without it, the error is raised. Raises
    OpenError if the path itself can't be listed.
    """
    own = LogDir(path)
    known = {LOST_AND_FOUND, *(directory.name for directory in own.directories)}
    others = [own.path / name for name in sorted(os.listdir(own.path)) if name not in known]  # noqa: PTH208  many
    below = [_log_dir_below(entry, refuse) for entry in others if entry.is_dir()]
    return [each for each in (own, *below) if each is not None and each.directories]


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
        super().__init__("no partition here: give a partition's directory, a log directory, or a parent of it", path)


def find_partitions(
    paths: Iterable[str | os.PathLike[str]], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> Iterator[PartitionLog]:
    """The partitions at some paths, one at a time: partition directories, log directories, parents of these.

    A Kafka file stands for its directory. The same topic may be on several disks. A directory that several paths mean
    comes once.

    Args:
        paths: where to look.
        refuse: called with the errors; None raises them.
        choice: which ones are meant.

    Raises:
        OpenError: if a path can't be listed; NoPartitionError if it has no partition; UnreadableError if one of its
            partitions can't be listed.
        NoSuchPartitionError: if there are partitions, but none of those that are meant; this isn't for `refuse`.
    """
    paths, seen = list(paths), set[Path]()
    for path in paths:
        try:
            for partition in partitions_at(path, refuse, choice):
                if partition.path not in seen:
                    seen.add(partition.path)
                    yield partition
        except OpenError as error:
            if refuse is None:
                raise
            refuse(error)
    if not seen:
        require_choice(paths, choice)


def partitions_at(
    path: str | os.PathLike[str], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> Iterator[PartitionLog]:
    """The partitions at one path that are meant, as in `find_partitions`, but none is no error.

    `refuse` is called with the errors of partitions in it that can't be listed; those of the path itself are raised.
    """
    here, is_one = directory_at(path)
    if is_one:
        if choice.takes_directory(here):
            yield PartitionLog(here)
        return
    found = find_log_dirs(here, refuse)
    if not found:
        raise NoPartitionError(path)
    for log_dir in found:
        yield from log_dir.partitions(refuse, choice)


def require_choice(paths: Iterable[str | os.PathLike[str]], choice: PartitionChoice) -> None:
    """Raises NoSuchPartitionError if there are partitions at some paths, but none that is meant."""
    there = [] if choice.is_everything else [directory for path in paths for directory in partition_directories(path)]
    if there and not any(map(choice.takes_directory, there)):
        raise NoSuchPartitionError(choice, there)


def partition_directories(path: str | os.PathLike[str]) -> list[Path]:
    """The directories of partitions at a path; none if it can't be listed."""
    try:
        here, is_one = directory_at(path)
        return [here] if is_one else [each for found in find_log_dirs(here, _pass_over) for each in found.directories]
    except OpenError:
        return []


def _pass_over(_: OpenError) -> None:
    """An error that was reported before."""


def only_partition(
    paths: Iterable[str | os.PathLike[str]], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> PartitionLog:
    """The one partition at some paths that is meant.

    `refuse` and errors are as for `partitions_at`; also NoSuchPartitionError, and UsageError if several are meant.
    """
    found = _one_or_replicas(paths, refuse, choice)
    if len(found) > 1:
        raise UsageError(f"is there {len(found)} times: give the directory of one", found[0].directory_name)
    return found[0]


def partition_named(
    paths: Iterable[str | os.PathLike[str]], refuse: Refuse | None = None, choice: PartitionChoice = EVERY_PARTITION
) -> PartitionLog:
    """As `only_partition`, but of replicas the first that is in use."""
    return min(_one_or_replicas(paths, refuse, choice), key=lambda place: place.state is not None)


def _one_or_replicas(
    paths: Iterable[str | os.PathLike[str]], refuse: Refuse | None, choice: PartitionChoice
) -> list[PartitionLog]:
    given = list(paths)
    places = (place for path in given for place in partitions_at(path, refuse, choice))
    found = list({place.path: place for place in places}.values())
    count = len({(place.topic or place.path, place.partition) for place in found})
    if count > 1:
        where = given[0] if len(given) == 1 else None
        raise UsageError(f"there are {count} partitions here: choose one with --topic and --partition", where)
    if not found:
        require_choice(given, choice)
        raise UsageError("there is no partition that can be read", given[0])  # the reasons were given to `refuse`
    return found


def directory_at(path: str | os.PathLike[str]) -> tuple[Path, bool]:
    """The directory that a path stands for (a file for its own), and whether it is a partition's.

    The name of a Kafka file is trusted. Raises OpenError if the path isn't there, or is a file that isn't one of
    Kafka's.
    """
    here = Path(path)
    if not here.exists():
        raise OpenError("no such file or directory", path)
    if here.is_file():
        name = parse_file_name(here)
        if name.kind is FileKind.UNKNOWN or (name.base_offset is None and name.kind in KINDS_WITH_OFFSET):
            raise OpenError("isn't a file of a partition: give a partition's directory, or a log directory", path)
        return here.parent, name.base_offset is not None or is_partition(here.parent)
    return here, is_partition(here)


def is_partition(directory: Path) -> bool:
    """Whether a directory is a partition's: because it has segments, or by its name.

    A log directory may be named like a partition (`disk-1`): it has partitions in it, and no segments of its own.
    """
    if parse_partition_directory(directory.absolute()) is None:
        return holds_segments(directory)
    has_partitions = False
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if not entry.is_dir():
                    if is_of_partition(entry.name):
                        return True
                elif parse_partition_directory(entry.name):
                    has_partitions = True
    except OSError:
        return True
    return not has_partitions


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
