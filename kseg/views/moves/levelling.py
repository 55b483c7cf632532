"""Levels directories: which things to move from the fullest ones to the emptiest ones, as few bytes as may be."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

LEAST_GAIN = 0.1
"""What a move must gain for each of its bytes: a large one that levels little isn't worth the work of the disks."""


class Load(NamedTuple):
    """Something that lies in a directory and may be moved: its size first, so that loads are sorted by it."""

    size: int
    name: tuple[str, int]


@dataclass(slots=True)
class Shelf:
    """A directory while moves are planned.

    size: bytes in it, what can't be moved included. weight: its share of the level: 1, or its disk's capacity. room:
    bytes that still fit in, None if that isn't known. is_target: whether it may take anything. movable: sorted.
    """

    size: int
    weight: int = 1
    room: int | None = None
    is_target: bool = True
    movable: list[Load] = field(default_factory=list)

    @property
    def fill(self) -> float:
        """How full it is, for its weight."""
        return self.size / self.weight


class Step(NamedTuple):
    """A move from one shelf to another, both by their places in the list of shelves."""

    load: Load
    source: int
    target: int


def level(shelves: list[Shelf], within: float) -> Iterator[Step]:
    """Moves loads until no shelf is fuller than the level by more than a share of it, or no move is worth it.

    Each load is moved at most once, from the fullest shelf that has one to the emptiest that takes it. Changes the
    shelves.
    """
    bound = sum(shelf.size for shelf in shelves) / max(sum(shelf.weight for shelf in shelves), 1) * (1 + within)
    while step := _next_step(shelves, bound):
        source, target = shelves[step.source], shelves[step.target]
        source.movable.remove(step.load)
        source.size -= step.load.size
        target.size += step.load.size
        if target.room is not None:
            target.room -= step.load.size
        yield step


def _next_step(shelves: list[Shelf], bound: float) -> Step | None:
    by_fill = sorted(range(len(shelves)), key=lambda number: shelves[number].fill)
    targets = [number for number in by_fill if shelves[number].is_target]
    for source in reversed(by_fill):
        if shelves[source].fill <= bound:
            return None
        for target in targets:
            load = _best_load(shelves[source], shelves[target])
            if load is not None:
                return Step(load, source, target)
    return None


def _best_load(source: Shelf, target: Shelf) -> Load | None:
    """The load whose move lowers the fuller of two shelves most for its size; None if none is worth it."""
    gap = source.fill - target.fill
    room = gap * target.weight if target.room is None else min(gap * target.weight, target.room + 1)
    ideal = min(gap * source.weight * target.weight / (source.weight + target.weight), room)
    near = bisect_left(source.movable, (ideal,))
    sizes = {load.size for load in source.movable[max(near - 1, 0) : near + 1] if 0 < load.size < room}
    worth = {size: _gain(source, target, size) - LEAST_GAIN * size for size in sizes}
    best = max(sorted(worth), key=lambda size: worth[size], default=None)
    return None if best is None or worth[best] <= 0 else source.movable[bisect_left(source.movable, (best,))]


def _gain(source: Shelf, target: Shelf, size: int) -> float:
    """By how many bytes of the source the fuller of two shelves becomes less full by a move."""
    fuller = max((source.size - size) / source.weight, (target.size + size) / target.weight)
    return (source.fill - fuller) * source.weight
