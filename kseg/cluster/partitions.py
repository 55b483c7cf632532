"""Partitions in several log directories: which directory has which replica, and where logs end."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.directories import LogDir
from kseg.cluster.model import ClusterMetadata, ClusterPartition
from kseg.cluster.replicas import one_of_each
from kseg.errors import KsegError, OpenError
from kseg.formats.codes import TAIL_KINDS
from kseg.formats.file_names import parse_partition_directory
from kseg.index.header_scan import is_intact
from kseg.log.committed import read_last_stable_offset
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles, read_index_end, tail_of

UNKNOWN_DIRECTORIES = {
    "AAAAAAAAAAAAAAAAAAAAAA": "",
    "AAAAAAAAAAAAAAAAAAAAAQ": "unassigned",
    "AAAAAAAAAAAAAAAAAAAAAg": "lost",
}
"""Ids that stand for no directory: one that nobody told, one to be chosen, one that is offline. Source: DirectoryId."""


class ReplicaPlace(NamedTuple):
    """Where a replica lies: `replica` is its broker; the directory's id as metadata have it, its path if it is here."""

    replica: int
    directory_id: str | None
    path: Path | None

    def text(self) -> str:
        """For people: `1:disk2`; the id where the path isn't known."""
        if self.path is not None:
            return f"{self.replica}:{self.path}"
        place = UNKNOWN_DIRECTORIES.get(self.directory_id or "", self.directory_id)
        return f"{self.replica}:{place}" if place else ""


class _Disk(NamedTuple):
    path: Path
    broker: int | None
    directory_id: str | None
    partitions: frozenset[tuple[str, int]]


class ReplicaPlaces:
    """Finds replicas in some log directories.

    By the ids in their `meta.properties` (from 3.7 on); and by what lies in them, if the metadata are of now.
    """

    def __init__(self, log_dirs: Iterable[Path], *, are_of_now: bool) -> None:
        """Takes the log directories; those that can't be listed hold nothing."""
        self._disks = list(_disks(log_dirs))
        self._are_of_now = are_of_now

    def of(self, partition: ClusterPartition) -> tuple[ReplicaPlace, ...]:
        """The places of a partition's replicas, in the order of these."""
        ids = partition.directories
        if len(ids) != len(partition.replicas):
            ids = (None,) * len(partition.replicas)
        own = (partition.topic, partition.partition)
        return tuple(
            ReplicaPlace(replica, directory_id, self._path(replica, directory_id, own))
            for replica, directory_id in zip(partition.replicas, ids, strict=True)
        )

    def path_of(self, directory_id: str) -> Path | None:
        """The path of the directory with an id; None if it isn't here."""
        return next((disk.path for disk in self._disks if disk.directory_id == directory_id), None)

    def _path(self, replica: int, directory_id: str | None, own: tuple[str, int]) -> Path | None:
        for disk in self._disks if self._are_of_now else ():
            if disk.broker == replica and own in disk.partitions:
                return disk.path
        return None if directory_id is None else self.path_of(directory_id)


def _disks(log_dirs: Iterable[Path]) -> Iterator[_Disk]:
    for path in log_dirs:
        try:
            log_dir = LogDir(path)
            directory_id, broker = log_dir.read_properties().get("directory.id"), log_dir.broker_id()
        except KsegError:
            continue
        names = map(parse_partition_directory, log_dir.directories)
        held = frozenset((name.topic, name.partition) for name in names if name is not None and name.state is None)
        yield _Disk(path, broker, directory_id, held)


TopicPartition = tuple[str, int]


class LogEnd(NamedTuple):
    """Where a partition's log ends.

    `log_end_offset`: the next offset to be written. `last_stable_offset`: the first offset of the oldest open
    transaction, else the same.
    """

    log_end_offset: int
    last_stable_offset: int


class PartitionsBeside:
    """The partitions in use of some log directories; the directories are listed once, logs are read when asked for."""

    def __init__(self, log_dirs: Iterable[Path], metadata: ClusterMetadata | None = None) -> None:
        """Takes the log directories, and the cluster's metadata if there are any.

        Directories that can't be listed hold nothing.
        """
        self._places: dict[TopicPartition, list[LogDir]] = {}
        for log_dir in _listed(log_dirs):
            for name in map(parse_partition_directory, log_dir.directories):
                if name is not None and name.state is None:
                    self._places.setdefault((name.topic, name.partition), []).append(log_dir)
        self._known = None if metadata is None else {(each.topic, each.partition): each for each in metadata.partitions}
        self._brokers: dict[Path, int | None] = {}
        self._ends: dict[tuple[TopicPartition, str | None], LogEnd | None] = {}

    def of_topic(self, topic: str) -> list[PartitionLog]:
        """A topic's partitions by number, one replica of each; those that can't be listed are left out."""
        return [place for own in sorted(self._places) if own[0] == topic for place in self._most_complete(own)]

    def _most_complete(self, own: TopicPartition) -> list[PartitionLog]:
        """The replica whose log ends last; none if the partition isn't here, or a replica can't be listed or opened."""
        try:
            topic, number = own
            found = [log_dir.partition(topic, number) for log_dir in self._places.get(own, ())]
            return one_of_each(place for place in found if place is not None)
        except OpenError:
            return []

    def end_of(self, topic: str, partition: int, topic_id: str | None = None) -> LogEnd | None:
        """Where the log of a partition ends; None if that isn't known.

        It is the log end offset of the most complete replica that is here. Brokers give their high watermark in its
        place: both are the same once all replicas in sync have caught up, which is before a new leader is asked. What
        `replication-offset-checkpoint` has of it is seconds old after a crash.

        Nothing is known where the partition isn't here, or only by a replica that the metadata say isn't in sync; where
        the directory's topic has another id; and where the log's end is damaged.
        """
        key = (topic, partition), topic_id
        if key not in self._ends:
            self._ends[key] = None
            with suppress(KsegError):
                self._ends[key] = self._read_end((topic, partition), topic_id)
        return self._ends[key]

    def _read_end(self, own: TopicPartition, topic_id: str | None) -> LogEnd | None:
        for place in self._most_complete(own):
            end = _log_end_offset(place) if self._is_meant(place, own, topic_id) else None
            if end is not None:
                stable = read_last_stable_offset(place)
                return LogEnd(end, end if stable is None else min(stable, end))
        return None

    def _is_meant(self, place: PartitionLog, own: TopicPartition, topic_id: str | None) -> bool:
        """Whether a directory holds the topic that is asked for, and no replica that fell behind: it may be elected."""
        ids = {topic_id, place.read_topic_id()}
        if self._known is None:
            return len(ids - {None}) < 2
        known = self._known.get(own)
        if known is None or len((ids | {known.topic_id}) - {None}) > 1:
            return False
        broker = self._broker_of(place.log_dir)
        return broker is None or broker in (*known.isr, *known.elr)

    def _broker_of(self, log_dir: Path) -> int | None:
        if log_dir not in self._brokers:
            self._brokers[log_dir] = LogDir(log_dir).broker_id()
        return self._brokers[log_dir]


def _listed(paths: Iterable[Path]) -> Iterator[LogDir]:
    for path in dict.fromkeys(paths):
        with suppress(OpenError):
            yield LogDir(path)


def _log_end_offset(place: PartitionLog) -> int | None:
    """The offset after the last batch of the last segment; None if damage stands there."""
    active = place.active_segment
    next_offset = None if active is None else _next_offset(active)
    return None if next_offset is None else max(next_offset, place.log_start_offset())


def _next_offset(segment: SegmentFiles) -> int | None:
    with segment.open_log() as log_file:
        tail = tail_of(log_file, read_index_end(segment))
        if tail.damage is not None and tail.damage.kind not in TAIL_KINDS:
            return None
        if tail.last is None:
            return segment.base_offset
        return tail.last.last_offset + 1 if is_intact(log_file, tail.last) else None
