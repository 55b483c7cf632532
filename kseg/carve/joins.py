"""Joins of runs: what proves that two pieces are of one file, by position, offsets and CRCs.

A link is proof, or a touch of two whole batches, or only likely. A likely link shows a place to look at, and nothing
else depends on it: batches of partitions that were written in lockstep have the same offsets and sizes.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import chain, islice
from typing import NamedTuple

from kseg.carve.adjacent_runs import Rivals, continuing_runs, has_sure_rest, uncertain_first_batches
from kseg.carve.headless import EarlyBreaks, Headless, find_headless
from kseg.carve.loose_blocks import Ends, LooseBlocks
from kseg.carve.piece_crcs import PieceCrcs
from kseg.carve.runs import Run, Runs, StartIndex, TornHead
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.carve_contract import SURE_BREAK, SURE_REST
from kseg.reading.batch import Batch, BatchHeader, parse_header

MOST_CANDIDATES = 64
"""The most runs that are tried for a torn batch; with more, it stays unplaced.

Also the most likely links to a run, and the most torn batches that want one offset at one place and are compared with
loose blocks, or by bytes.
"""
_MOST_SEARCHES = 1 << 17
"""The most beginnings with an end that are compared with loose blocks at once."""


class LinkKind(StrEnum):
    """Kinds of links between a run and the preceding one."""

    TOUCHING = "touching"
    "The next offset follows directly; no other place in the images has it at the same place of a block."
    CRC = "crc"
    "A batch with one piece in each has the right CRC."
    EXTENT = "extent"
    "A list of a file's blocks in the file system has both, and the offsets agree."
    LIKELY = "likely"
    "Offsets and CRC fit, but another partition's batch may fit as well."


class How(StrEnum):
    """Ways in which a batch is found."""

    WHOLE = "whole"
    JOINED = "joined"
    "In two pieces, which the CRC joins."
    JOINED_3 = "joined-3"
    "In three pieces, which the CRC joins."
    HEADLESS = "headless"
    "By its CRC; its first bytes, or their offset, follow from the batch after it."
    EXTENTS = "extents"
    "In pieces that a list of a file's blocks has; they have the right CRC together."


class PiecedBatch(NamedTuple):
    """A batch that isn't in one place: bytes that were rebuilt, then pieces of the images.

    header: its position is the first piece's. pieces: start and end of each.
    """

    header: BatchHeader
    rebuilt: bytes
    pieces: tuple[tuple[int, int], ...]
    how: How


class Link(NamedTuple):
    """A run that comes directly before another one in its file."""

    before: int
    kind: LinkKind


@dataclass(slots=True)
class Joins:
    """The links of all runs.

    leads: by run, the pieced batches before it, the last of them perhaps instead of its first one. trails: by run, the
    pieced batches after it, before the next run. apart: pieced batches of files without any run. skipped: runs whose
    first batch is left out: there is another one in `leads`, or its offset is unknown. links: by run, what is certainly
    before it. likely: pairs of runs. torn: heads without their rest.
    """

    leads: dict[int, list[PiecedBatch]] = field(default_factory=dict)
    trails: dict[int, list[PiecedBatch]] = field(default_factory=dict)
    apart: list[list[PiecedBatch]] = field(default_factory=list)
    skipped: set[int] = field(default_factory=set)
    links: dict[int, Link] = field(default_factory=dict)
    likely: list[tuple[int, int]] = field(default_factory=list)
    torn: list[TornHead] = field(default_factory=list)


def join_runs(runs: Runs) -> Joins:
    """Link runs, the surest rules first."""
    return _Joiner(runs).join()


class _Joiner:
    def __init__(self, runs: Runs) -> None:
        self._runs, self._found = runs, Joins()
        self._index, self._crcs = StartIndex(runs), PieceCrcs(runs, runs.blocks)
        self._next_of: dict[int, int] = {}
        """By run, the run that directly follows it by its position and offset."""

    def join(self) -> Joins:
        runs = self._runs
        for number, batch in uncertain_first_batches(runs):
            self._found.skipped.add(number)
            if batch is not None:
                self._add_headless(number, batch)
        self._next_of = continuing_runs(runs, self._found.skipped)
        heads = [head for run in runs.runs if run.number not in self._next_of and (head := runs.torn_head(run))]
        heads = self._join_torn(heads)
        self._link_adjacent(heads)
        heads = self._join_early_breaks(heads)
        for run in runs.runs:
            is_first_known = run.missing and runs.is_adjacent(run.number)
            if self._is_open(run.number) and not is_first_known and (found := find_headless(runs, run)):
                self._add_headless(run.number, found)
        self._found.torn = self._join_by_loose_blocks(heads)
        return self._found

    def _link_adjacent(self, torn: list[TornHead]) -> None:
        """Link adjacent runs unless a run elsewhere wants, or has, the same offset at the same place of a block."""
        runs, links = self._runs, self._found.links
        ends, starts = Rivals(runs), Rivals(runs)
        for head in torn:
            ends.add(head.next_offset, head.end, head.header.crc)
        followed = {link.before for link in links.values()}
        for run in runs.runs:
            if run.number not in self._next_of and run.number not in followed and runs.may_continue(run):
                ends.add(run.next_offset, run.end, run.last_crc)
            is_free = run.number not in links and run.number not in self._found.leads
            if runs.place_of(run.start) < SURE_REST and is_free and self._next_of.get(run.number - 1) != run.number:
                starts.add(run.base_offset, run.start, run.first_crc)
        for before, after in self._next_of.items():
            one, run = runs.runs[before], runs.runs[after]
            has_rival = ends.has_other(run.base_offset, run.start, one.last_crc)
            has_rival |= starts.has_other(run.base_offset, run.start, run.first_crc)
            if has_rival and not self._has_sure_border(one, run):
                self._found.likely.append((before, after))
            else:
                links[after] = Link(before, LinkKind.TOUCHING)

    def _has_sure_border(self, before: Run, run: Run) -> bool:
        """Return True if the bytes of a run's block before it certainly are of the file of the preceding one."""
        size, last = self._runs.place_of(run.start), self._runs.batches.header(before.last - 1)
        return size < SURE_REST and has_sure_rest(self._runs, last, run.start, size)

    def _is_open(self, number: int) -> bool:
        """Return True if nothing is known before a run, so that a torn batch's rest may be there."""
        found = self._found
        is_taken = number in found.leads or number in found.skipped or number in found.links
        return not is_taken and self._next_of.get(number - 1) != number

    def _join_torn(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose head has enough bytes to tell it from others; return the other heads."""
        fits: dict[int, list[tuple[TornHead, int]]] = {}
        only_fit: dict[int, int | None] = {}
        for head, number, cut in self._fitting_runs(heads):
            found = fits.setdefault(number, [])
            if len(found) < MOST_CANDIDATES:
                found.append((head, cut))
            if only_fit.setdefault(head.run, number) != number:
                only_fit[head.run] = None
        joined: set[int] = set()
        for number, found in sorted(fits.items()):
            head, cut = found[0]
            is_alone = len(found) == 1 and only_fit[head.run] == number
            if not is_alone or self._has_twin(head, number):
                self._found.likely += [(each.run, number) for each, _ in found]
                continue
            start, end = head.header.position, self._runs.runs[number].start
            self._add_joined(head, end, number, ((start, start + cut), (end - head.header.size + cut, end)))
            joined.add(head.run)
        return [head for head in heads if head.run not in joined]

    def _fitting_runs(self, heads: list[TornHead]) -> Iterator[tuple[TornHead, int, int]]:
        """Yield runs, and breaks, with which a head has the right CRC.

        Heads that want one offset at one place of a block are compared with the same runs, whose bytes are read once.
        """
        for (place, offset), group in self._heads_by_next_offset(heads).items():
            numbers = self._open_runs(place, offset)
            if not 0 < len(numbers) <= MOST_CANDIDATES:
                continue
            starts = {self._runs.runs[number].start: number for number in numbers}
            largest = max(head.header.size for head in group)
            table = self._crcs.table(self._crcs.rest(start, largest) for start in starts)
            for head in group:
                if head.header.is_legacy and len(group) > MOST_CANDIDATES:
                    continue
                found: dict[int, int] = {}
                if head.header.is_legacy:
                    fits = self._crcs.legacy_fits(head.header, starts)
                else:
                    fits = self._crcs.fits(self._crcs.beginning(head.header), table)
                for end, cut in fits:
                    found.setdefault(starts[end], cut)
                yield from ((head, number, cut) for number, cut in found.items())

    def _heads_by_next_offset(self, heads: list[TornHead]) -> dict[tuple[int, int], list[TornHead]]:
        """Return heads by the place in its block where the next batch begins, and by its offset, if that is known."""
        found: dict[tuple[int, int], list[TornHead]] = {}
        for head in heads:
            if head.header.last_offset >= head.header.first_offset:
                key = self._runs.place_of(head.end), head.header.last_offset + 1
                found.setdefault(key, []).append(head)
        return found

    def _open_runs(self, place: int, offset: int) -> list[int]:
        return [number for number in self._index.at(place, offset) if self._is_open(number)]

    def _has_twin(self, head: TornHead, number: int) -> bool:
        """Return True if a batch next to the torn one is elsewhere too, so that the torn one may be as well."""
        repeated = self._runs.repeated
        return self._runs.runs[head.run].last - 1 in repeated or self._runs.runs[number].first in repeated

    def _join_early_breaks(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose head ends before SURE_BREAK: they are of their rest's file. Return the other heads."""
        early = EarlyBreaks(self._runs, self._crcs, self._index, MOST_CANDIDATES)
        taken = self._found.skipped | self._found.links.keys() | set(self._next_of.values())
        counts: Counter[int] = Counter()
        left: list[TornHead] = []
        for head in heads:
            fits = list(early.fits(head, taken))
            for number, batch in fits:
                if number not in self._found.leads:
                    self._add_headless(number, batch)
                self._found.likely.append((head.run, number))
                counts[number] += 1
                if counts[number] == MOST_CANDIDATES:
                    taken.add(number)
            if not fits:
                left.append(head)
        return left

    def _join_by_loose_blocks(self, heads: list[TornHead]) -> list[TornHead]:
        """Join batches whose pieces are in blocks without other batches. Return the other heads."""
        if not heads:
            return []
        leads, trails = self._found.leads.values(), self._found.trails.values()
        taken = [piece for batch in chain.from_iterable((*leads, *trails)) for piece in batch.pieces]
        loose = LooseBlocks(self._runs, self._crcs, taken, [head.header.position for head in heads])
        left: list[TornHead] = []
        while heads:
            joined: set[int] = set()
            following: list[TornHead] = []
            groups = self._heads_by_next_offset(heads).values()
            crowded = {head.run for group in groups if len(group) > MOST_CANDIDATES for head in group}
            possible = (ends for head in heads if head.run not in crowded for ends in self._ends(head, loose))
            for ends, pieces in loose.fits(list(islice(possible, _MOST_SEARCHES))):
                head, end = ends.head, None if ends.rest is None else ends.rest.end
                joined.add(head.run)
                if self._add_joined(head, end, ends.tail, pieces) and end is not None and ends.tail is None:
                    torn = self._runs.torn_head_at(end, head.header.last_offset + 1, head.run)
                    following += [torn] if torn else []
            left += [head for head in heads if head.run not in joined]
            heads = self._join_torn(following)
        return left

    def _ends(self, head: TornHead, loose: LooseBlocks) -> Iterator[Ends]:
        """Yield the beginning of a torn batch with each of its possible ends, also with none."""
        header = head.header
        is_known = head.room >= SURE_BREAK and header.last_offset >= header.first_offset
        beginning = self._crcs.beginning(header) if is_known and not header.is_legacy else None
        if beginning is None or not beginning.crcs:
            return
        yield Ends(head, beginning, None, None)
        place, wanted = self._runs.place_of(head.end), header.last_offset + 1
        ends: list[tuple[int, int | None]] = [
            (self._runs.runs[number].start, number) for number in self._open_runs(place, wanted)
        ]
        ends += [(position, None) for position in loose.heads_at(place, wanted)]
        for end, tail in ends if len(ends) <= MOST_CANDIDATES else ():
            rest = self._crcs.rest(end, header.size)
            if rest.crcs:
                yield Ends(head, beginning, rest, tail)

    def _add_joined(
        self, head: TornHead, end: int | None, tail: int | None, pieces: tuple[tuple[int, int], ...]
    ) -> bool:
        """Add a torn batch; return True if it proves what follows it. Too short a rest may be of another partition."""
        batch = self._torn_batch(head, pieces)
        is_sure = end is not None and has_sure_rest(self._runs, head.header, end, end - pieces[-1][0])
        if is_sure and tail is not None:
            self._found.leads[tail] = [batch]
            self._found.links[tail] = Link(head.run, LinkKind.CRC)
        else:
            self._found.trails.setdefault(head.run, []).append(batch)
            if tail is not None:
                self._found.likely.append((head.run, tail))
        return is_sure

    def _add_headless(self, number: int, batch: Headless) -> None:
        self._found.leads[number] = [PiecedBatch(*batch, How.HEADLESS)]

    def _torn_batch(self, head: TornHead, pieces: tuple[tuple[int, int], ...]) -> PiecedBatch:
        (start, cut), header = pieces[0], head.header._replace(is_valid=True)
        if cut - start < BATCH_HEADER_SIZE:
            beginnings = (self._runs.images.read(at, min(end, at + BATCH_HEADER_SIZE)) for at, end in pieces)
            known = b"".join(beginnings)[:BATCH_HEADER_SIZE]
            header = parse_header(known.ljust(BATCH_HEADER_SIZE, b"\0"), 0, start, is_valid=True)
        if header.base_offset is None:
            wrapper = b"".join(self._runs.images.read(*piece) for piece in pieces)
            header = header._replace(base_offset=Batch.parse(wrapper, 0, is_valid=True).base_offset)
        return PiecedBatch(header, b"", pieces, How.JOINED if len(pieces) == 2 else How.JOINED_3)
