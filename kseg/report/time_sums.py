"""Sums of stretches of time: joined to longer ones where there are many."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from kseg.kernel.statistics_contract import MOST_TIMES, TIME_STEPS


class TimeStretch(NamedTuple):
    """A stretch of time: when it begins, milliseconds since 1970; and its batches, their records, their bytes."""

    start: int
    batches: int
    records: int
    size: int


@dataclass(slots=True)
class TimeSums:
    """Sums by stretches of `step` milliseconds, those without batches left out."""

    step: int = TIME_STEPS[0]
    sums: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    @classmethod
    def of(cls, step: int, rows: Iterable[tuple[int, ...]]) -> "TimeSums":
        """Those that a kernel has made."""
        return cls(step, {number: (batches, records, size) for number, batches, records, size in rows})

    def add(self, other: "TimeSums") -> None:
        """Takes the sums of another one too."""
        self._lengthen(other.step)
        for number, sums in other.with_step(self.step).sums.items():
            known = self.sums.get(number, (0, 0, 0))
            self.sums[number] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        while len(self.sums) > MOST_TIMES:
            self._lengthen(_longer(self.step))

    def with_step(self, step: int) -> "TimeSums":
        """The same in longer stretches."""
        if step <= self.step:
            return self
        joined: dict[int, tuple[int, int, int]] = {}
        for number, sums in self.sums.items():
            place = number * self.step // step
            known = joined.get(place, (0, 0, 0))
            joined[place] = (known[0] + sums[0], known[1] + sums[1], known[2] + sums[2])
        return TimeSums(step, joined)

    def at_most(self, count: int) -> "TimeSums":
        """The same in stretches so long that there aren't more from the first to the last."""
        found = self
        while found.sums and max(found.sums) - min(found.sums) >= count:
            found = found.with_step(_longer(found.step))
        return found

    def stretches(self) -> Iterator[TimeStretch]:
        """The stretches in order, those without batches left out."""
        for number, sums in sorted(self.sums.items()):
            yield TimeStretch(number * self.step, *sums)

    def _lengthen(self, step: int) -> None:
        longer = self.with_step(step)
        self.step, self.sums = longer.step, longer.sums


def _longer(step: int) -> int:
    return min((each for each in TIME_STEPS if each > step), default=10 * step)
