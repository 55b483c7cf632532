"""Runs kseg in a pseudo-terminal."""

import os
import pty
import re
import termios
from collections.abc import Iterator
from pathlib import Path

from tests.fork_server import forked

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[0-9;]+|48;[0-9;]+)m")


def in_terminal(directory: Path, *arguments: str, columns: int = 100, **environment: str) -> str:
    """What a terminal of some width gets; without a pager unless the environment names one."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (40, columns))
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "PAGER")}
    environment = {**inherited, "TERM": "xterm-256color", "KSEG_PAGER": "cat", **environment}
    with forked(arguments, directory, (follower, follower, follower), environment=environment) as process:
        os.close(follower)
        pieces = list(_pieces(leader))
        process.wait()
    os.close(leader)
    return b"".join(pieces).decode()


def _pieces(leader: int) -> Iterator[bytes]:
    """What comes, until nobody has the terminal open: Linux tells that by an error."""
    try:
        while piece := os.read(leader, 4096):
            yield piece
    except OSError:
        return


def plain(shown: str) -> str:
    """What was shown, without its styles."""
    return STYLE.sub("", shown)
