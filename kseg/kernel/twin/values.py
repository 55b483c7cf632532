"""A batch's and a record's values as flat tuples, with varints and headers, for the twin."""

from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import overload

from kseg.formats.codes import TimestampType
from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, from_zigzag, read_uvarint
from kseg.kernel.contract import Headers, RecordProblem, Slot

BatchValues = tuple[int, ...]
RecordValues = tuple[object, ...]
Piece = list[RecordValues] | RecordProblem
"""Records that follow one another; or, at last, why no more can be read."""

KEY, VALUE, DECODED, HEADERS, FORM = range(len(Slot), len(Slot) + 5)
KEY_DECODED, VALUE_DECODED, KEY_ERROR, VALUE_ERROR = range(FORM + 1, FORM + 5)
"""Places of what follows the slots."""
NULL_KEY, NULL_VALUE, NULL_DECODED, HAS_HEADERS = 1, 2, 4, 8
NULL_KEY_DECODED, NULL_VALUE_DECODED, NULL_KEY_ERROR, NULL_VALUE_ERROR = 16, 32, 64, 128
"""Bits of a record's form: all that the shape of its line can depend on, numbers aside."""

# Plain numbers: to look up an enum's member takes longer than to read a varint (0.3 µs in Python 3.11).
BASE_OFFSET, LAST_OFFSET, COUNT = Slot.BASE_OFFSET.value, Slot.LAST_OFFSET.value, Slot.COUNT.value
OFFSET, PRODUCER_ID, IS_TRANSACTIONAL = Slot.OFFSET.value, Slot.PRODUCER_ID.value, Slot.IS_TRANSACTIONAL.value
POSITION, SIZE = Slot.POSITION.value, Slot.SIZE.value
BASE_TIMESTAMP, MAX_TIMESTAMP = Slot.BASE_TIMESTAMP.value, Slot.MAX_TIMESTAMP.value
TIMESTAMP_TYPE, IS_CONTROL = Slot.TIMESTAMP_TYPE.value, Slot.IS_CONTROL.value
HAS_DELETE_HORIZON = Slot.HAS_DELETE_HORIZON.value
MAGIC, CODEC, CRC, IS_VALID = Slot.MAGIC.value, Slot.CODEC.value, Slot.CRC.value, Slot.IS_VALID.value

NO_TIMESTAMP_TYPE = TimestampType.NO_TIMESTAMP_TYPE.value
LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME.value

_Number = Callable[[RecordValues], int]
_Text = Callable[[RecordValues], bytes | None]
offset_of: _Number = itemgetter(Slot.OFFSET - OFFSET)
timestamp_of: _Number = itemgetter(Slot.TIMESTAMP - OFFSET)
sequence_of: _Number = itemgetter(Slot.SEQUENCE - OFFSET)
header_count_of: _Number = itemgetter(Slot.HEADER_COUNT - OFFSET)
crc_of: _Number = itemgetter(Slot.RECORD_CRC - OFFSET)
validity_of: _Number = itemgetter(Slot.RECORD_IS_VALID - OFFSET)
codec_of: _Number = itemgetter(Slot.RECORD_CODEC - OFFSET)
magic_of: _Number = itemgetter(Slot.RECORD_MAGIC - OFFSET)
key_of: _Text = itemgetter(KEY - OFFSET)
value_of: _Text = itemgetter(VALUE - OFFSET)
headers_of: Callable[[RecordValues], Headers] = itemgetter(HEADERS - OFFSET)
_known_form_of: _Number = itemgetter(FORM - OFFSET)

NO_BATCH_SLOTS = (-1,) * (Slot.OFFSET - Slot.ATTRIBUTES - 1)
"""Slots of a batch that a v0 or v1 entry doesn't have, after those that both have."""
NO_RECORD_SLOTS = (-1,) * (len(Slot) - Slot.RECORD_MAGIC - 1)
"""Slots that only a v2 record has, where there is none."""

RECORDS_AT_ONCE = 512
"""Records in a piece: a body of some bytes can hold millions, and as values one takes some 400 bytes."""


def int64(number: int) -> int:
    """A sum as Java's long holds it."""
    return (number + 2**63) % 2**64 - 2**63


def int32(number: int) -> int:
    """The number as 32 bits hold it: a batch that is wrong can have any base sequence."""
    return (number + 2**31) % 2**32 - 2**31


def append_time_of(batch: BatchValues) -> int | None:
    """The time that a batch or wrapper gives to all its records, if it does so."""
    return batch[MAX_TIMESTAMP] if batch[TIMESTAMP_TYPE] == LOG_APPEND_TIME else None


def form_of(key: bytes | None, value: bytes | None, decoded: bytes | None, headers: Headers) -> int:
    """A record's form: its bits."""
    nulls = NULL_KEY * (key is None) | NULL_VALUE * (value is None) | NULL_DECODED * (decoded is None)
    return nulls | HAS_HEADERS * bool(headers)


def with_decoded(record: RecordValues, texts: Sequence[bytes | None]) -> RecordValues:
    """The record with the other texts of a decoder after it."""
    nulls = [bit for text, bit in zip(texts, _DECODED_BITS, strict=True) if text is None]
    return (*record[: FORM - OFFSET], _known_form_of(record) | sum(nulls), *texts)


_DECODED_BITS = (NULL_KEY_DECODED, NULL_VALUE_DECODED, NULL_KEY_ERROR, NULL_VALUE_ERROR)
NOTHING_DECODED = (None,) * len(_DECODED_BITS)


def with_texts(record: RecordValues, key: bytes | None, value: bytes | None, decoded: bytes | None) -> RecordValues:
    """The record with other texts; its sizes stay those of the stored ones."""
    headers = headers_of(record)
    return (*record[: KEY - OFFSET], key, value, decoded, headers, form_of(key, value, decoded, headers))


def with_control(record: RecordValues, kind: int, version: int, coordinator_epoch: int) -> RecordValues:
    """The control record with what its key and a marker's value say."""
    first, after = Slot.CONTROL_TYPE - OFFSET, Slot.COORDINATOR_EPOCH + 1 - OFFSET
    return (*record[:first], kind, version, coordinator_epoch, *record[after:])


def with_timestamp(record: RecordValues, timestamp: int) -> RecordValues:
    """The record with another time."""
    return (offset_of(record), timestamp, *record[Slot.TIMESTAMP + 1 - OFFSET :])


def header(record: bytes, at: int) -> tuple[tuple[bytes, bytes | None], int]:
    """The header at a place of a record, and where it ends. Raises EOFError if it can't be read."""
    key, at = nullable_bytes(record, at)
    if key is None:
        raise EOFError
    value, at = nullable_bytes(record, at)
    return (key, value), at


class ManyHeaders(Sequence[tuple[bytes, bytes | None]]):
    """Headers that are read when they are asked for: as Python's objects they take forty times their bytes."""

    def __init__(self, record: bytes, at: int, count: int) -> None:
        self._record, self._at, self._count = record, at, count

    def end(self) -> int:
        """Where they end. Raises EOFError if one of them can't be read."""
        record, at = self._record, self._at
        try:
            for number in range(2 * self._count):
                size = record[at]
                if size < 0x80:
                    size = size >> 1 ^ -(size & 1)
                    at += 1
                else:
                    size, at = varint(record, at)
                if size < 0 and number & 1 == 0:
                    raise EOFError  # a null key
                at += max(size, 0)
        except IndexError as error:
            raise EOFError from error
        if at > len(record):
            raise EOFError
        return at

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[tuple[bytes, bytes | None]]:
        at = self._at
        for _ in range(self._count):
            pair, at = header(self._record, at)
            yield pair

    @overload
    def __getitem__(self, index: int) -> tuple[bytes, bytes | None]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[bytes, bytes | None]]: ...
    def __getitem__(self, index: int | slice) -> tuple[bytes, bytes | None] | list[tuple[bytes, bytes | None]]:
        return list(self)[index]


def nullable_bytes(record: bytes, at: int) -> tuple[bytes | None, int]:
    """Bytes after their size, None for null, and where they end. Raises EOFError if they aren't there."""
    size, at = varint(record, at)
    if size < 0:
        return None, at
    if size > len(record) - at:
        raise EOFError
    return record[at : at + size], at + size


def varint(data: bytes, at: int) -> tuple[int, int]:
    """A zig-zag int32, and where it ends. Raises EOFError if it doesn't end in time."""
    value, at = read_uvarint(data, at, LONGEST_VARINT)
    value &= 0xFFFFFFFF  # Kafka drops what doesn't fit of the last byte
    return from_zigzag(value), at


def varlong(data: bytes, at: int) -> tuple[int, int]:
    """The same for an int64."""
    value, at = read_uvarint(data, at, LONGEST_VARLONG)
    value &= 0xFFFFFFFF_FFFFFFFF
    return from_zigzag(value), at
