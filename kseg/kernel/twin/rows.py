"""Rows of a run for the twin's readers: bodies, the choice of records, and records as values."""

from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat
from typing import TYPE_CHECKING, NamedTuple

from kseg.formats.codes import Codec, TimestampType, compressed_body
from kseg.kernel.contract import RecordFilter, RecordProblem, ReplaceContents, Rows
from kseg.kernel.entry_points import LibraryFunctions
from kseg.kernel.record import Header as RecordHeader
from kseg.kernel.record import Record
from kseg.kernel.twin.headers import Header
from kseg.kernel.twin.records import Cursor, RecordValues, read_record, read_rows

if TYPE_CHECKING:
    from kseg.redaction import Redactor

_64_BITS = 2**64 - 1
_INCREMENT, _FIRST_FACTOR, _SECOND_FACTOR = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
_RECORDS_AT_ONCE = 512
_NO_BATCH = Header._make((0,) * len(Header._fields))


class Bodies(list["bytes | None"]):
    """Bodies of consecutive rows."""

    def __init__(self, count: int) -> None:
        super().__init__([None] * count)

    def decompress(
        self, buffer: memoryview, rows: Rows, first: int, functions: LibraryFunctions, limit: int, enough: int
    ) -> tuple[int, list[tuple[int, int, int, int, int]]]:
        """Return all compressed rows: they are left to the libraries' Python interfaces."""
        last = first + len(self)
        found = []
        for number, row in enumerate(read_rows(buffer, rows, first, last, 0, None, -1), first):
            at = row.header.position
            found.append((number, *compressed_body(buffer, at, at + row.header.size)))
        return last, [left for left in found if left[1] != Codec.NONE]


class RecordChoice:
    """A filter, with the number of records that it has skipped so far."""

    def __init__(self, wanted: RecordFilter) -> None:
        self._wanted, self._to_skip = wanted, wanted.skip
        self.is_full = wanted.limit == 0

    def takes(self, record: RecordValues, taken: int) -> bool:
        """Return True if the filter takes a record; `taken`: number of records taken before."""
        if not is_wanted(record, self._wanted):
            return False
        if self._to_skip > 0:
            self._to_skip -= 1
            return False
        self.is_full = self._wanted.limit is not None and taken + 1 >= self._wanted.limit
        return True


def is_wanted(record: RecordValues, wanted: RecordFilter) -> bool:
    """Return True if all conditions are true; calls of Python functions come last."""
    return (
        wanted.first_offset <= record.offset <= wanted.last_offset
        and wanted.first_timestamp <= record.timestamp <= wanted.last_timestamp
        and (wanted.share is None or mix(record.offset) < wanted.share)
        and wanted.key in (None, record.key)
        and _has_part(record.key, wanted.key_part)
        and _has_part(record.value, wanted.value_part)
        and (not wanted.headers or _has_headers(record, wanted.headers))
        and (wanted.predicate is None or bool(wanted.predicate(record.key, record.value)))
    )


def _has_part(text: bytes | None, part: bytes | None) -> bool:
    return part is None or (text is not None and part in text)


def _has_headers(record: RecordValues, wanted: tuple[tuple[bytes, bytes | None], ...]) -> bool:
    missing = set(wanted)
    for name, value in record.headers:
        missing -= {(name, value), (name, None)}
    return not missing


def mix(number: int) -> int:
    """Return the number's bits mixed evenly: splitmix64."""
    number = (number + _INCREMENT) & _64_BITS
    number = (number ^ number >> 30) * _FIRST_FACTOR & _64_BITS
    number = (number ^ number >> 27) * _SECOND_FACTOR & _64_BITS
    return number ^ number >> 31


def records(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int = -1,
) -> Iterator[list[Record] | RecordProblem]:
    """Yield the records of rows first … last - 1 as values; see the contract."""
    for row in read_rows(buffer, rows, first, last, position, bodies, first_body):
        read = row.records()
        while some := list(islice(read, _RECORDS_AT_ONCE)):
            if values := [_record(row.header, each) for each in some if isinstance(each, RecordValues)]:
                yield values
            if isinstance(some[-1], RecordProblem):
                yield some[-1]


def _record(batch: Header, values: RecordValues) -> Record:
    return Record(
        offset=values.offset,
        timestamp=values.timestamp,
        timestamp_type=TimestampType(batch.timestamp_type),
        key=values.key,
        value=values.value,
        headers=tuple([RecordHeader(name.decode("utf-8", "replace"), value) for name, value in values.headers]),
        sequence=int32(values.sequence),
        position=batch.position,
        crc=values.crc,
        is_valid=bool(values.is_valid),
    )


def int32(number: int) -> int:
    """Return the low 32 bits of a number, because damaged batches can contain any base sequence."""
    return (number + 2**31) % 2**32 - 2**31


class Replacer:
    """Replaces keys and values; see the contract."""

    def __init__(self, redactor: "Redactor", *, keeps_keys: bool = False) -> None:
        self._replace, self._keeps_keys = redactor.replace, keeps_keys

    def __call__(self, key: bytes | None, value: bytes | None) -> tuple[bytes | None, bytes | None]:
        """Return the substitutes of a key and its value."""
        return key if self._keeps_keys else self._replace(key), self._replace(value)


def replace_contents(
    records: bytearray,
    start: int,
    end: int,
    count: int,
    replace_record: ReplaceContents | None,
    replace_header: ReplaceContents | None,
) -> None:
    """Replace keys, values and headers of records where they stand; see the contract."""
    if not 0 <= start <= end <= len(records):
        raise IndexError("records outside the buffer")
    body = Cursor(bytes(records[start:end]))
    for _ in range(count):
        record = Cursor(body.content, body.at)
        try:
            read_record(body, _NO_BATCH)
        except EOFError:
            return
        pairs = _pairs(record)
        for replace, (key, value) in zip(chain([replace_record], repeat(replace_header)), pairs, strict=False):
            if replace is None:
                continue
            for old, new in zip((key, value), replace(key.content, value.content), strict=True):
                if not old.content:
                    continue
                if new is None or len(new) != len(old.content):
                    raise ValueError("what replaces a content must have its size")
                records[start + old.place : start + old.place + len(new)] = new


class _Content(NamedTuple):
    """A content of a record, and where it stands."""

    place: int
    content: bytes | None


def _pairs(record: Cursor) -> Iterator[tuple[_Content, _Content]]:
    """Yield key and value of a record that can be read, then those of its headers."""
    record.varint()
    record.take(1)
    record.varlong()
    record.varint()
    yield _locate_content(record), _locate_content(record)
    for _ in range(record.varint()):
        yield _locate_content(record), _locate_content(record)


def _locate_content(record: Cursor) -> _Content:
    content = record.take_sized(record.varint())
    return _Content(record.at - len(content or b""), content)
