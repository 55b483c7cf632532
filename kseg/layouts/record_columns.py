"""Columns of records in JSON, CSV and tables."""

import json
import re
from collections.abc import Mapping
from enum import Enum
from functools import cache, lru_cache
from os import PathLike
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.codes import ControlType
from kseg.formats.file_names import BOOTSTRAP_CHECKPOINT, parse_partition_directory
from kseg.formats.header_fields import PRODUCER_NAMES, camel_case
from kseg.kernel.contract import CONTROL_TEMPLATES, Program, Template
from kseg.layouts.template import PATH, compile_raw, compile_template, fill_program
from kseg.output.rows import quote_field
from kseg.system.placed_path import as_path
from kseg.system.terminal_text import json_escaped


class Kind(Enum):
    """The form of the values of a column."""

    NUMBER = "number"
    BOOLEAN = "boolean"
    WORD = "word"
    """kseg's own text, which needs no escapes."""
    TIME = "time"
    BYTES = "bytes"
    HEADERS = "headers"
    JSON = "json"
    """Text that is JSON already; omitted if it is null."""


class Column(NamedTuple):
    """A column: its name, kind, and the template that shows it; `v1` and `v0` where these formats differ.

    None means that a format doesn't have it.
    """

    name: str
    kind: Kind
    v2: str | None
    v1: str | None
    v0: str | None


def _everywhere(name: str, kind: Kind, template: str | None = None) -> Column:
    template = template or f"{{{name}}}"
    return Column(name, kind, template, template, template)


def _from_v1(name: str, kind: Kind, template: str | None = None) -> Column:
    return _everywhere(name, kind, template)._replace(v0=None)


def _only_v2(name: str, kind: Kind, template: str | None = None) -> Column:
    return _from_v1(name, kind, template)._replace(v1=None)


BATCH_COLUMNS = (
    _everywhere("position", Kind.NUMBER),
    _everywhere("size", Kind.NUMBER),
    _everywhere("baseOffset", Kind.NUMBER),
    _everywhere("lastOffset", Kind.NUMBER),
    _everywhere("count", Kind.NUMBER),
    _everywhere("magic", Kind.NUMBER),
    _everywhere("compression", Kind.WORD),
    _everywhere("crc", Kind.NUMBER),
    _everywhere("isValid", Kind.BOOLEAN),
    _everywhere("attributes", Kind.NUMBER),
    _everywhere("timestampType", Kind.WORD),
    _only_v2("baseTimestamp", Kind.NUMBER),
    _from_v1("maxTimestamp", Kind.NUMBER),
    *(_only_v2(camel_case(name), Kind.NUMBER) for name in PRODUCER_NAMES),
    _only_v2("lastSequence", Kind.NUMBER),
    _only_v2("partitionLeaderEpoch", Kind.NUMBER),
    _only_v2("isTransactional", Kind.BOOLEAN),
    _only_v2("isControl", Kind.BOOLEAN),
    _only_v2("deleteHorizonMs", Kind.NUMBER, "{hasDeleteHorizon?{baseTimestamp}}{hasDeleteHorizon!null}"),
)
RECORD_COLUMNS = (
    _everywhere("offset", Kind.NUMBER),
    _from_v1("timestamp", Kind.NUMBER),
    _from_v1("time", Kind.TIME, "{timestamp:iso}"),
    _everywhere("timestampType", Kind.WORD),
    _only_v2("sequence", Kind.NUMBER),
    _everywhere("key", Kind.BYTES),
    _everywhere("value", Kind.BYTES),
    _everywhere("headers", Kind.HEADERS),
    _everywhere("position", Kind.NUMBER),
    _everywhere("isValid", Kind.BOOLEAN, "{recordIsValid}"),
    _everywhere("keySize", Kind.NUMBER),
    _everywhere("valueSize", Kind.NUMBER),
)
STORED_COLUMNS = (
    _only_v2("timestampDelta", Kind.NUMBER),
    _only_v2("recordAttributes", Kind.NUMBER),
)
"""Further stored values of a record: its own timestamp if the batch has LogAppendTime, and unused bits."""
DECODED_COLUMNS = tuple(
    _everywhere(name, Kind.JSON) for name in ("keyDecoded", "valueDecoded", "keyError", "valueError")
)
"""The decoded contents of a record, and the reason if decoding failed."""
PLACE_COLUMNS = ("file", "topic", "partition")
"""Columns with the same value in the complete log, from its path."""
TOPIC_COLUMNS = PLACE_COLUMNS[1:]
"""Columns of rows from several partitions."""


def log_place(path: str | PathLike[str]) -> dict[str, str | int | None]:
    """Return the values of PLACE_COLUMNS: the displayed path, and topic and partition from its directory name.

    `bootstrap.checkpoint` is in a log directory, which may be named like a partition.
    """
    here = as_path(path).absolute()
    directory = None if here.name == BOOTSTRAP_CHECKPOINT else parse_partition_directory(here.parent)
    topic, partition = (None, None) if directory is None else (directory.topic, directory.partition)
    return dict(zip(PLACE_COLUMNS, (str(path), topic, partition), strict=True))


DEFAULT_FIELDS = ("offset", "time", "key", "value", "headers")
"""The columns of tables; CSV also has columns that distinguish records."""
DEFAULT_CSV_FIELDS = ("file", "offset", "timestamp", "time", "timestampType", "key", "value", "headers", "isValid")
COLUMNS: dict[str, Column] = {
    column.name: column for column in (*BATCH_COLUMNS, *RECORD_COLUMNS, *STORED_COLUMNS, *DECODED_COLUMNS)
}
"""The columns by name; if batches and records share a name, the record's."""
FIELD_NAMES = tuple(dict.fromkeys((*PLACE_COLUMNS, *(column.name for column in RECORD_COLUMNS), *COLUMNS)))
"""The names for `--fields`."""
TIME_FIELDS = tuple(column.name for column in RECORD_COLUMNS if column.kind is Kind.TIME)
_JSON_FORMS = ("json", "table")
SAFE_CSV = "safe-csv"
"""The form of CSV that no spreadsheet evaluates as formulas."""
_PLACE_HOLE = re.compile(rf"(?<!\\)\{{({'|'.join(PLACE_COLUMNS)})\}}")
_ESCAPES = {"\\n": "\n", "\\t": "\t", "\\0": "\0"}


def template_program(template: str, path: str | PathLike[str]) -> Program:
    r"""Return a program that prints a line per record, with unchanged texts.

    `\n`, `\t` and `\0` in it are these characters. `{file}`, `{topic}`, `{partition}` are those of the log at `path`.

    Raises UsageError for an unknown field or unpaired braces.
    """
    for written, meant in _ESCAPES.items():
        template = template.replace(written, meant)
    place = log_place(path)
    filled = _PLACE_HOLE.sub(lambda hole: _template_text("text", place[hole[1]]), template)
    return _template_program((compile_raw(filled + "\n"),) * 3)


def fields_program(form: str, names: tuple[str, ...], path: str | PathLike[str]) -> Program:
    """Return a program that prints a row per record. `form`: text, json, csv, SAFE_CSV, or table for JSON of texts.

    Raises UsageError for a name that isn't one of FIELD_NAMES.
    """
    check_fields(names)
    file, topic, partition = log_place(path).values()
    return fill_program(_rows_program(form, names, topic, partition), PATH, _value_text(form, file))


@lru_cache
def _rows_program(form: str, names: tuple[str, ...], topic: object, partition: object) -> Program:
    """Return the program for the files of a partition, with PATH in place of each one's path."""
    values = (PATH, _template_text(form, topic), _template_text(form, partition))
    places = dict(zip(PLACE_COLUMNS, values, strict=True))
    rows = [_row(form, names, magic, places) for magic in range(3)]
    return _template_program((rows[0], rows[1], rows[2]))


def check_fields(names: tuple[str, ...]) -> None:
    """Raise UsageError for a name that isn't one of FIELD_NAMES."""
    unknown = [name for name in names if name not in FIELD_NAMES]
    if unknown:
        raise UsageError(f"--fields: there is no field {unknown[0]}; specify some of {', '.join(FIELD_NAMES)}")


def _template_program(records: tuple[Template, Template, Template]) -> Program:
    return Program((None, None, None), records, (records[2],) * CONTROL_TEMPLATES)


def _row(form: str, names: tuple[str, ...], magic: int, places: dict[str, str]) -> Template:
    show = {"text": _text, "json": _json, "csv": _csv, SAFE_CSV: _safe_csv, "table": _table}[form]
    cells = [show(name, places[name] if name in places else _Column(COLUMNS[name], magic)) for name in names]
    if form in _JSON_FORMS:
        return compile_template("\\{" + ",".join(cells) + "\\}\n")
    return compile_raw(" ".join(cells) + "\n") if form == "text" else compile_template(",".join(cells) + "\n")


class _Column:
    """A column in a format: its kind, and its template, or None if the format doesn't have it."""

    def __init__(self, column: Column, magic: int) -> None:
        self.kind = column.kind
        self.template = (column.v0, column.v1, column.v2)[magic]


def _template_text(form: str, value: object) -> str:
    """Return a constant value as text for a template, with its braces escaped."""
    text = _value_text(form, value).encode("utf-8", "backslashreplace").decode()
    return text.replace("{", "\\{").replace("}", "\\}")


def _value_text(form: str, value: object) -> str:
    """Return a value as a form writes it."""
    if form in _JSON_FORMS:
        return json_escaped(json.dumps(value, ensure_ascii=False))
    if form in ("csv", SAFE_CSV) and isinstance(value, str):
        return quote_field(value, is_safe=form == SAFE_CSV)
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
    """Return a member as in JSON, but with JSON values as text, so that decoders don't quote them."""
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
    """Return the column's template; a time without JSON's quotes."""
    return "{time}" if column.kind is Kind.TIME and column.template is not None else column.template


_CONTROL_BODIES = {
    ControlType.ABORT: ',"coordinatorEpoch":{coordinatorEpoch}',
    ControlType.COMMIT: ',"coordinatorEpoch":{coordinatorEpoch}',
}
_CONTROL_DATA = ',"data":{decoded?{decoded}}{decoded!null}'


_PLACES = "\0places\0"
_NOTHING = compile_template("")
"""A template for records that are only checked and not printed."""


def json_program(
    path: str | PathLike[str] | None,
    *,
    batches: bool = True,
    records: bool = True,
    places: tuple[str, ...] = (),
    beside: Mapping[str, object] | None = None,
) -> Program:
    """Return objects of type batch and record; no `file` without a path.

    `places`: the PLACE_COLUMNS of records: the file if several are read, all if several partitions are. `beside`:
    further constant members of records; only with `places`.
    """
    program = _json_program(file_on_batches=path is not None, batches=batches, records=records, has_places=bool(places))
    if path is None:
        return program
    given = log_place(path) | dict(beside or {})
    values = {name: json_escaped(json.dumps(value, ensure_ascii=False)) for name, value in given.items()}
    members = ",".join(f'"{name}":{values[name]}' for name in (*places, *(beside or {})))
    return fill_program(fill_program(program, PATH, values["file"]), _PLACES, members)


@cache
def _json_program(*, file_on_batches: bool, batches: bool, records: bool, has_places: bool) -> Program:
    """Return the program for all files, with PATH in place of the path, and _PLACES in place of records' places."""
    on_batch, on_record = f'"file":{PATH},' if file_on_batches else "", f"{_PLACES}," if has_places else ""
    batch = tuple(_batch(on_batch, magic) if batches else None for magic in range(3))
    if not records:
        return Program((batch[0], batch[1], batch[2]), (_NOTHING, _NOTHING, _NOTHING), None)
    record = tuple(_record(on_record, magic, "") for magic in range(3))
    control = tuple(_record(on_record, 2, body) for body in _control_bodies())
    return Program((batch[0], batch[1], batch[2]), (record[0], record[1], record[2]), control)


def _batch(file: str, magic: int) -> Template:
    members = ",".join(_member(column, magic) for column in BATCH_COLUMNS)
    return compile_template(f'\\{{"type":"batch",{file}{members}\\}}\n')


def _record(file: str, magic: int, control: str) -> Template:
    members = ",".join(_member(column, magic) for column in RECORD_COLUMNS)
    members += _stored_members() if magic == 2 else ""
    control = "".join(_decoded_member(column) for column in DECODED_COLUMNS) + control
    return compile_template(f'\\{{"type":"record",{file}{members}{control}\\}}\n')


def _control_bodies() -> list[str]:
    bodies = [_control_body(f'"{kind.name}"', _CONTROL_BODIES.get(kind, _CONTROL_DATA)) for kind in ControlType]
    return [*bodies, _control_body("{controlType}", ""), ',"control":null']


def _control_body(kind: str, content: str) -> str:
    return f',"control":\\{{"type":{kind},"version":{{controlVersion}}{content}\\}}'


def _stored_members() -> str:
    """Return further members for `build`: a record's own timestamp under LogAppendTime, and unused bits."""
    delta, attributes = (f'{{{column.name}?,"{column.name}":{column.v2}}}' for column in STORED_COLUMNS)
    return f"{{timestampType?{delta}}}{attributes}"  # CreateTime is 0


def _decoded_member(column: Column) -> str:
    return f'{{{column.name}?,"{column.name}":{{{column.name}}}}}'


def _member(column: Column, magic: int) -> str:
    template = (column.v0, column.v1, column.v2)[magic]
    if column.kind is Kind.BYTES:
        return f'"{column.name}{{{column.name}:json}}'
    if column.kind is Kind.HEADERS:
        return f'"{column.name}":{{headers:json}}'
    if template is None:
        return f'"{column.name}":null'
    return f'"{column.name}":"{template}"' if column.kind is Kind.WORD else f'"{column.name}":{template}'
