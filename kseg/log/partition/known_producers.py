"""What a partition's batches say about their producers, compared with its producer snapshots."""

from collections.abc import Iterable, Iterator

from kseg.index.producer_state import CompletedTransaction, EndMarker, ProducerState, ProducerStates
from kseg.reading.header import BatchHeader

_FIELDS = ("epoch", "last_sequence", "last_offset", "current_txn_first_offset")


class KnownProducers:
    """The producers of a partition, updated batch by batch.

    states: their states, to find contradictions in a snapshot's entries. The broker may or may not know what is below
    the log start offset, or below the first offset that is there.
    Source: ProducerStateManager.
    """

    def __init__(self, first_offset: int, log_start_offset: int) -> None:
        self.states = ProducerStates()
        self._first_offset = first_offset
        self._log_start = log_start_offset
        self._markers: dict[int, int] = {}

    def add(self, header: BatchHeader, marker: EndMarker | None) -> CompletedTransaction | None:
        """Adds the next batch; returns the transaction that it ended."""
        if marker is not None:
            self._markers[header.producer_id] = header.last_offset
        return self.states.add(header, marker)

    def contradictions(self, entries: Iterable[ProducerState], end_offset: int) -> Iterator[str]:
        """What is wrong with a snapshot taken at an offset, up to which all batches were added."""
        left = {each: first for each, first in self.states.open_transactions.items() if first >= self._log_start}
        for entry in entries:
            left.pop(entry.producer_id, None)
            problem = self._contradiction(entry, end_offset)
            if problem is not None:
                yield f"producer {entry.producer_id}: {problem}"
        for producer_id, first_offset in left.items():  # a broker never forgets a producer with an open transaction
            yield f"producer {producer_id}: is missing, but its transaction is open since offset {first_offset}"

    def _contradiction(self, entry: ProducerState, end_offset: int) -> str | None:
        last = max(entry.last_offset, entry.current_txn_first_offset)
        if last >= end_offset:
            return f"offset {last}, but it was taken at {end_offset}"
        known = self.states.producers.get(entry.producer_id)
        if known is None:
            if entry.last_offset >= self._first_offset:
                return f"its last offset is {entry.last_offset}, the log has no batch of this producer"
            return None
        if known.last_offset < 0 and entry.last_offset < self._first_offset:
            return None  # only its marker is still in the log
        for name in _FIELDS:
            stored, found = getattr(entry, name), getattr(known, name)
            if stored != found and not self._explains(entry, known, name):
                return f"{name.replace('_', ' ')} is {stored}, the log says {found}"
        return None

    def _explains(self, entry: ProducerState, known: ProducerState, name: str) -> bool:
        """Whether a release's own behaviour makes a field differ from the log.

        A broker that recovers its log knows nothing below the log start offset; before 2.4 it forgot that as soon as it
        was deleted. 0.11 counted a marker as a batch of one record.
        """
        if name == "epoch":
            return False
        if name == "current_txn_first_offset":
            stored, found = entry.current_txn_first_offset, known.current_txn_first_offset
            first = max(self._first_offset, self._log_start)
            began_before = 0 <= stored < first <= found  # the log doesn't have what retention deleted
            return began_before or (0 <= found < self._log_start and not 0 <= stored < self._log_start)
        is_forgotten = known.last_offset < self._log_start and entry.last_offset < 0
        return is_forgotten or (name == "last_offset" and entry.last_offset == self._markers.get(entry.producer_id))
