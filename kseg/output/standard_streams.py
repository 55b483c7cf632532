"""The standard streams of the process: errors of stdout raise kseg's own exceptions, those of stderr are ignored.

A stream that the caller closed is replaced, so that no other file gets its number, and children have one.
"""

import io
import os
import sys
from typing import IO, TYPE_CHECKING

from kseg.output.stdout import output_failure
from kseg.output.terminal import Terminal

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


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
