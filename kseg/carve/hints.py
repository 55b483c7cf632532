"""Hints of file systems: lists of a file's extents, each of which adds a link between runs if their contents agree."""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from kseg import kernel
from kseg.carve.extents import FileExtents, FileRange
from kseg.carve.joins import How, Joins, Link, LinkKind, PiecedBatch
from kseg.carve.runs import Run, Runs
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.carve_contract import CRC_START, LARGEST_BATCH
from kseg.reading.batch import BatchHeader, parse_header


class _Placed(NamedTuple):
    """A run and its bytes in the file. start: of its first batch that certainly is the file's."""

    run: Run
    first: BatchHeader
    start: int
    end: int


class _Hint(NamedTuple):
    """A run, the one before it, and the batch between them, if there is one."""

    before: int
    after: int
    lead: PiecedBatch | None


def add_hints(runs: Runs, joins: Joins, lists: Iterable[FileExtents]) -> None:
    """Add the links that lists of extents lead to, unless other links or lists contradict them.

    A list counts only where the next offset follows: its blocks may have another file's bytes by now.
    """
    hints = {hint for extents in lists for hint in _hints_of(runs, joins, extents)}
    befores: dict[int, set[int]] = {}
    afters: dict[int, set[int]] = {}
    for hint in hints:
        befores.setdefault(hint.after, set()).add(hint.before)
        afters.setdefault(hint.before, set()).add(hint.after)
    following = {link.before: after for after, link in joins.links.items()}
    added = [
        hint
        for hint in sorted(hints, key=lambda hint: hint.after)
        if len(befores[hint.after]) == len(afters[hint.before]) == 1
        and hint.after not in joins.links
        and hint.before not in following
    ]
    for hint in added:
        joins.links[hint.after] = Link(hint.before, LinkKind.EXTENT)
        if hint.lead is not None:
            joins.leads[hint.after] = [hint.lead]
    linked = {hint.before for hint in added}, {hint.after for hint in added}
    joins.torn = [head for head in joins.torn if head.run not in linked[0]]
    joins.likely = [(one, other) for one, other in joins.likely if one not in linked[0] and other not in linked[1]]


def _hints_of(runs: Runs, joins: Joins, extents: FileExtents) -> Iterator[_Hint]:
    """Yield the pairs of runs that follow each other in a file."""
    file = _File(runs, extents)
    for before, after in pairwise(_placed_runs(runs, joins, extents)):
        if before is None or after is None or before.run.last_epoch > after.first.partition_leader_epoch:
            continue
        known = joins.leads.get(after.run.number)
        if before.run.number in joins.trails:
            last = joins.trails[before.run.number][-1]
            follows = last.header.last_offset + 1 == after.first.first_offset
            if known is None and follows and last.pieces[-1][1] == after.first.position:
                yield _Hint(before.run.number, after.run.number, None)
            continue
        lead = file.batch_between(before, after)
        if lead is not None and (known is None or known[-1].header.first_offset == lead.header.first_offset):
            yield _Hint(before.run.number, after.run.number, lead)
        elif before.end == after.start and before.run.next_offset == after.first.first_offset and known is None:
            yield _Hint(before.run.number, after.run.number, None)


def _placed_runs(runs: Runs, joins: Joins, extents: FileExtents) -> Iterator[_Placed | None]:
    """Yield the runs of a file's ranges, in order; None where a run crosses the end of a range: the list is old."""
    offset = 0  # of the range in the file
    for start, end in extents:
        number = bisect_left(runs.starts, start)
        if number and runs.runs[number - 1].end > start:
            yield None
        while number < len(runs.runs) and runs.starts[number] < end:
            run = runs.runs[number]
            row = run.first + (number in joins.skipped)
            number += 1
            if run.end > end:
                yield None
            elif row < run.last:
                first = runs.batches.header(row)
                yield _Placed(run, first, offset + first.position - start, offset + run.end - start)
        offset += end - start


class _File:
    """The bytes of a file by its extents."""

    def __init__(self, runs: Runs, extents: FileExtents) -> None:
        self._runs, self._extents, self._kernel = runs, extents, kernel.load()

    def batch_between(self, before: _Placed, after: _Placed) -> PiecedBatch | None:
        """Return the only batch between two runs, if there is one and all its values agree with them."""
        size = after.start - before.end
        if not BATCH_HEADER_SIZE <= size <= LARGEST_BATCH:
            return None
        pieces = self._pieces(before.end, after.start)
        raw = b"".join(self._runs.images.read(start, end) for start, end in pieces)
        header = parse_header(raw, 0, pieces[0].start, is_valid=True)
        is_next = header.base_offset == before.run.next_offset and header.last_offset + 1 == after.first.first_offset
        if header.magic != 2 or header.size != size or not is_next:
            return None
        if not before.run.last_epoch <= header.partition_leader_epoch <= after.first.partition_leader_epoch:
            return None
        if self._kernel.crc32c(memoryview(raw)[CRC_START:]) != header.crc:
            return None
        return PiecedBatch(header, b"", tuple(pieces), How.JOINED)

    def _pieces(self, start: int, end: int) -> list[FileRange]:
        """Return the parts of an image that have some bytes of the file."""
        found = []
        offset = 0
        for extent in self._extents:
            first, last = max(extent.start, extent.start + start - offset), min(extent.end, extent.start + end - offset)
            if first < last:
                found.append(FileRange(first, last))
            offset += extent.end - extent.start
        return found
