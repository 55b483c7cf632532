"""Servers for tests, each stopped by its own process id."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 400
POLL_SECONDS = 0.1


def free_port() -> int:
    """Return an unused port of 127.0.0.1."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int, host: str = "127.0.0.1") -> bool:
    """Return True if a process accepts connections at a port."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def wait_until(condition: Callable[[], object], what: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Poll until the condition holds; fail after a while, or when the process that should fulfil it has ended."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, f"the process ended before: {what}"
        assert time.monotonic() < deadline, f"not in {PATIENCE} s: {what}"
        time.sleep(POLL_SECONDS)


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None, **options: Any
) -> "Iterator[subprocess.Popen[bytes]]":
    """Yield a process with its output in a file; terminate it, and kill it if it doesn't end.

    options: of subprocess.Popen.
    """
    own = {**os.environ, **(environment or {})}
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT, env=own, **options)
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
