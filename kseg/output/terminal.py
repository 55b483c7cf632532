"""A terminal as standard output: shows what would control it escaped, except for kseg's own styles."""

import io
import re
from codecs import getincrementaldecoder
from typing import TYPE_CHECKING

from kseg.control_characters import CHARACTER_CLASS, escaped_character

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_HARMFUL = f"[{CHARACTER_CLASS}\udc80-\udcff]"
"""The last ones are bytes that aren't UTF-8: C1 to a terminal of eight bits."""
_STYLE = r"\x1b\[[0-9;]*m"
# Compiled when there is a terminal: most starts have none.
_CONTENTS = f"()({_HARMFUL})"
_STYLED = f"({_STYLE})|({_HARMFUL})"


class Terminal(io.BufferedWriter):
    """Takes bytes for a terminal, or for a pager before one. Tabs and line feeds control it still.

    is_raw: lets contents through as they are.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._decoder = getincrementaldecoder("utf-8")("surrogateescape")
        self.is_raw = False

    def write(self, piece: "ReadableBuffer", /) -> int:
        """Writes what kseg has put together, with styles: what is a file's in it should have been escaped before."""
        self._write(_STYLED, piece)
        return memoryview(piece).nbytes

    def write_contents(self, piece: bytes | memoryview) -> None:
        """Writes what may be a file's. A character may be in two pieces."""
        if self.is_raw:
            super().write(piece)
        else:
            self._write(_CONTENTS, piece)

    def flush(self) -> None:
        """Writes everything; the beginning of a character stays none."""
        self._write(_CONTENTS, b"", is_end=True)
        super().flush()

    def _write(self, pattern: str, piece: "ReadableBuffer", *, is_end: bool = False) -> None:
        text = re.sub(pattern, _shown, self._decoder.decode(bytes(piece), is_end))
        if text:
            super().write(text.encode())


def _shown(match: re.Match[str]) -> str:
    return match[1] or escaped_character(match[2])
