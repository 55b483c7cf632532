"""What partitions on brokers' disks tell that a copy of the metadata doesn't know: the copy is older than they are."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kseg.errors import KsegError
from kseg.log.partition.log_dir import LogDir, Refuse, partitions_at
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog
from kseg.log.partition.replicas import topic_id_of
from kseg.views.cluster import ClusterMetadata, ClusterPartition


class NewerPartition(NamedTuple):
    """A partition's directory that the copy doesn't know as it is: `leader_epoch`, `start_offset` of its last leader.

    known_epoch: the leader epoch that the copy has; None if it doesn't have the partition, or not on this broker.
    """

    path: Path
    topic_id: str | None
    leader_epoch: int | None
    start_offset: int | None
    known_epoch: int | None

    @property
    def reason(self) -> str:
        """What the copy doesn't know, in words."""
        if self.known_epoch is None:
            return "isn't in the copy: the broker will set it aside or delete it"
        return (
            f"has had leader epoch {self.leader_epoch} since offset {self.start_offset}, later than {self.known_epoch}"
        )


def newer_partitions(paths: Iterable[Path], found: ClusterMetadata, refuse: Refuse) -> list[NewerPartition]:
    """Partitions in use at some paths whose topic, replica or leader epoch the metadata don't know."""
    known = {(each.topic_id, each.partition): each for each in found.partitions}
    brokers: dict[Path, int | None] = {}
    newer: list[NewerPartition] = []
    for partition in (each for path in paths for each in partitions_at(path, refuse)):
        topic_id = None if partition.topic == METADATA_TOPIC or partition.state is not None else topic_id_of(partition)
        if topic_id is None:
            continue  # nothing can be said of it
        if partition.log_dir not in brokers:
            brokers[partition.log_dir] = _broker_id(partition.log_dir)
        own = known.get((topic_id, partition.partition or 0))
        compared = _compared(partition, topic_id, own, brokers[partition.log_dir])
        newer += [] if compared is None else [compared]
    return newer


def _compared(
    partition: PartitionLog, topic_id: str, known: ClusterPartition | None, broker_id: int | None
) -> NewerPartition | None:
    epochs = _leader_epochs(partition)
    epoch, start_offset = epochs[-1] if epochs else (None, None)
    if known is None or (broker_id is not None and broker_id not in known.replicas):
        return NewerPartition(partition.path, topic_id, epoch, start_offset, None)
    if epoch is not None and epoch > known.leader_epoch:
        return NewerPartition(partition.path, topic_id, epoch, start_offset, known.leader_epoch)
    return None


def _leader_epochs(partition: PartitionLog) -> tuple[tuple[int, int], ...]:
    try:
        return partition.read_leader_epochs() or ()
    except KsegError:
        return ()


def _broker_id(log_dir: Path) -> int | None:
    try:
        return LogDir(log_dir).broker_id()
    except KsegError:
        return None
