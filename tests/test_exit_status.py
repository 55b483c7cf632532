"""The exit statuses in docs/reference/exit-status.md: the commands in its tables are run."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from kseg.cli import COMMANDS
from tests import golden
from tests.loops import for_each
from tests.run import Run, kseg, process
from tests.sandbox import make_programs

PAGE = (golden.ROOT.parent / "docs/reference/exit-status.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| `(kseg[^`]*)` \| (\d+) \|$", re.MULTILINE)


LARGE = ("kseg export ", "kseg query ")
"""Commands that import large libraries: they run in this process, which imports them once."""


def rows() -> list[tuple[str, int]]:
    """Return each command line of the page, and its documented status."""
    return [(line, int(status)) for _, line, status in ROW.findall(PAGE)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_programs(tmp_path_factory.mktemp("programs"))


def run_line(line: str, directory: Path, programs: str) -> Run:
    """Run a line; only lines that are more than a command need the shell."""
    if line.startswith(LARGE):
        return kseg(shlex.split(line)[1:], directory)
    environment = {**os.environ, "PATH": programs}
    if not set(line) & set("|&;<>$*?~#"):
        return process(shlex.split(line)[1:], directory, environment=environment)
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return Run(ran.returncode, ran.stdout, ran.stderr)


@for_each("line, status", rows(), ids=lambda row: row[0], shards=2)
def test_command_ends_with_the_status_of_its_row(
    line: str, status: int, restored: Path, programs: str, tmp_path: Path
) -> None:
    for path in restored.iterdir():
        (tmp_path / path.name).symlink_to(path)
    ran = run_line(line, tmp_path, programs)
    assert ran.status == status, ran.stderr.decode()


def test_each_command_has_its_row() -> None:
    section = PAGE.split("## By command\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `kseg ([\w-]+)` \|", section, re.MULTILINE) == list(COMMANDS)


def test_rows_are_read() -> None:
    lines = [line for line in PAGE.splitlines() if re.search(r"\| `kseg.*\| \d+ \|$", line)]
    assert len(rows()) == len(lines) > len(COMMANDS)
