"""Tries faults: `python -m tests.faults.run map`, then `run`; `check` lists those that no longer fit the code.

Each fault is put into a copy of the tree, and the tests that reach it are run until one fails. A test that fails
without the fault too catches nothing.
"""

import json
import sys
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import NamedTuple

import click

from tests.faults.coverage import make_map, read_map
from tests.faults.fault import Fault, read_faults
from tests.faults.worker import BUILD, ROOT, OutOfTimeError, Worker

RESULTS = BUILD / "results.json"
LEAST_PER_PACKAGE = 3
AT_ONCE = 2
FIRST_WEIGHT = 400
"""Total weight of the tests in the first run. A test weighs its seconds times the faults that reach it: a test that
many faults reach is specific to none of them.
"""
KERNEL_FIRST = ("kernel", "corpus")
"""Words in the paths of the test files that are likeliest to catch a fault of the compiled kernel."""


class Verdict(NamedTuple):
    """The outcome of a fault. covering: number of tests that reach it. caught_by: the test that failed, or None."""

    covering: int
    caught_by: str | None = None
    note: str = ""
    seconds: float = 0

    @property
    def text(self) -> str:
        """The verdict for the table."""
        if self.caught_by is not None:
            return self.caught_by
        return f"NOT caught{self.note}" if self.covering else "not covered"


@click.group()
def faults() -> None:
    """Faults that the tests must catch."""


@faults.command()
@click.option("--follow", is_flag=True, help="Rewrite patches whose lines have moved, within a file or to another one.")
def check(follow: bool) -> None:
    """Checks that each patch fits, and that each package has enough; ends with 1 if not."""
    problems = list(stale_faults(follow=follow)) + list(packages_without_enough())
    for problem in problems:
        click.echo(problem)
    sys.exit(1 if problems else 0)


def stale_faults(*, follow: bool = False) -> Iterator[str]:
    """A line for each fault that doesn't fit; with `follow` those that have moved are rewritten first."""
    for fault in read_faults():
        moved = fault if fault.fits(ROOT) else fault.follow(ROOT)
        if moved is None:
            yield f"{fault.name}: the lines that it changes are no longer in {fault.path}"
        elif follow:
            moved.write(ROOT)
        elif moved is not fault:
            yield f"{fault.name}: is in {moved.path} now; `python -m tests.faults.run check --follow` rewrites it"


def packages_without_enough() -> Iterator[str]:
    """A line for each package right below kseg/ that has too few faults."""
    counts = Counter(Path(fault.path).parts[1] for fault in read_faults())
    for package in sorted(path.parent.name for path in (ROOT / "kseg").glob("*/__init__.py")):
        if counts[package] < LEAST_PER_PACKAGE:
            yield f"kseg/{package}: has {counts[package]} faults, not {LEAST_PER_PACKAGE}"


@faults.command("map")
def map_faults() -> None:
    """Runs the suite once, to see which tests reach which fault."""
    make_map(read_faults())
    tests, _ = read_map()
    for name in sorted(name for name, own in tests.items() if own == []):
        click.echo(f"not covered: {name}")


@faults.command()
@click.argument("names", nargs=-1)
@click.option("--minutes", type=float, default=2, show_default=True, help="Give a fault up after so long.")
def run(names: tuple[str, ...], minutes: float) -> None:
    """Tries all faults, or some; ends with 1 if one isn't caught."""
    chosen = [fault for fault in read_faults() if not names or fault.name in names]
    tests, seconds = read_map()
    reach = Counter(test for own in tests.values() for test in own or ())
    weights = {test: each * (1 + reach[test]) for test, each in seconds.items()}
    workers: Queue[Worker] = Queue()
    for number in range(AT_ONCE):
        workers.put(Worker(f"worker-{number + 1}"))

    def judge(fault: Fault) -> Verdict:
        worker = workers.get()
        try:
            covering = tests.get(fault.name, [])
            return _judge(fault, worker, list(seconds) if covering is None else covering, weights, 60 * minutes)
        finally:
            workers.put(worker)

    caught = 0
    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for fault, verdict in zip(chosen, pool.map(judge, chosen), strict=True):
            click.echo(f"{fault.name:36} {verdict.covering:6} {verdict.seconds:6.0f} s  {verdict.text}")
            caught += verdict.caught_by is not None
            _keep(fault.name, verdict)
    finally:
        pool.shutdown(cancel_futures=True)
    click.echo(f"{caught} of {len(chosen)} faults caught")
    sys.exit(0 if caught == len(chosen) else 1)


def _keep(name: str, verdict: Verdict) -> None:
    """Adds a verdict to the results of earlier runs."""
    known = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    known[name] = {**verdict._asdict(), "verdict": verdict.text}
    RESULTS.write_text(json.dumps(known, indent=1, sort_keys=True), encoding="utf-8")


def _judge(
    fault: Fault, worker: Worker, covering: list[str], weights: dict[str, float], most_seconds: float
) -> Verdict:
    start = time.monotonic()
    caught_by, note = None, ""
    try:
        caught_by = _catcher(fault, worker, _groups(fault, covering, weights), start + most_seconds)
    except OutOfTimeError:
        note = f" within {most_seconds / 60:.0f} minutes"
    return Verdict(len(covering), caught_by, note, time.monotonic() - start)


def _catcher(fault: Fault, worker: Worker, groups: Iterable[list[str]], deadline: float) -> str | None:
    """Returns the first test that fails with the fault, and passes without it."""
    for group in groups:
        left = group
        while left:
            with worker.faulty(fault):
                failed = worker.first_failure(left, deadline)
            if failed is None:
                break
            if worker.first_failure([failed], deadline) is None:
                return failed
            left = [test for test in left if test != failed and not test.startswith(f"{failed}::")]
    return None


def _groups(fault: Fault, tests: Iterable[str], weights: dict[str, float]) -> Iterator[list[str]]:
    """Tests to run together: whole files, the lightest first; each group may weigh twice as much as the last."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.partition("::")[0], []).append(test)
    weight = {file: sum(weights.get(test, 0) for test in own) for file, own in by_file.items()}

    def rank(file: str) -> tuple[bool, float]:
        return fault.is_compiled and not any(word in file for word in KERNEL_FIRST), weight[file]

    group: list[str] = []
    taken, most = 0.0, float(FIRST_WEIGHT)
    for file in sorted(by_file, key=rank):
        if group and taken + weight[file] > most:
            yield group
            group, taken, most = [], 0.0, 2 * most
        group += by_file[file]
        taken += weight[file]
    if group:
        yield group


if __name__ == "__main__":
    faults()
