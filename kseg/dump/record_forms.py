"""Records, and entries of other files, as rows: JSON, CSV, tables, lines of fields or of a template."""

import json
import sys
from typing import TYPE_CHECKING

from kseg.decode.record_decoders import record_decoder
from kseg.dump.decoders import class_decoder, control_json, escaped_control_json
from kseg.dump.forms import Form, LogRendering, Printing, Problems
from kseg.dump.log_steps import LogSummary, Rendering, WholeLines, new_output
from kseg.errors import plural
from kseg.kernel.contract import Program
from kseg.layouts.record_columns import (
    DEFAULT_CSV_FIELDS,
    DEFAULT_FIELDS,
    PLACE_COLUMNS,
    SAFE_CSV,
    TIME_FIELDS,
    TOPIC_COLUMNS,
    fields_program,
    json_program,
    template_program,
)
from kseg.layouts.template import zone_table, zoned_program
from kseg.output.fitting import room_on_terminal
from kseg.output.rows import CsvWriter, json_line, quote_field
from kseg.output.table import GrowingTable
from kseg.reading.blocks import Damage
from kseg.system.placed_path import StrPath

if TYPE_CHECKING:
    from kseg.formats.checkpoints import Members
    from kseg.formats.file_names import FileKind
    from kseg.kernel.contract import Decode
    from kseg.kernel.entry_points import Output
    from kseg.output.table import Cell


LARGEST_LINE = 1 << 23
"""Most bytes of a record as JSON that become a row of a table: Python's objects take many times as many."""


class RecordForm(Form):
    """Rows of records, and of the entries of a file."""

    def rendering(self, path: StrPath) -> LogRendering:
        """Return the rendering of the rows of a log."""
        options, decoder = self.options, record_decoder(self.options.decoding, path)
        decode: Decode | None = decoder
        if decoder is None and (options.key_decoder_class or options.value_decoder_class):
            decode = class_decoder(options.key_decoder_class, options.value_decoder_class)
        program = zoned_program(self.program(path), zone_table(options.zone))
        return LogRendering(Rendering(program, decode, control_json, limit=options.max_decompressed), decoder)

    def program(self, path: StrPath) -> Program:
        """Return the program that prints a row for each record of a log."""
        raise NotImplementedError

    def print_object(self, members: "Members") -> None:
        """Print an entry of a file as a row of its own columns."""
        raise NotImplementedError

    def print_file(self, path: StrPath, kind: "FileKind") -> None:
        """Print the entries of a file, each as an object."""
        from kseg.dump.objects import entry_objects

        found = Problems(self.options.release)
        for members in entry_objects(path, kind, self.options, found):
            self.print_object(members)
        self.problems.is_wrong |= found.is_wrong
        self.tell_entry_problems(path, found)

    def tell_entry_problems(self, path: StrPath, found: Problems) -> None:
        """Report the problems of the entries of a file."""
        self.problems.lines += found.lines

    @property
    def has_topics(self) -> bool:
        """True if rows of records name their topic and partition."""
        return self.options.is_merged or self.printing.has_several_partitions

    @property
    def csv_names(self) -> tuple[str, ...]:
        """Names of the columns of CSV."""
        file, *others = DEFAULT_CSV_FIELDS
        return self.options.fields or (file, *(TOPIC_COLUMNS if self.has_topics else ()), *others)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        if self.options.fields:
            return self.options.fields
        if self.has_topics:
            return (*TOPIC_COLUMNS, *DEFAULT_FIELDS)
        return ("file", *DEFAULT_FIELDS) if self.printing.has_several_files else DEFAULT_FIELDS


class LineForm(RecordForm):
    """A line of text for each record, from --fields or --template."""

    def program(self, path: StrPath) -> Program:
        """Return the program of the fields, or of the template."""
        if self.options.template is not None:
            return template_program(self.options.template, path)
        return fields_program("text", self.names, path)

    def print_object(self, members: "Members") -> None:
        """Print an entry as `name: value`."""
        cells = _cells(members).items()
        self.printing.line(" ".join(f"{name}: {'null' if value is None else value}" for name, value in cells))


class CsvForm(RecordForm):
    """Rows of CSV, with a line of names where the columns change."""

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._header = ""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.csv_names

    def program(self, path: StrPath) -> Program:
        """Return the program of the columns."""
        return fields_program(SAFE_CSV if self.options.csv.is_safe else "csv", self.names, path)

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Print the names of the columns, unless they are those last printed."""
        return self.merged_output()

    def merged_output(self) -> "Output":
        """Print the names of the columns, unless they are those last printed."""
        self._print_names(self.names)
        return self.printing.output

    def _print_names(self, names: tuple[str, ...]) -> None:
        header = ",".join(names)
        if header != self._header:
            self._header = header
            self.printing.line(header)

    def print_object(self, members: "Members") -> None:
        """Print an entry's values."""
        cells = _cells(members)
        self._print_names(tuple(cells))
        self.printing.line(",".join(map(self._field, cells.values())))

    def _field(self, value: "Cell") -> str:
        if isinstance(value, str):
            return quote_field(value, is_safe=self.options.csv.is_safe)
        return "" if value is None else str(value).lower()


class CellsForm(RecordForm):
    """Rows of Python values: of records, which the kernel gives as JSON, and of entries."""

    prints_unchanged = False

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._rows = new_output(WholeLines(LARGEST_LINE, self._add_record, self._leave_out).take)
        self._left_out = 0

    def program(self, path: StrPath) -> Program:
        """Return the program of the columns, as JSON that becomes rows."""
        return fields_program("table", self.names, path)

    def add(self, names: tuple[str, ...], cells: "list[Cell]") -> None:
        """Print a row of these columns, now or later."""
        raise NotImplementedError

    def record_cell(self, members: dict[str, object], name: str) -> "Cell":
        """Return the value of a record's column."""
        return _record_cell(members, name)

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Return the output that turns the records into rows."""
        return self._rows

    def merged_output(self) -> "Output":
        """Return the output that turns the records into rows."""
        return self._rows

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Note the rows that were too large."""
        self._rows.flush()
        self._tell_left_out(path)

    def finish(self) -> None:
        """Print the remaining rows."""
        self._rows.flush()
        self._tell_left_out("of all")

    def print_object(self, members: "Members") -> None:
        """Print an entry's values."""
        cells = _cells(members)
        self.add(tuple(cells), list(cells.values()))

    def _add_record(self, line: bytes) -> None:
        members, names = json.loads(line), self.names
        self.add(names, [self.record_cell(members, name) for name in names])

    def _leave_out(self, _: bytes) -> None:
        self._left_out += 1

    def _tell_left_out(self, path: StrPath) -> None:
        """Note the number of records that were too large."""
        if self._left_out:
            longer = f"longer than {LARGEST_LINE} bytes, too long for a table; use -o json to print them"
            self.problems.lines.append(f"kseg: {path}: {plural(self._left_out, 'record')} omitted, {longer}")
        self._left_out = 0


class TableForm(CellsForm):
    """Tables with a line of names; a new table where the columns change."""

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._table: GrowingTable | None = None
        self._names: tuple[str, ...] = ()

    def add(self, names: tuple[str, ...], cells: "list[Cell]") -> None:
        """Add a row to the table of these columns."""
        self._table_of(names).add(cells)

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Note the rows that were too large; print the rows of a followed log."""
        super().finish_log(path, summary, is_continued=is_continued)
        if is_continued:
            self._table_of(self.names).print_rows()

    def finish(self) -> None:
        """Print the remaining rows."""
        super().finish()
        if self._table is not None:
            self._table.finish()

    def _table_of(self, names: tuple[str, ...]) -> GrowingTable:
        """Return the table with these columns: the last one if it has the same."""
        if self._table is None or names != self._names:
            if self._table is not None:
                self._table.finish()
            self._names = names
            room = None if self.options.wide else room_on_terminal()
            out = self.printing.table_output or sys.stdout
            self._table = GrowingTable(names, out, self.options.color, room)
        return self._table


class SheetForm(CellsForm):
    """Rows of CSV for spreadsheets, cell by cell, with a line of names where the columns change."""

    def __init__(self, printing: Printing) -> None:
        super().__init__(printing)
        self._writer: CsvWriter | None = None
        self._names: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return self.csv_names

    def begin_log(self, path: StrPath, *, is_continued: bool) -> "Output":
        """Print the names of the columns, unless they are those last printed."""
        return self.merged_output()

    def merged_output(self) -> "Output":
        """Print the names of the columns, unless they are those last printed."""
        self._print_names(self.names)
        return self._rows

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Print the remaining rows of a followed log; note the rows that were too large."""
        super().finish_log(path, summary, is_continued=is_continued)
        if is_continued:
            self.printing.output.flush()

    def add(self, names: tuple[str, ...], cells: "list[Cell]") -> None:
        """Print a row."""
        self._print_names(names).write(cells)

    def record_cell(self, members: dict[str, object], name: str) -> "Cell":
        """Return the value of a record's column; headers are JSON."""
        return sheet_cell(members, name)

    def _print_names(self, names: tuple[str, ...]) -> CsvWriter:
        if self._writer is None:
            times = dict.fromkeys(TIME_FIELDS, self.options.zone)
            self._writer = CsvWriter(names, self.options.csv, times, self.printing.output.write)
        elif names != self._names:
            self._writer.write_names(names)
        self._names = names
        return self._writer


def sheet_cell(members: dict[str, object], name: str) -> "Cell":
    """Return a column's value in CSV from a record that a table's program rendered."""
    return _cell(members[name]) if name == "headers" else _record_cell(members, name)


def _record_cell(members: dict[str, object], name: str) -> "Cell":
    if name not in members:
        return f"base64:{members[f'{name}Base64']}"
    value = members[name]
    if name == "headers" and isinstance(value, list):
        return ", ".join(_header_text(header) for header in value)
    return _cell(value)


def _header_text(header: dict[str, str | None]) -> str:
    key = header.get("key", f"base64:{header.get('keyBase64')}")
    value = header.get("value", f"base64:{header.get('valueBase64')}")
    return f"{key}={'null' if value is None else value}"


def _cells(members: "Members") -> "dict[str, Cell]":
    """Return the values of an entry by name. Lists and objects are formatted as JSON."""
    return {name: _cell(value) for name, value in members.items() if name != "type"}


def _cell(value: object) -> "Cell":
    if value is None or isinstance(value, str | int | float | bool):
        return value
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class JsonForm(RecordForm):
    """Lines of JSON: batches, records, damages, and a summary of each log; with --only or fields, only records."""

    tells_damages_later = False

    def rendering(self, path: StrPath) -> LogRendering:
        """Return the rendering of a log's objects."""
        options, decoder = self.options, record_decoder(self.options.decoding, path)
        program = zoned_program(self.program(path), zone_table(options.zone))
        return LogRendering(Rendering(program, decoder, escaped_control_json, limit=options.max_decompressed), decoder)

    def program(self, path: StrPath) -> Program:
        """Return the program of batches and records, or of the fields."""
        only, printing = self.options.only, self.printing
        if self.options.fields:
            return fields_program("json", self.options.fields, path)
        of_file = PLACE_COLUMNS[:1] if printing.has_several_files else ()
        places = PLACE_COLUMNS if printing.has_several_partitions else of_file
        return json_program(path, batches=only != "records", records=only != "batches", places=places)

    def finish_log(self, path: StrPath, summary: LogSummary, *, is_continued: bool) -> None:
        """Print the summary of a log."""
        if self.options.has_summary and not is_continued:
            self._tell(summary_object(path, summary))

    def damage(self, damage: Damage) -> None:
        """Print a damage at its place in the output."""
        self._tell(damage_object(damage))

    def _tell(self, members: dict[str, object]) -> None:
        """Print an object next to records, or on stderr if only records are printed."""
        if self.options.only is None and not self.options.fields and not self.options.is_merged:
            self.print_object(members)
        else:
            self.printing.talk.say(json_line(members).decode().rstrip("\n"))

    def print_object(self, members: "Members") -> None:
        """Print an object as a line."""
        self.printing.output.write(json_line(members))

    def tell_entry_problems(self, path: StrPath, found: Problems) -> None:
        """Print the problems of the entries of a file as objects."""
        from kseg.dump.objects import finding_objects

        for members in finding_objects(path, found):
            self.print_object(members)


def damage_object(damage: Damage) -> dict[str, object]:
    """Return a damage as JSON has it."""
    return {
        "type": "damage",
        "kind": str(damage.kind),
        "position": damage.position,
        "size": damage.size,
        "detail": damage.detail,
        "nextOffset": damage.next_offset,
    }


def summary_object(path: StrPath, summary: LogSummary) -> dict[str, object]:
    """Return the last object of a log; `bytes` is its size, `lost` the number of bytes that no batch holds."""
    return {
        "type": "summary",
        "file": str(path),
        "batches": summary.batches,
        "records": summary.records,
        "bytes": summary.size,
        "lost": summary.lost,
    }
