"""Runs of commands in a pseudo-terminal, with the colours that a user sees."""

import os
import pty
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

PROGRAMS = Path(sys.executable).parent
"""The folder of `kseg` and `python`."""
ROWS = 50


def run_coloured(command: str, directory: Path, columns: int) -> str:
    """Return a terminal's output from a shell command in a directory, with its colours.

    The command may end with 0 or 1, the status of findings.
    """
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (ROWS, columns))
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("KSEG_", "LC_", "NO_COLOR"))}
    environment = {
        **kept,
        "PATH": f"{PROGRAMS}{os.pathsep}{os.defpath}",
        "TERM": "xterm-256color",
        "COLUMNS": str(columns),
        "LANG": "C.UTF-8",
        "KSEG_PAGER": "cat",
    }
    with subprocess.Popen(
        ["/bin/bash", "-c", command], cwd=directory, env=environment, stdin=follower, stdout=follower, stderr=follower
    ) as process:
        os.close(follower)
        received = b"".join(pieces(leader))
    os.close(leader)
    assert process.returncode in (0, 1), received.decode()
    return received.decode().replace("\r\n", "\n").rstrip("\n")


def pieces(leader: int) -> Iterator[bytes]:
    """Yield the output until nobody has the terminal open: Linux then reports an error."""
    try:
        while piece := os.read(leader, 4096):
            yield piece
    except OSError:
        return
