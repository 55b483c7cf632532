"""Standard output in large pieces."""

import errno
import sys
from collections.abc import Iterable

from kseg.errors import ClosedPipeError, KsegError
from kseg.output.printable import printable
from kseg.output.terminal import Terminal


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
    write_stdout(printable(text).encode() + b"\n")


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
