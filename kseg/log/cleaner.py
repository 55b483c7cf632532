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
    """The bound that the cleaner doesn't pass."""

    ACTIVE_SEGMENT = "active segment"
    HIGH_WATERMARK = "high watermark"
    OPEN_TRANSACTION = "open transaction"
    MIN_COMPACTION_LAG = "min.compaction.lag.ms"


class CleanerVerdict(StrEnum):
    """The cleaner's verdict on a partition."""

    CLEANABLE = "cleanable"
    WAITS = "not dirty enough"
    STOPPED = "stopped"
    UNCLEANABLE = "uncleanable"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class CleaningSettings:
    """A topic's and the settings of a broker for when to clean; the defaults are Kafka's.

    is_policy_unknown: only the cleaner's checkpoint shows that the topic is or was compacted.
    """

    now_ms: int
    min_cleanable_dirty_ratio: float = MIN_CLEANABLE_DIRTY_RATIO
    min_compaction_lag_ms: int = 0
    max_compaction_lag_ms: int = MAX_COMPACTION_LAG_MS
    dedupe_buffer_size: int = DEDUPE_BUFFER_SIZE
    is_policy_unknown: bool = False

    @property
    def most_keys(self) -> int:
        """The number of keys that one cleaner thread takes at once."""
        return int(self.dedupe_buffer_size // ENTRY_SIZE * LOAD_FACTOR)


@dataclass(frozen=True, slots=True)
class CompactSettings:
    """A topic's and the settings of a broker for the cleaner, under Kafka's names; the defaults are Kafka's.

    now_ms: the time of cleaning. first_dirty_offset: the start; None: the cleaner's checkpoint or the log's start.
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
    """The facts about a segment that the cleaner's rules need.

    largest_timestamp: of its records or, if none has a timestamp, of its file. first_timestamp: the largest of its
    first batch, -1 for none. damage_position: the position of unreadable bytes, None if none are known. records: None
    if they weren't counted.
    """

    base_offset: int
    size: int
    largest_timestamp: int
    first_timestamp: int
    damage_position: int | None = None
    records: int | None = None


class OldestTransaction(NamedTuple):
    """The first offset of the oldest open transaction; is_certain: it can't have ended meanwhile."""

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
    """Damage that would stop the log cleaner."""

    base_offset: int
    position: int


class Cleaning(NamedTuple):
    """A partition's dirtiness, and the cleaner's next step.

    first_dirty: the first offset that isn't cleaned. end_offset: the base offset of the first segment that would stay
    dirty. clean_size: bytes of the segments before first_dirty. cleanable_size: bytes of the segments from there to
    end_offset. stop, stop_offset: the bound that the cleaner doesn't pass. is_overdue: max.compaction.lag.ms is over.
    most_records: the largest possible number of records, thus keys, to clean. most_keys: the number of keys that the
    cleaner takes at once. damage: the damage that would make the partition uncleanable, as far as kseg read.
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
        """The cleanable bytes divided by clean and cleanable bytes, as the broker computes it.

        None if there are neither, or if the end of cleaning isn't certain.
        """
        is_known = self.is_stop_certain and self.clean_size + self.cleanable_size > 0
        return _ratio(self.clean_size, self.cleanable_size) if is_known else None

    @property
    def is_cleanable(self) -> bool | None:
        """True if the cleaner would take the partition, or None if that isn't known."""
        return None if self.verdict is CleanerVerdict.UNKNOWN else self.verdict is CleanerVerdict.CLEANABLE


def cleaning_of(segments: Sequence[DirtySegment], offsets: LogOffsets, settings: CleaningSettings) -> Cleaning | None:
    """Return the cleaner's next step for a partition, or None without segments. The segments are given oldest first."""
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
    """Return the start of cleaning: the checkpoint, or the start of the log if the checkpoint is outside of the log."""
    known = offsets.clean_offset
    return known if known is not None and offsets.log_start <= known <= offsets.log_end else offsets.log_start


def _closed_from(segments: Sequence[DirtySegment], offset: int) -> Sequence[DirtySegment]:
    """Return the closed segments, from the segment of an offset on."""
    return segments[_slot_of(segments, offset) : -1]


def _slot_of(segments: Sequence[DirtySegment], offset: int) -> int:
    return max(bisect_right(segments, offset, key=lambda each: each.base_offset) - 1, 0)


def _stops(
    active: DirtySegment, dirty: Sequence[DirtySegment], offsets: LogOffsets, settings: CleaningSettings
) -> Iterator[tuple[int, CleanerStop]]:
    """Yield the offsets that limit cleaning. If two limits have the same offset, the first one takes precedence."""
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
    """Return an upper bound for the number of records to clean."""
    counts = [each.records for each in to_clean if each.records is not None]
    return min(sum(counts), offsets) if len(counts) == len(to_clean) else offsets


def _first_damage(segments: Sequence[DirtySegment], end_offset: int) -> Damaged | None:
    """Return the first damage that the cleaner meets: it reads all segments up to the end, also clean ones."""
    for each in segments:
        if each.base_offset < end_offset and each.damage_position is not None:
            return Damaged(each.base_offset, each.damage_position)
    return None


def _ratio(clean_size: int, dirty_size: int) -> float:
    return dirty_size / (clean_size + dirty_size)


def _verdict(found: Cleaning, closed_size: int) -> CleanerVerdict:
    """Return the verdict; `closed_size`: the size to clean if only the active segment stopped the cleaner."""
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
    """Return a listed segment with its first batch header."""
    return DirtySegment(
        row.base_offset,
        row.size,
        row.age_timestamp,
        NO_TIMESTAMP if first is None else first.max_timestamp,
        None if row.damage is None else row.damage.position,
        row.records,
    )


def cleaning_offsets(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> LogOffsets:
    """Return the offsets that bound cleaning; `end`: the end of the log."""
    known = partition.checkpoints()
    open_transaction = _open_transaction(partition, rows, end)
    return LogOffsets(partition.log_start_offset(), end, known.clean_offset, known.high_watermark, open_transaction)


def _open_transaction(partition: PartitionLog, rows: Sequence[SegmentListing], end: int) -> OldestTransaction | None:
    """Return the oldest open transaction; without headers and snapshot it is uncertain.

    If the newest producer snapshot has none, none begins before the active segment, where the cleaner stops anyway.
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
    from kseg.log.committed import read_open_transactions  # few listings need it

    first = min(read_open_transactions(partition).values(), default=None)
    return None if first is None else OldestTransaction(first)


def cleaned_by_ms(partition: PartitionLog) -> int | None:
    """Return the time of the cleaner's checkpoint, or None if the partition isn't in it."""
    if partition.checkpoints().clean_offset is None:
        return None
    try:
        return (partition.log_dir / CHECKPOINT_OF_FIELD["clean_offset"]).stat().st_mtime_ns // 1_000_000
    except OSError:  # deleted meanwhile
        return None
