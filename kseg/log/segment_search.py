"""Searches in one segment: from its indexes to a position, then through headers to a batch, and to a record in it.

Checks index entries against the log; if they differ, scans the log instead.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Iterator, Sequence
from functools import lru_cache
from operator import attrgetter
from typing import NamedTuple

from kseg import kernel
from kseg.codecs.limits import DEFAULT_LIMIT, limit_for
from kseg.errors import OpenError, plural
from kseg.formats.codes import Codec, DamageKind
from kseg.formats.header_fields import OffsetIndexEntry, TimeIndexEntry
from kseg.index.entries import OffsetIndex, SlotRange, TimeIndex
from kseg.index.header_scan import events, header_of, header_runs, is_intact, pass_all
from kseg.kernel.contract import LEAST, MOST, VALID
from kseg.kernel.fold_contract import UNCHECKED, Event, HeaderFold
from kseg.kernel.record import Record
from kseg.log.segments import SegmentFiles, entry_problem, read_tail
from kseg.reading.batch import Batch, BatchHeader
from kseg.reading.blocks import Damage
from kseg.reading.bodies import PROBLEMS, BodyBounds, body_damage
from kseg.reading.log_file import LogFile, Run

SHOWN_BATCHES = 6
"""The number of passed batches that a scan keeps: the last ones."""
SLOTS_AROUND = 2
"""Index entries kept on each side of the slot found."""
STALE_SIZE = 4 << 20
"""More bytes of log after the last index entry than one append can write: the index ends too early."""
SCANNED = "kseg scans the log instead; run `kseg reindex` to rebuild it"


class IndexView(NamedTuple):
    """The result of a search in an index: its entries around the target, by slot, and the slots found."""

    entries_count: int
    slots: SlotRange
    around: tuple[tuple[int, OffsetIndexEntry | TimeIndexEntry], ...]


class SearchTarget(NamedTuple):
    """The search target: the first record at or above an offset and, unless that is None, at or after a time."""

    offset: int
    timestamp: int | None = None

    def may_be_in(self, header: BatchHeader) -> bool:
        """Return True if a batch may have it, according to its header."""
        return header.last_offset >= self.offset and (self.timestamp is None or header.max_timestamp >= self.timestamp)

    def first_in(self, records: Sequence[Record]) -> Record | None:
        """Return the wanted record of a batch, or None if it doesn't exist. Offsets increase."""
        for place in range(bisect_left(records, self.offset, key=_offset_of), len(records)):
            if self.timestamp is None or records[place].timestamp >= self.timestamp:
                return records[place]
        return None


_offset_of = attrgetter("offset")


class Match(NamedTuple):
    """The first matching record, and its batch, or its wrapper with the offset at which that begins."""

    batch: BatchHeader
    record: Record


class SegmentStep:
    """The search in one segment.

    index_entry: the entry where the scan started; None if it started at the segment's start. passed: the last batches
    that the scan skipped, of `passed_count` in all. damages: those on its way; `is_blocked`: no intact batch between
    the last of them and the scan's end. opened: offset ranges of the batches whose records were read; unread: of
    batches with unreadable records, with their damages.
    """

    def __init__(self, segment: SegmentFiles) -> None:
        self.segment = segment
        self.time_view: IndexView | None = None
        self.offset_view: IndexView | None = None
        self.time_entry: TimeIndexEntry | None = None
        self.index_entry: OffsetIndexEntry | None = None
        self.scan_position = 0
        self.passed: deque[BatchHeader] = deque(maxlen=SHOWN_BATCHES)
        self.passed_count = 0
        self.damages: list[Damage] = []
        self.is_blocked = False
        self.opened: list[tuple[int, int]] = []
        self.unread: list[tuple[int, int, Damage]] = []
        self._bounds = BodyBounds(segment.size, DEFAULT_LIMIT)

    @property
    def may_open(self) -> bool:
        """True if records are still read: not after very many unreadable bodies."""
        return self._bounds.free > 0

    def begin_scan(self) -> None:
        """Discard the results of an earlier scan."""
        self.passed.clear()
        self.damages.clear()
        self.opened.clear()
        self.unread.clear()
        self.passed_count, self.is_blocked = 0, False

    def take_passed(self, header: BatchHeader) -> None:
        """Note an intact batch without the wanted record."""
        self.passed.append(header)
        self.passed_count += 1
        self.is_blocked = False

    def take_rows(self, run: Run, rows: range) -> None:
        """Note rows of a run without the wanted record."""
        if rows:
            self.passed.extend(_last_of(run, rows))
            self.passed_count += len(rows)
            self.is_blocked = False

    def take_unreadable(self, header: BatchHeader, damage: Damage) -> None:
        """Note a batch whose records can't be read."""
        self.take_damage(damage)
        if header.codec != Codec.NONE:
            self._bounds.note(limit_for(header.size))

    def take_damage(self, damage: Damage) -> None:
        """Note a damage; the zero tail of a preallocated file isn't one."""
        if damage.kind is not DamageKind.ZERO_TAIL:
            self.damages.append(damage)
            self.is_blocked = True


# --- scanning ---------------------------------------------------------------------------------------------------------


def first_match(log_file: LogFile, step: SegmentStep, wanted: SearchTarget) -> Match | None:
    """Return the first wanted record from the step's scan position on, or None if it doesn't exist.

    Headers are read without checking CRCs, and only the found batch is checked. If anything looks wrong, this part is
    read again with every CRC.
    """
    for items in (header_runs(log_file, step.scan_position), log_file.runs(step.scan_position)):
        step.begin_scan()
        try:
            return _follow(log_file, step, items, wanted)
        except _IrregularError:
            continue
    return None


class _IrregularError(Exception):
    """Headers with unchecked CRCs that don't fit together."""


def _follow(log_file: LogFile, step: SegmentStep, items: Iterator[Run | Damage], wanted: SearchTarget) -> Match | None:
    fold = kernel.load().HeaderFold(Event.DISORDER)
    fold.passes_legacy = True
    if wanted.timestamp is None:
        fold.offset_bound = _bound(wanted.offset)
    else:
        fold.timestamp_bound = _bound(wanted.timestamp)
    for item in items:
        if isinstance(item, Damage):
            step.take_damage(item)
            continue
        if step.is_blocked and item.rows[VALID] == UNCHECKED:
            raise _IrregularError
        match = _match_in_run(log_file, step, item, fold, wanted)
        if match is not None:
            return match
    return None


def _match_in_run(
    log_file: LogFile, step: SegmentStep, run: Run, fold: HeaderFold, wanted: SearchTarget
) -> Match | None:
    for passed, header in _stretches(fold, run):
        step.take_rows(run, passed)
        if header is None:
            continue
        if header.is_valid is False:
            step.take_damage(log_file.crc_damage(header.position, header.size))
            continue
        if header.is_valid is None and header.last_offset < fold.last_offset:
            raise _IrregularError
        fold.take(header)
        if wanted.may_be_in(header):
            if header.is_valid is None and not is_intact(log_file, header):
                raise _IrregularError
            match = _match_in(log_file, step, header, wanted)
            if match is not None:
                return match
        step.take_passed(header)
    return None


def _stretches(fold: HeaderFold, run: Run) -> Iterator[tuple[range, BatchHeader | None]]:
    """Yield the rows that a fold passes, and the header that stops it, which it doesn't add; None at the end."""
    row = 0
    while row < run.row_count:
        first = row
        row, _ = fold.fold(run.buffer, run.rows, row, run.row_count, run.position)
        yield range(first, row), header_of(run, row) if row < run.row_count else None
        row += 1


def _bound(number: int) -> int:
    return min(max(number, LEAST), MOST)


def _match_in(log_file: LogFile, step: SegmentStep, header: BatchHeader, wanted: SearchTarget) -> Match | None:
    if not step.may_open:
        reason = "not read, since earlier batches took too long"
        step.take_unreadable(header, Damage(DamageKind.BAD_RECORD, header.position, 0, reason))
        return None
    content = _content(log_file.read(header.position, header.size), header.position)
    step.opened.append((content.base_offset, header.last_offset))
    record = wanted.first_in(content.records)
    if record is not None:
        return Match(header._replace(base_offset=content.base_offset), record)
    if content.damage is not None:
        step.take_unreadable(header, content.damage)
        step.unread.append((*step.opened[-1], content.damage))
    return None


class _Content(NamedTuple):
    base_offset: int
    records: tuple[Record, ...]
    damage: Damage | None


@lru_cache(maxsize=1)  # consecutive lookups often hit the same batch
def _content(raw: bytes, position: int) -> _Content:
    batch = Batch.parse(raw, position, is_valid=True)
    problem = batch.problem()
    records = tuple(batch.records(on_damage="skip"))
    kind = None
    if problem is not None:
        kind = body_damage(position, problem.detail).kind if problem.problem is None else PROBLEMS[problem.problem].kind
    return _Content(
        batch.base_offset,
        records,
        None if kind is None or problem is None else Damage(kind, position, 0, problem.detail),
    )


def last_record_below(segment: SegmentFiles, offset: int) -> Record | None:
    """Return the last intact record of a segment below an offset, or None if it doesn't exist."""
    with segment.open_log() as log_file:
        step = SegmentStep(segment)
        seek_offset(log_file, step, offset - 1, [])
        for start in sorted({step.scan_position, 0}, reverse=True):
            record = _last_record_below(log_file, start, offset)
            if record is not None:
                return record
    return None


def _last_record_below(log_file: LogFile, start: int, offset: int) -> Record | None:
    below = _last_headers_up_to(log_file, start, offset)
    for header in reversed(below):
        if is_intact(log_file, header):
            records = _content(log_file.read(header.position, header.size), header.position).records
            below_it = bisect_left(records, offset, key=_offset_of)
            if below_it:
                return records[below_it - 1]
    return None


def _last_headers_up_to(log_file: LogFile, start: int, offset: int) -> deque[BatchHeader]:
    below: deque[BatchHeader] = deque(maxlen=SHOWN_BATCHES)
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy, fold.offset_bound = True, _bound(offset)
    for item in header_runs(log_file, start):
        if isinstance(item, Damage) or not item.rows[VALID]:
            continue
        for passed, header in _stretches(fold, item):
            below.extend(_last_of(item, passed))
            if header is not None:
                below.append(header)
                if header.last_offset >= offset:
                    return below
    return below


def _last_of(run: Run, rows: range) -> Iterator[BatchHeader]:
    return (header_of(run, row) for row in rows[-SHOWN_BATCHES:])


# --- indexes ----------------------------------------------------------------------------------------------------------


def seek_offset(log_file: LogFile, step: SegmentStep, offset: int, problems: list[str]) -> None:
    """Set the start of a scan for an offset: the position of the floor entry if it matches the log, otherwise 0.

    Adds index problems to `problems`. Source: LogSegment.translateOffset.
    """
    step.index_entry, step.scan_position = None, 0
    file = step.segment.offset_index
    if file is None:
        if log_file.size:
            problems.append(f"{step.segment.path.with_suffix('.index')}: missing: {SCANNED}")
        return
    try:
        with OffsetIndex(file.path, step.segment.base_offset) as index:
            step.offset_view = _view(index, offset)
            lower = step.offset_view.slots.lower
            entry = index.entry(lower) if lower >= 0 else None
            problem = _offset_index_problem(index, log_file)
    except OpenError as error:
        problems.append(f"{error}: {SCANNED}")
        return
    if problem is not None:
        problems.append(f"{file.path}: {problem}")
    if entry is None:
        return
    unsound = entry_problem(log_file, entry.offset, entry.position)
    if unsound is not None:
        problems.append(f"{file.path}: {unsound}: {SCANNED}")
        return
    step.index_entry, step.scan_position = entry, entry.position


def _offset_index_problem(index: OffsetIndex, log_file: LogFile) -> str | None:
    if index.trailing:
        return (
            f"its size is {plural(index.size, 'byte')}, not a multiple of 8, so kseg ignores the last"
            f" {index.trailing}; run `kseg reindex`"
            " to rebuild it"
        )
    last = index.last_entry()
    distance = log_file.size - last.position
    if last.position >= 0 and distance > STALE_SIZE and not _ends_in_zeros(log_file, distance):
        return (
            f"stale: its last entry is {last.offset} → {last.position}, {plural(distance, 'byte')} before the log's end"
        )
    return None


def _ends_in_zeros(log_file: LogFile, distance: int) -> bool:
    """Return True if the log's last bytes are those of a preallocated file."""
    piece = log_file.read(log_file.size - min(distance, 4096), 4096)
    return not any(piece)


def _view(index: OffsetIndex | TimeIndex, target: int) -> IndexView:
    slots = index.slot_range(target)
    first = max(slots.lower - SLOTS_AROUND + 1, 0)
    last = min((slots.upper if slots.upper >= 0 else slots.lower) + SLOTS_AROUND, index.count)
    return IndexView(index.count, slots, tuple((slot, index.entry(slot)) for slot in range(first, last)))


def seek_time(log_file: LogFile, step: SegmentStep, timestamp: int, start_offset: int, problems: list[str]) -> None:
    """Set the start of a scan for a time: by the time index, then the offset index.

    Source: LogSegment.findOffsetByTimestamp.
    """
    entry = None
    file = step.segment.time_index
    if file is not None:
        try:
            with TimeIndex(file.path, step.segment.base_offset) as index:
                step.time_view = _view(index, timestamp)
                lower = step.time_view.slots.lower
                entry = index.entry(lower) if lower >= 0 else None
        except OpenError as error:
            problems.append(f"{error}: {SCANNED}")
    if entry is not None and (problem := time_entry_problem(log_file, step.segment, entry)):
        problems.append(f"{step.segment.path.with_suffix('.timeindex')}: {problem}: {SCANNED}")
        entry = None
    step.time_entry = entry
    seek_offset(log_file, step, start_offset if entry is None else max(entry.offset, start_offset), problems)


def time_entry_problem(log_file: LogFile, segment: SegmentFiles, entry: TimeIndexEntry) -> str | None:
    """Return how the log contradicts a time index entry, or None if its batch exists and has that largest timestamp.

    Earlier batches with larger timestamps aren't checked: that would mean reading all batches.
    """
    step = SegmentStep(segment)
    seek_offset(log_file, step, entry.offset, [])
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy, fold.offset_bound = True, _bound(entry.offset)
    for item in header_runs(log_file, step.scan_position):
        for header, _ in () if isinstance(item, Damage) else events(fold, item):
            if header.last_offset < entry.offset:
                continue
            if header.max_timestamp == entry.timestamp:
                return None
            return (
                f"the entry {entry.timestamp} → {entry.offset} is wrong:"
                f" the largest timestamp of the batch there is {header.max_timestamp}"
            )
    return f"the entry {entry.timestamp} → {entry.offset} has an offset beyond the end of the log"


def largest_timestamp(segment: SegmentFiles, problems: list[str]) -> int:
    """Return the largest timestamp in a segment, -1 if there is none.

    Uses the last entry of the time index if it matches the log, and the batches from the last offset index entry on:
    nothing in between has a larger timestamp. Without one of these, reads all headers. Source:
    LogSegment.largestTimestamp.
    """
    tail = read_tail(segment)
    if tail.first_position == 0:
        return tail.max_timestamp
    entry = _last_time(segment, problems)
    if entry is not None:
        return max(entry.timestamp, tail.max_timestamp)
    fold = kernel.load().HeaderFold(0)
    fold.passes_legacy = True
    with segment.open_log() as log_file:
        for item in header_runs(log_file):
            if not isinstance(item, Damage):
                pass_all(fold, item)
    return fold.max_timestamp


def _last_time(segment: SegmentFiles, problems: list[str]) -> TimeIndexEntry | None:
    """Return the time index's last entry, or None if it doesn't exist or it doesn't match the log."""
    path = segment.path.with_suffix(".timeindex")
    if segment.time_index is None:
        return None
    try:
        with TimeIndex(path, segment.base_offset) as index:
            entry = index.last_entry()
            if index.trailing:
                problems.append(f"{path}: {index.sanity_problem()}; run `kseg reindex` to rebuild it")
            if not index.count:
                return None
    except OpenError as error:
        problems.append(f"{error}: {SCANNED}")
        return None
    with segment.open_log() as log_file:
        problem = time_entry_problem(log_file, segment, entry)
    if problem is not None:
        problems.append(f"{path}: {problem}: {SCANNED}")
        return None
    return entry
