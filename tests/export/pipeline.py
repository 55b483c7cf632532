"""A nightly pipeline for a month: exports of ten topics on two brokers, with accidents: `make test-pipeline`.

Each night, topics grow, roll, are compacted or lose old segments; at times their schemas change. After each night, the
libraries of the tables' formats, DuckDB and Polars read the tables, whose rows must be those of the topics' model.
"""

import argparse
import json
import os
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Any, NamedTuple

from tests import run
from tests.export import pipeline_topics as model
from tests.export.debezium import Database
from tests.export.pipeline_topics import Fields, Key, Log, Made, Topic
from tests.export.test_lake import READERS
from tests.fork_server import Forked, fork_process

APPEARS, DAMAGED, DECAYED, FULL, RECREATED, SKIPPED, DOUBLE = 7, 10, 11, 13, 15, (17, 18, 19), 20
"""Nights: a topic appears; new records are damaged, then exported ones; the disk is full; a topic is recreated; no job
runs; each job runs twice at once."""
KILLED = 0.1
"""The share of the jobs that are killed at some time, and run again."""
FULL_SIZES = (1000, 3000, 10_000)
"""Largest sizes of a file, at which the disk is full."""
CUSTOMERS = "srv.customers"
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
PATIENCE = 300
MOST_SHOWN = 3


class Job(NamedTuple):
    """An export of each night: its topics, and its options."""

    topics: tuple[str, ...]
    table_format: str
    options: tuple[str, ...]


PROTOBUF = ("--value-decoder", "protobuf", "--schema", "trip.set", "--message", "shop.Trip")
JOBS = (
    Job(
        ("clicks", "devices", "sessions", "metrics"),
        "parquet",
        ("--partition-by", "topic,dt", "--batch-columns", "--merge-files", "--allow-missing"),
    ),
    Job(("orders",), "delta", ("--value-decoder", "json", "--schema", "orders.json", "--flatten")),
    Job(("payments",), "iceberg", ("--value-decoder", "avro", "--schema-registry", "b1/_schemas-0")),
    Job(("trips",), "delta", (*PROTOBUF, "--partition-by", "dt", "--sort-by", "timestamp")),
    Job(("profiles",), "parquet", ("--value-decoder", "json", "--dead-letter", "dead")),
    Job(("transfers",), "iceberg", ("--isolation", "read_committed")),
    Job((CUSTOMERS,), "delta", ("--unwrap", "debezium")),
)
LEAVE_RAW = ("--on-mismatch", "raw", "--max-undecoded", "100%")
"""Options of payments from the night on when their schema no longer fits the table."""


class Pipeline:
    """The brokers' directories, the topics, and the rows that their tables must have.

    losing: topics of which the next run must report losses. counts: nights, runs, kills, rows and differences.
    """

    def __init__(self, folder: Path, seed: int, records: int) -> None:
        self.folder, self.records, self.random = folder, records, Random(seed)
        brokers = [folder / "b1", folder / "b2"]
        for broker in brokers:
            broker.mkdir()
        makers: dict[str, tuple[model.Make, dict[str, Any]]] = {
            "clicks": (model.text, {}),
            "devices": (model.text, {}),
            "sessions": (model.text, {"first": APPEARS}),
            "metrics": (model.metric, {"retention": 1}),
            "orders": (model.order, {}),
            "payments": (model.Payments(brokers[0]), {}),
            "trips": (model.trip, {}),
            "profiles": (model.profile, {"is_compacted": True}),
            "transfers": (model.text, {"is_transactional": True}),
        }
        self.topics = {name: Topic(name, make, brokers, self.random, **more) for name, (make, more) in makers.items()}
        self.database = Database(seed)
        self.database.snapshot(records)
        self.wanted: dict[str, dict[Key, Made]] = {name: {} for name in self.topics}
        self.losing: set[str] = set()
        self.counts: Counter[str] = Counter()

    # --- days ---

    def spend_day(self, night: int) -> None:
        """Let producers and brokers work for a day, and damage happen."""
        for topic in self._existing(night):
            if night == topic.first or (night == RECREATED and topic.name == "devices"):
                topic.create()
            before = topic.readable().keys()
            topic.spend_day(night, self.records)
            if not topic.is_compacted and before - topic.readable().keys() - self.wanted[topic.name].keys():
                self.losing.add(topic.name)
        self.database.change(self.records)
        self.database.write(self.folder / "b1")
        (self.folder / "orders.json").write_text(json.dumps(model.order_schema(night)), encoding="utf-8")
        (self.folder / "trip.set").write_bytes(model.trip_descriptors(night).SerializeToString())
        if night == DAMAGED:
            self._damage_new_records()
        if night == DECAYED:
            self._damage_exported_records()

    def _existing(self, night: int) -> Iterator[Topic]:
        return (topic for topic in self.topics.values() if night >= topic.first)

    def _damage_new_records(self) -> None:
        """Damage new batches: the second broker has those of one partition, and none has those of the other."""
        for name in ("clicks", "orders", "payments"):
            saved, lost = self.topics[name].logs
            saved.flip_bit(-2, saved.places[:1])
            batch = lost.flip_bit(-2, lost.places)
            lost.lost.update(range(batch.base_offset, batch.next_offset))
            self.losing.add(name)
        whole: Log = self.topics["metrics"].logs[0]
        cut = whole.places[0] / f"{whole.bases[-1]:020}.log"
        os.truncate(cut, cut.stat().st_size * 2 // 3)
        zeroed = whole.places[1] / cut.name
        zeroed.write_bytes(zeroed.read_bytes() + bytes(4096))

    def _damage_exported_records(self) -> None:
        """Damage a batch that is in the table, on both brokers."""
        for name in ("clicks", "orders", "payments", "trips", "profiles", "transfers"):
            log, rows = self.topics[name].logs[0], self.wanted[name]
            keys = [(log.topic_id, log.number, batch.base_offset) for batch in log.active]
            for place in [place for place, key in enumerate(keys) if key in rows][:1]:
                log.flip_bit(place, log.places)

    # --- nights ---

    def spend_night(self, night: int) -> None:
        """Run all jobs; before some of them, an accident happens to another run of the same job."""
        for job in JOBS:
            command = self._command(job)
            wanted = {int(bool(self.losing & {*job.topics}))}
            if night == FULL:
                self._run(command, {0, 2}, {resource.RLIMIT_FSIZE: self.random.choice(FULL_SIZES)})
            elif night == DOUBLE:
                self._run_twice(command)
                wanted |= {0}
            elif self.random.random() < KILLED:
                self._kill(command)
                wanted |= {0}
            if job.topics == ("payments",) and night >= model.OTHER_TYPE:
                if night == model.OTHER_TYPE:
                    self._run(command, {2})
                command += LEAVE_RAW
            self._run(command, wanted)
            self.losing -= {*job.topics}
            for topic in self._existing(night):
                if topic.name in job.topics:
                    self.wanted[topic.name] |= topic.readable()

    def _command(self, job: Job) -> list[str]:
        topics = [part for name in job.topics for part in ("--topic", name)]
        return ["export", "b1", "b2", "lake/{topic}", *topics, "--format", job.table_format, *job.options]

    def _run(self, command: list[str], statuses: set[int], limits: Mapping[int, int] | None = None) -> None:
        """Run a job. Its status must be one of these, and standard error must explain each status but 0."""
        ended = run.process(command, self.folder, limits=limits, with_arrow=True)
        self.counts["runs"] += 1
        if ended.status not in statuses or bool(ended.stderr) != bool(ended.status):
            self._report(f"{run.command(command)}: status {ended.status}, not {statuses}: {ended.stderr.decode()}")

    @contextmanager
    def _start(self, command: list[str]) -> Iterator[Forked]:
        with TemporaryFile() as output, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), output.fileno(), output.fileno())
            with fork_process(command, self.folder, streams, with_arrow=True) as process:
                yield process

    def _run_twice(self, command: list[str]) -> None:
        with self._start(command) as one, self._start(command) as other:
            statuses = [one.poll(PATIENCE), other.poll(PATIENCE)]
        if not {*statuses} <= {0, 1, 2}:  # of several tables, each may lose some to the other
            self._report(f"{run.command(command)}: two at once end with {statuses}")

    def _kill(self, command: list[str]) -> None:
        with self._start(command) as process:
            if process.poll(self.random.uniform(0.05, 2)) is None:
                with suppress(ProcessLookupError):
                    self.random.choice((os.kill, os.killpg))(process.pid, signal.SIGKILL)
                process.poll(PATIENCE)
                self.counts["kills"] += 1

    # --- tables ---

    def check(self, night: int, *, by_all: bool) -> None:
        """Read all tables, by one reader each or by all, and compare them with the model."""
        for job in JOBS:
            readers = READERS[job.table_format]
            for reader in readers if by_all else [[*readers][night % len(readers)]]:
                for name in job.topics:
                    if name == CUSTOMERS or night >= self.topics[name].first:
                        rows = readers[reader](self.folder / "lake" / name).to_pylist()
                        self.counts["rows"] += len(rows)
                        where = f"night {night}: {name} read by {reader}"
                        if name == CUSTOMERS:
                            self._compare_customers(where, rows)
                        else:
                            self._compare(where, name, rows)

    def _compare_customers(self, where: str, rows: list[Fields]) -> None:
        names = ["id", *self.database.columns]
        found = sorted([row[name] for name in names] for row in rows)
        wanted = [[row[name] for name in names] for row in self.database.expected()]
        self._count(where, "wrong", [(*one, *other) for one, other in zip(found, wanted, strict=False) if one != other])
        self._count(where, "lost", range(len(found), len(wanted)))
        self._count(where, "doubled", range(len(wanted), len(found)))

    def _compare(self, where: str, name: str, rows: list[Fields]) -> None:
        wanted, own = self.wanted[name], self.topics[name].logs[0].topic_id
        by_key = [((row.get("topicId") or own, row["partition"], row["offset"]), row) for row in rows]
        found = Counter(key for key, _ in by_key)
        self._count(where, "lost", wanted.keys() - found.keys())
        self._count(where, "doubled", [key for key, count in found.items() if count > 1 or key not in wanted])
        differences = [(key, *_differences(row, wanted[key])) for key, row in by_key if key in wanted]
        self._count(where, "wrong", [each for each in differences if len(each) > 1])

    def _count(self, where: str, what: str, found: Iterable[Any]) -> None:
        places = sorted(found)
        self.counts[what] += len(places)
        if places:
            self._report(f"{where}: {len(places)} {what}, such as {places[:MOST_SHOWN]}")

    def _report(self, line: str) -> None:
        self.counts["problems"] += 1
        _say(line)


def _differences(row: Fields, made: Made) -> Iterator[str]:
    record, decoded = made.record, row if row.get("valueDecoded") is None else {**row, **_fields(row["valueDecoded"])}
    headers = [(header["key"], header["value"]) for header in row["headers"]]
    wanted = {"key": record.key, "value": record.value, "timestamp": record.timestamp, **made.fields}
    for name, value in wanted.items():
        own = decoded.get(name)
        if isinstance(own, datetime):
            own = (own.astimezone(UTC) - EPOCH) // timedelta(milliseconds=1)
        if own != value:
            yield f"{name} is {own!r}, not {value!r}"
    if headers != [*record.headers]:
        yield f"headers are {headers}"


def _fields(decoded: Fields | str) -> Fields:
    """Return the fields of a decoded value as columns; of text, the column itself."""
    return {"valueDecoded": decoded} if isinstance(decoded, str) else decoded


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> int:
    """Run the pipeline, and print its figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--records", type=int, default=100, help="about half of a day's records of a partition")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        pipeline = Pipeline(Path(folder), given.seed, given.records)
        for night in range(1, given.days + 1):
            pipeline.spend_day(night)
            if night not in SKIPPED:
                pipeline.spend_night(night)
                pipeline.check(night, by_all=night == given.days)
        counts = pipeline.counts
    names = ("runs", "kills", "rows", "lost", "doubled", "wrong", "problems")
    _say(f"seed {given.seed}: {given.days} days, {', '.join(f'{counts[name]} {name}' for name in names)}")
    return int(counts["problems"] > 0)


if __name__ == "__main__":
    sys.exit(main())
