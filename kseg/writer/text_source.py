"""Lines of text and CSV to build from."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kseg.errors import quoted
from kseg.writer.source_items import INT64, SourceError, SourceRecord, decode_base64, text_as_bytes

if TYPE_CHECKING:
    from kseg.writer.record_encoding import HeaderPair

HEADER_COLUMN = "header."
"""The prefix of a CSV column for a header; the header's name follows it."""
_COLUMNS = ("offset", "timestamp", "key", "value")
_LARGEST_FIELD = 2**31 - 1
_BASE64_MARK = "base64:"
"""The prefix of bytes that aren't UTF-8, as in the CSV that `dump` prints."""
_NUMBER = re.compile(r" *([+-]?[0-9]{1,19}) *")


def read_text_lines(lines: Iterable[bytes], key_separator: str | None = None) -> Iterator[SourceRecord]:
    """A record per line: its value or, with a separator, key and value; raises SourceError for a line without it."""
    separator = None if key_separator is None else key_separator.encode("utf-8", "surrogateescape")
    for number, line in enumerate(lines, 1):
        content = line.removesuffix(b"\n").removesuffix(b"\r")
        key = None
        if separator is not None:
            key, found, content = content.partition(separator)
            if not found:
                raise SourceError(number, f"no {key_separator!r} between key and value")
        yield SourceRecord(number, None, None, key, content)


def read_csv(lines: Iterable[bytes]) -> Iterator[SourceRecord]:
    """A record per row; the first line names the columns: offset, timestamp, key, value, header.NAME.

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
            raise SourceError(1, f"the column {quoted(name)} isn't known: {', '.join(_COLUMNS)} or {HEADER_COLUMN}NAME")
    if len(set(names)) < len(names):
        raise SourceError(1, "a column is repeated")


def _record(names: list[str], fields: list[str], line: int) -> SourceRecord:
    if len(fields) != len(names):
        raise SourceError(line, f"{len(fields)} fields, the first line names {len(names)} columns")
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
        raise SourceError(line, f"{name} is {quoted(text)}, not an integer of 64 bits")
    return value
