"""Batches of a fetch: the readable ones within some offsets, with corrected lz4 frames for old clients."""

import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeVar

from kseg import kernel
from kseg.codecs.lz4 import right_checksum
from kseg.formats.codes import (
    KEY_LENGTH_POSITION,
    LENGTH,
    Codec,
    DamageKind,
    checksum_of,
)
from kseg.index.header_scan import header_of
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, VALID
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.reading.batch import BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, problem_damage, with_bodies
from kseg.reading.log_file import LogFile, Run

LeftOut = TypeVar("LeftOut")


def readable_batches(items: Iterable[Run | Damage]) -> Iterator[Run | Damage]:
    """Yield the same runs and damages, with a damage in place of each batch whose records can't all be read.

    Bodies are decompressed and records parsed, but not kept. A batch with a wrong CRC stays unchanged. A negative size
    other than -1 is damage too: librdkafka would request such a batch forever.
    """
    for item in items:
        if isinstance(item, Damage) or not item.rows[VALID]:
            yield item
        else:
            yield from split_run(item, _unreadable_rows(item))


def _unreadable_rows(run: Run) -> dict[int, Damage]:
    """Return the damages in the records of the batches of a run, by row."""
    found: dict[int, Damage] = {}
    for piece in with_bodies(iter((run,)), 0):
        if isinstance(piece, Slice):
            fold = kernel.load().HeaderFold(Event.RECORDS)
            row, _ = fold.fold(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, piece.first)
            if row < piece.last or piece.damages:
                found |= _odd_nulls(piece) | _problems(piece)
    return {row: damage._replace(size=run.rows[row * ROW + SIZE]) for row, damage in found.items()}


_ODD_NULL = "a record has a key, value or header with a negative size other than -1, the size of null"


def _odd_nulls(piece: Slice) -> dict[int, Damage]:
    """Return the damages of the batches of a slice with a negative size other than -1."""
    run, row = piece.run, piece.first
    found: dict[int, Damage] = {}
    fold = kernel.load().HeaderFold(Event.ODD_NULL)
    fold.passes_legacy = True
    while True:
        row, events = fold.fold(run.buffer, run.rows, row, piece.last, run.position, piece.bodies, piece.first)
        if row == piece.last:
            return found
        if events & Event.ODD_NULL:
            found[row] = Damage(DamageKind.BAD_RECORD, run.position + run.rows[row * ROW + START], 0, _ODD_NULL)
        row += 1


def _problems(piece: Slice) -> dict[int, Damage]:
    """Return the damages in a slice by parsing all of its records."""
    run = piece.run
    columns = kernel.load().columns(
        run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, None, piece.first
    )
    rows_at = {run.position + run.rows[row * ROW + START]: row for row in range(piece.first, piece.last)}
    found = {rows_at[problem.position]: problem_damage(problem) for problem in columns.problems}
    found |= dict(piece.damages)
    valid = memoryview(columns.valid).cast("B")
    if 0 in valid.tobytes():
        rows = memoryview(columns.rows).cast("B").cast("i")
        for row in {rows[number] for number, holds in enumerate(valid) if not holds} - found.keys():
            position = run.position + run.rows[row * ROW + START]
            found[row] = Damage(DamageKind.BAD_CRC, position, 0, "the CRC of an inner message is wrong")
    return found


def split_run(run: Run, without: Mapping[int, LeftOut]) -> Iterator[Run | LeftOut]:
    """Yield a run without some of its batches, by row, and their replacements."""
    first = 0
    for row in sorted(without):
        yield from _part(run, first, row)
        yield without[row]
        first = row + 1
    yield from _part(run, first, run.row_count)


def _part(run: Run, first: int, last: int) -> Iterator[Run]:
    if last > first:
        yield (
            run
            if last - first == run.row_count
            else run._replace(rows=run.rows[first * ROW : last * ROW], row_count=last - first)
        )


class StrayBatch(NamedTuple):
    """A batch that is omitted: its position, its bytes, and the reason."""

    position: int
    size: int
    detail: str


def without_strays(items: Iterable[Run | Damage], next_base: int) -> Iterator[Run | Damage | StrayBatch]:
    """Yield the same runs and damages, with a stray in place of each batch whose offsets are too large.

    A batch is a stray if it reaches the next segment's base offset (`next_base`), or if the batches after it continue
    with lower offsets.
    """
    for item in items:
        if isinstance(item, Damage) or not item.rows[VALID]:
            yield item
        else:
            yield from split_run(item, _strays(item, next_base))


def _strays(run: Run, next_base: int) -> dict[int, StrayBatch]:
    """Return the strays of a run by row."""
    found = {}
    fold = _fold(Event.BOUND)
    fold.offset_bound = min(max(next_base, LEAST), MOST)
    for row in _stops(fold, run):
        if header_of(run, row).last_offset >= next_base:  # other limits apply, too
            found[row] = _stray(run, row, f"the next segment begins at {next_base}")
    for row in _stops(_fold(Event.FALL), run):
        before = next((each for each in range(row - 2, -1, -1) if each not in found), None)
        if before is None or row - 1 in found:
            continue
        if _fits_between(header_of(run, before), header_of(run, row - 1), header_of(run, row)):
            following = header_of(run, row).first_offset
            found[row - 1] = _stray(run, row - 1, f"the next batch begins at offset {following}")
    return found


def _fits_between(before: BatchHeader, batch: BatchHeader, following: BatchHeader) -> bool:
    """Return True if the offsets between two batches are enough for the batch between them."""
    span = batch.last_offset - batch.first_offset + 1
    return following.first_offset <= batch.last_offset and following.first_offset - before.last_offset > span


def _fold(watched: Event) -> HeaderFold:
    fold = kernel.load().HeaderFold(watched)
    fold.passes_legacy = True
    return fold


def _stops(fold: HeaderFold, run: Run) -> Iterator[int]:
    """Yield the rows at which a fold stops; it continues after each."""
    row = 0
    while True:
        row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        if row == run.row_count:
            return
        yield row
        fold.next_offset = header_of(run, row).last_offset + 1
        row += 1


def _stray(run: Run, row: int, why: str) -> StrayBatch:
    header = header_of(run, row)
    detail = f"offsets-fall: a batch with offsets {header.first_offset} to {header.last_offset}, but {why}"
    return StrayBatch(header.position, run.rows[row * ROW + SIZE], detail)


Item = Run | Damage | StrayBatch
"""An item of a log as seen by a fetch."""


class StoredRange(NamedTuple):
    """A range of a log: complete batches, in order."""

    position: int
    size: int

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.position + self.size


class Mend(NamedTuple):
    """Bytes that are sent instead of those at a position of a log."""

    position: int
    content: bytes

    @property
    def end(self) -> int:
        """The position after the last byte."""
        return self.position + len(self.content)


class FetchBounds(NamedTuple):
    """The wanted part of a log: batches that end at or after an offset and begin before another one, up to a size."""

    first_offset: int
    end_offset: int
    most_bytes: int
    takes_any_first: bool
    """Take the first batch whatever its size, or its reader would never get past it (KIP-74)."""
    stops_at_damage: bool = False
    """Take nothing after damage if there was something before it."""


class Missed(NamedTuple):
    """Skipped bytes: the problem, and the offsets between the intact batches on both sides.

    `next_offset` is None if no intact batch follows.
    """

    position: int
    detail: str
    first_offset: int
    next_offset: int | None


class Unsent(NamedTuple):
    """Bytes that aren't sent, with their position and the reason."""

    position: int
    detail: str


class FetchPlan(NamedTuple):
    """Ranges of a log to send, in file order, with their offsets.

    mends: changed bytes in them, by position.
    """

    ranges: tuple[StoredRange, ...]
    first_offset: int
    next_offset: int
    missed: tuple[Missed, ...]
    mends: tuple[Mend, ...] = ()

    @property
    def offsets(self) -> range:
        """The offsets of the ranges."""
        return range(self.first_offset, self.next_offset)

    @property
    def size(self) -> int:
        """The size of all ranges in bytes."""
        return sum(each.size for each in self.ranges)

    @property
    def end(self) -> int:
        """The position after the last range; 0 without any."""
        return self.ranges[-1].end if self.ranges else 0


def plan_fetches(items: Iterable[Item], bounds: FetchBounds) -> Iterator[FetchPlan]:
    """Yield the plan for a log's runs and damages, which begin at or before the first wanted batch.

    Plans for the following fetches come after it, as long as there is something to send.
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
        self._room = bounds.most_bytes
        self._next_passed = bounds.first_offset

    def takes(self, item: Item) -> bool:
        """Take the wanted rows of a run, or note damage; return whether more may follow."""
        damage = damage_of(item)
        if damage is not None:
            return self._pass_over(damage)
        if not isinstance(item, Run):
            return True
        first = 0 if self.ranges else _first_reaching(item, self._bounds.first_offset)
        if first == item.row_count:
            self._next_passed = header_of(item, item.row_count - 1).last_offset + 1
            self.missed.clear()  # it precedes the wanted batches
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
        """Note the offset after damage; forget damage that precedes the wanted batches."""
        if self.missed and self.missed[-1].next_offset is None:
            following = header_of(run, row).first_offset
            if not self.ranges and following <= self._bounds.first_offset:
                self.missed.clear()
            self.missed = [
                each._replace(next_offset=following) if each.next_offset is None else each for each in self.missed
            ]

    def _first_beyond(self, run: Run, first: int) -> int:
        """Return the first row from a row on that begins at or after the end offset; the row count if none does."""
        end = self._bounds.end_offset
        if header_of(run, run.row_count - 1).last_offset < end:
            return run.row_count
        row = _first_reaching(run, end, first)
        while row < run.row_count and header_of(run, row).first_offset < end:
            row += 1
        return row

    def _fitting(self, run: Run, first: int, last: int) -> int:
        """Return the end of the rows from the first one on that fit into the remaining bytes."""
        start = run.rows[first * ROW + START]
        low, high = first, last
        while low < high:
            middle = (low + high + 1) // 2
            if _end_of_row(run, middle - 1) - start <= self._room:
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
        self._room -= _end_of_row(run, taken - 1) - start
        self.next_offset = header_of(run, taken - 1).last_offset + 1


def damage_of(item: Item) -> Unsent | None:
    """Return the unsent bytes with the reason, or None for intact batches and for the zeros of a preallocated file."""
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
    """Return the first row from a row on whose batch ends at or after an offset; the row count if none does."""
    fold = kernel.load().HeaderFold(Event.BOUND)
    fold.passes_legacy, fold.offset_bound = True, min(max(offset, LEAST), MOST)
    row, _ = fold.fold(run.buffer, run.rows, first, run.row_count, run.position)
    return row


_MAGIC = 0


def mends_in(log_file: LogFile, ranges: Sequence[StoredRange]) -> Iterator[Mend]:
    """Yield the changes in some ranges of a log, by position; only messages with a wrong frame checksum have any."""
    for each in ranges:
        for item in log_file.runs(each.position):
            if isinstance(item, Damage) or item.position + item.rows[START] >= each.end:
                break
            if item.codecs >> Codec.LZ4 & 1:
                yield from (mend for mend in _mends_in_run(item) if mend.position < each.end)


def _mends_in_run(run: Run) -> Iterator[Mend]:
    for row in range(run.row_count):
        header = header_of(run, row)
        if header.magic == _MAGIC and header.codec == Codec.LZ4:
            start = run.rows[row * ROW + START]
            message = bytes(run.buffer[start : start + header.size])
            yield from (Mend(header.position + at, content) for at, content in _mends_of(message))


def _mends_of(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the corrected CRC and frame checksum of a message with their positions; nothing if the latter is right."""
    body = _position_of_body(message)
    found = right_checksum(message[body:])
    if found is None or message[body + found[0]] == found[1][0]:
        return
    at = body + found[0]
    mended = message[:at] + found[1] + message[at + 1 :]
    crc = checksum_of(_MAGIC)
    yield crc.field.position, zlib.crc32(mended[crc.covers_from :]).to_bytes(4, "big")
    yield at, found[1]


def _position_of_body(message: bytes) -> int:
    key_length = KEY_LENGTH_POSITION[_MAGIC]
    return key_length + 2 * LENGTH.size + max(LENGTH.read(message, key_length), 0)


def pieces_of(ranges: Sequence[StoredRange], mends: Sequence[Mend]) -> Iterator[StoredRange | bytes]:
    """Yield the contents of some ranges in order: stretches of the log, and the changed bytes between them."""
    left = list(reversed(mends))
    for each in ranges:
        position = each.position
        while left and left[-1].position < each.end:
            mend = left.pop()
            if mend.position > position:
                yield StoredRange(position, mend.position - position)
            yield mend.content
            position = mend.end
        if position < each.end:
            yield StoredRange(position, each.end - position)
