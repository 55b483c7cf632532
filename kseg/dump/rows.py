"""Prints records as rows: a template of the user's, chosen fields, CSV, a table."""

import json
from typing import TYPE_CHECKING

from kseg.decode.record_decoders import record_decoder
from kseg.dump.decoders import class_decoder, control_json
from kseg.dump.log import Rendering, new_output
from kseg.dump.logs import summary_lines
from kseg.dump.selected import note_failures, note_findings, read_log
from kseg.dump.whole_lines import WholeLines
from kseg.kernel.program import Program
from kseg.layouts.compiler import zoned_program
from kseg.layouts.record_rows import DEFAULT_CSV_FIELDS, DEFAULT_FIELDS, SAFE_CSV, fields_program, template_program
from kseg.layouts.zones import zone_table

if TYPE_CHECKING:
    from kseg.decode.record_decoders import RecordDecoder
    from kseg.dump.options import DumpContext, DumpOptions
    from kseg.kernel.contract import Decode
    from kseg.output.growing_table import Cell, GrowingTable


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


def dump_log_as_rows(path: str, context: "DumpContext") -> None:
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


def rows_rendering(path: str, context: "DumpContext") -> tuple[Rendering, "RecordDecoder | None"]:
    """How a log's rows are rendered, and by which decoder."""
    options = context.options
    decoder = record_decoder(options.decoding, path)
    decode: Decode | None = decoder
    if decoder is None and (options.key_decoder_class or options.value_decoder_class):
        decode = class_decoder(options.key_decoder_class, options.value_decoder_class)
    return Rendering(_program(path, context), decode, control_json, limit=options.max_decompressed), decoder


def note_left_out(rows: "TableRows", path: str, context: "DumpContext") -> None:
    """Notes how many records a table has no room for."""
    if rows.left_out:
        longer = f"longer than {LARGEST_LINE} bytes: a table has no room for them, -o json shows them"
        context.found.summaries.append(f"kseg: {path}: {rows.left_out} records left out, {longer}")


def _program(path: str, context: "DumpContext") -> Program:
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
