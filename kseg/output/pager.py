"""The pager, and lines with styles."""

import io
import os
import shlex
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from enum import Enum
from typing import IO, TYPE_CHECKING, NamedTuple, cast

from kseg.output.fitting import room_on_terminal
from kseg.output.streams import Terminal, takes_colors, write_line
from kseg.system.signals import was_asked_to_end
from kseg.system.terminal_text import escaped_text

if TYPE_CHECKING:
    import subprocess

DEFAULT_PAGER = "less"
LESS_OPTIONS = "FRSX"
"""Options of less: ends at once if all fits on a screen, shows colours, doesn't fold lines, keeps the screen."""
FOLDING_OPTIONS = "FRX"
"""Options of less that also fold long lines."""


@contextmanager
def open_pager(less_options: str = LESS_OPTIONS) -> Iterator[IO[str]]:
    """Open a pager if standard output is a terminal, or standard output otherwise.

    KSEG_PAGER names it, or PAGER; `cat` or an empty name means no pager.
    """
    command = pager_command()
    if command is None:
        yield sys.stdout
        return
    import subprocess

    environment = {"LESS": less_options, **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, bufsize=0)  # noqa: S603  the user's own command
    except OSError:
        yield sys.stdout
        return
    out = io.TextIOWrapper(Terminal(cast(io.RawIOBase, pager.stdin)), "utf-8", "backslashreplace")
    try:
        yield out
    except BrokenPipeError:
        pass  # the user quit the pager
    finally:
        _end(pager, out)


@contextmanager
def paged_lines() -> Iterator[Callable[[str], None]]:
    """Return a function that writes a line of text for people to the output of `open_pager`, escaped for a terminal."""
    with open_pager() as out:
        if out is sys.stdout:
            yield write_line
        else:
            yield lambda line: print(escaped_text(line), file=out)


def _end(pager: "subprocess.Popen[bytes]", out: IO[str]) -> None:
    with suppress(BrokenPipeError):
        out.close()
    while True:
        if was_asked_to_end():
            pager.terminate()
        try:
            pager.wait()
        except KeyboardInterrupt:
            if was_asked_to_end():
                raise
            continue  # the pager has its own use for Ctrl-C
        return


def pager_command() -> list[str] | None:
    """Return the command of the pager, or None if there isn't one."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    name = os.environ.get("KSEG_PAGER", os.environ.get("PAGER", DEFAULT_PAGER))
    return None if name in ("", "cat") else shlex.split(name)


BOLD, FAINT = "1", "2"
"""Parameters of a terminal's SGR sequence."""
_WIDTH, _NARROWEST, _WIDEST = 80, 40, 140


class Fold(Enum):
    """Rules for folding long lines. Commands are never folded, so that they can be copied; in pipes only prose is."""

    NEVER = "never"
    ON_TERMINALS = "on terminals"
    ALWAYS = "always"


class StyledLine(NamedTuple):
    """A line of text: its indentation, its styled beginning, and the rest.

    fold: where the line is folded if it is longer than the screen.
    """

    indent: int
    styled: str = ""
    text: str = ""
    style: str = BOLD
    fold: Fold = Fold.ON_TERMINALS


def write_styled_lines(lines: Iterable[StyledLine], *, color: bool | None) -> None:
    """Write lines to the pager, or to standard output; `color`: None lets the terminal and NO_COLOR decide."""
    is_colored = takes_colors(sys.stdout, wanted=color)
    columns = room_on_terminal()
    with open_pager(FOLDING_OPTIONS) as out:
        for line in lines:
            out.write(f"{_style(line, columns, is_colored=is_colored)}\n")
        out.flush()


def _style(line: StyledLine, columns: int | None, *, is_colored: bool) -> str:
    """Return a line as text; `columns`: width of the terminal, None without one."""
    styled, text = escaped_text(line.styled), escaped_text(line.text)
    whole = f"{styled}{' ' if styled and text else ''}{text}"
    is_folded = line.fold is Fold.ALWAYS or (line.fold is Fold.ON_TERMINALS and columns is not None)
    later = line.indent if line.fold is Fold.ALWAYS else line.indent + 2
    shown = _fold(whole, line.indent, later, columns or _WIDTH) if is_folded else f"{' ' * line.indent}{whole}"
    return shown.replace(styled, f"\x1b[{line.style}m{styled}\x1b[0m", 1) if styled and is_colored else shown


def _fold(text: str, indent: int, later_indent: int, columns: int) -> str:
    """Return a text in lines of at most `columns` characters, unless a word is longer."""
    width = min(max(columns, _NARROWEST), _WIDEST)
    begin, later = " " * indent, " " * later_indent
    return textwrap.fill(
        text, width, initial_indent=begin, subsequent_indent=later, break_long_words=False, break_on_hyphens=False
    )
