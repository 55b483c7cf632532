"""The cost of kseg's start: `python -m bench.start`.

The unit is the processor's instructions, which valgrind counts: runs differ by less than one in a thousand. Without
valgrind it is CPU milliseconds, and the medians of some runs.
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.imports import import_times
from bench.measure import Command, measure
from bench.report import markdown_table

SEGMENT = Path(__file__).parent.parent / "golden" / "docs" / "test-1-0" / "00000000000000203000.log"
PROBE = Path(__file__).parent / "start_probe.py"
SEGMENT_SIZE = 64 << 10
"""Most bytes of the dumped file: complete batches of a segment without compression."""
REPETITIONS = 9
"""Runs of each command, where valgrind doesn't count."""
LEAST_SHARE = 1000
"""A module with less than this part of a run has no row in the table of imports."""
MILLION = 1_000_000
BASE = "python -c 'import click'"
# Nothing of the surroundings changes the figures: Python keeps compiled modules, and hashes are the same in each run.
_ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("KSEG_")},
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONHASHSEED": "0",
}
KSEG = (sys.executable, str(Path(sys.executable).with_name("kseg")))


class Work(NamedTuple):
    """A start: its name, its command, and the most that it may cost as a multiple of `import click`."""

    name: str
    command: tuple[str, ...]
    target: float | None = None


class ImportCost(NamedTuple):
    """The instructions of an import. loaded_at: since the start of the process. own: without the imports within it."""

    module: str
    loaded_at: int
    total: int
    own: int


def works(segment: Path) -> tuple[Work, ...]:
    """Return the measured starts; `segment` is the dumped file."""
    return (
        Work("python -c pass", (sys.executable, "-c", "pass")),
        Work(BASE, (sys.executable, "-c", "import click")),
        Work("kseg --version", (*KSEG, "--version"), 1.1),
        Work("kseg --help", (*KSEG, "--help"), 1.1),
        Work("kseg dump, 64 KiB", (*KSEG, "dump", str(segment)), 1.2),
    )


def write_segment(path: Path) -> None:
    """Write the first batches of the segment, at most SEGMENT_SIZE bytes."""
    content, end = SEGMENT.read_bytes(), 0
    while (after := end + 12 + int.from_bytes(content[end + 8 : end + 12], "big")) <= SEGMENT_SIZE:
        end = after
    path.write_bytes(content[:end])


def count_instructions(command: Sequence[str]) -> int:
    """Return the number of instructions that a command takes."""
    with TemporaryDirectory() as folder:
        return sum(_counts(command, Path(folder)))


def _counts(command: Sequence[str], folder: Path) -> list[int]:
    """Return the instructions of a command, up to each mark and to its end."""
    profile = folder / "profile"
    valgrind = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile}", "--combine-dumps=yes"]
    subprocess.run(
        [*valgrind, "--dump-before=Py_SetRecursionLimit", *command],
        env=_ENVIRONMENT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    lines = profile.read_text().splitlines()
    return [int(line.removeprefix("totals:")) for line in lines if line.startswith("totals:")]


def import_costs(arguments: Sequence[str]) -> Iterator[ImportCost]:
    """Return the imports of a run of kseg in the order in which they end."""
    with TemporaryDirectory() as folder:
        file = Path(folder, "marks")
        counts = _counts([sys.executable, str(PROBE), str(file), *arguments], Path(folder))
        marks = file.read_text().splitlines()
    spent, open_imports = 0, list[tuple[int, int]]()  # its begin, and the cost of the imports within it
    for count, mark in zip(counts, marks, strict=False):  # the last count ends with the process
        spent += count
        kind, module = mark.split()
        if kind == "begin":
            open_imports.append((spent, 0))
            continue
        begin, within = open_imports.pop()
        if open_imports:
            outer, others = open_imports[-1]
            open_imports[-1] = outer, others + spent - begin
        yield ImportCost(module, spent, spent - begin, spent - begin - within)


def cpu_milliseconds(command: Sequence[str]) -> float:
    """Return the median of the CPU times of some runs, in milliseconds."""
    run = Command(tuple(command), tuple(_ENVIRONMENT.items()))
    return 1000 * median(measure(run, "null").cpu_seconds for _ in range(REPETITIONS))


def print_starts(segment: Path, *, has_valgrind: bool) -> None:
    """Print the cost of each start, and its ratio to `import click`."""
    unit, cost = ("M instructions", count_instructions) if has_valgrind else ("CPU ms", cpu_milliseconds)
    costs: dict[str, float] = {}
    for work in works(segment):
        # A first run compiles what it imports.
        subprocess.run(work.command, env=_ENVIRONMENT, check=True, stdout=subprocess.DEVNULL)
        costs[work.name] = cost(work.command) / (MILLION if has_valgrind else 1)
    rows = [
        (work.name, f"{costs[work.name]:.1f}", f"{costs[work.name] / costs[BASE]:.2f}", f"{work.target or ''}")
        for work in works(segment)
    ]
    sys.stdout.write(markdown_table(("start", unit, "÷ import click", "at most"), rows) + "\n\n")


def print_imports(segment: Path, *, has_valgrind: bool) -> None:
    """Print the imports of a dump: in their order with instructions, otherwise the slowest first."""
    arguments = ["dump", str(segment)]
    if not has_valgrind:
        times = [(each.module, f"{each.microseconds / 1000:.2f}") for each in import_times([KSEG[1], *arguments])]
        sys.stdout.write(markdown_table(("import", "own ms"), times) + "\n")
        return
    costs = list(import_costs(arguments))
    least = costs[-1].loaded_at // LEAST_SHARE
    rows = [
        (each.module, *(f"{count / MILLION:.1f}" for count in (each.loaded_at, each.total, each.own)))
        for each in costs
        if each.total >= least
    ]
    columns = ("import of `kseg dump`", "loaded at M", "M instructions", "own")
    sys.stdout.write(markdown_table(columns, rows) + "\n")


def main() -> None:
    """Print both tables."""
    has_valgrind = which("valgrind") is not None
    with TemporaryDirectory() as folder:
        segment = Path(folder, SEGMENT.name)
        write_segment(segment)
        print_starts(segment, has_valgrind=has_valgrind)
        print_imports(segment, has_valgrind=has_valgrind)


if __name__ == "__main__":
    main()
