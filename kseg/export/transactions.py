"""Transactions of a partition: which were aborted, and below which offset none is open.

As a broker answers a consumer with `read_committed`: by the .txnindex, and by reading the log where there is none or it
can't be right. Source: UnifiedLog.collectAbortedTransactions.
"""

from bisect import bisect_right
from collections import defaultdict
from typing import NamedTuple

from kseg.errors import KsegError, OpenError
from kseg.index.headers import walk_headers
from kseg.index.producer_state import CompletedTransaction, ProducerStates, read_end_marker
from kseg.index.transaction_index import TransactionIndex
from kseg.log.partition import PartitionLog, SegmentFiles
from kseg.log_file import Damage


class Transactions(NamedTuple):
    """What was aborted, as offsets (first, last) by producer id; the first offset of the oldest open transaction."""

    aborted: dict[int, list[tuple[int, int]]]
    last_stable_offset: int | None

    def is_aborted(self, producer_id: int, offset: int) -> bool:
        """Whether a transactional batch of the producer that begins with the offset was aborted."""
        spans = self.aborted.get(producer_id)
        if not spans:
            return False
        place = bisect_right(spans, (offset, 1 << 63)) - 1
        return place >= 0 and offset <= spans[place][1]


def read_transactions(place: PartitionLog) -> Transactions:
    """The transactions of a partition.

    Headers are read from the newest producer snapshot that a broker would take; the segments below it are asked by
    their transaction index, or read as well if that can't be used. Raises OpenError if a file can't be opened.
    """
    states, start = _newest_states(place)
    aborted: dict[int, set[tuple[int, int]]] = defaultdict(set)
    below = [segment for segment in place.segments if segment.base_offset < start]
    usable = all(_add_indexed(segment, aborted) for segment in below)
    if not usable:
        states, start = ProducerStates(), 0
        aborted.clear()
    slot = place.floor_slot(start) or 0
    for segment in place.segments[slot:]:
        for ended in _completed(segment, states, start):
            if ended.is_aborted:
                aborted[ended.producer_id].add((ended.first_offset, ended.last_offset))
    spans = {producer_id: sorted(found) for producer_id, found in aborted.items()}
    return Transactions(spans, min(states.open_transactions.values(), default=None))


def _newest_states(place: PartitionLog) -> tuple[ProducerStates, int]:
    """The producers of the newest snapshot that can be used, and the offset where it ends; none at offset 0."""
    for offset in sorted(place.snapshots, reverse=True):
        try:
            states = place.read_producer_states(offset)
        except KsegError:
            continue
        if states is not None:
            return states, offset
    return ProducerStates(), 0


def _add_indexed(segment: SegmentFiles, aborted: dict[int, set[tuple[int, int]]]) -> bool:
    """Adds what a segment's transaction index says; False if nothing can be taken from it.

    A broker writes the file when the first transaction is aborted: where there are other indexes it means none.
    """
    if segment.transaction_index is None:
        return segment.offset_index is not None
    try:
        with TransactionIndex(segment.transaction_index.path, segment.base_offset) as index:
            if index.sanity_problem() is not None:
                return False
            for entry in index.entries():
                aborted[entry.producer_id].add((entry.first_offset, entry.last_offset))
    except OpenError:
        return False
    return True


def _completed(segment: SegmentFiles, states: ProducerStates, start: int) -> list[CompletedTransaction]:
    ended = []
    with segment.open_log() as log_file:
        for header in walk_headers(log_file):
            if isinstance(header, Damage) or header.last_offset < start or header.producer_id < 0:
                continue
            marker = read_end_marker(log_file, header) if header.is_control else None
            completed = states.add(header, marker)
            if completed is not None:
                ended.append(completed)
    return ended
