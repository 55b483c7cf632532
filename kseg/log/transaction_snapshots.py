"""Open transactions by a partition's producer snapshots, as far as these can belong to its log."""

from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from kseg.errors import FileError
from kseg.log.partition import PartitionLog

OpenTransactions = dict[int, int]
"""First offsets of open transactions, by producer id."""


class CarriedTransactions(NamedTuple):
    """Transactions that were open where the log begins.

    begun: their first offsets, all before the log, by producer id. confirmed: the producers whose transaction is open
    unless the log has its end. doubted_file: the only snapshot, if nothing confirms its transactions.
    """

    begun: OpenTransactions
    confirmed: frozenset[int]
    doubted_file: Path | None = None


def carried_transactions(partition: PartitionLog) -> CarriedTransactions:
    """Return the transactions of the first snapshot that began before the log.

    If the log doesn't decide, only transactions that another, last snapshot has too are open: a single wrong file would
    block everything.
    """
    base = partition.base_offsets[0] if partition.segments else 0
    offsets = [offset for offset in partition.snapshots if offset >= base > 0]
    at, first = _first_usable(partition, offsets)
    begun = {producer_id: begun for producer_id, begun in first.items() if begun < base}
    if not begun:
        return CarriedTransactions({}, frozenset())
    last_at, last = _first_usable(partition, reversed(offsets))
    if last_at == at:
        return CarriedTransactions(begun, frozenset(), partition.snapshots[at].path)
    return CarriedTransactions(begun, frozenset(each for each in begun if last.get(each) == begun[each]))


def _first_usable(partition: PartitionLog, offsets: Iterable[int]) -> tuple[int, OpenTransactions]:
    """Return the offset of the first snapshot that can belong to this log, and its open transactions.

    Empty if none can.
    """
    for offset in offsets:
        opened = open_at(partition, offset)
        if opened is not None:
            return offset, opened
    return -1, {}


def open_at(partition: PartitionLog, offset: int) -> OpenTransactions | None:
    """Return the open transactions of the snapshot at an offset, or None if none there can belong to this log."""
    try:
        states = partition.read_producer_states(offset)
    except FileError:
        return None
    if states is None or any(state.last_offset >= offset for state in states.producers.values()):
        return None
    return None if any(begun >= offset for begun in states.open_transactions.values()) else states.open_transactions
