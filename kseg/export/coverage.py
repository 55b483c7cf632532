"""Ranges of offsets: which are accounted for, which are lost, which are missing."""

from collections.abc import Iterable, Iterator

from kseg.export.settings import OffsetRange
from kseg.export.tally import LostOffsets, Tally
from kseg.kernel.contract import LEAST


def missing(wanted: OffsetRange, present: Iterable[OffsetRange]) -> Iterator[OffsetRange]:
    """The parts of a range that lie in none of the others, from the lowest on."""
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


def common(one: OffsetRange, other: OffsetRange) -> OffsetRange:
    """The offsets that are in both ranges."""
    firsts = [first for first in (one.first, other.first) if first is not None]
    ends = [end for end in (one.end, other.end) if end is not None]
    return OffsetRange(max(firsts, default=None), min(ends, default=None))


def _first(part: OffsetRange) -> int:
    return LEAST if part.first is None else part.first


def union(parts: Iterable[OffsetRange]) -> list[OffsetRange]:
    """Ranges without overlap that hold the same offsets."""
    joined: list[OffsetRange] = []
    for part in parts:
        if count(part):
            joined += list(missing(part, joined))
    return joined


def count(part: OffsetRange) -> int:
    """Offsets of a range that has an end."""
    return max((part.end or 0) - (part.first or 0), 0)


def intact(tally: Tally) -> list[OffsetRange]:
    """The offsets that an order accounts for, without those that it lost or missed, and without holes."""
    if tally.first_offset is None or tally.next_offset is None:
        return []
    first = tally.first_offset + tally.missed
    if first >= tally.next_offset:
        return []
    losses = [OffsetRange(loss.first, loss.end) for loss in tally.losses if loss.count]
    return list(missing(OffsetRange(first, tally.next_offset), [*losses, *tally.holes]))


def missed(tally: Tally) -> list[OffsetRange]:
    """The offsets that the log no longer had for an order."""
    first = tally.first_offset
    return [] if first is None or not tally.missed else [OffsetRange(first, first + tally.missed)]


def damaged(tallies: Iterable[Tally], present: list[OffsetRange]) -> tuple[list[OffsetRange], bool]:
    """The offsets that were damaged in any copy, and whether none is known after some damage.

    present: what all orders account for. A loss without an end goes on to what follows there.
    """
    ranges, is_open = [], False
    for loss in (loss for tally in tallies for loss in tally.losses if not loss.is_harmless):
        resolved = _resolved(loss, present)
        if resolved is None:
            is_open = True
        else:
            ranges.append(resolved)
    return union(ranges), is_open


def _resolved(loss: LostOffsets, present: list[OffsetRange]) -> OffsetRange | None:
    first = loss.first
    if first is None or loss.end is not None:
        return None if first is None else OffsetRange(first, loss.end)
    if any((part.first or 0) <= first < (part.end or 0) for part in present):
        return OffsetRange(first, first)
    end = min((part.first for part in present if part.first is not None and part.first > first), default=None)
    return None if end is None else OffsetRange(first, end)


def explained(tallies: list[Tally]) -> list[OffsetRange]:
    """What the orders account for: from the first offset to the last, but what is lost.

    Gaps between orders count too: compaction left them, and another copy's older records must not fill them.
    """
    present = [part for tally in tallies for part in intact(tally)]
    if not present:
        return []
    hull = OffsetRange(min(part.first or 0 for part in present), max(part.end or 0 for part in present))
    taken, _ = damaged(tallies, present)
    lacked = [*taken, *(part for tally in tallies for part in (*missed(tally), *tally.holes))]
    lost = [part for loss in lacked for part in missing(loss, present)]
    return list(missing(hull, lost))
