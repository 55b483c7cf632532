"""Runs kseg in a pseudo-terminal."""

import os
import pty
import re
import select
import subprocess
import sys
import termios
from pathlib import Path

STYLE = re.compile(r"\x1b\[[0-9;]*m")
COLOR = re.compile(r"\x1b\[(?:[0-9;]*;)?(?:3[0-7]|4[0-7]|9[0-7]|10[0-7]|38;[0-9;]+|48;[0-9;]+)m")


def in_terminal(directory: Path, *arguments: str, columns: int = 100, **environment: str) -> str:
    """What a terminal of some width gets; without a pager unless the environment names one."""
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (40, columns))
    command = [str(Path(sys.executable).parent / "kseg"), *arguments]
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "PAGER")}
    with subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        cwd=directory,
        env={**inherited, "TERM": "xterm-256color", "KSEG_PAGER": "cat", **environment},
    ) as ran:
        os.close(follower)
        pieces = []
        while select.select([leader], [], [], 30)[0]:
            try:
                pieces.append(os.read(leader, 4096))
            except OSError:
                break
            if not pieces[-1]:
                break
        ran.wait(timeout=30)
    os.close(leader)
    return b"".join(pieces).decode()


def plain(shown: str) -> str:
    """What was shown, without its styles."""
    return STYLE.sub("", shown)
