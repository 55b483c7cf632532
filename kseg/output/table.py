"""Tables: aligned lines of plain text, and rich ones for a terminal."""

import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kseg.output.printable import printable

if TYPE_CHECKING:
    from datetime import tzinfo

    from rich.text import Text

Row = TypeVar("Row")
BAR_WIDTH = 10
_PIECE = 500
"""Rows that are aligned, and written at once."""
_ENDLESS = 1 << 16
"""Characters of a line: nothing is cut for want of room; a terminal breaks lines itself."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class TableColumn(NamedTuple, Generic[Row]):
    """A column: its name in JSON and CSV, its title, its value, how the value is shown, and how wide at least.

    A negative width sets the text to the left. `show` gives the text for people; None shows the value as it is.
    `in_zone` makes the same column with its times in another zone than UTC; None: it has no times.
    """

    name: str
    title: str
    width: int
    value: Callable[[Row], object]
    show: Callable[[Row], str] | None = None
    in_zone: "Callable[[tzinfo], TableColumn[Row]] | None" = None

    def text(self, row: Row) -> str:
        """What a person sees of a row here."""
        if self.show is not None:
            return printable(self.show(row))
        value = self.value(row)
        if isinstance(value, int):
            return str(value)
        return "" if value is None else printable(str(value))


def bar(value: int, largest: int, width: int = BAR_WIDTH) -> str:
    """A bar of eighths of characters for a value between 0 and the largest."""
    eighths = 0 if largest <= 0 else max(min(round(value * width * 8 / largest), width * 8), 1 if value > 0 else 0)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(width)


def aligned_line(texts: Sequence[str], widths: Sequence[int]) -> str:
    """Texts in columns, two spaces between them; a negative width sets to the left."""
    cells = [text.ljust(-width) if width < 0 else text.rjust(width) for text, width in zip(texts, widths, strict=True)]
    return "  ".join(cells).rstrip()


def aligned_lines(columns: Sequence[TableColumn[Row]], rows: Iterable[Row]) -> list[str]:
    """A table as plain text: a line of titles, a line per row."""
    texts = [[column.title for column in columns], *([column.text(row) for column in columns] for row in rows)]
    widths = _widened([column.width for column in columns], texts)
    return [aligned_line(line, widths) for line in texts]


def _widened(widths: Sequence[int], texts: Sequence[Sequence[str]]) -> list[int]:
    """Widths of columns with room for some lines of texts; of columns that are set to the left negative."""
    needed = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
    return [min(width, -most) if width < 0 else max(width, most) for width, most in zip(widths, needed, strict=True)]


class GrowingLines(Generic[Row]):
    """A table as plain text whose rows keep coming: written in pieces, in which columns only become wider."""

    def __init__(self, columns: Sequence[TableColumn[Row]], write: Callable[[str], None]) -> None:
        """Takes the columns, and what writes a line."""
        self._columns = columns
        self._write = write
        self._texts = [[column.title for column in columns]]
        self._has_titles = False
        self._widths = [column.width for column in columns]

    def add(self, row: Row) -> None:
        """Adds a row."""
        self._texts.append([column.text(row) for column in self._columns])
        if len(self._texts) >= _PIECE:
            self._write_piece()

    def finish(self) -> None:
        """Writes what is left; without any row not even the titles."""
        if self._texts and (self._has_titles or len(self._texts) > 1):
            self._write_piece()

    def _write_piece(self) -> None:
        self._has_titles = True
        self._widths = _widened(self._widths, self._texts)
        for line in self._texts:
            self._write(aligned_line(line, self._widths))
        self._texts = []


def write_rich_table(
    columns: Sequence[TableColumn[Row]],
    rows: Iterable[Row],
    *,
    title: str | None = None,
    color: bool | None = None,
    style: Callable[[Row], str] | None = None,
) -> None:
    """Writes a table with lines and colours to standard output.

    Args:
        columns: what to show.
        rows: of what.
        title: above the table.
        color: None lets the terminal and NO_COLOR decide.
        style: rich's name of a row's style.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", pad_edge=False)
    for column in columns:
        table.add_column(column.title, justify="left" if column.width < 0 else "right", no_wrap=True)
    for row in rows:
        table.add_row(*(_plain(column.text(row)) for column in columns), style=style(row) if style else None)
    from kseg.output.pager import paged

    with paged() as out:
        is_terminal = sys.stdout.isatty() or None if color is None else color
        no_color = None if color is None else not color
        console = Console(file=out, force_terminal=is_terminal, no_color=no_color, highlight=False)
        widest = console.measure(table, options=console.options.update(width=_ENDLESS)).maximum
        console.width = max(console.width, widest)
        console.print(table)


def _plain(text: str) -> "Text":
    from rich.text import Text

    return Text(text)
