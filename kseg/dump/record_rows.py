"""Records as rows of CSV, tables and JSON."""

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

from kseg.decode.record_decoders import RecordDecoder, record_decoder
from kseg.dump.log_steps import LogSummary, Rendering, WholeLines, new_output
from kseg.dump.log_text import summary_lines
from kseg.dump.options import DumpContext, class_decoder, control_json
from kseg.dump.selected import note_failures, note_findings, read_log
from kseg.kernel.contract import Program
from kseg.layouts.record_columns import (
    DEFAULT_CSV_FIELDS,
    DEFAULT_FIELDS,
    PLACE_COLUMNS,
    SAFE_CSV,
    fields_program,
    json_program,
    template_program,
)
from kseg.layouts.template import zone_table, zoned_program
from kseg.output.rows import json_line
from kseg.reading.blocks import Damage
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.dump.options import DumpOptions
    from kseg.kernel.contract import Decode
    from kseg.output.table import Cell, GrowingTable


LARGEST_LINE = 1 << 23
"""Bytes of a record as JSON that become a row of a table: Python's objects of them take many times as many."""


def fields_of(options: "DumpOptions", *, several_files: bool) -> tuple[str, ...]:
    """The names of the columns."""
    if options.fields:
        return options.fields
    if options.output == "csv":
        return DEFAULT_CSV_FIELDS
    if options.is_merged:
        return ("topic", "partition", *DEFAULT_FIELDS)
    return ("file", *DEFAULT_FIELDS) if several_files else DEFAULT_FIELDS


def dump_log_as_rows(path: StrPath, context: "DumpContext") -> None:
    """Prints a log's records; reports damage on stderr. Raises OpenError if it can't be opened."""
    options = context.options
    rendering, decoder = rows_rendering(path, context)
    names = fields_of(options, several_files=context.given.are_several_files)
    if options.output == "table":
        rows = TableRows(context.table(names), names)
        output = new_output(rows.take)
        summary = read_log(path, context, rendering, output=output)
        output.flush()
        note_left_out(rows, path, context)
        if context.is_following:
            rows.table.print_rows()
    else:
        if options.output == "csv":
            context.line_once(",".join(names))
        summary = read_log(path, context, rendering)
    note_findings(path, summary, context)
    if summary.damages:
        context.found.summaries += summary_lines(path, summary)
    note_failures(path, decoder, context)


def rows_rendering(path: StrPath, context: "DumpContext") -> tuple[Rendering, "RecordDecoder | None"]:
    """How a log's rows are rendered, and by which decoder."""
    options = context.options
    decoder = record_decoder(options.decoding, path)
    decode: Decode | None = decoder
    if decoder is None and (options.key_decoder_class or options.value_decoder_class):
        decode = class_decoder(options.key_decoder_class, options.value_decoder_class)
    return Rendering(_row_program(path, context), decode, control_json, limit=options.max_decompressed), decoder


def note_left_out(rows: "TableRows", path: StrPath, context: "DumpContext") -> None:
    """Notes how many records a table has no room for."""
    if rows.left_out:
        longer = f"longer than {LARGEST_LINE} bytes: a table has no room for them, -o json shows them"
        context.found.summaries.append(f"kseg: {path}: {rows.left_out} records left out, {longer}")


def _row_program(path: StrPath, context: "DumpContext") -> Program:
    options = context.options
    if options.template is not None:
        program = template_program(options.template, path)
    else:
        form = SAFE_CSV if options.csv_safe else options.output
        program = fields_program(form, fields_of(options, several_files=context.given.are_several_files), path)
    return zoned_program(program, zone_table(options.zone))


class TableRows:
    """Puts records into a table, of lines of JSON as the kernel writes them; counts those that are too long."""

    def __init__(self, table: "GrowingTable", names: tuple[str, ...]) -> None:
        self.table = table
        self.left_out = 0
        self._names = names
        self.take = WholeLines(LARGEST_LINE, self._add_row, self._leave_out).take

    def _add_row(self, line: bytes) -> None:
        members = json.loads(line)
        self.table.add([_cell(members, name) for name in self._names])

    def _leave_out(self, _: bytes) -> None:
        self.left_out += 1


def _cell(members: dict[str, object], name: str) -> "Cell":
    if name not in members:
        return f"base64:{members[f'{name}Base64']}"
    value = members[name]
    if name == "headers" and isinstance(value, list):
        return ", ".join(_header_text(header) for header in value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return value  # type: ignore[return-value]  # JSON has no others


def _header_text(header: dict[str, str | None]) -> str:
    key = header.get("key", f"base64:{header.get('keyBase64')}")
    value = header.get("value", f"base64:{header.get('valueBase64')}")
    return f"{key}={'null' if value is None else value}"


def dump_log_as_json(path: StrPath, context: DumpContext) -> None:
    """Prints a log file's objects; with `only` or fields, damages and the summary go to stderr.

    Raises OpenError if it can't be opened.
    """
    rendering, decoder, on_damage = json_rendering(path, context)
    summary = read_log(path, context, rendering, on_damage=on_damage)
    note_findings(path, summary, context)
    note_failures(path, decoder, context)
    if context.options.has_summary and not context.is_following:
        _say(summary_object(path, summary), context)


def json_rendering(
    path: StrPath, context: DumpContext
) -> tuple[Rendering, RecordDecoder | None, Callable[[Damage], None]]:
    """How a log's objects are rendered, by which decoder, and what takes its damages."""
    from kseg.dump.options import escaped_control_json

    options = context.options
    program = zoned_program(_json_program(path, context), zone_table(options.zone))
    decoder = record_decoder(options.decoding, path)
    rendering = Rendering(program, decoder, escaped_control_json, limit=options.max_decompressed)
    return rendering, decoder, lambda damage: _say(damage_object(damage), context)


def _say(value: dict[str, object], context: DumpContext) -> None:
    """Prints an object beside records, or reports it if only records are printed."""
    options = context.options
    if options.only is None and not options.fields and not options.is_merged:
        context.json(value)
    else:
        context.talk(json_line(value).decode().rstrip("\n"))


def _json_program(path: StrPath, context: DumpContext) -> Program:
    only = context.options.only
    if context.options.fields:
        return fields_program("json", context.options.fields, path)
    given = context.given
    places = PLACE_COLUMNS if given.are_several_partitions else PLACE_COLUMNS[:1] if given.are_several_files else ()
    return json_program(path, batches=only != "records", records=only != "batches", places=places)


def damage_object(damage: Damage) -> dict[str, object]:
    """A damage as JSON tells it."""
    return {
        "type": "damage",
        "kind": str(damage.kind),
        "position": damage.position,
        "size": damage.size,
        "detail": damage.detail,
        "nextOffset": damage.next_offset,
    }


def summary_object(path: StrPath, summary: LogSummary) -> dict[str, object]:
    """The last object of a file; `bytes` is its size, `lost` how many of them no batch holds."""
    return {
        "type": "summary",
        "file": str(path),
        "batches": summary.batches,
        "records": summary.records,
        "bytes": summary.size,
        "lost": summary.lost,
    }
