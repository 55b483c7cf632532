"""Measures the starts of a broker with a damaged disk: `--release 4.4.0`.

tools/start/cells.py lists files and their faults. Each fault is put into a copy of a base disk, a broker is started on
the copy, and the consequence is written as a line of golden/start/RELEASE-ROLE.jsonl. Existing lines aren't measured
again. Base disks are made once, and kept in golden/start/.

Needs Java 17, Maven, and what tests need. As root it runs brokers as another user, else files are never unreadable.
"""

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import golden_store as store
from start import classes, coverage, runs
from start.cells import COPIES, STOPS, Cell, disk_cells, partition_cells, put_fault, topics
from start.faults import NotApplicable
from start.nodes import ROLES, Node, give_away, node_beside, node_for
from start.rows import ROWS, base_path, key_of, read_rows, rows_path
from start.runs import Seen

LINES, LINE_SIZE, NAMES = 4, 180, 8
"""Most lines of a broker in a row, their length, and most names of files; further ones add no facts."""
REBUILT = "Could not find offset index file"
"""An error that doesn't keep a broker from starting."""
NUMBER = re.compile(r"\d+")


class Job(NamedTuple):
    """A cell to be measured, in a topic of its own if it is about a partition's file."""

    cell: Cell
    topic: str | None

    @property
    def topics(self) -> list[str]:
        """Topics that can have consequences."""
        return [self.topic] if self.topic else all_topics()


class Bench(NamedTuple):
    """A node, and base disks with the observations of a start on them.

    usual: files that any start changes or deletes.
    """

    node: Node
    stop: str
    archives: Mapping[str, Path]
    healthy: Seen
    usual: frozenset[str]


def main() -> int:
    """Run the command line; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--release", default="4.4.0", help="Kafka's release (%(default)s)")
    parser.add_argument("--role", choices=ROLES, default="combined", help="the node's role (%(default)s)")
    parser.add_argument("--only", choices=("partitions", "disk"), help="measure only files of these")
    parser.add_argument("--stop", choices=STOPS, help="measure only disks after this kind of stop")
    parser.add_argument("--match", default="", metavar="REGEX", help="measure only files and faults that match")
    parser.add_argument(
        "--sample", type=int, default=1, metavar="N", help="measure one in N cells, chosen by a fixed seed"
    )
    parser.add_argument("--count", action="store_true", help="measure nothing; count rows and cells without a row")
    arguments = parser.parse_args()
    if arguments.count:
        for line in coverage.table():
            print(*line, sep="\t")
        return 0
    cells = [cell for cell in wanted_cells(arguments.only) if re.search(arguments.match, f"{cell.file}: {cell.fault}")]
    chosen = sorted(random.Random(1).sample(range(len(cells)), len(cells) // arguments.sample))
    stops = [stop for stop in STOPS if arguments.stop in (None, stop)]
    with tempfile.TemporaryDirectory() as work:
        node = node_for(arguments.release, arguments.role, Path(work))
        measure(node, [cells[number] for number in chosen], stops)
    return 0


def wanted_cells(only: str | None) -> Iterator[Cell]:
    """Yield the cells of partitions, of the disk, or all."""
    if only != "disk":
        yield from partition_cells()
    if only != "partitions":
        yield from disk_cells()


def measure(node: Node, cells: list[Cell], stops: list[str]) -> None:
    """Measure missing rows, on the disks of all stops at the same time."""
    rows = rows_path(node.release, node.role)
    archives = {
        stop: {process.role: base_path(node.release, process.role, stop) for process in node.processes}
        for stop in STOPS
    }
    if not all(path.exists() for paths in archives.values() for path in paths.values()):
        runs.make_base(node, archives)
    runs.share_classes(node, archives["clean"])
    done = {key_of(row) for row in read_rows(rows)}

    def measure_missing(stop: str) -> None:
        missing = [cell for cell in cells if (*cell, stop) not in done]
        if missing:
            measure_stop(new_bench(node_beside(node, stop), stop, archives[stop]), missing, rows)

    with ThreadPoolExecutor() as pool:
        list(pool.map(measure_missing, stops))
    measured = read_rows(rows)
    print(f"{rows.name}: {len(measured)} rows", dict(Counter(row["class"] for row in measured)))
    store.write_manifest(ROWS.parent, store.read_cases(ROWS.parent))


def all_topics() -> list[str]:
    """Return all topics of the base disk."""
    return [topic for kind in COPIES for topic in topics(kind)]


def new_bench(node: Node, stop: str, archives: Mapping[str, Path]) -> Bench:
    """Start twice on a disk without faults: the first start shows where records begin."""
    offsets: dict[str, list[int]] = {topic: [] for topic in all_topics()}
    usual: set[str] = set()
    for _ in range(2):
        runs.unpack(node, archives)
        before = runs.digests(node.disk)
        seen = runs.start(node, offsets)
        assert seen.is_up, seen.said
        offsets = sought_offsets(seen)
        usual |= {path for path, digest in before.items() if seen.disk.get(path) != digest}
    return Bench(node, stop, archives, seen, frozenset(usual))


def sought_offsets(healthy: Seen) -> dict[str, list[int]]:
    """Return some offsets of each topic, spread over its log."""
    found = {}
    for topic, served in healthy.answers.served.items():
        offsets = sorted(served.records["read_uncommitted"])
        found[topic] = offsets[:: max(1, len(offsets) // 8)]
    return found


def measure_stop(bench: Bench, cells: list[Cell], rows: Path) -> None:
    """Measure cells on disks that were stopped in one way."""
    shared: list[Job] = []
    alone: list[Job] = []
    free: dict[str, list[str]] = {}
    for cell in cells:
        if cell.kind is None or is_rude(cell):
            alone.append(Job(cell, topics(cell.kind)[0] if cell.kind else None))
            continue
        names = free.get(cell.kind)
        if names == []:
            run_shared(bench, shared, rows)
            shared, free = [], {}
        free.setdefault(cell.kind, topics(cell.kind)[:-1])
        shared.append(Job(cell, free[cell.kind].pop()))
    run_shared(bench, shared, rows)
    for job in alone:
        run_shared(bench, [job], rows)


def is_rude(cell: Cell) -> bool:
    """Return True if a fault is likely to stop the broker, so that it gets a start of its own."""
    if cell.fault == "padded with zeros" and cell.file in ("last .log", "last .index"):
        return True
    return (
        cell.fault == "unreadable"
        or "second log directory" in cell.fault
        or cell.file in ("partition.metadata", "leader-epoch-checkpoint")
    )


def run_shared(bench: Bench, jobs: list[Job], rows: Path) -> None:
    """Start the broker once for several faults; again with fewer if it doesn't start, or if sound topics suffer."""
    node = bench.node
    runs.unpack(node, bench.archives)
    places = {}
    for job in jobs:
        with suppress(NotApplicable):
            places[job] = put_fault(job.cell, node.disk, job.topic).as_posix()
    there = list(places)
    if not there:
        return
    give_away(node.disk)
    before = runs.digests(node.disk)
    seen = runs.start(node, sought_offsets(bench.healthy))
    faulty = {job.topic for job in there}
    sound = () if None in faulty else (topic for topic in all_topics() if topic not in faulty)
    is_apart = seen.is_up and not any(classes.is_harmed(topic, seen, bench.healthy) for topic in sound)
    if is_apart or len(there) == 1:
        for job in there:
            row = row_of(bench, job, places[job], before, seen)
            write_row(rows, row if seen.is_up else {**row, "second": second_class(bench, job)})
        return
    said = "\n".join(line for line in seen.said if line.startswith("ERROR") and REBUILT not in line)
    blamed = [job for job in there if f"{job.topic}-0" in said]
    others = [job for job in there if job not in blamed]
    if not blamed or not others:
        blamed, others = there[::2], there[1::2]
        run_shared(bench, blamed, rows)
    else:
        for job in blamed:
            run_shared(bench, [job], rows)
    run_shared(bench, others, rows)


def second_class(bench: Bench, job: Job) -> str:
    """Return the consequence of another start on the disk that a refused start leaves."""
    seen = runs.start(bench.node, sought_offsets(bench.healthy))
    return classes.class_of(job.topics, seen, bench.healthy, is_touched=True)


def row_of(bench: Bench, job: Job, place: str, before: dict[str, str], seen: Seen) -> dict[str, Any]:
    """Return the row of a cell: the observations of its topic, or of all topics if it is about the whole disk."""
    own = {f"{job.topic}-0"}

    def is_own(path: str) -> bool:
        return job.topic is None or path.split("/")[0].split(".")[0] in own

    healthy = bench.healthy
    before = {path: digest for path, digest in before.items() if is_own(path)}
    after = {path: digest for path, digest in seen.disk.items() if is_own(path)}
    files = classes.became(before, after, bench.usual, place)
    said = [
        line for line in _new_lines(seen, healthy) if job.topic is None or not seen.is_up or f"{job.topic}-0" in line
    ]
    is_mended = before.get(place) != after.get(place) and after.get(place) == healthy.disk.get(place)
    is_touched = is_mended or bool(said) or bool(files.deleted) or place in {*files.rewritten} - bench.usual
    return {
        **_key(bench, job),
        "class": classes.class_of(job.topics, seen, healthy, is_touched=is_touched),
        "log": [_shorten(line, job) for line in said[:LINES]],
        "before": classes.counts(job.topics, healthy),
        "after": classes.counts(job.topics, seen),
        **{name: [_shorten(each, job) for each in paths[:NAMES]] for name, paths in files._asdict().items()},
    }


def _key(bench: Bench, job: Job) -> dict[str, Any]:
    return {**job.cell._asdict(), "stop": bench.stop, "role": bench.node.role, "release": bench.node.release}


def _new_lines(seen: Seen, healthy: Seen) -> list[str]:
    usual = {NUMBER.sub("0", line) for line in healthy.said}
    return [line for line in seen.said if NUMBER.sub("0", line) not in usual]


def _shorten(text: str, job: Job) -> str:
    return (text.replace(job.topic, "TOPIC") if job.topic else text)[:LINE_SIZE]


def write_row(rows: Path, row: dict[str, Any]) -> None:
    """Add a row, and print it."""
    rows.parent.mkdir(exist_ok=True)
    with rows.open("a") as file:
        file.write(json.dumps(row) + "\n")
    print(*(row[name] for name in ("stop", "kind", "file", "fault", "class")), sep="\t", flush=True)


if __name__ == "__main__":
    sys.exit(main())
