"""Markers that a partition's logs lost, rebuilt from other evidence for the output of `salvage`.

Without its marker, a transaction would be open for ever in the new partition. Kafka's tools could only abort it, and
committed records would be lost.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseg.formats.codes import ControlType
from kseg.index.producers import EndMarker
from kseg.log.partition import PartitionLog
from kseg.log.transaction_walk import Begun, Ended, Evidence, TransactionWalk
from kseg.log.transactions import OUTCOMES, Outcome
from kseg.reading.batch import BatchHeader, parse_header
from kseg.rewrite.salvage_extents import Extent
from kseg.writer.batches import RecordsBuilder


class LostEnd(NamedTuple):
    """The outcome of a transaction whose marker isn't among the intact batches.

    outcome: UNKNOWN without evidence. marker: the marker to write at `offset`, as a batch; None if that offset isn't
    free or the log has no batch of the transaction. evidence: the source of the outcome.
    """

    producer_id: int
    first_offset: int
    outcome: Outcome
    evidence: Evidence | None = None
    offset: int = -1
    marker: EndMarker | None = None
    content: bytes = b""

    @property
    def header(self) -> BatchHeader:
        """The header of the batch to write."""
        return parse_header(memoryview(self.content), 0, 0)


def lost_ends(partition: PartitionLog, kept: Sequence[Extent]) -> list[LostEnd]:
    """Return the transactions in the kept batches whose markers aren't kept.

    Raises OpenError if a log can't be opened.
    """
    finder = _Finder(partition, sorted(kept, key=_first_offset))
    return [*finder.find_ends(), *finder.find_unknown()]


class _Lost(NamedTuple):
    """An end whose marker isn't kept, the latest batch that began the transaction, and its coordinator's epoch."""

    event: Ended
    begun: BatchHeader | None
    coordinator_epoch: int


class _Finder:
    """Finds lost ends, and an offset for each marker: its own, or a free one in a damaged part of the log."""

    def __init__(self, partition: PartitionLog, kept: Sequence[Extent]) -> None:
        self._walk = TransactionWalk(partition)
        self._partition = partition
        self._kept = kept
        self._taken: set[int] = set()

    def find_ends(self) -> Iterator[LostEnd]:
        lost = list(self._find_lost())
        lost.sort(key=lambda each: each.event.end_offset is None)  # those without an offset can take any free one
        for event, begun, coordinator_epoch in lost:
            found = LostEnd(event.producer_id, event.first_offset or 0, OUTCOMES[event.is_aborted], event.evidence)
            offset = None if event.is_aborted is None else self._free_offset(event)
            if begun is None or offset is None:
                yield found
                continue
            self._taken.add(offset)
            kind = ControlType.ABORT if event.is_aborted else ControlType.COMMIT
            told = EndMarker(kind, coordinator_epoch, begun.max_timestamp)
            marker = (event.marker or told)._replace(control_type=kind)
            content = self._batch(offset, begun if event.header is None else event.header, marker)
            yield found._replace(offset=offset, marker=marker, content=content)

    def find_unknown(self) -> Iterator[LostEnd]:
        for producer_id in self._walk.maybe_ended:
            yield LostEnd(producer_id, self._walk.begun[producer_id], Outcome.UNKNOWN)

    def _find_lost(self) -> Iterator[_Lost]:
        begun, coordinator_epochs = dict[int, BatchHeader](), dict[int, int]()
        for event in self._walk.walk(self._partition.segments):
            if isinstance(event, Begun):
                begun[event.header.producer_id] = event.header
            elif isinstance(event, Ended):
                is_kept = event.header is not None and self._is_around(event.place)
                if event.first_offset is not None and self._is_of_kept(event.first_offset) and not is_kept:
                    known = coordinator_epochs.get(event.producer_id, 0)
                    yield _Lost(event, begun.get(event.producer_id), known)
                if event.marker is not None:
                    coordinator_epochs[event.producer_id] = event.marker.coordinator_epoch

    def _is_of_kept(self, first_offset: int) -> bool:
        """Return True if a transaction that begins there has kept records, or began before the log."""
        return first_offset < self._partition.base_offsets[0] or self._is_around(first_offset)

    def _is_around(self, offset: int) -> bool:
        """Return True if an extent contains an offset, or spans it."""
        slot = self._slot(offset)
        return slot >= 0 and self._kept[slot].last_offset >= offset

    def _slot(self, offset: int) -> int:
        return bisect_right(self._kept, offset, key=_first_offset) - 1

    def _free_offset(self, event: Ended) -> int | None:
        """Return a free offset between kept batches.

        After all of them, only an offset that the log had according to snapshots.
        """
        slot = self._slot(event.place)
        following = self._kept[slot + 1 : slot + 2]
        end = max(self._partition.snapshots, default=0)
        end = following[0].first_offset if following else max(end, self._kept[slot].last_offset + 2)
        offsets = range(event.place, end if event.end_offset is None else min(event.place + 1, end))
        return next((each for each in offsets if each not in self._taken and not self._is_around(each)), None)

    def _batch(self, offset: int, header: BatchHeader, marker: EndMarker) -> bytes:
        epochs = self._kept[self._slot(offset)].epochs
        builder = RecordsBuilder(
            offset,
            producer_id=header.producer_id,
            producer_epoch=header.producer_epoch,
            is_transactional=True,
            is_control=True,
            partition_leader_epoch=epochs[-1].epoch if epochs else -1,
        )
        builder.append_end_marker(marker.control_type, marker.coordinator_epoch, marker.timestamp)
        return builder.build().raw


def _first_offset(extent: Extent) -> int:
    return extent.first_offset
