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
    """How a run ended: its status, all that it said, and how many writes were left; below 0 if some were refused."""

    status: int
    said: str
    left: int


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
        return Written(*json.loads(self._server.stdout.readline()))


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
    """A command that writes, how many of its writes are refused in turn, and how. is_export: a failed run may leave
    what a later one removes."""

    command: str
    tried: int = 1
    code: int = errno.ENOSPC
    is_export: bool = False


CASES = [
    Case("slice docs/test-1-0 --from-offset 209000 --to TO", 2),
    Case("salvage docs --to TO", 2, errno.EIO),
    Case("compact docs/test-1-0 --to TO", 1, errno.EACCES),
    Case("reindex docs/test-1-0 --to TO"),
    Case("retain docs/test-1-0 --to TO"),
    Case("build items.jsonl --to TO"),
    Case("report docs --to TO"),
    Case("get docs/test-1-0 --offset 209000 --to TO"),
    Case("export docs TO", 3, is_export=True),
    Case("export docs TO --format delta", 1, errno.EIO, is_export=True),
    Case("export docs TO --format iceberg", 1, is_export=True),
]


@for_each("case", CASES, ids=lambda case: case.command)
def test_write_that_fails_is_a_line_and_a_second_run_succeeds(case: Case, disk: FailingDisk | None) -> None:
    """Of each command some of its writes, evenly spread."""
    if disk is not None:
        try_case(case, disk, case.tried)


@pytest.mark.exhaustive
@for_each("case", CASES, ids=lambda case: case.command)
def test_each_write_that_fails_is_a_line_and_a_second_run_succeeds(case: Case, disk: FailingDisk | None) -> None:
    if disk is not None:
        for code in (errno.ENOSPC, errno.EIO, errno.EACCES):
            try_case(case._replace(code=code), disk, None)


def try_case(case: Case, disk: FailingDisk, tried: int | None) -> None:
    """Lets so many of a command's writes fail, one a run; None: each."""
    items = disk.directory.parent / "items.jsonl"
    items.write_text('{"key": "a", "value": "b"}\n')
    command = case.command.replace("docs", f"{golden.ROOT}/docs").replace("items.jsonl", str(items))
    arguments = command.replace("TO", str(disk.directory / "to")).split()
    empty(disk.directory)
    count = NEVER - whole_run(arguments, disk).left
    wanted = names_below(disk.directory)
    for number in range(count if tried is None else tried):
        left = number if tried is None else (2 * number + 1) * count // (2 * tried)
        empty(disk.directory)
        ran = disk.run(arguments, left, case.code)
        assert (ran.left < 0, ran.status) == (True, 2), (left, ran)
        assert len(re.findall("^kseg: ", ran.said, re.MULTILINE)) == 1, (left, ran)
        assert "Traceback" not in ran.said
        there = names_below(disk.directory)
        assert not there or (case.is_export and not any(name.endswith(".tmp") for name in there)), (left, there)
        whole_run(arguments, disk)
        extra = names_below(disk.directory) - wanted if case.is_export else set()
        assert all("/metadata/" in name for name in extra), (left, extra)  # pyiceberg's, which no version names
    empty(disk.directory)


def whole_run(arguments: list[str], disk: FailingDisk) -> Written:
    """A run on a disk that doesn't fail."""
    ran = disk.run(arguments)
    assert ran.status == 0, ran
    return ran


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
