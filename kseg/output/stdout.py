"""Standard output in large pieces."""

import sys

from kseg.errors import ClosedPipeError, KsegError


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
        raise _failure(error) from error


def flush_stdout() -> None:
    """Empties Python's own buffer. Raises as `write_stdout` does."""
    try:
        sys.stdout.buffer.flush()
    except OSError as error:
        raise _failure(error) from error


def _failure(error: OSError) -> KsegError:
    if isinstance(error, BrokenPipeError):
        return ClosedPipeError("standard output was closed")
    return OutputError(f"standard output: {error.strerror}")
