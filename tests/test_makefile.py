"""The Python that makes .venv/: the requested one, unless .venv/ has it already."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests import golden

MAKEFILE = golden.ROOT.parent / "Makefile"


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return this Python with environments without pip, whose installation takes most of the time."""
    program = tmp_path_factory.mktemp("python") / "python3"
    program.write_text(f'#!/bin/sh\n[ "$1" != -m ] || set -- "$@" --without-pip\nexec {sys.executable} "$@"\n')
    program.chmod(0o755)
    return program


def make(directory: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Run make in a directory of its own, without the variables of a surrounding make."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    command = ["make", "-f", str(MAKEFILE), ".venv/interpreter", *arguments]
    return subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_environment_is_made_with_the_python_that_is_asked_for_and_once(tmp_path: Path, python: Path) -> None:
    asked = [f"PYTHON={python}"]
    first = make(tmp_path, *asked)
    assert (first.returncode, first.stdout) == (0, f"Making .venv/ with {python}\n"), first.stderr
    version = [str(tmp_path / ".venv/bin/python"), "-c", "import sys; print(sys.version)"]
    assert subprocess.run(version, capture_output=True, text=True, check=True).stdout == f"{sys.version}\n"
    for arguments in (asked, []):
        assert "Making" not in make(tmp_path, *arguments).stdout


def test_environment_of_another_python_is_made_again(tmp_path: Path, python: Path) -> None:
    stale = tmp_path / ".venv" / "interpreter"
    stale.parent.mkdir()
    stale.write_text("3.2.1 /usr\n")
    (stale.parent / "stale").touch()
    assert make(tmp_path, f"PYTHON={python}").returncode == 0
    assert not (stale.parent / "stale").exists()
    assert stale.read_text().startswith(sys.version)


def test_python_that_is_not_there_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    ran = make(tmp_path, "PYTHON=no-such-python")
    assert ran.returncode == 2
    assert "kseg needs Python 3.11 or later" in ran.stderr
    assert list(tmp_path.iterdir()) == []
