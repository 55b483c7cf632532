"""Which records of a batch the log cleaner keeps, and the cleaned batch. Source: Cleaner, MemoryRecords.filterTo."""

from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from kseg.errors import KsegError
from kseg.index.headers import header_of
from kseg.index.producer_state import ProducerState
from kseg.kernel.contract import ROW, SIZE, new_rows
from kseg.kernel.record import Record
from kseg.log.compact.cleaned_transactions import CleanedTransactions
from kseg.log.compact.offset_map import OffsetMap
from kseg.log.compact.slices import stretches
from kseg.reading.batch import Batch
from kseg.reading.bodies import Slice
from kseg.reading.log_file import Run
from kseg.reading.scan import batch_of
from kseg.writer.rebuilt_batch import batch_of_rest, cleaned_batch, empty_batch

_ANY_CODEC = 0
"""Runs that are only written needn't tell their codecs."""


class Gone(StrEnum):
    """Why a record is removed."""

    SUPERSEDED = "superseded"
    TOMBSTONE = "tombstone"
    ABORTED = "aborted"
    MARKER = "marker"
    NO_KEY = "noKey"


@dataclass(frozen=True, slots=True)
class TombstoneRetention:
    """What decides besides keys: the time of cleaning, how long tombstones and markers stay, active producers.

    producers: the active ones, by id. end_offset: the first offset that isn't cleaned; the batch before it stays, even
    if empty.
    """

    now_ms: int
    delete_retention_ms: int
    producers: Mapping[int, ProducerState]
    end_offset: int


class BatchCleaner:
    """Cleans batches in order of their offsets.

    emptied: batches that stay without records. keeps_deletes: whether v0 and v1 tombstones of the segment stay.
    """

    def __init__(self, offsets: OffsetMap, transactions: CleanedTransactions, retention: TombstoneRetention) -> None:
        self.emptied = 0
        self.keeps_deletes = True
        self._kept = 0
        self._gone: Counter[Gone] = Counter()
        self._table = offsets.table
        self._transactions = transactions
        self._retention = retention
        self._copies, self._rows = bytearray(), new_rows(0)
        self._table.end_offset = retention.end_offset
        for state in retention.producers.values():
            if state.last_offset >= 0:
                self._table.producers.put(state)

    @property
    def kept(self) -> int:
        """Records that stay, so far."""
        return self._kept + self._table.kept

    @property
    def gone(self) -> Counter[Gone]:
        """Those that are removed, by reason."""
        whole = {Gone.SUPERSEDED: self._table.superseded, Gone.NO_KEY: self._table.without_key}
        return self._gone + Counter(whole)

    def cleaned(self, piece: Slice) -> Iterator[Run]:
        """What is left of a slice's batches, in a buffer that is good until the next run is taken.

        The kernel decides of batches that stay or go as a whole. Raises KsegError if records can't be read.
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
        """What is left of a batch that loses some records, if the kernel can tell that alone; else nothing."""
        run = piece.run
        left = self._table.rest(run.buffer, run.rows, row, piece.bodies, piece.first)
        if left is None:
            return []
        records, count, base_timestamp, max_timestamp = left
        return [_run_of(batch_of_rest(header_of(run, row), records, count, base_timestamp, max_timestamp))]

    def _one(self, run: Run, row: int) -> Iterator[Run]:
        """What is left of a batch that isn't kept or removed as a whole."""
        raw = self.clean(batch_of(run, row))
        if raw:
            yield _run_of(raw)

    def clean(self, batch: Batch) -> bytes:
        """The batch after cleaning; empty if it is removed. Raises KsegError if its records can't be read."""
        can_discard = self._transactions.can_discard(batch)
        is_discarded = can_discard and (not batch.is_control or self._is_past(batch.delete_horizon_ms))
        problem = batch.problem()
        if problem is not None:
            raise KsegError(f"the records can't be read: {problem.detail}", position=batch.position)
        records = list(batch.records())
        reasons = [self._reason(batch, record, is_discarded=is_discarded) for record in records]
        left = [record for record, reason in zip(records, reasons, strict=True) if reason is None]
        self._gone.update(reason for reason in reasons if reason is not None)
        self._kept += len(left)
        if not left:
            return self._emptied(batch)
        has_deletes = any(record.value is None for record in left) or (can_discard and batch.is_control)
        horizon = batch.delete_horizon_ms
        if not batch.is_legacy and has_deletes and horizon is None:
            horizon = self._retention.now_ms + self._retention.delete_retention_ms
        elif len(left) == len(records):
            return batch.raw
        return cleaned_batch(batch, {record.offset for record in left}, horizon)

    def _emptied(self, batch: Batch) -> bytes:
        if batch.is_legacy or not (self._is_last_of_producer(batch) or self._is_last(batch)):
            return b""
        self.emptied += 1
        return empty_batch(batch)

    def _is_last(self, batch: Batch) -> bool:
        return batch.next_offset == self._retention.end_offset

    def _is_last_of_producer(self, batch: Batch) -> bool:
        """Whether it has the last sequence of an active producer or, if only markers are left of that, its epoch."""
        state = self._retention.producers.get(batch.producer_id)
        if state is None:
            return False
        if state.last_offset >= 0:
            return batch.last_offset == state.last_offset
        return batch.is_control and batch.producer_epoch == state.epoch

    def _is_past(self, horizon_ms: int | None) -> bool:
        return horizon_ms is not None and horizon_ms <= self._retention.now_ms

    def _reason(self, batch: Batch, record: Record, *, is_discarded: bool) -> Gone | None:
        """Why a record is removed; None if it stays."""
        if is_discarded:
            return Gone.MARKER if batch.is_control else Gone.ABORTED
        if batch.is_control or record.offset > self._table.latest_offset:
            return None
        if record.key is None:
            return Gone.NO_KEY
        if record.offset < self._table.get(record.key):
            return Gone.SUPERSEDED
        if record.value is not None:
            return None
        keeps = self.keeps_deletes if batch.is_legacy else not self._is_past(batch.delete_horizon_ms)
        return None if keeps else Gone.TOMBSTONE


def _run_of(raw: bytes) -> Run:
    """A run of one batch."""
    return Run(memoryview(raw), 0, array("q", (0, len(raw), 1)), 1, _ANY_CODEC)
