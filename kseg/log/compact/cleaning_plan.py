"""What the log cleaner would clean in a partition: from which offset to which, and which segments it joins.

Source: LogCleanerManager.cleanableOffsets, LogToClean, Cleaner.groupSegmentsBySize.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET, NO_TIMESTAMP
from kseg.index.producer_state import ProducerState, ProducerStates
from kseg.kafka_defaults import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    PRODUCER_EXPIRATION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
)
from kseg.log.partition.cleaning import (
    CleanerStop,
    CleaningSettings,
    DirtySegment,
    LogOffsets,
    OldestTransaction,
    cleaning_of,
)
from kseg.log.partition.listing import ListingSettings, list_partition
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.roll import RetentionSettings
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.side_files import states_at

_WHY_ENDS = {
    CleanerStop.ACTIVE_SEGMENT: "the active segment",
    CleanerStop.OPEN_TRANSACTION: "an open transaction",
    CleanerStop.HIGH_WATERMARK: "the high watermark",
    CleanerStop.MIN_COMPACTION_LAG: "min.compaction.lag.ms",
}


@dataclass(frozen=True, slots=True)
class CompactSettings:
    """A topic's and a broker's settings for the cleaner, under Kafka's names; the defaults are Kafka's.

    now_ms: the time of cleaning. first_dirty_offset: where to start; None: where the cleaner's checkpoint says, or at
    the log's start.
    """

    now_ms: int
    delete_retention_ms: int = DELETE_RETENTION_MS
    min_compaction_lag_ms: int = 0
    segment_bytes: int = SEGMENT_BYTES
    segment_index_bytes: int = SEGMENT_INDEX_BYTES
    index_interval_bytes: int = INDEX_INTERVAL_BYTES
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS
    first_dirty_offset: int | None = None


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """What is cleaned: offsets from `first_dirty` to before `end_offset`, the base of the first segment that isn't.

    why_ends: why the cleaner stops there. producers: active ones at the log's end. states: all of them.
    """

    first_dirty: int
    end_offset: int
    why_ends: str
    producers: dict[int, ProducerState]
    states: ProducerStates


def plan_compaction(partition: PartitionLog, settings: CompactSettings) -> CleaningPlan:
    """The part of a partition that the cleaner would clean.

    It ends before the active segment, the segment of the last stable offset or of the high watermark, and the first
    one with a record younger than min.compaction.lag.ms. Raises KsegError if a file can't be read.
    """
    log_end = partition.read_log_end_offset()
    states = states_at(partition, log_end)
    wanted = CleaningSettings(settings.now_ms, min_compaction_lag_ms=settings.min_compaction_lag_ms)
    cleaning = cleaning_of(_segments(partition, settings), _offsets(partition, settings, states, log_end), wanted)
    producers = {state.producer_id: state for state in states.producers.values() if not _is_expired(state, settings)}
    if cleaning is None:
        start = partition.log_start_offset()
        return CleaningPlan(start, start, "there are no segments", producers, states)
    end_offset = max(cleaning.end_offset, cleaning.first_dirty)
    return CleaningPlan(cleaning.first_dirty, end_offset, _WHY_ENDS[cleaning.stop], producers, states)


def _offsets(partition: PartitionLog, settings: CompactSettings, states: ProducerStates, log_end: int) -> LogOffsets:
    start, known = partition.log_start_offset(), partition.checkpoints()
    wanted = settings.first_dirty_offset
    open_from = min(states.open_transactions.values(), default=None)
    return LogOffsets(
        start,
        log_end,
        known.clean_offset if wanted is None else min(max(wanted, start), log_end),
        known.high_watermark,
        None if open_from is None else OldestTransaction(open_from),
    )


def _segments(partition: PartitionLog, settings: CompactSettings) -> list[DirtySegment]:
    """The segments; their times are read only if they matter."""
    if settings.min_compaction_lag_ms <= 0:
        return [DirtySegment(each.base_offset, each.size, NO_TIMESTAMP, NO_TIMESTAMP) for each in partition.segments]
    rows = list_partition(partition, ListingSettings(RetentionSettings(settings.now_ms))).segments
    return [DirtySegment(row.base_offset, row.size, row.age_timestamp, NO_TIMESTAMP) for row in rows]


def _is_expired(state: ProducerState, settings: CompactSettings) -> bool:
    is_idle = settings.now_ms - state.timestamp >= settings.producer_expiration_ms
    return state.current_txn_first_offset < 0 and is_idle


def group_segments(
    segments: Sequence[SegmentFiles], settings: CompactSettings, end_offset: int
) -> Iterator[list[SegmentFiles]]:
    """Neighbours that become one segment: as many as fit into its log, its indexes and 31 bits of offsets.

    end_offset: the first offset that isn't cleaned.
    """
    group: list[SegmentFiles] = []
    held = (0, 0, 0)
    for number, segment in enumerate(segments):
        following = segments[number + 1].base_offset if number + 1 < len(segments) else end_offset
        sizes = _sizes(segment)
        joined = (held[0] + sizes[0], held[1] + sizes[1], held[2] + sizes[2])
        is_far = segment.size > 0 and bool(group) and following - 1 - group[0].base_offset > MAXIMUM_RELATIVE_OFFSET
        if group and (is_far or not _fit(joined, settings)):
            yield group
            group, joined = [], sizes
        group.append(segment)
        held = joined
    if group:
        yield group


def _sizes(segment: SegmentFiles) -> tuple[int, int, int]:
    """Bytes of a log, of its offset index and of its time index."""
    offsets, times = segment.offset_index, segment.time_index
    return segment.size, 0 if offsets is None else offsets.size, 0 if times is None else times.size


def _fit(sizes: tuple[int, int, int], settings: CompactSettings) -> bool:
    return sizes[0] <= settings.segment_bytes and max(sizes[1:]) <= settings.segment_index_bytes
