"""Commands with one process on one processor and with two processes, in turns, and the machine's own limit.

python -m bench.processes [--only dump] [--repeat 5] [--size 128] [--markdown PAGE]

The limit is what two processors allow: two runs of one process that start together do twice the work. It is 2.00 if
they are as quick as one alone, and lower if they share memory bandwidth, caches or the disk.
"""

import argparse
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.datasets import DATA, DATA_SETS, MIB, make_segment
from bench.machine import describe, load_average
from bench.measure import Command, measure
from bench.peers import fetch_jars
from bench.report import markdown_table
from bench.works import KSEG

FILE, DISK, NEW = "FILE", "DISK", "NEW"
"""Placeholders: a log of 1 GiB, a disk of several partitions, and a new directory for each run."""
PARTITIONS = ("16k-none", "16k-zstd") * 4
HEADINGS = ("command", "1 process: min", "median", "2 processes: min", "median", "ratio of medians", "limit")


class Work(NamedTuple):
    """A command. has_jobs: it has -j; otherwise its threads use the processors."""

    name: str
    arguments: tuple[str, ...]
    has_jobs: bool = True

    def command(self, places: dict[str, str], processor: int | None = None) -> Command:
        """Return the command with two processes, or with one on a processor."""
        arguments = tuple(places.get(argument, argument) for argument in self.arguments)
        bound = () if processor is None else ("taskset", "-c", str(sorted(os.sched_getaffinity(0))[processor]))
        jobs = ("-j", "2" if processor is None else "1") if self.has_jobs else ()
        return Command((*bound, KSEG, *arguments, *jobs))


WORKS = (
    Work("dump of one log", ("dump", "--print-data-log", FILE)),
    Work("dump of one log as JSON", ("dump", "-o", "json", FILE)),
    Work("dump of partitions", ("dump", "--print-data-log", DISK)),
    Work("dump of partitions, values decoded", ("dump", "--value-decoder", "string", "-o", "json", DISK)),
    Work("verify", ("verify", DISK)),
    Work("salvage --dry-run", ("salvage", "--dry-run", DISK)),
    Work("reindex --dry-run", ("reindex", "--dry-run", DISK)),
    Work("ls --deep", ("ls", "--deep", DISK)),
    Work("export", ("export", DISK, NEW, "-q")),
    Work("query", ("query", "SELECT sum(octet_length(value)) FROM orders", DISK), has_jobs=False),
)


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", metavar="WORDS", help="only commands with these words in their name")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--size", type=int, default=128, help="MiB per partition (default %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="also write the table there")
    options = parser.parse_args()
    if len(os.sched_getaffinity(0)) < 2:
        parser.error("this needs two processors")
    works = [work for work in WORKS if not options.only or any(words in work.name for words in options.only)]
    fetch_jars("4.3.1")
    DATA.mkdir(exist_ok=True)
    with TemporaryDirectory(dir=DATA) as scratch:
        places = make_disk(Path(scratch), options.size * MIB)
        head = [load_average(), *describe()]
        table = markdown_table(HEADINGS, [figures(work, places, Path(scratch), options.repeat) for work in works])
    page = "\n".join([*head, "", "Wall seconds.", "", table, ""])
    print(page)
    if options.markdown:
        options.markdown.write_text(page)


def make_disk(scratch: Path, size: int) -> dict[str, str]:
    """Make a disk of links to data sets; return the places of the placeholders."""
    data_sets = {each.name: each for each in DATA_SETS}
    for number, name in enumerate(PARTITIONS):
        segment = make_segment(data_sets[name], size)
        directory = scratch / "disk" / f"orders-{number}"
        directory.mkdir(parents=True)
        (directory / segment.path.name).symlink_to(segment.path)
    return {FILE: str(make_segment(data_sets["1g-none"], 0).path), DISK: str(scratch / "disk")}


def figures(work: Work, places: dict[str, str], scratch: Path, repeat: int) -> tuple[str, ...]:
    """Return a row of the table. Each repetition runs one process, two processes, and two runs at once."""
    run_wall(work, places, scratch)  # its files are in the page cache afterwards
    one, two, together = zip(*_rounds(work, places, scratch, repeat), strict=True)
    seconds = (f"{each:.2f}" for times in (one, two) for each in (min(times), median(times)))
    return (work.name, *seconds, f"{median(one) / median(two):.2f}", f"{2 * median(one) / median(together):.2f}")


def _rounds(work: Work, places: dict[str, str], scratch: Path, repeat: int) -> Iterator[tuple[float, float, float]]:
    for _ in range(repeat):
        one, two = run_wall(work, places, scratch, 0), run_wall(work, places, scratch)
        yield one, two, run_two_at_once(work, places, scratch)


def run_wall(work: Work, places: dict[str, str], scratch: Path, processor: int | None = None) -> float:
    """Return the wall seconds of a run; a directory that it makes is removed afterwards."""
    with TemporaryDirectory(dir=scratch) as own:
        return measure(work.command({**places, NEW: f"{own}/new"}, processor), "null").wall_seconds


def run_two_at_once(work: Work, places: dict[str, str], scratch: Path) -> float:
    """Return the wall seconds of the slower of two runs of one process that start together on two processors."""
    with ThreadPoolExecutor(2) as pool:
        return max(pool.map(lambda processor: run_wall(work, places, scratch, processor), range(2)))


if __name__ == "__main__":
    main()
