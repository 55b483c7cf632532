"""Lines on stderr."""

import sys
from collections.abc import Callable

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


def note_unless(*, quiet: bool) -> Callable[[str], None]:
    """The function for kseg's own notes; it prints nothing if the user wants quiet."""

    def note(text: str) -> None:
        if not quiet:
            talk(f"kseg: {text}")

    return note
