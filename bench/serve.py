"""`kseg serve` beside a real broker that has the same files: how quickly clients read, and what the server uses.

python -m bench.serve [--size 1024] [--repeat 5] [--markdown PAGE]

Each client reads a partition of so many MiB from both, in turns; the first round warms up. Needs Java and Maven.
"""

import argparse
import os
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from bench.datasets import MIB, DataSet, Segment, make_segment
from bench.machine import describe, kseg_version, load_average
from bench.peers import class_path, fetch_jars
from bench.report import markdown_table
from bench.works import KSEG

RELEASE = "4.3.1"
TOPIC = "topic"
VALUE = (160, 160)
TICKS = os.sysconf("SC_CLK_TCK")
MOST_CPU = 0.5
"""The largest share of the broker's CPU seconds."""


@dataclass(frozen=True)
class Server:
    """A running server."""

    name: str
    bootstrap: str
    process_id: int

    def cpu_seconds(self) -> float:
        """Return user and system seconds of all threads."""
        fields = Path(f"/proc/{self.process_id}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def peak_mib(self) -> float:
        """Return the peak of resident memory."""
        status = Path(f"/proc/{self.process_id}/status").read_text()
        found = re.search(r"VmHWM:\s+(\d+)", status)
        assert found is not None
        return int(found[1]) / 1024


@dataclass(frozen=True)
class Reading:
    """The cost of a client's reading."""

    wall_seconds: float
    cpu_seconds: float
    """CPU seconds of the server."""


def by_perf_test(bootstrap: str, records: int) -> float:
    """Return the reading time that Kafka's own tool reports: without its start, but with joining a group."""
    tool = "org.apache.kafka.tools.ConsumerPerformance"
    command = ["java", "-Xmx512m", "-cp", class_path(RELEASE), tool, "--bootstrap-server", bootstrap]
    command += ["--topic", TOPIC, "--num-records", str(records), "--timeout", "60000"]
    printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    header, figures = (line.split(", ") for line in printed.splitlines()[-2:])
    found = dict(zip((name.strip() for name in header), figures, strict=True))
    assert int(found["data.consumed.in.nMsg"]) >= records, printed
    return int(found["fetch.time.ms"]) / 1000


def by_confluent(bootstrap: str, records: int) -> float:
    """Return the seconds from the assignment to the last record."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "bench", "enable.auto.commit": False})
    started = time.monotonic()
    consumer.assign([TopicPartition(TOPIC, 0, OFFSET_BEGINNING)])
    left = records
    while left > 0:
        left -= len(consumer.consume(min(left, 10_000), 60))
    taken = time.monotonic() - started
    consumer.close()
    return taken


def by_kcat(bootstrap: str, records: int) -> float:
    """Return the seconds of the program, which is a thin layer over librdkafka."""
    command = ["kcat", "-b", bootstrap, "-C", "-t", TOPIC, "-p", "0", "-o", "beginning", "-c", str(records), "-f", ""]
    started = time.monotonic()
    subprocess.run([*command, "-q", "-X", "enable.partition.eof=false"], check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - started


CLIENTS: dict[str, Callable[[str, int], float]] = {
    "kafka-consumer-perf-test": by_perf_test,
    "confluent-kafka": by_confluent,
    "kcat": by_kcat,
}


@contextmanager
def kseg_server(directory: Path) -> Iterator[Server]:
    """Run `kseg serve`, the measured server."""
    command = [KSEG, "serve", directory, "-q", "--listen", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield Server("kseg", process.stdout.readline().strip(), process.pid)
        finally:
            process.terminate()


@contextmanager
def broker_server(segment: Segment, work: Path) -> Iterator[Server]:
    """Run a broker, the peer."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tools"))
    import peer_spark

    work.mkdir()
    with peer_spark.serving({TOPIC: [segment.partition()]}, work, peer_spark.AS_IN_PRODUCTION) as broker:
        yield Server("broker", broker.bootstrap, broker.process_id)


def measured(servers: list[Server], records: int, repeat: int) -> dict[tuple[str, str], list[Reading]]:
    """Return readings by client and server; in each round, every client reads from all servers."""
    readings: dict[tuple[str, str], list[Reading]] = {}
    for number in range(repeat + 1):
        for client, read in CLIENTS.items():
            for server in servers:
                before = server.cpu_seconds()
                taken = read(server.bootstrap, records)
                if number:
                    reading = Reading(taken, server.cpu_seconds() - before)
                    readings.setdefault((client, server.name), []).append(reading)
    return readings


def rows(readings: dict[tuple[str, str], list[Reading]], size: int) -> Iterator[tuple[str, ...]]:
    """Yield a line with medians for each client; a ratio compares readings of one round."""
    yield "client", "kseg, MiB/s", "broker, MiB/s", "ratio", "kseg, CPU s", "broker, CPU s", "ratio", "reached"
    for client in CLIENTS:
        ours, theirs = readings[client, "kseg"], readings[client, "broker"]
        pairs = list(zip(ours, theirs, strict=True))
        speed = statistics.median(second.wall_seconds / first.wall_seconds for first, second in pairs)
        cpu = statistics.median(first.cpu_seconds / second.cpu_seconds for first, second in pairs)
        rates = [size / MIB / statistics.median(each.wall_seconds for each in each_of) for each_of in (ours, theirs)]
        used = [statistics.median(each.cpu_seconds for each in each_of) for each_of in (ours, theirs)]
        reached = "yes" if speed >= 1 and cpu <= MOST_CPU else "no"
        yield (
            client,
            *(f"{rate:.0f}" for rate in rates),
            f"{speed:.2f}",
            *(f"{seconds:.2f}" for seconds in used),
            f"{cpu:.2f}",
            reached,
        )


def page(options: argparse.Namespace) -> str:
    """Measure, and return the page."""
    fetch_jars(RELEASE)
    segment = make_segment(DataSet("gibibyte", value_sizes=VALUE), options.size * MIB)
    load = load_average()
    with (
        TemporaryDirectory(prefix="kseg-bench-") as scratch,
        broker_server(segment, Path(scratch) / "broker") as broker,
        kseg_server(segment.partition()) as ours,
    ):
        table = list(rows(measured([ours, broker], segment.records, options.repeat), segment.size))
        peaks = f"Memory at most: kseg {ours.peak_mib():.0f} MiB, the broker {broker.peak_mib():.0f} MiB"
    lines = markdown_table(table[0], table[1:])
    size = f"{segment.size / MIB:.0f} MiB, {segment.records:,} records, medians of {options.repeat} rounds"
    command = f"Command: `python -m bench.serve --size {options.size} --repeat {options.repeat}`"
    facts = [f"Date: {datetime.now(UTC):%Y-%m-%d}", command, kseg_version(KSEG), *describe(), load, size, peaks]
    return f"# Benchmark of serve\n\n{chr(10).join(f'- {fact}' for fact in facts)}\n\n{lines}\n"


def main() -> None:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=1024, help="MiB of the partition (default %(default)s)")
    parser.add_argument("--repeat", type=int, default=5, help="repetitions (default %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="PAGE", help="also write the page there")
    options = parser.parse_args()
    text = page(options)
    print(text)
    if options.markdown is not None:
        options.markdown.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
