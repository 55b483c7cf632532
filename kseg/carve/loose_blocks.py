"""Loose blocks: blocks without any found batch, in which the middle or the rest of a torn batch may be."""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from itertools import compress
from typing import NamedTuple

from kseg import kernel
from kseg.carve.runs import Runs, TornHead
from kseg.formats.header_fields import BATCH_BASE_OFFSET
from kseg.reading.batch import Batch

MOST_LOOSE = 1 << 17
"""The most loose blocks that are read, the nearest to torn batches."""
MOST_TESTS = 10**9
"""The most tests of a block against a CRC, for all torn batches together."""
_SURE_TESTS = 1 << 22
"""The most tests for a batch without a codec: one in 1000 would find a wrong block, and its records may look right."""
_PIECE = 1 << 20


class Ends(NamedTuple):
    """The beginning of a torn batch, and the last bytes that may be its.

    end: the position after these; None if its rest is loose, and no batch follows. tail: the run that begins there;
    None if a torn batch or none does.
    """

    head: TornHead
    beginning: bytes
    end: int | None
    tail: int | None
    ending: bytes


class LooseFit(NamedTuple):
    """A torn batch that is complete with loose blocks. pieces: start and end of each."""

    ends: Ends
    pieces: tuple[tuple[int, int], ...]


class LooseBlocks:
    """The positions and CRCs of loose blocks near some positions."""

    def __init__(self, runs: Runs, taken: Iterable[tuple[int, int]], near: list[int]) -> None:
        """Read the blocks. taken: start and end of other bytes of batches, such as pieces of joined ones."""
        self._runs = runs
        self._positions, self._crcs = array("q"), array("I", [0])
        self._heads: dict[tuple[int, int], list[int]] = {}
        gaps = list(_gaps(runs, sorted(taken)))
        blocks = sorted({position + runs.room_after(position) for position in near})
        for start, end in _nearest(gaps, blocks, runs.block):
            self._add(start, end)
        kernel.load().chain_crcs(self._crcs, runs.block)

    def _add(self, start: int, end: int) -> None:
        block = self._runs.block
        size = max(_PIECE // block, 1) * block
        for position in range(start, end, size):
            content = self._runs.images.read(position, min(position + size, end))
            crcs = array("I", bytes(4 * (len(content) // block)))
            kernel.load().block_crcs(memoryview(content), block, crcs)
            self._positions.extend(compress(range(position, position + len(content), block), crcs))
            self._crcs.extend(filter(None, crcs))
            for at in kernel.load().find_heads(memoryview(content), block):
                self._heads.setdefault((at % block, BATCH_BASE_OFFSET.read(content, at)), []).append(position + at)

    def heads_at(self, place: int, base_offset: int) -> list[int]:
        """Return the positions of torn batches with an offset at a place in a loose block."""
        return self._heads.get((place, base_offset), [])

    def fits(self, tasks: list[Ends]) -> Iterator[LooseFit]:
        """Yield the batches that are complete with loose blocks in just one way."""
        found: dict[int, list[LooseFit]] = {}
        for ends in tasks:
            for fit in self._fits_of(ends, MOST_TESTS // len(tasks)):
                found.setdefault(ends.head.run, []).append(fit)
        single = [fits[0] for fits in found.values() if len({self._raw(fit) for fit in fits}) == 1]
        used: dict[tuple[str, int], int] = {}
        for fit in single:
            for key in _claims(fit):
                used[key] = used.get(key, 0) + 1
        yield from (fit for fit in single if all(used[key] == 1 for key in _claims(fit)))

    def _fits_of(self, ends: Ends, most_tests: int) -> Iterator[LooseFit]:
        """Yield the ways to complete a batch whose records can be read, with the nearest middles."""
        for pieces in (*self._with_break(ends), *self._with_middle(ends, most_tests)):
            fit = LooseFit(ends, pieces)
            if Batch.parse(self._raw(fit), ends.head.header.position, is_valid=True).problem() is None:
                yield fit

    def _with_break(self, ends: Ends) -> Iterator[tuple[tuple[int, int], ...]]:
        """Yield the two pieces of a batch before a torn one; those before runs are known."""
        header = ends.head.header
        if ends.end is None or ends.tail is not None:
            return
        block, first = self._runs.block, ends.head.room
        least = header.size - len(ends.ending)
        first += max(0, -(-(least - first) // block)) * block
        ending = memoryview(ends.ending.rjust(header.size, b"\0"))
        for cut in kernel.load().fit_breaks(memoryview(ends.beginning), ending, header.crc, first, block):
            yield (header.position, header.position + cut), (ends.end - header.size + cut, ends.end)

    def _with_middle(self, ends: Ends, most_tests: int) -> Iterator[tuple[tuple[int, int], ...]]:
        header, first, block = ends.head.header, ends.head.room, self._runs.block
        pairs = ((len(ends.beginning) - first) // block + 1) * (len(ends.ending) // block + 1)
        most = (most_tests if header.codec else min(most_tests, _SURE_TESTS)) // pairs
        place = bisect_left(self._positions, header.position)
        window = slice(max(place - most // 2, 0), place + most // 2)
        positions = memoryview(self._positions)[window]
        crcs = memoryview(self._crcs)[window.start : window.start + len(positions) + 1]
        for cut, number, count in kernel.load().find_middles(
            memoryview(ends.beginning), memoryview(ends.ending), header.size, header.crc, first, block, positions, crcs
        ):
            start, left = positions[number], header.size - cut
            pieces = (header.position, header.position + cut), (start, start + min(count * block, left))
            yield pieces if ends.end is None else (*pieces, (ends.end - left + count * block, ends.end))

    def _raw(self, fit: LooseFit) -> bytes:
        return b"".join(self._runs.images.read(*piece) for piece in fit.pieces)


def _claims(fit: LooseFit) -> Iterator[tuple[str, int]]:
    """Yield what only one batch can have: its tail, and each loose block."""
    if fit.ends.end is not None:
        yield "tail", fit.ends.end
    yield "block", fit.pieces[1][0]


def _gaps(runs: Runs, taken: list[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Yield the stretches of complete blocks between batches."""
    covered = sorted([*((run.start, run.end) for run in runs.runs), *taken])
    for image in runs.images:
        at, limit = image.base, image.base + image.size
        for start, end in covered[bisect_left(covered, (image.base, 0)) : bisect_left(covered, (limit, 0))]:
            yield from _blocks_between(at, start, runs)
            at = max(at, end)
        yield from _blocks_between(at, limit, runs)


def _blocks_between(start: int, end: int, runs: Runs) -> Iterator[tuple[int, int]]:
    first = start + runs.room_after(start)
    last = end - (end - first) % runs.block
    if first < last:
        yield first, last


def _nearest(gaps: list[tuple[int, int]], near: list[int], block: int) -> list[tuple[int, int]]:
    """Return the gaps; with more than MOST_LOOSE blocks, those parts that are nearest to some blocks."""
    distance = max((end for _, end in gaps), default=0) // block * block
    kept = list(_parts_near(gaps, near, distance))
    while sum(end - start for start, end in kept) > MOST_LOOSE * block:
        distance = distance // 2 // block * block
        kept = list(_parts_near(gaps, near, distance))
    return kept


def _parts_near(gaps: list[tuple[int, int]], near: list[int], distance: int) -> Iterator[tuple[int, int]]:
    """Yield the parts of gaps that are at most a distance away from one of some blocks."""
    for start, end in gaps:
        at = start
        for position in near[bisect_left(near, start - distance) : bisect_right(near, end + distance)]:
            low, high = max(at, position - distance), min(end, position + distance)
            if low < high:
                yield low, high
                at = high
            if at == end:
                break
