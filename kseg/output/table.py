"""Tables of rows: complete, growing, or in the form that a command is asked for."""

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from glob import escape
from typing import IO, TYPE_CHECKING, Generic, NamedTuple, TypeVar

from kseg.output.columns import NOT_SHOWN, Column
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text


Row = TypeVar("Row")
BAR_WIDTH = 10
_PIECE = 500
"""Rows that are aligned, and written at once."""
_ENDLESS = 1 << 16
"""Characters of a line: nothing is cut for want of room; a terminal breaks lines itself."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(value: int, largest: int, width: int = BAR_WIDTH) -> str:
    """A bar of eighths of characters for a value between 0 and the largest."""
    eighths = 0 if largest <= 0 else max(min(round(value * width * 8 / largest), width * 8), 1 if value > 0 else 0)
    return ("█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()).ljust(width)


def aligned_line(texts: Sequence[str], widths: Sequence[int]) -> str:
    """Texts in columns, two spaces between them; a negative width sets to the left."""
    cells = [text.ljust(-width) if width < 0 else text.rjust(width) for text, width in zip(texts, widths, strict=True)]
    return "  ".join(cells).rstrip()


def aligned_lines(columns: Sequence[Column[Row]], rows: Iterable[Row]) -> list[str]:
    """A table as plain text: a line of titles, a line per row."""
    texts = [[column.title for column in columns], *([column.text(row) for column in columns] for row in rows)]
    widths = _widened(_narrowest(columns), texts)
    return [aligned_line(line, widths) for line in texts]


def _narrowest(columns: Sequence[Column[Row]]) -> list[int]:
    """Widths to begin with."""
    return [1 if column.is_set_right else -1 for column in columns]


def _widened(widths: Sequence[int], texts: Sequence[Sequence[str]]) -> list[int]:
    """Widths of columns with room for some lines of texts; of columns that are set to the left negative."""
    needed = [max(map(len, cells)) for cells in zip(*texts, strict=True)]
    return [min(width, -most) if width < 0 else max(width, most) for width, most in zip(widths, needed, strict=True)]


class GrowingLines(Generic[Row]):
    """A table as plain text whose rows keep coming: written in pieces, in which columns only become wider."""

    def __init__(self, columns: Sequence[Column[Row]], write: Callable[[str], None]) -> None:
        """Takes the columns, and what writes a line."""
        self._columns = columns
        self._write = write
        self._texts = [[column.title for column in columns]]
        self._has_titles = False
        self._widths = _narrowest(columns)

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
    columns: Sequence[Column[Row]],
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
        table.add_column(column.title, justify="right" if column.is_set_right else "left", no_wrap=True)
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


PIECE = 500
"""Rows that set the columns' widths, and are printed at once."""
LEAST_TEXT = 8
"""The fewest characters of a shortened text."""
SHORTENED = frozenset({"key", "value", "headers", "keyDecoded", "valueDecoded", "keyError", "valueError", "properties"})
"""Columns of users' own texts, without Kafka's numbers."""
ENDLESS = 1 << 16
_GAP = 3
"""Characters between two columns: a blank on each side of a separator."""

Cell = str | int | float | bool | None


class GrowingTable:
    """Takes rows, and prints them with a line of names first.

    On a terminal the columns of SHORTENED are shortened if the line would be too long; nothing else ever is.
    """

    def __init__(self, names: Sequence[str], out: IO[str], color: bool | None = None) -> None:
        """Takes the columns' names, where to print, and whether in colour; None lets the terminal decide."""
        self._names = list(names)
        self._out = out
        self._color = color
        self._rows: list[list[Cell]] = []
        self._widths = [len(name) for name in names]
        self._is_number: list[bool] = []
        self._most: list[int] | None = None
        self._console: Console | None = None
        self._room = 0

    def add(self, cells: Sequence[Cell]) -> None:
        """Adds a row."""
        self._rows.append(list(cells))
        if len(self._rows) >= PIECE:
            self.print_rows()

    def print_rows(self) -> None:
        """Prints the rows that are still to be printed."""
        if not self._rows:
            return
        from rich import box
        from rich.table import Table

        rows, self._rows = self._rows, []
        is_first = self._console is None
        console = self._console = self._console or self._new_console()
        if is_first:
            self._is_number = [all(_is_number(row[place]) for row in rows) for place in range(len(self._names))]
        texts = [[_text(cell) for cell in row] for row in rows]
        self._take_widths(texts)
        if not is_first and not console.is_terminal:
            self._out.writelines(self._line(row) for row in texts)
            return
        table = Table(box=box.SIMPLE_HEAD, show_header=is_first, pad_edge=False, show_edge=False)
        for name, width, is_number in zip(self._names, self._widths, self._is_number, strict=True):
            table.add_column(name, justify="right" if is_number else "left", no_wrap=True, min_width=width)
        for row, shown in zip(rows, texts, strict=True):
            table.add_row(
                *(self._cell(cell, text, place) for place, (cell, text) in enumerate(zip(row, shown, strict=True)))
            )
        console.print(table)

    def _line(self, texts: list[str]) -> str:
        """A row without colours as rich would print it, many times faster."""
        from rich.cells import cell_len

        cells = []
        for text, width, is_number in zip(texts, self._widths, self._is_number, strict=True):
            blanks = " " * (width - (len(text) if text.isascii() else cell_len(text)))
            cells.append(blanks + text if is_number else text + blanks)
        return (" " * _GAP).join(cells) + "\n"

    def _new_console(self) -> "Console":
        from rich.console import Console

        console = Console(
            file=self._out,
            force_terminal=_is_terminal(self._out) or None if self._color is None else self._color,
            no_color=None if self._color is None else not self._color,
            highlight=False,
        )
        self._room = console.width
        console.width = ENDLESS
        return console

    def _take_widths(self, texts: list[list[str]]) -> None:
        """Widens columns for these rows; on a terminal the room for texts is shared out once."""
        from rich.cells import cell_len

        needed = [
            max(len(row[place]) if row[place].isascii() else cell_len(row[place]) for row in texts)
            for place in range(len(self._names))
        ]
        self._widths = [max(known, width) for known, width in zip(self._widths, needed, strict=True)]
        if not _is_terminal(self._out):
            return
        if self._most is None:
            self._most = shared_out(self._widths, [name in SHORTENED for name in self._names], self._room)
        self._widths = [
            min(width, most) if name in SHORTENED else width
            for name, width, most in zip(self._names, self._widths, self._most, strict=True)
        ]

    def _cell(self, cell: Cell, text: str, place: int) -> "Text":
        from rich.text import Text

        shown = Text(text, style="dim" if cell is None else "")
        if self._most is not None and self._names[place] in SHORTENED:
            shown.truncate(self._widths[place], overflow="ellipsis")
        return shown


def shared_out(widths: Sequence[int], is_shortened: Sequence[bool], room: int) -> list[int]:
    """Widths of columns in a line of so many characters: what others leave is for texts, short ones first."""
    room -= sum(width for width, cut in zip(widths, is_shortened, strict=True) if not cut) + _GAP * (len(widths) - 1)
    most = list(widths)
    waiting = sorted((place for place, cut in enumerate(is_shortened) if cut), key=lambda place: widths[place])
    while waiting:
        share = max(room // len(waiting), LEAST_TEXT)
        place = waiting.pop(0)
        most[place] = min(widths[place], share)
        room -= most[place]
    return most


def _is_number(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


def _text(cell: Cell) -> str:
    if cell is None:
        return "null"
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return escaped_text(str(cell))


def _is_terminal(out: IO[str]) -> bool:
    """Whether people see it: a terminal, or a pager before one."""
    return sys.stdout.isatty() if out is not sys.stdout else out.isatty()


class _FolderType(NamedTuple):
    duckdb: str
    polars: str


_FOLDER_TYPES = {
    "topic": _FolderType("VARCHAR", "pl.String"),
    "partition": _FolderType("INTEGER", "pl.Int32"),
    "date": _FolderType("DATE", "pl.Date"),
}
"""Named, since both would take a topic whose name has only digits for a number."""


def duckdb_query(url: str, folders: Sequence[str], scan: str | None, *, is_typed: bool) -> str:
    """The SQL with which DuckDB reads the export at a path or URL; `folders` are the columns of its folders' names.

    scan: the function that opens a table; None for plain Parquet files. is_typed: later files may have more fields in
    their decoded columns.
    """
    if scan is not None:
        return f"FROM {scan}({_sql_text(url)})"
    types = ", ".join(f"{_sql_text(name)}: {_FOLDER_TYPES[name].duckdb}" for name in folders)
    hive = f", hive_partitioning = true, hive_types = {{{types}}}" if folders else ""
    union = ", union_by_name = true" if is_typed else ""
    return f"FROM read_parquet({_sql_text(_files(url))}{hive}{union})"


def polars_expression(url: str, folders: Sequence[str], scan: str | None) -> str:
    """The Python expression with which Polars, imported as `pl`, does; arguments as for `duckdb_query`."""
    if scan is not None:
        return f"{scan}({url!r})"
    types = ", ".join(f"{name!r}: {_FOLDER_TYPES[name].polars}" for name in folders)
    hive = f", hive_schema={{{types}}}" if folders else ""
    return f"pl.scan_parquet({_files(url)!r}{hive})"


def _files(url: str) -> str:
    """A pattern of the export's files; what would be a pattern in the place's own name is escaped."""
    return f"{escape(url.rstrip('/'))}/**/*.parquet"


def _sql_text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


@dataclass(frozen=True)
class Section(Generic[Row]):
    """One kind of rows: `type` in JSON, `title` for people, None for no title, and its columns.

    shown: the columns for people, if they aren't those of `columns` that have a title.
    """

    type: str
    title: str | None
    columns: Sequence[Column[Row]]
    style: Callable[[Row], str] | None = None
    shown: Sequence[Column[Row]] | None = None

    @property
    def shown_columns(self) -> Sequence[Column[Row]]:
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
        return {"type": self.type, **{column.field.name: column.value(row) for column in self.columns}}

    def as_values(self, row: Row) -> list[object]:
        """A row as CSV has it: several values of a field are separated by spaces."""
        return [_flat(column.value(row)) for column in self.columns]


def _flat(value: object) -> object:
    if isinstance(value, list):
        return " ".join(str(_flat(element)) for element in value)
    if isinstance(value, dict):
        return ":".join(str(_flat(element)) for element in value.values())
    return value
