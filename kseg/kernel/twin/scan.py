"""The Python twin of the compiled kernel: its scan, its entry points, and redaction."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, lru_cache, partial
from itertools import pairwise
from zlib import crc32

from kseg.formats.codes import (
    BATCH_FLAGS,
    CODEC_MASK,
    ENTRY_MINIMUM_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    PLAUSIBLE_ATTRIBUTES,
)
from kseg.formats.header_fields import (
    BATCH_BASE_OFFSET,
    BATCH_CRC,
    BATCH_LENGTH,
    BATCH_MAGIC,
    ENTRY_V0_CRC,
    LEAST_SIZES,
    struct_of,
)
from kseg.kernel.contract import (
    MALFORMED_CONTROL,
    ROW,
    UNKNOWN_CONTROL,
    Decode,
    DecodeControl,
    GapRule,
    Problem,
    Program,
    RecordFilter,
    RecordProblem,
    Rows,
    Slot,
    Stop,
    Template,
)
from kseg.kernel.twin.cleaning import Encoded, OffsetTable
from kseg.kernel.twin.columns import Columns, columns
from kseg.kernel.twin.fold import (
    EntryWriter,
    HeaderColumns,
    HeaderFold,
    OffsetEntries,
    ProducerTable,
    TimeEntries,
    end_marker,
    header_columns,
    walk,
)
from kseg.kernel.twin.lines import Formats, LineTemplate, line_template
from kseg.kernel.twin.records import (
    MARKERS,
    batch_as_record,
    batch_pieces,
    entry_pieces,
    read_batch,
    read_control,
    read_entry,
    read_record,
)
from kseg.kernel.twin.rows import Bodies, has_batch_header, records, select, take_rows, test_of
from kseg.kernel.twin.statistics import Statistics
from kseg.kernel.twin.values import (
    CODEC,
    COUNT,
    FORM,
    IS_CONTROL,
    IS_VALID,
    LAST_OFFSET,
    MAGIC,
    NOTHING_DECODED,
    OFFSET,
    POSITION,
    BatchValues,
    Piece,
    RecordValues,
    header_count_of,
    headers_of,
    int64,
    key_of,
    offset_of,
    validity_of,
    value_of,
    varint,
    varlong,
    with_decoded,
    with_texts,
)

_NO_BATCH: BatchValues = (0,) * OFFSET


def replace_header_values(
    records: bytearray, start: int, end: int, count: int, replace: Callable[[bytes], bytes]
) -> None:
    """Replaces the values of the records' headers where they stand; see the contract."""
    if not 0 <= start <= end <= len(records):
        raise IndexError("records outside the buffer")
    body, at = bytes(records[start:end]), 0
    for _ in range(count):
        if at == len(body):
            return
        record, following = read_record(body, at, _NO_BATCH)
        if record is None:
            return
        header_count = header_count_of(record)
        if header_count:
            for first, last in _header_values(body, _headers_position(body, at), header_count):
                replaced = replace(body[first:last])
                if len(replaced) != last - first:
                    raise ValueError("what replaces a value must have its size")
                records[start + first : start + last] = replaced
        at = following


def _headers_position(body: bytes, at: int) -> int:
    """Where the headers of a readable record begin, after their count."""
    _, at = varint(body, at)
    _, at = varlong(body, at + 1)
    _, at = varint(body, at)
    for _ in range(2):
        size, at = varint(body, at)
        at += max(size, 0)
    return varint(body, at)[1]


def _header_values(body: bytes, at: int, count: int) -> Iterator[tuple[int, int]]:
    """Where the values of headers that can be read begin and end, but for empty ones."""
    for number in range(2 * count):
        size = body[at]
        if size < 0x80:
            size = size >> 1 ^ -(size & 1)
            at += 1
        else:
            size, at = varint(body, at)
        if size > 0:
            if number & 1:
                yield at, at + size
            at += size


__all__ = [
    "NAME",
    "Bodies",
    "Columns",
    "Encoded",
    "EntryWriter",
    "HeaderColumns",
    "HeaderFold",
    "OffsetEntries",
    "OffsetTable",
    "Output",
    "ProducerTable",
    "Renderer",
    "Statistics",
    "TimeEntries",
    "columns",
    "crc32c",
    "end_marker",
    "find_header",
    "header_columns",
    "records",
    "replace_header_values",
    "scan",
    "select",
    "walk",
]

NAME = "twin"

# --- scanning --------------------------------------------------------------------------------------------------------

_SCANNED = struct_of(BATCH_LENGTH, ENTRY_V0_CRC, BATCH_MAGIC, BATCH_CRC, BATCH_FLAGS)
"""CRC_V0 is that of v1 too; the first byte of v2's CRC are the attributes of v0 and v1."""
_SIZE_AND_MAGIC = struct_of(BATCH_LENGTH, BATCH_MAGIC)
_LEGACY = (0, 1)
_V2_COVERED_FROM = BATCH_CRC.end
_OFFSET_AND_SIZE = struct_of(BATCH_BASE_OFFSET, BATCH_LENGTH)


def scan(buffer: memoryview, start: int, end: int, rows: Rows, count: int) -> tuple[int, int, int, int]:
    """Fills `rows` from row `count` on with the intact batches from `start`; see the contract."""
    if start < 0 or end > len(buffer):
        raise IndexError("scan beyond its buffer")
    capacity = len(rows) // ROW
    checksum = _crc32c()
    at, codecs = start, 0
    while end - at >= ENTRY_MINIMUM_SIZE:
        size, legacy_crc, magic, crc, attributes = _SCANNED.unpack_from(buffer, at)
        size += LOG_OVERHEAD
        if size < LEAST_SIZES.get(magic, ENTRY_MINIMUM_SIZE):
            return count, at, Stop.BAD_LENGTH, codecs
        after = at + size
        if after > end:
            return count, at, Stop.END, codecs
        if magic == 2:
            is_valid = checksum(buffer[at + _V2_COVERED_FROM : after]) == crc
        elif magic in _LEGACY:
            attributes = crc >> 24
            is_valid = crc32(buffer[at + MAGIC_POSITION : after]) == legacy_crc
        else:
            return count, at, Stop.BAD_MAGIC, codecs
        if not is_valid:
            return count, at, Stop.BAD_CRC, codecs
        if count == capacity:
            return count, at, Stop.FULL, codecs
        row = count * ROW
        rows[row] = at
        rows[row + 1] = size
        rows[row + 2] = 1
        codecs |= 1 << (attributes & CODEC_MASK)
        count += 1
        at = after
    return count, at, _stop_at_end(buffer, at, end), codecs


def _stop_at_end(buffer: memoryview, at: int, end: int) -> Stop:
    """Why no batch begins in the last bytes, too few for the smallest one."""
    if end - at <= MAGIC_POSITION:
        return Stop.END
    size, magic = _SIZE_AND_MAGIC.unpack_from(buffer, at)
    return Stop.BAD_LENGTH if size + LOG_OVERHEAD < LEAST_SIZES.get(magic, ENTRY_MINIMUM_SIZE) else Stop.END


def find_header(buffer: memoryview, start: int, end: int, base_offset: int, room: int) -> int:
    """Where the next plausible header of a batch begins, or -1; see the contract."""
    if start < 0 or end > len(buffer):
        raise IndexError("search beyond its buffer")
    search = _header_pattern(base_offset >> 32, min(base_offset + 2**31, 2**63 - 1) >> 32, max(room, 0) >> 24).search
    for at, stop in _between_zeros(buffer, start, end):
        while (found := search(buffer, at, stop)) is not None:
            at = found.start()
            if at > end - ENTRY_MINIMUM_SIZE:
                return -1
            offset, size = _OFFSET_AND_SIZE.unpack_from(buffer, at)
            size += LOG_OVERHEAD
            is_near = 0 <= offset - base_offset <= 2**31
            if is_near and LEAST_SIZES[buffer[at + MAGIC_POSITION]] <= size <= room - at:
                return at
            at += 1
    return -1


_STRETCH = 1 << 10
_ZEROS = bytes(_STRETCH + ENTRY_MINIMUM_SIZE)


def _between_zeros(buffer: memoryview, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Overlapping stretches that hold all headers: none begins in zeros, where its size would be 0.

    The pattern would look closer at each of them, at fifty times its usual cost.
    """
    for at in range(start, end, _STRETCH):
        stop = min(at + _STRETCH + ENTRY_MINIMUM_SIZE, end)
        if buffer[at:stop].tobytes() != _ZEROS[: stop - at]:
            yield at, stop


@lru_cache(maxsize=64)
def _header_pattern(low: int, high: int, room: int) -> re.Pattern[bytes]:
    """Headers whose upper half of the offset is `low` or `high`, and whose size isn't beyond `room` · 2²⁴.

    The upper half comes first as plain bytes where it can be only one: so most places are passed over quickly.
    """
    halves = sorted({re.escape((half % 2**32).to_bytes(4, "big")) for half in (low, high)})
    offset = halves[0] if len(halves) == 1 else b"(?:%b)" % b"|".join(halves)
    size = rb"(?!\0\0\0[\0-\x0d])[\0-%b]" % re.escape(bytes([min(room, 0x7F)]))
    v0, v1, v2 = PLAUSIBLE_ATTRIBUTES.values()
    return re.compile(offset + rb".{4}" + size + rb".{7}(?:\x02.{4}\0%b|\x01%b|\0%b)" % (v2, v1, v0), re.DOTALL)


def crc32c(data: memoryview) -> int:
    """CRC-32C of some bytes."""
    return _crc32c()(data)


@cache
def _crc32c() -> Callable[[memoryview], int]:
    from crc32c import crc32c as checksum  # imports importlib.metadata: only where it is needed

    return checksum


# --- writing ---------------------------------------------------------------------------------------------------------


class Output:
    """Collects bytes and hands them to `write` in large pieces."""

    def __init__(self, write: Callable[[memoryview], object], capacity: int) -> None:
        self._write = write
        self._capacity = capacity
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, text: bytes) -> None:
        """Adds bytes after what was rendered."""
        self._pieces.append(text)
        self._size += len(text)
        if self._size >= self._capacity:
            self.flush()

    def flush(self) -> None:
        """Hands over what is collected."""
        collected = b"".join(self._pieces)
        self._pieces.clear()
        self._size = 0
        if collected:
            self._write(memoryview(collected))


# --- rendering -------------------------------------------------------------------------------------------------------

_ALL_RECORDS, _PLAIN_MESSAGES = GapRule.ALL_RECORDS.value, GapRule.PLAIN_MESSAGES.value
_FALLS = GapRule.FALLS.value


class Renderer:
    """Renders batches of one file, and remembers what it met; see the contract."""

    def __init__(
        self,
        program: Program,
        output: Output,
        decode: Decode | None = None,
        decode_control: DecodeControl | None = None,
        gap_rule: GapRule = GapRule.NONE,
        last_offset: int | None = None,
        record_filter: RecordFilter | None = None,
    ) -> None:
        self._output = output
        self._batch_formats = [line and line_template(line, 0).for_batch(()) for line in program.batch]
        self._record_templates = [line and _record_line(line) for line in program.record]
        self._control_templates = None if program.control is None else [_record_line(line) for line in program.control]
        self._is_deep_legacy = program.record[0] is not None or program.record[1] is not None
        self._is_deep_v2 = program.record[2] is not None
        self._decode = None if decode is None else partial(_decoded, decode)
        self._decode_control = decode_control
        self._takes = None if record_filter is None else test_of(record_filter)
        self._to_skip = 0 if record_filter is None else record_filter.skip
        self._limit = None if record_filter is None else record_filter.limit
        self.is_full = self._limit == 0
        self._waiting: tuple[Formats, Sequence[object]] | None = None
        self._gap_rule = int(gap_rule)
        self._last_offset = last_offset
        self.records = 0
        self.problems: list[RecordProblem] = []
        self.gaps: list[tuple[int, int]] = []

    def render(
        self,
        buffer: memoryview,
        rows: Rows,
        first: int,
        last: int,
        position: int,
        bodies: Sequence[bytes | None] | None,
        first_body: int = -1,
    ) -> int:
        """Prints rows from `first` on, up to `last` or through the first batch with a problem; see the contract."""
        problems_before = len(self.problems)
        row = first
        if self.is_full:
            return row
        for at, size, is_valid, body in take_rows(buffer, rows, first, last, bodies, first_body):
            row += 1
            self._waiting = None
            if has_batch_header(buffer, at):
                self._render_batch(buffer, at, read_batch(buffer, at, size, is_valid, position + at), body)
            else:
                self._render_entry(*read_entry(buffer[at : at + size], is_valid, position + at), body)
            if len(self.problems) > problems_before or self.is_full:
                break
        return row

    def _render_batch(self, buffer: memoryview, at: int, batch: BatchValues, body: bytes | None) -> None:
        formats = self._batch_formats[2]
        if formats is not None:
            is_enough = formats.template.reach <= len(batch)
            record = () if is_enough else _shown(batch_as_record(batch), formats.template)
            self._put_batch(formats, (*batch, *record), is_deep=self._is_deep_v2)
        if self._is_deep_v2:
            self._render_records(batch_pieces(buffer, at, batch, body), batch, self._record_templates[2])
        else:
            self.records += max(batch[COUNT], 0)

    def _render_entry(self, entry: BatchValues, message: RecordValues, is_readable: bool, body: bytes | None) -> None:
        magic = 1 if entry[MAGIC] == 1 else 0
        formats = self._batch_formats[magic]
        is_deep = self._is_deep_legacy
        if self._gap_rule == _PLAIN_MESSAGES and entry[CODEC] == 0:
            self._note_offsets([message])
        elif self._gap_rule == _PLAIN_MESSAGES and not is_deep:
            self._last_offset = entry[LAST_OFFSET]
        pieces: Iterable[Piece] = ()
        if is_deep:
            entry, pieces = entry_pieces(entry, message, is_readable, body)
        elif formats is not None and self._decode is not None:
            message = self._decode(message)  # up to 0.10.2 this line shows key and value
        if formats is not None:
            self._put_batch(formats, (*entry, *_shown(message, formats.template)), is_deep=is_deep)
        self._render_records(pieces, entry, self._record_templates[magic])
        self.records += not is_deep

    def _render_records(self, pieces: Iterable[Piece], batch: BatchValues, template: LineTemplate | None) -> None:
        """Prints a batch's records, up to the problem that is met, if one is."""
        first = 0
        is_inner = batch[MAGIC] < 2 and batch[CODEC] != 0
        has_wrong = not batch[IS_VALID]
        notes_offsets = self._gap_rule in (_ALL_RECORDS, _FALLS) or (self._gap_rule == _PLAIN_MESSAGES and is_inner)
        for piece in pieces:
            if isinstance(piece, RecordProblem):
                self.problems.append(piece)
                return
            taken = range(len(piece)) if self._takes is None else self._taken(piece)
            walked = piece[: taken[-1] + 1] if self.is_full else piece
            if notes_offsets:
                self._note_offsets(walked)
            if is_inner and not has_wrong:
                has_wrong = self._note_wrong(walked, first, batch)
            if taken:
                records = piece if len(taken) == len(piece) else [piece[index] for index in taken]
                self._put_records(records, [first + index for index in taken], batch, template)
            if self.is_full:
                return
            first += len(piece)

    def _note_wrong(self, messages: list[RecordValues], first: int, wrapper: BatchValues) -> bool:
        """Notes the first of a wrapper's messages whose own CRC is wrong; tells whether there is one."""
        for index, message in enumerate(messages, first):
            if not validity_of(message):
                self.problems.append(RecordProblem(wrapper[POSITION], Problem.BAD_MESSAGE, index, 0))
                return True
        return False

    def _put_batch(self, formats: Formats, values: Sequence[object], *, is_deep: bool) -> None:
        """Prints a batch's line; with a filter it waits for the first record taken, if records are looked at."""
        if self._takes is not None and is_deep:
            self._waiting = formats, values
        else:
            self._output.write(formats.line(values))

    def _taken(self, records: list[RecordValues]) -> Sequence[int]:
        """Which records the filter takes, up to its limit."""
        assert self._takes is not None
        taken = [index for index, record in enumerate(records) if self._takes(record)]
        skipped = min(self._to_skip, len(taken))
        self._to_skip -= skipped
        taken = taken[skipped:]
        if self._limit is not None and self.records + len(taken) >= self._limit:
            self.is_full = True
            return taken[: self._limit - self.records]
        return taken

    def _put_records(
        self, records: list[RecordValues], indexes: list[int], batch: BatchValues, template: LineTemplate | None
    ) -> None:
        """Prints records of a batch, after its line if that waits for them; `indexes` are theirs in the batch."""
        if self._waiting is not None:
            formats, values = self._waiting
            self._output.write(formats.line(values))
            self._waiting = None
        self.records += len(records)
        if self._control_templates is not None and batch[IS_CONTROL]:
            self._render_control(records, indexes, batch, self._control_templates)
        elif template is not None:
            if self._decode is not None:
                records = [self._decode(record) for record in records]
            elif template.shows_decoded:
                records = [_shown(record, template) for record in records]
            self._output.write(template.for_batch(batch).lines(records))

    def _render_control(
        self, records: list[RecordValues], indexes: list[int], batch: BatchValues, templates: list[LineTemplate]
    ) -> None:
        """Prints control records."""
        for index, record in zip(indexes, records, strict=True):
            control = read_control(record)
            if control is None:
                self.problems.append(RecordProblem(batch[POSITION], Problem.BAD_CONTROL, index, 0))
            kind, shown = control or (MALFORMED_CONTROL, record)
            if control is not None and not 0 <= kind < UNKNOWN_CONTROL:
                kind = UNKNOWN_CONTROL
            elif control is not None and self._decode_control is not None and kind not in MARKERS:
                shown = _with_decoded(shown, self._decode_control)
            self._output.write(templates[kind].for_batch(batch).lines([_shown(shown, templates[kind])]))

    def _note_offsets(self, records: list[RecordValues]) -> None:
        """Remembers each place where an offset isn't the one before + 1; or, if that is the rule, isn't above it."""
        last = self._last_offset
        if self._gap_rule == _FALLS:
            offsets = list(map(offset_of, records))
            self.gaps += [pair for pair in pairwise(([] if last is None else [last]) + offsets) if pair[1] <= pair[0]]
            self._last_offset = offsets[-1] if offsets else last
            return
        for offset in map(offset_of, records):
            if offset - 1 != last and last is not None and int64(offset - 1) != last:
                self.gaps.append((last, offset))
            last = offset
        self._last_offset = last


def _record_line(template: Template) -> LineTemplate:
    return line_template(template, Slot.OFFSET.value)


def _with_decoded(record: RecordValues, decode: DecodeControl) -> RecordValues:
    """The control record with the decoder's text; it has a key."""
    key, value = key_of(record), value_of(record)
    return with_texts(record, key, value, decode(key or b"", value))


def _decoded(decode: Decode, record: RecordValues) -> RecordValues:
    """The record with the decoder's texts."""
    key, value, *texts = decode(key_of(record), value_of(record), offset_of(record), headers_of(record))
    return with_decoded(with_texts(record, key, value, None), texts or NOTHING_DECODED)


def _shown(record: RecordValues, template: LineTemplate) -> RecordValues:
    """The record as long as the template needs it."""
    is_short = template.shows_decoded and len(record) <= FORM - OFFSET + 1
    return with_decoded(record, NOTHING_DECODED) if is_short else record
