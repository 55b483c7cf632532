"""The log cleaner's view of a partition: its dirty ratio, its limits, and when it would run."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kseg.formats.codes import (
    DEDUPE_BUFFER_SIZE,
    DELETE_RETENTION_MS,
    INDEX_INTERVAL_BYTES,
    LOAD_FACTOR,
    MAX_COMPACTION_LAG_MS,
    MIN_CLEANABLE_DIRTY_RATIO,
    NO_TIMESTAMP,
    PRODUCER_EXPIRATION_MS,
    SEGMENT_BYTES,
    SEGMENT_INDEX_BYTES,
)
from kseg.kernel.statistics_contract import ENTRY_SIZE
from kseg.log.partition import CHECKPOINT_OF_FIELD, PartitionLog
from kseg.log.segment_listing import SegmentListing
from kseg.reading.batch import BatchHeader


class CleanerStop(StrEnum):
    """What the cleaner doesn't go beyond."""

    ACTIVE_SEGMENT = "active segment"
    HIGH_WATERMARK = "high watermark"
    OPEN_TRANSACTION = "open transaction"
    MIN_COMPACTION_LAG = "min.compaction.lag.ms"


class CleanerVerdict(StrEnum):
    """Whether the cleaner would take the partition."""

    CLEANABLE = "cleanable"
    WAITS = "not dirty enough"
    STOPPED = "stopped"
    UNCLEANABLE = "uncleanable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CleaningSettings:
    """A topic's and a broker's settings for when to clean; the defaults are Kafka's.

    is_policy_unknown: only the cleaner's checkpoint tells that the topic is compacted, or was.
    """

    now_ms: int
    min_cleanable_dirty_ratio: float = MIN_CLEANABLE_DIRTY_RATIO
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_COMPACTION_LAG_MS
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    is_policy_unknown: bool = False

    @property
    def most_keys(self) -> int:
        """How many keys the cleaner takes at once, with one thread."""
        return int(self.dedupe_buffer_size // ENTRY_SIZE * LOAD_FACTOR)


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


class DirtySegment(NamedTuple):
    """What the cleaner's rules need to know about a segment.

    largest_timestamp: of its records or, if none has a time, of its file. first_timestamp: its first batch's largest,
    -1 for none. damage_position: of bytes that the cleaner can't read, None if none are known. records: None if they
    weren't counted.
    """

    base_offset: int
    size: int
    largest_timestamp: int
    first_timestamp: int
    damage_position: int | None = None
    records: int | None = None


class OldestTransaction(NamedTuple):
    """The first offset of the oldest transaction that is open; is_certain: it can't have ended meanwhile."""

    first_offset: int
    is_certain: bool = True


class LogOffsets(NamedTuple):
    """A partition's offsets that bound cleaning; `clean_offset` is the cleaner's checkpoint, None without one."""

    log_start: int
    log_end: int
    clean_offset: int | None = None
    high_watermark: int | None = None
    open_transaction: OldestTransaction | None = None


class Damaged(NamedTuple):
    """Where the cleaner would meet damage: the segment's base offset, and the position in its log."""

    base_offset: int
    position: int


class Cleaning(NamedTuple):
    """How dirty a partition is, and what the cleaner would do.

    first_dirty: the first offset that isn't cleaned. end_offset: the base offset of the first segment that wouldn't be.
    clean_size, cleanable_size: bytes of whole segments before and between. stop, stop_offset: what the cleaner doesn't
    go beyond. is_overdue: max.compaction.lag.ms is over. most_records: no more records, thus keys, are to be cleaned.
    most_keys: so many the cleaner takes at once. damage: what would make the partition uncleanable, as far as was read.
    """

    verdict: CleanerVerdict
    first_dirty: int
    end_offset: int
    clean_size: int
    cleanable_size: int
    min_ratio: float
    stop: CleanerStop
    stop_offset: int
    is_overdue: bool
    most_records: int
    most_keys: int
    is_stop_certain: bool = True
    is_policy_unknown: bool = False
    damage: Damaged | None = None

    @property
    def dirty_ratio(self) -> float | None:
        """Cleanable bytes by clean and cleanable ones, as the broker has it.

        None if there are neither, or if it isn't certain up to where the cleaner may clean.
        """
        is_known = self.is_stop_certain and self.clean_size + self.cleanable_size > 0
        return _ratio(self.clean_size, self.cleanable_size) if is_known else None

    @property
    def is_cleanable(self) -> bool | None:
        """Whether the cleaner would take it; None if that can't be known."""
        return None if self.verdict is CleanerVerdict.UNKNOWN else self.verdict is CleanerVerdict.CLEANABLE


def cleaning_of(segments: Sequence[DirtySegment], offsets: LogOffsets, settings: CleaningSettings) -> Cleaning | None:
    """What the cleaner would do with a partition, whose segments are given oldest first; None without segments."""
    if not segments:
        return None
    first_dirty = first_dirty_offset(offsets)
    dirty = _closed_from(segments, first_dirty)
    stop_offset, stop = min(_stops(segments[-1], dirty, offsets, settings), key=lambda each: each[0])
    end_offset = segments[_slot_of(segments, max(first_dirty, stop_offset))].base_offset
    clean_size = sum(each.size for each in segments if each.base_offset < first_dirty)
    to_clean = [each for each in dirty if each.base_offset < end_offset]
    is_overdue = any(0 < each.first_timestamp < settings.now_ms - settings.max_compaction_lag_ms for each in dirty)
    is_certain = offsets.open_transaction is not None and offsets.open_transaction.is_certain
    found = Cleaning(
        verdict=CleanerVerdict.UNKNOWN,
        first_dirty=first_dirty,
        end_offset=end_offset,
        clean_size=clean_size,
        cleanable_size=sum(each.size for each in to_clean),
        min_ratio=settings.min_cleanable_dirty_ratio,
        stop=stop,
        stop_offset=stop_offset,
        is_overdue=is_overdue,
        most_records=_most_records(to_clean, max(end_offset - first_dirty, 0)),
        most_keys=settings.most_keys,
        is_stop_certain=stop is not CleanerStop.OPEN_TRANSACTION or is_certain,
        is_policy_unknown=settings.is_policy_unknown,
        damage=_first_damage(segments, end_offset),
    )
    return found._replace(verdict=_verdict(found, sum(each.size for each in dirty)))


def first_dirty_offset(offsets: LogOffsets) -> int:
    """Where cleaning begins: at the checkpoint, or at the log's start if it is outside of the log."""
    known = offsets.clean_offset
    return known if known is not None and offsets.log_start <= known <= offsets.log_end else offsets.log_start


def _closed_from(segments: Sequence[DirtySegment], offset: int) -> Sequence[DirtySegment]:
    """The segments from the one of an offset on, without the active one."""
    return segments[_slot_of(segments, offset) : -1]


def _slot_of(segments: Sequence[DirtySegment], offset: int) -> int:
    return max(bisect_right(segments, offset, key=lambda each: each.base_offset) - 1, 0)


def _stops(
    active: DirtySegment, dirty: Sequence[DirtySegment], offsets: LogOffsets, settings: CleaningSettings
) -> Iterator[tuple[int, CleanerStop]]:
    """What bounds cleaning, and at which offset; of two at one offset the first counts."""
    yield active.base_offset, CleanerStop.ACTIVE_SEGMENT
    if offsets.open_transaction is not None:
        yield offsets.open_transaction.first_offset, CleanerStop.OPEN_TRANSACTION
    if offsets.high_watermark is not None:
        yield offsets.high_watermark, CleanerStop.HIGH_WATERMARK
    if settings.min_compaction_lag_ms > 0:
        youngest = settings.now_ms - settings.min_compaction_lag_ms
        for each in dirty:
            if each.largest_timestamp > youngest:
                yield each.base_offset, CleanerStop.MIN_COMPACTION_LAG
                return


def _most_records(to_clean: Sequence[DirtySegment], offsets: int) -> int:
    """No more records than these are to be cleaned: as they were counted or, if that is less, as there are offsets."""
    counts = [each.records for each in to_clean if each.records is not None]
    return min(sum(counts), offsets) if len(counts) == len(to_clean) else offsets


def _first_damage(segments: Sequence[DirtySegment], end_offset: int) -> Damaged | None:
    """The first damage that the cleaner meets: it reads all segments up to the end, the clean ones too."""
    for each in segments:
        if each.base_offset < end_offset and each.damage_position is not None:
            return Damaged(each.base_offset, each.damage_position)
    return None


def _ratio(clean_size: int, dirty_size: int) -> float:
    return dirty_size / (clean_size + dirty_size)


def _verdict(found: Cleaning, closed_size: int) -> CleanerVerdict:
    """Whether the cleaner takes it; `closed_size`: what it would clean if nothing stopped it but the active segment."""
    would, does = (
        size > 0 and (found.is_overdue or _ratio(found.clean_size, size) > found.min_ratio)
        for size in (closed_size, found.cleanable_size)
    )
    if found.is_policy_unknown or (would and not does and not found.is_stop_certain):
        return CleanerVerdict.UNKNOWN
    if does:
        return CleanerVerdict.CLEANABLE if found.damage is None else CleanerVerdict.UNCLEANABLE
    return CleanerVerdict.STOPPED if would else CleanerVerdict.WAITS


def dirty_segment(row: SegmentListing, first: BatchHeader | None) -> DirtySegment:
    """A segment of a listing, with its first batch's header."""
    return DirtySegment(
        row.base_offset,
        row.size,
        row.age_timestamp,
        NO_TIMESTAMP if first is None else first.max_timestamp,
        None if row.damage is None else row.damage.position,
        row.records,
    )


def cleaning_offsets(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> LogOffsets:
    """The offsets that bound cleaning; `end`: where the log ends."""
    known = partition.checkpoints()
    open_transaction = _open_transaction(partition, rows, end)
    return LogOffsets(partition.log_start_offset(), end, known.clean_offset, known.high_watermark, open_transaction)


def _open_transaction(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> OldestTransaction | None:
    """The oldest open transaction; not a certain one where neither headers were read nor a snapshot is there.

    If the newest producer snapshot has none, there is none before the active segment, where the cleaner stops anyhow.
    """
    if len(rows) < 2 or all(max(row.magics, default=0) < 2 for row in rows):
        return None
    if rows[-1].open_transactions is not None:
        first = rows[-1].first_open_offset
        return None if first is None else OldestTransaction(first)
    newest = max((offset for offset in partition.snapshots if offset <= end), default=-1)
    states = partition.read_producer_states(newest) if newest >= rows[-1].base_offset else None
    if states is None:
        return OldestTransaction(partition.log_start_offset(), is_certain=False)
    if not states.open_transactions:
        return None
    from kseg.log.committed import read_open_transactions  # which few listings need

    first = min(read_open_transactions(partition).values(), default=None)
    return None if first is None else OldestTransaction(first)


def cleaned_by_ms(partition: PartitionLog) -> int | None:
    """When the cleaner's checkpoint was written; None if the partition isn't in it."""
    if partition.checkpoints().clean_offset is None:
        return None
    try:
        return (partition.log_dir / CHECKPOINT_OF_FIELD["clean_offset"]).stat().st_mtime_ns // 1_000_000
    except OSError:  # it has gone meanwhile
        return None
