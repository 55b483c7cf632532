"""Places in logs: a log, a batch, and the way through both."""

import os
from array import array
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Iterator
from functools import cached_property, lru_cache
from itertools import islice, takewhile
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.browse.bytes import BodyBytes, ByteSource, OpenLogBytes
from kseg.browse.place import BrowsedPlace, Clock, PlaceRow, ReadRows, Scope, ShownRow, explained_at
from kseg.doctor.kinds import path_word
from kseg.errors import KsegError, OpenError, plural
from kseg.explain.batch import DAMAGE_WALKED, BatchRecords, RecordBytes, damage_fields, outer_fields
from kseg.explain.field import ExplainedField, shown_value
from kseg.explain.internal_records import OpenRecord, internal_opener
from kseg.explain.items import Item
from kseg.findings.kinds import id_of_damage, status_of
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec, codec_name
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.index.entries import OffsetIndex, slot_range
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.log.partition import was_closed
from kseg.log.segments import entry_problem
from kseg.reading.batch import Batch, BatchHeader, damages_of, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile
from kseg.sizes import human_size
from kseg.system.terminal_text import escaped_text

ENOUGH_RECORDS = 4096
"""The number of records that are read at once."""
_SHOWN_KEY, _SHOWN_VALUE = 32, 160
_TIME = "2026-11-01T03:00:00.000Z"
_WITH_TIME = 54
"""The least characters of a list that shows its records' timestamps."""


class BatchPlace(BrowsedPlace):
    """The records of one batch."""

    scopes = frozenset((Scope.RECORDS, Scope.FILE, Scope.DECODED))
    heading = f"{'offset':>10}  key → value"

    def heading_in(self, width: int) -> str:
        """Return the names of the columns in a list of this width."""
        return f"{'offset':>10}  {'time':<{len(_TIME)}}  key → value" if width >= _WITH_TIME else self.heading

    def __init__(
        self,
        batch: Batch,
        path: Path,
        source: ByteSource,
        open_record: OpenRecord | None,
        clock: Clock,
    ) -> None:
        super().__init__(batch_title(batch.header), path)
        self.clock = clock
        self.batch = batch
        self._records = BatchRecords(batch, open_record, clock.zone)
        self._coming = self._records.places()
        self._places: list[RecordBytes] = []
        self._source = source
        if self._records.is_compressed:
            title = f"decompressed records of the batch at {batch.position}"
            self._source = BodyBytes(self._records.content, title)
        self.has_all = False
        self.take_more(self.read_more())
        self._fields = lru_cache(maxsize=256)(self._read_fields)

    @property
    def count(self) -> int:
        """The number of known records."""
        return len(self._places)

    def read_more(self) -> ReadRows:
        """Read records after the known ones."""
        return ReadRows(list(islice(self._coming, ENOUGH_RECORDS)))

    def take_more(self, found: ReadRows) -> None:
        """Add records."""
        added = [each for each in found.rows or () if isinstance(each, RecordBytes)]
        self._places += added
        self.has_all = len(added) < ENOUGH_RECORDS

    def _read_fields(self, number: int) -> list[ExplainedField]:
        return self._records.fields(number, self._places[number])

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a record as a line: offset, key, value."""
        place = self._places[number]
        if place.is_rest:
            return PlaceRow(f"unreadable: {plural(place.end - place.start, 'byte')}", is_wrong=True, is_open=False)
        fields = self._fields(number)
        is_wrong = any(field.problem is not None for field in fields)
        most_of_value = max(width, _SHOWN_VALUE)
        key, value = (
            _short(_leaf(fields, name), most) for name, most in (("key", _SHOWN_KEY), ("value", most_of_value))
        )
        time = f"  {self.clock.text(self._timestamp(fields)):<{len(_TIME)}}" if width >= _WITH_TIME else ""
        text = (
            f"{self._offset(fields):>10}{time}  {key} → {value}"
            if key
            else f"{self._offset(fields):>10}{time}  → {value}"
        )
        return PlaceRow(text, is_wrong=is_wrong, is_open=False)

    def _timestamp(self, fields: list[ExplainedField]) -> int | None:
        """Return the timestamp of a record, or of its batch if brokers set the timestamp."""
        header, delta = self.batch.header, _leaf(fields, "timestamp_delta")
        if header.is_log_append_time:
            return header.max_timestamp
        if delta is not None and isinstance(delta.value, int):
            return header.base_timestamp + delta.value
        own = _leaf(fields, "timestamp")
        return own.value if own is not None and isinstance(own.value, int) else None

    def _offset(self, fields: list[ExplainedField]) -> object:
        delta, base = _leaf(fields, "offset_delta"), self.batch.header.base_offset
        if delta is not None and isinstance(delta.value, int) and base is not None:
            return base + delta.value
        own = _leaf(fields, "offset")
        return own.value + self._shift if own is not None and isinstance(own.value, int) else ""

    @cached_property
    def _shift(self) -> int:
        """The number to add to the offsets of messages in a wrapper: in format 1 they count from its first message."""
        first = _leaf(self._fields(0), "offset")
        return self.batch.base_offset - first.value if first is not None and isinstance(first.value, int) else 0

    def read_row(self, number: int) -> ShownRow:
        """Return the fields of a record."""
        place, fields = self._places[number], self._fields(number)
        position = self._records.first_position + place.start
        item = Item(
            f"record {number}, offset {self._offset(fields)}", position, place.end - place.start, lambda: fields
        )
        note = "" if place.is_rest else self.clock.text(self._timestamp(fields))
        return ShownRow(item, self._source, note)

    def printed_by(self, number: int) -> list[str] | None:
        """Return the kseg arguments that print a record, or that explain its batch if the record can't be read."""
        place = self._places[number]
        offset = None if place.is_rest else self._offset(self._fields(number))
        if not isinstance(offset, int):
            return explained_at(self.path, self.batch.position)
        selected = ["--from-offset", str(offset), "--to-offset", str(offset + 1)]
        return ["dump", path_word(self.path), *selected, "--print-data-log"]

    def offset_of(self, number: int) -> int | None:
        """Return the offset of a row's record, or None if it can't be read."""
        if not self._places:
            return None
        offset = self._offset(self._fields(number))
        return offset if isinstance(offset, int) else None

    def number_of_offset(self, offset: int) -> int:
        """Return the row of the record with an offset; the first one if the record isn't here."""
        records = enumerate(self.batch.records(on_damage="skip"))
        number = next((number for number, record in records if record.offset == offset), 0)
        while number >= self.count and not self.has_all:
            self.take_more(self.read_more())
        return min(number, max(self.count - 1, 0))


def batch_title(header: BatchHeader) -> str:
    """Return the name of a batch on the screen."""
    what = "batch" if header.magic >= 2 else "entry"
    first = header.last_offset if header.base_offset is None else header.base_offset
    return f"{what} {first}" if first == header.last_offset else f"{what} {first}-{header.last_offset}"


def _leaf(fields: Iterable[ExplainedField], name: str) -> ExplainedField | None:
    """Return the field with this name, which may be inside the structure of a message."""
    for field in fields:
        if field.name == name:
            return field
        if field.name == "message":
            return _leaf(field.children, name)
    return None


def _short(field: ExplainedField | None, most: int) -> str:
    if field is None:
        return "null" if most == _SHOWN_VALUE else ""
    text = escaped_text(shown_value(field) if not field.children or field.raw else field.meaning or "…")
    return text if len(text) <= most else f"{text[: most - 1]}…"


class Stretch(NamedTuple):
    """The bytes of a batch, or a damaged range between batches. `damage` describes the problem, if any."""

    position: int
    size: int
    is_batch: bool
    damage: Damage | None = None

    @property
    def end(self) -> int:
        """The position after the bytes."""
        return self.position + self.size


def stretches(log_file: LogFile, start: int) -> Iterator[list[Stretch]]:
    """Yield lists of the batches and damages in a log from a batch's position on, as they are read."""
    for piece in with_bodies(log_file.runs(start), log_file.stored_size):
        if isinstance(piece, Slice):
            yield _batches(log_file, piece)
        elif piece.size:
            yield [Stretch(piece.position, piece.size, is_batch=False, damage=piece)]


def _batches(log_file: LogFile, piece: Slice) -> list[Stretch]:
    run = piece.run
    columns = kernel.load().columns(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
    damages = {damage.position: damage for damage in damages_of(piece, columns)}
    found = []
    for row in range(piece.first, piece.last):
        start, size, is_valid = (run.rows[row * ROW + column] for column in (START, SIZE, VALID))
        position = run.position + start
        damage = damages.get(position) if is_valid else log_file.crc_damage(position, size)
        found.append(Stretch(position, size, is_batch=True, damage=damage))
    return found


def is_harmful(damage: Damage, *, is_last: bool) -> bool:
    """Return True if `verify` would report a damage as more than a note; is_last: it is in the last segment."""
    return status_of(id_of_damage(damage.kind, is_last=is_last)) != 0


def is_last_log(log_file: LogFile) -> bool:
    """Return True if a log is the last one of its partition, which may end in the middle of a batch."""
    return not was_closed(log_file.path)


def start_before(log_file: LogFile, position: int) -> int:
    """Return the position of a batch at or before another position, as near as the offset index allows."""
    name = parse_file_name(log_file.path)
    if name.kind is not FileKind.LOG or name.base_offset is None or position <= 0:
        return 0
    suffix = name.suffix or ""
    stem = log_file.path.name.removesuffix(suffix).removesuffix(".log")
    for own in dict.fromkeys((f"{stem}.index{suffix}", f"{stem}.index")):
        try:
            with OffsetIndex(log_file.path.with_name(own), name.base_offset) as index:
                slot = slot_range(index.file, index.count, position, 1).lower
                entry = index.entry(slot) if slot >= 0 else None
        except OpenError:
            continue
        if entry is not None and entry_problem(log_file, entry.offset, entry.position) is None:
            return entry.position
    return 0


ENOUGH_ROWS = 512
"""The number of rows that are read at once."""
BYTES_BEFORE = 1 << 20
"""Bytes before a position from which rows are read, so that some rows are visible above it."""
MOST_BEFORE = 1 << 16
"""The most rows kept before the known ones if no index has a position near them."""
LARGEST_SHOWN = 1 << 26
"""The size of the largest batch whose bytes are read to be shown."""


class LogPlace(BrowsedPlace):
    """The batches and damages of one log."""

    scopes = frozenset((Scope.RECORDS, Scope.FILE))
    heading = f"{'offset':>10} {'records':>7} {'size':>9} codec  largest timestamp"

    def __init__(self, path: Path) -> None:
        """Open the log. Raises OpenError if it can't be opened."""
        super().__init__(path.name, path)
        self._open()
        self._begin_at(0)

    def _open(self) -> None:
        self._log_file = LogFile(self.path)  # the screen's; another thread may use the other one meanwhile
        self._reading_file = LogFile(self.path)
        self._identity = _identity(self.path)
        self._is_last = is_last_log(self._log_file)

    def _begin_at(self, position: int) -> None:
        self._positions = array("q")
        self._damages: dict[int, Damage] = {}
        self._gaps: set[int] = set()
        self._begin = self._end = position

    def close(self) -> None:
        """Close the log."""
        self._log_file.close()
        self._reading_file.close()

    @property
    def size(self) -> int:
        """The size of the log when it was opened."""
        return self._log_file.size

    @property
    def count(self) -> int:
        """The number of known batches and damages."""
        return len(self._positions)

    @property
    def has_all(self) -> bool:  # type: ignore[override]
        """True if the last known row is the log's last."""
        return self._end >= self.size

    @property
    def has_beginning(self) -> bool:  # type: ignore[override]
        """True if the first known row is the log's first."""
        return self._begin <= 0

    @property
    def has_damage(self) -> bool:
        """True if one of the known rows has a problem."""
        return any(is_harmful(damage, is_last=self._is_last) for damage in self._damages.values())

    def position(self, number: int) -> int:
        """Return the position of a row's first byte."""
        return self._positions[number]

    def end_of(self, number: int) -> int:
        """Return the position after a row's last byte."""
        return self._positions[number + 1] if number + 1 < self.count else self._end

    # --- reading, in another thread ---------------------------------------------------------------------------------

    def read_more(self) -> ReadRows:
        """Read rows after the known ones."""
        return self._read_from(self._end)

    def _read_from(self, start: int, *, until: int = 0) -> ReadRows:
        """Return rows from a position on, at least up to the row that holds another position."""
        rows: list[Stretch] = []
        end = start
        for piece in stretches(self._reading_file, start):
            rows += piece
            end = piece[-1].end
            if len(rows) >= ENOUGH_ROWS and end > until:
                return ReadRows(rows, end)
        return ReadRows(rows, self._reading_file.size if end >= self._reading_file.size or not rows else end)

    def read_before(self) -> ReadRows:
        """Read rows before the known ones, from an index entry on, or from the log's beginning."""
        start = start_before(self._reading_file, self._begin - BYTES_BEFORE)
        before: deque[Stretch] = deque(maxlen=MOST_BEFORE)
        for piece in stretches(self._reading_file, start):
            own = list(takewhile(lambda each: each.position < self._begin, piece))
            before += own
            if len(own) < len(piece):
                break
        return ReadRows(list(before))

    def read_at(self, position: int) -> ReadRows:
        """Read rows around a position, starting at an index entry before it."""
        start = start_before(self._reading_file, position - BYTES_BEFORE)
        rows: deque[Stretch] = deque(maxlen=MOST_BEFORE)
        end = start
        for piece in stretches(self._reading_file, start):
            rows += piece
            end = piece[-1].end
            if end > position and len(rows) >= ENOUGH_ROWS:
                break
        return ReadRows(list(rows), end)

    # --- taking read rows -------------------------------------------------------------------------------------------

    def take_more(self, found: ReadRows) -> None:
        """Append rows to the known ones."""
        self._positions.extend(self._note_stretches(found))
        self._end = max(found.end, self._end)

    def take_before(self, found: ReadRows) -> int:
        """Insert rows before the known ones; return their number."""
        before = array("q", self._note_stretches(found))
        self._positions = before + self._positions
        self._begin = before[0] if before else 0
        return len(before)

    def take_at(self, found: ReadRows, position: int) -> int:
        """Replace the known rows by those around a position, and return the row that holds it."""
        rows = [each for each in found.rows or () if isinstance(each, Stretch)]
        self._begin_at(rows[0].position if rows else 0)
        self.take_more(found)
        return self.row_at(position) or 0

    def row_at(self, position: int) -> int | None:
        """Return the row that contains a position, or None if there is no such row."""
        if not self._begin <= position < self._end:
            return None
        return max(bisect_right(self._positions, position) - 1, 0)

    def _note_stretches(self, found: ReadRows) -> list[int]:
        positions = []
        for each in found.rows or ():
            assert isinstance(each, Stretch)
            positions.append(each.position)
            if each.damage is not None:
                self._damages[each.position] = each.damage
            if not each.is_batch:
                self._gaps.add(each.position)
        return positions

    # --- showing ----------------------------------------------------------------------------------------------------

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a batch or a damage as a line."""
        position = self._positions[number]
        damage = self._damages.get(position)
        is_wrong = damage is not None and is_harmful(damage, is_last=self._is_last)
        if position in self._gaps and damage is not None:
            return PlaceRow(f"{damage.kind}: {human_size(damage.size)}", is_wrong=is_wrong, is_open=False)
        header = self._header(position)
        if header is None:
            return PlaceRow("(cut since)", is_wrong=True, is_open=False)
        kind = "" if damage is None else f" {damage.kind}"
        return PlaceRow(_batch_text(header, self.clock) + kind, is_wrong=is_wrong, is_open=not _is_message(header))

    def _header(self, position: int) -> BatchHeader | None:
        raw = self._log_file.read(position, BATCH_HEADER_SIZE)
        return parse_header(raw.ljust(BATCH_HEADER_SIZE, b"\0"), 0, position) if len(raw) > LOG_OVERHEAD else None

    def read_row(self, number: int) -> ShownRow:
        """Return the fields of a batch or of a damage."""
        position = self._positions[number]
        damage, source = self._damages.get(position), OpenLogBytes(self._log_file)
        if position in self._gaps and damage is not None:
            raw = self._log_file.read(position, min(damage.size, DAMAGE_WALKED))
            item = Item(f"damage: {damage.kind}", position, damage.size, lambda: damage_fields(damage, raw))
        else:
            batch = self._batch(position)
            item = Item(batch_title(batch.header), position, batch.size, lambda: outer_fields(batch))
        problem = None if damage is None else f"{damage.kind}: {damage.detail}"
        return ShownRow(Item(item.title, position, item.size, item.read, lambda: problem), source)

    def _batch(self, position: int) -> Batch:
        header = self._header(position)
        size = 0 if header is None else header.size
        if size > LARGEST_SHOWN:
            raise KsegError(f"a batch of {plural(size, 'byte')} is too large to show", self.path, position)
        raw = self._log_file.read(position, size)
        if len(raw) < size or not raw:
            raise KsegError("the log was cut since; press r to read it again", self.path, position)
        damage = self._damages.get(position)
        return Batch.parse(raw, position, is_valid=damage is None or bool(damage.size == 0))

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that explain a batch or a damage."""
        return explained_at(self.path, self._positions[number])

    def enter(self, number: int) -> BrowsedPlace | None:
        """Return the records of a batch, or the messages in a wrapper."""
        position = self._positions[number]
        if position in self._gaps:
            return None
        batch = self._batch(position)
        if _is_message(batch.header):
            return None
        return BatchPlace(batch, self.path, OpenLogBytes(self._log_file), internal_opener(self.path), self.clock)

    def logs_from(self, number: int) -> list[Path]:
        """Return this log."""
        return [self.path]

    # --- changes ----------------------------------------------------------------------------------------------------

    def look_again(self) -> str:
        """Update the rows after the log has grown, been truncated, or been deleted or replaced."""
        identity = _identity(self.path)
        if identity == self._identity:
            return ""
        if identity is None:
            return "the file is gone; kseg can still read the open file"
        is_same = identity[:2] == self._identity[:2] if self._identity is not None else False
        old = self.size
        self.close()
        self._open()
        if not is_same:
            self._begin_at(0)
            return "another file replaced this one; showing it from the start"
        self._forget_from(min(old, self.size))
        if self.size == old:
            return "changed without a new size"
        verb = "grew" if self.size > old else "was cut"
        return f"the log {verb} from {old} to {plural(self.size, 'byte')}"

    def _forget_from(self, size: int) -> None:
        """Forget the rows that a new end of the log makes doubtful, including the last one, perhaps a torn tail."""
        if self._end < size or not self._positions:
            return
        while self._positions and self._positions[-1] >= size:
            self._forget_last()
        if self._positions:
            self._forget_last()
        if not self._positions:
            self._begin = 0 if self._begin >= size else self._begin
            self._end = self._begin

    def _forget_last(self) -> None:
        self._end = self._positions.pop()
        self._damages.pop(self._end, None)
        self._gaps.discard(self._end)


def _identity(path: Path) -> tuple[int, int, int, int] | None:
    """Return values that change when the file is modified or replaced, or None if it no longer exists."""
    try:
        status = os.stat(path)  # noqa: PTH116  as elsewhere
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_message(header: BatchHeader) -> bool:
    """Return True if it is a single message of an old format: its key and value are fields, and it has no records."""
    return header.is_legacy and header.codec == Codec.NONE


def _batch_text(header: BatchHeader, clock: Clock) -> str:
    first = f"≤{header.last_offset}" if header.base_offset is None else str(header.base_offset)
    records = "" if header.records_count is None else str(header.records_count)
    codec = codec_name(header.codec) or str(header.codec)
    flags = [
        word for word, is_set in (("control", header.is_control), ("transaction", header.is_transactional)) if is_set
    ]
    time = clock.text(header.max_timestamp)
    parts = (f"{first:>10} {records:>7} {human_size(header.size):>9} {codec:<6}", time, *flags)
    return escaped_text(" ".join(part for part in parts if part))
