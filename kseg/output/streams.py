"""Standard output and error, escaping for terminals, and a terminal width and colours."""

import errno
import io
import os
import re
import sys
from codecs import getincrementaldecoder
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING

from kseg.errors import ClosedPipeError, KsegError
from kseg.system.terminal_text import CHARACTER_CLASS, escaped_character, escaped_text

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


_HARMFUL = f"[{CHARACTER_CLASS}\udc80-\udcff]"
"""Characters that can control a terminal. The last range is non-UTF-8 bytes: C1 to a terminal of eight bits."""
_STYLE = r"\x1b\[[0-9;]*m"
# Compiled on first use with a terminal: most starts have none.
_CONTENTS = f"()({_HARMFUL})"
_STYLED = f"({_STYLE})|({_HARMFUL})"


class Terminal(io.BufferedWriter):
    """Takes bytes for a terminal, or for a pager before one. Tabs and line feeds still control it.

    is_raw: lets contents through unchanged.
    """

    def __init__(self, raw: io.RawIOBase) -> None:
        super().__init__(raw)
        self._decoder = getincrementaldecoder("utf-8")("surrogateescape")
        self.is_raw = False

    def write(self, piece: "ReadableBuffer", /) -> int:
        """Write kseg's own text, with styles. Contents of files in it must be escaped already."""
        self._write(_STYLED, piece)
        return memoryview(piece).nbytes

    def write_contents(self, piece: bytes | memoryview) -> None:
        """Write text that may come from a file. A character may be split over two pieces."""
        if self.is_raw:
            super().write(piece)
        else:
            self._write(_CONTENTS, piece)

    def flush(self) -> None:
        """Write everything; a character that is still incomplete is escaped."""
        self._write(_CONTENTS, b"", is_end=True)
        super().flush()

    def _write(self, pattern: str, piece: "ReadableBuffer", *, is_end: bool = False) -> None:
        text = re.sub(pattern, _escape, self._decoder.decode(bytes(piece), is_end))
        if text:
            super().write(text.encode())


def _escape(match: re.Match[str]) -> str:
    return match[1] or escaped_character(match[2])


def takes_colors(stream: "IO[str] | None", *, wanted: bool | None) -> bool:
    """Return True if to colour the output to a stream.

    stream: None if the process has none. wanted: the user's choice; None lets the terminal and NO_COLOR decide.
    """
    if wanted is not None:
        return wanted
    if stream is None or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR")


class OutputError(KsegError):
    """An error: standard output can't be written any more."""


def write_stdout(piece: bytes | memoryview) -> None:
    """Write bytes to standard output; on a terminal, control characters are escaped.

    Raises:
        ClosedPipeError: its reader has closed it.
        OutputError: it is full or can't be written.
    """
    stream = sys.stdout.buffer
    try:
        if isinstance(stream, Terminal):
            stream.write_contents(piece)
        else:
            stream.write(piece)
    except OSError as error:
        raise output_failure(error) from error


def write_styled(piece: bytes) -> None:
    """Write styled text, with all file contents escaped. Raises the same errors as `write_stdout`."""
    try:
        sys.stdout.buffer.write(piece)
    except OSError as error:
        raise output_failure(error) from error


def let_contents_through() -> None:
    """Print the contents of files unchanged on a terminal from now on."""
    if isinstance(sys.stdout.buffer, Terminal):
        sys.stdout.buffer.is_raw = True


def flush_stdout() -> None:
    """Flush Python's own buffers of text and bytes. Raises as `write_stdout`."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise output_failure(error) from error


def write_line(text: str) -> None:
    """Write a line of text for people, escaped for a terminal, including names from files."""
    write_stdout(escaped_text(text).encode() + b"\n")


def write_lines(texts: Iterable[str]) -> None:
    """Write lines by `write_line`."""
    for text in texts:
        write_line(text)


def output_failure(error: OSError) -> KsegError:
    """Return kseg's error for an error of standard output."""
    if isinstance(error, BrokenPipeError):
        return ClosedPipeError("standard output was closed")
    reason = "is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"{reason}; the output is incomplete", "standard output")


_ERRORS = "backslashreplace"


class _StandardOutput(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Write some bytes; wait for the reader of a non-blocking stream. Raises as `write_stdout`."""
        try:
            while (written := super().write(piece)) is None:
                import select

                select.select([], [self], [])
        except OSError as error:
            raise output_failure(error) from error
        return written


class _StandardError(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Write some bytes; bytes that can't be written are dropped."""
        left = memoryview(piece).cast("B")
        try:
            while left:
                left = left[super().write(left) or len(left) :]
        except OSError:
            pass
        return memoryview(piece).nbytes


def own_standard_streams() -> None:
    """Replace the streams in `sys`, in UTF-8 with any locale; for a process that is kseg's own."""
    # In this order: a closed stream gets the lowest free number. In the wrong order, it fails when used.
    if sys.stdin is None:
        nothing = io.FileIO(os.open(os.devnull, os.O_WRONLY), "r")
        sys.stdin = io.TextIOWrapper(io.BufferedReader(nothing))
    output = _StandardOutput(_descriptor(sys.stdout, os.O_RDONLY), "w", closefd=False)
    talk = _StandardError(_descriptor(sys.stderr, os.O_WRONLY), "w", closefd=False)
    is_terminal = output.isatty()
    buffer = Terminal(output) if is_terminal else io.BufferedWriter(output)
    sys.stdout = io.TextIOWrapper(buffer, "utf-8", _ERRORS, line_buffering=is_terminal)
    # Unbuffered: a buffer would write an interrupted line once more at the end.
    sys.stderr = io.TextIOWrapper(talk, "utf-8", _ERRORS, write_through=True)


def _descriptor(stream: "IO[str] | None", flags: int) -> int:
    return os.open(os.devnull, flags) if stream is None else stream.fileno()
