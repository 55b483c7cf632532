"""Batches with an event that a check judges, with headers, checksums and records."""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, Protocol

from kseg import kernel
from kseg.errors import OpenError, plural
from kseg.findings.findings import Finding
from kseg.formats.codes import NO_TIMESTAMP, DamageKind
from kseg.index.header_scan import events, header_runs
from kseg.index.producers import EndMarker, is_control_record, parse_end_marker
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, VALID
from kseg.kernel.entry_points import Columns
from kseg.kernel.fold_contract import Event, HeaderFold
from kseg.log.partition import PartitionLog
from kseg.log.segments import SegmentFiles
from kseg.log.selected_records import selected_pieces
from kseg.log.selection import Selection
from kseg.log.selector import Selector
from kseg.reading.batch import Batch, BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import PROBLEMS, Slice, with_bodies
from kseg.reading.log_file import LogFile


class CheckedBatch(NamedTuple):
    """A batch whose CRC matches, and facts from its records.

    base_offset: of the header, or a wrapper's first record's. offsets: of the readable records. largest_timestamp: of
    the records, -1 if there are none. begins_keyed, ends_keyed: whether the first and the last record have a key; None
    without records. marker: the transaction's end, in a control batch with one. damage: the reason why some records
    can't be read.
    """

    header: BatchHeader
    base_offset: int
    offsets: list[int]
    largest_timestamp: int
    begins_keyed: bool | None
    ends_keyed: bool | None
    marker: EndMarker | None
    damage: Damage | None

    @property
    def last_offset(self) -> int:
        """The header's last offset."""
        return self.header.last_offset

    @property
    def is_sparse(self) -> bool:
        """True if records are missing in it, which only compaction causes."""
        span = self.last_offset - self.base_offset + 1
        return self.damage is None and not self.header.is_control and len(self.offsets) < span


def checked_batches(log_file: LogFile) -> Iterator[CheckedBatch | Damage]:
    """Yield batches and damages of a log in file order; a batch with a wrong CRC is a damage of its size."""
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        if isinstance(item, Damage):
            yield item
        else:
            yield from checked_rows(log_file, item, item.first, item.last)


def offsets_problem(batch: CheckedBatch) -> str | None:
    """Return the problem of a batch's offsets, if all of its records are readable."""
    offsets, first, last = batch.offsets, batch.base_offset, batch.last_offset
    if batch.damage is not None or (last >= first and (not offsets or _rise_within(offsets, first, last))):
        return None
    shown = f", its records {offsets[0]} to {offsets[-1]}" if offsets else ""
    return f"the header has offsets {first} to {last}{shown}"


def _rise_within(offsets: list[int], first: int, last: int) -> bool:
    """Return True if offsets increase strictly, from at least first to at most last."""
    if offsets[0] < first or offsets[-1] > last:
        return False
    if len(offsets) == last - first + 1 and offsets[0] == first and offsets == list(range(first, last + 1)):
        return True
    return all(a < b for a, b in pairwise(offsets))


def checked_rows(log_file: LogFile, piece: Slice, first: int, last: int) -> Iterator[CheckedBatch | Damage]:
    """Yield the batches of the rows of a slice first … last - 1; one with a wrong CRC is a damage of its size."""
    run, bodies = piece.run, piece.bodies
    columns = kernel.load().columns(run.buffer, run.rows, first, last, run.position, bodies, first_body=piece.first)
    records = _RecordColumns(columns, piece)
    for row in range(first, last):
        start, size, valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        if not valid:
            damage = log_file.crc_damage(run.position + start, size)
            yield Damage(damage.kind, damage.position, size, damage.detail, damage.next_offset)
            continue
        header = parse_header(run.buffer, start, run.position + start, is_valid=True)
        marker, problem = None, None
        if header.is_control:
            raw = bytes(run.buffer[start : start + size])
            marker = parse_end_marker(raw) if header.producer_id >= 0 else None
            problem = None if kernel.load().end_marker(raw) else _control_problem(raw, header)
        batch = records.batch(row, header, marker)
        yield batch._replace(damage=problem) if batch.damage is None and problem is not None else batch


def _control_problem(raw: bytes, header: BatchHeader) -> Damage | None:
    """Return the damage of a control batch whose first record has a wrong key or value, by the kernel's judgement."""
    batch = Batch.parse(raw, header.position, is_valid=True)
    for index, record in enumerate(batch.records(on_damage="skip")):
        if not is_control_record(record.key, record.value):
            detail = f"control record {index} has no key or value of its kind"
            return Damage(DamageKind.BAD_RECORD, header.position, 0, detail)
    return None


class _RecordColumns:
    """The records of a slice, divided by batch."""

    def __init__(self, columns: Columns, piece: Slice) -> None:
        self._rows = memoryview(columns.rows).cast("B").cast("i")
        self._offsets = memoryview(columns.offsets).cast("B").cast("q")
        self._timestamps = memoryview(columns.timestamps).cast("B").cast("q")
        self._keys = memoryview(columns.key_validity)
        self._valid = memoryview(columns.valid).cast("B")
        self._next = 0
        self._damages = {
            problem.position: Damage(
                PROBLEMS[problem.problem].kind,
                problem.position,
                0,
                f"only {plural(problem.records_read, 'record')} can be read",
            )
            for problem in columns.problems
        }
        self._damages |= {damage.position: damage for _, damage in piece.damages}

    def batch(self, row: int, header: BatchHeader, marker: EndMarker | None) -> CheckedBatch:
        """Return the batch of a row; rows come in order."""
        start = bisect_left(self._rows, row, self._next)
        end = self._next = bisect_left(self._rows, row + 1, start)
        offsets = self._offsets[start:end]
        base_offset = header.base_offset
        if base_offset is None:
            base_offset = offsets[0] if end > start else header.last_offset
        return CheckedBatch(
            header,
            base_offset,
            offsets.tolist(),
            max(self._timestamps[start:end], default=NO_TIMESTAMP),
            self._is_keyed(start) if end > start else None,
            self._is_keyed(end - 1) if end > start else None,
            marker,
            self._damages.get(header.position) or self._inner_damage(header, start, end),
        )

    def _inner_damage(self, header: BatchHeader, start: int, end: int) -> Damage | None:
        """Return the damage of the messages of a wrapper, which have CRCs of their own."""
        if header.magic >= 2 or all(self._valid[start:end]):
            return None
        detail = f"the CRC of inner message {bytes(self._valid[start:end]).index(0)} is wrong"
        return Damage(DamageKind.BAD_RECORD, header.position, 0, detail)

    def _is_keyed(self, number: int) -> bool:
        return bool(self._keys[number >> 3] >> (number & 7) & 1)


_WITHOUT_BATCH = frozenset({*map(str, DamageKind), "cut-segment", "offsets-lost", "offsets-missing"})
"""Ids of findings about missing or unreadable bytes, which can't have a selected record."""


class SelectedScope:
    """The part of a partition that a selection covers.

    Raises OpenError if a log can't be opened.
    """

    def __init__(self, partition: PartitionLog, selection: Selection, say: Callable[[str], None]) -> None:
        self._positions: dict[Path, set[int]] = {}
        offsets: list[int] = []
        for piece in selected_pieces(partition.path, selection, say):
            held = self._positions.setdefault(piece.log, set())
            held.update(record.position for record in piece.records)
            numbers = [record.offset for record in piece.records]
            offsets = [min(*offsets, *numbers), max(*offsets, *numbers)] if offsets else [min(numbers), max(numbers)]
        has_ends = bool(offsets) and selection.tail is not None, bool(offsets) and selection.limit is not None
        self._first = max(selection.first_offset, offsets[0] if has_ends[0] else LEAST)
        self._last = min(selection.last_offset, offsets[1] if has_ends[1] else MOST)
        selector = Selector(selection, partition.path, say)
        self._segments = {
            segment.base_offset
            for segment in partition.segments
            if self._reaches(partition, segment) and selector.may_hold(segment.path)
        }

    def _reaches(self, partition: PartitionLog, segment: SegmentFiles) -> bool:
        slot = partition.floor_slot(segment.base_offset) or 0
        following = partition.base_offsets[slot + 1 : slot + 2]
        return segment.base_offset <= self._last and not (following and following[0] <= self._first)

    @property
    def has_records(self) -> bool:
        """True if a record is selected."""
        return bool(self._positions)

    def takes(self, segment: SegmentFiles) -> bool:
        """Return True if to check a segment: it may have selected records, or damage instead of them."""
        return segment.base_offset in self._segments

    def covers(self, finding: Finding) -> bool:
        """Return True if a finding is about a batch with a selected record, a possible one, or their indexes.

        Damage has no key, no producer and no timestamp: it counts wherever offsets don't exclude it.
        """
        if finding.file.suffix != ".log" or finding.position is None:
            return self._is_near(finding.first_offset, finding.last_offset)
        if finding.id not in _WITHOUT_BATCH:
            return finding.position in self._positions.get(finding.file, ())
        if finding.first_offset is None and finding.last_offset is None:
            first, last = _offsets_around(finding.file, finding.position)
            return self._is_near(first, last)
        return self._is_near(finding.first_offset, finding.last_offset)

    def _is_near(self, first: int | None, last: int | None) -> bool:
        return (first is None or first <= self._last) and (last is None or last >= self._first)


def _offsets_around(path: Path, position: int) -> tuple[int | None, int | None]:
    """Return the offsets around damage at a position: after the batch before it, and of the batch after it."""
    first, is_reached = None, False
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy, fold.position_bound = True, position - 1
    try:
        log_file = LogFile(path)
    except OpenError:
        return None, None
    with log_file:
        for item in header_runs(log_file):
            if isinstance(item, Damage):
                continue
            for header, _ in events(fold, item):
                if not is_reached and header.position >= position:
                    first, is_reached = _next_offset(fold), True
                if header.position > position:
                    return first, None if header.base_offset is None else header.base_offset - 1
    return first if is_reached else _next_offset(fold), None


def _next_offset(fold: HeaderFold) -> int | None:
    """Return the offset after the last batch passed, or None if it doesn't exist."""
    return fold.last_offset + 1 if fold.batches else None


JUDGED = (
    Event.CONTROL
    | Event.PRODUCER
    | Event.SEQUENCE
    | Event.OFFSET
    | Event.SPARSE
    | Event.DELETE_HORIZON
    | Event.EPOCH
    | Event.RECORDS
    | Event.INDEX
)
"""The events that a check may judge; batches without any are passed."""
FEW = 3
"""Consecutive events after which the next batches are expected to have one too."""
MOST_TOGETHER = 256
"""The most batches checked together where each has an event: one by one costs more."""


class Watcher(Protocol):
    """A receiver of events in a log."""

    def watch(self, fold: HeaderFold) -> None:
        """Set the fold's next stop."""

    def notice_passed(self) -> None:
        """Note the batches that the fold has passed."""


def eventful_batches(
    log_file: LogFile, fold: HeaderFold, watcher: Watcher, on_slice: Callable[[Slice], None] | None = None
) -> Iterator[CheckedBatch | Damage]:
    """Yield damages and the batches that need attention, in file order.

    The fold has passed all batches before. The caller adds each batch to the fold. `on_slice` takes the slices read.
    """
    for item in with_bodies(log_file.runs(), log_file.stored_size):
        if isinstance(item, Damage):
            yield item
        else:
            if on_slice is not None:
                on_slice(item)
            yield from _eventful_rows(log_file, item, fold, watcher)


def _eventful_rows(
    log_file: LogFile, piece: Slice, fold: HeaderFold, watcher: Watcher
) -> Iterator[CheckedBatch | Damage]:
    run, row, together, stops_in_turn = piece.run, piece.first, 1, 0
    while row < piece.last:
        watcher.watch(fold)
        stop, _ = fold.fold(run.buffer, run.rows, row, piece.last, run.position, piece.bodies, piece.first)
        watcher.notice_passed()
        stops_in_turn = stops_in_turn + 1 if stop == row else 0
        together = min(2 * together, MOST_TOGETHER) if stops_in_turn > FEW else 1
        row = min(stop + together, piece.last)
        yield from checked_rows(log_file, piece, stop, row)
