"""Lines on stderr."""

import sys
from collections.abc import Callable
from contextlib import suppress

from kseg.output.colors import takes_colors
from kseg.output.printable import printable


def talk(*lines: str) -> None:
    """Prints some lines; escapes what harms a terminal. Does nothing if nobody can read it."""
    if not lines:
        return
    try:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, AttributeError):
        return  # stderr is full, or there is none


def talk_error(line: str, *, color: bool | None = None) -> None:
    """Prints what ends a command, its `kseg:` in red; `color` None lets the terminal and NO_COLOR decide."""
    if not takes_colors(sys.stderr, wanted=color):
        talk(line)
        return
    name, _, text = line.partition(" ")
    with suppress(OSError):
        sys.stderr.write(f"\x1b[31m{name}\x1b[0m {printable(text)}\n")
        sys.stderr.flush()


def note_unless(*, quiet: bool) -> Callable[[str], None]:
    """The function for kseg's own notes; it prints nothing if the user wants quiet."""

    def note(text: str) -> None:
        if not quiet:
            talk(f"kseg: {text}")

    return note
