"""The process `kseg browse` in a terminal of 80 columns and 24 lines: its output and its end."""

import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from select import select
from subprocess import Popen

import pytest

from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.processes import start_process

KSEG = str(Path(sys.executable).parent / "kseg")
WIPED = golden.ROOT / "damaged" / "210-wiped-batch"
SAMPLE = golden.ROOT / "docs" / "test-1-0"
CONTROL = re.compile(rb"\x1b\[[0-9;?<>=$ ]*[A-Za-z~]|\x1b[()][A-Z0-9]|\x1b[=>]|\x1bP[^\x1b]*\x1b\\")
PATIENCE = 60.0
LEFT = b"\x1b[?1049l"
"""The sequence that restores a terminal's former contents."""


class Screen:
    """A terminal with the program. received: all output so far."""

    def __init__(self, process: Popen[bytes], leader: int) -> None:
        self.process = process
        self._leader = leader
        self.received = b""

    def wait_for(self, text: str, since: int = 0) -> None:
        """Wait for a text in any style."""
        deadline = time.monotonic() + PATIENCE
        while text.encode() not in CONTROL.sub(b"", self.received[since:]):
            assert time.monotonic() < deadline, CONTROL.sub(b"", self.received[since:]).decode(errors="replace")
            assert self._take(), CONTROL.sub(b"", self.received).decode(errors="replace")

    def type(self, keys: bytes, until: str) -> None:
        """Type keys, and wait for a text after them."""
        before = len(self.received)
        os.write(self._leader, keys)
        self.wait_for(until, before)

    def end(self, keys: bytes = b"") -> int:
        """Type keys, read the output to its end, and return the exit status."""
        if keys:
            os.write(self._leader, keys)
        while self._take():
            pass
        return self.process.wait(PATIENCE)

    def _take(self) -> bytes:
        ready, _, _ = select([self._leader], [], [], PATIENCE)
        try:
            piece = os.read(self._leader, 1 << 16) if ready else b""
        except OSError:  # the terminal is closed
            piece = b""
        self.received += piece
        return piece


@contextmanager
def browsing(*arguments: str | Path, directory: Path = golden.ROOT) -> Iterator[Screen]:
    leader, follower = pty.openpty()
    termios.tcsetwinsize(follower, (24, 80))
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
    environment = {**kept, "TERM": "xterm-256color", "LANG": "C.UTF-8"}
    command = [KSEG, "browse", *map(str, arguments)]
    with start_process(
        command, directory, stdin=follower, stdout=follower, stderr=follower, environment=environment
    ) as process:
        os.close(follower)
        yield Screen(process, leader)
    os.close(leader)


def test_damage_is_found_and_the_terminal_given_back() -> None:
    with browsing(WIPED) as screen:
        screen.wait_for("00000000000000021933.log")
        screen.type(b"d", "length field is 0")
        assert screen.end(b"q") == 0
        assert LEFT in screen.received


def test_nothing_of_a_record_controls_the_terminal(tmp_path: Path) -> None:
    evil = b"\x1b]0;OWNED\x07\x1b]52;c;T1dORUQ=\x07[red]end[/red]\xc2\x9b31m"
    log = write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(evil, evil, headers=[("h", evil)])])])
    with browsing(log) as screen:
        screen.wait_for("offset")
        screen.type(b"\r", "OWNED")
        screen.type(b"\t", "varint")
        assert screen.end(b"q") == 0
    assert b"\x1b]0;" not in screen.received
    assert b"\x1b]52;" not in screen.received
    assert "\x9b".encode() not in screen.received


def test_copy_goes_to_the_terminals_clipboard() -> None:
    with browsing(SAMPLE / "00000000000000203000.log") as screen:
        screen.wait_for("203000")
        screen.type(b"\tc", "copied: ")
        assert b"\x1b]52;c;" in screen.received
        assert screen.end(b"q") == 0


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=["term", "hup"])
def test_signal_ends_it_and_gives_the_terminal_back(number: int, status: int) -> None:
    with browsing(SAMPLE) as screen:
        screen.wait_for("00000000000000203000.log")
        os.kill(screen.process.pid, number)
        assert screen.end() == status
        assert LEFT in screen.received
        assert b"Traceback" not in screen.received


def test_without_a_terminal_one_line_says_so() -> None:
    ran = subprocess.run([KSEG, "browse", SAMPLE], capture_output=True, text=True, check=False)
    assert ran.returncode == 2
    assert ran.stdout == ""
    assert ran.stderr == "kseg: browse needs a terminal; use `kseg explain` to print fields and bytes\n"


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A function that runs a command of tmux on a server of its own, and returns its output."""
    program = shutil.which("tmux")
    assert program is not None, "these tests need tmux"

    def run(*arguments: str) -> str:
        command = [program, "-S", str(tmp_path / "socket"), "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    yield run
    run("kill-server")


@pytest.mark.tmux
def test_in_tmux_of_80_columns_all_panes_are_there(tmux: Callable[..., str]) -> None:
    tmux("new-session", "-d", "-x", "80", "-y", "24", f"{KSEG} browse '{SAMPLE}'")

    def shown(text: str) -> list[str]:
        deadline = time.monotonic() + PATIENCE
        while text not in (screen := tmux("capture-pane", "-p")):
            assert time.monotonic() < deadline, screen
        return screen.splitlines()

    shown("00000000000000203000.log")
    tmux("send-keys", "Enter")
    shown("203100")
    tmux("send-keys", "Enter")
    shown("203003")
    tmux("send-keys", "Down", "Tab", "End")
    tmux("send-keys", "Up")
    lines = shown("21 bytes at 95")
    assert len(lines) == 24
    assert lines[0].strip() == "test-1-0 / 00000000000000203000.log / batch 203000-203099"
    assert any("203001" in line for line in lines)
    assert any("timestamp_delta" in line for line in lines)
    assert any("36 00 14" in line for line in lines)
    assert lines[-1].startswith(" ? keys  o offset")
    tmux("send-keys", "?")
    shown("go to the next damage")
