"""Lines on stderr."""

import sys
from collections.abc import Callable

from kseg.output.printable import printable


def talk(*lines: str) -> None:
    """Says some lines; what harms a terminal is escaped. Where nobody can hear it, nothing happens."""
    try:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, AttributeError):
        return  # stderr is full, or there is none


def note_unless(*, quiet: bool) -> Callable[[str], None]:
    """What says a note of kseg's own; nothing is said where the user wants quiet."""

    def note(text: str) -> None:
        if not quiet:
            talk(f"kseg: {text}")

    return note
