"""`python -m tests.fuzz`: starts workers in order, each where the last one died, and prints their results."""

import json
import subprocess
import sys
import time
from pathlib import Path
from random import Random, SystemRandom
from tempfile import TemporaryDirectory

import click

from tests.fuzz.cases import KINDS, Case, Series
from tests.fuzz.minimize import minimize
from tests.fuzz.worker import FOUND, LONGEST_CASE, Tally, Worker, keep, try_case

CRASH_ATTEMPTS = 60
"""Attempts in a process each: fewer than attempts inside one."""
BETWEEN_LINES = 30
"""Seconds."""


@click.group()
def fuzz() -> None:
    """Mutants of Kafka's files, read by all commands and both kernels."""


@fuzz.command()
@click.option("--seconds", type=float, default=60, help="How long.")
@click.option("--bytes", "most_bytes", type=float, default=1e18, help="Ends earlier, once so many were read.")
@click.option("--seed", type=int, help="The same cases again; a new one by itself.")
@click.option("--first", type=int, default=0, help="Number of the first case.")
@click.option("--kind", type=click.Choice([*KINDS]), help="Only cases of this kind; by default of all.")
@click.option("--found", type=click.Path(path_type=Path), default=Path("tests/found"), help="Where finds are kept.")
def run(seconds: float, most_bytes: float, seed: int | None, first: int, kind: str | None, found: Path) -> None:
    """Run cases; exit with 1 if a property failed."""
    seed = SystemRandom().getrandbits(32) if seed is None else seed
    click.echo(f"seed {seed}")
    start = time.time()
    done = _run(Series(seed, kind), first, start + seconds, int(most_bytes), found.absolute())
    spent = time.time() - start
    click.echo(
        f"seed {seed}: {done.cases} cases, {done.bytes} bytes, {done.commands} commands on each kernel, "
        f"{spent:.0f} seconds, {done.finds} finds"
    )
    sys.exit(1 if done.finds else 0)


def _run(series: Series, first: int, until: float, most_bytes: int, found: Path) -> Tally:
    """Run workers until the time is over: one, if none dies."""
    done = Tally(first)
    with TemporaryDirectory(prefix="kseg-fuzz-") as directory:
        progress = Path(directory) / "progress"
        while time.time() < until and done.bytes < most_bytes:
            arguments = [done.number, until, most_bytes - done.bytes, progress, found]
            with _python("work", *series.arguments(), *map(str, arguments)) as worker:
                status = _watch(worker, progress)
            worked = _tally(progress)
            if worked is None:
                raise click.ClickException(f"a worker ended with {status} before it had begun")
            done = Tally(
                worked.number + 1,
                done.cases + worked.cases,
                done.bytes + worked.bytes,
                done.commands + worked.commands,
                done.finds + worked.finds,
            )
            if status not in (0, FOUND):
                done.finds += 1
                _keep_crash(series, worked.number, status, found)
    return done


def _python(*arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([sys.executable, "-m", "tests.fuzz", *arguments])


def _watch(worker: "subprocess.Popen[bytes]", progress: Path) -> int:
    """Return how a worker ended; it is ended if a case takes too long. From time to time a line shows its progress."""
    at, since = -1, time.monotonic()
    while True:
        try:
            return worker.wait(timeout=BETWEEN_LINES)
        except subprocess.TimeoutExpired:
            tally = _tally(progress) or Tally(-1)
        click.echo(f"{tally.cases} cases, {tally.bytes} bytes, {tally.finds} finds", err=True)
        if tally.number != at:
            at, since = tally.number, time.monotonic()
        elif time.monotonic() - since > 3 * LONGEST_CASE:
            worker.kill()


def _tally(progress: Path) -> Tally | None:
    """Return a worker's last report, or None if it hasn't begun, or is writing one."""
    try:
        return Tally(**json.loads(progress.read_text()))
    except (FileNotFoundError, ValueError):
        return None


def _keep_crash(series: Series, number: int, status: int, found: Path) -> None:
    """Keep a case that ended its process, minimized by a few attempts in other processes."""

    def breaks(case: Case) -> bool:
        with TemporaryDirectory(prefix="kseg-fuzz-") as directory:
            case.write(Path(directory))
            with _python("again", *series.arguments(), str(number), directory) as process:
                return process.wait() not in (0, FOUND)

    _, case = series.case(number)
    if breaks(case):
        case = minimize(case, breaks, CRASH_ATTEMPTS)
    click.echo(f"case {number}: ended its process with {status}; kept in {keep(case, 'crash', found)}", err=True)


@fuzz.command(hidden=True)
@click.option("--kind")
@click.argument("seed", type=int)
@click.argument("first", type=int)
@click.argument("until", type=float)
@click.argument("most_bytes", type=int)
@click.argument("progress", type=click.Path(path_type=Path))
@click.argument("found", type=click.Path(path_type=Path))
def work(kind: str | None, seed: int, first: int, until: float, most_bytes: int, progress: Path, found: Path) -> None:
    """A worker."""
    sys.exit(Worker(Series(seed, kind), first, progress, found).work(until, most_bytes))


@fuzz.command(hidden=True)
@click.option("--kind")
@click.argument("seed", type=int)
@click.argument("number", type=int)
@click.argument("directory", type=click.Path(path_type=Path))
def again(kind: str | None, seed: int, number: int, directory: Path) -> None:
    """Check a smaller version of a case as the case itself."""
    random, _ = Series(seed, kind).case(number)
    try_case(Case.read(directory), random)


@fuzz.command()
@click.argument("directory", type=click.Path(exists=True, path_type=Path))
def replay(directory: Path) -> None:
    """Check a kept case completely."""
    try_case(Case.read(directory), Random(directory.name), whole=True)


if __name__ == "__main__":
    fuzz()
