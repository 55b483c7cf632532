"""Records parsed from text and CSV lines, and items with redacted keys, values or headers."""

import csv
import re
from base64 import b64decode
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from kseg.errors import KsegError, plural, quote
from kseg.formats.codes import ControlType
from kseg.reading.batch import BatchHeader
from kseg.redaction import Redaction, Redactor
from kseg.writer.messages import HeaderPair

INT8, INT16, INT32, INT64 = (range(-(1 << bits - 1), 1 << bits - 1) for bits in (8, 16, 32, 64))


class SourceError(KsegError):
    """A line of the source is wrong."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(f"line {line}: {message}")
        self.line = line


class SourceRecord(NamedTuple):
    """A record: offset and timestamp (milliseconds) are None if the source leaves them to `build`.

    timestamp_delta, attributes: as in a v2 batch, if the source has them.
    """

    line: int
    offset: int | None
    timestamp: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[HeaderPair, ...] = ()
    timestamp_delta: int | None = None
    attributes: int = 0


class SourceBatch(NamedTuple):
    """A complete batch, wrapper or v0 or v1 message; its header's position, size and CRC aren't known."""

    line: int
    header: BatchHeader
    records: tuple[SourceRecord, ...]


class SegmentStart(NamedTuple):
    """The start of another segment."""

    line: int
    base_offset: int


class TransactionEnd(NamedTuple):
    """The commit or abort of the preceding records' transaction."""

    line: int
    control_type: ControlType


class Note(NamedTuple):
    """A remark for the user about a line that doesn't stop the build."""

    line: int
    text: str


SourceItem = SourceRecord | SourceBatch | SegmentStart | TransactionEnd | Note


def integer(members: Mapping[str, object], name: str, limits: range, line: int) -> int:
    """Return a number of an object. Raises SourceError if it is missing, isn't an integer, or is out of range."""
    value = members.get(name)
    if isinstance(value, bool) or not isinstance(value, int):
        raise SourceError(line, f"{name} is {quote(value)}, not an integer")
    if value not in limits:
        raise SourceError(line, f"{name} is {value}, expected {limits[0]} to {limits[-1]}")
    return value


def integer_or(members: Mapping[str, object], name: str, limits: range, line: int, absent: int | None) -> int | None:
    """Return a number of an object; `absent` if it is null or missing. Raises SourceError as `integer` does."""
    return absent if members.get(name) is None else integer(members, name, limits, line)


def text_as_bytes(text: str, name: str, line: int) -> bytes:
    """Encode a text as UTF-8. Raises SourceError for half a surrogate pair."""
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise SourceError(line, f"{name} has half a surrogate pair at character {error.start}") from error


def decode_base64(text: str, name: str, line: int) -> bytes:
    """Decode a Base64 text. Raises SourceError if it isn't one, also for line ends and spaces."""
    try:
        return b64decode(text, validate=True)
    except ValueError as error:
        raise SourceError(line, f"{name} is {quote(text)}, not base64") from error


HEADER_COLUMN = "header."
"""The prefix of a CSV column for a header, before the header's name."""
_COLUMNS = ("offset", "timestamp", "key", "value")
_LARGEST_FIELD = 2**31 - 1
_BASE64_MARK = "base64:"
"""The prefix of bytes that aren't UTF-8, as in the CSV that `dump` prints."""
_NUMBER = re.compile(r" *([+-]?[0-9]{1,19}) *")


def read_text_lines(lines: Iterable[bytes], key_separator: str | None = None) -> Iterator[SourceRecord]:
    """Yield a record per line: its value or, with a separator, key and value.

    Raises SourceError for a line without it.
    """
    separator = None if key_separator is None else key_separator.encode("utf-8", "surrogateescape")
    for number, line in enumerate(lines, 1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        key = None
        if separator is not None:
            key, found, content = content.partition(separator)
            if not found:
                raise SourceError(number, f"the line has no {key_separator!r} between key and value")
        yield SourceRecord(number, None, None, key, content)


def read_csv(lines: Iterable[bytes]) -> Iterator[SourceRecord]:
    """Yield a record per row; the first line names the columns: offset, timestamp, key, value, header.NAME.

    An empty field is null; `base64:` begins a field in Base64. Raises SourceError for a wrong row or an unknown
    column.
    """
    rows = csv.reader(_texts(lines), strict=True)
    old_limit = csv.field_size_limit(_LARGEST_FIELD)
    try:
        names = next(rows, None)
        if names is None:
            return
        _check_names(names)
        for fields in rows:
            if fields:
                yield _record(names, fields, rows.line_num)
    except csv.Error as error:
        raise SourceError(rows.line_num, f"not CSV: {error}") from error
    finally:
        csv.field_size_limit(old_limit)


def _texts(lines: Iterable[bytes]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        try:
            yield line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            raise SourceError(number, f"not UTF-8 at byte {error.start}") from error


def _check_names(names: list[str]) -> None:
    for name in names:
        if name not in _COLUMNS and not name.startswith(HEADER_COLUMN):
            raise SourceError(
                1,
                f"the column {quote(name)} isn't known; the columns are {', '.join(_COLUMNS)} and {HEADER_COLUMN}NAME",
            )
    if len(set(names)) < len(names):
        raise SourceError(1, "a column is repeated")


def _record(names: list[str], fields: list[str], line: int) -> SourceRecord:
    if len(fields) != len(names):
        raise SourceError(
            line, f"the line has {len(fields)} fields, but the first line has {plural(len(names), 'column')}"
        )
    row = dict(zip(names, fields, strict=True))
    headers: tuple[HeaderPair, ...] = tuple(
        (name.removeprefix(HEADER_COLUMN), _content(field, name, line))
        for name, field in row.items()
        if name.startswith(HEADER_COLUMN) and field
    )
    offset, timestamp = (_number(row, name, line) for name in ("offset", "timestamp"))
    key, value = (_content(row[name], name, line) if row.get(name) else None for name in ("key", "value"))
    return SourceRecord(line, offset, timestamp, key, value, headers)


def _content(field: str, name: str, line: int) -> bytes:
    if field.startswith(_BASE64_MARK):
        return decode_base64(field.removeprefix(_BASE64_MARK), name, line)
    return text_as_bytes(field, name, line)


def _number(row: Mapping[str, str], name: str, line: int) -> int | None:
    text = row.get(name)
    if not text:
        return None
    found = _NUMBER.fullmatch(text)
    if found is None or (value := int(found[1])) not in INT64:
        raise SourceError(line, f"{name} is {quote(text)}, not an integer of 64 bits")
    return value


def redacted_items(items: Iterable[SourceItem], redaction: Redaction) -> Iterator[SourceItem]:
    """Yield the same items with the chosen parts replaced by contents of the same length; in headers, the values."""
    redactor = redaction.redactor()
    for item in items:
        if isinstance(item, SourceRecord):
            yield _redact_record(item, redaction, redactor)
        elif isinstance(item, SourceBatch) and not item.header.is_control:
            records = tuple(_redact_record(record, redaction, redactor) for record in item.records)
            yield item._replace(records=records)
        else:
            yield item


def _redact_record(record: SourceRecord, redaction: Redaction, redactor: Redactor) -> SourceRecord:
    if "keys" in redaction.parts:
        record = record._replace(key=redactor.replace(record.key))
    if "values" in redaction.parts:
        record = record._replace(value=redactor.replace(record.value))
    if "headers" in redaction.parts:
        record = record._replace(headers=tuple((name, redactor.replace(value)) for name, value in record.headers))
    return record
