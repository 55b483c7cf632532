"""Batches, records and messages as flat tuples of values: the twin's reading half.

A line shows values of its batch and of its record. Both are plain tuples, since one is made per record: a batch's values
stand in the order of the slots before Slot.OFFSET, a record's in the order of the slots from Slot.OFFSET on, followed by
its key, value, headers and form. Numbers that something doesn't have are −1.
"""

from struct import Struct
from zlib import crc32

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    LOG_OVERHEAD,
    MINIMUM_SIZE_FIELD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    ControlType,
    TimestampType,
)
from kseg.kernel.contract import Problem, Slot

Headers = tuple[tuple[bytes, bytes | None], ...]
BatchValues = tuple[int, ...]
RecordValues = tuple[
    int, int, int, int, int, int, int, int, int, int, int, int, int, bytes | None, bytes | None, Headers, int
]

KEY, VALUE, HEADERS, FORM = range(len(Slot), len(Slot) + 4)
"""Places of what follows the slots."""
NULL_KEY, NULL_VALUE, HAS_HEADERS = 1, 2, 4
"""Bits of a record's form: on what of it the shape of its line can depend."""

ENTRY_MINIMUM_SIZE = LOG_OVERHEAD + MINIMUM_SIZE_FIELD[0]
_BATCH_HEADER = Struct(">qiibIhiqqqhii")
_ENTRY = Struct(">qi")
_MESSAGE = Struct(">IbB")
_CONTROL_KEY = Struct(">hh")
_MARKER = Struct(">hi")
_INT32 = Struct(">i")
_INT64 = Struct(">q")
_NO_TIMESTAMP_TYPE = TimestampType.NO_TIMESTAMP_TYPE.value
_LARGEST_SEQUENCE = 2**31 - 1
_NEVER_WRAPS = 2**62
"""Sums of a number up to this one and a delta that a varint of two bytes holds fit into 64 bits."""
_FLAGS = [
    (
        int(bool(attributes & TRANSACTIONAL_MASK)),
        int(bool(attributes & CONTROL_MASK)),
        int(bool(attributes & DELETE_HORIZON_MASK)),
        int(bool(attributes & TIMESTAMP_TYPE_MASK)),
        attributes & CODEC_MASK,
    )
    for attributes in range(128)
]


def _int64(number: int) -> int:
    """A sum as Java's long holds it."""
    return (number + 2**63) % 2**64 - 2**63


def form_of(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """A record's form: its bits."""
    return NULL_KEY * (key is None) | NULL_VALUE * (value is None) | HAS_HEADERS * bool(headers)


def with_texts(record: RecordValues, key: bytes | None, value: bytes | None) -> RecordValues:
    """The record with other texts; its sizes stay those of the stored ones."""
    return (*record[:13], key, value, record[15], form_of(key, value, record[15]))


def _sequence_after(base: int, delta: int) -> int:
    """Sequences run 0 … 2³¹−1 and begin again at 0. Source: DefaultRecordBatch.incrementSequence."""
    if base == -1:
        return -1
    sequence = base + delta
    return sequence - 2**31 if sequence > _LARGEST_SEQUENCE else sequence


# --- batches of magic 2 ----------------------------------------------------------------------------------------------


def read_batch(data: bytes, at: int, size: int, is_valid: int, position: int) -> BatchValues:
    """A v2 batch's values; `data` holds its header at `at`, `position` is its place in the file."""
    (
        base_offset,
        _,
        leader_epoch,
        magic,
        crc,
        attributes,
        last_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        count,
    ) = _BATCH_HEADER.unpack_from(data, at)
    is_transactional, is_control, has_delete_horizon, timestamp_type, codec = _FLAGS[attributes & 127]
    last_offset = base_offset + last_delta
    return (
        base_offset,
        last_offset if -_NEVER_WRAPS < last_offset < _NEVER_WRAPS else _int64(last_offset),
        count,
        base_sequence,
        -1 if base_sequence == -1 else _sequence_after(base_sequence, last_delta),
        producer_id,
        producer_epoch,
        leader_epoch,
        is_transactional,
        is_control,
        has_delete_horizon,
        base_timestamp,
        max_timestamp,
        timestamp_type,
        position,
        size,
        magic,
        codec,
        crc,
        is_valid,
        attributes,
    )


def batch_as_record(batch: BatchValues) -> RecordValues:
    """The record's values in a v2 batch's own line."""
    return (
        batch[Slot.LAST_OFFSET],
        batch[Slot.MAX_TIMESTAMP],
        -1,
        -1,
        batch[Slot.SIZE] - BATCH_HEADER_SIZE,
        0,
        batch[Slot.CRC],
        batch[Slot.IS_VALID],
        batch[Slot.CODEC],
        batch[Slot.MAGIC],
        -1,
        -1,
        -1,
        None,
        None,
        (),
        NULL_KEY | NULL_VALUE,
    )


class RecordReader:
    """Reads a v2 batch's records, some at a time.

    `problem` is what stopped it early, at byte `position` of the body; `records_read` were good before.
    """

    def __init__(self, body: bytes, batch: BatchValues) -> None:
        self.body = body
        self.batch = batch
        self.records_read = 0
        self.position = 0
        self.problem: Problem | None = None

    def read(self, limit: int) -> list[RecordValues]:
        """The next records, at most `limit`; fewer at the end, and where a problem is."""
        records: list[RecordValues] = []
        if self.batch[Slot.COUNT] < 0:
            self.problem = Problem.BAD_COUNT
            return records
        wanted = min(limit, self.batch[Slot.COUNT] - self.records_read)
        while len(records) < wanted and self.problem is None:
            self.position = read_usual_records(self.body, self.position, self.batch, wanted - len(records), records)
            if len(records) < wanted:
                self._read_any(records)
        self.records_read += len(records)
        if self.problem is None and self.is_done and self.position != len(self.body):
            self.problem = Problem.BAD_COUNT
        return records

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to read."""
        return self.problem is not None or self.records_read == self.batch[Slot.COUNT]

    def _read_any(self, records: list[RecordValues]) -> None:
        if self.position == len(self.body):
            self.problem = Problem.BAD_COUNT
            return
        record, self.position = read_record(self.body, self.position, self.batch)
        if record is None:
            self.problem = Problem.BAD_RECORD
        else:
            records.append(record)


def read_control(record: RecordValues) -> tuple[int, RecordValues] | None:
    """A control record's type and the record with it, its version and a marker's coordinator epoch; None if malformed.

    Source: ControlRecordType.parse, EndTransactionMarker.
    """
    key, value = record[13:15]
    if key is None or len(key) < _CONTROL_KEY.size:
        return None
    version, kind = _CONTROL_KEY.unpack_from(key)
    coordinator_epoch = -1
    if kind in (ControlType.ABORT, ControlType.COMMIT):
        if value is None or len(value) < _MARKER.size:
            return None
        marker_version, coordinator_epoch = _MARKER.unpack_from(value)
        version = min(version, marker_version)
    if version < 0:
        return None
    return kind, (*record[:10], kind, version, coordinator_epoch, *record[13:])


def read_usual_records(body: bytes, at: int, batch: BatchValues, limit: int, records: list[RecordValues]) -> int:
    """Adds the records from `at` on that are as records mostly are; gives where the first other one begins.

    That is: no varint has more than two bytes, and nothing is wrong. It reads as read_record() does, at a third of its
    cost. A varint of two bytes is a + b · 128 − 128; if a third one follows, its bit 14 is set, if it is negative, bit 0.
    Nothing is looked at beyond the record, or the record doesn't end where its size says.
    """
    base_offset, base_timestamp, base_sequence = (
        batch[Slot.BASE_OFFSET],
        batch[Slot.BASE_TIMESTAMP],
        batch[Slot.BASE_SEQUENCE],
    )
    crc, is_valid, codec, magic = batch[Slot.CRC], batch[Slot.IS_VALID], batch[Slot.CODEC], batch[Slot.MAGIC]
    append_time = _append_time(batch)
    start = at
    if max(abs(base_offset), abs(base_timestamp)) > _NEVER_WRAPS:
        return start
    try:
        for _ in range(limit):
            start = at
            size = body[at]
            at += 1
            if size > 127:
                size += (body[at] << 7) - 128
                at += 1
            if size & 0x4001:
                return start
            end = at + (size >> 1)
            at += 1  # attributes: unused
            timestamp = body[at]
            at += 1
            if timestamp > 127:
                timestamp += (body[at] << 7) - 128
                at += 1
                if timestamp & 0x4000:
                    return start
            delta = body[at]
            at += 1
            if delta > 127:
                delta += (body[at] << 7) - 128
                at += 1
                if delta & 0x4000:
                    return start
            delta = -(delta >> 1) - 1 if delta & 1 else delta >> 1
            key_size = body[at]
            at += 1
            if key_size > 127:
                key_size += (body[at] << 7) - 128
                at += 1
                if key_size & 0x4000:
                    return start
            form = 0
            if key_size & 1:
                key, key_size, form = None, -1, NULL_KEY
            else:
                key_size >>= 1
                key = body[at : at + key_size]
                at += key_size
            value_size = body[at]
            at += 1
            if value_size > 127:
                value_size += (body[at] << 7) - 128
                at += 1
                if value_size & 0x4000:
                    return start
            if value_size & 1:
                value, value_size = None, -1
                form |= NULL_VALUE
            else:
                value_size >>= 1
                value = body[at : at + value_size]
                at += value_size
            header_count = body[at]
            at += 1
            headers: Headers = ()
            if header_count:
                headers, at = _usual_headers(body, at, header_count)
                header_count >>= 1
                form |= HAS_HEADERS
            if at != end:
                return start
            if append_time is not None:
                timestamp = append_time
            else:
                timestamp = base_timestamp + (-(timestamp >> 1) - 1 if timestamp & 1 else timestamp >> 1)
            if base_sequence == -1:
                sequence = -1
            else:
                sequence = base_sequence + delta
                if sequence > _LARGEST_SEQUENCE:
                    sequence -= 2**31
            records.append(
                (
                    base_offset + delta,
                    timestamp,
                    sequence,
                    key_size,
                    value_size,
                    header_count,
                    crc,
                    is_valid,
                    codec,
                    magic,
                    -1,
                    -1,
                    -1,
                    key,
                    value,
                    headers,
                    form,
                )
            )
    except IndexError:
        return start
    return at


def _usual_headers(body: bytes, at: int, count: int) -> tuple[Headers, int]:
    """Headers behind their count, and where they end; no place at all if they aren't usual."""
    if count > 127 or count & 1:
        return (), -1
    headers = []
    for _ in range(count >> 1):
        size = body[at]
        at += 1
        if size > 127:
            size += (body[at] << 7) - 128
            at += 1
        if size & 0x4001:
            return (), -1
        size >>= 1
        key = body[at : at + size]
        at += size
        size = body[at]
        at += 1
        if size > 127:
            size += (body[at] << 7) - 128
            at += 1
        if size & 0x4000:
            return (), -1
        if size & 1:
            headers.append((key, None))
        else:
            size >>= 1
            headers.append((key, body[at : at + size]))
            at += size
    return tuple(headers), at


# --- any record ------------------------------------------------------------------------------------------------------


class _Unreadable(Exception):
    """Something is wanted that isn't there. `position` is where reading stopped."""

    def __init__(self, position: int) -> None:
        self.position = position


def read_record(body: bytes, start: int, batch: BatchValues) -> tuple[RecordValues | None, int]:
    """The record at `start`, None if it can't be read as Kafka does; and where reading stopped.

    Source: DefaultRecord.readFrom.
    """
    try:
        size, at = _varint(body, start)
    except _Unreadable as error:
        return None, error.position
    if not 0 <= size <= len(body) - at:
        return None, at
    end = at + size
    try:
        return _record(body[at:end], batch), end
    except _Unreadable:
        return None, end


def _record(record: bytes, batch: BatchValues) -> RecordValues:
    timestamp_delta, at = _varlong(record, 1)  # behind the attributes, which are unused
    offset_delta, at = _varint(record, at)
    key, at = _nullable_bytes(record, at)
    value, at = _nullable_bytes(record, at)
    headers, at = _headers(record, at)
    if at != len(record):
        raise _Unreadable(at)
    append_time = _append_time(batch)
    return (
        _int64(batch[Slot.BASE_OFFSET] + offset_delta),
        _int64(batch[Slot.BASE_TIMESTAMP] + timestamp_delta) if append_time is None else append_time,
        _sequence_after(batch[Slot.BASE_SEQUENCE], offset_delta),
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        len(headers),
        batch[Slot.CRC],
        batch[Slot.IS_VALID],
        batch[Slot.CODEC],
        batch[Slot.MAGIC],
        -1,
        -1,
        -1,
        key,
        value,
        headers,
        form_of(key, value, headers),
    )


def _headers(record: bytes, at: int) -> tuple[Headers, int]:
    count, at = _varint(record, at)
    if not 0 <= count <= len(record) - at:
        raise _Unreadable(at)
    headers = []
    for _ in range(count):
        key, at = _nullable_bytes(record, at)
        if key is None:
            raise _Unreadable(at)
        value, at = _nullable_bytes(record, at)
        headers.append((key, value))
    return tuple(headers), at


def _nullable_bytes(record: bytes, at: int) -> tuple[bytes | None, int]:
    size, at = _varint(record, at)
    if size < 0:
        return None, at
    if size > len(record) - at:
        raise _Unreadable(at)
    return record[at : at + size], at + size


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag int32 of at most 5 bytes, and where it ends; Kafka drops what doesn't fit of the last byte."""
    value, at = _base_128(data, at, 5)
    value &= 0xFFFFFFFF
    return value >> 1 ^ -(value & 1), at


def _varlong(data: bytes, at: int) -> tuple[int, int]:
    """The same for an int64 of at most 10 bytes."""
    value, at = _base_128(data, at, 10)
    value &= 0xFFFFFFFF_FFFFFFFF
    return value >> 1 ^ -(value & 1), at


def _base_128(data: bytes, at: int, maximum_size: int) -> tuple[int, int]:
    value = 0
    last = min(at + maximum_size, len(data))
    for position in range(at, last):
        byte = data[position]
        value |= (byte & 0x7F) << 7 * (position - at)
        if byte < 0x80:
            return value, position + 1
    raise _Unreadable(last)


# --- entries of magic 0 and 1 ----------------------------------------------------------------------------------------


def read_entry(data: bytes, at: int, size: int, is_valid: int, position: int) -> tuple[BatchValues, RecordValues, bool]:
    """A v0 or v1 log entry as a batch and as a message, and whether it is long enough for what it says.

    `data` holds its `size` bytes at `at`; `position` is its place in the file.
    """
    (offset,) = _INT64.unpack_from(data, at)
    message, is_readable = _read_message(data, at + LOG_OVERHEAD, at + size, offset, is_valid)
    timestamp, crc, codec, magic = message[1], message[6], message[8], message[9]
    attributes = data[at + LOG_OVERHEAD + 5]
    timestamp_type = int(bool(attributes & TIMESTAMP_TYPE_MASK)) if magic == 1 else _NO_TIMESTAMP_TYPE
    batch = (
        *(offset, offset, 1, -1, -1, -1, -1, -1, 0, 0, 0, timestamp, timestamp, timestamp_type),
        *(position, size, magic, codec, crc, is_valid, attributes),
    )
    return batch, message, is_readable


def _read_message(
    data: bytes, at: int, end: int, offset: int, is_valid: int, append_time: int | None = None
) -> tuple[RecordValues, bool]:
    """The message at `at`, at least 14 bytes; its CRC is looked at unless it is known to hold."""
    crc, magic, attributes = _MESSAGE.unpack_from(data, at)
    timestamp = -1
    texts = at + _MESSAGE.size
    if magic == 1:
        (timestamp,) = _INT64.unpack_from(data, texts)
        texts += _INT64.size
    key = value = None
    is_readable = True
    try:
        key, texts = _sized(data, texts, end)
        value, texts = _sized(data, texts, end)
    except _Unreadable:
        key, is_readable = None, False
    return (
        offset,
        timestamp if append_time is None else append_time,
        -1,
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        0,
        crc,
        is_valid or int(crc32(data[at + _INT32.size : end]) == crc),
        attributes & CODEC_MASK,
        magic,
        -1,
        -1,
        -1,
        key,
        value,
        (),
        form_of(key, value, ()),
    ), is_readable


def _sized(data: bytes, at: int, end: int) -> tuple[bytes | None, int]:
    """Bytes behind their int32 size, None if it is negative; and where they end."""
    start = at + _INT32.size
    if start > end:
        raise _Unreadable(at)
    (size,) = _INT32.unpack_from(data, at)
    if size < 0:
        return None, start
    if size > end - start:
        raise _Unreadable(start)
    return data[start : start + size], start + size


class MessageReader:
    """Reads a v0 or v1 wrapper's inner messages, as RecordReader reads records.

    `batch` is the wrapper's with the base offset and count of the messages. A short last entry ends them silently, as
    Kafka does. v0 stores their offsets absolute; v1 relative to the first one's, unless the wrapper's offset is 0.
    """

    def __init__(self, body: bytes, wrapper: BatchValues) -> None:
        self.body = body
        self.magic = 1 if wrapper[Slot.MAGIC] == 1 else 0
        self.records_read = 0
        self.position = 0
        self.is_done = False
        first, last, count = self._survey()
        wrapper_offset = wrapper[Slot.LAST_OFFSET]
        self.shift = _int64(wrapper_offset - last) if self.magic == 1 and wrapper_offset else 0
        self.append_time = _append_time(wrapper)
        self.batch = (_int64(first + self.shift), wrapper[Slot.LAST_OFFSET], count, *wrapper[Slot.COUNT + 1 :])
        self.problem = Problem.BAD_RECORD if count == 0 or self.shift < 0 else None

    def read(self, limit: int) -> list[RecordValues]:
        """The next messages, at most `limit`; fewer at the end, and where a problem is."""
        records: list[RecordValues] = []
        while self.problem is None and not self.is_done and len(records) < limit:
            offset, size = self._entry(self.position)
            if size is None or (size > len(self.body) - self.position and size >= ENTRY_MINIMUM_SIZE):
                self.is_done = True
                break
            message = self._message(offset, size)
            if message is None:
                self.problem = Problem.BAD_RECORD
            else:
                records.append(message)
                self.position += size
        self.records_read += len(records)
        self.is_done = self.is_done or self.problem is not None
        return records

    def _message(self, offset: int, size: int) -> RecordValues | None:
        if size < ENTRY_MINIMUM_SIZE:
            return None
        start = self.position + LOG_OVERHEAD
        offset = _int64(offset + self.shift)
        message, is_readable = _read_message(self.body, start, self.position + size, offset, 0, self.append_time)
        codec, magic = message[8], message[9]
        return message if is_readable and codec == 0 and magic == self.magic else None

    def _entry(self, at: int) -> tuple[int, int | None]:
        """Stored offset and size of the entry at `at`; no size if that isn't there."""
        if len(self.body) - at < LOG_OVERHEAD:
            return 0, None
        offset, size = _ENTRY.unpack_from(self.body, at)
        return offset, size + LOG_OVERHEAD

    def _survey(self) -> tuple[int, int, int]:
        """The first and the last stored offset, and the count of whole entries."""
        first = last = count = at = 0
        while True:
            offset, size = self._entry(at)
            if size is None or size < ENTRY_MINIMUM_SIZE or size > len(self.body) - at:
                return first, last, count
            last = offset
            first = offset if count == 0 else first
            count += 1
            at += size


def _append_time(batch: BatchValues) -> int | None:
    """The time that a batch or wrapper gives to all its records, if it does so."""
    return batch[Slot.MAX_TIMESTAMP] if batch[Slot.TIMESTAMP_TYPE] == TimestampType.LOG_APPEND_TIME else None
