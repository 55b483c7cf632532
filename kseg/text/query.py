"""Answers to SQL as aligned text, JSON, CSV or tables."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

from kseg.findings.findings import Finding
from kseg.formats.codes import codec_name
from kseg.formats.file_names import PartitionDirectory, parse_partition_directory
from kseg.output.columns import NOT_SHOWN, Column, Field, Kind, listed_column
from kseg.output.forms import Form, TableForm
from kseg.output.rows import CsvWriter, JsonText, finite_json
from kseg.output.table import GrowingLines, Section, rich_fitting, write_rich_table
from kseg.reading.batch import BatchHeader
from kseg.text import fields

if TYPE_CHECKING:
    import pyarrow as pa

    from kseg.export.plan import WorkOrder


Values = tuple[Any, ...]


class AnswerWriter:
    """Write answers in one form.

    count: rows of the last answer. total: rows of all answers.
    """

    def __init__(self, form: Form) -> None:
        self.count = self.total = 0
        self.form = form

    def write(self, schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> None:
        """Write an answer's rows as they come; a table when it is complete."""
        self.count = 0
        names = unique_names(schema.names)
        rows = self._count_rows(rows_of(batches, self.form.zone))
        if self.form.has_objects:
            for row in rows:
                self.form.write_object(dict(zip(names, map(_as_json, row), strict=True)))
        elif self.form.has_one_kind:
            types = zip(names, schema.types, strict=True)
            times = {name: self.form.zone for name, kind in types if str(kind).startswith("timestamp")}
            writer = CsvWriter(names, self.form.csv, times)
            for row in rows:
                writer.write(map(_as_field, row))
        elif isinstance(self.form, TableForm):
            columns = _columns(names, schema)
            fitting = rich_fitting(columns, self.form.room, has_choice=False)
            write_rich_table(columns, rows, color=self.form.color, fitting=fitting)
        else:
            self._write_lines(_columns(names, schema), rows)

    def _write_lines(self, columns: Sequence[Column[Values]], rows: Iterator[Values]) -> None:
        from kseg.output.pager import paged_lines

        with paged_lines() as write:
            lines = GrowingLines(columns, write, self.form.room, has_choice=False)
            for row in rows:
                lines.add(row)
            lines.finish()

    def _count_rows(self, rows: Iterator[Values]) -> Iterator[Values]:
        for row in rows:
            self.count += 1
            self.total += 1
            yield row


def unique_names(names: Sequence[str]) -> list[str]:
    """Return unique names of columns: repeated names get a number."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found[own] = None
    return list(found)


def rows_of(batches: "Iterable[pa.RecordBatch]", zone: tzinfo) -> Iterator[Values]:
    """Yield the rows as plain values: times in ISO 8601, whole decimals as numbers, bytes as text or `base64:…`."""
    for batch in batches:
        yield from zip(*(_cells(column, zone) for column in batch.columns), strict=True)


def _cells(column: "pa.Array", zone: tzinfo) -> list[Any]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # times that Python can't represent
        values = [_value_or_text(cell, zone) for cell in column]
    return [plain(value, zone) for value in values]


def _value_or_text(cell: "pa.Scalar", zone: tzinfo) -> Any:
    import pyarrow as pa

    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        try:
            if pa.types.is_timestamp(cell.type):
                return _far_moment_text(cell.cast(pa.timestamp("us", cell.type.tz)), zone)
            return str(cell.cast(pa.string()).as_py())
        except (pa.ArrowException, OverflowError, ValueError):
            return "?"


def plain(value: Any, zone: tzinfo) -> Any:
    """Return a value as a type of JSON; decimals stay, to keep their digits."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case bytes():
            return bytes_text(value)
        case datetime():
            return _moment_text(value, zone)
        case date() | time():
            return value.isoformat()
        case Decimal():
            return int(value) if value == value.to_integral_value() and value.as_tuple().exponent == 0 else value
        case timedelta():
            return str(value)
        case dict():
            return {name: plain(inner, zone) for name, inner in value.items()}
        case list() if value and all(isinstance(inner, tuple) and len(inner) == 2 for inner in value):  # a map
            return {str(plain(name, zone)): plain(inner, zone) for name, inner in value}
        case list() | tuple():
            return [plain(inner, zone) for inner in value]
    return str(value)


def bytes_text(data: bytes) -> str:
    """Return bytes as text, or as `base64:…` if they aren't UTF-8, as in CSV of `kseg dump`."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        from base64 import b64encode

        return f"base64:{b64encode(data).decode()}"


def _moment_text(moment: datetime, zone: tzinfo) -> str:
    precision = "microseconds" if moment.microsecond % 1000 else "milliseconds"
    if moment.tzinfo is None:
        return moment.isoformat(timespec=precision)
    text = moment.astimezone(zone).isoformat(timespec=precision)
    return text.replace("+00:00", "Z") if zone == UTC else text


_CYCLE_YEARS = 400
_CYCLE = timedelta(days=146_097)
"""The length of 400 years, after which the calendar repeats."""


def _far_moment_text(cell: "pa.TimestampScalar", zone: tzinfo) -> str:
    """Return the text of a moment that Python can't represent: its year has a sign, as ISO 8601 requires.

    Arrow's text is wrong beyond the year 32767.
    """
    cycles, rest = divmod(timedelta(microseconds=cell.value), _CYCLE)
    near = datetime(1970, 1, 1, tzinfo=cell.type.tz and UTC) + rest + _CYCLE
    local = near if near.tzinfo is None else near.astimezone(zone)
    year = f"{local.year + _CYCLE_YEARS * (cycles - 1):+05}"
    return year + _moment_text(near, zone)[len(f"{local.year:04}") :]


def _as_json(value: Any) -> Any:
    match value:
        case Decimal():
            return JsonText(str(value).encode())
        case dict():
            return {name: _as_json(inner) for name, inner in value.items()}
        case list():
            return list(map(_as_json, value))
    return value


def _as_field(value: Any) -> Any:
    """Return a value in CSV: composite values are JSON."""
    return _json_text(value) if isinstance(value, dict | list) else value


def _json_text(value: Any) -> str:
    import json

    return json.dumps(finite_json(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _as_text(value: Any) -> str:
    """Return a value for people: null as null, structs without null members."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case dict() | list():
            return _json_text(_without_nulls(value))
    return str(value)


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_nulls(inner) for name, inner in value.items() if inner is not None}
    return list(map(_without_nulls, value)) if isinstance(value, list) else value


def _columns(names: Sequence[str], schema: "pa.Schema") -> list[Column[Values]]:
    return [
        _column(place, name, is_number=_is_number(field.type))
        for place, (name, field) in enumerate(zip(names, schema, strict=True))
    ]


def _column(place: int, name: str, *, is_number: bool) -> Column[Values]:
    def value(row: Values) -> Any:
        return row[place]

    kind = Kind.NUMBER if is_number else Kind.TEXT
    return Column(Field(name, kind, ""), name, value, lambda row: _as_text(row[place]))


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


# --- plans of scans, and tables that only SQL has ---------------------------------------------------------------------


@dataclass(slots=True)
class Scan:
    """A table that a query reads.

    columns: the needed columns. partitions, size: partitions and bytes of logs to read. those_in_all, size_in_all: the
    totals; None for tables that aren't read in pieces. orders: the exact ranges. is_by_headers: whether headers suffice
    for batches from which compaction has removed no record. is_quick: whether their CRCs then stay unchecked.
    """

    table: str
    columns: Sequence[str]
    condition: str | None = None
    partitions: int | None = None
    those_in_all: int | None = None
    size: int | None = None
    size_in_all: int | None = None
    orders: "list[WorkOrder]" = field(default_factory=list)
    is_by_headers: bool = False
    is_quick: bool = False

    @property
    def reads(self) -> str | None:
        """The parts of logs that the query reads, in a word."""
        if self.partitions is None:
            return None
        if not self.is_by_headers:
            return "records"
        return "unchecked headers" if self.is_quick else "headers"


def _share(part: int | None, whole: int | None) -> str:
    return "" if part is None or whole is None else f"{part} of {whole}"


def _offsets(scan: Scan) -> str:
    """Return the requested offsets, if they are the same in all partitions and not all offsets."""
    wanted = {(order.offsets.first, order.offsets.end) for order in scan.orders}
    if not wanted or wanted == {(None, None)}:
        return ""
    if len(wanted) > 1:
        return "by partition"
    ((first, end),) = wanted
    return f"{'' if first is None else first} to {'' if end is None else end - 1}".strip()


_SCAN_COLUMNS: tuple[Column[Scan], ...] = (
    Column(fields.TABLE, "TABLE", lambda row: row.table),
    listed_column(fields.COLUMNS, "COLUMNS", lambda row: tuple(row.columns)),
    Column(
        fields.PARTITIONS,
        "PARTITIONS",
        lambda row: row.partitions,
        lambda row: _share(row.partitions, row.those_in_all),
    ),
    Column(fields.PARTITIONS_IN_ALL, NOT_SHOWN, lambda row: row.those_in_all),
    Column(fields.OFFSETS, "OFFSETS", _offsets),
    Column(fields.BYTES, "BYTES", lambda row: row.size, lambda row: _share(row.size, row.size_in_all)),
    Column(fields.BYTES_IN_ALL, NOT_SHOWN, lambda row: row.size_in_all),
    Column(fields.READS, "READS", lambda row: row.reads),
    Column(fields.CONDITION, "ROWS WHERE", lambda row: row.condition),
)
SCANS: Section[Scan] = Section("scan", None, _SCAN_COLUMNS)


class BatchRow(NamedTuple):
    """A batch with its partition and segment."""

    topic: str
    partition: int | None
    segment: str
    header: BatchHeader


def _topic_of(finding: Finding) -> str | None:
    name = _directory_name(finding)
    return None if name is None else name.topic


def _partition_of(finding: Finding) -> int | None:
    name = _directory_name(finding)
    return None if name is None else name.partition


def _directory_name(finding: Finding) -> PartitionDirectory | None:
    return parse_partition_directory(finding.file if finding.file.is_dir() else finding.file.parent)


BATCHES: Section[BatchRow] = Section(
    "batch",
    None,
    (
        Column(fields.TOPIC, NOT_SHOWN, lambda row: row.topic),
        Column(fields.PARTITION, NOT_SHOWN, lambda row: row.partition),
        Column(fields.SEGMENT, NOT_SHOWN, lambda row: row.segment),
        Column(fields.POSITION, NOT_SHOWN, lambda row: row.header.position),
        Column(fields.SIZE, NOT_SHOWN, lambda row: row.header.size),
        Column(fields.BASE_OFFSET, NOT_SHOWN, lambda row: row.header.base_offset),
        Column(fields.LAST_OFFSET, NOT_SHOWN, lambda row: row.header.last_offset),
        Column(fields.COUNT, NOT_SHOWN, lambda row: row.header.records_count),
        Column(fields.MAGIC, NOT_SHOWN, lambda row: row.header.magic),
        Column(fields.COMPRESSION, NOT_SHOWN, lambda row: codec_name(row.header.codec) or str(row.header.codec)),
        Column(fields.CRC, NOT_SHOWN, lambda row: row.header.crc),
        Column(fields.IS_VALID, NOT_SHOWN, lambda row: row.header.is_valid),
        Column(fields.ATTRIBUTES, NOT_SHOWN, lambda row: row.header.attributes),
        Column(fields.TIMESTAMP_TYPE, NOT_SHOWN, lambda row: row.header.timestamp_type.value),
        Column(fields.BASE_TIMESTAMP, NOT_SHOWN, lambda row: row.header.base_timestamp),
        Column(fields.MAX_TIMESTAMP, NOT_SHOWN, lambda row: row.header.max_timestamp),
        Column(fields.PRODUCER_ID, NOT_SHOWN, lambda row: row.header.producer_id),
        Column(fields.PRODUCER_EPOCH, NOT_SHOWN, lambda row: row.header.producer_epoch),
        Column(fields.BASE_SEQUENCE, NOT_SHOWN, lambda row: row.header.base_sequence),
        Column(fields.PARTITION_LEADER_EPOCH, NOT_SHOWN, lambda row: row.header.partition_leader_epoch),
        Column(fields.IS_TRANSACTIONAL, NOT_SHOWN, lambda row: row.header.is_transactional),
        Column(fields.IS_CONTROL, NOT_SHOWN, lambda row: row.header.is_control),
    ),
)
"""Columns of the table `batches`, named as in `kseg dump -o json`."""
FINDINGS: Section[Finding] = Section(
    "finding",
    None,
    (
        Column(fields.ID, NOT_SHOWN, lambda row: row.id),
        Column(fields.SEVERITY, NOT_SHOWN, lambda row: row.severity),
        Column(fields.TOPIC, NOT_SHOWN, _topic_of),
        Column(fields.PARTITION, NOT_SHOWN, _partition_of),
        Column(fields.FILE, NOT_SHOWN, lambda row: row.file),
        Column(fields.POSITION, NOT_SHOWN, lambda row: row.position),
        Column(fields.FIRST_OFFSET, NOT_SHOWN, lambda row: row.first_offset),
        Column(fields.LAST_OFFSET, NOT_SHOWN, lambda row: row.last_offset),
        Column(fields.SENTENCE, NOT_SHOWN, lambda row: row.sentence),
    ),
)
"""Columns of the table `findings`."""
