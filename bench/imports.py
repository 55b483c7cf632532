"""Where kseg's start goes: `python -X importtime` read."""

import subprocess
import sys
from collections.abc import Sequence
from typing import NamedTuple


class ImportTime(NamedTuple):
    """One module's own import, without those that it imports. Microseconds."""

    module: str
    microseconds: int


def import_times(arguments: Sequence[str]) -> list[ImportTime]:
    """Of a Python program and its arguments, slowest first; Python's own start is among them."""
    program = [sys.executable, "-X", "importtime", *arguments]
    stderr = subprocess.run(program, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True).stderr
    rows = [
        line.removeprefix("import time:").split("|") for line in stderr.splitlines() if line.startswith("import time:")
    ]
    times = [ImportTime(module.strip(), int(own)) for own, _, module in rows if own.strip().isdigit()]
    return sorted(times, key=lambda time: -time.microseconds)
