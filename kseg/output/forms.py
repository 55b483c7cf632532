"""Forms of output, by their names in `-o`: each writes rows and objects in its own way."""

import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import ClassVar, TypedDict, TypeVar, Unpack

from kseg.errors import UsageError
from kseg.output.columns import Column, Unit
from kseg.output.csv_style import PLAIN_CSV, CsvStyle
from kseg.output.progress import talk
from kseg.output.rows import CsvWriter, write_json, write_json_by_pieces
from kseg.output.streams import flush_stdout, write_line
from kseg.output.table import Section, aligned_lines, rich_fitting, sums_text, write_rich_table

Row = TypeVar("Row")
_TIMES = (Unit.ISO_TIME, Unit.TIMESTAMP)


@dataclass(frozen=True, slots=True)
class Form:
    """A form of output, for people or for programs.

    color: None lets the terminal and NO_COLOR decide. csv: the style of CSV; raises UsageError for another form. zone:
    of printed times. columns: names of the rows' columns; empty for all. room: characters of a line for people, None
    for any number. is_quiet: people don't see the sums of rows.
    """

    name: ClassVar[str]
    is_for_people: ClassVar[bool] = False
    has_objects: ClassVar[bool] = False
    "True if it has objects of any kind, one after another; other forms have lines of text, or rows of columns."
    has_one_kind: ClassVar[bool] = False
    "True if all of its rows have the same columns."

    color: bool | None = None
    csv: CsvStyle = PLAIN_CSV
    zone: tzinfo = UTC
    columns: tuple[str, ...] = ()
    room: int | None = None
    is_quiet: bool = False

    def __post_init__(self) -> None:
        """Raise UsageError for options that exclude each other."""
        self.csv.check(self.name)

    def write_rows(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write the rows of a section to standard output."""
        raise NotImplementedError

    def write_object(self, members: Mapping[str, object]) -> None:
        """Write an object to standard output, in a form that has objects.

        A member that is an iterator yields its JSON piece by piece.
        """
        raise NotImplementedError


def write_sums(noun: str, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> None:
    """Write the sums of rows: below them on a terminal, otherwise to stderr, since a program may read the rows."""
    sums = sums_text(noun, columns, rows)
    if sums is not None and sys.stdout.isatty():
        write_line(f"  Total: {sums}")
    elif sums is not None:
        flush_stdout()
        talk(f"kseg: {sums}")


class TextForm(Form):
    """Aligned lines of text below the section's title."""

    name = "text"
    is_for_people = True

    def write_rows(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write the rows of a section; a section with a title and without rows writes nothing."""
        found = list(rows)
        if not found and section.title is not None:
            return
        if section.title is not None:
            write_line(f"{section.title}:")
        for line in aligned_lines(section.shown_columns, found, self.room and self.room - 2):
            write_line(f"  {line}")
        if section.title is not None and not self.is_quiet:
            write_sums(section.title.lower(), section.shown_columns, found)


class TableForm(Form):
    """Tables with lines and colours."""

    name = "table"
    is_for_people = True

    def write_rows(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write the rows of a section; a section with a title and without rows writes nothing."""
        found = list(rows)
        if found or section.title is None:
            columns, title, style = section.shown_columns, section.title, section.style
            fitting = rich_fitting(columns, self.room)
            write_rich_table(columns, found, title=title, color=self.color, style=style, fitting=fitting)
            if title is not None and not self.is_quiet:
                write_sums(title.lower(), columns, found)


class JsonForm(Form):
    """Lines of JSON, an object in each."""

    name = "json"
    has_objects = True

    def write_rows(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write an object for each row."""
        for row in rows:
            write_json(section.as_object(row))

    def write_object(self, members: Mapping[str, object]) -> None:
        """Write an object as a line."""
        if any(isinstance(each, Iterator) for each in members.values()):
            write_json_by_pieces(members)
        else:
            write_json(members)


class CsvForm(Form):
    """Rows of CSV below the columns' names; there may be only one section."""

    name = "csv"
    has_one_kind = True

    def write_rows(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write the names, and a line for each row."""
        times = {column.name: self.zone for column in section.columns if column.field.unit in _TIMES}
        writer = CsvWriter((column.name for column in section.columns), self.csv, times)
        for row in rows:
            writer.write(section.as_values(row))


class FormSettings(TypedDict, total=False):
    """Members of `Form` that `form_named` takes."""

    csv: CsvStyle
    zone: tzinfo
    columns: tuple[str, ...]
    room: int | None
    is_quiet: bool


FORMS: dict[str, type[Form]] = {each.name: each for each in (TextForm, JsonForm, CsvForm, TableForm)}
"""Forms by their names."""
OBJECT_FORMS = {name: form for name, form in FORMS.items() if form is TextForm or form.has_objects}
"""Forms of commands whose output isn't rows of columns."""


def form_named(name: str, color: bool | None = None, **settings: Unpack[FormSettings]) -> Form:
    """Return the form of a name; text for a form that only one command has and writes itself.

    Raises UsageError as Form.
    """
    return FORMS.get(name, TextForm)(color, **settings)


class RowWriter:
    """Writes sections in one form; a form with a single kind of rows has only one section. count: rows written."""

    def __init__(self, form: Form) -> None:
        self.count = 0
        self.form = form

    def prepare(self, section: Section[Row]) -> Section[Row]:
        """Return a section with the requested columns, and its times in the zone of the output.

        Raises UsageError for an untitled section that has none of the columns.
        """
        chosen = section.in_zone(self.form.zone).choose_columns(self.form.columns)
        if not chosen.columns and section.title is None:
            names = ", ".join(column.name for column in section.columns if column.name)
            raise UsageError(f"--fields: no row has {', '.join(self.form.columns)}; use {names}")
        return chosen

    def write(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Write a section, if it has requested columns; people see a titled section only if it has rows."""
        prepared = self.prepare(section)
        if prepared.columns:
            self.form.write_rows(prepared, self._count_rows(rows))

    def _count_rows(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.count += 1
            yield row
