"""Servers that tests start: each stopped by its own process id."""

import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PATIENCE = 400
POLL_SECONDS = 0.1


def free_port() -> int:
    """A port of 127.0.0.1 that nothing uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_listening(port: int, host: str = "127.0.0.1") -> bool:
    """Whether something takes connections there."""
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def wait_until(condition: Callable[[], object], what: str, process: "subprocess.Popen[bytes] | None" = None) -> None:
    """Polls until the condition holds; fails after a while, or when the process has ended that is to bring it about."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert process is None or process.poll() is None, f"the process ended before: {what}"
        assert time.monotonic() < deadline, f"not in {PATIENCE} s: {what}"
        time.sleep(POLL_SECONDS)


@contextmanager
def running(
    command: Sequence[str], log: Path, environment: Mapping[str, str] | None = None
) -> "Iterator[subprocess.Popen[bytes]]":
    """A process, with what it says in a file; it is asked to end, and killed if it doesn't."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, stdout=output, stderr=subprocess.STDOUT, env={**os.environ, **(environment or {})}
        )
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
