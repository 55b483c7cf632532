"""A disk that fails at the n-th write, also of Arrow and Rust: a line, no partial output, and a second run.

A library that is loaded before the C library refuses the calls; the machine's compiler makes it. Some calls of each
command are refused, and every one by `make test-exhaustive`.
"""

import errno
import itertools
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
from tests.run import kseg

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
SOURCE = Path(__file__).with_name("failing_writes.c")
NEVER = 1 << 40
CODES = (errno.ENOSPC, errno.EIO, errno.EACCES)
SERVER = """
import importlib, json, os, pkgutil, struct, sys
import deltalake, pyarrow.parquet, pyiceberg.io.pyarrow, pyiceberg.table
import kseg.commands.export, kseg.commands.report, kseg.export
from kseg.cli import main

for module in pkgutil.walk_packages(kseg.export.__path__, "kseg.export."):
    importlib.import_module(module.name)

def fail(*state):
    with open(os.environ["FAIL_COUNT"], "r+b", buffering=0) as file:
        file.write(struct.pack("lll", *state))

for line in sys.stdin:
    arguments, output, left, count, code = json.loads(line)
    said = os.memfd_create("said")
    stdout = said if output is None else os.open(output, os.O_WRONLY | os.O_CREAT)
    fail(left, count, code)
    child = os.fork()
    if not child:
        os.dup2(stdout, 1)
        os.dup2(said, 2)
        status = 99
        try:
            status = main(arguments)
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(status or 0)
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    with open(os.environ["FAIL_COUNT"], "rb") as file:
        after, _, _ = struct.unpack("lll", file.read(24))
    fail(1 << 40, 0, 0)
    print(json.dumps([status, os.pread(said, 1 << 20, 0).decode(errors="replace"), left - after]), flush=True)
    for descriptor in {stdout, said}:
        os.close(descriptor)
"""
"""Runs command lines under the library, each in a child of a process that has imported their modules."""


class Written(NamedTuple):
    """The end of a run: its status, its output, and the number of its writing calls."""

    status: int
    said: str
    calls: int


class FailingDisk:
    """Runs of kseg whose writes below a directory fail after some have succeeded."""

    def __init__(self, server: "subprocess.Popen[str]", directory: Path) -> None:
        self._server, self.directory = server, directory

    def run(self, command: str, left: int = NEVER, count: int = 0, code: int = 0) -> Written:
        """Run `kseg COMMAND`; `left` writes succeed, the next `count` fail with an errno.

        TO is a path in the directory; output after `> TO` goes there.
        """
        command, *output = command.replace("TO", str(self.directory / "to")).split(" > ")
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps([command.split(), *(output or [None]), left, count, code]) + "\n")
        self._server.stdin.flush()
        return Written(*json.loads(self._server.stdout.readline()))

    def names(self) -> set[str]:
        """Return the names of all files, without the parts that runs choose."""
        paths = (path.relative_to(self.directory).as_posix() for path in self.directory.rglob("*"))
        return {re.sub(r"[0-9a-f]{8}[0-9a-f-]*", "#", path) for path in paths}

    def empty(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.directory)
        self.directory.mkdir()


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FailingDisk | None]:
    """Yield the disk, or None if there is no compiler."""
    if COMPILER is None or sys.platform != "linux":
        yield None
        return
    place = tmp_path_factory.mktemp("disk")
    library, count, directory = place / "failing_writes.so", place / "count", place / "on"
    subprocess.run([COMPILER, "-shared", "-fPIC", "-o", library, SOURCE, "-ldl"], check=True)
    count.write_bytes(struct.pack("lll", NEVER, 0, 0))
    directory.mkdir()
    (place / "items.jsonl").write_text('{"key": "a", "value": "b"}\n')
    subprocess.run(["tar", "-czf", place / "docs.tar.gz", "-C", golden.ROOT, "docs"], check=True)
    environment = {
        **os.environ,
        "LD_PRELOAD": str(library),
        "FAIL_BELOW": f"{directory}/",
        "FAIL_COUNT": str(count),
        "TMPDIR": str(directory),
    }
    server = subprocess.Popen(
        [sys.executable, "-c", SERVER],
        cwd=place,
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with server:
        yield FailingDisk(server, directory)


class Case(NamedTuple):
    """A command that writes; samples: number of calls to test, one per run; keeps: a failed run leaves files."""

    command: str
    samples: int = 1
    keeps: bool = False


CASES = [
    Case("slice SAMPLES/docs/test-1-0 --from-offset 209000 --to TO", 2),
    Case("salvage SAMPLES/docs --to TO"),
    Case("compact SAMPLES/docs/test-1-0 --to TO"),
    Case("reindex SAMPLES/docs/test-1-0 --to TO"),
    Case("redact SAMPLES/docs --keep topics --to TO"),
    Case("retain SAMPLES/docs/test-1-0 --retention-bytes 1 --to TO"),
    Case("rebuild-metadata SAMPLES/logs/4.3.1 --node-id 3001 --endpoint C://localhost:9093 --to TO"),
    Case("build items.jsonl --to TO"),
    Case("report SAMPLES/docs --to TO"),
    Case("get SAMPLES/docs/test-1-0 --offset 209000 --to TO"),
    Case("dump SAMPLES/docs/test-1-0 > TO", keeps=True),
    Case("dump SAMPLES/docs/test-1-0 -o json > TO", keeps=True),
    Case("ls docs.tar.gz"),
    Case("export SAMPLES/docs TO", 2, keeps=True),
    Case("export SAMPLES/docs TO --format delta", keeps=True),
    Case("export SAMPLES/docs TO --format iceberg", keeps=True),
]


@for_each("case", CASES, ids=lambda case: case.command)
def test_write_that_fails_is_a_line_and_a_second_run_succeeds(case: Case, disk: FailingDisk | None) -> None:
    """Some calls of each command fail, evenly spread."""
    if disk is not None:
        whole = Whole(case, disk)
        for number in range(case.samples):
            whole.refuse(whole.calls * (2 * number + 1) // (2 * case.samples), NEVER, errno.ENOSPC)
        disk.empty()


@pytest.mark.exhaustive
@for_each(
    "case, code, count",
    list(itertools.product(CASES, CODES, (NEVER, 1))),
    ids=lambda tried: f"{tried[0].command}: {errno.errorcode[tried[1]]}, {'one' if tried[2] == 1 else 'all'}",
    shards=6 * len(CASES),
)
def test_each_write_that_fails_is_a_line_and_a_second_run_succeeds(
    case: Case, code: int, count: int, disk: FailingDisk | None
) -> None:
    """Each call fails alone, and all from each on."""
    if disk is not None:
        whole = Whole(case, disk)
        for left in range(whole.calls):
            whole.refuse(left, count, code)
        disk.empty()


class Whole:
    """A command that ran on a healthy disk: the number of its calls, and its files."""

    def __init__(self, case: Case, disk: FailingDisk) -> None:
        self._case, self._disk = case, disk
        self._command = case.command.replace("SAMPLES", str(golden.ROOT))
        disk.empty()
        ran = disk.run(self._command)
        assert ran.status == 0, ran
        self.calls, self._names = ran.calls, disk.names()

    def refuse(self, left: int, count: int, code: int) -> None:
        """Run it again with `count` refused calls after `left` calls; then once more without."""
        disk = self._disk
        disk.empty()
        ran = disk.run(self._command, left, count, code)
        at = f"{count} calls after {left} of {self.calls}: {ran.said}"
        if count == 1 and ran.status == 0:  # bytes can be copied in several ways, one after another
            assert disk.names() == self._names, at
            return
        assert ran.status in (2, 3), at
        assert_one_line(ran, disk.directory, at)
        there = disk.names()
        assert not there or (self._case.keeps and not any(name.endswith(".tmp") for name in there)), (at, there)
        again = disk.run(self._command)
        assert again.status == 0, (at, again)
        extra = disk.names() - self._names
        assert all("/metadata/" in name for name in extra), (at, extra)  # pyiceberg's, without a version


def assert_one_line(ran: Written, place: Path, at: str) -> None:
    """Assert that one line names the failure and its place, without a traceback."""
    lines = re.findall("^kseg: .*", ran.said, re.MULTILINE)
    assert len(lines) == 1, at
    assert str(place) in lines[0] or "standard output" in lines[0], at
    assert "Traceback" not in ran.said, at


def test_rename_that_fails_leaves_no_file_aside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rename = os.rename

    def refuse(source: str, target: str, **folders: int) -> None:
        if target == "report.json":
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        rename(source, target, **folders)

    monkeypatch.setattr(os, "rename", refuse)
    ran = kseg(["export", str(golden.ROOT / "docs/test-1-0"), "out"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert ran.stderr.startswith(f"kseg: {tmp_path}/out/_kseg/report.json: ".encode())
    assert not list(tmp_path.rglob("*.tmp"))
