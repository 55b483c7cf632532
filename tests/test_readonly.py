"""kseg only reads: nothing is created, opened for writing or changed, next to its input or anywhere else."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each
from tests.run import process

# Reports calls that open a file for writing or change one on stderr, from Python's own audit events.
AUDIT = """
import atexit, json, os, sys
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING = ("os.chmod os.chown os.link os.lockf os.mkdir os.remove os.removexattr os.rename os.rmdir os.setxattr "
    "os.symlink os.truncate os.utime fcntl.flock fcntl.lockf tempfile.mkdtemp tempfile.mkstemp").split()
def watch(event, arguments):
    if event == "open" and arguments[2] & WRITING or event in CHANGING:
        seen.append(f"{event} {arguments}")
seen = []
atexit.register(lambda: print(json.dumps(seen), file=sys.stderr))
sys.addaudithook(watch)
"""
CHANGING_CALLS = "f?chmod|[fl]?chown|creat|link|mkdir|mknod|rename|rmdir|symlink|truncate|unlink|utime"
CHANGING_CALL = re.compile(rf"\d+ +({CHANGING_CALLS}|.*O_(WRONLY|RDWR|CREAT))")

# Runs some Python in a directory; returns the calls that opened a file for writing, or changed one.
Watch = Callable[[str, Path], list[str]]


def with_audit_hook(code: str, directory: Path) -> list[str]:
    ran = process([], directory, program=AUDIT + code)
    assert ran.status == 0, ran.stderr
    seen: list[str] = json.loads(ran.stderr.splitlines()[-1])
    return seen


def with_strace(code: str, directory: Path) -> list[str]:
    """Return the command with strace.

    Python's cache of compiled modules isn't kseg's, so it is off.
    """
    strace = ["strace", "-f", "-qq", "-e", "trace=%file", "-o", "/dev/stderr"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    command = [*strace, sys.executable, "-c", code]
    ran = subprocess.run(command, cwd=directory, env=environment, capture_output=True, check=True)
    lines = ran.stderr.decode(errors="replace").splitlines()
    return [line for line in lines if CHANGING_CALL.match(line)]


def can_trace() -> bool:
    """Return True if strace is installed and may trace: in some containers it may not."""
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False).returncode == 0


WATCHES: list[Watch] = [with_audit_hook, with_strace] if can_trace() else [with_audit_hook]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a broker's directory, with damaged files next to it."""
    root = tmp_path_factory.mktemp("readonly")
    shutil.copytree(golden.ROOT / "logs" / "2.8.2", root / "logs")
    shutil.copytree(golden.ROOT / "docs", root / "docs")
    shutil.copytree(golden.ROOT / "docs/test-1-0", root / "lone/test-1-0")
    (root / "lone/test-1-0/00000000000000203000.index").unlink()  # Kafka's own tool creates an empty one
    damaged = {log.parent for log in golden.damaged_files(".log")[::20]}
    for source in damaged | {golden.ROOT / "damaged/210-wiped-batch"}:
        shutil.copytree(source, root / source.name)
    return root


def state(root: Path) -> dict[str, tuple[int, int, int]]:
    """Return size, time of change and mode of everything below a directory, itself included."""
    statuses = {str(path): path.stat() for path in (root, *root.rglob("*"))}
    return {path: (status.st_size, status.st_mtime_ns, status.st_mode) for path, status in statuses.items()}


@pytest.mark.parametrize("watch", WATCHES)
@pytest.mark.parametrize("code", ["open('written', 'w')", "import os; os.mkdir('made')", "import os; os.utime('.')"])
def test_a_change_would_be_seen(watch: Watch, code: str, tmp_path: Path) -> None:
    assert watch(code, tmp_path) != []


LOOKING = {
    "dump .": 1,
    "dump --print-data-log .": 1,
    "dump --like 2.8 .": 1,
    "dump --like 0.8 .": 1,
    "ls .": 0,
    "ls . --deep -o json": 0,
    "verify .": 1,
    "lookup docs/test-1-0 --offset 203500": 0,
    "lookup docs/test-1-0 --timestamp max-timestamp -o json": 0,
    "lookup lone/test-1-0 --offset 203500": 0,
    "get docs/test-1-0 --offset 203500": 0,
    "verify lone/test-1-0": 1,
    "salvage logs --dry-run": 0,
    "diff logs docs --leader logs": 1,
    "salvage 210-wiped-batch --dry-run": 1,
    "reindex logs --dry-run": 0,
    "carve docs/test-1-0/00000000000000203000.log --dry-run": 0,
    "compact logs/compacted-txn-0 --dry-run": 0,
}
"""Command lines that only read, and their exit statuses."""


def runs(*lines: str) -> str:
    """Return Python that runs command lines in order."""
    code = "from kseg.cli import main\n"
    for line in lines:
        code += f"status = main({line.split()})\nassert status == {LOOKING[line]}, ({line!r}, status)\n"
    return code


@for_each("line", LOOKING)
def test_looking_at_partitions_opens_nothing_for_writing(line: str, directory: Path) -> None:
    before = state(directory)
    assert with_audit_hook(runs(line), directory) == []
    assert state(directory) == before


@pytest.mark.skipif(with_strace not in WATCHES, reason="there is no strace, or it may not trace")
def test_looking_at_partitions_calls_nothing_that_writes(directory: Path) -> None:
    """It includes calls of the C library: a call's path shows its command."""
    before = state(directory)
    assert with_strace(runs(*LOOKING), directory) == []
    assert state(directory) == before
