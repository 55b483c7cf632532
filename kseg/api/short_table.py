"""Short tables for `repr` and for notebooks; names out of files do no harm there."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kseg.output.printable import printable
from kseg.output.table import aligned_line

SHOWN_ROWS = 10
"""The most rows of a table that are shown."""


@dataclass(frozen=True, slots=True)
class ShortTable:
    """A title, and rows below the names of their columns; `count`: how many rows there would be in all."""

    title: str
    columns: tuple[str, ...] = ()
    rows: Sequence[tuple[object, ...]] = ()
    count: int = 0

    @property
    def more(self) -> str:
        """What to say of rows that aren't shown."""
        left = self.count - len(self.rows)
        return f"… {left} more" if left > 0 else ""

    def text(self) -> str:
        """Lines of text."""
        lines = [printable(self.title)]
        if self.rows:
            cells = [self.columns, *(tuple(map(_cell, row)) for row in self.rows)]
            widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
            signs = [1 if isinstance(value, int) else -1 for value in self.rows[0]]
            signed = [width * sign for width, sign in zip(widths, signs, strict=True)]
            lines += [f"  {aligned_line(row, signed)}" for row in cells]
        return "\n".join([*lines, f"  {self.more}"] if self.more else lines)

    def html(self) -> str:
        """The same as HTML."""
        body = "".join(f"<tr>{''.join(map(_html_cell, row))}</tr>" for row in self.rows)
        head = "".join(f"<th>{escape(name)}</th>" for name in self.columns) if self.rows else ""
        more = f"<p>{escape(self.more)}</p>" if self.more else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if self.rows else ""
        return f"<div><p>{escape(printable(self.title))}</p>{table}{more}</div>"


def _cell(value: object) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else printable(str(value))


def _html_cell(value: object) -> str:
    align = ' style="text-align: right"' if isinstance(value, int) else ""
    return f"<td{align}>{escape(_cell(value))}</td>"
