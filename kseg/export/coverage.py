"""Coverage: ranges of a partition's offsets that are accounted for, wanted or lost."""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate

from kseg.export.settings import OffsetRange
from kseg.kernel.contract import LEAST, MOST


@dataclass(frozen=True, slots=True)
class Coverage:
    """Offsets of a partition, as ranges in their original order.

    Adjacent ranges stay separate, since their border is the end of an account. Ranges may overlap before `union`.
    """

    ranges: tuple[OffsetRange, ...] = ()

    @classmethod
    def join(cls, parts: "Sequence[Coverage]") -> "Coverage":
        """Return the ranges of all parts."""
        return cls(tuple(each for part in parts for each in part.ranges))

    def __add__(self, other: "Coverage") -> "Coverage":
        return Coverage((*self.ranges, *other.ranges))

    @property
    def count(self) -> int:
        """The number of offsets in the ranges, each of which has an end."""
        return sum(part.count for part in self.ranges)

    @property
    def hull(self) -> OffsetRange | None:
        """Return the range from the lowest to the highest offset, or None if it isn't known."""
        known = [(part.first, part.end) for part in self.ranges if part.first is not None and part.end is not None]
        return OffsetRange(min(first for first, _ in known), max(end for _, end in known)) if known else None

    def missing(self, wanted: OffsetRange) -> "Coverage":
        """Return the parts of a range outside of all these ranges, the lowest first."""
        return Coverage(tuple(_missing(wanted, self.ranges)))

    def without(self, other: "Coverage") -> "Coverage":
        """Return the offsets of these ranges outside of all the others."""
        present = sorted(other.ranges, key=_first)
        reached = list(accumulate((MOST if each.end is None else each.end for each in present), max))
        found: list[OffsetRange] = []
        for part in self.ranges:
            if part.count:
                begin = 0 if part.first is None else bisect_right(reached, part.first)
                end = len(present) if part.end is None else bisect_left(present, part.end, begin, key=_first)
                found += _missing(part, present[begin:end])
        return Coverage(tuple(found))

    def union(self) -> "Coverage":
        """Return the same offsets without overlaps."""
        found: list[OffsetRange] = []
        taken: list[OffsetRange] = []
        for part in self.ranges:
            if part.count:
                begin = max(bisect_right(taken, _first(part), key=_first) - 1, 0)
                end = len(taken) if part.end is None else bisect_left(taken, part.end, begin, key=_first)
                for piece in list(_missing(part, taken[begin:end])):
                    found.append(piece)
                    insort(taken, piece, key=_first)
        return Coverage(tuple(found))

    def holds(self, part: OffsetRange) -> bool:
        """Return True if the ranges cover a given range completely."""
        return not self.missing(part).ranges

    def meets(self, part: OffsetRange) -> bool:
        """Return True if the ranges overlap a given range, or if that range is empty."""
        some = Coverage(tuple(each for each in self.ranges if each.end is None or each.count))
        return some.missing(part).ranges != (part,)

    def ends_at(self, offset: int | None) -> bool:
        """Return True if a range ends at an offset."""
        return any(part.end == offset for part in self.ranges)

    def pairs(self) -> list[tuple[int, int]]:
        """Return the first offsets and the ends."""
        return [(part.first or 0, part.end or 0) for part in self.ranges]


def _missing(wanted: OffsetRange, present: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    first = wanted.first
    for part in sorted(present, key=_first):
        start = _first(part)
        if wanted.end is not None and start >= wanted.end:
            break
        if start > (first or 0):
            yield OffsetRange(first, start)
        if part.end is None:
            return
        first = max(first or 0, part.end)
    if wanted.end is None or (first or 0) < wanted.end:
        yield OffsetRange(first, wanted.end)


def _first(part: OffsetRange) -> int:
    return LEAST if part.first is None else part.first
