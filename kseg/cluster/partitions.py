"""Partitions in several log directories: the places of replicas, and the ends of logs."""

from enum import Enum
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.cluster.joined_log import whole_log
from kseg.cluster.lookup import look_up_in_copies
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.cluster.model import ClusterMetadata, ClusterPartition
from kseg.cluster.replicas import CopyStatus, PartitionReplicas, in_sync_replicas
from kseg.errors import FileError, UsageError
from kseg.formats.codes import TAIL_KINDS
from kseg.index.header_scan import is_intact
from kseg.log.committed import read_last_stable_offset
from kseg.log.lineage import latest_epoch
from kseg.log.lookup import Absence
from kseg.log.partition import PartitionEnd, PartitionLog, remote_tier_of
from kseg.log.segments import read_index_end, tail_of

UNKNOWN_DIRECTORIES = {
    "AAAAAAAAAAAAAAAAAAAAAA": "",
    "AAAAAAAAAAAAAAAAAAAAAQ": "unassigned",
    "AAAAAAAAAAAAAAAAAAAAAg": "lost",
}
"""Ids that stand for no directory: unassigned, to be chosen, offline. Source: DirectoryId."""


TopicPartition = tuple[str, int]


class ReplicaPlace(NamedTuple):
    """The location of a replica: its broker and its log directory."""

    replica: int
    directory_id: str | None
    path: Path | None

    def text(self) -> str:
        """Return a printable location such as `1:disk2`, or the id if the path is unknown."""
        if self.path is not None:
            return f"{self.replica}:{self.path}"
        place = UNKNOWN_DIRECTORIES.get(self.directory_id or "", self.directory_id)
        return f"{self.replica}:{place}" if place else ""


class ReplicaPlaces:
    """The places of replicas in the log directories that were searched for metadata.

    They are found by the ids in `meta.properties` (from 3.7 on); and by the directories' contents, if the metadata are
    current.
    """

    def __init__(self, metadata: ClusterMetadata, *, are_of_now: bool) -> None:
        """Take the metadata; log directories that can't be listed hold nothing."""
        self._metadata, self._are_of_now = metadata, are_of_now
        self._cluster = Cluster(metadata.log_dirs, pass_over, levels=0)

    def of(self, partition: ClusterPartition) -> tuple[ReplicaPlace, ...]:
        """Return the places of a partition's replicas, in the order of these."""
        ids = partition.directories
        if len(ids) != len(partition.replicas):
            ids = (None,) * len(partition.replicas)
        own = (partition.topic, partition.partition)
        return tuple(
            ReplicaPlace(replica, directory_id, self._path(replica, directory_id, own))
            for replica, directory_id in zip(partition.replicas, ids, strict=True)
        )

    def path_of(self, directory_id: str | None) -> Path | None:
        """Return the path of the directory with an id, or None if it isn't here."""
        return None if directory_id is None else self._paths.get(directory_id)

    def _path(self, replica: int, directory_id: str | None, own: TopicPartition) -> Path | None:
        local_path = self._local_dirs.get((*own, replica)) if self._are_of_now else None
        return self.path_of(directory_id) if local_path is None else local_path

    @cached_property
    def _paths(self) -> dict[str | None, Path]:
        return {each.identity.directory_id: each.path for each in reversed(self._cluster.log_dirs)}

    @cached_property
    def _local_dirs(self) -> dict[tuple[str, int | None, int | None], Path]:
        """The log directories of replicas, by topic, partition and broker."""
        as_given = {each.path.absolute(): each.path for each in self._cluster.log_dirs}
        return {
            (each.topic, each.partition, copy.broker): as_given[copy.place.log_dir]
            for each in self._cluster.partitions(metadata=lambda _: self._metadata)
            for copy in each.copies
            if copy.status is CopyStatus.CURRENT
        }


class LogEnd(NamedTuple):
    """The end and the start of a partition's log.

    `log_end_offset`: the next offset to be written. `last_stable_offset`: the first offset of the oldest open
    transaction, else the same. `log_start_offset`: the first readable offset, on the disk or in the remote tier.
    """

    log_end_offset: int
    last_stable_offset: int
    log_start_offset: int


class UnknownEnd(Enum):
    """The reason why the end of a partition's log isn't known."""

    TOPIC_GONE = "topic gone: not in the cluster's metadata"
    NOT_HERE = "partition not here"
    OTHER_TOPIC = "topic gone: another one has its name"
    DAMAGED = "end of the log damaged"
    BEHIND = "replica here not in sync"
    OF_SEVERAL = "copies of several clusters here"


class UnreadableOffset(NamedTuple):
    """An offset that consumers can't read past because its batch is damaged, and the offset where they can continue."""

    next_good: int | None


class AdjacentPartitions:
    """The partitions of the given log directories; the ends of logs are read when needed."""

    def __init__(self, cluster: Cluster) -> None:
        """Take the cluster of the log directories."""
        self._cluster = cluster
        self._ends: dict[tuple[TopicPartition, str | None], LogEnd | UnknownEnd] = {}

    @cached_property
    def _replicas(self) -> dict[TopicPartition, PartitionReplicas[PartitionLog]]:
        found = self._cluster.partitions()
        return {(each.topic, each.partition): each for each in found if each.partition is not None and each.copies}

    def of_topic(self, topic: str) -> list[PartitionLog]:
        """Return the partitions of a topic by number. Lost batches are read from other copies."""
        return [whole_log(each) for each in self._replicas.values() if each.topic == topic]

    def end_of(self, topic: str, partition: int, topic_id: str | None = None) -> LogEnd | UnknownEnd:
        """Return the end of a partition's log, or the reason why it isn't known.

        It is the log end offset of the most complete replica found. Brokers answer their high watermark instead: both
        are the same when all in-sync replicas have caught up, before anyone asks a new leader. The high watermark in
        `replication-offset-checkpoint` is seconds old after a crash.

        The end is unknown if the partition isn't here, or only by a replica that isn't in sync by the metadata; if the
        directory's topic has another id; and if the log's end is damaged.
        """
        key = (topic, partition), topic_id
        if key not in self._ends:
            try:
                self._ends[key] = self._read_end((topic, partition), topic_id)
            except FileError:
                self._ends[key] = UnknownEnd.DAMAGED
            except UsageError:
                self._ends[key] = UnknownEnd.OF_SEVERAL
        return self._ends[key]

    def unreadable_at(self, topic: str, partition: int, offset: int) -> UnreadableOffset | None:
        """Return why consumers fail at an offset, looked up by the index in all copies, or None if nothing tells so."""
        replicas = self._replicas.get((topic, partition))
        if replicas is None:
            return None
        try:
            found = look_up_in_copies(replicas, offset, beside=self._metadata)
        except FileError:
            return None
        return UnreadableOffset(found.next_good_offset) if found.absence is Absence.DAMAGED else None

    @cached_property
    def _metadata(self) -> AdjacentMetadata:
        return AdjacentMetadata(cluster=self._cluster)

    def _read_end(self, own: TopicPartition, topic_id: str | None) -> LogEnd | UnknownEnd:
        replicas = self._replicas.get(own)
        if replicas is None:
            is_gone = self._topics is not None and own[0] not in self._topics
            return UnknownEnd.TOPIC_GONE if is_gone else UnknownEnd.NOT_HERE
        if len({topic_id, replicas.topic_id, replicas.copies[0].topic_id} - {None}) > 1:
            return UnknownEnd.OTHER_TOPIC
        end = _certain_end(replicas.best)
        if end is None:
            return UnknownEnd.DAMAGED
        if not self._may_lead(replicas, end):
            return UnknownEnd.BEHIND
        whole = whole_log(replicas)
        stable = read_last_stable_offset(whole)
        start = whole.log_start_offset(remote_tier_of(whole, None))
        return LogEnd(end.offset, end.offset if stable is None else min(stable, end.offset), start)

    def _may_lead(self, replicas: PartitionReplicas[PartitionLog], end: PartitionEnd) -> bool:
        """Return True if the best copy could be elected as leader."""
        best, *others = replicas.copies
        known = self._known.get((replicas.topic, replicas.partition))
        epochs = latest_epoch(best.place, end), *(copy.leader_epoch for copy in others)
        in_sync = in_sync_replicas(known, epochs)
        return not in_sync or best.broker is None or best.broker in in_sync

    @cached_property
    def _topics(self) -> frozenset[str] | None:
        metadata = self._cluster.own_metadata
        return None if metadata is None else frozenset(topic.name for topic in metadata.topics)

    @cached_property
    def _known(self) -> dict[tuple[str, int | None], ClusterPartition]:
        metadata = self._cluster.own_metadata
        return {} if metadata is None else {(each.topic, each.partition): each for each in metadata.partitions}


def _certain_end(place: PartitionLog) -> PartitionEnd | None:
    """Return the end of the log if a broker finds the same after any stop: the only damage is an incomplete batch."""
    active = place.active_segment
    if active is None:
        return None
    with active.open_log() as log_file:
        tail = tail_of(log_file, read_index_end(active))
        is_torn = tail.damage is None or tail.damage.kind in TAIL_KINDS
        if not is_torn or (tail.last is not None and not is_intact(log_file, tail.last)):
            return None
    return place.read_end({active.base_offset: tail.last})
