"""Records parsed from JSON lines: the output of `dump -o json`, or one object per record."""

import json
import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from itertools import count
from pathlib import PurePath
from typing import TYPE_CHECKING, BinaryIO

from kseg.errors import KsegError, OpenError, plural, quote
from kseg.formats.codes import TIMESTAMP_TYPE_MASK, ControlType
from kseg.formats.file_names import FileKind, parse_file_name
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, PRODUCER_NAMES, camel_case
from kseg.reading.batch import NEW_HEADER
from kseg.reading.other_files import refusal_of_bytes
from kseg.system.files import open_regular
from kseg.writer.messages import HeaderPair
from kseg.writer.text_source import (
    INT8,
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
    read_csv,
    read_text_lines,
    text_as_bytes,
)

if TYPE_CHECKING:
    from kseg.redaction import Redaction


Members = Mapping[str, object]

_TYPES = ("batch", "record", "damage", "summary", "commit", "abort")
_ENDS = {"commit": ControlType.COMMIT, "abort": ControlType.ABORT}
"""Types of objects that end a transaction."""
_CONTENT = ("key", "keyBase64", "value", "valueBase64")
_TAKEN = ("offset", "timestamp", *_CONTENT, "headers", "timestampDelta", "recordAttributes")
FIELDS: dict[str, tuple[str, ...]] = {
    "record": (
        *("type", "file", "topic", "partition", *_TAKEN, "time", "timestampType", "sequence", "position", "isValid"),
        *("keySize", "valueSize", "keyDecoded", "valueDecoded", "keyError", "valueError", "control"),
    ),
    "batch": (
        *("type", "file", "position", "size", "baseOffset", "lastOffset", "count", "magic", "compression", "crc"),
        *("isValid", "attributes", "timestampType", "baseTimestamp", "maxTimestamp"),
        *map(camel_case, PRODUCER_NAMES),
        *("lastSequence", "partitionLeaderEpoch", "isTransactional", "isControl", "deleteHorizonMs"),
    ),
    "damage": ("type", "file", "kind", "position", "size", "detail", "nextOffset"),
    "summary": ("type", "file", "batches", "records", "bytes", "lost"),
    "commit": ("type",),
    "abort": ("type",),
}
"""The allowed fields of objects, by type: all that `dump` prints, even if writing doesn't need them."""
_PRODUCER = {camel_case(name): BATCH_HEADER_FIELDS.field(name).limits for name in PRODUCER_NAMES}
_PASSED_OVER = frozenset({"finding", *FileKind})
"""Types of objects for files other than logs, and for findings."""


def read_json_lines(lines: Iterable[bytes]) -> Iterator[SourceItem]:
    """Yield the contents of JSON lines, in order; skips empty lines. Raises SourceError at the first wrong one."""
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        if line.strip():
            yield from reader.take(_object(line, number), number)
    yield from reader.finish()


def _object(line: bytes, number: int) -> Members:
    try:
        value = json.loads(line)
    except json.JSONDecodeError as error:
        raise SourceError(number, f"not JSON: {error.msg} at column {error.colno}") from error
    except UnicodeDecodeError as error:
        raise SourceError(number, f"not UTF-8 at byte {error.start}") from error
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, or deeply nested lists
        raise SourceError(number, "the JSON has a number that is too long, or too many levels") from error
    if not isinstance(value, dict):
        raise SourceError(number, f"{quote(value)} isn't a JSON object")
    return value


class _Reader:
    """A reader that adds records to the batch on a preceding line."""

    def __init__(self) -> None:
        self._file: str | None = None
        self._start: SegmentStart | None = None
        self._batch: SourceBatch | None = None
        self._begins_file = True
        self._count = 0
        self._records: list[SourceRecord] = []
        self._cut_count = 0
        self._first_cut = 0

    def take(self, members: Members, line: int) -> Iterator[SourceItem]:
        """Yield items that this object completes."""
        kind = members.get("type", "record")
        if not isinstance(kind, str):
            raise SourceError(line, f"type is {quote(kind)}, expected text")
        if kind == "record":
            yield from self._record(members, line)
            return
        if kind in _PASSED_OVER:
            return
        yield from self._end_batch(is_damaged=kind == "damage")
        _check_fields(members, kind, line)
        self._take_file(members, line)
        if kind == "batch":
            self._batch = _batch(members, line)
            self._count = integer(members, "count", INT32, line)
            self._begins_file = not members.get("position")
            if members.get("isValid") is False:
                yield Note(line, "the batch's CRC was wrong; the new CRC is right")
        elif kind == "damage":
            yield Note(line, f"{members.get('kind')}: records lost to the damage are omitted")
        elif kind in _ENDS:
            yield TransactionEnd(line, _ENDS[kind])
        elif kind == "summary" and not members.get("bytes"):
            # the log isn't empty, but nothing was selected or could be read
            yield from self._start_of_segment()

    def finish(self) -> Iterator[SourceItem]:
        """Yield the open batch, and notes. Raises SourceError if records of that batch are missing."""
        if self._batch is not None and len(self._records) != self._count:
            why = "the input was truncated, or a selection was printed with -q, so that its summary is missing"
            raise SourceError(self._batch.line, f"{self._missing_records_text()}: {why}")
        yield from self._end_batch()
        if self._cut_count:
            yield Note(
                self._first_cut,
                f"kseg keeps only the following records of {plural(self._cut_count, 'batch', 'batches')},"
                " starting with this one",
            )

    def _end_batch(self, *, is_damaged: bool = False) -> Iterator[SourceItem]:
        """Yield the open batch, reduced to the records after its line: a selection doesn't print the others.

        is_damaged: a damage comes next, to which all records may be lost.
        """
        batch, self._batch = self._batch, None
        if batch is None:
            return
        records, self._records = tuple(self._records), []
        if self._count and not records and is_damaged:
            yield Note(batch.line, "none of the batch's records can be read, so the batch is omitted")
            return
        if self._count and not records:
            raise SourceError(batch.line, self._missing_records_text())
        is_cut = len(records) != self._count
        first = records[0].offset if is_cut else batch.header.first_offset
        assert first is not None
        yield from self._start_of_segment(None if self._begins_file and first == batch.header.first_offset else first)
        if not is_cut:
            yield batch._replace(records=records)
            return
        self._first_cut = self._first_cut or batch.line
        self._cut_count += 1
        yield _cut(batch, records)

    def _missing_records_text(self) -> str:
        return f"the batch counts {plural(self._count, 'record')}, but {len(self._records)} follow"

    def _record(self, members: Members, line: int) -> Iterator[SourceItem]:
        record = _record(members, line)
        if self._batch is None:
            if members.get("control") is not None:
                raise SourceError(line, "a control record comes without its batch; let `kseg dump` print batches, too")
            yield record
            return
        if len(self._records) == self._count:
            raise SourceError(line, f"the batch of line {self._batch.line} counts only {plural(self._count, 'record')}")
        if record.offset is None:
            raise SourceError(line, "a record of a batch has no offset")
        self._records.append(record)

    def _start_of_segment(self, first_offset: int | None = None) -> Iterator[SegmentStart]:
        """Yield the start of the last segment if it is still missing."""
        start, self._start = self._start, None
        if start is not None:
            yield start if first_offset is None else start._replace(base_offset=first_offset)

    def _take_file(self, members: Members, line: int) -> None:
        file = members.get("file")
        if file is None or file == self._file:
            return
        if not isinstance(file, str):
            raise SourceError(line, f"file is {quote(file)}, expected text")
        if self._file is not None and PurePath(file).parent != PurePath(self._file).parent:
            raise SourceError(line, f"{quote(file)} belongs to another partition than {quote(self._file)}")
        self._file = file
        name = parse_file_name(file)
        if name.kind is FileKind.LOG and name.base_offset is not None:
            self._start = SegmentStart(line, name.base_offset)


def _check_fields(members: Members, kind: str, line: int) -> None:
    """Raise SourceError for an unknown type or field."""
    if kind not in FIELDS:
        raise SourceError(line, f"type is {quote(kind)}; specify one of {', '.join(_TYPES)}")
    unknown = next((name for name in members if name not in FIELDS[kind]), None)
    if unknown is not None:
        known = ", ".join(_TAKEN if kind == "record" else FIELDS[kind])
        raise SourceError(line, f"{quote(unknown)} isn't a field of a {kind}; the fields are {known}")


def _cut(batch: SourceBatch, records: tuple[SourceRecord, ...]) -> SourceBatch:
    """Return the batch with only some of its records, and offsets, first sequence and largest timestamp of these."""
    header = batch.header
    offsets = [record.offset for record in records if record.offset is not None]
    largest = header.max_timestamp
    if not header.attributes & TIMESTAMP_TYPE_MASK:
        largest = max((record.timestamp for record in records if record.timestamp is not None), default=largest)
    cut = header.cut(offsets[0], offsets[-1])
    return batch._replace(header=cut._replace(max_timestamp=largest), records=records)


def _batch(members: Members, line: int) -> SourceBatch:
    def number(name: str, limits: range, absent: int = -1) -> int:
        value = integer_or(members, name, limits, line, absent)
        assert value is not None
        return value

    magic = integer(members, "magic", range(3), line)
    max_timestamp = number("maxTimestamp", INT64)
    header = NEW_HEADER._replace(
        magic=magic,
        base_offset=integer(members, "baseOffset", INT64, line),
        last_offset=integer(members, "lastOffset", INT64, line),
        attributes=number("attributes", range(-(1 << 15), 1 << 16), 0),
        base_timestamp=number("baseTimestamp", INT64, max_timestamp),
        max_timestamp=max_timestamp,
        partition_leader_epoch=number("partitionLeaderEpoch", INT32),
    )
    producer = (number(name, limits) for name, limits in _PRODUCER.items())
    return SourceBatch(line, header.of_producer(*producer), ())


def _record(members: Members, line: int) -> SourceRecord:
    _check_fields(members, "record", line)
    if members.get("time") is not None and "timestamp" not in members:
        raise SourceError(
            line, "the record has a time, but no timestamp; specify its timestamp in milliseconds since 1970"
        )
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
    """Return text or null, other JSON as its compact text, or base64 under the name plus `Base64`."""
    value, encoded = members.get(name), members.get(f"{name}Base64")
    if value is not None and encoded is not None:
        raise SourceError(line, f"both {name} and {name}Base64 are given; omit one")
    if isinstance(value, str):
        return text_as_bytes(value, name, line)
    if value is not None:
        return text_as_bytes(_compact(value, name, line), name, line)
    if encoded is None:
        return None
    if not isinstance(encoded, str):
        raise SourceError(line, f"{name}Base64 is {quote(encoded)}, expected text or null")
    return decode_base64(encoded, f"{name}Base64", line)


def _compact(value: object, name: str, line: int) -> str:
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise SourceError(line, f"{name} is {quote(value)}, which isn't valid JSON") from error


def _headers(value: object, line: int) -> tuple[HeaderPair, ...]:
    """Parse headers: a list of objects with key and value, or one object of texts by key."""
    if not value and (value is None or isinstance(value, list | dict)):
        return ()
    if isinstance(value, dict):
        value = [{"key": key, "value": content} for key, content in value.items()]
    if not isinstance(value, list):
        raise SourceError(line, f"headers is {quote(value)}, expected a list or an object")
    return tuple(_header(header, line) for header in value)


def _header(header: object, line: int) -> HeaderPair:
    if not isinstance(header, dict):
        raise SourceError(line, f"a header is {quote(header)}, expected an object with key and value")
    unknown = next((name for name in header if name not in _CONTENT), None)
    if unknown is not None:
        raise SourceError(line, f"{quote(unknown)} isn't a field of a header; the fields are {', '.join(_CONTENT)}")
    if not isinstance(header.get("key"), str | None):
        raise SourceError(line, f"a header's key is {quote(header['key'])}, expected text")
    key = _content(header, "key", line)
    if key is None:
        raise SourceError(line, "a header has no key")
    return key, _content(header, "value", line)


STANDARD_INPUT = "-"
_LONGEST_LINE = 128 << 20
"""The most bytes of a line, far above Kafka's limit for records; a device may never end a line."""


@dataclass(frozen=True, slots=True)
class RecordForm:
    """The form of lines: `json`, `csv` or `text`.

    key_separator: the separator of key and value in text; None if there are only values. redaction: the replaced parts
    of the records; None for no replacement.
    """

    name: str
    key_separator: str | None = None
    redaction: "Redaction | None" = None

    def items(self, lines: Iterator[bytes]) -> Iterator[SourceItem]:
        """Yield the contents of the given lines, in order. Raises SourceError for a wrong line."""
        if self.name == "json":
            items = read_json_lines(lines)
        else:
            items = read_csv(lines) if self.name == "csv" else read_text_lines(lines, self.key_separator)
        if self.redaction is None:
            return items
        from kseg.writer.text_source import redacted_items

        return redacted_items(items, self.redaction)


@contextmanager
def opened_items(source: str, form: RecordForm) -> Iterator[Iterator[SourceItem]]:
    """Open a file, or standard input, and yield its contents. Errors without a path of their own name the source.

    Raises OpenError if it can't be opened or read, or a line never ends; otherwise as `InputForm.items` does.
    """
    with _open_source(source) as lines:
        try:
            yield form.items(_read(lines, source))
        except KsegError as error:
            if error.path is not None:
                raise
            refusal = None if source == STANDARD_INPUT else refusal_of_bytes(source, "records")
            raise KsegError(refusal or error.message, name_of_input(source)) from error


def name_of_input(source: str) -> str:
    """Return the name of an input in messages."""
    return "standard input" if source == STANDARD_INPUT else source


def _open_source(source: str) -> AbstractContextManager[BinaryIO]:
    if source == STANDARD_INPUT:
        return nullcontext(sys.stdin.buffer)
    return os.fdopen(open_regular(source)[0], "rb")


def _read(lines: BinaryIO, source: str) -> Iterator[bytes]:
    try:
        for number in count(1):
            line = lines.readline(_LONGEST_LINE + 1)
            if len(line) > _LONGEST_LINE:
                raise OpenError(f"line {number} has more than {_LONGEST_LINE} bytes", name_of_input(source))
            if not line:
                return
            yield line
    except OSError as error:
        raise OpenError(f"can't be read: {error.strerror}", name_of_input(source)) from error
