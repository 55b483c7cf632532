"""Fills holes between extents: from another replica, or with what is out of order in a log."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from operator import attrgetter

from kseg.log.salvage.extents import Extent, ExtentBatches, ExtentJoin, joined_neighbours

_BLOCK = 512
"""Extents that a block of `_Kept` begins with: what is put in moves a block, not all."""
_END = -1
_first_offset, _last_offset = attrgetter("first_offset"), attrgetter("last_offset")


def is_mere_gap(before: Extent | None, extent: Extent, *, is_compacted: bool) -> bool:
    """Whether nothing is missing before an extent but what compaction took."""
    if before is not None and extent.first_offset == before.last_offset + 1:
        return True
    return is_compacted and not extent.follows_loss


def filled(kept: list[Extent], rising: list[Extent], batches: ExtentBatches, *, is_compacted: bool) -> list[Extent]:
    """Extents with the holes between them, and what follows them, filled from others; both rise."""
    cutter = _Cutter(rising, batches)
    found: list[Extent] = []
    for before, extent in pairwise((None, *kept)):
        assert extent is not None
        if not is_mere_gap(before, extent, is_compacted=is_compacted):
            found += cutter.parts(0 if before is None else before.last_offset + 1, extent.first_offset - 1)
        found.append(extent)
    return [*found, *cutter.parts(kept[-1].last_offset + 1 if kept else 0, None)]


class _Cutter:
    """Yields the parts of ordered extents that are completely between two offsets; ask for later ones later."""

    def __init__(self, rising: list[Extent], batches: ExtentBatches) -> None:
        self._rising = rising
        self._place = 0
        self._batches = batches
        self._left: Iterator[Extent] | None = None
        self._next: Extent | None = None

    def parts(self, first: int, last: int | None) -> Iterator[Extent]:
        """Extents, or parts of them, from one offset to another."""
        while self._place < len(self._rising):
            extent = self._rising[self._place]
            if last is not None and extent.first_offset > last:
                return
            if extent.first_offset >= first and (last is None or extent.last_offset <= last):
                yield extent
            elif extent.last_offset >= first:
                yield from self._part(extent, first, last)
                if last is not None and extent.last_offset > last:
                    return  # what follows may lie in a later hole
            self._place, self._left = self._place + 1, None

    def _part(self, extent: Extent, first: int, last: int | None) -> Iterator[Extent]:
        if self._left is None:
            self._left = self._batches.of(extent)
            self._next = next(self._left, None)
        join: ExtentJoin | None = None
        while self._next is not None and (last is None or self._next.last_offset <= last):
            if self._next.first_offset >= first:
                batch = self._next._replace(follows_loss=False)
                join = ExtentJoin(batch) if join is None else join.add(batch)
            self._next = next(self._left, None)
        if join is not None:
            yield join.extent()


def with_strays(kept: list[Extent], strays: Iterable[Extent], batches: ExtentBatches) -> list[Extent]:
    """Extents, plus those that are out of order in the log but fit into a hole between them or directly after them."""
    if not kept:
        return kept
    room = _Kept(kept)
    for extent in strays:
        room.take(extent, batches)
    return list(room)


class _Kept:
    """Extents in the order of their offsets, none of which overlap."""

    def __init__(self, extents: list[Extent]) -> None:
        self._blocks = [extents[at : at + _BLOCK] for at in range(0, len(extents), _BLOCK)]
        self._firsts = [block[0].first_offset for block in self._blocks]

    def __iter__(self) -> Iterator[Extent]:
        for block in self._blocks:
            yield from block

    def take(self, extent: Extent, batches: ExtentBatches) -> None:
        """Adds an extent, or those of its batches for which there is room."""
        hole = self._hole(extent)
        if hole is not None and (hole != _END or extent.first_offset == self._end + 1):
            self._add(extent)
        elif extent.batch_count > 1:
            for part in list(self._parts(extent, batches)):
                self._add(part)

    @property
    def _end(self) -> int:
        return self._blocks[-1][-1].last_offset

    def _parts(self, extent: Extent, batches: ExtentBatches) -> Iterator[Extent]:
        """What goes into each hole; after the last extent only what follows it directly."""
        join: ExtentJoin | None = None
        joined_in: int | None = None
        for whole in batches.of(extent):
            batch = whole._replace(follows_loss=False)
            hole = self._hole(batch)
            if join is not None and hole == joined_in:
                join.add(batch)
                continue
            if join is not None:
                yield join.extent()
            join, joined_in = (None if hole is None else ExtentJoin(batch)), hole
            if hole == _END and batch.first_offset != self._end + 1:
                return
        if join is not None:
            yield join.extent()

    def _hole(self, extent: Extent) -> int | None:
        """The hole for an extent, named by the first offset after it, or _END; None if there is none."""
        number = bisect_right(self._firsts, extent.first_offset) - 1
        if number < 0:
            following = self._firsts[0]
            return following if extent.last_offset < following else None
        block = self._blocks[number]
        place = bisect_right(block, extent.first_offset, key=_first_offset)
        if block[place - 1].last_offset >= extent.first_offset:
            return None
        if place == len(block) and number + 1 == len(self._blocks):
            return _END
        following = block[place].first_offset if place < len(block) else self._firsts[number + 1]
        return following if extent.last_offset < following else None

    def _add(self, extent: Extent) -> None:
        number = max(bisect_right(self._firsts, extent.first_offset) - 1, 0)
        block = self._blocks[number]
        insort(block, extent, key=_first_offset)
        if len(block) > 2 * _BLOCK:
            self._blocks[number : number + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._firsts.insert(number + 1, block[_BLOCK].first_offset)
        self._firsts[number] = block[0].first_offset


# --- what is left over ------------------------------------------------------------------------------------------------


def judge_rest(rests: Iterable[list[Extent]], kept: list[Extent], batches: ExtentBatches) -> tuple[int, list[Extent]]:
    """Of intact batches outside the chains: the count of those that are kept elsewhere, and the others."""
    own = _ExtentPositions(kept)
    left = [batch for rest in rests for extent in rest for batch in batches.of(extent) if not own.hold(batch)]
    copies = _copies(left, kept, batches)
    unplaced = [batch for number, batch in enumerate(left) if number not in copies]
    return len(copies), list(joined_neighbours(unplaced))


class _ExtentPositions:
    """Which bytes of which log are kept."""

    def __init__(self, kept: list[Extent]) -> None:
        self._ends: dict[object, list[tuple[int, int]]] = defaultdict(list)
        for extent in kept:
            self._ends[extent.log].append((extent.position, extent.end))
        for ends in self._ends.values():
            ends.sort()

    def hold(self, batch: Extent) -> bool:
        """Whether a batch is among them."""
        ends = self._ends.get(batch.log, [])
        place = bisect_right(ends, (batch.position, batch.end)) - 1
        later = ends[place + 1] if place + 1 < len(ends) else None
        is_first = later is not None and later[0] == batch.position
        return is_first or (place >= 0 and batch.position < ends[place][1])


def _copies(left: list[Extent], kept: list[Extent], batches: ExtentBatches) -> set[int]:
    """Numbers of the batches of which a kept one is a copy, byte for byte: it has the same last offset."""
    by_extent: dict[int, list[int]] = defaultdict(list)
    for number in sorted(range(len(left)), key=lambda number: left[number].last_offset):
        place = bisect_right(kept, left[number].last_offset, key=_first_offset) - 1
        if place >= 0 and left[number].last_offset <= kept[place].last_offset:
            by_extent[place].append(number)
    found: set[int] = set()
    for place, numbers in by_extent.items():
        asked: dict[int, list[int]] = defaultdict(list)
        for number in numbers:
            asked[left[number].last_offset].append(number)
        for batch in batches.of(kept[place]):
            same = [number for number in asked.get(batch.last_offset, ()) if left[number].size == batch.size]
            if same:
                raw = batches.read(batch)
                found.update(number for number in same if batches.read(left[number]) == raw)
    return found
