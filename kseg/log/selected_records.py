"""Selected records of a partition, as columns, values and the batches that hold them."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import MAGIC_POSITION, DamageKind
from kseg.kernel.contract import ROW, SIZE, START, VALID, RecordFilter
from kseg.kernel.entry_points import Columns
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog, was_closed
from kseg.log.segment_listing import SelectedRow
from kseg.log.selection import Selection
from kseg.log.selector import Selector, find_tail
from kseg.reading.batch import Batch, OnDamage, batch_of, damages_of, meet, record_lists
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile


class SelectedRecord(NamedTuple):
    """A record: position and size of its batch in the segment's log, its offset, its timestamp (-1 none)."""

    position: int
    size: int
    offset: int
    timestamp: int


class SelectedPiece(NamedTuple):
    """Selected records of the given batches of a log, in its order. is_valid: their batches' CRCs match."""

    log: Path
    base_offset: int
    records: list[SelectedRecord]
    is_valid: bool


class RecordPicker:
    """A filter over the records in slices of one log; the kernel decides, as for `kseg dump`.

    The filter's `skip` and `limit` are for all slices together. is_full: the limit is reached. takes_all: every record
    is taken.
    """

    def __init__(self, wanted: RecordFilter | None) -> None:
        """Take the filter; None takes every record."""
        self._filter = wanted or RecordFilter()
        self.takes_all = self._filter == RecordFilter()

    @property
    def remaining_count(self) -> int | None:
        """The number of records that are still wanted, or None for all."""
        return self._filter.limit

    @property
    def is_full(self) -> bool:
        """True if the limit is reached."""
        return self._filter.limit == 0

    def columns(self, piece: Slice) -> Columns:
        """Return the filtered records of a slice, column by column."""
        wanted = self._filter
        picks = _columns(piece, wanted)
        if wanted.skip:
            count = _columns(piece, wanted._replace(skip=0, limit=None)).count
            wanted = wanted._replace(skip=wanted.skip - min(wanted.skip, count))
        if wanted.limit is not None:
            wanted = wanted._replace(limit=wanted.limit - picks.count)
        self._filter = wanted
        return picks

    def pick(self, piece: Slice) -> list[SelectedRecord]:
        """Return the filtered records of a slice as numbers."""
        picks, run = self.columns(piece), piece.run
        rows = memoryview(picks.rows).cast("i").tolist()
        batches = {row: (run.position + run.rows[row * ROW + START], run.rows[row * ROW + SIZE]) for row in set(rows)}
        offsets, timestamps = memoryview(picks.offsets).cast("q"), memoryview(picks.timestamps).cast("q")
        return [
            SelectedRecord(*batches[row], offset, timestamp)
            for row, offset, timestamp in zip(rows, offsets, timestamps, strict=True)
        ]


def _columns(piece: Slice, wanted: RecordFilter) -> Columns:
    run = piece.run
    return kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, wanted)


class SelectedLog(NamedTuple):
    """An open log: slices that may hold selected records, and damages, in its order; and the picker of records.

    The items are read once.
    """

    path: Path
    log_file: LogFile
    items: Iterator[Slice | Damage]
    picker: RecordPicker

    def intact_slices(self, meet: Callable[[Damage], object]) -> Iterator[Slice]:
        """Yield the slices whose CRCs match, while records are wanted; `meet` is called with damages."""
        for item in self.items:
            if isinstance(item, Damage):
                meet(item)
            elif not item.run.rows[VALID]:
                rows = item.run.rows
                meet(self.log_file.crc_damage(item.run.position + rows[START], rows[SIZE]))
            else:
                yield item
                if self.picker.is_full:
                    return


def selected_logs(
    selector: Selector,
    logs: Sequence[Path],
    open_log: Callable[[Path], AbstractContextManager[LogFile]],
    limit: int | None,
) -> Iterator[SelectedLog]:
    """Yield the logs that may hold selected records, each open until the next one; for a tail only the last logs.

    Args:
        selector: of their directory.
        logs: in the order of their offsets.
        open_log: opens one of them.
        limit: the most records of all logs together; the picked records of a log count.

    Raises:
        OpenError: if a log can't be opened.
    """
    start, skip = None, 0
    if selector.selection.tail is not None:
        count_left = partial(count_selected, selector)
        number, start, skip = find_tail(logs, selector.selection.tail, selector, open_log, count_left)
        logs = logs[number:]
    for path in logs:
        if limit == 0:
            return
        if selector.may_hold(path):
            last_offset = selector.last_offset(path)
            picker = RecordPicker(selector.selection.record_filter(skip=skip, limit=limit, last_offset=last_offset))
            with open_log(path) as log_file:
                first = selector.start_position(log_file) if start is None else start
                items = with_bodies(selector.items(log_file, first), log_file.stored_size)
                yield SelectedLog(path, log_file, items, picker)
            limit = picker.remaining_count
        start, skip = None, 0


def logs_of_partition(
    partition: PartitionLog,
    selection: Selection,
    say: Callable[[str], None],
    left: int | None = None,
    open_log: Callable[[Path], LogFile] | None = None,
) -> Iterator[SelectedLog]:
    """Yield the logs of the segments of a partition that may hold selected records, as in `selected_logs`.

    Args:
        partition: its directory as it was listed.
        selection: the wanted records; this doesn't follow a growing log.
        say: called with untrusted indexes and omissions.
        left: the most records, instead of the selection's limit.
        open_log: opens one of the logs; None: unchanged.

    Raises:
        OpenError: if a log can't be opened.
    """
    selector = Selector(selection, partition.path, say, partition)
    segments = {segment.path: segment for segment in selector.partition.segments}

    def open_alone(path: Path) -> LogFile:
        return segments[path].open_log()

    limit = selection.limit if left is None else left
    yield from selected_logs(selector, list(segments), open_log or open_alone, limit)


def selected_pieces(
    directory: Path, selection: Selection, say: Callable[[str], None], left: int | None = None
) -> Iterator[SelectedPiece]:
    """Yield the selected records in a partition directory, in the order of its segments; see `logs_of_partition`."""
    for log in logs_of_partition(PartitionLog(directory), selection, say, left):
        base_offset = log.log_file.base_offset or 0
        for item in log.items:
            if isinstance(item, Damage):
                continue
            records = log.picker.pick(item)
            if records:
                yield SelectedPiece(log.path, base_offset, records, bool(item.run.rows[VALID]))
            if log.picker.is_full:
                break


def count_selected(selector: Selector, log_file: LogFile, start: int) -> int:
    """Count the selected records of a log, from a position on."""
    picker = RecordPicker(selector.selection.record_filter(last_offset=selector.last_offset(log_file.path)))
    items = with_bodies(selector.items(log_file, start), log_file.stored_size)
    return sum(picker.columns(item).count for item in items if isinstance(item, Slice))


class SelectedSums:
    """Sums of the selected records in a segment.

    records, batches; size: bytes of these batches. first_offset, last_offset: of the records. first_timestamp,
    largest_timestamp: the least and the largest of their timestamps, -1 without any.
    """

    def __init__(self) -> None:
        self.records = self.batches = self.size = 0
        self.first_offset: int | None = None
        self.last_offset: int | None = None
        self.first_timestamp = self.largest_timestamp = -1
        self._last_position = -1

    def add(self, piece: SelectedPiece) -> None:
        """Add the next piece of the segment."""
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

    def row(self) -> SelectedRow:
        """Return the sums as far as a value."""
        return SelectedRow(
            self.records,
            self.batches,
            self.size,
            self.first_offset,
            self.last_offset,
            self.first_timestamp,
            self.largest_timestamp,
        )


def selected_sums(
    directory: Path, selection: Selection, say: Callable[[str], None], left: int | None = None
) -> dict[int, SelectedSums]:
    """Return the sums of each segment with selected records, by its base offset; arguments as in `selected_pieces`."""
    found: dict[int, SelectedSums] = {}
    for piece in selected_pieces(directory, selection, say, left):
        found.setdefault(piece.base_offset, SelectedSums()).add(piece)
    return found


def first_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """Return the offset of the first intact selected record, or None if it doesn't exist."""
    for piece in selected_pieces(directory, selection, say):
        if piece.is_valid:
            return piece.records[0].offset
    return None


def last_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """Return the offset of the last selected record; arguments as in `selected_pieces`."""
    last = selection._replace(tail=1)
    return next((piece.records[-1].offset for piece in selected_pieces(directory, last, say)), None)


def latest_selected(directory: Path, selection: Selection, say: Callable[[str], None]) -> int | None:
    """Return the offset of the first record with the largest timestamp, or None if none has one."""
    best: SelectedRecord | None = None
    for piece in selected_pieces(directory, selection, say):
        for record in piece.records if piece.is_valid else ():
            if record.timestamp > (-1 if best is None else best.timestamp):
                best = record
    return None if best is None else best.offset


MAGIC_V2 = 2
MeetDamage = Callable[[Damage], None]


def meeting(log: SelectedLog, on_damage: OnDamage) -> MeetDamage:
    """Return the handler of a log's damage; it ignores harmless damage, such as the zeros of a preallocated file."""

    def meet_harmful(damage: Damage) -> None:
        if status_of(id_of_damage(damage.kind, is_last=not was_closed(log.path))):
            meet(damage, on_damage, log.path)

    return meet_harmful


def selected_records(log: SelectedLog, on_damage: OnDamage) -> Iterator[list[Record]]:
    """Yield the selected records of a log, in its order, without those of a batch or message with a wrong CRC.

    Raises DamagedError at damage, after the records before it, unless `on_damage` handles it.
    """
    meet = meeting(log, on_damage)
    for piece in log.intact_slices(meet):
        lists = record_lists(piece, meet) if log.picker.takes_all else _pick_records(piece, log.picker, meet)
        yield from _with_right_checksums(lists, meet) if _may_hold_messages(piece) else lists


def _pick_records(piece: Slice, picker: RecordPicker, meet: MeetDamage) -> Iterator[list[Record]]:
    """Yield the picked records of a slice, created only if there are any."""
    picks = picker.columns(piece)
    if not picks.count:
        for damage in damages_of(piece, picks):
            meet(damage)
        return
    places = memoryview(picks.places).cast("B").cast("i")
    first = at = 0
    for part in record_lists(piece, meet):
        end = bisect_left(places, first + len(part), at)
        yield [part[place - first] for place in places[at:end]]
        if end == len(places) and picker.is_full:
            return
        first, at = first + len(part), end


def _may_hold_messages(piece: Slice) -> bool:
    """Return True if a slice has a compressed v0 or v1 batch, whose messages have CRCs of their own."""
    if piece.bodies is None:
        return False
    starts = piece.run.rows[piece.first * ROW + START : piece.last * ROW : ROW]
    magics = map(piece.run.buffer.__getitem__, map(MAGIC_POSITION.__add__, starts))
    return min(magics, default=MAGIC_V2) < MAGIC_V2


def _with_right_checksums(lists: Iterator[list[Record]], meet: MeetDamage) -> Iterator[list[Record]]:
    """Yield the records without messages whose own CRC is wrong; these are damage, one per batch."""
    position = -1
    for part in lists:
        first = 0
        for place, record in enumerate(part):
            if not record.is_valid:
                yield part[first:place]
                if record.position != position:
                    meet(message_damage(record.position, record.offset))
                position, first = record.position, place + 1
        yield part[first:]


def message_damage(position: int, offset: int) -> Damage:
    """Return the damage of a batch at a position: its message at an offset has a wrong CRC of its own."""
    return Damage(DamageKind.BAD_RECORD, position, 0, f"the CRC of the message at offset {offset} is wrong")


def selected_batches(log: SelectedLog, on_damage: OnDamage) -> Iterator[Batch]:
    """Yield the batches of a log that hold selected records; only their CRC is checked, not their contents.

    Raises DamagedError at a wrong CRC, and at bytes that aren't a batch, unless `on_damage` handles it.
    """
    meet = meeting(log, on_damage)
    for piece in log.intact_slices(meet):
        held: Collection[int] = range(piece.first, piece.last)
        if not log.picker.takes_all:
            held = sorted(set(memoryview(log.picker.columns(piece).rows).cast("B").cast("i")))
        yield from (batch_of(piece.run, row) for row in held)
