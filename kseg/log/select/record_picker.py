"""The records that a selection takes of a partition, as numbers: the batch of each, its offset, its time."""

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.kernel.contract import VALID, Op, Program, RecordFilter, Renderer, Slot, Template
from kseg.log.partition.partition_log import SegmentFiles
from kseg.log.select.selector import Selector, starts_from_end
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.selection import Selection

_NUMBERS = (Slot.POSITION, Slot.SIZE, Slot.OFFSET, Slot.TIMESTAMP)
_LINE = Template(tuple(code for slot in _NUMBERS for code in (Op.INTEGER, slot, 0, Op.LITERAL, 0, 1)), b" ", ())
"""A record as the kernel prints it: its numbers, a blank behind each."""
_PROGRAM = Program((None, None, None), (_LINE, _LINE, _LINE), None)
_OUTPUT_SIZE = 1 << 16


class SelectedRecord(NamedTuple):
    """A record: position and size of its batch in the segment's log, its offset, its time (-1 none)."""

    position: int
    size: int
    offset: int
    timestamp: int


class SelectedPiece(NamedTuple):
    """Selected records of some batches of a segment, in the log's order. is_valid: their batches' CRCs hold."""

    segment: SegmentFiles
    records: list[SelectedRecord]
    is_valid: bool


class RecordPicker:
    """Tells which records of the slices of one log a filter takes, as the kernel judges them.

    Source of truth is the kernel's renderer: what `kseg dump` prints for the same filter.
    """

    def __init__(self, wanted: RecordFilter | None) -> None:
        """Takes the filter; None takes every record."""
        self._pieces: list[bytes] = []
        self._output = kernel.load().Output(lambda text: self._pieces.append(bytes(text)), _OUTPUT_SIZE)
        self._renderer: Renderer = kernel.load().Renderer(_PROGRAM, self._output, record_filter=wanted)

    @property
    def is_full(self) -> bool:
        """Whether the filter's limit is reached."""
        return self._renderer.is_full

    def pick(self, piece: Slice) -> list[SelectedRecord]:
        """The records of a slice that the filter takes."""
        row = piece.first
        while row < piece.last and not self._renderer.is_full:
            run = piece.run
            row = self._renderer.render(run.buffer, run.rows, row, piece.last, run.position, piece.bodies, piece.first)
        self._renderer.problems.clear()  # damage is no matter of choosing
        self._output.flush()
        numbers = list(map(int, b"".join(self._pieces).split()))
        self._pieces.clear()
        return [SelectedRecord(*four) for four in zip(*(iter(numbers),) * len(_NUMBERS), strict=True)]


def selected_pieces(
    directory: Path, selection: Selection, say: Callable[[str], None], left: int | None = None
) -> Iterator[SelectedPiece]:
    """The selected records of a partition, in the order of its segments; of a tail only the last segments are read.

    Args:
        directory: the partition's.
        selection: what is wanted; following isn't done here.
        say: takes which index wasn't trusted, and what was left out.
        left: how many are wanted at most, in place of the selection's limit.

    Raises:
        OpenError: if the directory can't be listed, or a log not opened.
    """
    selector = Selector(selection, directory, say)
    limit = selection.limit if left is None else left
    if selection.tail is not None:
        yield from _cut(_tail(selector, selection.tail), limit)
        return
    for segment in selector.partition.segments:
        if limit == 0:
            return
        for piece in _of_segment(selector, segment, limit):
            limit = None if limit is None else limit - len(piece.records)
            yield piece


def _of_segment(selector: Selector, segment: SegmentFiles, limit: int | None) -> Iterator[SelectedPiece]:
    if selector.may_hold(segment.path):
        with segment.open_log() as log_file:
            yield from _from_position(selector, segment, log_file, selector.start_position(log_file), limit)


def _from_position(
    selector: Selector, segment: SegmentFiles, log_file: LogFile, start: int, limit: int | None
) -> Iterator[SelectedPiece]:
    picker = RecordPicker(selector.selection.record_filter(limit=limit, last_offset=selector.last_offset(segment.path)))
    for item in with_bodies(selector.items(log_file, start), log_file.stored_size):
        if isinstance(item, Damage):
            continue
        records = picker.pick(item)
        if records:
            yield SelectedPiece(segment, records, bool(item.run.rows[VALID]))
        if picker.is_full:
            return


def _tail(selector: Selector, count: int) -> Iterator[SelectedPiece]:
    """The last so many, found from the last segment back, and in each from its last index entries back."""
    kept: deque[list[SelectedPiece]] = deque()
    for segment in reversed(selector.partition.segments):
        if count == 0:
            break
        pieces = _last_of_segment(selector, segment, count)
        kept.appendleft(pieces)
        count -= sum(len(piece.records) for piece in pieces)
    for pieces in kept:
        yield from pieces


def _last_of_segment(selector: Selector, segment: SegmentFiles, count: int) -> list[SelectedPiece]:
    """The last `count` of a segment, all if there are fewer."""
    pieces: deque[SelectedPiece] = deque()
    found = 0
    selector.start_over()
    if not selector.may_hold(segment.path):
        return []
    with segment.open_log() as log_file:
        for start in starts_from_end(log_file, selector):
            selector.start_over()
            pieces.clear()
            found = 0
            for piece in _from_position(selector, segment, log_file, start, None):
                pieces.append(piece)
                found += len(piece.records)
                while found - len(pieces[0].records) >= count:
                    found -= len(pieces.popleft().records)
            if found >= count:
                break
    if found > count:
        pieces[0] = pieces[0]._replace(records=pieces[0].records[found - count :])
    return list(pieces)


def _cut(pieces: Iterable[SelectedPiece], limit: int | None) -> Iterator[SelectedPiece]:
    for piece in pieces:
        if limit == 0:
            return
        records = piece.records if limit is None else piece.records[:limit]
        limit = None if limit is None else limit - len(records)
        yield piece._replace(records=records)


class SelectedSums:
    """What is selected of a segment, in sums.

    records, batches; size: bytes of these batches. first_offset, last_offset: of the records. first_timestamp,
    largest_timestamp: the least and the largest of their times, -1 if none has one.
    """

    def __init__(self) -> None:
        self.records = self.batches = self.size = 0
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.first_timestamp = self.largest_timestamp = -1
        self._last_position = -1

    def add(self, piece: SelectedPiece) -> None:
        """Takes the next piece of the segment."""
        records = piece.records
        self.records += len(records)
        for record in records:
            if record.position != self._last_position:
                self._last_position = record.position
                self.batches += 1
                self.size += record.size
        offsets = [record.offset for record in records]
        self.first_offset = min(offsets) if self.first_offset is None else min(self.first_offset, *offsets)
        self.last_offset = max(offsets) if self.last_offset is None else max(self.last_offset, *offsets)
        times = [record.timestamp for record in records if record.timestamp >= 0]
        if times:
            least = min(times)
            self.first_timestamp = least if self.first_timestamp < 0 else min(self.first_timestamp, least)
            self.largest_timestamp = max(self.largest_timestamp, *times)


def selected_sums(
    directory: Path, selection: Selection, say: Callable[[str], None], left: int | None = None
) -> dict[int, SelectedSums]:
    """The sums of each segment that holds anything selected, by its base offset; arguments as in `selected_pieces`."""
    found: dict[int, SelectedSums] = {}
    for piece in selected_pieces(directory, selection, say, left):
        found.setdefault(piece.segment.base_offset, SelectedSums()).add(piece)
    return found


def first_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """The offset of the first intact record that is selected; None if none is."""
    for piece in selected_pieces(directory, selection, say):
        if piece.is_valid:
            return piece.records[0].offset
    return None


def last_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """The offset of the last one; arguments as in `selected_pieces`."""
    last = selection._replace(tail=1)
    return next((piece.records[-1].offset for piece in selected_pieces(directory, last, say)), None)


def latest_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """The offset of the first of those with the largest time; None if none has a time."""
    best: SelectedRecord | None = None
    for piece in selected_pieces(directory, selection, say):
        for record in piece.records if piece.is_valid else ():
            if record.timestamp > (-1 if best is None else best.timestamp):
                best = record
    return None if best is None else best.offset
