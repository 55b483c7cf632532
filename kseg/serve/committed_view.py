"""The transactions of a served partition: its last stable offset, and aborted transactions of answers."""

from collections import OrderedDict
from collections.abc import Iterator
from threading import Lock
from time import monotonic
from typing import NamedTuple

from kseg.kernel.contract import MOST
from kseg.log.committed import ReadCommitted, read_committed
from kseg.log.partition import PartitionLog
from kseg.serve.values import REST

MOST_SEGMENTS = 64
"""The most segments whose transactions are cached."""


class _Known(NamedTuple):
    """The transactions up to a log end offset, and the time at which they may be read again."""

    log_end: int
    read: ReadCommitted
    stays_until: float


class CommittedView:
    """The transactions of a partition, read on first use, and cached while the log is unchanged."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._stable: _Known | None = None
        self._by_base: OrderedDict[int, _Known] = OrderedDict()

    def known_last_stable_offset(self, log_end: int) -> int | None:
        """Return the same as `last_stable_offset` if nothing has to be read for it, otherwise None."""
        known = self._stable
        return None if known is None or _is_stale(known, log_end) else _stable_of(known, log_end)

    def last_stable_offset(self, partition: PartitionLog, log_end: int) -> int:
        """Return the first undecided offset: the oldest open transaction's, or the end of the log.

        Raises OpenError if a log can't be opened.
        """
        if not partition.segments:
            return log_end
        with self._lock:
            known = self._stable
            if known is None or _is_stale(known, log_end):
                known = self._stable = self._read(partition, log_end, len(partition.segments) - 1)
        return _stable_of(known, log_end)

    def known_aborted(self, partition: PartitionLog, offsets: range) -> list[tuple[int, int]] | None:
        """Return the same as `find_aborted` if nothing has to be read for it, otherwise None."""
        known = self._by_base.get(partition.base_offsets[partition.floor_slot(offsets.start) or 0])
        return None if known is None or known.log_end < offsets.stop else _aborted_within(known, offsets)

    def find_aborted(self, partition: PartitionLog, log_end: int, offsets: range) -> list[tuple[int, int]]:
        """Return aborted transactions that overlap some offsets, as (producer id, first offset), by first offset.

        Raises OpenError if a log can't be opened.
        """
        slot = partition.floor_slot(offsets.start) or 0
        base = partition.base_offsets[slot]
        with self._lock:
            known = self._by_base.get(base)
            if known is None or known.log_end < offsets.stop:  # a closed segment may have grown before
                known = self._read(partition, log_end, slot)
            self._by_base.move_to_end(base)
        return _aborted_within(known, offsets)

    def _read(self, partition: PartitionLog, log_end: int, slot: int) -> _Known:
        """Read the transactions of a segment, and keep them. The caller holds the lock."""
        started, (base, end, *_) = monotonic(), [*partition.base_offsets[slot : slot + 2], MOST]
        read = read_committed(partition.segments, partition, base, end)
        now = monotonic()
        known = self._by_base[base] = _Known(log_end, read, now + REST * (now - started))
        while len(self._by_base) > MOST_SEGMENTS:
            self._by_base.popitem(last=False)
        return known


def _stable_of(known: _Known, log_end: int) -> int:
    open_from = known.read.last_stable_offset
    return min(log_end if open_from is None else open_from, known.log_end, log_end)


def _aborted_within(known: _Known, offsets: range) -> list[tuple[int, int]]:
    return sorted(_reaching(known.read, offsets), key=lambda each: each[1])


def _is_stale(known: _Known, log_end: int) -> bool:
    return known.log_end != log_end and monotonic() >= known.stays_until


def _reaching(read: ReadCommitted, offsets: range) -> Iterator[tuple[int, int]]:
    for producer_id, spans in read.aborted.items():
        for begun, marker in spans:
            if begun < offsets.stop and marker >= offsets.start:
                yield producer_id, begun
