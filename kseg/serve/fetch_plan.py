"""Which byte ranges of a log answer a fetch: whole intact batches, as they lie. Knows neither sockets nor files."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from kseg import kernel
from kseg.formats.codes import DamageKind
from kseg.index.headers import header_of
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, VALID
from kseg.kernel.fold_contract import Event
from kseg.reading.damage import Damage
from kseg.reading.log_file import Run
from kseg.serve.stray_batches import StrayBatch

Item = Run | Damage | StrayBatch
"""What follows one another in a log, as far as a fetch sees it."""


class StoredRange(NamedTuple):
    """Bytes of a log: whole batches, one after another."""

    position: int
    size: int

    @property
    def end(self) -> int:
        """Position after the last byte."""
        return self.position + self.size


class Mend(NamedTuple):
    """Bytes that are sent in place of those at a position of a log."""

    position: int
    content: bytes

    @property
    def end(self) -> int:
        """Position after the last byte."""
        return self.position + len(self.content)


class FetchBounds(NamedTuple):
    """What of a log is wanted: batches that end at or after an offset and begin before another one, up to a size."""

    first_offset: int
    end_offset: int
    most_bytes: int
    takes_any_first: bool
    "The first batch is taken whatever its size, or else its reader would stay in front of it for ever (KIP-74)."
    stops_at_damage: bool = False
    "Nothing after damage is taken if there was something before it."


class Missed(NamedTuple):
    """Bytes that were passed over: what is wrong there, and the offsets between the batches on both sides of it.

    `next_offset` is None where no intact batch follows.
    """

    position: int
    detail: str
    first_offset: int
    next_offset: int | None


class Unsent(NamedTuple):
    """What isn't sent: where it stands, and why."""

    position: int
    detail: str


class FetchPlan(NamedTuple):
    """What to send of a log: ranges in file order, the offset that they begin with, and the next one after them.

    mends: what is changed in them, by position.
    """

    ranges: tuple[StoredRange, ...]
    first_offset: int
    next_offset: int
    missed: tuple[Missed, ...]
    mends: tuple[Mend, ...] = ()

    @property
    def size(self) -> int:
        """Bytes of all ranges."""
        return sum(each.size for each in self.ranges)

    @property
    def end(self) -> int:
        """Position after the last range; 0 without any."""
        return self.ranges[-1].end if self.ranges else 0


def plan_fetches(items: Iterable[Item], bounds: FetchBounds) -> Iterator[FetchPlan]:
    """The plan for a log's runs and damages, which begin at or before the first wanted batch.

    After it come the plans for what follows each, as long as there is something to send.
    """
    left = iter(items)
    held: tuple[Item, ...] = ()
    while True:
        planning = _Planning(bounds)
        for item in chain(held, left):
            if not planning.takes(item):
                held = (item,)
                break
        else:
            held = ()
        plan = FetchPlan(tuple(planning.ranges), planning.first_offset, planning.next_offset, tuple(planning.missed))
        yield plan
        if not (held and plan.ranges):
            return
        bounds = bounds._replace(first_offset=plan.next_offset)


class _Planning:
    def __init__(self, bounds: FetchBounds) -> None:
        self.ranges: list[StoredRange] = []
        self.first_offset = self.next_offset = bounds.first_offset
        self.missed: list[Missed] = []
        self._bounds = bounds
        self._left = bounds.most_bytes
        self._next_passed = bounds.first_offset

    def takes(self, item: Item) -> bool:
        """Takes what is wanted of a run, or notes damage; whether more may follow."""
        damage = damage_of(item)
        if damage is not None:
            return self._pass_over(damage)
        if not isinstance(item, Run):
            return True
        first = 0 if self.ranges else _first_reaching(item, self._bounds.first_offset)
        if first == item.row_count:
            self._next_passed = header_of(item, item.row_count - 1).last_offset + 1
            self.missed.clear()  # it lies before what is wanted
            return True
        self._note_next(item, first)
        last = self._first_beyond(item, first)
        taken = self._fitting(item, first, last)
        if taken > first:
            self._add(item, first, taken)
        return taken == item.row_count

    def _pass_over(self, damage: Unsent) -> bool:
        if self.ranges and self._bounds.stops_at_damage:
            return False
        known = self.next_offset if self.ranges else max(self._next_passed, self._bounds.first_offset)
        self.missed.append(Missed(damage.position, damage.detail, known, None))
        return True

    def _note_next(self, run: Run, row: int) -> None:
        """Notes with which offset the log goes on after damage; forgets damage that lies before what is wanted."""
        if self.missed and self.missed[-1].next_offset is None:
            following = header_of(run, row).first_offset
            if not self.ranges and following <= self._bounds.first_offset:
                self.missed.clear()
            self.missed = [
                each._replace(next_offset=following) if each.next_offset is None else each for each in self.missed
            ]

    def _first_beyond(self, run: Run, first: int) -> int:
        """The first row from there on that begins at or after the end offset; the row count if none does."""
        end = self._bounds.end_offset
        if header_of(run, run.row_count - 1).last_offset < end:
            return run.row_count
        row = _first_reaching(run, end, first)
        while row < run.row_count and header_of(run, row).first_offset < end:
            row += 1
        return row

    def _fitting(self, run: Run, first: int, last: int) -> int:
        """The row before which rows from the first one on don't take more bytes than are left."""
        start = run.rows[first * ROW + START]
        low, high = first, last
        while low < high:
            middle = (low + high + 1) // 2
            if _end_of_row(run, middle - 1) - start <= self._left:
                low = middle
            else:
                high = middle - 1
        is_first = low == first < last and not self.ranges and self._bounds.takes_any_first
        return first + 1 if is_first else low

    def _add(self, run: Run, first: int, taken: int) -> None:
        start = run.rows[first * ROW + START]
        added = StoredRange(run.position + start, _end_of_row(run, taken - 1) - start)
        if not self.ranges:
            self.first_offset = header_of(run, first).first_offset
        if self.ranges and self.ranges[-1].end == added.position:
            added = StoredRange(self.ranges[-1].position, self.ranges.pop().size + added.size)
        self.ranges.append(added)
        self._left -= _end_of_row(run, taken - 1) - start
        self.next_offset = header_of(run, taken - 1).last_offset + 1


def damage_of(item: Item) -> Unsent | None:
    """What isn't sent, and why; None for intact batches, and for the zeros of a preallocated file."""
    if isinstance(item, StrayBatch):
        return Unsent(item.position, item.detail)
    if isinstance(item, Damage):
        is_unused = item.kind is DamageKind.ZERO_TAIL
        return None if is_unused else Unsent(item.position, f"{item.kind}: {item.detail}")
    return None if item.rows[VALID] else Unsent(item.position + item.rows[START], f"{DamageKind.BAD_CRC}: of a batch")


def _end_of_row(run: Run, row: int) -> int:
    end: int = run.rows[row * ROW + START] + run.rows[row * ROW + SIZE]
    return end


def _first_reaching(run: Run, offset: int, first: int = 0) -> int:
    """The first row from there on whose batch ends at or after an offset; the row count if none does."""
    fold = kernel.load().HeaderFold(Event.BOUND)
    fold.passes_legacy, fold.offset_bound = True, min(max(offset, LEAST), MOST)
    row, _ = fold.fold(run.buffer, run.rows, first, run.row_count, run.position)
    return row
