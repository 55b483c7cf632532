"""Lines of text for people: folded to the screen's width, parts of them in styles, through a pager."""

import shutil
import sys
import textwrap
from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple

from kseg.output.colors import takes_colors
from kseg.output.pager import FOLDING_OPTIONS, paged
from kseg.output.printable import printable

BOLD, FAINT = "1", "2"
"""Parameters of a terminal's SGR sequence."""
_WIDTH, _NARROWEST, _WIDEST = 80, 40, 140


class Fold(Enum):
    """Where a long line is folded: a command never, so that it can be copied; in pipes only what is mere prose."""

    NEVER = "never"
    ON_TERMINALS = "on terminals"
    ALWAYS = "always"


class StyledLine(NamedTuple):
    """A line of text: how far it is indented, what it begins with in a style, and the rest.

    fold: where the line is folded that is longer than the screen.
    """

    indent: int
    styled: str = ""
    text: str = ""
    style: str = BOLD
    fold: Fold = Fold.ON_TERMINALS


def write_styled_lines(lines: Iterable[StyledLine], *, color: bool | None) -> None:
    """Writes lines to the pager, or to standard output; `color`: None lets the terminal and NO_COLOR decide."""
    is_colored = takes_colors(sys.stdout, wanted=color)
    columns = shutil.get_terminal_size((_WIDTH, 24)).columns if sys.stdout.isatty() else None
    with paged(FOLDING_OPTIONS) as out:
        for line in lines:
            out.write(f"{_shown(line, columns, is_colored=is_colored)}\n")
        out.flush()


def _shown(line: StyledLine, columns: int | None, *, is_colored: bool) -> str:
    """A line as text; `columns`: of the terminal, None if there is none."""
    styled, text = printable(line.styled), printable(line.text)
    whole = f"{styled}{' ' if styled and text else ''}{text}"
    is_folded = line.fold is Fold.ALWAYS or (line.fold is Fold.ON_TERMINALS and columns is not None)
    later = line.indent if line.fold is Fold.ALWAYS else line.indent + 2
    shown = _folded(whole, line.indent, later, columns or _WIDTH) if is_folded else f"{' ' * line.indent}{whole}"
    return shown.replace(styled, f"\x1b[{line.style}m{styled}\x1b[0m", 1) if styled and is_colored else shown


def _folded(text: str, indent: int, later_indent: int, columns: int) -> str:
    """A text in lines of no more columns, unless a word is longer."""
    width = min(max(columns, _NARROWEST), _WIDEST)
    begin, later = " " * indent, " " * later_indent
    return textwrap.fill(
        text, width, initial_indent=begin, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
