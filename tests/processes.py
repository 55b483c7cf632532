"""Programs that a test starts: signals end them as in the foreground, and none outlives its test."""

import os
import signal
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from subprocess import PIPE, Popen
from typing import IO

from tests.fork_server import ENDING


def default_signals() -> None:
    """For `preexec_fn`: under nohup, or in the background of a shell, some are ignored, by whatever is started too."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)
    for number in ENDING:
        signal.signal(number, signal.SIG_DFL)


@contextmanager
def start_process(
    command: Sequence[str | Path],
    directory: Path,
    *,
    stdin: int | IO[bytes] | None = None,
    stdout: int | None = PIPE,
    stderr: int | None = PIPE,
    environment: Mapping[str, str] | None = None,
) -> Iterator[Popen[bytes]]:
    """Run a program as the leader of a process group; processes that still run at the end are killed."""
    with Popen(
        command,
        cwd=directory,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=environment,
        preexec_fn=default_signals,
        start_new_session=True,
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:  # its number is its own until then
                os.killpg(process.pid, signal.SIGKILL)
