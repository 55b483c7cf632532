"""Tables of rows: complete, growing, or in the form that a command uses."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import IO, TYPE_CHECKING, Generic, TypeVar

from kseg.output.columns import NOT_SHOWN, Column, Unit
from kseg.output.fitting import LEAST_PATH, LEAST_TEXT, NEVER_LEFT_OUT, Cut, Fitting, Head, width_of
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


Row = TypeVar("Row")
_PIECE = 500
"""Rows that are aligned and written at once."""
_ENDLESS = 1 << 16
"""Characters of a line that is never cut; a terminal breaks lines itself."""
_GAP, _EDGE = 3, 1
"""Characters of a table between two columns, a blank on each side of a separator, and at its sides."""


def aligned_line(texts: Sequence[str], widths: Sequence[int]) -> str:
    """Arrange texts in columns separated by two spaces. A negative width aligns the column to the left."""
    cells = []
    for text, width in zip(texts, widths, strict=True):
        blanks = " " * (abs(width) - width_of(text))
        cells.append(text + blanks if width < 0 else blanks + text)
    return "  ".join(cells).rstrip()


def aligned_lines(columns: Sequence[Column[Row]], rows: Iterable[Row], room: int | None = None) -> list[str]:
    """Return a table as plain text: a line of titles, then one line per row.

    room: the width of lines, None for any width.
    """
    lines: list[str] = []
    growing = GrowingLines(columns, lines.append, room, piece=0)
    for row in rows:
        growing.add(row)
    growing.finish()
    return lines


def sums_text(noun: str, columns: Sequence[Column[Row]], rows: Sequence[Row]) -> str | None:
    """Return the number of rows and the sums of columns: `9 groups, 21 commits`; None without several rows or a sum."""
    sums = [_sum_text(column, text) for column in columns if (text := column.sum_text(rows)) is not None]
    return ", ".join((f"{len(rows)} {noun}", *sums)) if sums and len(rows) > 1 else None


def _sum_text(column: Column[Row], text: str) -> str:
    """Return a sum with its noun, which is the title of a column that counts things."""
    title = column.title.lower()
    if not title.endswith("s") or column.field.unit is not Unit.COUNT:
        return f"{title} {text}"
    return f"{text} {title.removesuffix('s') if text == '1' else title}"


def piece_lines(columns: Sequence[Column[Row]], rows: Iterable[Row], fitting: Fitting) -> list[str]:
    """Return some rows of a table below their titles; the first rows that a fitting gets decide the columns."""
    texts = fitting.take([[column.text(row) for column in columns] for row in rows], is_whole=False)
    shown = [columns[place] for place in fitting.places]
    texts = [[column.title for column in shown], *texts]
    widths = _widen([1 if column.is_set_right else -1 for column in shown], texts)
    return [aligned_line(line, widths) for line in texts]


def _widen(widths: Sequence[int], texts: Sequence[Sequence[str]]) -> list[int]:
    """Return widths of columns with room for the given lines of texts; negative for columns aligned left."""
    needed = [max(map(width_of, cells)) for cells in zip(*texts, strict=True)]
    return [min(width, -most) if width < 0 else max(width, most) for width, most in zip(widths, needed, strict=True)]


class GrowingLines(Generic[Row]):
    """A table as plain text that grows: it is written in pieces, in which columns only become wider."""

    def __init__(
        self,
        columns: Sequence[Column[Row]],
        write: Callable[[str], None],
        room: int | None = None,
        *,
        piece: int = _PIECE,
        has_choice: bool = True,
    ) -> None:
        """Take columns, the writer of a line, the characters of a line (None: any number), a piece's rows (0: all).

        has_choice: as in Fitting.
        """
        self._columns = columns
        self._write = write
        self._piece = piece
        self._fitting = Fitting([column.head for column in columns], room, has_choice=has_choice)
        self._texts: list[list[str]] = []
        self._widths: list[int] | None = None

    def add(self, row: Row) -> None:
        """Add a row."""
        self._texts.append([column.text(row) for column in self._columns])
        if len(self._texts) == self._piece:
            self._write_piece(is_last=False)

    def finish(self) -> None:
        """Write the remaining rows; without any row not even the titles."""
        if self._texts or not (self._piece or self._widths):
            self._write_piece(is_last=True)
        for line in self._fitting.below:
            self._write(line)

    def _write_piece(self, *, is_last: bool) -> None:
        whole, texts = self._texts, self._fitting.take(self._texts, is_whole=is_last)
        if self._widths is None:
            for above in self._fitting.above:
                self._write(above)
            shown = [self._columns[place] for place in self._fitting.places]
            texts, whole = [[column.title for column in shown], *texts], [[""] * len(self._columns), *whole]
            self._widths = [1 if column.is_set_right else -1 for column in shown]
        self._widths = _widen(self._widths, texts)
        for cells, row in zip(texts, whole, strict=True):
            self._write(aligned_line(cells, self._widths))
            for line in self._fitting.lines_of(row):
                self._write(line)
        self._texts = []


def rich_fitting(columns: Sequence[Column[Row]], room: int | None, *, has_choice: bool = True) -> Fitting:
    """Return the fitting of a table with lines for the given width; other arguments as in Fitting."""
    heads = [column.head for column in columns]
    return Fitting(heads, room and room - 2 * _EDGE, _GAP, has_choice=has_choice, folds_cells=True)


def write_rich_table(
    columns: Sequence[Column[Row]],
    rows: Iterable[Row],
    *,
    title: str | None = None,
    color: bool | None = None,
    style: Callable[[Row], str] | None = None,
    fitting: Fitting | None = None,
) -> None:
    """Write a table with lines and colours to standard output.

    Args:
        columns: the shown columns.
        rows: the rows.
        title: above the table.
        color: None lets the terminal and NO_COLOR decide.
        style: rich's name of a row's style.
        fitting: of `rich_fitting`; None never shortens lines.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    rows = list(rows)
    texts = [[column.text(row) for column in columns] for row in rows]
    fit = fitting or rich_fitting(columns, None)
    texts = fit.take(texts, is_whole=True)
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for place in fit.places:
        column, folded = columns[place], fit.width_at(place)
        table.add_column(
            column.title,
            justify="right" if column.is_set_right else "left",
            no_wrap=folded is None,
            width=folded,
        )
    for row, shown in zip(rows, texts, strict=True):
        table.add_row(*map(_plain, shown), style=style(row) if style else None)
    from kseg.output.pager import open_pager

    with open_pager() as out:
        is_terminal = sys.stdout.isatty() or None if color is None else color
        no_color = None if color is None else not color
        console = Console(file=out, force_terminal=is_terminal, no_color=no_color, highlight=False)
        widest = console.measure(table, options=console.options.update(width=_ENDLESS)).maximum
        console.width = max(console.width, widest)
        for line in fit.above:
            console.print(_plain(line))
        console.print(table)
        for line in fit.below:
            console.print(_plain(line))


def _plain(text: str, style: str = "") -> "Text":
    from rich.text import Text

    return Text(text, style)


_USERS_TEXTS = frozenset(
    {"key", "value", "headers", "keyDecoded", "valueDecoded", "keyError", "valueError", "properties"}
)
"""Columns of users' texts, without Kafka's numbers."""

Cell = str | int | float | bool | None


class GrowingTable:
    """Takes rows, and prints them below a line of names, in lines that fit the terminal."""

    def __init__(self, names: Sequence[str], out: IO[str], color: bool | None = None, room: int | None = None) -> None:
        """Take the columns' names, the output, whether to colour (None: on terminals), and the width of lines."""
        self._names = names
        self._out = out
        self._color = color
        self._fitting = Fitting([_head(name) for name in names], room, _GAP)
        self._rows: list[list[Cell]] = []
        self._widths: list[int] = []
        self._is_number: list[bool] = []
        self._console: Console | None = None

    def add(self, cells: Sequence[Cell]) -> None:
        """Add a row."""
        self._rows.append(list(cells))
        if len(self._rows) >= _PIECE:
            self.print_rows()

    def finish(self) -> None:
        """Print the last rows, and the omitted parts."""
        self.print_rows(is_last=True)
        self._out.writelines(f"{line}\n" for line in self._fitting.below)

    def print_rows(self, *, is_last: bool = False) -> None:
        """Print the remaining rows."""
        if not self._rows:
            return
        from rich import box
        from rich.table import Table

        rows, self._rows = self._rows, []
        texts = self._fitting.take([[_text(cell) for cell in row] for row in rows], is_whole=is_last)
        is_first, console = self._console is None, self._console or self._begin(rows)
        self._take_widths(texts)
        if not is_first and not console.is_terminal:
            self._out.writelines(self._line(row) for row in texts)
            return
        table = Table(box=box.SIMPLE_HEAD, show_header=is_first, pad_edge=False, show_edge=False)
        places = self._fitting.places
        for place, width, is_number in zip(places, self._widths, self._is_number, strict=True):
            table.add_column(
                self._names[place], justify="right" if is_number else "left", no_wrap=True, min_width=width
            )
        for row, shown in zip(rows, texts, strict=True):
            styles = ("dim" if row[place] is None else "" for place in places)
            table.add_row(*map(_plain, shown, styles))
        console.print(table)

    def _begin(self, rows: list[list[Cell]]) -> "Console":
        """Print the lines above the table."""
        from rich.console import Console

        self._console = Console(
            file=self._out,
            force_terminal=_is_terminal(self._out) or None if self._color is None else self._color,
            no_color=None if self._color is None else not self._color,
            highlight=False,
            width=_ENDLESS,
        )
        places = self._fitting.places
        self._is_number = [all(_is_number(row[place]) for row in rows) for place in places]
        self._widths = [len(self._names[place]) for place in places]
        self._out.writelines(f"{line}\n" for line in self._fitting.above)
        return self._console

    def _line(self, texts: list[str]) -> str:
        """Return a row without colours as rich would print it, many times faster."""
        cells = []
        for text, width, is_number in zip(texts, self._widths, self._is_number, strict=True):
            blanks = " " * (width - width_of(text))
            cells.append(blanks + text if is_number else text + blanks)
        return (" " * _GAP).join(cells) + "\n"

    def _take_widths(self, texts: list[list[str]]) -> None:
        """Widen columns for these rows."""
        for place, known in enumerate(self._widths):
            self._widths[place] = max(known, *(width_of(row[place]) for row in texts))


def _head(name: str) -> Head:
    """Return the form of a column of records if there is no room for all."""
    if name in _USERS_TEXTS:
        return Head(name, Cut(LEAST_TEXT, in_middle=False), NEVER_LEFT_OUT)
    is_path = name == "file"
    return Head(name, Cut(LEAST_PATH, in_middle=True) if is_path else None, NEVER_LEFT_OUT, is_path)


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def _text(cell: Cell) -> str:
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return escaped_text(str(cell))


def _is_terminal(out: IO[str]) -> bool:
    """Return True if people see it: a terminal, or a pager before one."""
    return sys.stdout.isatty() if out is not sys.stdout else out.isatty()


@dataclass(frozen=True)
class Section(Generic[Row]):
    """One kind of rows: `type` in JSON, `title` for people, None for no title, and its columns.

    shown: the columns for people, if they aren't the titled ones of `columns`.
    """

    type: str
    title: str | None
    columns: Sequence[Column[Row]]
    style: Callable[[Row], str] | None = None
    shown: Sequence[Column[Row]] | None = None

    @property
    def shown_columns(self) -> Sequence[Column[Row]]:
        """The columns for people."""
        if self.shown is not None:
            return self.shown
        return [column for column in self.columns if column.title != NOT_SHOWN]

    def choose_columns(self, names: Sequence[str]) -> "Section[Row]":
        """Return the section with only the named columns, in this order; all columns if none is named."""
        if not names:
            return self
        found = {column.name: column for column in self.columns}
        shown = {**found, **{column.name: column for column in self.shown_columns}}
        titled = [shown[name]._replace(title=shown[name].title or name, rank=0) for name in names if name in shown]
        return replace(self, columns=[found[name] for name in names if name in found], shown=titled)

    def in_zone(self, zone: tzinfo) -> "Section[Row]":
        """Return the section with its times in a zone."""
        columns = tuple(each if each.in_zone is None else each.in_zone(zone) for each in self.columns)
        return replace(self, columns=columns)

    def as_object(self, row: Row) -> dict[str, object]:
        """Return a row for JSON."""
        return {"type": self.type, **{column.field.name: column.value(row) for column in self.columns}}

    def as_values(self, row: Row) -> list[object]:
        """Return a row for CSV: several values of a field are separated by spaces."""
        return [_flat(column.value(row)) for column in self.columns]


def _flat(value: object) -> object:
    if isinstance(value, list):
        return " ".join(str(_flat(element)) for element in value)
    if isinstance(value, dict):
        return ":".join(str(_flat(element)) for element in value.values())
    return value
