"""The log cleaner's plan: the range to clean, the offset map, and the batches that stay. Source: Cleaner."""

import mmap
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from hashlib import md5
from heapq import heapify, heappop
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.codecs.bodies import exported_addresses
from kseg.errors import DamagedError, FileError
from kseg.formats.codes import (
    LOAD_FACTOR,
    MAXIMUM_RELATIVE_OFFSET,
    NO_TIMESTAMP,
    ControlType,
    DamageKind,
)
from kseg.index.header_scan import header_of
from kseg.index.producers import ProducerState, ProducerStates, parse_end_marker
from kseg.kernel.contract import ROW, SIZE, VALID, new_rows
from kseg.kernel.fold_contract import Event
from kseg.kernel.record import Record
from kseg.kernel.statistics_contract import ENTRY_SIZE, OffsetTable
from kseg.log.cleaner import (
    CleanerStop,
    CleaningSettings,
    CompactSettings,
    DirtySegment,
    LogOffsets,
    OldestTransaction,
    cleaning_of,
)
from kseg.log.committed import read_open_transactions
from kseg.log.listing import ListingSettings, list_partition
from kseg.log.partition import PartitionLog
from kseg.log.segments import RetentionSettings, SegmentFiles
from kseg.log.side_files import states_at
from kseg.reading.batch import Batch, BatchHeader, batch_of
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run
from kseg.writer.cleaned import batch_of_rest, cleaned_batch, empty_batch

_WHY_ENDS = {
    CleanerStop.ACTIVE_SEGMENT: "the active segment",
    CleanerStop.OPEN_TRANSACTION: "an open transaction",
    CleanerStop.HIGH_WATERMARK: "the high watermark",
    CleanerStop.MIN_COMPACTION_LAG: "min.compaction.lag.ms",
}


@dataclass(frozen=True, slots=True)
class CleaningPlan:
    """The range to clean: from `first_dirty` to below `end_offset`, the base offset of a segment.

    why_ends: the reason why the cleaner stops there. producers: those active at the log's end. states: all of them.
    """

    first_dirty: int
    end_offset: int
    why_ends: str
    producers: dict[int, ProducerState]
    states: ProducerStates


def plan_compaction(partition: PartitionLog, settings: CompactSettings) -> CleaningPlan:
    """Return the part of a partition that the cleaner would clean.

    It ends before the active segment, and the segment of the last stable offset or of the high watermark. It also ends
    before the first segment with a record younger than min.compaction.lag.ms. Raises KsegError if a file can't be
    read.
    """
    log_end = partition.read_log_end_offset()
    states = states_at(partition, log_end)
    wanted = CleaningSettings(settings.now_ms, min_compaction_lag_ms=settings.min_compaction_lag_ms)
    cleaning = cleaning_of(_segments(partition, settings), _offsets(partition, settings, log_end), wanted)
    producers = {state.producer_id: state for state in states.producers.values() if not _is_expired(state, settings)}
    if cleaning is None:
        start = partition.log_start_offset()
        return CleaningPlan(start, start, "there are no segments", producers, states)
    end_offset = max(cleaning.end_offset, cleaning.first_dirty)
    return CleaningPlan(cleaning.first_dirty, end_offset, _WHY_ENDS[cleaning.stop], producers, states)


def _offsets(partition: PartitionLog, settings: CompactSettings, log_end: int) -> LogOffsets:
    start, known = partition.log_start_offset(), partition.checkpoints()
    wanted = settings.first_dirty_offset
    open_from = min(read_open_transactions(partition).values(), default=None)
    return LogOffsets(
        start,
        log_end,
        known.clean_offset if wanted is None else min(max(wanted, start), log_end),
        known.high_watermark,
        None if open_from is None else OldestTransaction(open_from),
    )


def _segments(partition: PartitionLog, settings: CompactSettings) -> list[DirtySegment]:
    """Return the segments; their timestamps are read only if they matter."""
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
    """Yield neighbours that become one segment: as many as fit into its log, its indexes and 31 bits of offsets.

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
    """Return the bytes of a log, of its offset index and of its time index."""
    offsets, times = segment.offset_index, segment.time_index
    return segment.size, 0 if offsets is None else offsets.size, 0 if times is None else times.size


def _fit(sizes: tuple[int, int, int], settings: CompactSettings) -> bool:
    return sizes[0] <= settings.segment_bytes and max(sizes[1:]) <= settings.segment_index_bytes


_MD5, _SINCE_3_0 = "MD5", "OPENSSL_version_major"
"""Functions of libcrypto. In FIPS mode, MD5 ends the process before 3.0."""


class OffsetMap:
    """A map of keys to offsets ≥ 0, in a fixed amount of memory.

    table: the kernel's, which reads keys from batches.
    """

    def __init__(self, size: int) -> None:
        """Create a map of `size` bytes."""
        self._slots = size // ENTRY_SIZE
        self.table = self._free_table()

    def clear(self) -> None:
        """Remove all keys."""
        del self.table  # frees the old table first
        self.table = self._free_table()

    def _free_table(self) -> OffsetTable:
        """Return a table of free slots; the system allocates memory only for slots that are written."""
        try:
            memory = mmap.mmap(-1, max(self._slots * ENTRY_SIZE, 1))
        except OSError as error:  # like any failed allocation
            raise MemoryError(str(error)) from error
        return kernel.load().OffsetTable(memory, int(self._slots * LOAD_FACTOR), _digest, _function())


def _digest(key: bytes) -> bytes:
    return md5(key, usedforsecurity=False).digest()


@cache
def _function() -> int:
    """Return the address of libcrypto's MD5; 0 if it isn't available."""
    try:
        import _hashlib
    except ImportError:  # a Python without OpenSSL
        return 0
    function, since = exported_addresses(getattr(_hashlib, "__file__", None), (_MD5, _SINCE_3_0))
    return function if since else 0


def intact_slices(path: Path) -> Iterator[Slice]:
    """Yield all batches of a log, with their bodies. Raises DamagedError at damage."""
    with LogFile(path) as log_file:
        for item in with_bodies(log_file.runs(), log_file.stored_size):
            if isinstance(item, Slice):
                row = item.first * ROW
                if not item.run.rows[row + VALID]:  # a damaged batch has its own run
                    detail = "the CRC is wrong; run `kseg salvage` to keep the intact batches"
                    raise DamagedError(detail, path, item.run.position + item.run.rows[row])
                yield item
            elif item.kind is not DamageKind.ZERO_TAIL:
                refuse(path, item)


def refuse(path: Path, damage: Damage) -> None:
    """Raise DamagedError."""
    raise DamagedError(f"{damage.detail}; run `kseg salvage` to keep the intact batches", path, damage.position)


def stretches(piece: Slice) -> Iterator[tuple[int, int, BatchHeader | None]]:
    """Yield ranges of the rows of a slice (first, end); with a header it is one batch.

    Control batches and transactional batches have a range of their own.
    """
    run, row = piece.run, piece.first
    fold = kernel.load().HeaderFold(Event.CONTROL | Event.TRANSACTIONAL)
    fold.passes_legacy = True
    while row < piece.last:
        first = row
        row, _ = fold.fold(run.buffer, run.rows, row, piece.last, run.position)
        if row > first:
            yield first, row, None
        if row < piece.last:
            yield row, row + 1, header_of(run, row)
            row += 1


class Aborted(NamedTuple):
    """An aborted transaction: its first offset, its producer, and the offset of its marker."""

    first_offset: int
    last_offset: int
    producer_id: int


@dataclass(slots=True)
class _Ongoing:
    transaction: Aborted
    has_batches: bool = False


class CleanedTransactions:
    """The state of transactions during cleaning, batch by batch, given the aborted ones.

    `remaining_count` are transactions with remaining batches. Source: CleanedTransactionMetadata.
    """

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self.kept: list[Aborted] = []
        self._coming = list(aborted)
        heapify(self._coming)
        self._aborted_by_producer: dict[int, _Ongoing] = {}
        self._committed_producers: set[int] = set()

    def can_discard(self, batch: Batch) -> bool:
        """Add the next batch; return whether it is of an aborted transaction, or a marker without a remaining batch."""
        if not batch.is_control:
            return self.is_aborted(batch.header)
        self._begin(batch.last_offset)
        return self._can_discard_marker(batch)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Add the next batch, not a marker, according to its header; return whether it is of an aborted transaction.

        Batches outside of transactions needn't be added.
        """
        if not header.is_transactional:
            return False
        self._begin(header.last_offset)
        ongoing = self._aborted_by_producer.get(header.producer_id)
        if ongoing is None:
            self._committed_producers.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def _begin(self, last_offset: int) -> None:
        """Begin the transactions whose first offset is in a batch, or before it."""
        while self._coming and self._coming[0].first_offset <= last_offset:
            transaction = heappop(self._coming)
            self._aborted_by_producer.setdefault(transaction.producer_id, _Ongoing(transaction))

    def _can_discard_marker(self, batch: Batch) -> bool:
        if not batch.count:
            return True  # an earlier cleaning emptied it
        marker = parse_end_marker(batch.raw)
        if marker is None:
            return False
        if marker.control_type is ControlType.COMMIT:
            had_batches = batch.producer_id in self._committed_producers
            self._committed_producers.discard(batch.producer_id)
            return not had_batches
        ongoing = self._aborted_by_producer.pop(batch.producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        self.kept.append(ongoing.transaction)
        return False


_ANY_CODEC = 0
"""Runs that are only written don't need their codecs."""


class RemovalReason(StrEnum):
    """The reason why a record is removed."""

    SUPERSEDED = "superseded"
    TOMBSTONE = "tombstone"
    ABORTED = "aborted"
    MARKER = "marker"
    NO_KEY = "noKey"


@dataclass(frozen=True, slots=True)
class TombstoneRetention:
    """The criteria besides keys: the time of cleaning, the retention of tombstones and markers, active producers.

    producers: the active ones, by id. end_offset: the first offset that isn't cleaned; the batch before it stays, even
    if empty.
    """

    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, ProducerState]
    end_offset: int


class BatchCleaner:
    """A cleaner of batches in order of their offsets.

    emptied: batches that stay without records. keeps_deletes: v0 and v1 tombstones of the segment stay.
    """

    def __init__(self, offsets: OffsetMap, transactions: CleanedTransactions, retention: TombstoneRetention) -> None:
        self.emptied = 0
        self.keeps_deletes = True
        self._kept_count = 0
        self._removed_counts: Counter[RemovalReason] = Counter()
        self._table = offsets.table
        self._transactions = transactions
        self._retention = retention
        self._copies, self._rows = bytearray(), new_rows(0)
        self._table.end_offset = retention.end_offset
        for state in retention.producers.values():
            if state.last_offset >= 0:
                self._table.producers.put(state)

    @property
    def remaining_count(self) -> int:
        """Return the number of records kept so far."""
        return self._kept_count + self._table.kept

    @property
    def removed_counts(self) -> Counter[RemovalReason]:
        """The number of removed records, by reason."""
        whole = {RemovalReason.SUPERSEDED: self._table.superseded, RemovalReason.NO_KEY: self._table.without_key}
        return self._removed_counts + Counter(whole)

    def clean_slice(self, piece: Slice) -> Iterator[Run]:
        """Yield the remaining batches of a slice. The buffer is only valid until the next run is requested.

        The kernel decides about batches that stay or go completely. Raises KsegError if records can't be read.
        """
        run, table = piece.run, self._table
        self._make_room(piece)
        for start, last, header in stretches(piece):
            if header is not None and (header.is_control or self._transactions.is_aborted(header)):
                yield from self._one(run, start)
                continue
            first = start
            while first < last:
                stop, count = table.keep(
                    run.buffer, run.rows, first, last, piece.bodies, piece.first, self._copies, self._rows
                )
                if count:
                    yield Run(memoryview(self._copies), 0, self._rows, count, _ANY_CODEC)
                if stop < last:
                    yield from self._rest(piece, stop) or self._one(run, stop)
                first = stop + 1

    def _make_room(self, piece: Slice) -> None:
        rows = piece.run.rows
        size = rows[(piece.last - 1) * ROW] + rows[(piece.last - 1) * ROW + SIZE] - rows[piece.first * ROW]
        if size > len(self._copies):
            self._copies = bytearray(size)
        if (piece.last - piece.first) * ROW > len(self._rows):
            self._rows = new_rows(piece.last - piece.first)

    def _rest(self, piece: Slice, row: int) -> list[Run]:
        """Return the rest of a batch that loses some records, if the kernel alone can tell; otherwise nothing."""
        run = piece.run
        left = self._table.rest(run.buffer, run.rows, row, piece.bodies, piece.first)
        if left is None:
            return []
        records, count, base_timestamp, max_timestamp = left
        return [_run_of(batch_of_rest(header_of(run, row), records, count, base_timestamp, max_timestamp))]

    def _one(self, run: Run, row: int) -> Iterator[Run]:
        """Yield the rest of a batch that isn't kept or removed completely."""
        raw = self.clean(batch_of(run, row))
        if raw:
            yield _run_of(raw)

    def clean(self, batch: Batch) -> bytes:
        """Return the batch after cleaning; empty if it is removed. Raises KsegError if its records can't be read."""
        can_discard = self._transactions.can_discard(batch)
        is_discarded = can_discard and (not batch.is_control or self._is_past(batch.delete_horizon_ms))
        problem = batch.problem()
        if problem is not None:
            raise FileError(f"the records can't be read: {problem.detail}", position=batch.position)
        records = list(batch.records())
        reasons = [self._reason(batch, record, is_discarded=is_discarded) for record in records]
        left = [record for record, reason in zip(records, reasons, strict=True) if reason is None]
        self._removed_counts.update(reason for reason in reasons if reason is not None)
        self._kept_count += len(left)
        if not left:
            return self._drop_or_empty(batch)
        has_deletes = any(record.value is None for record in left) or (can_discard and batch.is_control)
        horizon = batch.delete_horizon_ms
        if not batch.is_legacy and has_deletes and horizon is None:
            horizon = self._retention.now_ms + self._retention.delete_retention_ms
        elif len(left) == len(records):
            return batch.raw
        return cleaned_batch(batch, {record.offset for record in left}, horizon)

    def _drop_or_empty(self, batch: Batch) -> bytes:
        if batch.is_legacy or not (self._is_last_of_producer(batch) or self._is_last(batch)):
            return b""
        self.emptied += 1
        return empty_batch(batch)

    def _is_last(self, batch: Batch) -> bool:
        return batch.next_offset == self._retention.end_offset

    def _is_last_of_producer(self, batch: Batch) -> bool:
        """Return True if a batch has the last sequence of an active producer.

        If only markers remain of that sequence, its epoch counts.
        """
        state = self._retention.producers.get(batch.producer_id)
        if state is None:
            return False
        if state.last_offset >= 0:
            return batch.last_offset == state.last_offset
        return batch.is_control and batch.producer_epoch == state.epoch

    def _is_past(self, horizon_ms: int | None) -> bool:
        return horizon_ms is not None and horizon_ms <= self._retention.now_ms

    def _reason(self, batch: Batch, record: Record, *, is_discarded: bool) -> RemovalReason | None:
        """Return the reason why a record is removed, or None if it stays."""
        if is_discarded:
            return RemovalReason.MARKER if batch.is_control else RemovalReason.ABORTED
        if batch.is_control or record.offset > self._table.latest_offset:
            return None
        if record.key is None:
            return RemovalReason.NO_KEY
        if record.offset < self._table.get(record.key):
            return RemovalReason.SUPERSEDED
        if record.value is not None:
            return None
        keeps = self.keeps_deletes if batch.is_legacy else not self._is_past(batch.delete_horizon_ms)
        return None if keeps else RemovalReason.TOMBSTONE


def _run_of(raw: bytes) -> Run:
    return Run(memoryview(raw), 0, array("q", (0, len(raw), 1)), 1, _ANY_CODEC)
