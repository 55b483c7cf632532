"""Lines of batches and their records, printed by the twin."""

from collections.abc import Callable, Iterable, Sequence

from kseg.formats.codes import BATCH_HEADER_SIZE
from kseg.kernel.contract import (
    MALFORMED_CONTROL,
    UNKNOWN_CONTROL,
    Decode,
    DecodeControl,
    GapRule,
    Problem,
    Program,
    RecordFilter,
    RecordProblem,
    Rows,
    Template,
)
from kseg.kernel.twin.headers import Header, sequence_after
from kseg.kernel.twin.lines import Line, Shown
from kseg.kernel.twin.records import MARKERS, Control, RecordValues, Row, read_control, read_rows, unwrap
from kseg.kernel.twin.rows import RecordChoice

_Texts = Sequence[bytes | None]
_NO_CONTROL = Control(-1, -1, -1)
_NOT_DECODED = (None,) * 4


class Output:
    """Collects bytes and passes them to `write` in large pieces."""

    def __init__(self, write: Callable[[memoryview], object], capacity: int) -> None:
        self._write, self._capacity = write, capacity
        self._collected = bytearray()

    def write(self, text: bytes) -> None:
        """Add bytes after the rendered ones."""
        self._collected += text
        if len(self._collected) >= self._capacity:
            self.flush()

    def flush(self) -> None:
        """Pass on the collected bytes."""
        collected, self._collected = self._collected, bytearray()
        if collected:
            self._write(memoryview(collected))


class Renderer:
    """The renderer of the contract."""

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
        self._batch_lines = [_line(template) for template in program.batch]
        self._record_lines = [_line(template) for template in program.record]
        self._control_lines = None if program.control is None else list(map(Line, program.control))
        self._is_deep_legacy = program.record[0] is not None or program.record[1] is not None
        self._decode, self._decode_control = decode, decode_control
        self._choice = None if record_filter is None else RecordChoice(record_filter)
        self._waiting: tuple[Line, Shown] | None = None
        self._gap_rule, self.compared_offset = GapRule(gap_rule), last_offset
        self.records = 0
        self.problems: list[RecordProblem] = []
        self.gaps: list[tuple[int, int]] = []

    @property
    def is_full(self) -> bool:
        """True if the filter's limit is reached."""
        return self._choice is not None and self._choice.is_full

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
        """Print rows from `first` on, up to `last` or through the first batch with a problem; see the contract."""
        problems_before = len(self.problems)
        if self.is_full:
            return first
        for number, row in enumerate(read_rows(buffer, rows, first, last, position, bodies, first_body), first):
            self._waiting = None
            if row.header.is_batch:
                self._render_batch(row)
            else:
                self._render_entry(row)
            if len(self.problems) > problems_before or self.is_full:
                return number + 1
        return last

    def _render_batch(self, row: Row) -> None:
        header, is_deep = row.header, self._record_lines[2] is not None
        self._put_batch(self._batch_lines[2], _values_of_batch(header), is_deep=is_deep)
        if is_deep:
            self._render_records(header, row.records())
        else:
            self.records += max(header.records_count, 0)

    def _render_entry(self, row: Row) -> None:
        header, message = row.header, row.message()
        line = self._batch_lines[header.magic == 1]
        if not self._is_deep_legacy:
            if self._gap_rule is GapRule.PLAIN_MESSAGES and header.is_wrapper:
                self.compared_offset = header.last_offset
            elif self._gap_rule is GapRule.PLAIN_MESSAGES:
                self._note_offset(message.offset)
            self.records += 1
            if line is not None:  # up to 0.10.2 this line shows key and value
                self._output.write(line.text(_values_of(_batch_slots(header), message, self._texts(message))))
            return
        if header.is_wrapper and row.body is not None:
            header, _ = unwrap(header, bytes(row.body))
        self._put_batch(
            line,
            _values_of(_batch_slots(header), message, (message.key, message.value, None, *_NOT_DECODED)),
            is_deep=True,
        )
        if self._gap_rule is GapRule.PLAIN_MESSAGES and not header.is_wrapper:
            self._note_offset(message.offset)
        self._render_records(header, row.records())

    def _put_batch(self, line: Line | None, shown: Shown, *, is_deep: bool) -> None:
        """Print a batch's line; with a filter it waits for the first taken record, if records are read."""
        if line is None:
            return
        if self._choice is not None and is_deep:
            self._waiting = line, shown
        else:
            self._output.write(line.text(shown))

    def _render_records(self, batch: Header, records: Iterable[RecordValues | RecordProblem]) -> None:
        """Print the records of a batch, up to the first problem."""
        notes_offsets = self._gap_rule in (GapRule.ALL_RECORDS, GapRule.FALLS) or (
            self._gap_rule is GapRule.PLAIN_MESSAGES and batch.is_wrapper
        )
        has_wrong = not (batch.is_wrapper and batch.is_valid)
        batch_slots = _batch_slots(batch)
        for index, record in enumerate(records):
            if isinstance(record, RecordProblem):
                self.problems.append(record)
                return
            if not has_wrong and not record.is_valid:
                has_wrong = True
                self.problems.append(RecordProblem(batch.position, Problem.BAD_MESSAGE, index, 0))
            if notes_offsets:
                self._note_offset(record.offset)
            if self._choice is None or self._choice.takes(record, self.records):
                self._put_record(batch, batch_slots, record, index)
            if self.is_full:
                return

    def _put_record(self, batch: Header, batch_slots: tuple[int, ...], record: RecordValues, index: int) -> None:
        """Print a record, after its batch's line if that is waiting."""
        if self._waiting is not None:
            line, shown = self._waiting
            self._output.write(line.text(shown))
            self._waiting = None
        self.records += 1
        if batch.is_control and self._control_lines is not None:
            number, shown = self._control_line(batch, batch_slots, record, index)
            self._output.write(self._control_lines[number].text(shown))
        elif (own_line := self._record_lines[2 if batch.is_batch else batch.magic == 1]) is not None:
            self._output.write(own_line.text(_values_of(batch_slots, record, self._texts(record))))

    def _control_line(
        self, batch: Header, batch_slots: tuple[int, ...], record: RecordValues, index: int
    ) -> tuple[int, Shown]:
        """Return the number of a control record's template, and its values; note a malformed record."""
        control, decoded = read_control(record), None
        if control is None:
            self.problems.append(RecordProblem(batch.position, Problem.BAD_CONTROL, index, 0))
            kind = MALFORMED_CONTROL
        else:
            kind = control.type if 0 <= control.type < UNKNOWN_CONTROL else UNKNOWN_CONTROL
            if self._decode_control is not None and kind not in (*MARKERS, UNKNOWN_CONTROL):
                decoded = self._decode_control(record.key or b"", record.value)
        texts = (record.key, record.value, decoded, *_NOT_DECODED)
        return kind, _values_of(batch_slots, record, texts, control or _NO_CONTROL)

    def _texts(self, record: RecordValues) -> _Texts:
        """Return the record's texts, or the decoder's texts for them."""
        if self._decode is None:
            return (record.key, record.value, None, *_NOT_DECODED)
        key, value, *others = self._decode(record.key, record.value, record.offset, record.headers)
        return (key, value, None, *(others or _NOT_DECODED))

    def _note_offset(self, offset: int) -> None:
        """Note an offset that the rule doesn't allow after the preceding one."""
        last, self.compared_offset = self.compared_offset, offset
        if last is not None and self._gap_rule.is_gap(last, offset):
            self.gaps.append((last, offset))


def _line(template: Template | None) -> Line | None:
    return None if template is None else Line(template)


def _batch_slots(batch: Header) -> tuple[int, ...]:
    return (
        batch.base_offset,
        batch.last_offset,
        batch.records_count,
        batch.base_sequence,
        sequence_after(batch.base_sequence, batch.last_offset_delta),
        batch.producer_id,
        batch.producer_epoch,
        batch.partition_leader_epoch,
        batch.is_transactional,
        batch.is_control,
        batch.has_delete_horizon,
        batch.base_timestamp,
        batch.max_timestamp,
        batch.timestamp_type,
        batch.position,
        batch.size,
        batch.magic,
        batch.codec,
        batch.crc,
        batch.is_valid,
        batch.attributes,
    )


def _values_of(
    batch_slots: tuple[int, ...], record: RecordValues, texts: _Texts, control: Control = _NO_CONTROL
) -> Shown:
    """Return the values of a record; sizes are those of the stored key and value, whatever the texts are."""
    key_size, value_size = (-1 if stored is None else len(stored) for stored in (record.key, record.value))
    slots = (
        *batch_slots,
        record.offset,
        record.timestamp,
        record.sequence,
        key_size,
        value_size,
        len(record.headers),
        record.crc,
        record.is_valid,
        record.codec,
        record.magic,
        *control,
        record.timestamp_delta,
        record.attributes,
    )
    return Shown(slots, texts, record.headers)


def _values_of_batch(batch: Header) -> Shown:
    """Return the values of a v2 batch in its own line: a record without key, whose value is the batch's records."""
    last, body_size = (batch.last_offset, batch.max_timestamp), batch.size - BATCH_HEADER_SIZE
    own = (batch.crc, batch.is_valid, batch.codec, batch.magic)
    slots = (*_batch_slots(batch), *last, -1, -1, body_size, 0, *own, *_NO_CONTROL, -1, -1)
    return Shown(slots, (None,) * 7, ())
