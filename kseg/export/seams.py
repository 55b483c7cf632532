"""Where orders meet: damage that only one of them could see whole, and offsets that both have."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from kseg.export.result import Result
from kseg.export.tally import LostOffsets

if TYPE_CHECKING:
    from kseg.export.settings import OffsetRange


def joined_at_seams(results: Iterable[Result]) -> list[Result]:
    """The results, with what orders say of damage at their start set right.

    Where an index was wrong, an order began in the middle of a batch that the order before has read to its end: that is
    no damage. Where it is one, the offsets lost begin where the order before ended.
    """
    readers: dict[str, list[tuple[int, int, Result]]] = defaultdict(list)
    results = list(results)
    for result in results:
        for source in result.sources:
            readers[source.path].append((source.start, source.end, result))
    return [_joined(result, readers) for result in results]


def _joined(result: Result, readers: dict[str, list[tuple[int, int, Result]]]) -> Result:
    if not result.tally.losses:
        return result
    losses = []
    for loss in result.tally.losses:
        readers_here = readers[loss.segment]
        if not _is_read_by_another(loss, readers_here):
            first = _offset_before(loss.position, readers_here) if loss.first is None else loss.first
            losses.append(replace(loss, first=first))
    return replace(result, tally=replace(result.tally, losses=losses))


def _is_read_by_another(loss: LostOffsets, readers: list[tuple[int, int, Result]]) -> bool:
    """Whether the damage begins where an order does, and the order before has read the same bytes."""
    start, end = loss.position, loss.position + loss.size
    if loss.size == 0 or all(first != start for first, _, _ in readers):
        return False
    return any(first < start < last and end <= last for first, last, _ in readers)


def _offset_before(position: int, readers: list[tuple[int, int, Result]]) -> int | None:
    return next((result.tally.next_offset for _, end, result in readers if end == position), None)


def disordered_keys(results: Iterable[Result]) -> frozenset[tuple[str, int | None]]:
    """The partitions in which offsets don't rise, by the first results of their orders: in one, or from one to another.

    Orders that say so themselves have taken each offset once.
    """
    found = set()
    seen: dict[tuple[str, int | None, str, OffsetRange], list[tuple[int, int]]] = defaultdict(list)
    for result in results:
        if result.tally.disordered:
            found.add((result.topic, result.partition))
        first, end = result.tally.first_offset, result.tally.next_offset
        if first is not None and end is not None:
            seen[result.topic, result.partition, result.replica, result.wanted].append((first, end))
    for (topic, partition, _, _), spans in seen.items():
        if any(end > first for (_, end), (first, _) in pairwise(sorted(spans))):
            found.add((topic, partition))
    return frozenset(found)
