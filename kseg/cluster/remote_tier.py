"""Remote tiers of partitions, as `__remote_log_metadata` and the topics' settings describe them."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.cluster import Cluster, dirs_of_cluster
from kseg.cluster.directories import identity_of, pass_over
from kseg.cluster.joined_log import whole_log
from kseg.cluster.metadata_copy import MetadataBeside, TopicIds
from kseg.errors import KsegError
from kseg.findings.findings import Findings
from kseg.log.partition import PartitionLog, RemoteTier, remote_tier_of
from kseg.tiered.placed_tiers import PlacedPartition
from kseg.tiered.remote_segment import RemoteSegment

if TYPE_CHECKING:
    from kseg.formats.messages import Fields


REMOTE_LOG_TOPIC = "__remote_log_metadata"
COPY_STARTED, COPIED, DELETE_STARTED, DELETED = range(4)
"""States of a segment; it can be read when it is copied. Source: RemoteLogSegmentState."""
LONG_MS = 3_600_000
"""Milliseconds after which a copy or a deletion that isn't finished is named."""
_STARTED = {COPY_STARTED: "copying", DELETE_STARTED: "deletion"}


class Owner(NamedTuple):
    """The partition that a remote segment belongs to."""

    topic: str
    topic_id: str
    partition: int


class RecordedSegment(NamedTuple):
    """What the last records of a segment say; changed_ms: when its state changed last, milliseconds since 1970."""

    owner: Owner
    segment_id: str
    base_offset: int | None
    end_offset: int | None
    state: int
    changed_ms: int


def recorded_segments(log_dirs: Iterable[Path]) -> dict[tuple[Owner, str], RecordedSegment]:
    """Segments by owner and id, as `__remote_log_metadata` in some log directories tells; what can't be read is not.

    Raises UsageError if its copies there are of several clusters.
    """
    found: dict[tuple[Owner, str], RecordedSegment] = {}
    for place in map(whole_log, Cluster(log_dirs, pass_over, levels=0).topic(REMOTE_LOG_TOPIC)):
        try:
            records = list(_records(place))
        except KsegError:  # it has gone meanwhile
            continue
        for owner, fields in records:
            segment_id = fields["remoteLogSegmentId"]["id"]
            before = found.get((owner, segment_id))
            found[owner, segment_id] = RecordedSegment(
                owner,
                segment_id,
                fields.get("startOffset", None if before is None else before.base_offset),
                fields.get("endOffset", None if before is None else before.end_offset),
                fields["remoteLogSegmentState"],
                fields["eventTimestampMs"],
            )
    return found


def _records(place: PartitionLog) -> "Iterator[tuple[Owner, Fields]]":
    """The records of remote segments that can be read, in their order, and whose they are. Raises OpenError."""
    from kseg.decode.internal_records import parse_framed
    from kseg.formats.messages import MessageError
    from kseg.formats.schemas import REMOTE_LOG_RECORDS
    from kseg.log.replay import Unreadable, partition_batches

    for item in partition_batches(place):
        if isinstance(item, Unreadable) or item.is_control:
            continue
        for record in item.records(on_damage="skip"):
            try:
                fields = parse_framed(REMOTE_LOG_RECORDS, record.value).fields
            except MessageError:
                continue
            owner = fields.get("remoteLogSegmentId", {}).get("topicIdPartition")
            if owner is not None:
                yield Owner(owner["name"], owner["id"], owner["partition"]), fields


def check_recorded(
    placed: PlacedPartition, recorded: dict[tuple[Owner, str], RecordedSegment], findings: Findings
) -> None:
    """Compares the segments of a partition in a tier with what was recorded of them.

    Ages are those at the newest record.
    """
    remote = placed.remote
    of_partition = {
        segment_id: each
        for (owner, segment_id), each in recorded.items()
        if (owner.topic, owner.partition) == (remote.topic, remote.partition)
        and remote.topic_id in (None, owner.topic_id)
    }
    if not of_partition:
        return
    now = max(each.changed_ms for each in recorded.values())
    there = {segment.segment_id: segment for segment in remote.segments if segment.segment_id is not None}
    for segment_id, each in of_partition.items():
        _check_state(placed, each, there.get(segment_id), now, findings)
    for unknown in sorted(there.keys() - of_partition.keys()):
        segment = there[unknown]
        offsets = segment.base_offset, segment.end_offset
        sentence = "__remote_log_metadata has no record of this segment"
        findings.add("remote-unknown", Path(placed.place_of(segment)), sentence, offsets=offsets)


def _check_state(
    placed: PlacedPartition, recorded: RecordedSegment, there: RemoteSegment | None, now: int, findings: Findings
) -> None:
    folder = placed.remote.folder if there is None else placed.place_of(there)
    offsets = recorded.base_offset, recorded.end_offset
    what = f"segment {recorded.segment_id}, offsets {offsets[0]} to {offsets[1]},"
    if recorded.state == COPIED and (there is None or there.is_unfinished):
        findings.add("remote-lost", Path(folder), f"{what} was copied, but isn't there", offsets=offsets)
    elif recorded.state == DELETED and there is not None:
        findings.add("remote-deleted", Path(folder), f"{what} was deleted, but is still there", offsets=offsets)
    elif recorded.state in _STARTED and now - recorded.changed_ms > LONG_MS:
        minutes = (now - recorded.changed_ms) // 60_000
        sentence = f"{what} has its {_STARTED[recorded.state]} started, and not finished for {minutes} minutes"
        findings.add("remote-started", Path(folder), sentence, offsets=offsets)


def find_tier(partition: PartitionLog, beside: MetadataBeside) -> RemoteTier | None:
    """The tier of a partition; None if it has none, or its small files can't be read."""
    try:
        return remote_tier_of(partition, _is_tiered(partition, beside))
    except KsegError:
        return None


def _is_tiered(partition: PartitionLog, beside: MetadataBeside) -> bool | None:
    topic = partition.topic
    if topic is None or beside.partition_count(partition, topic) is None:
        return None
    return beside.topic_settings(partition).get("remote.storage.enable") == "true"


class RemoteCopies:
    """What was copied to remote tiers, as `__remote_log_metadata` of the cluster tells; each is read once."""

    def __init__(self, log_dirs: Iterable[Path] = ()) -> None:
        """Takes further log directories of the cluster; not read before they are needed."""
        self._given_dirs = log_dirs
        self._highest: dict[tuple[Path, ...], dict[Owner, int]] = {}
        self._clusters: dict[Path, tuple[Path, ...]] = {}
        self._topic_ids: dict[Path, TopicIds] = {}

    @cached_property
    def _dirs(self) -> tuple[Path, ...]:
        return tuple(self._given_dirs)

    def highest_offset(self, partition: PartitionLog) -> int | None:
        """The highest offset of a partition that was copied to its tier; None if nothing tells.

        If nothing tells its topic's id, that isn't known where topics of several ids had its name.
        """
        log_dir = partition.path.absolute().parent
        if log_dir not in self._topic_ids:
            dirs = dict.fromkeys((*self._dirs, log_dir))
            self._clusters[log_dir] = tuple(dirs_of_cluster(dirs, identity_of(log_dir).cluster_id, identity_of))
            self._topic_ids[log_dir] = TopicIds(Cluster(dirs, pass_over, levels=0))
        own_dirs = self._clusters[log_dir]
        if own_dirs not in self._highest:
            self._highest[own_dirs] = _highest_offsets(own_dirs)
        topic_id = self._topic_ids[log_dir].of(partition)
        found = [
            offset
            for owner, offset in self._highest[own_dirs].items()
            if (owner.topic, owner.partition) == (partition.topic, partition.partition)
            and topic_id in (None, owner.topic_id)
        ]
        return found[0] if len(found) == 1 else None


def _highest_offsets(log_dirs: Iterable[Path]) -> dict[Owner, int]:
    highest: dict[Owner, int] = {}
    for segment in recorded_segments(log_dirs).values():
        if segment.state == COPIED and segment.end_offset is not None:
            highest[segment.owner] = max(highest.get(segment.owner, -1), segment.end_offset)
    return highest
