"""Tables of rows that keep coming, printed in pieces to need little memory."""

import sys
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING

from kseg.output.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

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
    return printable(str(cell))


def _is_terminal(out: IO[str]) -> bool:
    """Whether people see it: a terminal, or a pager before one."""
    return sys.stdout.isatty() if out is not sys.stdout else out.isatty()
