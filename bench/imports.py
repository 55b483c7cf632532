"""Import times at kseg's start, from `python -X importtime`."""

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple


class ImportTime(NamedTuple):
    """The import time of one module in microseconds, without its own imports."""

    module: str
    microseconds: int


def import_times(arguments: Sequence[str]) -> list[ImportTime]:
    """Return the imports of a Python program with its arguments, slowest first, including Python's own start."""
    program = [sys.executable, "-X", "importtime", *arguments]
    stderr = subprocess.run(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    rows = [
        line.removeprefix("import time:").split("|") for line in stderr.splitlines() if line.startswith("import time:")
    ]
    times = [ImportTime(module.strip(), int(own)) for own, _, module in rows if own.strip().isdigit()]
    return sorted(times, key=lambda time: -time.microseconds)
