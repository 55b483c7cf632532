"""docs/reference/exit-status.md says with what each command ends: what its tables show is run."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from kseg.cli import COMMANDS
from tests import golden
from tests.sandbox import make_programs

PAGE = (golden.ROOT.parent / "docs/reference/exit-status.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| (.+) \| `(kseg[^`]*)` \| (\d+) \|$", re.MULTILINE)


def rows() -> list[ParameterSet]:
    """Each command line of the page, and the status beside it."""
    return [pytest.param(line, int(status), id=line) for _, line, status in ROW.findall(PAGE)]


@pytest.fixture(scope="session")
def programs(tmp_path_factory: pytest.TempPathFactory) -> str:
    return make_programs(tmp_path_factory.mktemp("programs"))


@pytest.mark.parametrize(("line", "status"), rows())
def test_command_ends_with_the_status_of_its_row(
    line: str, status: int, restored: Path, programs: str, tmp_path: Path
) -> None:
    for path in (*restored.iterdir(), golden.ROOT / "protocol"):
        (tmp_path / path.name).symlink_to(path)
    ran = subprocess.run(
        ["/bin/sh", "-c", line],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    assert ran.returncode == status, ran.stderr.decode()


def test_each_command_has_its_row() -> None:
    section = PAGE.split("## By command\n")[1].split("\n## ")[0]
    assert re.findall(r"^\| `kseg ([\w-]+)` \|", section, re.MULTILINE) == list(COMMANDS)


def test_rows_are_read() -> None:
    lines = [line for line in PAGE.splitlines() if re.search(r"\| `kseg.*\| \d+ \|$", line)]
    assert len(rows()) == len(lines) > len(COMMANDS)
