"""Runs kseg in a pseudo-terminal, or in this process with a terminal in place of standard output."""

import io
import os
import pty
import re
import termios
from collections.abc import Iterator, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

from kseg.output.streams import Terminal
from kseg.system.terminal_text import control_characters
from tests.fork_server import fork_process

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

HARMFUL = {*control_characters(), "\r"} - {"\n"}
"""Characters that must not reach a terminal from a file."""

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[0-9;]+|48;[0-9;]+)m")


def in_terminal(directory: Path, *arguments: str, columns: int = 100, typed: bytes = b"", **environment: str) -> str:
    """Return the output on a terminal of some width; without a pager unless the environment names one.

    typed: what the user types, before kseg asks.
    """
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (40, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "PAGER")}
    environment = {**inherited, "TERM": "xterm-256color", "KSEG_PAGER": "cat", **environment}
    with fork_process(arguments, directory, (follower, follower, follower), environment=environment) as process:
        os.close(follower)
        os.write(leader, typed)
        pieces = list(_pieces(leader))
        process.wait()
    os.close(leader)
    return b"".join(pieces).decode()


class Screen(io.RawIOBase):
    """Keeps the bytes that a terminal gets."""

    def __init__(self) -> None:
        self.content = bytearray()

    def isatty(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def write(self, piece: "ReadableBuffer", /) -> int:
        self.content += piece
        return memoryview(piece).nbytes


def kseg_on_terminal(arguments: Sequence[str], directory: Path, **environment: str) -> str:
    """Return a terminal's output from a run in this process; exceptions that would be tracebacks propagate.

    Non-UTF-8 bytes are decoded by os.fsdecode. It is cheaper than `in_terminal`, but tests neither a system's terminal
    nor kseg's replacement of its own streams.
    """
    from kseg.cli import main

    screen = Screen()
    stream = io.TextIOWrapper(Terminal(screen), "utf-8", "backslashreplace", newline="\n", line_buffering=True)
    talk = io.TextIOWrapper(screen, "utf-8", "backslashreplace", newline="\n", write_through=True)
    settings = {"TERM": "xterm-256color", "KSEG_PAGER": "cat", "COLUMNS": "100", **environment}
    with patch.dict(os.environ, settings), chdir(directory), redirect_stdout(stream), redirect_stderr(talk):
        main([*arguments])
        stream.flush()
    talk.detach()
    stream.detach().detach()
    return screen.content.decode("utf-8", "surrogateescape")


def _pieces(leader: int) -> Iterator[bytes]:
    """Yield the output until nobody has the terminal open: Linux then reports an error."""
    try:
        while piece := os.read(leader, 4096):
            yield piece
    except OSError:
        return


def plain(shown: str) -> str:
    """Return the output without its styles."""
    return STYLE.sub("", shown)
