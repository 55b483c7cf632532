"""Which segments `verify` reads for a selection, and which findings are about selected records."""

from collections.abc import Callable
from pathlib import Path

from kseg import kernel
from kseg.errors import OpenError
from kseg.findings.findings import Finding
from kseg.formats.codes import DamageKind
from kseg.index.folding import events
from kseg.index.headers import header_runs
from kseg.kernel.contract import LEAST, MOST
from kseg.kernel.fold_contract import HeaderFold
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.select.record_picker import selected_pieces
from kseg.log.select.selector import Selector
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.selection import Selection

_WITHOUT_BATCH = frozenset({*map(str, DamageKind), "cut-segment", "offsets-lost", "offsets-missing"})
"""Ids of findings about what is missing or can't be read: no selected record can be there."""


class SelectedScope:
    """The part of a partition that a selection covers.

    Raises OpenError if a log can't be opened.
    """

    def __init__(self, partition: PartitionLog, selection: Selection, say: Callable[[str], None]) -> None:
        self._positions: dict[Path, set[int]] = {}
        offsets: list[int] = []
        for piece in selected_pieces(partition.path, selection, say):
            held = self._positions.setdefault(piece.log, set())
            held.update(record.position for record in piece.records)
            numbers = [record.offset for record in piece.records]
            offsets = [min(*offsets, *numbers), max(*offsets, *numbers)] if offsets else [min(numbers), max(numbers)]
        has_ends = bool(offsets) and selection.tail is not None, bool(offsets) and selection.limit is not None
        self._first = max(selection.first_offset, offsets[0] if has_ends[0] else LEAST)
        self._last = min(selection.last_offset, offsets[1] if has_ends[1] else MOST)
        selector = Selector(selection, partition.path, say)
        self._segments = {
            segment.base_offset
            for segment in partition.segments
            if self._reaches(partition, segment) and selector.may_hold(segment.path)
        }

    def _reaches(self, partition: PartitionLog, segment: SegmentFiles) -> bool:
        slot = partition.floor_slot(segment.base_offset) or 0
        following = partition.base_offsets[slot + 1 : slot + 2]
        return segment.base_offset <= self._last and not (following and following[0] <= self._first)

    def takes(self, segment: SegmentFiles) -> bool:
        """Whether to check a segment: it may have selected records, or damage instead of them."""
        return segment.base_offset in self._segments

    def covers(self, finding: Finding) -> bool:
        """Whether a finding is about a batch with a selected record, what may have been one, or their indexes.

        Damage has no key, no producer and no time: it counts wherever offsets don't rule it out.
        """
        if finding.file.suffix != ".log" or finding.position is None:
            return self._is_near(finding.first_offset, finding.last_offset)
        if finding.id not in _WITHOUT_BATCH:
            return finding.position in self._positions.get(finding.file, ())
        if finding.first_offset is None and finding.last_offset is None:
            first, last = _offsets_around(finding.file, finding.position)
            return self._is_near(first, last)
        return self._is_near(finding.first_offset, finding.last_offset)

    def _is_near(self, first: int | None, last: int | None) -> bool:
        return (first is None or first <= self._last) and (last is None or last >= self._first)


def _offsets_around(path: Path, position: int) -> tuple[int | None, int | None]:
    """The offsets between which damage at a position is: after the batch before it, before the one after it."""
    first, is_reached = None, False
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy, fold.position_bound = True, position - 1
    try:
        log_file = LogFile(path)
    except OpenError:
        return None, None
    with log_file:
        for item in header_runs(log_file):
            if isinstance(item, Damage):
                continue
            for header, _ in events(fold, item):
                if not is_reached and header.position >= position:
                    first, is_reached = _next_offset(fold), True
                if header.position > position:
                    return first, None if header.base_offset is None else header.base_offset - 1
    return first if is_reached else _next_offset(fold), None


def _next_offset(fold: HeaderFold) -> int | None:
    """The offset after the last batch passed; None if there is none."""
    return fold.last_offset + 1 if fold.batches else None
