"""Remote tiers of partitions, by `__remote_log_metadata` and the topics' settings."""

from collections.abc import Iterable, Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.cluster import Cluster, dirs_of_cluster
from kseg.cluster.directories import identity_of, pass_over
from kseg.cluster.joined_log import whole_log
from kseg.cluster.metadata_copy import AdjacentMetadata, TopicIds
from kseg.errors import FileError, UsageError
from kseg.findings.findings import Findings
from kseg.log.partition import PartitionLog, RemoteTier, remote_tier_of
from kseg.system.placed_path import path_of_name
from kseg.tiered.placed_tiers import PlacedPartition, Standing, placed_at
from kseg.tiered.remote_segment import RemoteSegment

if TYPE_CHECKING:
    from kseg.formats.messages import Fields


REMOTE_LOG_TOPIC = "__remote_log_metadata"
NOTHING_COPIED = -1
"""The highest copied offset if none was copied, like a broker's."""
COPY_STARTED, COPIED, DELETE_STARTED, DELETED = range(4)
"""States of a segment; it is readable after its copy finished. Source: RemoteLogSegmentState."""
LONG_MS = 3_600_000
"""Milliseconds after which an unfinished copy or deletion is reported."""
_STARTED = {COPY_STARTED: "copy", DELETE_STARTED: "deletion"}


class Owner(NamedTuple):
    """The partition that a remote segment belongs to."""

    topic: str
    topic_id: str
    partition: int


class RecordedSegment(NamedTuple):
    """The state of a segment by its records.

    state: the last one. changed_ms: its last change, milliseconds since 1970. was_copied: the segment was complete
    there at some time; it may be deleted since.
    """

    owner: Owner
    segment_id: str
    base_offset: int | None
    end_offset: int | None
    state: int
    changed_ms: int
    was_copied: bool


def recorded_segments(log_dirs: Iterable[Path]) -> dict[tuple[Owner, str], RecordedSegment]:
    """Return segments by owner and id, from readable records of `__remote_log_metadata` in the given log directories.

    Raises UsageError if its copies there are of several clusters.
    """
    return _segments_in(_recording_partitions(log_dirs))


def _recording_partitions(log_dirs: Iterable[Path]) -> list[PartitionLog]:
    """Return the partitions of `__remote_log_metadata`. Raises UsageError if copies are of several clusters."""
    return [*map(whole_log, Cluster(log_dirs, pass_over, levels=0).topic(REMOTE_LOG_TOPIC))]


def _segments_in(places: Iterable[PartitionLog]) -> dict[tuple[Owner, str], RecordedSegment]:
    found: dict[tuple[Owner, str], RecordedSegment] = {}
    for place in places:
        try:
            records = list(_records(place))
        except FileError:  # deleted meanwhile
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
                fields["remoteLogSegmentState"] == COPIED or (before is not None and before.was_copied),
            )
    return found


def _records(place: PartitionLog) -> "Iterator[tuple[Owner, Fields]]":
    """Yield the readable records of remote segments, in their order, with their owners. Raises OpenError."""
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
    """Compare the segments of a partition in a tier with their records.

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
    stored_segments = {segment.segment_id: segment for segment in remote.segments if segment.segment_id is not None}
    for segment_id, each in of_partition.items():
        _check_state(placed, each, stored_segments.get(segment_id), now, findings)
    for unknown in sorted(stored_segments.keys() - of_partition.keys()):
        segment = stored_segments[unknown]
        offsets = segment.base_offset, segment.end_offset
        sentence = "__remote_log_metadata has no record of this segment"
        findings.add("remote-unknown", path_of_name(placed.place_of(segment)), sentence, offsets=offsets)


def _check_state(
    placed: PlacedPartition, recorded: RecordedSegment, segment: RemoteSegment | None, now: int, findings: Findings
) -> None:
    folder = placed.remote.folder if segment is None else placed.place_of(segment)
    offsets = recorded.base_offset, recorded.end_offset
    what = f"segment {recorded.segment_id}, offsets {offsets[0]} to {offsets[1]},"
    if recorded.state == COPIED and (segment is None or segment.is_unfinished):
        findings.add("remote-lost", path_of_name(folder), f"{what} was copied, but doesn't exist", offsets=offsets)
    elif recorded.state == DELETED and segment is not None:
        findings.add("remote-deleted", path_of_name(folder), f"{what} was deleted, but still exists", offsets=offsets)
    elif recorded.state in _STARTED and now - recorded.changed_ms > LONG_MS:
        minutes = (now - recorded.changed_ms) // 60_000
        sentence = f"{what} has an unfinished {_STARTED[recorded.state]} that started {minutes} minutes ago"
        findings.add("remote-started", path_of_name(folder), sentence, offsets=offsets)


def find_whole_tier(partition: PartitionLog, beside: AdjacentMetadata, copies: "RemoteCopies") -> RemoteTier | None:
    """Return the tier of a partition with the highest offset that was copied to it, or None if it has none.

    A partition that was joined with its tier always has one.
    """
    tier = find_tier(partition, beside)
    if tier is None and placed_at(partition.path) is not None:
        start = partition.log_start_offset()
        tier = RemoteTier(start, start)
    if tier is None:
        return None
    highest = copies.highest_offset(partition)
    if highest is None and copies.tells_all(partition, beside.partition_count(partition, REMOTE_LOG_TOPIC)):
        highest = NOTHING_COPIED
    return tier._replace(highest_offset=highest)


def find_tier(partition: PartitionLog, beside: AdjacentMetadata) -> RemoteTier | None:
    """Return the tier of a partition, or None if it has none, or its small files can't be read."""
    try:
        return remote_tier_of(partition, _is_tiered(partition, beside))
    except (FileError, UsageError):
        return None


def _is_tiered(partition: PartitionLog, beside: AdjacentMetadata) -> bool | None:
    topic = partition.topic
    if topic is None or beside.partition_count(partition, topic) is None:
        return None
    return beside.topic_settings(partition).get("remote.storage.enable") == "true"


class RemoteCopies:
    """The copies in remote tiers by the cluster's `__remote_log_metadata`; each topic is read once."""

    def __init__(self, log_dirs: Iterable[Path] = ()) -> None:
        """Add more log directories of the cluster. They are read when they are needed."""
        self._given_dirs = log_dirs
        self._records_by_dirs: dict[tuple[Path, ...], _RecordedOffsets] = {}
        self._clusters: dict[Path, tuple[Path, ...]] = {}
        self._topic_ids: dict[Path, TopicIds] = {}

    @cached_property
    def _dirs(self) -> tuple[Path, ...]:
        return tuple(self._given_dirs)

    def highest_offset(self, partition: PartitionLog) -> int | None:
        """Return the highest offset of a partition that was ever copied to its tier, or None if unknown.

        Its segments may be deleted there since. If its topic's id is unknown, so is the offset, provided that topics
        of several ids had its name. Without records, the offset is from the segments of a tier that the partition was
        joined with. Source: RemoteLogManager.findHighestRemoteOffset, RemoteLogLeaderEpochState.highestLogOffset.
        """
        recorded, topic_id = self._recorded_for(partition)
        found = [
            offset
            for owner, offset in recorded.highest.items()
            if (owner.topic, owner.partition) == (partition.topic, partition.partition)
            and topic_id in (None, owner.topic_id)
        ]
        return found[0] if len(found) == 1 else _highest_in_tier(partition)

    def tells_all(self, partition: PartitionLog, count: int | None) -> bool:
        """Return True if all records of a partition's copies are here.

        count: the number of partitions of `__remote_log_metadata`.

        Then all copies have records. False if several topics had its name, and its id is unknown.
        """
        recorded, topic_id = self._recorded_for(partition)
        names = [owner for owner in recorded.highest if owner.topic == partition.topic]
        return bool(count) and recorded.partitions >= {*range(count or 0)} and (topic_id is not None or not names)

    def _recorded_for(self, partition: PartitionLog) -> "tuple[_RecordedOffsets, str | None]":
        """Return the records of a partition's cluster, and the id of its topic."""
        log_dir = partition.path.absolute().parent
        if log_dir not in self._topic_ids:
            dirs = dict.fromkeys((*self._dirs, log_dir))
            self._clusters[log_dir] = tuple(dirs_of_cluster(dirs, identity_of(log_dir).cluster_id, identity_of))
            self._topic_ids[log_dir] = TopicIds(Cluster(dirs, pass_over, levels=0))
        own_dirs = self._clusters[log_dir]
        if own_dirs not in self._records_by_dirs:
            self._records_by_dirs[own_dirs] = _read_recorded(own_dirs)
        return self._records_by_dirs[own_dirs], self._topic_ids[log_dir].of(partition)


class _RecordedOffsets(NamedTuple):
    """The highest copied offset by owner, and the partitions of `__remote_log_metadata` that were read."""

    highest: dict[Owner, int]
    partitions: frozenset[int | None]


def _highest_in_tier(partition: PartitionLog) -> int | None:
    """Return the last offset of a tier that a partition was joined with; None without one, or if it is unknown."""
    placed = placed_at(partition.path)
    whole = (Standing.USED, Standing.USED_IN_PART, Standing.DUPLICATE, Standing.LOCAL)
    ends = [] if placed is None else [each.segment.end_offset for each in placed.choices if each.standing in whole]
    return max((end for end in ends if end is not None), default=None)


def _read_recorded(log_dirs: Iterable[Path]) -> _RecordedOffsets:
    places = _recording_partitions(log_dirs)
    highest: dict[Owner, int] = {}
    for segment in _segments_in(places).values():
        if segment.was_copied and segment.end_offset is not None:
            highest[segment.owner] = max(highest.get(segment.owner, NOTHING_COPIED), segment.end_offset)
    return _RecordedOffsets(highest, frozenset(place.partition for place in places))
