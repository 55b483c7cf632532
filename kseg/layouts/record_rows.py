"""Lines of a user's own: `--template`, and rows of `--fields` as text, JSON or CSV."""

import json
import re
from functools import lru_cache
from os import PathLike

from kseg.control_characters import json_escaped
from kseg.errors import UsageError
from kseg.kernel.program import CONTROL_TEMPLATES, Program, Template
from kseg.layouts.compiler import PATH, compile_raw, compile_template, fill_program
from kseg.layouts.places import log_place
from kseg.output.csv import quoted
from kseg.output.record_columns import (
    BATCH_COLUMNS,
    DECODED_COLUMNS,
    PLACE_COLUMNS,
    RECORD_COLUMNS,
    STORED_COLUMNS,
    Column,
    Kind,
)

DEFAULT_FIELDS = ("offset", "time", "key", "value", "headers")
"""Columns of tables; those of CSV also have what distinguishes records."""
DEFAULT_CSV_FIELDS = ("file", "offset", "timestamp", "time", "timestampType", "key", "value", "headers", "isValid")
COLUMNS: dict[str, Column] = {
    column.name: column for column in (*BATCH_COLUMNS, *RECORD_COLUMNS, *STORED_COLUMNS, *DECODED_COLUMNS)
}
"""By name; if batches and records have a column of one name, the record's."""
FIELD_NAMES = tuple(dict.fromkeys((*PLACE_COLUMNS, *(column.name for column in RECORD_COLUMNS), *COLUMNS)))
"""The names for `--fields`."""
_JSON_FORMS = ("json", "table")
SAFE_CSV = "safe-csv"
"""The form of CSV that no spreadsheet evaluates as formulas."""
_PLACE_HOLE = re.compile(rf"(?<!\\)\{{({'|'.join(PLACE_COLUMNS)})\}}")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}


def template_program(template: str, path: str | PathLike[str]) -> Program:
    r"""A program that prints a line for each record, with texts unchanged; `\n`, `\t`, `\0` in it are these characters.

    `{file}`, `{topic}`, `{partition}` are those of the log at `path`.

    Raises UsageError for an unknown field or unpaired braces.
    """
    for written, meant in _ESCAPES.items():
        template = template.replace(written, meant)
    place = log_place(path)
    filled = _PLACE_HOLE.sub(lambda hole: _template_text("text", place[hole[1]]), template)
    return _program((compile_raw(filled + "\n"),) * 3)


def fields_program(form: str, names: tuple[str, ...], path: str | PathLike[str]) -> Program:
    """A program that prints a row for each record: `form` is text, json, csv, SAFE_CSV, or table for JSON of texts.

    Raises UsageError for a name that isn't one of FIELD_NAMES.
    """
    check_fields(names)
    file, topic, partition = log_place(path).values()
    return fill_program(_rows_program(form, names, topic, partition), PATH, _value_text(form, file))


@lru_cache
def _rows_program(form: str, names: tuple[str, ...], topic: object, partition: object) -> Program:
    """The program for a partition's files, with PATH in place of each one's path."""
    values = (PATH, _template_text(form, topic), _template_text(form, partition))
    places = dict(zip(PLACE_COLUMNS, values, strict=True))
    rows = [_row(form, names, magic, places) for magic in range(3)]
    return _program((rows[0], rows[1], rows[2]))


def check_fields(names: tuple[str, ...]) -> None:
    """Raises UsageError for a name that isn't one of FIELD_NAMES."""
    unknown = [name for name in names if name not in FIELD_NAMES]
    if unknown:
        raise UsageError(f"--fields: no field {unknown[0]}; there are {', '.join(FIELD_NAMES)}")


def _program(records: tuple[Template, Template, Template]) -> Program:
    return Program((None, None, None), records, (records[2],) * CONTROL_TEMPLATES)


def _row(form: str, names: tuple[str, ...], magic: int, places: dict[str, str]) -> Template:
    show = {"text": _text, "json": _json, "csv": _csv, SAFE_CSV: _safe_csv, "table": _table}[form]
    cells = [show(name, places[name] if name in places else _Column(COLUMNS[name], magic)) for name in names]
    if form in _JSON_FORMS:
        return compile_template("\\{" + ",".join(cells) + "\\}\n")
    return compile_raw(" ".join(cells) + "\n") if form == "text" else compile_template(",".join(cells) + "\n")


class _Column:
    """A column in a format: its kind, and its template; None if the format doesn't have it."""

    def __init__(self, column: Column, magic: int) -> None:
        self.kind = column.kind
        self.template = (column.v0, column.v1, column.v2)[magic]


def _template_text(form: str, value: object) -> str:
    """A value that is the same in all rows, as text for a template, with its braces escaped."""
    text = _value_text(form, value).encode("utf-8", "backslashreplace").decode()
    return text.replace("{", "\\{").replace("}", "\\}")


def _value_text(form: str, value: object) -> str:
    """A value as a form writes it."""
    if form in _JSON_FORMS:
        return json_escaped(json.dumps(value, ensure_ascii=False))
    if form in ("csv", SAFE_CSV) and isinstance(value, str):
        return quoted(value, is_safe=form == SAFE_CSV)
    return ("null" if form == "text" else "") if value is None else str(value)


def _text(name: str, value: str | _Column) -> str:
    if isinstance(value, str):
        return f"{name}: {value}"
    if value.kind in (Kind.BYTES, Kind.JSON):
        return f"{name}: {{{name}?{{{name}}}}}{{{name}!null}}"
    if value.kind is Kind.HEADERS:
        return f"{name}: {{headers:json}}"
    return f"{name}: {_time_or(name, value) or 'null'}"


def _json(name: str, value: str | _Column) -> str:
    if isinstance(value, str):
        return f'"{name}":{value}'
    if value.kind is Kind.BYTES:
        return f'"{name}{{{name}:json}}'
    if value.kind is Kind.JSON:
        return f'"{name}":{{{name}?{{{name}}}}}{{{name}!null}}'
    if value.kind is Kind.HEADERS:
        return f'"{name}":{{headers:json}}'
    if value.template is None:
        return f'"{name}":null'
    return f'"{name}":"{value.template}"' if value.kind is Kind.WORD else f'"{name}":{value.template}'


def _table(name: str, value: str | _Column) -> str:
    """As in JSON, but what is JSON already becomes text that is shown, so decoders don't quote it."""
    if isinstance(value, _Column) and value.kind is Kind.JSON:
        return f'"{name}{{{name}:json}}'
    return _json(name, value)


def _csv(name: str, value: str | _Column) -> str:
    if isinstance(value, str):
        return value
    if value.kind in (Kind.BYTES, Kind.JSON):
        return f"{{{name}:csv}}"
    if value.kind is Kind.HEADERS:
        return "{headers:csv}"
    template = _time_or(name, value) or ""
    return "" if template == "null" else template.replace("null", "")


def _safe_csv(name: str, value: str | _Column) -> str:
    return _csv(name, value).replace(":csv}", ":safe}").replace("{headers:safe}", "{headers:csv}")


def _time_or(name: str, column: _Column) -> str | None:
    """The column's template; a time without JSON's quotes."""
    return "{time}" if column.kind is Kind.TIME and column.template is not None else column.template
