"""What the log cleaner would clean in a partition: from which offset to which, and which segments it joins.

Source: LogCleanerManager.cleanableOffsets, LogToClean, Cleaner.groupSegmentsBySize.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kseg.formats.codes import MAXIMUM_RELATIVE_OFFSET
from kseg.index.producer_state import ProducerState, ProducerStates
from kseg.kafka_defaults import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    PRODUCER_EXPIRATION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
)
from kseg.log.partition.listing import ListingSettings, list_partition
from kseg.log.partition.partition_log import PartitionLog, SegmentFiles
from kseg.log.partition.roll import RetentionSettings
from kseg.log.partition.side_files import states_at


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
    states = states_at(partition, partition.read_log_end_offset())
    first_dirty = _first_dirty(partition, settings)
    ends = [*_stable_ends(partition, states), *_lag_ends(partition, settings, first_dirty)]
    end_offset, why_ends = min(ends, default=(first_dirty, "there are no segments"))
    producers = {state.producer_id: state for state in states.producers.values() if not _is_expired(state, settings)}
    return CleaningPlan(first_dirty, max(end_offset, first_dirty), why_ends, producers, states)


def _first_dirty(partition: PartitionLog, settings: CompactSettings) -> int:
    start = partition.log_start_offset()
    if settings.first_dirty_offset is not None:
        return max(settings.first_dirty_offset, start)
    checkpoint = partition.checkpoints().clean_offset
    is_usable = checkpoint is not None and start <= checkpoint <= partition.read_log_end_offset()
    return checkpoint if checkpoint is not None and is_usable else start


def _stable_ends(partition: PartitionLog, states: ProducerStates) -> Iterator[tuple[int, str]]:
    active = partition.active_segment
    if active is None:
        return
    yield active.base_offset, "the active segment"
    open_from = min(states.open_transactions.values(), default=None)
    high_watermark = partition.checkpoints().high_watermark
    for offset, reason in ((open_from, "an open transaction"), (high_watermark, "the high watermark")):
        if offset is not None:
            yield (partition.floor_segment(offset) or partition.segments[0]).base_offset, reason


def _lag_ends(partition: PartitionLog, settings: CompactSettings, first_dirty: int) -> Iterator[tuple[int, str]]:
    """The first dirty segment whose largest time is within the lag."""
    if settings.min_compaction_lag_ms <= 0:
        return
    first_slot = partition.floor_slot(first_dirty) or 0
    modified = {segment.base_offset: segment.log.modified_ms for segment in partition.segments if segment.log}
    listing = list_partition(partition, ListingSettings(RetentionSettings(settings.now_ms)))
    for row in listing.segments[first_slot:-1]:
        largest = row.largest_timestamp if row.largest_timestamp >= 0 else modified[row.base_offset]
        if largest > settings.now_ms - settings.min_compaction_lag_ms:
            yield row.base_offset, "min.compaction.lag.ms"
            return


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
