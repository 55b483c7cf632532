"""Logs as JSON: one object per line, run by the kernel like any other layout."""

import json
from collections.abc import Mapping
from functools import cache

from kseg.control_characters import json_escaped
from kseg.formats.codes import ControlType
from kseg.kernel.program import Program, Template
from kseg.layouts.compiler import PATH, compile_template, fill_program
from kseg.layouts.places import log_place
from kseg.output.record_columns import BATCH_COLUMNS, DECODED_COLUMNS, RECORD_COLUMNS, STORED_COLUMNS, Column, Kind

_CONTROL_BODIES = {
    ControlType.ABORT: ',"coordinatorEpoch":{coordinatorEpoch}',
    ControlType.COMMIT: ',"coordinatorEpoch":{coordinatorEpoch}',
}
_CONTROL_DATA = ',"data":{decoded?{decoded}}{decoded!null}'


_PLACES = "\0places\0"
_NOTHING = compile_template("")
"""For records that are read to find what is wrong with them, but aren't printed."""


def json_program(
    path: str | None,
    *,
    batches: bool = True,
    records: bool = True,
    places: tuple[str, ...] = (),
    beside: Mapping[str, object] | None = None,
) -> Program:
    """Objects of type batch and record; no `file` without a path.

    `places`: which of PLACE_COLUMNS records have: the file if several are read, all if several partitions are.
    `beside`: what else is the same in all records; only with `places`.
    """
    program = _program(file_on_batches=path is not None, batches=batches, records=records, has_places=bool(places))
    if path is None:
        return program
    given = log_place(path) | dict(beside or {})
    values = {name: json_escaped(json.dumps(value, ensure_ascii=False)) for name, value in given.items()}
    members = ",".join(f'"{name}":{values[name]}' for name in (*places, *(beside or {})))
    return fill_program(fill_program(program, PATH, values["file"]), _PLACES, members)


@cache
def _program(*, file_on_batches: bool, batches: bool, records: bool, has_places: bool) -> Program:
    """The program for all files, with PATH in place of the path, and _PLACES in that of records' places."""
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
    """What else `build` needs to write a record as it was: its own time under LogAppendTime, and unused bits."""
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
