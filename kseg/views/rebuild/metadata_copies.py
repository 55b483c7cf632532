"""Copies of `__cluster_metadata` on brokers' disks: how far each goes, and which one goes furthest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from kseg.errors import DamagedError, KsegError, OpenError, UsageError
from kseg.formats.codes import TAIL_KINDS, DamageKind
from kseg.formats.names import parse_file_name
from kseg.log.partition.log_dir import LogDir, Refuse, partitions_at
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.partition_log import METADATA_TOPIC, PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
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
    the end can't be used; has_damage: that is more than a torn end, as it is normal after a power cut. found: what it
    adds up to. properties: of `meta.properties` beside it.
    """

    partition: PartitionLog
    end_offset: int
    leader_epoch: int
    known_epoch: int
    timestamp: int
    problem: str | None
    has_damage: bool
    found: ClusterMetadata
    properties: dict[str, str]

    @property
    def node_id(self) -> str | None:
        """The id of the node whose disk it is on."""
        return self.properties.get("node.id", self.properties.get("broker.id"))

    @property
    def segments(self) -> Sequence[SegmentFiles]:
        """Those with records that the checkpoint doesn't have."""
        start = _checkpoint_end(self.found)[0]
        return _segments_from(self.partition, start) if start < self.end_offset else ()

    def batches(self) -> Iterator[tuple[SegmentFiles, Batch]]:
        """The batches of these segments up to the end, each whole, and at the offset where the last one ends."""
        for segment in self.segments:
            with segment.open_log() as log_file:
                for item in scan_log(log_file):
                    if not isinstance(item, Batch) or item.last_offset >= self.end_offset:
                        return
                    yield segment, item
                    if item.last_offset + 1 == self.end_offset:
                        return


def metadata_copies(paths: Sequence[Path], refuse: Refuse | None = None) -> list[MetadataCopy]:
    """The copies at some paths, the one that goes furthest first: by its leader epoch, then by its end offset.

    Raises:
        OpenError: a path can't be opened, or there is no copy at any.
        UsageError: the copies are of several clusters.
        DamagedError: none is whole: each lacks records from before its log, and a checkpoint that has them.
    """
    choice = PartitionChoice((METADATA_TOPIC,))
    partitions = {each.path.resolve(): each for path in paths for each in partitions_at(path, refuse, choice)}
    if not partitions:
        raise OpenError(
            f"has no {METADATA_TOPIC}-0: a broker keeps it in metadata.log.dir, or in a log directory", paths[0]
        )
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


def _measured(partition: PartitionLog) -> MetadataCopy:
    found = cluster_metadata_of(partition, Until())
    end = _End(*_checkpoint_end(found))
    for segment in _segments_from(partition, end.offset):
        if not end.takes(segment, is_last=segment is partition.active_segment):
            break
    if end.problem is not None:
        found = cluster_metadata_of(partition, Until(offset=end.offset - 1))
    timestamp = found.timestamp if end.timestamp is None else end.timestamp
    known_epoch, properties = _known_epoch(partition), _properties(partition)
    return MetadataCopy(
        partition, end.offset, end.leader_epoch, known_epoch, timestamp, end.problem, end.has_damage, found, properties
    )  # fmt: skip


def _checkpoint_end(found: ClusterMetadata) -> tuple[int, int]:
    """The end offset and the leader epoch of the checkpoint that a copy begins with; zeros without one."""
    name = None if found.checkpoint is None else parse_file_name(found.checkpoint)
    return (0, 0) if name is None else (name.base_offset or 0, name.epoch or 0)


def _segments_from(partition: PartitionLog, offset: int) -> Sequence[SegmentFiles]:
    """The segments with an offset or a later one."""
    return partition.segments[partition.floor_slot(offset) or 0 :]


class _End:
    """Where the part of a copy ends that is whole; moves on with each batch.

    The log has no gaps, since nothing compacts it. It counts from the checkpoint's end on, if it reaches that.
    timestamp: of the last batch, None as long as none counts.
    """

    def __init__(self, offset: int, leader_epoch: int) -> None:
        self.offset = offset
        self.leader_epoch = leader_epoch
        self.timestamp: int | None = None
        self.problem: str | None = None
        self.has_damage = False
        self._next_offset: int | None = None

    def takes(self, segment: SegmentFiles, *, is_last: bool) -> bool:
        """Goes through a segment; False where the whole part ends in it."""
        if self._next_offset is None:
            self._next_offset = segment.base_offset
        with segment.open_log() as log_file:
            for item in scan_log(log_file):
                if isinstance(item, Batch):
                    self._take(item)
                elif item.kind is not DamageKind.ZERO_TAIL:
                    self.problem = str(item.kind)
                    self.has_damage = not (is_last and item.kind in TAIL_KINDS)
                if self.problem is not None:
                    self.problem = f"{segment.path.name} at position {item.position}: {self.problem}"
                    return False
        return True

    def _take(self, batch: Batch) -> None:
        counts = batch.last_offset >= self.offset  # the records of others stand in the checkpoint
        if not batch.is_valid or (counts and batch.problem() is not None):
            self.problem = "a batch that can't be read"
        elif batch.base_offset != self._next_offset:
            self.problem = f"offset {batch.base_offset} instead of {self._next_offset}"
        self.has_damage = self.problem is not None
        if self.has_damage:
            return
        self._next_offset = batch.last_offset + 1
        if counts:
            self.offset = batch.last_offset + 1
            self.leader_epoch = max(self.leader_epoch, batch.partition_leader_epoch)
            self.timestamp = batch.max_timestamp


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
