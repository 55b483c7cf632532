"""`kseg restore` next to Kafka's own producer test, which sends the same values: records per second to one broker.

python -m bench.restore [--only none] [--scale 1] [--repeat 5] [--memory] [--markdown PAGE]

Both send to new topics of the same broker, in turns; the first round warms up. Needs Java and Maven.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bench.datasets import MIB, DataSet, Segment, make_segment
from bench.machine import describe, kseg_version, load_average
from bench.peers import JVM_FLAGS, NO_LOGGING, class_path, fetch_jars
from bench.report import markdown_table
from bench.works import KSEG, PYTHON

RELEASE = "4.3.1"
PROBE, LOOP = (Path(__file__).with_name(name) for name in ("restore_probe.py", "restore_loop.py"))
VALUE = (170, 170)
PAYLOADS = 20_000
"""Values that the producer test chooses from."""
WARM_UP = 0.2
"""The part of the producer test's records before its steady state."""
MOST_MEMORY = 200 * MIB
"""The most memory of a restore, whatever the log's size."""


class Peer(NamedTuple):
    """Another way to write records to a topic: its name, and the function that returns its records per second."""

    name: str
    rate: Callable[["Target", "Case", Segment], float]


class Case(NamedTuple):
    """A log to restore, with its size in MiB and the number of partitions that are copies of it.

    goal: the least ratio to the peer.
    """

    name: str
    data_set: DataSet
    size: int
    peer: Peer
    goal: float
    partitions: int = 1


class Target(NamedTuple):
    """The broker, a new topic in it, and a directory for files."""

    bootstrap: str
    topic: str
    work: Path


class Sending(NamedTuple):
    """The figures of one restore.

    send, check, total: records per second while it sends, while it reads back, and from start to end.
    """

    send: float
    check: float
    total: float
    cpu_seconds: float
    peak_size: int


def by_perf_test(target: Target, case: Case, segment: Segment) -> float:
    """Return the better rate of Kafka's own tool: of all records, or of its steady state."""
    records = segment.records * case.partitions
    command = ["java", "-Xmx512M", *JVM_FLAGS[1:], *NO_LOGGING, "-cp", class_path(RELEASE)]
    command += ["org.apache.kafka.tools.ProducerPerformance", "--topic", target.topic, "--throughput", "-1"]
    command += ["--bootstrap-server", target.bootstrap, "--num-records", str(records)]
    command += ["--payload-file", str(_payloads(target.work, case, segment))]
    command += ["--warmup-records", str(int(WARM_UP * records)), "--command-property", "acks=all"]
    command += [f"compression.type={case.data_set.codec}"]
    printed = _output_of(command)
    rates = [line.split(" records/sec")[0].rsplit(" ", 1)[1] for line in printed.splitlines() if "99.9th" in line]
    assert rates, printed
    return max(map(float, rates))


def by_librdkafka(target: Target, case: Case, segment: Segment) -> float:
    """Return the rate of a Python loop over the records in memory."""
    where = (str(segment.partition()), target.bootstrap, target.topic, case.data_set.codec)
    return float(_output_of([PYTHON, str(LOOP), *where]))


PERF_TEST, LIBRDKAFKA = Peer("perf-test", by_perf_test), Peer("librdkafka", by_librdkafka)
CASES = (
    Case("none", DataSet("restore-none", value_sizes=VALUE), 512, PERF_TEST, 2),
    Case("lz4", DataSet("restore-lz4", codec="lz4", value_sizes=VALUE), 384, PERF_TEST, 1),
    Case("zstd", DataSet("restore-zstd", codec="zstd", value_sizes=VALUE), 256, PERF_TEST, 2),
    Case("one record per batch", DataSet("restore-single", batch_size=1, value_sizes=VALUE), 256, PERF_TEST, 1),
    Case("headers", DataSet("restore-headers", value_sizes=VALUE, header_count=5), 128, LIBRDKAFKA, 1.5),
    Case("8 partitions", DataSet("restore-none", value_sizes=VALUE), 64, PERF_TEST, 2, partitions=8),
    Case(
        "8 partitions, zstd", DataSet("restore-zstd", codec="zstd", value_sizes=VALUE), 64, PERF_TEST, 2, partitions=8
    ),
)
MEMORY_SIZES = (1024, 4096)


def _payloads(work: Path, case: Case, segment: Segment) -> Path:
    """Return a file of values from the log, one per line."""
    path = work / f"{case.data_set.name}.txt"
    if not path.exists():
        import kseg

        records = kseg.open(segment.partition()).records()
        values = (each.value for each, _ in zip(records, range(PAYLOADS), strict=False))
        path.write_bytes(b"\n".join(value for value in values if value))
    return path


def _output_of(command: Sequence[str]) -> str:
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout


def by_kseg(target: Target, source: Path) -> Sending:
    """Return the figures of a restore in a process of its own."""
    started = time.monotonic()
    found = json.loads(_output_of([PYTHON, str(PROBE), str(source), target.bootstrap, target.topic]))
    taken = time.monotonic() - started
    records = found["records"]
    rates = (records / seconds for seconds in (found["send"], found["check"], taken))
    return Sending(*rates, found["cpu_seconds"], found["peak_size"])


@contextmanager
def sources(segment: Segment, partitions: int) -> Iterator[Path]:
    """Make a log directory with some partitions of a topic, which are links to the same log."""
    with TemporaryDirectory(prefix="source-", dir=segment.path.parent) as root:
        for number in range(partitions):
            partition = Path(root) / f"topic-{number}"
            partition.mkdir()
            (partition / segment.path.name).hardlink_to(segment.path)
        yield Path(root)


class Topics:
    """New topics of a broker, deleted after use."""

    def __init__(self, bootstrap: str, work: Path) -> None:
        from confluent_kafka.admin import AdminClient

        self._admin = AdminClient({"bootstrap.servers": bootstrap})
        self._bootstrap, self._work, self._count = bootstrap, work, 0

    @contextmanager
    def new(self, partitions: int, *, is_made: bool) -> Iterator[Target]:
        """Yield a target with the name of a topic, which is made unless a restore makes it."""
        from confluent_kafka.admin import NewTopic

        self._count += 1
        name = f"topic-of-turn-{self._count}"
        if is_made:
            config = {"retention.ms": "-1"}
            self._admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(60)
        yield Target(self._bootstrap, name, self._work)
        self._admin.delete_topics([name])[name].result(60)
        os.sync()  # so that the writeback of one turn doesn't disturb the next one


def measure(case: Case, segment: Segment, topics: Topics, repeat: int) -> list[tuple[Sending, float]]:
    """Return kseg's rates and the peer's rate of each round."""
    rounds = []
    with sources(segment, case.partitions) as source:
        for number in range(repeat + 1):
            with topics.new(case.partitions, is_made=True) as target:
                theirs = case.peer.rate(target, case, segment)
            with topics.new(case.partitions, is_made=False) as target:
                ours = by_kseg(target, source)
            print(f"{case.name}: {ours.send:,.0f} : {theirs:,.0f} ({ours})", file=sys.stderr)
            rounds += [(ours, theirs)] if number else []
    return rounds


def row(case: Case, segment: Segment, rounds: list[tuple[Sending, float]]) -> tuple[str, ...]:
    """Return a line with medians; a ratio compares the turns of one round."""
    ratio = statistics.median(ours.send / theirs for ours, theirs in rounds)
    return (
        case.name,
        f"{segment.records * case.partitions / 1e6:.1f}",
        *(f"{statistics.median(getattr(ours, name) for ours, _ in rounds) / 1e3:,.0f}" for name in Sending._fields[:3]),
        f"{case.peer.name} {statistics.median(theirs for _, theirs in rounds) / 1e3:,.0f}",
        f"{ratio:.2f}",
        f"≥ {case.goal:g}",
        "yes" if ratio >= case.goal else "no",
        f"{statistics.median(ours.cpu_seconds for ours, _ in rounds):.1f}",
        f"{max(ours.peak_size for ours, _ in rounds) / MIB:.0f}",
    )


HEADINGS = (
    *("log", "million records", "kseg sends, k/s", "reads back, k/s", "all steps, k/s", "peer, k/s"),
    *("ratio", "goal", "reached", "kseg, CPU s", "kseg, MiB"),
)


def memory_row(size: int, topics: Topics) -> tuple[str, ...]:
    """Return the peak of a restore of so many MiB in one log."""
    segment = make_segment(DataSet(f"restore-{size}m", value_sizes=VALUE), size * MIB)
    with sources(segment, 1) as source, topics.new(1, is_made=False) as target:
        peak = by_kseg(target, source).peak_size
    return f"{size} MiB", f"{peak / MIB:.0f} MiB", f"≤ {MOST_MEMORY // MIB} MiB", "yes" if peak <= MOST_MEMORY else "no"


def page(options: argparse.Namespace) -> str:
    """Measure, and return the page."""
    fetch_jars(RELEASE)
    load = load_average()
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
    import peer_spark

    tables = []
    with TemporaryDirectory(prefix="kseg-bench-") as scratch:
        work = Path(scratch)
        (work / "broker").mkdir()
        with peer_spark.serving({}, work / "broker", peer_spark.AS_IN_PRODUCTION) as broker:
            topics = Topics(broker.bootstrap, work)
            rows: list[tuple[str, ...]] = []
            for case in CASES:
                if not options.only or case.name in options.only:
                    segment = make_segment(case.data_set, int(case.size * options.scale) * MIB)
                    rows.append(row(case, segment, measure(case, segment, topics, options.repeat)))
            tables.append(markdown_table(HEADINGS, rows))
            if options.memory:
                columns = ("log", "peak memory", "goal", "reached")
                tables.append(markdown_table(columns, [memory_row(size, topics) for size in MEMORY_SIZES]))
    command = f"Command: `python -m bench.restore {' '.join(sys.argv[1:])}`; medians of {options.repeat} rounds"
    facts = [f"Date: {datetime.now(UTC):%Y-%m-%d}", command, kseg_version(KSEG), *describe(), load]
    return f"# Benchmark of restore\n\n{chr(10).join(f'- {fact}' for fact in facts)}\n\n{(chr(10) * 2).join(tables)}\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", default=[], metavar="LOG", help="only this log; repeatable")
    parser.add_argument("--scale", type=float, default=1, help="multiple of the logs' sizes (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--memory", action="store_true", help="also restore logs of 1 and 4 GiB for their peak memory")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="also write the page there")
    options = parser.parse_args()
    text = page(options)
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
