"""A pager for output that is longer than the screen, as in git."""

import io
import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, cast

from kseg.output.printable import printable
from kseg.output.stdout import write_line
from kseg.output.terminal import Terminal
from kseg.system.interrupts import was_asked_to_end

DEFAULT_PAGER = "less"
LESS_OPTIONS = "FRSX"
"""Ends at once if all fits on a screen, shows colours, doesn't fold lines, leaves the screen as it is."""
FOLDING_OPTIONS = "FRX"
"""The same, but long lines are folded."""


@contextmanager
def paged(less_options: str = LESS_OPTIONS) -> Iterator[IO[str]]:
    """Where to write long output: a pager if standard output is a terminal, otherwise standard output itself.

    KSEG_PAGER names it, or PAGER; `cat` or an empty name means none.
    """
    command = pager_command()
    if command is None:
        yield sys.stdout
        return
    environment = {"LESS": less_options, **os.environ}
    try:
        pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, bufsize=0)  # noqa: S603  the user's own command
    except OSError:
        yield sys.stdout
        return
    out = io.TextIOWrapper(Terminal(cast(io.RawIOBase, pager.stdin)), "utf-8", "backslashreplace")
    try:
        yield out
    except BrokenPipeError:
        pass  # the user has seen enough
    finally:
        _end(pager, out)


@contextmanager
def paged_lines() -> Iterator[Callable[[str], None]]:
    """What writes a line of text for people to where `paged` says; nothing harms a terminal."""
    with paged() as out:
        if out is sys.stdout:
            yield write_line
        else:
            yield lambda line: print(printable(line), file=out)


def _end(pager: "subprocess.Popen[bytes]", out: IO[str]) -> None:
    with suppress(BrokenPipeError):
        out.close()
    while True:
        if was_asked_to_end():
            pager.terminate()
        try:
            pager.wait()
        except KeyboardInterrupt:
            if was_asked_to_end():
                raise
            continue  # the pager has its own use for Ctrl-C
        return


def pager_command() -> list[str] | None:
    """The pager to be used; None for none."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return None
    name = os.environ.get("KSEG_PAGER", os.environ.get("PAGER", DEFAULT_PAGER))
    return None if name in ("", "cat") else shlex.split(name)
