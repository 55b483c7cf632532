"""Answers to SQL as aligned text, JSON, CSV or tables."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from kseg.output.forms import Form, TableForm
from kseg.output.rows import CsvWriter, JsonText, finite_json
from kseg.output.table import GrowingLines, TableColumn, write_rich_table

if TYPE_CHECKING:
    import pyarrow as pa


Values = tuple[Any, ...]


class AnswerWriter:
    """Writes answers in one form. count: rows written of the last one."""

    def __init__(self, form: Form) -> None:
        """Nothing is written yet."""
        self.count = 0
        self.form = form

    def write(self, schema: "pa.Schema", batches: "Iterable[pa.RecordBatch]") -> None:
        """Writes an answer's rows as they come; a table when it is complete."""
        self.count = 0
        names = names_once(schema.names)
        rows = self._counted(rows_of(batches, self.form.zone))
        if self.form.has_objects:
            for row in rows:
                self.form.write_object(dict(zip(names, map(_as_json, row), strict=True)))
        elif self.form.has_one_kind:
            writer = CsvWriter(names, is_safe=self.form.csv_safe)
            for row in rows:
                writer.write(map(_as_field, row))
        elif isinstance(self.form, TableForm):
            write_rich_table(_columns(names, schema), list(rows), color=self.form.color)
        else:
            self._write_lines(_columns(names, schema), rows)

    def _write_lines(self, columns: Sequence[TableColumn[Values]], rows: Iterator[Values]) -> None:
        from kseg.output.pager import paged_lines

        with paged_lines() as write:
            lines = GrowingLines(columns, write)
            for row in rows:
                lines.add(row)
            lines.finish()

    def _counted(self, rows: Iterator[Values]) -> Iterator[Values]:
        for row in rows:
            self.count += 1
            yield row


def names_once(names: Sequence[str]) -> list[str]:
    """Names of columns, each once: later ones of the same name get a number."""
    found: dict[str, None] = {}
    for name in names:
        own, number = name, 1
        while own in found:
            own, number = f"{name}_{number}", number + 1
        found[own] = None
    return list(found)


def rows_of(batches: "Iterable[pa.RecordBatch]", zone: tzinfo) -> Iterator[Values]:
    """The rows as plain values: times in ISO 8601, whole decimals as numbers, bytes as text or `base64:…`."""
    for batch in batches:
        yield from zip(*(_cells(column, zone) for column in batch.columns), strict=True)


def _cells(column: "pa.Array", zone: tzinfo) -> list[Any]:
    try:
        values = column.to_pylist()
    except (OverflowError, ValueError):  # times that Python doesn't have
        values = list(map(_value_or_text, column))
    return [plain(value, zone) for value in values]


def _value_or_text(cell: "pa.Scalar") -> Any:
    import pyarrow as pa

    try:
        return cell.as_py()
    except (OverflowError, ValueError):
        try:
            return str(cell.cast(pa.string()).as_py())
        except (pa.ArrowException, OverflowError, ValueError):
            return "?"


def plain(value: Any, zone: tzinfo) -> Any:
    """A value as what JSON has, but decimals, which keep their digits."""
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
    """Bytes as text, `base64:…` if they aren't UTF-8, as in CSV of `kseg dump`."""
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
    """A value in CSV: what isn't a single one is JSON."""
    return _json_text(value) if isinstance(value, dict | list) else value


def _json_text(value: Any) -> str:
    import json

    return json.dumps(finite_json(value), ensure_ascii=False, separators=(",", ":"), default=str)


def _as_text(value: Any) -> str:
    """A value for people: null as null, structs without what is null in them."""
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


def _columns(names: Sequence[str], schema: "pa.Schema") -> list[TableColumn[Values]]:
    return [
        _column(place, name, is_number=_is_number(field.type))
        for place, (name, field) in enumerate(zip(names, schema, strict=True))
    ]


def _column(place: int, name: str, *, is_number: bool) -> TableColumn[Values]:
    def value(row: Values) -> Any:
        return row[place]

    return TableColumn(name, name, 1 if is_number else -1, value, lambda row: _as_text(row[place]))


def _is_number(kind: "pa.DataType") -> bool:
    import pyarrow as pa

    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))
