"""The kernel in Python: what `fast` does, for where no compiler is, and as the definition of it beside the grammars.

Records are read in one loop (twin_records) and shown by `%` on bytes (twin_lines); nothing is interpreted per record.
"""

import re
from collections.abc import Callable
from functools import cache, lru_cache
from itertools import pairwise, repeat
from operator import add
from struct import Struct
from zlib import crc32

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_SIZE_FIELD,
    Codec,
)
from kseg.kernel.contract import (
    MALFORMED_CONTROL,
    ROW,
    SIZE,
    START,
    UNKNOWN_CONTROL,
    VALID,
    Bodies,
    Decode,
    Problem,
    Program,
    RecordProblem,
    Rows,
    Slot,
    Stop,
)
from kseg.kernel.twin_lines import LineTemplate
from kseg.kernel.twin_records import (
    ENTRY_MINIMUM_SIZE,
    BatchValues,
    MessageReader,
    RecordReader,
    RecordValues,
    batch_as_record,
    read_batch,
    read_control,
    read_entry,
    with_texts,
)

NAME = "twin"

_RECORDS_AT_ONCE = 512
"""Records read before they are shown: a batch of a few bytes can hold millions, and a record takes some 400 bytes."""

# --- scanning --------------------------------------------------------------------------------------------------------

_SCANNED = Struct(">8xiIBIxB")
"""Size field, CRC of v0 and v1, magic, CRC of v2 (its first byte: the attributes of v0 and v1), attributes of v2."""
_SIZE_AND_MAGIC = Struct(">8xi4xB")
_LEAST_SIZE = {magic: LOG_OVERHEAD + size for magic, size in MINIMUM_SIZE_FIELD.items()}


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
        if size < _LEAST_SIZE.get(magic, ENTRY_MINIMUM_SIZE):
            return count, at, Stop.BAD_LENGTH, codecs
        if size > end - at:
            return count, at, Stop.END, codecs
        if magic == 2:
            is_valid = checksum(buffer[at + 21 : at + size]) == crc
        elif magic < 2:
            attributes = crc >> 24
            is_valid = crc32(buffer[at + MAGIC_POSITION : at + size]) == legacy_crc
        else:
            return count, at, Stop.BAD_MAGIC, codecs
        if not is_valid:
            return count, at, Stop.BAD_CRC, codecs
        if count == capacity:
            return count, at, Stop.FULL, codecs
        row = count * ROW
        rows[row], rows[row + 1], rows[row + 2] = at, size, 1
        codecs |= 1 << (attributes & CODEC_MASK)
        count += 1
        at += size
    return count, at, _stop_at_end(buffer, at, end), codecs


def _stop_at_end(buffer: memoryview, at: int, end: int) -> Stop:
    """Why no batch begins in the last bytes, too few for the smallest one."""
    if end - at <= MAGIC_POSITION:
        return Stop.END
    size, magic = _SIZE_AND_MAGIC.unpack_from(buffer, at)
    return Stop.BAD_LENGTH if size + LOG_OVERHEAD < _LEAST_SIZE.get(magic, ENTRY_MINIMUM_SIZE) else Stop.END


def find_header(buffer: memoryview, start: int, end: int, base_offset: int, room: int) -> int:
    """Where the next plausible header of a batch begins, or −1; see the contract."""
    if start < 0 or end > len(buffer):
        raise IndexError("search beyond its buffer")
    search = _header_pattern(base_offset >> 32, min(base_offset + 2**31, 2**63 - 1) >> 32, max(room, 0) >> 24).search
    at = start
    while (found := search(buffer, at, end)) is not None:
        at = found.start()
        if at > end - ENTRY_MINIMUM_SIZE:
            return -1
        offset, size = _OFFSET_AND_SIZE.unpack_from(buffer, at)
        size += LOG_OVERHEAD
        is_near = 0 <= offset - base_offset <= 2**31
        if is_near and _LEAST_SIZE[buffer[at + MAGIC_POSITION]] <= size <= room - at:
            return at
        at += 1
    return -1


_OFFSET_AND_SIZE = Struct(">qi")


@lru_cache(maxsize=64)
def _header_pattern(low: int, high: int, room: int) -> re.Pattern[bytes]:
    """Headers whose upper half of the offset is `low` or `high`, and whose size isn't beyond `room` · 2²⁴.

    The upper half comes first as plain bytes where it can be only one: so most places are passed over quickly.
    """
    halves = sorted({re.escape((half % 2**32).to_bytes(4, "big")) for half in (low, high)})
    offset = halves[0] if len(halves) == 1 else b"(?:%b)" % b"|".join(halves)
    size = rb"(?!\0\0\0[\0-\x0d])[\0-%b]" % re.escape(bytes([min(room, 0x7F)]))
    v2 = rb"\x02.{4}\0[\0-\x7f]"
    return re.compile(offset + rb".{4}" + size + rb".{7}(?:%b|\x01[\0-\x0f]|\0[\0-\x07])" % v2, re.DOTALL)


def crc32c(data: memoryview) -> int:
    """CRC-32C of some bytes."""
    return _crc32c()(data)


@cache
def _crc32c() -> Callable[[memoryview], int]:
    from crc32c import crc32c as checksum  # imports importlib.metadata: only where it is needed

    return checksum  # type: ignore[no-any-return]


# --- writing ---------------------------------------------------------------------------------------------------------


class Output:
    """Collects bytes and hands them to `write` in large pieces."""

    def __init__(self, write: Callable[[memoryview], object], capacity: int) -> None:
        self._write = write
        self._capacity = capacity
        self._pieces: list[bytes] = []
        self._size = 0

    def write(self, text: bytes) -> None:
        """Adds bytes behind what was rendered."""
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


class Renderer:
    """Renders batches of one file, and remembers what it met.

    decode, decode_control: what to print for a record, for a control record that isn't a transaction's marker; None for
    the bytes as they are. gap_rule: 0 none; 1 report records whose offset isn't the last one's + 1; 2 the same for v0/v1
    messages that are not compressed themselves, in shallow lines too. last_offset: the one before the first, or None.
    """

    def __init__(
        self,
        program: Program,
        output: Output,
        decode: Decode | None = None,
        decode_control: Decode | None = None,
        gap_rule: int = 0,
        last_offset: int | None = None,
    ) -> None:
        self._output = output
        self._batch_formats = [template and LineTemplate(template, 0).for_batch(()) for template in program.batch]
        self._record_templates = [template and LineTemplate(template, Slot.OFFSET) for template in program.record]
        self._control_templates = program.control and [LineTemplate(line, Slot.OFFSET) for line in program.control]
        self._is_deep = any(template is not None for template in program.record)
        self._decode = decode
        self._decode_control = decode_control
        self._gap_rule = gap_rule
        self._last_offset = last_offset
        self.records = 0
        self.problems: list[RecordProblem] = []
        self.gaps: list[tuple[int, int]] = []

    def render(self, buffer: memoryview, rows: Rows, first: int, last: int, position: int, bodies: Bodies) -> None:
        """Prints rows first … last − 1; `position` is the buffer's in the file; bodies are those of the rows given."""
        if first < 0 or last * ROW > len(rows) or (bodies is not None and len(bodies) < last - first):
            raise IndexError("rows that aren't there")
        if first >= last:
            return
        starts, sizes, are_valid = (rows[first * ROW + column : last * ROW : ROW] for column in (START, SIZE, VALID))
        low, high = min(starts), max(map(add, starts, sizes))
        if low < 0 or min(sizes) < ENTRY_MINIMUM_SIZE or high > len(buffer):
            raise IndexError("a row outside the buffer")
        data = bytes(buffer[low:high])  # indexing bytes is twice as fast as indexing a memoryview
        for start, size, is_valid, body in zip(starts, sizes, are_valid, bodies or repeat(None)):
            at = start - low
            if size >= BATCH_HEADER_SIZE and 2 <= data[at + MAGIC_POSITION] < 128:
                self._render_batch(data, at, read_batch(data, at, size, is_valid, position + start), body)
            else:
                self._render_entry(*read_entry(data, at, size, is_valid, position + start), body)

    def _render_batch(self, data: bytes, at: int, batch: BatchValues, body: bytes | None) -> None:
        formats = self._batch_formats[2]
        if formats is not None:
            self._output.write(formats.line((*batch, *batch_as_record(batch))))
        if not self._is_deep:
            self.records += max(batch[Slot.COUNT], 0)
            return
        if batch[Slot.CODEC] == Codec.NONE:
            body = data[at + BATCH_HEADER_SIZE : at + batch[Slot.SIZE]]
        if body is not None:
            self._render_records(RecordReader(body, batch), self._record_templates[2])

    def _render_entry(self, batch: BatchValues, message: RecordValues, is_readable: bool, body: bytes | None) -> None:
        is_wrapper = batch[Slot.CODEC] != Codec.NONE
        magic = 1 if batch[Slot.MAGIC] == 1 else 0
        if self._is_deep and is_wrapper and body is not None:
            reader = MessageReader(body, batch)
            self._write_batch_line(magic, reader.batch, message)
            self._render_records(reader, self._record_templates[magic])
            return
        if self._gap_rule == 2 and not is_wrapper:
            self._note_offsets([message])
        self._write_batch_line(magic, batch, message)
        if not self._is_deep:
            self.records += 1
        elif not is_wrapper and not is_readable:
            self._add_problem(batch, Problem.BAD_RECORD, 0, 0)
        elif not is_wrapper:
            if self._gap_rule == 1:
                self._note_offsets([message])
            self._render_some([message], 0, batch, self._record_templates[magic])

    def _write_batch_line(self, magic: int, batch: BatchValues, message: RecordValues) -> None:
        formats = self._batch_formats[magic]
        if formats is not None:
            self._output.write(formats.line((*batch, *message)))

    def _render_records(self, reader: RecordReader | MessageReader, template: LineTemplate | None) -> None:
        """Prints what a reader gives, up to the problem that it meets, if it does."""
        batch = reader.batch
        notes_offsets = self._gap_rule == 1 or (self._gap_rule == 2 and batch[Slot.MAGIC] < 2)
        while True:
            index = reader.records_read
            records = reader.read(_RECORDS_AT_ONCE)
            if notes_offsets:
                self._note_offsets(records)
            self._render_some(records, index, batch, template)
            if reader.is_done:
                break
        if reader.problem is not None:
            self._add_problem(batch, reader.problem, reader.records_read, reader.position)

    def _render_some(
        self, records: list[RecordValues], index: int, batch: BatchValues, template: LineTemplate | None
    ) -> None:
        """Prints records of one batch; `index` is the first one's in it."""
        self.records += len(records)
        if batch[Slot.IS_CONTROL] and self._control_templates is not None:
            for at, record in enumerate(records, index):
                self._render_control(record, at, batch, self._control_templates)
        elif template is not None:
            if self._decode is not None:
                records = [_decoded(record, self._decode) for record in records]
            self._output.write(template.for_batch(batch).lines(records))

    def _render_control(
        self, record: RecordValues, index: int, batch: BatchValues, templates: list[LineTemplate]
    ) -> None:
        control = read_control(record)
        if control is None:
            self._add_problem(batch, Problem.BAD_CONTROL, index, 0)
            self._output.write(templates[MALFORMED_CONTROL].for_batch(batch).lines([record]))
            return
        kind, shown = control
        template = templates[kind if 0 <= kind < UNKNOWN_CONTROL else UNKNOWN_CONTROL]
        if self._decode_control is not None and 1 < kind < UNKNOWN_CONTROL:
            shown = _decoded(shown, self._decode_control)
        self._output.write(template.for_batch(batch).lines([shown]))

    def _note_offsets(self, records: list[RecordValues]) -> None:
        """Remembers each place where an offset isn't the one before + 1."""
        if not records:
            return
        offsets = [record[0] for record in records]
        start = offsets[0] if self._last_offset is None else self._last_offset + 1
        if offsets != list(range(start, start + len(offsets))):
            self.gaps.extend(pair for pair in pairwise([start - 1, *offsets]) if pair[1] != pair[0] + 1)
        self._last_offset = offsets[-1]

    def _add_problem(self, batch: BatchValues, problem: Problem, records_read: int, body_position: int) -> None:
        self.problems.append(RecordProblem(batch[Slot.POSITION], problem, records_read, body_position))


def _decoded(record: RecordValues, decode: Decode) -> RecordValues:
    """The record with the decoder's texts."""
    return with_texts(record, *decode(record[13], record[14], record[0]))
