"""Runs: batches that certainly are in one file in this order, and what a torn batch at either end shows."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

from kseg import kernel
from kseg.carve.images import Images
from kseg.carve.scan import FoundBatches
from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.formats.header_fields import BATCH_BASE_OFFSET, BATCH_HEADER_FIELDS, BATCH_MAGIC, LEAST_SIZES
from kseg.kernel.carve_contract import LARGEST_BATCH, SURE_BREAK, SURE_REST
from kseg.reading.batch import BatchHeader, parse_header

_MAGIC_END = BATCH_MAGIC.end
_DELTA_END = BATCH_HEADER_FIELDS.field("last_offset_delta").end
_LARGEST_GAP = 2**31
"""The largest distance of a torn head's offset from the preceding batch: offsets of a segment are no farther apart."""
_MOST_LOOKED_AT = 64
"""Rows of a run in which `is_cleaned` looks for traces of the log cleaner."""


class Blocks(NamedTuple):
    """Blocks of a file system: one begins at each position that is `phase` modulo `size`."""

    size: int
    phase: int = 0


class Run(NamedTuple):
    """Rows first … last - 1, as adjacent bytes from `start` to before `end`.

    missing: bytes of the first batch that are in the preceding block, if they are too few to tell its partition (1 to
    34); 0 otherwise. previous_end: where the preceding run ends.
    """

    number: int
    first: int
    last: int
    start: int
    end: int
    base_offset: int
    next_offset: int
    first_epoch: int
    last_epoch: int
    first_crc: int
    last_crc: int
    missing: int
    previous_end: int


class TornHead(NamedTuple):
    """The beginning of a batch after a run, or after torn batches that follow the run; its rest is elsewhere.

    room: its bytes in the block. header: complete if the room is, else with the bytes of the next block.
    """

    run: int
    room: int
    header: BatchHeader

    @property
    def end(self) -> int:
        """The end of the batch if its rest followed it."""
        return self.header.end

    @property
    def next_offset(self) -> int | None:
        """The offset of the batch after it; None if that is in its rest."""
        return self.header.last_offset + 1 if self.room >= _DELTA_END else None


class Runs:
    """All runs, in the order of their positions."""

    def __init__(self, batches: FoundBatches, images: Images, blocks: Blocks) -> None:
        self.batches, self.images, self.blocks = batches, images, blocks
        self.block, self._phase = blocks
        self.kernel = kernel.load()
        self.runs: list[Run] = []
        for first, last in pairwise([*_first_rows(batches, blocks), batches.count]):
            self.runs.append(self._run(first, last))
        self.starts = [run.start for run in self.runs]

    def _run(self, first: int, last: int) -> Run:
        one, other = self.batches.header(first), self.batches.header(last - 1)
        room = self.room_after(one.position)
        return Run(
            number=len(self.runs),
            first=first,
            last=last,
            start=one.position,
            end=other.end,
            base_offset=one.first_offset,
            next_offset=other.last_offset + 1,
            first_epoch=one.partition_leader_epoch,
            last_epoch=other.partition_leader_epoch,
            first_crc=one.crc,
            last_crc=other.crc,
            missing=room if 0 < room < SURE_BREAK else 0,
            previous_end=self.runs[-1].end if self.runs else 0,
        )

    def room_after(self, position: int) -> int:
        """Return the bytes from a position to the end of its block; 0 at a block's start."""
        return (self._phase - position) % self.block

    def place_of(self, position: int) -> int:
        """Return the bytes of a position's block before it."""
        return (position - self._phase) % self.block

    def is_adjacent(self, number: int) -> bool:
        """Return True if a run begins where the preceding one ends."""
        return number > 0 and self.runs[number].previous_end == self.runs[number].start

    def next_start(self, position: int) -> int | None:
        """Return the start of the first run at or after a position; None after the last one."""
        number = bisect_left(self.starts, position)
        return self.starts[number] if number < len(self.starts) else None

    def run_at(self, position: int) -> Run | None:
        """Return the run that begins at a position, if one does."""
        number = bisect_left(self.starts, position)
        return self.runs[number] if number < len(self.starts) and self.starts[number] == position else None

    def uncovered_before(self, position: int) -> int:
        """Return the bytes between a position and the end of the run before it, or the start of its image."""
        number = bisect_left(self.starts, position) - 1
        end = self.runs[number].end if number >= 0 else 0
        return position - max(end, self.images.first_position(position))

    def ending(self, end: int, size: int) -> bytes:
        """Return the bytes before a position, fewer at the start of its image."""
        return self.images.read(max(end - size, self.images.first_position(end)), end)

    def is_cleaned(self, first: int, last: int) -> bool:
        """Return True if the log cleaner has taken records or batches from some rows of a run."""
        expected: int | None = None
        for header in self.batches.headers(first, min(last, first + _MOST_LOOKED_AT)):
            if expected not in (None, header.first_offset) or header.records_count != _offsets_in(header):
                return True
            expected = header.last_offset + 1
        return False

    def torn_head(self, run: Run) -> TornHead | None:
        """Return the torn batch after a run, or None if there is none, or too little of it."""
        return self.torn_head_at(run.end, run.next_offset, run.number)

    def torn_head_at(self, position: int, next_offset: int, number: int) -> TornHead | None:
        """Return the torn batch at a position, if it may continue the file of a run at an offset."""
        room = self.room_after(position)
        if room <= _MAGIC_END or self.next_start(position) == position:
            return None
        header = parse_header(self.images.read(position, position + BATCH_HEADER_SIZE), 0, position)
        if header.magic != 2 and not self.batches.header(self.runs[number].last - 1).magic <= header.magic < 2:
            return None
        is_next = 0 <= header.first_offset - next_offset < _LARGEST_GAP
        is_sized = LEAST_SIZES[header.magic] <= header.size <= LARGEST_BATCH
        is_known = room < _DELTA_END or header.last_offset >= header.first_offset
        if not (is_next and is_sized and is_known) or header.partition_leader_epoch < self.runs[number].last_epoch:
            return None
        return TornHead(number, room, header)

    def may_continue(self, run: Run) -> bool:
        """Return True if the block has no other bytes after a run than the beginning of the next offset."""
        wanted = BATCH_BASE_OFFSET.pack(run.next_offset)[: self.room_after(run.end)]
        return self.images.read(run.end, run.end + len(wanted)) == wanted

    @cached_property
    def copies(self) -> dict[int, int]:
        """Rows whose batch an earlier row has too, with that row."""
        return dict(self.kernel.find_copies(self.batches.rows, self.batches.count))

    @cached_property
    def repeated(self) -> frozenset[int]:
        """Rows whose batch is in more than one place."""
        return frozenset(self.copies) | frozenset(self.copies.values())

    @cached_property
    def largest_batch(self) -> int:
        """The size of the largest batch; 0 without any."""
        return max(self.batches.column("size", 0, self.batches.count), default=0)


def _first_rows(batches: FoundBatches, blocks: Blocks) -> Iterator[int]:
    """Yield the first row of each run: of batches that certainly are in one file in this order.

    A batch belongs to the preceding one's run if it follows it inside a block, at least SURE_REST bytes after its
    start, has larger offsets, and if its first SURE_BREAK bytes are in one block.
    """
    names = ("position", "size", "base_offset", "last_offset")
    columns = [batches.column(name, 0, batches.count) for name in names]
    end = last_seen = -1
    for row, (position, size, base_offset, last_offset) in enumerate(zip(*columns, strict=True)):
        into = (position - blocks.phase) % blocks.size
        is_next = position == end and base_offset > last_seen
        if not is_next or into < SURE_REST or blocks.size - into < SURE_BREAK:
            yield row
        end, last_seen = position + size, last_offset


def _offsets_in(header: BatchHeader) -> int:
    return header.last_offset - header.first_offset + 1


class StartIndex:
    """Runs by the place of their start in its block, in the order of their base offsets."""

    def __init__(self, runs: Runs) -> None:
        self._places: dict[int, list[tuple[int, int]]] = {}
        for run in runs.runs:
            self._places.setdefault(runs.place_of(run.start), []).append((run.base_offset, run.number))
        for each in self._places.values():
            each.sort()

    def at(self, place: int, base_offset: int) -> list[int]:
        """Return the runs that begin with an offset at a place in their block."""
        found = self._places.get(place, [])
        first = bisect_left(found, (base_offset, -1))
        return [number for _, number in found[first : bisect_right(found, (base_offset + 1, -1))]]

    def after(self, place: int, base_offset: int, most: int) -> list[int]:
        """Return the runs at a place with the next larger offsets, at most `most` of them."""
        found = self._places.get(place, [])
        first = bisect_left(found, (base_offset + 1, -1))
        return [number for _, number in found[first : first + most]]
