"""Records of v2 batches, v0 and v1 messages and their wrappers, in the order in which Kafka reads their bytes."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, overload
from zlib import crc32

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    ENTRY_MINIMUM_SIZE,
    LENGTH,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    ControlType,
    size_field,
)
from kseg.formats.header_fields import (
    CONTROL_KEY_TYPE,
    CONTROL_KEY_VERSION,
    CONTROL_RECORD_KEY_FIELDS,
    END_TXN_MARKER_FIELDS,
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V0_MAGIC,
    ENTRY_V0_OFFSET,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
    MARKER_COORDINATOR_EPOCH,
    MARKER_VERSION,
)
from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, from_zigzag, read_uvarint
from kseg.kernel.contract import Headers, Problem, RecordProblem, Rows
from kseg.kernel.twin.headers import Header, check_row, int64, read_header, rows_of, sequence_after

MARKERS = (ControlType.ABORT.value, ControlType.COMMIT.value)
_MANY_HEADERS = 1000


class Cursor:
    """Bytes that are read in order. Each method raises EOFError if it would pass their end."""

    def __init__(self, content: bytes, at: int = 0) -> None:
        self.content, self.at = content, at

    @property
    def left(self) -> int:
        """Number of following bytes."""
        return len(self.content) - self.at

    def take(self, size: int) -> bytes:
        """Return the next bytes."""
        if not 0 <= size <= self.left:
            raise EOFError
        self.at += size
        return self.content[self.at - size : self.at]

    def take_sized(self, size: int) -> bytes | None:
        """Return the next bytes, None for null, which has a negative size."""
        return None if size < 0 else self.take(size)

    def int32(self) -> int:
        """Return a length as v0 and v1 store it."""
        return LENGTH.read(self.take(LENGTH.size))

    def varint(self) -> int:
        """Return a zig-zag int32. Kafka drops excess bits of the last byte."""
        return from_zigzag(self._read_unsigned(LONGEST_VARINT) % 2**32)

    def varlong(self) -> int:
        """Return a zig-zag int64."""
        return from_zigzag(self._read_unsigned(LONGEST_VARLONG) % 2**64)

    def _read_unsigned(self, longest: int) -> int:
        start, self.at = self.at, min(self.at + longest, len(self.content))
        value, self.at = read_uvarint(self.content, start, longest)
        return value


class RecordValues(NamedTuple):
    """A record of a v2 batch, or a v0 or v1 message; fields that only one of them has are last.

    has_odd_null: whether a size is negative other than null's -1. is_readable: whether a message is as long as it says;
    if not, its key and value are None.
    """

    offset: int
    timestamp: int
    sequence: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    crc: int
    is_valid: int
    codec: int
    magic: int
    has_odd_null: bool
    timestamp_delta: int = -1
    attributes: int = -1
    is_readable: bool = True


class ManyHeaders(Sequence[tuple[bytes, bytes | None]]):
    """Headers that are read on access: as Python objects they take forty times their bytes."""

    def __init__(self, content: bytes, at: int, count: int) -> None:
        self._content, self._at, self._count = content, at, count

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[bytes, bytes | None]]:
        cursor = Cursor(self._content, self._at)
        for _ in range(self._count):
            yield cursor.take(cursor.varint()), cursor.take_sized(cursor.varint())

    @overload
    def __getitem__(self, index: int) -> tuple[bytes, bytes | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[bytes, bytes | None]]: ...
    def __getitem__(self, index: int | slice) -> tuple[bytes, bytes | None] | list[tuple[bytes, bytes | None]]:
        return list(self)[index]


# --- v2 --------------------------------------------------------------------------------------------------------------


def _batch_records(batch: Header, body: bytes) -> Iterator[RecordValues | RecordProblem]:
    records = Cursor(body)
    for index in range(batch.records_count):
        if records.left == 0:
            yield RecordProblem(batch.position, Problem.BAD_COUNT, index, records.at)
            return
        try:
            record = read_record(records, batch)
        except EOFError:
            yield RecordProblem(batch.position, Problem.BAD_RECORD, index, records.at)
            return
        yield record
    if batch.records_count < 0 or records.left:
        yield RecordProblem(batch.position, Problem.BAD_COUNT, max(batch.records_count, 0), records.at)


def read_record(records: Cursor, batch: Header) -> RecordValues:
    """Return the next record. Raises EOFError if it can't be read as Kafka does. Source: DefaultRecord.readFrom."""
    record = Cursor(records.take(records.varint()))
    attributes = int.from_bytes(record.take(1), signed=True)
    timestamp_delta = record.varlong()
    offset_delta = record.varint()
    key_size = record.varint()
    key = record.take_sized(key_size)
    value_size = record.varint()
    value = record.take_sized(value_size)
    headers, has_odd_null = _read_headers(record)
    if record.left:
        raise EOFError
    append_time = batch.append_time
    return RecordValues(
        offset=int64(batch.base_offset + offset_delta),
        timestamp=int64(batch.base_timestamp + timestamp_delta) if append_time is None else append_time,
        sequence=sequence_after(batch.base_sequence, offset_delta),
        key=key,
        value=value,
        headers=headers,
        crc=batch.crc,
        is_valid=batch.is_valid,
        codec=batch.codec,
        magic=batch.magic,
        has_odd_null=has_odd_null or key_size < -1 or value_size < -1,
        timestamp_delta=timestamp_delta,
        attributes=attributes,
    )


def _read_headers(record: Cursor) -> tuple[Headers, bool]:
    """Return the headers of a record, and whether a size is negative other than null's."""
    count = record.varint()
    if not 0 <= count <= record.left:
        raise EOFError
    headers, has_odd_null = ManyHeaders(record.content, record.at, count), False
    for _ in range(count):
        record.take(record.varint())  # a header's key is never null
        size = record.varint()
        record.take_sized(size)
        has_odd_null |= size < -1
    return headers if count > _MANY_HEADERS else tuple(headers), has_odd_null


class Control(NamedTuple):
    """The key of a control record, and the value of a marker."""

    type: int
    version: int
    coordinator_epoch: int


def read_control(record: RecordValues) -> Control | None:
    """Return the control record, or None for a malformed one.

    Source: ControlRecordType.parse, EndTransactionMarker.
    """
    key, value, coordinator_epoch = record.key, record.value, -1
    if key is None or len(key) < CONTROL_RECORD_KEY_FIELDS.struct.size or CONTROL_KEY_VERSION.read(key) < 0:
        return None
    if CONTROL_KEY_TYPE.read(key) in MARKERS:
        if value is None or len(value) < END_TXN_MARKER_FIELDS.struct.size or MARKER_VERSION.read(value) < 0:
            return None
        coordinator_epoch = MARKER_COORDINATOR_EPOCH.read(value)
    return Control(CONTROL_KEY_TYPE.read(key), CONTROL_KEY_VERSION.read(key), coordinator_epoch)


# --- v0 and v1 -------------------------------------------------------------------------------------------------------


def _read_message(entry: bytes) -> RecordValues:
    magic, crc = ENTRY_V0_MAGIC.read(entry), ENTRY_V0_CRC.read(entry)
    cursor = Cursor(entry, ENTRY_V1_KEY_LENGTH.position if magic == 1 else ENTRY_V0_KEY_LENGTH.position)
    try:
        key_size = cursor.int32()
        key = cursor.take_sized(key_size)
        value_size = cursor.int32()
        value, is_readable = cursor.take_sized(value_size), True
    except EOFError:
        key_size, key, value_size, value, is_readable = -1, None, -1, None, False
    return RecordValues(
        offset=ENTRY_V0_OFFSET.read(entry),
        timestamp=ENTRY_V1_TIMESTAMP.read(entry) if magic == 1 else -1,
        sequence=-1,
        key=key,
        value=value,
        headers=(),
        crc=crc,
        is_valid=int(crc32(entry[MAGIC_POSITION:]) == crc),
        codec=ENTRY_V0_ATTRIBUTES.read(entry) & CODEC_MASK,
        magic=magic,
        has_odd_null=key_size < -1 or value_size < -1,
        is_readable=is_readable,
    )


def _entries(body: bytes) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield entries in a wrapper's body: places, sizes, and bytes; the last one has none if it is incomplete."""
    at = 0
    while len(body) - at >= LOG_OVERHEAD:
        size = size_field(body, at) + LOG_OVERHEAD
        is_whole = ENTRY_MINIMUM_SIZE <= size <= len(body) - at
        yield at, size, body[at : at + size] if is_whole else None
        if not is_whole:
            return
        at += size


def unwrap(wrapper: Header, body: bytes) -> tuple[Header, int]:
    """Return a wrapper header with its messages' base offset and count, and the number to add to stored offsets.

    v0 stores offsets absolute. v1 stores them relative, so that the last one is the wrapper's, unless the wrapper's is
    0.
    """
    first = last = count = 0
    for _, _, entry in _entries(body):
        if entry is not None:
            last = ENTRY_V0_OFFSET.read(entry)
            first = first if count else last
            count += 1
    shift = int64(wrapper.last_offset - last) if wrapper.magic == 1 and wrapper.last_offset else 0
    return wrapper._replace(base_offset=int64(first + shift), records_count=count), shift


def _messages(wrapper: Header, body: bytes) -> Iterator[RecordValues | RecordProblem]:
    """Yield the messages of a wrapper. An incomplete last entry ends them silently, as in Kafka."""
    surveyed, shift = unwrap(wrapper, body)
    if surveyed.records_count == 0 or shift < 0:
        yield RecordProblem(wrapper.position, Problem.BAD_RECORD, 0, 0)
        return
    for index, (at, size, entry) in enumerate(_entries(body)):
        if entry is None and size >= ENTRY_MINIMUM_SIZE:
            return
        message = None if entry is None else _read_message(entry)
        if message is None or not _is_inner(message, wrapper):
            yield RecordProblem(wrapper.position, Problem.BAD_RECORD, index, at)
            return
        append_time = wrapper.append_time
        timestamp = message.timestamp if append_time is None else append_time
        yield message._replace(offset=int64(message.offset + shift), timestamp=timestamp)


def _is_inner(message: RecordValues, wrapper: Header) -> bool:
    """Return True if Kafka reads the message in the wrapper: it is readable, uncompressed, and of the same magic."""
    return message.is_readable and message.codec == 0 and message.magic == (1 if wrapper.magic == 1 else 0)


# --- rows ------------------------------------------------------------------------------------------------------------


class Row(NamedTuple):
    """A batch or an entry: its header, all its bytes, and its decompressed body if it was compressed."""

    header: Header
    content: memoryview
    body: bytes | None

    def message(self) -> RecordValues:
        """Return the message of an entry, also of a wrapper."""
        return _read_message(self.content.tobytes())

    def records(self) -> Iterator[RecordValues | RecordProblem]:
        """Yield the records, up to the first problem; none if they are compressed and the body is missing."""
        header, body = self.header, self.body
        if header.is_batch and header.size < BATCH_HEADER_SIZE:
            yield RecordProblem(header.position, Problem.BAD_RECORD, 0, 0)
        elif header.is_batch and header.codec == 0:
            yield from _batch_records(header, self.content[BATCH_HEADER_SIZE:].tobytes())
        elif header.codec == 0:
            message = self.message()
            yield message if message.is_readable else RecordProblem(header.position, Problem.BAD_RECORD, 0, 0)
        elif body is not None:
            yield from (_batch_records if header.is_batch else _messages)(header, bytes(body))


def read_rows(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int,
) -> Iterator[Row]:
    """Yield rows first … last - 1; `position` is the buffer's in the file; see the contract.

    Raises IndexError for rows outside the buffer, and for missing bodies.
    """
    first_body = first_body if first_body >= 0 else first
    table = rows_of(rows, first, last)
    if bodies is not None and not first_body <= first <= last <= first_body + len(bodies):
        raise IndexError("fewer bodies than rows")
    for number, (at, size, is_valid) in enumerate(table, first):
        check_row(buffer, at, size)
        header = read_header(buffer, at, size, is_valid, position + at)
        yield Row(header, buffer[at : at + size], None if bodies is None else bodies[number - first_body])
