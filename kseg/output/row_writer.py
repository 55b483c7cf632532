"""Rows of any kind as text, JSON, CSV or rich tables."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Generic, TypeVar

from kseg.output.csv import CsvWriter
from kseg.output.output_form import OutputForm
from kseg.output.stdout import write_line
from kseg.output.table import TableColumn, aligned_lines, write_rich_table

Row = TypeVar("Row")

NOT_SHOWN = ""
"""Title of a column that only programs get: JSON and CSV."""


@dataclass(frozen=True)
class Section(Generic[Row]):
    """One kind of rows: `type` in JSON, `title` for people, None for no title, and its columns.

    shown: the columns for people, if they aren't those of `columns` that have a title.
    """

    type: str
    title: str | None
    columns: Sequence[TableColumn[Row]]
    style: Callable[[Row], str] | None = None
    shown: Sequence[TableColumn[Row]] | None = None

    @property
    def shown_columns(self) -> Sequence[TableColumn[Row]]:
        """Those for people."""
        if self.shown is not None:
            return self.shown
        return [column for column in self.columns if column.title != NOT_SHOWN]

    def in_zone(self, zone: tzinfo) -> "Section[Row]":
        """The same with its times in a zone."""
        columns = tuple(each if each.in_zone is None else each.in_zone(zone) for each in self.columns)
        return replace(self, columns=columns)

    def as_object(self, row: Row) -> dict[str, object]:
        """A row as JSON has it."""
        return {"type": self.type, **{column.name: column.value(row) for column in self.columns}}

    def as_values(self, row: Row) -> list[object]:
        """A row as CSV has it: several values of a field are separated by spaces."""
        return [_flat(column.value(row)) for column in self.columns]


def _flat(value: object) -> object:
    if isinstance(value, list):
        return " ".join(str(_flat(element)) for element in value)
    if isinstance(value, dict):
        return ":".join(str(_flat(element)) for element in value.values())
    return value


class RowWriter:
    """Writes sections in one form; in CSV there may be only one. count: rows written so far."""

    def __init__(self, form: OutputForm) -> None:
        """Nothing is written yet."""
        self.count = 0
        self.form = form

    def in_zone(self, section: Section[Row]) -> Section[Row]:
        """A section with its times in the zone of the output."""
        return section.in_zone(self.form.zone)

    def write(self, section: Section[Row], rows: Iterable[Row]) -> None:
        """Writes a section. For people one that has a title is left out if it is empty."""
        rows, section = self._counted(rows), self.in_zone(section)
        if self.form.name == "json":
            from kseg.output.json_lines import write_json

            for row in rows:
                write_json(section.as_object(row))
        elif self.form.name == "csv":
            writer = CsvWriter((column.name for column in section.columns), is_safe=self.form.csv_safe)
            for row in rows:
                writer.write(section.as_values(row))
        elif (found := list(rows)) or section.title is None:
            self._write_for_people(section, found)

    def _counted(self, rows: Iterable[Row]) -> Iterator[Row]:
        for row in rows:
            self.count += 1
            yield row

    def _write_for_people(self, section: Section[Row], rows: list[Row]) -> None:
        if self.form.name == "table":
            title, color = section.title, self.form.color
            write_rich_table(section.shown_columns, rows, title=title, color=color, style=section.style)
            return
        if section.title is not None:
            write_line(f"{section.title}:")
        for line in aligned_lines(section.shown_columns, rows):
            write_line(f"  {line}")
