"""Standard output and error, what is safe to print there, and a terminal's width and colors."""

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


def takes_colors(stream: "IO[str] | None", *, wanted: bool | None) -> bool:
    """Whether to colour what goes to a stream; wanted: what the user says, None lets the terminal and NO_COLOR decide.

    `stream` is None where the process has none.
    """
    if wanted is not None:
        return wanted
    if stream is None or os.environ.get("TERM") == "dumb":
        return False
    return stream.isatty() and not os.environ.get("NO_COLOR")


class OutputError(KsegError):
    """Standard output can't be written any more."""


def write_stdout(piece: bytes | memoryview) -> None:
    """Writes bytes to standard output; on a terminal what would control it is shown escaped.

    Raises:
        ClosedPipeError: its reader is gone.
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
    """Writes text with styles of kseg's own, in which nothing of a file is unescaped. Raises as `write_stdout` does."""
    try:
        sys.stdout.buffer.write(piece)
    except OSError as error:
        raise output_failure(error) from error


def let_contents_through() -> None:
    """From now on, a terminal gets the contents of files unchanged."""
    if isinstance(sys.stdout.buffer, Terminal):
        sys.stdout.buffer.is_raw = True


def flush_stdout() -> None:
    """Empties Python's own buffers, of text and of bytes. Raises as `write_stdout` does."""
    try:
        sys.stdout.flush()
    except OSError as error:
        raise output_failure(error) from error


def write_line(text: str) -> None:
    """Writes a line of text for people: what harms a terminal is escaped, names that files have included."""
    write_stdout(escaped_text(text).encode() + b"\n")


def write_lines(texts: Iterable[str]) -> None:
    """Writes lines as `write_line` does."""
    for text in texts:
        write_line(text)


def output_failure(error: OSError) -> KsegError:
    """What standard output's own error is to kseg."""
    if isinstance(error, BrokenPipeError):
        return ClosedPipeError("standard output was closed")
    reason = "is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"{reason}; not everything was written", "standard output")


_ERRORS = "backslashreplace"


class _StandardOutput(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Writes some bytes, waiting for a reader where the stream doesn't. Raises as `write_stdout` does."""
        try:
            while (written := super().write(piece)) is None:
                import select

                select.select([], [self], [])
        except OSError as error:
            raise output_failure(error) from error
        return written


class _StandardError(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Writes some bytes; what can't be written is dropped."""
        left = memoryview(piece).cast("B")
        try:
            while left:
                left = left[super().write(left) or len(left) :]
        except OSError:
            pass
        return memoryview(piece).nbytes


def own_standard_streams() -> None:
    """Puts these streams into `sys`, in UTF-8 whatever the locale is; for a process that is kseg's own."""
    # In this order: a closed one's number is the lowest that is free. Opened the wrong way round, it fails when used.
    if sys.stdin is None:
        nothing = io.FileIO(os.open(os.devnull, os.O_WRONLY), "r")
        sys.stdin = io.TextIOWrapper(io.BufferedReader(nothing))
    output = _StandardOutput(_descriptor(sys.stdout, os.O_RDONLY), "w", closefd=False)
    talk = _StandardError(_descriptor(sys.stderr, os.O_WRONLY), "w", closefd=False)
    is_terminal = output.isatty()
    buffer = Terminal(output) if is_terminal else io.BufferedWriter(output)
    sys.stdout = io.TextIOWrapper(buffer, "utf-8", _ERRORS, line_buffering=is_terminal)
    # Without a buffer, from which an interrupted line would be written once more at the end.
    sys.stderr = io.TextIOWrapper(talk, "utf-8", _ERRORS, write_through=True)


def _descriptor(stream: "IO[str] | None", flags: int) -> int:
    return os.open(os.devnull, flags) if stream is None else stream.fileno()
