"""Whether output is coloured, where nobody has said so."""

import os
from typing import IO


def takes_colors(stream: "IO[str] | None", *, wanted: bool | None) -> bool:
    """Whether to colour what goes to a stream; wanted: what the user says, None lets the terminal and NO_COLOR decide.

    `stream` is None where the process has none.
    """
    if wanted is not None:
        return wanted
    if stream is None or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR")
