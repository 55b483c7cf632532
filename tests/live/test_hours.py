"""Hourly exports of a running broker's disks: each record that a run could read is in the table, once.

The broker writes, rolls, deletes, compacts and recreates topics all the while. Runs are killed, run concurrently, or
merge earlier runs' small files. The tables are Parquet files, and one of Delta and one of Iceberg. The expected rows
come from the producers' acknowledgements and the broker's own offsets. SEED and HOURS in the environment choose
another course; the seed is shown.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from tests.export.every_partition import TABLES
from tests.live.one_broker import OneBroker
from tests.live.sent_records import Owed, Sent, superseded_numbers
from tests.live.traffic import Traffic
from tests.log.real_broker import PATIENCE, new_broker

pytestmark = pytest.mark.kafka

HOURS = int(os.environ.get("HOURS", "20"))
CHECKED_EVERY = 25
MOST_SHOWN = 20
SMALL = {"internal.segment.bytes": "16384", "retention.ms": "-1"}
CLEANED = {"min.cleanable.dirty.ratio": "0.01", "segment.ms": "1500"}
TOPICS: dict[str, tuple[int, dict[str, str]]] = {
    "plain": (8, SMALL),
    "pay": (6, SMALL),
    "timed": (6, {**SMALL, "retention.ms": "6000", "segment.ms": "1500"}),
    "sized": (6, {**SMALL, "retention.bytes": "30000"}),
    "compacted": (6, {**SMALL, **CLEANED, "cleanup.policy": "compact"}),
    "both": (4, {**SMALL, **CLEANED, "cleanup.policy": "compact,delete", "retention.ms": "8000"}),
    "remade": (4, SMALL),
}
COMPACTED = {name for name, (_, settings) in TOPICS.items() if "compact" in settings.get("cleanup.policy", "")}
BROKER = {
    "auto.create.topics.enable": "false",
    "log.retention.check.interval.ms": 500,
    "log.flush.start.offset.checkpoint.interval.ms": 500,
    "log.cleaner.backoff.ms": 200,
}


EXPORTS = (
    ("parquet", "read_uncommitted", 1.0),
    ("parquet", "read_committed", 0.4),
    ("delta", "read_committed", 0.25),
    ("iceberg", "read_uncommitted", 0.25),
)
"""The exports, and their share of the hours."""
MERGED = 0.1
"""The share of the runs that merge small files."""

NEVER = ("unexplained", "lost", "hasLostMore", "disordered", "passedOver", "undecoded", "withoutTime", "remote")
"""Counts in a report that nothing here can cause."""


@dataclass
class Table:
    """A repeated export: the records that it owes, its runs' results, and the last successful report.

    share: of the hours in which it runs. seconds: how long the last one took. missed: the last reported count, None if
    a run may have committed since without a report. wrong: problems of the export.
    """

    destination: Path
    table_format: str
    isolation: str
    share: float
    owed: Owed
    ends: Counter[str] = field(default_factory=Counter)
    report: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 3.0
    missed: int | None = 0
    wrong: list[str] = field(default_factory=list)

    def rows(self) -> pa.Table:
        """Return the rows that a reader of the destination finds."""
        return TABLES[self.table_format](self.destination)

    @property
    def name(self) -> str:
        """A name that distinguishes it."""
        return f"{self.table_format}, {self.isolation}"


class Hours:
    """A running broker, and the exports of its disks."""

    def __init__(self, broker: OneBroker, traffic: Traffic, work: Path, seed: int) -> None:
        self.broker, self.traffic, self.random = broker, traffic, Random(seed)
        self.number = 0
        self.tables = [
            Table(work / f"{table_format}-{isolation}", table_format, isolation, share, _find_owed(traffic, isolation))
            for table_format, isolation, share in EXPORTS
        ]

    def hour(self) -> None:
        """Run an hour: its events, and the exports at its end."""
        self.number += 1
        if self.random.random() < 0.3:
            self.traffic.delete_records(self.random, self.random.choice(("plain", "pay", "remade")))
        if self.random.random() < 0.1:
            self.traffic.recreate("remade")
        due = [table for table in self.tables if self.random.random() < table.share]
        kinds = self.random.choices(("whole", "killed", "two"), (65, 20, 15), k=len(due))
        for table, kind in zip(due, kinds, strict=True):
            getattr(self, f"_{kind}")(table)
        self.traffic.require_success()

    def _whole(self, table: Table) -> None:
        self.run(table, 1)

    def _two(self, table: Table) -> None:
        self.run(table, 2)

    def _kill(self, table: Table) -> None:
        """Kill a run at some moment, alone or with the processes that it started."""
        with self._start(table) as process:
            try:
                process.communicate(timeout=self.random.uniform(0.1, table.seconds))
                table.ends["ended before it was killed"] += 1
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    self.random.choice((os.kill, os.killpg))(process.pid, signal.SIGKILL)
                process.communicate(timeout=PATIENCE)
                table.ends["killed"] += 1
        table.missed = None

    def run(self, table: Table, count: int) -> None:
        """Run `count` exports at once without disturbance; at least one must succeed."""
        before = self.traffic.bounds()
        begun = time.monotonic()
        processes = [self._start(table) for _ in range(count)]
        ended = []
        for process in processes:
            with process:
                stdout, stderr = process.communicate(timeout=PATIENCE)
                ended.append((process.returncode, stdout, stderr))
        table.seconds = time.monotonic() - begun
        after = self.traffic.bounds()
        if count > 1:
            table.missed = None
        for status, stdout, stderr in ended:
            self._judge(table, status, stdout, stderr)
        assert any(status in (0, 1) for status, _, _ in ended), ended
        table.missed = table.report[-1]["missed"] if count == 1 else None
        table.owed.add_run(before, after)

    def _judge(self, table: Table, status: int, stdout: str, stderr: str) -> None:
        """Check that a run succeeded with consistent accounts, or reported that another one was faster."""
        if status == 2:
            assert "another" in stderr, stderr
            table.ends["another was quicker"] += 1
            return
        assert stdout, stderr
        table.report = [json.loads(line) for line in stdout.splitlines()]
        *parts, summary = table.report
        wrong = [stderr] if stderr else []
        wrong += [str(part) for part in parts if part["type"] == "damage"]
        for part in parts:
            if part["type"] == "partition":
                odd = {name: part[name] for name in NEVER if part[name]}
                wrong += [f"{part['topic']}-{part['partition']}: {odd}"] if odd else []
        has_missed = summary["missed"] > (table.missed or 0)
        if (status == 1 and not has_missed) or (status == 0 and has_missed and table.missed is not None):
            wrong.append(f"status {status}, missed {summary['missed']} after {table.missed}")
        table.wrong += [f"hour {self.number}: {each}" for each in wrong]
        table.ends[f"status {status}"] += 1

    def _start(self, table: Table) -> "subprocess.Popen[str]":
        command = [sys.executable, "-m", "kseg", "export", *map(str, self.broker.disks), "--to", str(table.destination)]
        command += ["--isolation", table.isolation, "--format", table.table_format, "-o", "json"]
        if self.random.random() < MERGED:
            command.append("--merge-files")
            table.ends["with merging"] += 1
        return subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def check(self, table: Table) -> dict[str, int]:
        """Compare the table with the account; return counts."""
        sent = self.traffic.sent.all()
        owed = table.owed.numbers()
        found = Counter(number for number, _ in rows_of(table.rows()))
        wrong = [
            f"{row} instead of {row_of(sent[number]) if number in sent else None}"
            for number, row in rows_of(table.rows())
            if number not in sent or row != row_of(sent[number]) or not table.owed.is_wanted(sent[number])
        ]
        wrong += [f"twice: {sent[number]}" for number, count in found.items() if count > 1]
        wrong += [f"lacking: {sent[number]}" for number in sorted(owed - found.keys())]
        table.wrong += [f"hour {self.number}: {each}" for each in wrong]
        return {"sent": len(sent), "rows": len(found), "owed": len(owed)}

    def find_unnamed(self, table: Table) -> list[Sent]:
        """Return the records that neither the table nor the last report has."""
        sent = self.traffic.sent.all()
        found = {number for number, _ in rows_of(table.rows())}
        parts = {(part["topicId"], part["partition"]): part for part in table.report if part["type"] == "partition"}
        ids = self.traffic.topic_ids
        cleaned = superseded_numbers(record for record in sent.values() if record.log.topic in COMPACTED)
        lacking = [record for number, record in sent.items() if number not in found and table.owed.is_wanted(record)]
        return [
            record
            for record in lacking
            if record.number not in cleaned
            and not _names(parts.get((ids[record.log.topic, record.log.made], record.log.partition)), record.offset)
            and not (record.log.topic in COMPACTED and self.traffic.sent.is_committed(record) is False)
        ]


def _find_owed(traffic: Traffic, isolation: str) -> Owed:
    return Owed(traffic.sent, COMPACTED, is_committed_only=isolation == "read_committed")


def _names(part: dict[str, Any] | None, offset: int) -> bool:
    """Return True if a report has an offset as missed, before the first run, or deleted with its topic."""
    if part is None or (part["isGone"] and offset >= part["toOffset"]):
        return True
    return offset < part["fromOffset"] or any(first <= offset < end for first, end in part["missedOffsets"])


def row_of(record: Sent) -> tuple[Any, ...]:
    """Return the expected row of a record."""
    log = record.log
    return (log.topic, log.partition, record.offset, record.timestamp * 1000, record.key, record.value)


def rows_of(table: pa.Table) -> Iterator[tuple[int, tuple[Any, ...]]]:
    """Yield the rows of the test's own topics, with the numbers in their headers."""
    names = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
    columns = [table.column(name) for name in names]
    columns[3] = columns[3].cast(pa.int64())
    for *row, headers in zip(*(column.to_pylist() for column in columns), strict=True):
        if row[0] in TOPICS:
            yield int(headers[0]["value"]), tuple(row)


@pytest.fixture
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    """A running broker with two log directories."""
    second = tmp_path_factory.mktemp("disks") / "disk2"
    broker = new_broker(tmp_path_factory, BROKER, log_dirs=[second])
    with ExitStack() as running:
        running.enter_context(broker.running("hours"))
        yield OneBroker(broker, (broker.logs, second), 0, running)


def test_each_record_that_a_run_could_read_is_in_the_table_once(
    broker: OneBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("SEED") or time.time_ns() % 1_000_000)
    begun = time.monotonic()
    with capsys.disabled():
        print(f"\nSEED={seed} HOURS={HOURS}, {sum(count for count, _ in TOPICS.values())} partitions")  # noqa: T201
    traffic = Traffic(broker.server, TOPICS, seed)
    hours = Hours(broker, traffic, tmp_path, seed)
    traffic.start()
    try:
        for number in range(1, HOURS + 1):
            hours.hour()
            if number % CHECKED_EVERY == 0:
                for table in hours.tables:
                    if table.report:
                        hours.check(table)
    finally:
        traffic.stop()
    for table in hours.tables:
        hours.run(table, 1)
        counts = hours.check(table)
        with capsys.disabled():
            print(f"{table.name}: {counts}, missed {table.report[-1]['missed']}, {dict(table.ends)}")  # noqa: T201
        table.wrong += [f"not named: {record}" for record in hours.find_unnamed(table)]
    wrong = [f"{table.name}: {line}" for table in hours.tables for line in table.wrong]
    assert not wrong, "\n".join([f"{len(wrong)} in all", *wrong[:MOST_SHOWN]])
    with capsys.disabled():
        print(f"{time.monotonic() - begun:.0f} s")  # noqa: T201
