"""Standard output in large pieces."""

import errno
import sys

from kseg.errors import ClosedPipeError, KsegError
from kseg.output.printable import printable


class OutputError(KsegError):
    """Standard output takes no more."""


def write_stdout(piece: bytes | memoryview) -> None:
    """Writes bytes to standard output.

    Raises:
        ClosedPipeError: whoever read it has gone.
        OutputError: it is full or can't be written.
    """
    try:
        sys.stdout.buffer.write(piece)
    except OSError as error:
        raise output_failure(error) from error


def flush_stdout() -> None:
    """Empties Python's own buffer. Raises as `write_stdout` does."""
    try:
        sys.stdout.buffer.flush()
    except OSError as error:
        raise output_failure(error) from error


def write_line(text: str) -> None:
    """Writes a line of text for people: what harms a terminal is escaped, names that files have included."""
    write_stdout(printable(text).encode() + b"\n")


def output_failure(error: OSError) -> KsegError:
    """What standard output's own error is to kseg."""
    if isinstance(error, BrokenPipeError):
        return ClosedPipeError("standard output was closed")
    reason = "is closed" if error.errno == errno.EBADF else error.strerror
    return OutputError(f"{reason}; not all is written", "standard output")
