"""The selected records of a partition, as numbers: the batch of each, its offset, its time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.kernel.contract import ROW, SIZE, START, VALID, Columns, RecordFilter
from kseg.log.partition.partition_log import SegmentFiles
from kseg.log.select.selector import Selector
from kseg.log.select.tail import SelectedTail, find_tail
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.damage import Damage
from kseg.reading.log_file import LogFile
from kseg.selection import Selection


class SelectedRecord(NamedTuple):
    """A record: position and size of its batch in the segment's log, its offset, its time (-1 none)."""

    position: int
    size: int
    offset: int
    timestamp: int


class SelectedPiece(NamedTuple):
    """Selected records of some batches of a segment, in the log's order. is_valid: their batches' CRCs are right."""

    segment: SegmentFiles
    records: list[SelectedRecord]
    is_valid: bool


class RecordPicker:
    """Tells which records of the slices of one log a filter takes, as the kernel judges them for `kseg dump` too.

    is_full: the filter's limit is reached.
    """

    def __init__(self, wanted: RecordFilter | None) -> None:
        """Takes the filter; None takes every record."""
        self._wanted = wanted or RecordFilter()
        self.is_full = self._wanted.limit == 0

    def columns(self, piece: Slice) -> Columns:
        """The records of a slice that the filter takes, column by column."""
        run, wanted = piece.run, self._wanted
        taken = kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, wanted)
        if wanted.limit is not None:
            self._wanted = wanted._replace(limit=wanted.limit - taken.count)
            self.is_full = self._wanted.limit == 0
        return taken

    def pick(self, piece: Slice) -> list[SelectedRecord]:
        """The same as numbers."""
        taken, run = self.columns(piece), piece.run
        rows = memoryview(taken.rows).cast("i").tolist()
        batches = {row: (run.position + run.rows[row * ROW + START], run.rows[row * ROW + SIZE]) for row in set(rows)}
        offsets, timestamps = memoryview(taken.offsets).cast("q"), memoryview(taken.timestamps).cast("q")
        return [
            SelectedRecord(*batches[row], offset, timestamp)
            for row, offset, timestamp in zip(rows, offsets, timestamps, strict=True)
        ]


def selected_pieces(
    directory: Path, selection: Selection, say: Callable[[str], None], left: int | None = None
) -> Iterator[SelectedPiece]:
    """The selected records of a partition, in the order of its segments; for a tail only the last segments are read.

    Args:
        directory: the partition's.
        selection: what is wanted; this doesn't follow a growing log.
        say: called with which index wasn't trusted, and what was left out.
        left: the most records, instead of the selection's limit.

    Raises:
        OpenError: if the directory can't be listed, or a log not opened.
    """
    selector = Selector(selection, directory, say)
    segments, start, skip = selector.partition.segments, None, 0
    if selection.tail is not None:
        number, start, skip = _tail(selector, segments, selection.tail)
        segments = segments[number:]
    limit = selection.limit if left is None else left
    for segment in segments:
        if limit == 0:
            return
        most = None if limit is None else limit + skip
        for piece in _without_first(_of_segment(selector, segment, start, most), skip):
            limit = None if limit is None else limit - len(piece.records)
            yield piece
        start, skip = None, 0


def _tail(selector: Selector, segments: Sequence[SegmentFiles], count: int) -> SelectedTail:
    by_path = {segment.path: segment for segment in segments}

    def open_log(path: Path) -> LogFile:
        return by_path[path].open_log()

    return find_tail(list(by_path), count, selector, open_log, partial(count_selected, selector))


def _of_segment(
    selector: Selector, segment: SegmentFiles, start: int | None, limit: int | None
) -> Iterator[SelectedPiece]:
    """The selected records of a segment from a position on, or from where they may begin; `limit` of them at most."""
    if not selector.may_hold(segment.path):
        return
    picker = RecordPicker(selector.selection.record_filter(limit=limit, last_offset=selector.last_offset(segment.path)))
    with segment.open_log() as log_file:
        first = selector.start_position(log_file) if start is None else start
        for item in with_bodies(selector.items(log_file, first), log_file.stored_size):
            if isinstance(item, Damage):
                continue
            records = picker.pick(item)
            if records:
                yield SelectedPiece(segment, records, bool(item.run.rows[VALID]))
            if picker.is_full:
                return


def _without_first(pieces: Iterator[SelectedPiece], skip: int) -> Iterator[SelectedPiece]:
    """The pieces without the first `skip` records."""
    for piece in pieces:
        records = piece.records[skip:]
        skip -= len(piece.records) - len(records)
        if records:
            yield piece._replace(records=records)


def count_selected(selector: Selector, log_file: LogFile, start: int) -> int:
    """How many records of a log are selected, from a position on."""
    picker = RecordPicker(selector.selection.record_filter(last_offset=selector.last_offset(log_file.path)))
    items = with_bodies(selector.items(log_file, start), log_file.stored_size)
    return sum(picker.columns(item).count for item in items if isinstance(item, Slice))


class SelectedSums:
    """Sums of what is selected in a segment.

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
        """Adds the next piece of the segment."""
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
    """The sums of each segment with selected records, by its base offset; arguments as in `selected_pieces`."""
    found: dict[int, SelectedSums] = {}
    for piece in selected_pieces(directory, selection, say, left):
        found.setdefault(piece.segment.base_offset, SelectedSums()).add(piece)
    return found


def first_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """The offset of the first intact selected record; None if there is none."""
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
