"""Which records of a batch the log cleaner keeps, and the cleaned batch. Source: Cleaner, MemoryRecords.filterTo."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kseg.errors import KsegError
from kseg.index.producer_state import ProducerState
from kseg.kernel.record import Record
from kseg.log.compact.cleaned_transactions import CleanedTransactions
from kseg.log.compact.offset_map import OffsetMap
from kseg.reading.batch import Batch
from kseg.writer.rebuilt_batch import cleaned_batch, empty_batch


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

    kept: records that stay. gone: those that are removed, by reason. emptied: batches that stay without records.
    keeps_deletes: whether v0 and v1 tombstones of the segment stay.
    """

    def __init__(self, offsets: OffsetMap, transactions: CleanedTransactions, retention: TombstoneRetention) -> None:
        self.kept = 0
        self.gone: Counter[Gone] = Counter()
        self.emptied = 0
        self.keeps_deletes = True
        self._offsets = offsets
        self._transactions = transactions
        self._retention = retention

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
        self.gone.update(reason for reason in reasons if reason is not None)
        self.kept += len(left)
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
        if batch.is_control or record.offset > self._offsets.latest_offset:
            return None
        if record.key is None:
            return Gone.NO_KEY
        if record.offset < self._offsets.get(record.key):
            return Gone.SUPERSEDED
        if record.value is not None:
            return None
        keeps = self.keeps_deletes if batch.is_legacy else not self._is_past(batch.delete_horizon_ms)
        return None if keeps else Gone.TOMBSTONE
