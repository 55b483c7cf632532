"""The standard streams of the process: what stdout doesn't take raises kseg's own exceptions; stderr takes everything.

One that the caller closed is replaced, so that no other file gets its number, and children find one there.
"""

import io
import os
import select
import sys
from typing import IO, TYPE_CHECKING

from kseg.output.stdout import output_failure

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class _StandardOutput(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Writes some bytes, waiting for a reader where the stream doesn't. Raises as `write_stdout` does."""
        try:
            while (written := super().write(piece)) is None:
                select.select([], [self], [])
        except OSError as error:
            raise output_failure(error) from error
        return written


class _StandardError(io.FileIO):
    def write(self, piece: "ReadableBuffer", /) -> int:
        """Writes some bytes; what can't be written is dropped: nobody hears it, and nothing else changes."""
        size = memoryview(piece).nbytes
        try:
            return super().write(piece) or size
        except OSError:
            return size


def own_standard_streams() -> None:
    """Puts these streams into `sys`, in UTF-8 whatever the locale is; for a process that is kseg's own."""
    # In this order: a closed one's number is the lowest that is free. Opened the wrong way round, it fails when used.
    if sys.stdin is None:
        nothing = io.FileIO(os.open(os.devnull, os.O_WRONLY), "r")
        sys.stdin = io.TextIOWrapper(io.BufferedReader(nothing))
    sys.stdout = _text(_StandardOutput(_descriptor(sys.stdout, os.O_RDONLY), "w", closefd=False))
    sys.stderr = _text(_StandardError(_descriptor(sys.stderr, os.O_WRONLY), "w", closefd=False), is_talk=True)


def _descriptor(stream: "IO[str] | None", flags: int) -> int:
    return os.open(os.devnull, flags) if stream is None else stream.fileno()


def _text(raw: io.FileIO, *, is_talk: bool = False) -> io.TextIOWrapper:
    by_line = is_talk or raw.isatty()
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", errors="backslashreplace", line_buffering=by_line)
