"""Runs kseg's command line, in this process or one of its own: bytes as a caller of the program would get them."""

import io
import os
import resource
import shlex
from collections.abc import Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from pathlib import Path
from tempfile import TemporaryFile
from typing import NamedTuple

from tests.fork_server import KSEG, fork_process

# KSEG_KERNEL=twin in the environment: no compiled kernel is wanted here.
KERNELS = ("twin",) if os.environ.get("KSEG_KERNEL") == "twin" else ("fast", "twin")


class Run(NamedTuple):
    """The end of a run, and its output."""

    status: int
    stdout: bytes
    stderr: bytes


def kseg(arguments: Sequence[str], directory: Path) -> Run:
    """Run `kseg ARGUMENTS` in a directory; exceptions that would be tracebacks propagate."""
    from kseg.cli import main

    stdout, stderr = _stream(), _stream()
    with chdir(directory), redirect_stdout(stdout), redirect_stderr(stderr):
        status = main(list(arguments))
    return Run(status, _read_written(stdout), _read_written(stderr))


def process(
    arguments: Sequence[str],
    directory: Path,
    *,
    program: str = KSEG,
    environment: Mapping[str, str] | None = None,
    limits: Mapping[int, int] | None = None,
    with_arrow: bool = False,
    timeout: float = 300,
) -> Run:
    """Run `kseg ARGUMENTS`, or another Python program, in a process of its own, whose stdin is empty.

    It is killed, and the test fails, if it still runs after `timeout` seconds.
    """
    with TemporaryFile() as stdout, TemporaryFile() as stderr, Path(os.devnull).open("rb") as nothing:
        streams = (nothing.fileno(), stdout.fileno(), stderr.fileno())
        with fork_process(
            arguments,
            directory,
            streams,
            program=program,
            environment=environment,
            limits=limits,
            with_arrow=with_arrow,
        ) as started:
            status = started.poll(timeout)
            assert status is not None, f"{command(arguments)} still runs after {timeout} s"
        stdout.seek(0)
        stderr.seek(0)
        return Run(status, stdout.read(), stderr.read())


def run_bounded(arguments: Sequence[str], directory: Path, *, seconds: int = 20, memory: int | None = 512 << 20) -> Run:
    """Run `kseg ARGUMENTS` in a process with limited processor time and memory."""
    limits = {resource.RLIMIT_CPU: seconds} | ({} if memory is None else {resource.RLIMIT_AS: memory})
    return process(arguments, directory, limits=limits)


def command(arguments: Sequence[str]) -> str:
    """Return the shell's line for the same run."""
    return shlex.join(["kseg", *arguments])


def _stream() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="backslashreplace", newline="\n")


def _read_written(stream: io.TextIOWrapper) -> bytes:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue()
