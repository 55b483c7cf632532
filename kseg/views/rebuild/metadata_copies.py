"""Copies of `__cluster_metadata` on brokers' disks: how far each goes, and which one goes furthest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kseg.errors import DamagedError, KsegError, OpenError, UsageError
from kseg.formats.codes import DamageKind
from kseg.formats.names import parse_file_name
from kseg.log.partition.log_dir import LogDir, Refuse, partitions_at
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog, SegmentFiles
from kseg.reading.batch import Batch
from kseg.reading.scan import scan_log
from kseg.views.cluster import ClusterMetadata
from kseg.views.metadata import Until, cluster_metadata_of
from kseg.views.quorum import read_quorum_state


@dataclass(frozen=True, slots=True)
class MetadataCopy:
    """A copy of the metadata: the part of it that is whole, from a checkpoint or the log's start on.

    end_offset: after the last record of that part. leader_epoch: of its last batch. known_epoch: the last one that the
    node knew, by `quorum-state`. timestamp: of its last record, milliseconds since 1970. problem: why what comes after
    the end can't be used. found: what it adds up to. properties: of `meta.properties` beside it.
    """

    partition: PartitionLog
    end_offset: int
    leader_epoch: int
    known_epoch: int
    timestamp: int
    problem: str | None
    found: ClusterMetadata
    properties: dict[str, str]

    @property
    def node_id(self) -> str | None:
        """The id of the node whose disk it is on."""
        return self.properties.get("node.id", self.properties.get("broker.id"))

    @property
    def checkpoint_offset(self) -> int:
        """The end offset of the checkpoint that it begins with; 0 without one."""
        name = self.found.checkpoint
        return 0 if name is None else parse_file_name(name).base_offset or 0

    @property
    def segments(self) -> Sequence[SegmentFiles]:
        """Those with records that the checkpoint doesn't have."""
        first = self.partition.floor_slot(self.checkpoint_offset)
        return self.partition.segments[first or 0 :]

    def batches(self) -> Iterator[tuple[SegmentFiles, Batch]]:
        """The whole batches of these segments up to the end."""
        for segment in self.segments:
            with segment.open_log() as log_file:
                for item in scan_log(log_file):
                    if not isinstance(item, Batch) or item.last_offset >= self.end_offset:
                        break
                    yield segment, item


def metadata_copies(paths: Sequence[Path], refuse: Refuse | None = None) -> list[MetadataCopy]:
    """The copies at some paths, the one that goes furthest first: by its leader epoch, then by its end offset.

    Raises:
        OpenError: there is no copy at a path.
        UsageError: the copies are of several clusters.
        DamagedError: none is whole: each lacks records from before its log, and a checkpoint that has them.
    """
    partitions = {each.path.resolve(): each for path in paths for each in _partitions(path, refuse)}
    copies = [_measured(each) for each in partitions.values()]
    clusters = {copy.properties["cluster.id"] for copy in copies if "cluster.id" in copy.properties}
    if len(clusters) > 1:
        raise UsageError(f"these are of several clusters, {', '.join(sorted(clusters))}: give those of one")
    whole = [copy for copy in copies if copy.found.missing_before is None and copy.end_offset]
    if not whole:
        offset = copies[0].found.missing_before
        reason = "has no whole record" if offset is None else f"lacks the records before offset {offset}"
        raise DamagedError(f"{reason}, and no checkpoint has them: try another broker's copy", copies[0].partition.path)
    return sorted(whole, key=lambda copy: (copy.leader_epoch, copy.end_offset), reverse=True)


def _partitions(path: Path, refuse: Refuse | None) -> list[PartitionLog]:
    found = [*partitions_at(path, refuse, PartitionChoice((METADATA_TOPIC,)))]
    if not found:
        raise OpenError(
            f"has no {METADATA_TOPIC}-0; a broker keeps it in metadata.log.dir or in its first log dir", path
        )
    return found


def _measured(partition: PartitionLog) -> MetadataCopy:
    whole = cluster_metadata_of(partition, Until())
    end = _End(partition, whole)
    for segment in partition.segments[partition.floor_slot(end.offset) or 0 :]:
        if not end.takes(segment):
            break
    found = whole if end.problem is None else cluster_metadata_of(partition, Until(offset=end.offset - 1))
    return MetadataCopy(
        partition, end.offset, end.leader_epoch, _known_epoch(partition), end.timestamp, end.problem, found,
        _properties(partition),
    )  # fmt: skip


class _End:
    """Where the part of a copy ends that is whole; moves on with each batch."""

    def __init__(self, partition: PartitionLog, found: ClusterMetadata) -> None:
        name = None if found.checkpoint is None else parse_file_name(found.checkpoint)
        self.offset = 0 if name is None else name.base_offset or 0
        self.leader_epoch = 0 if name is None else name.epoch or 0
        self.timestamp = -1 if name is None else cluster_metadata_of(partition, Until(offset=self.offset - 1)).timestamp
        self.problem: str | None = None

    def takes(self, segment: SegmentFiles) -> bool:
        """Goes through a segment; False where the whole part ends in it."""
        with segment.open_log() as log_file:
            for item in scan_log(log_file):
                if not isinstance(item, Batch):
                    if item.kind is not DamageKind.ZERO_TAIL:
                        self.problem = f"{segment.path.name} at position {item.position}: {item.kind}"
                    return False
                if not self._takes(item, segment):
                    return False
        return True

    def _takes(self, batch: Batch, segment: SegmentFiles) -> bool:
        place = f"{segment.path.name} at position {batch.position}"
        first_offset = batch.base_offset or 0
        if not batch.is_valid or batch.problem() is not None:
            self.problem = f"{place}: a batch that can't be read"
        elif first_offset > self.offset:
            self.problem = f"{place}: offsets {self.offset} to {first_offset - 1} are missing"
        elif batch.last_offset >= self.offset:
            self.offset = batch.last_offset + 1
            self.leader_epoch = max(self.leader_epoch, batch.partition_leader_epoch)
            self.timestamp = batch.max_timestamp
        return self.problem is None


def _known_epoch(partition: PartitionLog) -> int:
    """The last leader epoch that a node knew; -1 if its file doesn't tell."""
    try:
        state = read_quorum_state(partition)
    except KsegError:
        return -1
    return -1 if state is None else state.leader_epoch


def _properties(partition: PartitionLog) -> dict[str, str]:
    try:
        return LogDir(partition.log_dir).read_properties()
    except KsegError:
        return {}
