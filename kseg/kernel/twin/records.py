"""Records of v2 batches, v0 and v1 entries and their wrappers, read by the twin."""

from collections.abc import Iterable, Iterator
from zlib import crc32

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    ENTRY_MINIMUM_SIZE,
    LEGACY_FLAGS_POSITION,
    LENGTH,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    ControlType,
)
from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    CONTROL_RECORD_KEY_FIELDS,
    END_TXN_MARKER_FIELDS,
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V0_MAGIC,
    ENTRY_V0_MESSAGE_SIZE,
    ENTRY_V0_OFFSET,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
    KNOWN_ATTRIBUTES,
    struct_of,
)
from kseg.formats.varint_bytes import LONGEST_VARINT
from kseg.kernel.contract import Headers, Problem, RecordProblem, Slot
from kseg.kernel.twin.values import (
    BASE_OFFSET,
    BASE_TIMESTAMP,
    CODEC,
    COUNT,
    CRC,
    HAS_HEADERS,
    IS_VALID,
    LAST_OFFSET,
    LOG_APPEND_TIME,
    MAGIC,
    MAX_TIMESTAMP,
    NO_BATCH_SLOTS,
    NO_RECORD_SLOTS,
    NO_TIMESTAMP_TYPE,
    NULL_DECODED,
    NULL_KEY,
    NULL_VALUE,
    POSITION,
    RECORDS_AT_ONCE,
    SIZE,
    TIMESTAMP_TYPE,
    BatchValues,
    ManyHeaders,
    Piece,
    RecordValues,
    append_time_of,
    codec_of,
    crc_of,
    form_of,
    header,
    int64,
    key_of,
    magic_of,
    nullable_bytes,
    offset_of,
    timestamp_of,
    value_of,
    varint,
    varlong,
    with_control,
    with_timestamp,
)

_BATCH_HEADER = BATCH_HEADER_FIELDS.struct
_CONTROL_KEY = CONTROL_RECORD_KEY_FIELDS.struct
_MARKER = END_TXN_MARKER_FIELDS.struct
BASE_SEQUENCE = Slot.BASE_SEQUENCE.value
MARKERS = (ControlType.ABORT.value, ControlType.COMMIT.value)
_LARGEST_SEQUENCE = 2**31 - 1
_SUM_FITS_FROM, _SUM_FITS_TO = -(2**62), 2**62
"""A number between these and a delta of two bytes, or of 32 bits, make a sum that 64 bits hold."""
_MANY_HEADERS = 1000
_KNOWN_BITS = KNOWN_ATTRIBUTES[2]
_FLAGS = [
    (
        int(bool(attributes & TRANSACTIONAL_MASK)),
        int(bool(attributes & CONTROL_MASK)),
        int(bool(attributes & DELETE_HORIZON_MASK)),
        int(bool(attributes & TIMESTAMP_TYPE_MASK)),
        attributes & CODEC_MASK,
    )
    for attributes in range(_KNOWN_BITS + 1)
]


def _sequence_after(base: int, delta: int) -> int:
    """Sequences run from 0 to 2³¹ - 1 and begin again at 0. Source: DefaultRecordBatch.incrementSequence."""
    if base == -1:
        return -1
    sequence = base + delta
    return sequence - 2**31 if sequence > _LARGEST_SEQUENCE else sequence


def read_batch(buffer: memoryview, at: int, size: int, is_valid: int, position: int) -> BatchValues:
    """A v2 batch's values; `buffer` holds its header at `at`, `position` is its place in the file."""
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
    ) = _BATCH_HEADER.unpack_from(buffer, at)
    is_transactional, is_control, has_delete_horizon, timestamp_type, codec = _FLAGS[attributes & _KNOWN_BITS]
    return (
        base_offset,
        base_offset + last_delta if _SUM_FITS_FROM < base_offset < _SUM_FITS_TO else int64(base_offset + last_delta),
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
    value_size = batch[SIZE] - BATCH_HEADER_SIZE
    crc, is_valid, codec, magic = batch[CRC], batch[IS_VALID], batch[CODEC], batch[MAGIC]
    return (
        batch[LAST_OFFSET],
        batch[MAX_TIMESTAMP],
        -1,
        -1,
        value_size,
        0,
        crc,
        is_valid,
        codec,
        magic,
        *NO_RECORD_SLOTS,
        None,
        None,
        None,
        (),
        NULL_KEY | NULL_VALUE | NULL_DECODED,
    )


def batch_pieces(buffer: memoryview, at: int, batch: BatchValues, body: bytes | None) -> Iterable[Piece]:
    """The records of the batch at `at`, some at a time, and at last the problem that is met, if one is.

    Nothing if the batch is compressed and its body isn't there.
    """
    size, count = batch[SIZE], batch[COUNT]
    if size < BATCH_HEADER_SIZE:
        return [RecordProblem(batch[POSITION], Problem.BAD_RECORD, 0, 0)]
    if batch[CODEC] == 0:
        body = buffer[at + BATCH_HEADER_SIZE : at + size].tobytes()  # indexing bytes takes half the time
    if body is None:
        return ()
    records: list[RecordValues] = []
    read_to = read_usual_records(body, 0, batch, count if count < RECORDS_AT_ONCE else RECORDS_AT_ONCE, records)
    if read_to == len(body) and len(records) == count:
        return (records,)
    return _pieces(body, batch, records, read_to)


def _pieces(body: bytes, batch: BatchValues, records: list[RecordValues], at: int) -> Iterator[Piece]:
    """The pieces of a body whose first records have been read, up to `at`."""
    count, records_read = batch[COUNT], 0
    problem = Problem.BAD_COUNT if count < 0 else None
    while problem is None and records_read < count:
        limit = min(count - records_read, RECORDS_AT_ONCE)
        while problem is None and len(records) < limit:
            at, problem = _read_any_record(body, at, batch, records)
            if problem is None:
                at = read_usual_records(body, at, batch, limit - len(records), records)
        records_read += len(records)
        yield records
        records = []
    if problem is None and at != len(body):
        problem = Problem.BAD_COUNT
    if problem is not None:
        yield RecordProblem(batch[POSITION], problem, records_read, at)


def _read_any_record(
    body: bytes, at: int, batch: BatchValues, records: list[RecordValues]
) -> tuple[int, Problem | None]:
    """Adds the record at `at`; gives where reading stopped, and what is wrong there."""
    if at == len(body):
        return at, Problem.BAD_COUNT
    record, at = read_record(body, at, batch)
    if record is None:
        return at, Problem.BAD_RECORD
    records.append(record)
    return at, None


def read_control(record: RecordValues) -> tuple[int, RecordValues] | None:
    """A control record's type, and the record with type, version and a marker's coordinator epoch; None if malformed.

    Source: ControlRecordType.parse, EndTransactionMarker.
    """
    key, value = key_of(record), value_of(record)
    if key is None or len(key) < _CONTROL_KEY.size:
        return None
    version, kind = _CONTROL_KEY.unpack_from(key)
    marker_version, coordinator_epoch = 0, -1
    if kind in MARKERS:
        if value is None or len(value) < _MARKER.size:
            return None
        marker_version, coordinator_epoch = _MARKER.unpack_from(value)
    if version < 0 or marker_version < 0:
        return None
    return kind, with_control(record, kind, version, coordinator_epoch)


def read_usual_records(  # noqa: C901, PLR0915  calls for each record would cost what this loop saves
    body: bytes, at: int, batch: BatchValues, limit: int, records: list[RecordValues]
) -> int:
    """Adds the records from `at` on that are as most are: no varint longer than two bytes, nothing wrong.

    Gives where the first other one begins. It reads what read_record() reads at a quarter of its cost: a varint of two
    bytes a, b is a + 128 b - 128, whose bit 14 is set if a third byte follows; bit 0 means negative. Only a
    record's size is compared with what is there: one whose lengths go beyond its end doesn't end where it should.
    """
    base_offset, base_timestamp, base_sequence = batch[BASE_OFFSET], batch[BASE_TIMESTAMP], batch[BASE_SEQUENCE]
    max_timestamp, timestamp_type = batch[MAX_TIMESTAMP], batch[TIMESTAMP_TYPE]
    crc, is_valid, codec, magic = batch[CRC], batch[IS_VALID], batch[CODEC], batch[MAGIC]
    if not (_SUM_FITS_FROM < base_offset < _SUM_FITS_TO and _SUM_FITS_FROM < base_timestamp < _SUM_FITS_TO):
        return at
    start = at
    body_size = len(body)
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
            if end > body_size:
                return start
            attributes = body[at]
            time_delta = body[at + 1]
            at += 2
            if attributes > 127:
                return start
            if time_delta > 127:
                time_delta += (body[at] << 7) - 128
                at += 1
                if time_delta & 0x4000:
                    return start
            time_delta = -(time_delta >> 1) - 1 if time_delta & 1 else time_delta >> 1
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
            form = NULL_DECODED
            if key_size & 1:
                key, key_size, form = None, -1, NULL_KEY | NULL_DECODED
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
            timestamp = max_timestamp if timestamp_type == LOG_APPEND_TIME else base_timestamp + time_delta
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
                    time_delta,
                    attributes,
                    key,
                    value,
                    None,
                    headers,
                    form,
                )
            )
    except IndexError:
        return start
    return at


def _usual_headers(body: bytes, at: int, count: int) -> tuple[Headers, int]:
    """Headers after their count, and where they end; no place at all if they aren't usual."""
    if count > 127 or count & 1:
        return (), -1
    headers: list[tuple[bytes, bytes | None]] = []
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


def read_record(body: bytes, start: int, batch: BatchValues) -> tuple[RecordValues | None, int]:
    """The record at `start`, None if it can't be read as Kafka does; and where reading stopped.

    Source: DefaultRecord.readFrom.
    """
    try:
        size, at = varint(body, start)
    except EOFError:
        return None, min(start + LONGEST_VARINT, len(body))
    if not 0 <= size <= len(body) - at:
        return None, at
    end = at + size
    try:
        return _record(body[at:end], batch), end
    except EOFError:
        return None, end


def _record(record: bytes, batch: BatchValues) -> RecordValues:
    timestamp_delta, at = varlong(record, 1)
    attributes = record[0] - ((record[0] & 0x80) << 1)
    offset_delta, at = varint(record, at)
    key, at = nullable_bytes(record, at)
    value, at = nullable_bytes(record, at)
    headers, at = _headers(record, at)
    if at != len(record):
        raise EOFError
    append_time = append_time_of(batch)
    return (
        int64(batch[BASE_OFFSET] + offset_delta),
        int64(batch[BASE_TIMESTAMP] + timestamp_delta) if append_time is None else append_time,
        _sequence_after(batch[BASE_SEQUENCE], offset_delta),
        -1 if key is None else len(key),
        -1 if value is None else len(value),
        len(headers),
        batch[CRC],
        batch[IS_VALID],
        batch[CODEC],
        batch[MAGIC],
        -1,
        -1,
        -1,
        timestamp_delta,
        attributes,
        key,
        value,
        None,
        headers,
        form_of(key, value, None, headers),
    )


def _headers(record: bytes, at: int) -> tuple[Headers, int]:
    count, at = varint(record, at)
    if not 0 <= count <= len(record) - at:
        raise EOFError
    if count > _MANY_HEADERS:
        many = ManyHeaders(record, at, count)
        return many, many.end()
    headers = []
    for _ in range(count):
        pair, at = header(record, at)
        headers.append(pair)
    return tuple(headers), at


_OFFSET_AND_SIZE = struct_of(ENTRY_V0_OFFSET, ENTRY_V0_MESSAGE_SIZE)
_TIMESTAMP, _LENGTH = struct_of(ENTRY_V1_TIMESTAMP), struct_of(LENGTH)
_COVERED_FROM, _V0_KEY_POSITION, _V1_KEY_POSITION = ENTRY_V0_CRC.end, ENTRY_V0_KEY_LENGTH.end, ENTRY_V1_KEY_LENGTH.end
_CRC_TO_ATTRIBUTES = struct_of(ENTRY_V0_CRC, ENTRY_V0_MAGIC, ENTRY_V0_ATTRIBUTES)


def read_entry(content: memoryview, is_valid: int, position: int) -> tuple[BatchValues, RecordValues, bool]:
    """A v0 or v1 log entry as a batch and as a message, and whether it is long enough for what it says.

    `content` is all of it; `position` its place in the file.
    """
    data = content.tobytes()
    size = len(data)
    message, is_readable = _read_message(data, 0, size, ENTRY_V0_OFFSET.read(data), is_valid)
    offset, timestamp, magic = offset_of(message), timestamp_of(message), magic_of(message)
    attributes = data[LEGACY_FLAGS_POSITION]
    batch = (
        offset,
        offset,
        1,
        -1,
        -1,
        -1,
        -1,
        -1,
        0,
        0,
        0,
        timestamp,
        timestamp,
        (1 if attributes & TIMESTAMP_TYPE_MASK else 0) if magic == 1 else NO_TIMESTAMP_TYPE,
        position,
        size,
        magic,
        codec_of(message),
        crc_of(message),
        is_valid,
        attributes,
        *NO_BATCH_SLOTS,
    )
    return batch, message, is_readable


def _read_message(data: bytes, at: int, end: int, offset: int, is_valid: int) -> tuple[RecordValues, bool]:
    """The message of the entry at `at`, which has at least 26 bytes, and whether it is readable.

    Its CRC is computed unless it `is_valid` already.
    """
    crc, magic, attributes = _CRC_TO_ATTRIBUTES.unpack_from(data, at)
    timestamp = _TIMESTAMP.unpack_from(data, at)[0] if magic == 1 else -1
    key_at = at + (_V1_KEY_POSITION if magic == 1 else _V0_KEY_POSITION)
    key = value = None
    key_size, value_size, form = -1, -1, NULL_KEY | NULL_VALUE | NULL_DECODED
    sizes = _sizes(data, key_at, end)
    if sizes is not None:
        key_size, value_size = sizes
        value_at = key_at + LENGTH.size
        if key_size >= 0:
            key = data[key_at : key_at + key_size]
            value_at += key_size
            form -= NULL_KEY
        if value_size >= 0:
            value = data[value_at : value_at + value_size]
            form -= NULL_VALUE
    return (
        offset,
        timestamp,
        -1,
        key_size if key_size >= 0 else -1,
        value_size if value_size >= 0 else -1,
        0,
        crc,
        is_valid or int(crc32(data[at + _COVERED_FROM : end]) == crc),
        attributes & CODEC_MASK,
        magic,
        *NO_RECORD_SLOTS,
        key,
        value,
        None,
        (),
        form,
    ), sizes is not None


def _sizes(data: bytes, key_at: int, end: int) -> tuple[int, int] | None:
    """Sizes of the key at `key_at` and of the value after it, negative for null; None if they aren't all there."""
    if key_at > end:
        return None
    (key_size,) = _LENGTH.unpack_from(data, key_at - LENGTH.size)
    value_at = key_at + LENGTH.size + (key_size if key_size > 0 else 0)
    if value_at > end:
        return None
    (value_size,) = _LENGTH.unpack_from(data, value_at - LENGTH.size)
    return (key_size, value_size) if value_size <= end - value_at else None


def entry_pieces(
    entry: BatchValues, message: RecordValues, is_readable: bool, body: bytes | None
) -> tuple[BatchValues, Iterable[Piece]]:
    """An entry's values, and its message; of a wrapper with its messages' base offset and count, and them."""
    if entry[CODEC] == 0:
        return entry, [[message] if is_readable else RecordProblem(entry[POSITION], Problem.BAD_RECORD, 0, 0)]
    if body is None:
        return entry, ()
    entry, shift = _survey(body, entry)
    return entry, _wrapper_messages(body, entry, shift)


def _survey(body: bytes, wrapper: BatchValues) -> tuple[BatchValues, int]:
    """A wrapper's values with base offset and count of its messages, and the number to add to their stored offsets.

    v0 stores offsets absolute; v1 relative, so that the last one is the wrapper's, unless the wrapper's is 0.
    """
    first = last = count = at = 0
    while (entry := _inner_entry(body, at)) is not None and ENTRY_MINIMUM_SIZE <= entry[1] <= len(body) - at:
        last, size = entry
        first = first if count else last
        count += 1
        at += size
    offset = wrapper[LAST_OFFSET]
    shift = int64(offset - last) if wrapper[MAGIC] == 1 and offset else 0
    return (int64(first + shift), offset, count, *wrapper[COUNT + 1 :]), shift


def _wrapper_messages(body: bytes, wrapper: BatchValues, shift: int) -> Iterator[Piece]:
    """A wrapper's messages as batch_pieces() gives records, with what _survey() gave."""
    at = records_read = 0
    is_good = wrapper[COUNT] > 0 and shift >= 0
    entry = _inner_entry(body, at)
    while is_good and entry is not None:
        records: list[RecordValues] = []
        while entry is not None and len(records) < RECORDS_AT_ONCE:
            offset, size = entry
            if size > len(body) - at and size >= ENTRY_MINIMUM_SIZE:
                entry = None  # a short last entry ends the messages silently, as in Kafka
                break
            message = _inner_message(body, at, size, int64(offset + shift), wrapper)
            if message is None:
                is_good = False
                break
            records.append(message)
            at += size
            entry = _inner_entry(body, at)
        records_read += len(records)
        yield records
    if not is_good:
        yield RecordProblem(wrapper[POSITION], Problem.BAD_RECORD, records_read, at)


def _inner_entry(body: bytes, at: int) -> tuple[int, int] | None:
    """Stored offset and size of the entry at `at`, None at the end."""
    if len(body) - at < LOG_OVERHEAD:
        return None
    offset, size = _OFFSET_AND_SIZE.unpack_from(body, at)
    return offset, size + LOG_OVERHEAD


def _inner_message(body: bytes, at: int, size: int, offset: int, wrapper: BatchValues) -> RecordValues | None:
    """The message of an entry, None if Kafka refuses it: too short, compressed again, or of another magic."""
    if size < ENTRY_MINIMUM_SIZE:
        return None
    message, is_readable = _read_message(body, at, at + size, offset, 0)
    if not is_readable or codec_of(message) != 0 or magic_of(message) != (1 if wrapper[MAGIC] == 1 else 0):
        return None
    append_time = append_time_of(wrapper)
    return message if append_time is None else with_timestamp(message, append_time)


# --- sizes that are negative, but not null's own -1 ------------------------------------------------------------------


def has_odd_null(records: bytes, count: int) -> bool:
    """Whether one of the first `count` records in the body of a v2 batch has such a size, up to an unreadable one."""
    at = 0
    try:
        while at < len(records) and count > 0:
            size, at = varint(records, at)
            end = at + size
            if not 0 <= size <= len(records) - at:
                return False
            sizes, at = _sizes_of_record(records[at:end])
            if at != size:
                return False
            if min(sizes) < -1:
                return True
            at, count = end, count - 1
    except EOFError:
        return False
    return False


def _sizes_of_record(record: bytes) -> tuple[list[int], int]:
    """Sizes of a record's key, value and headers' values, and where it ends. Raises EOFError if it can't be read."""
    _, at = varlong(record, 1)
    _, at = varint(record, at)
    sizes: list[int] = []
    for _ in range(2):
        at = _note_size(record, at, sizes)
    count, at = varint(record, at)
    if count < 0:
        raise EOFError
    for _ in range(count):
        size, at = varint(record, at)
        if size < 0:  # a header's key is never null
            raise EOFError
        at = _note_size(record, at + size, sizes)
    return sizes, at


def _note_size(record: bytes, at: int, sizes: list[int]) -> int:
    size, at = varint(record, at)
    sizes.append(size)
    return at + max(size, 0)


def is_odd_entry(entry: bytes, body: bytes | None) -> bool:
    """Whether a v0 or v1 entry has such a size, or a message in it up to an unreadable one.

    body: a wrapper's, decompressed.
    """
    if _is_odd_message(entry):
        return True
    values, _, is_readable = read_entry(memoryview(entry), 1, 0)
    if values[CODEC] == 0 or body is None or not is_readable:
        return False
    (wrapper, shift), at = _survey(body, values), 0
    while shift >= 0 and (inner := _inner_entry(body, at)) is not None:
        size = inner[1]
        if size > len(body) - at or _inner_message(body, at, size, 0, wrapper) is None:
            return False
        if _is_odd_message(body[at : at + size]):
            return True
        at += size
    return False


def _is_odd_message(message: bytes) -> bool:
    at = _V1_KEY_POSITION if ENTRY_V0_MAGIC.read(message) == 1 else _V0_KEY_POSITION
    sizes = _sizes(message, at, len(message))
    return sizes is not None and min(sizes) < -1
