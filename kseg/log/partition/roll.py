"""Why segments were rolled, and which ones retention would delete, by Kafka's rules."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET
from kseg.formats.header_fields import OFFSET_INDEX_ENTRY_FIELDS, TIME_INDEX_ENTRY_FIELDS
from kseg.kafka_defaults import RETENTION_MS, SEGMENT_BYTES, SEGMENT_INDEX_BYTES, SEGMENT_MS, UNLIMITED


class Rolled(StrEnum):
    """Why a segment was closed and the next one started."""

    ACTIVE = "active"
    SIZE = "size"
    TIME = "time"
    INDEX_FULL = "index-full"
    OFFSET_RANGE = "offset-range"
    UNKNOWN = "unknown"


class Retention(StrEnum):
    """What `cleanup.policy=delete` would do with a segment."""

    KEEP = "keep"
    COMPACTED = "compacted, policy unknown"
    DELETE_LOG_START = "delete-log-start"
    DELETE_SIZE = "delete-size"
    DELETE_TIME = "delete-time"

    @property
    def is_deletion(self) -> bool:
        """Whether the segment is deleted."""
        return self not in (Retention.KEEP, Retention.COMPACTED)


@dataclass(frozen=True, slots=True)
class RollSettings:
    """A topic's settings for rolling; the defaults are Kafka's."""

    segment_bytes: int = SEGMENT_BYTES
    segment_ms: int = SEGMENT_MS
    segment_index_bytes: int = SEGMENT_INDEX_BYTES


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """A topic's settings for retention, -1 for none; `now_ms`: the current time for them.

    is_policy_unknown: the topic is compacted, and it isn't known whether segments are also deleted by age and size.
    highest_remote_offset: of a tiered topic, the last offset that was copied to the remote tier; a segment beyond it
    stays on the disk. None if the topic has no tier, or nothing tells.
    """

    now_ms: int
    retention_ms: int = RETENTION_MS
    retention_bytes: int = UNLIMITED
    is_policy_unknown: bool = False
    highest_remote_offset: int | None = None


class ClosedSegment(NamedTuple):
    """What the rules for rolling need of a segment; `first_timestamp` is its first batch's largest, -1 for none."""

    base_offset: int
    size: int
    first_timestamp: int
    offset_entries: int
    time_entries: int


class NextAppend(NamedTuple):
    """The first batch of the next segment: the append that the segment was rolled for, or its beginning."""

    size: int
    last_offset: int
    max_timestamp: int


def why_rolled(segment: ClosedSegment, append: NextAppend | None, settings: RollSettings) -> Rolled:
    """The first of Kafka's rules that applies; UNKNOWN if none does, or if the next segment is empty.

    Compaction changes sizes and first batches, and a follower's append may have been larger than its first batch.
    Source: LogSegment.shouldRoll.
    """
    if append is None:
        return Rolled.UNKNOWN
    if segment.size > settings.segment_bytes - append.size:
        return Rolled.SIZE
    waited = append.max_timestamp - segment.first_timestamp
    if segment.size > 0 and segment.first_timestamp >= 0 and waited > settings.segment_ms:
        return Rolled.TIME
    most_offsets = settings.segment_index_bytes // OFFSET_INDEX_ENTRY_FIELDS.struct.size
    most_times = settings.segment_index_bytes // TIME_INDEX_ENTRY_FIELDS.struct.size - 1
    if segment.offset_entries >= most_offsets or segment.time_entries >= most_times:
        return Rolled.INDEX_FULL
    if append.last_offset - segment.base_offset > MAXIMUM_RELATIVE_OFFSET:
        return Rolled.OFFSET_RANGE
    return Rolled.UNKNOWN


class RetainedSegment(NamedTuple):
    """What retention needs to know about a segment; `end_offset` is the next one's base, or the log end offset."""

    size: int
    largest_timestamp: int
    end_offset: int


def retention_of(
    segments: Sequence[RetainedSegment],
    settings: RetentionSettings,
    log_start_offset: int,
    high_watermark: int | None = None,
) -> list[Retention]:
    """What retention would do with each segment of a partition, oldest first, in one pass of a broker.

    As Kafka does it: by log start offset, then by size, then by time, each from the oldest segment that is left on
    while the rule holds; never an empty last segment, nothing beyond the high watermark, and by size and time nothing
    that the remote tier lacks. Source: UnifiedLog.deleteOldSegments, isSegmentEligibleForDeletion.
    """
    decisions = [Retention.KEEP] * len(segments)
    excess = sum(segment.size for segment in segments) - settings.retention_bytes
    done = 0

    def may_go(slot: int) -> bool:
        is_last = slot == len(segments) - 1
        below = high_watermark is None or segments[slot].end_offset <= high_watermark
        return below and not (is_last and segments[slot].size == 0)

    def may_expire(slot: int) -> bool:
        copied = settings.highest_remote_offset
        return may_go(slot) and (copied is None or segments[slot].end_offset - 1 <= copied)

    while done < len(segments) - 1 and segments[done].end_offset <= log_start_offset and may_go(done):
        excess -= segments[done].size
        decisions[done] = Retention.DELETE_LOG_START
        done += 1
    while settings.retention_bytes >= 0 and done < len(segments) and excess >= segments[done].size and may_expire(done):
        excess -= segments[done].size
        decisions[done] = Retention.DELETE_SIZE
        done += 1
    while settings.retention_ms >= 0 and done < len(segments) and may_expire(done):
        if settings.now_ms - segments[done].largest_timestamp <= settings.retention_ms:
            break
        decisions[done] = Retention.DELETE_TIME
        done += 1
    return decisions
