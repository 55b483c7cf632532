"""Runs kseg's command line in this process: bytes as a caller of the program would get them."""

import io
import os
import resource
import shlex
import subprocess
import sys
from collections.abc import Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

# KSEG_KERNEL=twin in the environment: no compiled kernel is wanted here.
KERNELS = ("twin",) if os.environ.get("KSEG_KERNEL") == "twin" else ("fast", "twin")


class Run(NamedTuple):
    """How a run ended, and what it wrote."""

    status: int
    stdout: bytes
    stderr: bytes


def kseg(arguments: Sequence[str], directory: Path) -> Run:
    """Run `kseg ARGUMENTS` in a directory; exceptions that would be tracebacks go through."""
    from kseg.cli import main

    stdout, stderr = _stream(), _stream()
    with chdir(directory), redirect_stdout(stdout), redirect_stderr(stderr):
        status = main(list(arguments))
    return Run(status, _written(stdout), _written(stderr))


def bounded(arguments: Sequence[str], directory: Path, *, seconds: int = 20, memory: int | None = 512 << 20) -> Run:
    """Run `kseg ARGUMENTS` in a process that is ended after so much processor time, and has so many bytes of memory."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        if memory is not None:
            resource.setrlimit(resource.RLIMIT_AS, (memory, memory))

    ran = subprocess.run(
        [sys.executable, "-c", "import sys; from kseg.cli import main; sys.exit(main())", *arguments],
        cwd=directory,
        capture_output=True,
        check=False,
        preexec_fn=limit,
    )
    return Run(ran.returncode, ran.stdout, ran.stderr)


def command(arguments: Sequence[str]) -> str:
    """The line that a shell takes for the same run."""
    return shlex.join(["kseg", *arguments])


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="\n")


def _written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()
