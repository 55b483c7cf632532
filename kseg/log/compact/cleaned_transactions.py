"""Transactions while a log is cleaned: what was aborted, and which markers are no longer needed."""

from collections.abc import Iterable
from dataclasses import dataclass
from heapq import heapify, heappop
from typing import NamedTuple

from kseg.formats.codes import ControlType
from kseg.index.producer_state import parse_end_marker
from kseg.reading.batch import Batch
from kseg.reading.header import BatchHeader


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
    """Follows batches in order, given the aborted transactions; `kept` are those with remaining batches.

    Source: CleanedTransactionMetadata.
    """

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self.kept: list[Aborted] = []
        self._coming = list(aborted)
        heapify(self._coming)
        self._aborted: dict[int, _Ongoing] = {}
        self._committed: set[int] = set()

    def can_discard(self, batch: Batch) -> bool:
        """Adds the next batch; says whether it is of an aborted transaction, or a marker without a batch before."""
        if not batch.is_control:
            return self.is_aborted(batch.header)
        self._begin(batch.last_offset)
        return self._can_discard_marker(batch)

    def is_aborted(self, header: BatchHeader) -> bool:
        """Adds the next batch, which is no marker, by its header; says whether it is of an aborted transaction.

        Those that aren't transactional needn't be added.
        """
        if not header.is_transactional:
            return False
        self._begin(header.last_offset)
        ongoing = self._aborted.get(header.producer_id)
        if ongoing is None:
            self._committed.add(header.producer_id)
            return False
        ongoing.has_batches = True
        return True

    def _begin(self, last_offset: int) -> None:
        """Begins the transactions whose first offset is in a batch, or before it."""
        while self._coming and self._coming[0].first_offset <= last_offset:
            transaction = heappop(self._coming)
            self._aborted.setdefault(transaction.producer_id, _Ongoing(transaction))

    def _can_discard_marker(self, batch: Batch) -> bool:
        if not batch.count:
            return True  # an earlier cleaning emptied it
        marker = parse_end_marker(batch.raw)
        if marker is None:
            return False
        if marker.control_type is ControlType.COMMIT:
            had_batches = batch.producer_id in self._committed
            self._committed.discard(batch.producer_id)
            return not had_batches
        ongoing = self._aborted.pop(batch.producer_id, None)
        if ongoing is None or not ongoing.has_batches:
            return True
        self.kept.append(ongoing.transaction)
        return False
