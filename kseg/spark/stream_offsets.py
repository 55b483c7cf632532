"""A stream's progress, as its checkpoint has it; and what of the logs is there, so that losses are noticed."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from kseg.errors import KsegError, UsageError
from kseg.export.copies import Copies, PartitionCopy
from kseg.export.settings import Isolation
from kseg.log.select.isolation import read_last_stable_offset
from kseg.spark.request import Key

_TOPIC_ID, _GONE = "topicId", "gone"
"""Beside the partitions' numbers: kseg's additions to what the connector keeps."""


@dataclass(frozen=True)
class Progress:
    """The next offset of each partition, and the ids of topics, where `partition.metadata` has them.

    gone: the same of partitions that aren't there, as the query was told: one that comes back is read on from there.
    """

    offsets: Mapping[Key, int]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    gone: Mapping[Key, int] = field(default_factory=dict)

    def to_json(self) -> dict[str, dict[str, Any]]:
        """By topic and partition, in a fixed order, since Spark compares the text."""
        members = _by_topic(self.offsets)
        for topic, gone in _by_topic(self.gone).items():
            members.setdefault(topic, {})[_GONE] = gone
        for topic, own in members.items():
            if topic in self.topic_ids:
                own[_TOPIC_ID] = self.topic_ids[topic]
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Mapping[str, Any]]) -> "Progress":
        """The progress of `to_json`, or of the connector's checkpoint."""
        offsets = {
            topic: {name: own[name] for name in own if name not in (_TOPIC_ID, _GONE)} for topic, own in members.items()
        }
        gone = {topic: own.get(_GONE, {}) for topic, own in members.items()}
        ids = {topic: own[_TOPIC_ID] for topic, own in members.items() if _TOPIC_ID in own}
        return cls(_by_key(offsets), ids, _by_key(gone))

    def offset_of(self, key: Key) -> int | None:
        """How far a partition was read; None if it is new."""
        return self.offsets.get(key, self.gone.get(key))

    def is_of_another(self, topic: str, topic_id: str | None) -> bool:
        """Whether the topic was recreated since, as far as ids are known."""
        known = self.topic_ids.get(topic)
        return known is not None and topic_id is not None and known != topic_id


def _by_topic(offsets: Mapping[Key, int]) -> dict[str, dict[str, Any]]:
    members: dict[str, dict[str, Any]] = {}
    for (topic, partition), offset in sorted(offsets.items(), key=lambda item: (item[0][0], item[0][1] or 0)):
        members.setdefault(topic, {})[str(partition)] = offset
    return members


def _by_key(members: Mapping[str, Mapping[str, int]]) -> dict[Key, int]:
    return {
        (topic, int(partition) if partition.isdigit() else None): offset
        for topic, own in members.items()
        for partition, offset in own.items()
    }


class HeldLog(NamedTuple):
    """A partition's log as it is: its first offset and the next one that a stream may read up to."""

    replica: PartitionCopy
    topic_id: str | None
    first: int
    end: int
    is_cleared: bool
    """Whether records up to its end were deleted, so that none reaches it."""

    @classmethod
    def of(cls, replica: PartitionCopy, isolation: Isolation) -> "HeldLog":
        """Reads the end of a log. Raises OpenError if it has gone, UsageError if it is remote."""
        if replica.is_remote:
            raise UsageError("a stream reads local directories only", replica.path)
        place = replica.open()
        try:
            topic_id = place.read_topic_id()
        except KsegError:
            topic_id = None  # damaged: as before 2.8, when there were none
        end = place.read_log_end_offset()
        is_cleared = place.log_start_offset() >= end
        if isolation is Isolation.READ_COMMITTED:
            stable = read_last_stable_offset(place)
            end = end if stable is None else min(end, stable)
        first = replica.segments[0].base_offset
        return cls(replica, topic_id, first, max(first, end), is_cleared)


HeldLogs = Mapping[Key, HeldLog]


def held_logs(copies: Copies, isolation: Isolation) -> dict[Key, HeldLog]:
    """The best copy of each partition. Raises OpenError if one has gone meanwhile."""
    return {key: HeldLog.of(replicas[0], isolation) for key, replicas in copies.items()}


def ends_of(held: HeldLogs) -> Progress:
    """Where the logs end."""
    return Progress({key: log.end for key, log in held.items()}, topic_ids(held.values()))


def topic_ids(logs: Iterable[HeldLog]) -> dict[str, str]:
    """The ids of topics."""
    return {log.replica.topic: log.topic_id for log in logs if log.topic_id is not None}


def begin_of(start: Progress, key: Key, log: HeldLog) -> int:
    """The first offset to read of a log: where reading ended, or where the log begins if that is higher."""
    known = start.offset_of(key)
    if known is None or start.is_of_another(key[0], log.topic_id):
        return log.first
    return min(max(known, log.first), log.end)


def continued(start: Progress, held: HeldLogs, target: Progress | None) -> Progress:
    """How far a stream that got as far as `start` can get, up to a target if there is one."""
    ends: dict[Key, int] = {}
    for key, log in held.items():
        if target is None:
            ends[key] = log.end
        elif key in target.offsets:
            ends[key] = min(log.end, target.offsets[key])
        elif start.offset_of(key) is not None:
            ends[key] = begin_of(start, key, log)
    ids = {**start.topic_ids, **topic_ids(held.values())}
    gone = {
        key: offset
        for key, offset in {**start.gone, **start.offsets}.items()
        if key not in held and ids.get(key[0]) == start.topic_ids.get(key[0])
    }
    return Progress(ends, ids, gone)


def losses(start: Progress, held: HeldLogs, told: Progress | None = None) -> Iterator[str]:
    """What a stream that got as far as `start` can't read any more; without partitions whose end was told already.

    Source: KafkaMicroBatchStream.
    """
    known = {key: offset for key, offset in {**start.gone, **start.offsets}.items() if key in held}
    known |= {key: offset for key, offset in start.offsets.items() if told is None or key not in told.gone}
    for (topic, partition), offset in sorted(known.items(), key=str):
        log = held.get((topic, partition))
        if log is None:
            yield f"{topic}-{partition} has gone; it was read up to offset {offset}"
        elif start.is_of_another(topic, log.topic_id):
            was = start.topic_ids[topic]
            yield f"{log.replica.path}: the topic was deleted and recreated: its id is {log.topic_id}, and was {was}"
        elif log.end < offset:
            yield f"{log.replica.path}: the log ends at {log.end}, and was read up to {offset} already"
        elif log.first > offset:
            yield f"{log.replica.path}: offsets {offset} to {log.first} are gone before they were read"
    for key, log in held.items():
        if start.offset_of(key) is None and log.first > 0:
            yield f"{log.replica.path}: a new partition, and its log begins at {log.first} instead of 0"


def limited(start: Progress, ends: Progress, held: HeldLogs, maximum: int) -> Progress:
    """Ends that leave no more offsets than wanted, each partition its share. Source: KafkaMicroBatchStream."""
    begins = {key: begin_of(start, key, held[key]) for key in ends.offsets if key in held}
    ahead = {key: max(ends.offsets[key] - begin, 0) for key, begin in begins.items()}
    total = sum(ahead.values())
    if total <= maximum:
        return ends
    shares = {key: min(max(count * maximum // total, 1), count) for key, count in ahead.items()}
    reached = {key: begins[key] + shares[key] if shares.get(key) else offset for key, offset in ends.offsets.items()}
    return Progress(reached, ends.topic_ids, ends.gone)
