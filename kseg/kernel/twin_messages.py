"""Reads v0 and v1 log entries, and the messages of their wrappers: the twin's."""

from collections.abc import Iterable, Iterator
from zlib import crc32

from kseg.formats.codes import CODEC_MASK, ENTRY_MINIMUM_SIZE, LOG_OVERHEAD, TIMESTAMP_TYPE_MASK
from kseg.formats.header_fields import (
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V0_MAGIC,
    ENTRY_V0_MESSAGE_SIZE,
    ENTRY_V0_OFFSET,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
    struct_of,
)
from kseg.formats.positions import LEGACY_FLAGS_POSITION, LENGTH
from kseg.kernel.contract import Problem, RecordProblem
from kseg.kernel.twin_values import (
    CODEC,
    COUNT,
    LAST_OFFSET,
    MAGIC,
    NO_BATCH_SLOTS,
    NO_RECORD_SLOTS,
    NO_TIMESTAMP_TYPE,
    NULL_DECODED,
    NULL_KEY,
    NULL_VALUE,
    POSITION,
    RECORDS_AT_ONCE,
    BatchValues,
    Piece,
    RecordValues,
    append_time_of,
    codec_of,
    crc_of,
    int64,
    magic_of,
    offset_of,
    timestamp_of,
    with_timestamp,
)

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
