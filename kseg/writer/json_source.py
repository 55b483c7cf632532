"""JSON lines to build from: what `dump -o json` prints, or one object per record."""

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath

from kseg.formats.codes import ControlType
from kseg.formats.names import FileKind, parse_file_name
from kseg.writer.record import HeaderPair
from kseg.writer.source import (
    INT8,
    INT16,
    INT32,
    INT64,
    Note,
    SegmentStart,
    SourceBatch,
    SourceError,
    SourceItem,
    SourceRecord,
    TransactionEnd,
    decode_base64,
    integer,
    integer_or,
    quoted,
    text_as_bytes,
)

Members = Mapping[str, object]

_ENDS = {"commit": ControlType.COMMIT, "abort": ControlType.ABORT}
"""Types of objects that end a transaction."""
_PASSED_OVER = frozenset({"finding", *FileKind})
"""Types of objects of other files than logs, and of what is wrong with them."""


def read_json_lines(lines: Iterable[bytes]) -> Iterator[SourceItem]:
    """What JSON lines hold, in order; empty lines are passed over. Raises SourceError at the first that is wrong."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield from reader.take(_object(line, number), number)
    yield from reader.finish()


def _object(line: bytes, number: int) -> Members:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise SourceError(number, f"no JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise SourceError(number, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or lists in lists
        raise SourceError(number, "JSON with a number too long or too many levels") from error
    if not isinstance(value, dict):
        raise SourceError(number, f"{quoted(value)} is no JSON object")
    return value


class _Reader:
    """Puts records to the batch whose line stood before them."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._batch: SourceBatch | None = None
        self._count = 0
        self._records: list[SourceRecord] = []

    def take(self, members: Members, line: int) -> Iterator[SourceItem]:
        """What is complete now that this object was read."""
        kind = members.get("type", "record")
        if not isinstance(kind, str):
            raise SourceError(line, f"type is {quoted(kind)}, not a text")
        if kind == "record":
            yield from self._record(members, line)
            return
        if kind in _PASSED_OVER:
            return
        yield from self.finish()
        yield from self._start_of_segment(members, line)
        if kind == "batch":
            self._batch = _batch(members, line)
            self._count = integer(members, "count", INT32, line)
            if members.get("isValid") is False:
                yield Note(line, "the batch's crc was wrong; it gets a right one")
        elif kind == "damage":
            yield Note(line, f"{members.get('kind')}: what the damage took is left out")
        elif kind in _ENDS:
            yield TransactionEnd(line, _ENDS[kind])
        elif kind != "summary":
            raise SourceError(line, f"type is {quoted(kind)}; it can be batch, record, damage, summary, commit, abort")

    def finish(self) -> Iterator[SourceItem]:
        """The batch that is open. Raises SourceError if it lacks records."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        if len(self._records) != self._count:
            raise SourceError(batch.line, f"the batch counts {self._count} records, {len(self._records)} follow")
        yield batch._replace(records=tuple(self._records))
        self._records = []

    def _record(self, members: Members, line: int) -> Iterator[SourceItem]:
        record = _record(members, line)
        if self._batch is None:
            if members.get("control") is not None:
                raise SourceError(line, "a control record without its batch: let dump print batches too")
            yield record
            return
        if len(self._records) == self._count:
            raise SourceError(line, f"the batch of line {self._batch.line} counts only {self._count} records")
        if record.offset is None:
            raise SourceError(line, "offset is missing, for a record of a batch")
        self._records.append(record)

    def _start_of_segment(self, members: Members, line: int) -> Iterator[SegmentStart]:
        file = members.get("file")
        if file is None or file == self._file:
            return
        if not isinstance(file, str):
            raise SourceError(line, f"file is {quoted(file)}, not a text")
        if self._file is not None and PurePath(file).parent != PurePath(self._file).parent:
            raise SourceError(line, f"{quoted(file)} is of another partition than {quoted(self._file)}")
        self._file = file
        name = parse_file_name(file)
        if name.kind is FileKind.LOG and name.base_offset is not None:
            yield SegmentStart(line, name.base_offset)


def _batch(members: Members, line: int) -> SourceBatch:
    def number(name: str, limits: range, absent: int = -1) -> int:
        value = integer_or(members, name, limits, line, absent)
        assert value is not None
        return value

    magic = integer(members, "magic", range(3), line)
    max_timestamp = number("maxTimestamp", INT64)
    return SourceBatch(
        line,
        magic,
        integer(members, "baseOffset", INT64, line),
        integer(members, "lastOffset", INT64, line),
        number("attributes", range(-(1 << 15), 1 << 16), 0),
        number("baseTimestamp", INT64, max_timestamp),
        max_timestamp,
        number("producerId", INT64),
        number("producerEpoch", INT16),
        number("baseSequence", INT32),
        number("partitionLeaderEpoch", INT32),
        (),
    )


def _record(members: Members, line: int) -> SourceRecord:
    delta = integer_or(members, "timestampDelta", INT64, line, None)
    attributes = integer_or(members, "recordAttributes", INT8, line, 0)
    return SourceRecord(
        line,
        integer_or(members, "offset", INT64, line, None),
        integer_or(members, "timestamp", INT64, line, None),
        _content(members, "key", line),
        _content(members, "value", line),
        _headers(members.get("headers"), line),
        delta,
        attributes or 0,
    )


def _content(members: Members, name: str, line: int) -> bytes | None:
    """A text or null, or base64 under the name with Base64 behind it."""
    value, encoded = members.get(name), members.get(f"{name}Base64")
    if value is not None and encoded is not None:
        raise SourceError(line, f"there are both {name} and {name}Base64")
    if isinstance(value, str):
        return text_as_bytes(value, name, line)
    if value is not None:
        raise SourceError(line, f"{name} is {quoted(value)}, not a text or null")
    if encoded is None:
        return None
    if not isinstance(encoded, str):
        raise SourceError(line, f"{name}Base64 is {quoted(encoded)}, not a text or null")
    return decode_base64(encoded, f"{name}Base64", line)


def _headers(value: object, line: int) -> tuple[HeaderPair, ...]:
    """A list of objects with key and value, or one object of texts by key."""
    if not value and (value is None or isinstance(value, list | dict)):
        return ()
    if isinstance(value, dict):
        value = [{"key": key, "value": content} for key, content in value.items()]
    if not isinstance(value, list):
        raise SourceError(line, f"headers is {quoted(value)}, not a list or an object")
    return tuple(_header(header, line) for header in value)


def _header(header: object, line: int) -> HeaderPair:
    if not isinstance(header, dict):
        raise SourceError(line, f"a header is {quoted(header)}, not an object with key and value")
    key = _content(header, "key", line)
    if key is None:
        raise SourceError(line, "a header has no key")
    return key, _content(header, "value", line)
