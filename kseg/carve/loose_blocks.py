"""Loose blocks: blocks without any found batch, in which the middle or the rest of a torn batch may be."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

from kseg.carve.piece_crcs import Beginning, PieceCrcs, Rest
from kseg.carve.runs import Runs, TornHead
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.header_fields import BATCH_BASE_OFFSET
from kseg.reading.batch import Batch

MOST_LOOSE = 1 << 17
"""The most loose blocks that are read, the nearest to torn batches."""
MOST_TESTS = 10**9
"""The most tests of blocks against a CRC, for all torn batches that are searched for at once."""
_ALL_TESTS = 16 * MOST_TESTS
"""The most tests for all torn batches: each joined one may show the next."""
_SURE_TESTS = 1 << 22
"""The most tests for a batch without a codec: one in 1000 would find a wrong block, and its records may look right.

All batches with records larger than a block share them, since a wrong block within a record leaves no trace.
"""
_PIECE = 1 << 20
Pieces = tuple[tuple[int, int], ...]


class Ends(NamedTuple):
    """The beginning of a torn batch, and bytes that may be the end of its rest.

    rest: None if its rest is loose, and no batch follows. tail: the run that begins after these; None if a torn batch
    or none does.
    """

    head: TornHead
    beginning: Beginning
    rest: Rest | None
    tail: int | None


class LooseFit(NamedTuple):
    """A torn batch that is complete with loose blocks. pieces: start and end of each."""

    ends: Ends
    pieces: Pieces


class LooseBlocks:
    """The positions and CRCs of loose blocks near some positions."""

    def __init__(self, runs: Runs, piece_crcs: PieceCrcs, taken: Iterable[tuple[int, int]], near: list[int]) -> None:
        """Read the blocks. taken: start and end of other bytes of batches, such as pieces of joined ones."""
        self._runs, self._piece_crcs = runs, piece_crcs
        self._positions, self._crcs = array("q"), array("I", [0])
        self._heads: dict[tuple[int, int], list[int]] = {}
        self._head_count, self._tests_left = 0, _ALL_TESTS
        gaps = list(_gaps(runs, sorted(taken)))
        blocks = sorted({position + runs.room_after(position) for position in near})
        for start, end in _nearest(gaps, blocks, runs.block):
            self._add(start, end)
        self._runs.kernel.chain_crcs(self._crcs, runs.block)

    def _add(self, start: int, end: int) -> None:
        block = self._runs.block
        size = max(_PIECE // block, 1) * block
        for position in range(start, end, size):
            content = self._runs.images.read(position, min(position + size, end))
            crcs = array("I", bytes(4 * (len(content) // block)))
            self._runs.kernel.block_crcs(memoryview(content), block, crcs)
            self._positions.extend(compress(range(position, position + len(content), block), crcs))
            self._crcs.extend(filter(None, crcs))
            heads = self._runs.kernel.find_heads(memoryview(content), block)
            self._head_count += len(heads)
            for at in heads if self._head_count <= MOST_LOOSE else ():
                self._heads.setdefault((at % block, BATCH_BASE_OFFSET.read(content, at)), []).append(position + at)

    def heads_at(self, place: int, base_offset: int) -> list[int]:
        """Return the positions of torn batches with an offset at a place in a loose block."""
        return self._heads.get((place, base_offset), [])

    def fits(self, tasks: list[Ends]) -> Iterator[LooseFit]:
        """Yield the batches that are complete with loose blocks in just one way."""
        found: dict[int, dict[Pieces, LooseFit]] = {}
        for ends, pieces in self._possible_fits(tasks):
            fits, merged = found.setdefault(ends.head.run, {}), tuple(_merge_adjacent(pieces))
            if merged not in fits:
                batch = Batch.parse(self._raw(merged), ends.head.header.position, is_valid=True)
                if batch.problem() is None:
                    fits[merged] = LooseFit(ends, pieces)
        single = [next(iter(fits.values())) for fits in found.values() if fits and self._are_equal(list(fits))]
        used: dict[tuple[str, int], int] = {}
        for fit in single:
            for key in _claims(fit):
                used[key] = used.get(key, 0) + 1
        yield from (fit for fit in single if all(used[key] == 1 for key in _claims(fit)))

    def _are_equal(self, ways: list[Pieces]) -> bool:
        """Return True if pieces at different places have the same bytes."""
        first = self._raw(ways[0]) if len(ways) > 1 else b""
        return all(self._raw(each) == first for each in ways[1:])

    def _raw(self, pieces: Pieces) -> bytes:
        return b"".join(self._runs.images.read(*piece) for piece in pieces)

    def _possible_fits(self, tasks: list[Ends]) -> Iterator[tuple[Ends, Pieces]]:
        """Yield the pieces with which batches have their CRC, in the order of the tasks."""
        middles: dict[int, list[Pieces]] = {}
        for number, pieces in self._middles(tasks):
            middles.setdefault(number, []).append(pieces)
        for number, ends in enumerate(tasks):
            for pieces in (*self._with_break(ends), *middles.get(number, ())):
                yield ends, pieces

    def _with_break(self, ends: Ends) -> Iterator[Pieces]:
        """Yield the two pieces of a batch before a torn one; those before runs are known."""
        if ends.rest is None or ends.tail is not None:
            return
        start, end, size = ends.beginning.header.position, ends.rest.end, ends.beginning.header.size
        for _, cut in self._piece_crcs.fits(ends.beginning, self._piece_crcs.table((ends.rest,))):
            yield (start, start + cut), (end - size + cut, end)

    def _middles(self, tasks: list[Ends]) -> Iterator[tuple[int, Pieces]]:
        """Yield tasks by their numbers, with the pieces of a batch whose middle or end is in loose blocks."""
        block, positions, searches = self._runs.block, self._positions, _Searches(self._runs.block)
        most_tests = min(MOST_TESTS, self._tests_left) // max(len(tasks), 1)
        unproven = sum(_may_hide_a_block(ends.head, block) for ends in tasks)
        for ends in tasks:
            place = bisect_left(positions, ends.beginning.header.position)
            sharing = unproven if _may_hide_a_block(ends.head, block) else 1
            most = most_tests if ends.head.header.codec else min(most_tests, _SURE_TESTS // sharing)
            self._tests_left -= searches.add(ends, most, place, len(positions))
        for number, at, first, count in self._runs.kernel.find_middles(
            searches.rows, searches.wanted, searches.rests, memoryview(positions), memoryview(self._crcs), block
        ):
            ends = tasks[number]
            header, cut = ends.beginning.header, ends.beginning.first + at * block
            start, left = positions[first], header.size - cut
            pieces = (header.position, header.position + cut), (start, start + min(count * block, left))
            last = () if ends.rest is None else ((ends.rest.end - left + count * block, ends.rest.end),)
            yield number, (*pieces, *last)


class _Searches:
    """The tables of `find_middles`. rows: values of OfMiddle for each search. wanted, rests: CRCs of each piece."""

    def __init__(self, block: int) -> None:
        self.rows, self.wanted, self.rests = array("q"), array("I"), array("I", [0])
        self._block = block
        self._places: dict[tuple[str, int, int], int] = {}

    def add(self, ends: Ends, most_tests: int, place: int, block_count: int) -> int:
        """Add a search in the blocks nearest to a place; return the number of its tests."""
        beginning, rest, block = ends.beginning, ends.rest, self._block
        left, breaks = beginning.header.size - beginning.first, len(beginning.crcs)
        padding, least = (-left % block, 0) if rest is None else (0, rest.least)
        most_blocks = (left + padding - least) // block
        rests = 1 if rest is None else max(min(len(rest.crcs), most_blocks + 1), 0)
        pairs = breaks * max(rests, 1)
        reach = most_tests // pairs // 2
        window = range(block_count)[max(place - reach, 0) : place + reach]
        first_break = self._place_of(self.wanted, ("beginning", beginning.header.position, breaks), beginning.crcs)
        first_rest = 0 if rest is None else self._place_of(self.rests, ("rest", rest.end, len(rest.crcs)), rest.crcs)
        places = first_break, breaks, first_rest, rests
        self.rows.extend((*places, most_blocks, least, padding, window.start, window.stop))
        return len(window) * pairs

    def _place_of(self, table: "array[int]", piece: tuple[str, int, int], crcs: "array[int]") -> int:
        """Return the place of a piece's CRCs in a table, to which they are added the first time."""
        place = self._places.setdefault(piece, len(table))
        if place == len(table):
            table.extend(crcs)
        return place


def _may_hide_a_block(head: TornHead, block: int) -> bool:
    """Return True if a wrong block may lie within one record of a torn batch, which could be read all the same."""
    header = head.header
    is_known = head.room >= BATCH_HEADER_SIZE
    return not header.codec and not (is_known and header.size < block * (header.records_count or 1))


def _merge_adjacent(pieces: Pieces) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a batch; two that follow each other in an image as one."""
    start, end = pieces[0]
    for piece in pieces[1:]:
        if piece[0] != end:
            yield start, end
            start = piece[0]
        end = piece[1]
    yield start, end


def _claims(fit: LooseFit) -> Iterator[tuple[str, int]]:
    """Yield what only one batch can have: its tail, and each loose block."""
    if fit.ends.rest is not None:
        yield "tail", fit.ends.rest.end
    yield "block", fit.pieces[1][0]


def _gaps(runs: Runs, taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of complete blocks between batches."""
    covered = sorted([*((run.start, run.end) for run in runs.runs), *taken])
    for image in runs.images:
        at, limit = image.base, image.base + image.size
        covered_here = covered[bisect_left(covered, (image.base, 0)) : bisect_left(covered, (limit, 0))]
        for start, end in (*covered_here, (limit, limit)):
            first, last = at + runs.room_after(at), start - runs.place_of(start)
            if first < last:
                yield first, last
            at = max(at, end)


def _nearest(gaps: list[tuple[int, int]], near: list[int], block: int) -> list[tuple[int, int]]:
    """Return the gaps; with more than MOST_LOOSE blocks, those parts that are nearest to some blocks."""
    distance = max((end for _, end in gaps), default=0) // block * block
    kept = gaps
    while sum(end - start for start, end in kept) > MOST_LOOSE * block:
        distance = distance // 2 // block * block
        kept = list(_parts_near(gaps, near, distance))
    return kept


def _parts_near(gaps: list[tuple[int, int]], near: list[int], distance: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of gaps that are at most a distance away from one of some blocks."""
    for start, end in gaps:
        at = start
        for number in range(bisect_left(near, start - distance), bisect_right(near, end + distance)):
            low, high = max(at, near[number] - distance), min(end, near[number] + distance)
            if low < high:
                yield low, high
                at = high
            if at == end:
                break
