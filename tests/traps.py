"""Directories whose modules report their import, one for each name that a process of kseg might import."""

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import NamedTuple

_TRAP = """
with open({sprung!r}, "a") as file:
    file.write(__name__ + "\\n")
decode = bytes
"""
_OWN = {"kseg", "pyspark_kseg"}
NAMES = sorted({*sys.stdlib_module_names, *packages_distributions(), "decoders", "pyspark_evil"} - _OWN)
_SPRUNG = "imported.txt"


class Ended(NamedTuple):
    """The end of a process, the traps that it sprang, and its output."""

    status: int
    sprung: set[str]
    stderr: bytes


def set_traps(directory: Path, names: Iterable[str] = NAMES) -> None:
    """Put a trap for each name into a directory."""
    text = _TRAP.format(sprung=str(directory / _SPRUNG))
    for name in names:
        (directory / f"{name}.py").write_text(text)


def run(command: Sequence[str], directory: Path, *others: Path, **environment: str) -> Ended:
    """Run a command in a directory with traps; `others` have some too."""
    files = [each / _SPRUNG for each in (directory, *others)]
    for file in files:
        file.unlink(missing_ok=True)
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    ran = subprocess.run(command, cwd=directory, env=inherited | environment, capture_output=True, check=False)
    sprung = {name for file in files if file.exists() for name in file.read_text().split()}
    return Ended(ran.returncode, sprung, ran.stderr)
