"""Runs of commands as child processes, and the resources that they use."""

import os
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Literal, NamedTuple

Sink = Literal["null", "pipe", "file"]


class Command(NamedTuple):
    """A child process: its arguments, its additional environment, and its expected exit status."""

    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()
    exit_status: int = 0


class Measurement(NamedTuple):
    """The figures of one run. Peak memory is at least the benchmark's own (some 23 MiB), which a child inherits."""

    cpu_seconds: float  # user and system, all threads
    wall_seconds: float
    peak_size: int
    output_size: int | None  # bytes passed to write(); None if the system has no counter
    disk_size: int | None = None  # bytes from the disk; None if the system has no counter


class CommandFailed(Exception):
    """An error: a command ended with another status; the text is its last line on stderr."""


def measure(command: Command, sink: Sink) -> Measurement:
    """Run the command with its stdout to /dev/null, through a pipe to a reader that discards it, or into a new file."""
    with tempfile.TemporaryFile() as stderr, _open_sink(sink) as stdout:
        start = time.perf_counter()
        process = subprocess.Popen(
            command.arguments,
            env={**os.environ, "LANG": "C.UTF-8", **dict(command.environment)},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
        )
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # its counters exist until it is reaped
        wall_seconds = time.perf_counter() - start
        counters = _counters(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != command.exit_status:
            raise CommandFailed(_last_line(stderr) or f"exit status {process.returncode}")
    return Measurement(
        usage.ru_utime + usage.ru_stime,
        wall_seconds,
        usage.ru_maxrss * 1024,
        counters.get("wchar"),
        counters.get("read_bytes"),
    )


@contextmanager
def _open_sink(sink: Sink) -> Iterator[IO[bytes]]:
    if sink == "null":
        with Path(os.devnull).open("wb") as null:
            yield null
    elif sink == "file":
        with tempfile.TemporaryFile(dir=Path(__file__).parent / "data") as file:
            yield file
    else:
        with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as reader:
            assert reader.stdin is not None
            yield reader.stdin


def _counters(pid: int) -> dict[str, int]:
    """Return the system's counters of a process's input and output; empty if there are none."""
    try:
        lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    except OSError:
        return {}
    return {name: int(number) for name, _, number in (line.partition(": ") for line in lines)}


def _last_line(stderr: IO[bytes]) -> str:
    stderr.seek(0)
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""
