"""What clients with read_committed get of a partition: up to where, and which transactions in it were aborted."""

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.kernel.contract import MOST
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.select.isolation import ReadCommitted, read_committed, read_last_stable_offset
from kseg.serve.limits import REST

MOST_SEGMENTS = 64
"""Segments whose transactions are remembered."""


class _Known(NamedTuple):
    """What was read of transactions when the log ended at an offset, and when that may be read again."""

    log_end: int
    value: ReadCommitted | int | None
    stays_until: float


class CommittedView:
    """The transactions of a partition, read where they are asked for, and kept while the log stays as it is."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stable: _Known | None = None
        self._by_base: OrderedDict[int, _Known] = OrderedDict()

    def last_stable_offset(self, partition: PartitionLog, log_end: int) -> int:
        """The first offset that isn't decided yet: of the oldest open transaction, or the log's end.

        Raises OpenError if a log can't be opened.
        """
        with self._lock:
            known = self._stable
            if known is None or _is_stale(known, log_end):
                started = monotonic()
                known = self._stable = _known(log_end, read_last_stable_offset(partition), started)
        open_from = known.value if isinstance(known.value, int) else log_end
        return min(open_from, known.log_end, log_end)

    def aborted(
        self, partition: PartitionLog, log_end: int, first_offset: int, end_offset: int
    ) -> list[tuple[int, int]]:
        """Aborted transactions that reach into some offsets, as (producer id, first offset), by first offset.

        Raises OpenError if a log can't be opened.
        """
        slot = partition.floor_slot(first_offset) or 0
        base = partition.base_offsets[slot]
        following = partition.base_offsets[slot + 1 : slot + 2]
        with self._lock:
            known = self._by_base.pop(base, None)
            if known is None or (not following and known.log_end < end_offset):
                started, end = monotonic(), following[0] if following else MOST
                known = _known(log_end, read_committed(partition.segments, partition, base, end), started)
            self._by_base[base] = known
            while len(self._by_base) > MOST_SEGMENTS:
                self._by_base.popitem(last=False)
        found = _reaching(known.value, first_offset, end_offset) if isinstance(known.value, ReadCommitted) else ()
        return sorted(found, key=lambda each: each[1])


def _known(log_end: int, value: ReadCommitted | int | None, started: float) -> _Known:
    now = monotonic()
    return _Known(log_end, value, now + REST * (now - started))


def _is_stale(known: _Known, log_end: int) -> bool:
    return known.log_end != log_end and monotonic() >= known.stays_until


def _reaching(read: ReadCommitted, first_offset: int, end_offset: int) -> Iterator[tuple[int, int]]:
    for producer_id, spans in read.aborted.items():
        for begun, marker in spans:
            if begun < end_offset and marker >= first_offset:
                yield producer_id, begun
