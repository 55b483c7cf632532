"""A disk that fails at the n-th write, for Arrow's and Rust's writes too: a line, nothing half-made, and a second run.

A library that is loaded before the C library refuses the calls; the machine's compiler makes it.
"""

import errno
import json
import os
import re
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import golden
from tests.loops import for_each

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = Path(__file__).with_name("failing_writes.c")
NEVER = 1 << 40
SERVER = """
import os, struct, sys, tempfile, json
import pyarrow.parquet
from kseg.cli import main

for line in sys.stdin:
    arguments, left, code = json.loads(line)
    with open(os.environ["FAIL_COUNT"], "r+b", buffering=0) as file:
        file.write(struct.pack("ll", left, code))
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 1)
            os.dup2(said.fileno(), 2)
            status = 99
            try:
                status = main(arguments)
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status or 0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        with open(os.environ["FAIL_COUNT"], "r+b") as file:
            left, _ = struct.unpack("ll", file.read(16))
            file.seek(0)
            file.write(struct.pack("ll", 1 << 40, 0))
        said.seek(0)
        print(json.dumps([status, said.read().decode(errors="replace"), left]), flush=True)
"""
"""Runs command lines under the library, each in a child of a process that has imported what they need."""


class Written(NamedTuple):
    """How a run ended: its status, all that it said, and whether a write was refused."""

    status: int
    said: str
    was_refused: bool


class FailingDisk:
    """Runs of kseg whose writes below a directory fail after some have succeeded."""

    def __init__(self, server: "subprocess.Popen[str]", directory: Path) -> None:
        self._server, self.directory = server, directory

    def run(self, arguments: list[str], left: int = NEVER, code: int = 0) -> Written:
        """Runs `kseg ARGUMENTS`; `left` writes succeed, the others fail with an errno."""
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([arguments, left, code]) + "\n")
        self._server.stdin.flush()
        status, said, after = json.loads(self._server.stdout.readline())
        return Written(status, said, after < 0)


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingDisk | None]:
    """None without a compiler."""
    if COMPILER is None or sys.platform != "linux":
        yield None
        return
    place = tmp_path_factory.mktemp("disk")
    library, count = place / "failing_writes.so", place / "count"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    count.write_bytes(struct.pack("ll", NEVER, 0))
    (place / "on").mkdir()
    environment = {**os.environ, "LD_PRELOAD": str(library), "FAIL_BELOW": f"{place}/on/", "FAIL_COUNT": str(count)}
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        yield FailingDisk(server, place / "on")


class Case(NamedTuple):
    """A command that writes; after how many writes one is refused, and how. is_export: a failed run may leave files."""

    command: str
    lefts: tuple[int, ...]
    code: int = errno.ENOSPC
    is_export: bool = False


CASES = [
    Case("slice docs/test-1-0 --from-offset 209000 --to TO", (0, 7)),
    Case("salvage docs --to TO", (14,), errno.EIO),
    Case("compact docs/test-1-0 --to TO", (6,), errno.EACCES),
    Case("reindex docs/test-1-0 --to TO", (6,)),
    Case("build items.jsonl --to TO", (5,)),
    Case("report docs --to TO", (1,)),
    Case("get docs/test-1-0 --offset 209000 --to TO", (1,)),
    Case("export docs TO", (4, 11, 18, 22, 30), is_export=True),
    Case("export docs TO --format delta", (20,), errno.EIO, is_export=True),
    Case("export docs TO --format iceberg", (88,), is_export=True),
]


@for_each("case", CASES, ids=lambda case: case.command)
def test_write_that_fails_is_a_line_and_a_second_run_succeeds(case: Case, disk: FailingDisk | None) -> None:
    if disk is None:
        return  # nothing to try it with
    items = disk.directory.parent / "items.jsonl"
    items.write_text('{"key": "a", "value": "b"}\n')
    command = case.command.replace("docs", f"{golden.ROOT}/docs").replace("items.jsonl", str(items))
    arguments = command.replace("TO", str(disk.directory / "to")).split()
    empty(disk.directory)
    wanted = names_after(arguments, disk) if case.is_export else set()
    for left in case.lefts:
        empty(disk.directory)
        ran = disk.run(arguments, left, case.code)
        assert (ran.was_refused, ran.status) == (True, 2), (left, ran)
        assert len(re.findall("^kseg: ", ran.said, re.MULTILINE)) == 1, (left, ran)
        assert "Traceback" not in ran.said
        there = names_below(disk.directory)
        assert not there or (case.is_export and not any(name.endswith(".tmp") for name in there)), (left, there)
        extra = names_after(arguments, disk) - wanted if case.is_export else set()
        assert all("/metadata/" in name for name in extra), (left, extra)  # pyiceberg's, which no version names
    empty(disk.directory)


def names_after(arguments: list[str], disk: FailingDisk) -> set[str]:
    """What is there after a run on a disk that doesn't fail."""
    ran = disk.run(arguments)
    assert ran.status == 0, ran
    return names_below(disk.directory)


def names_below(directory: Path) -> set[str]:
    """Paths below a directory, with the parts of their names that runs choose taken out."""
    paths = (path.relative_to(directory).as_posix() for path in directory.rglob("*"))
    return {re.sub(r"[0-9a-f]{8}[0-9a-f-]*", "#", path) for path in paths}


def empty(directory: Path) -> None:
    """Removes what is in a directory."""
    for path in directory.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
