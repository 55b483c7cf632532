"""Lines on stderr."""

import sys

from kseg.output.printable import printable


def talk(*lines: str) -> None:
    """Says some lines; what harms a terminal is escaped. Where nobody can hear it, nothing happens."""
    try:
        sys.stderr.write("".join(f"{printable(line)}\n" for line in lines))
        sys.stderr.flush()
    except (OSError, AttributeError):
        return  # stderr is full, or there is none
