"""Tables of growing logs in all formats and forms, continued and killed at random: every reader finds each row once.

All golden partitions, and a topic with a schema, grow between the runs. After its last run, a table is read by the
libraries of its format, DuckDB and Polars, and its rows are compared with those of independent readers of the logs.
STEPS and SEED in the environment choose another course; the seed is shown.
"""

import itertools
import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from tempfile import TemporaryFile
from typing import Any

import duckdb
import mmh3
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from tests import run
from tests.export import every_partition
from tests.export.every_partition import Key, Row
from tests.export.growing_logs import FIELD_NAMES, ORDERS, SCHEMA, GrowingLogs, write_orders
from tests.fork_server import fork_process

pytestmark = pytest.mark.lake

STEPS = int(os.environ.get("STEPS", "200"))
FORMATS = ("parquet", "delta", "iceberg")
COLUMNS: dict[str, tuple[str, ...]] = {
    "raw": (),
    "text": ("--value-decoder", "json"),
    "typed": ("--value-decoder", "json", "--schema", "../schema.json", "--topic", ORDERS),
    "flat": ("--value-decoder", "json", "--schema", "../schema.json", "--topic", ORDERS, "--flatten", "--drop", "raw"),
}
"""Options of the columns of a table. With a schema, the table has only the topic of that schema."""
FIELDS = ("topic", "topic,dt", "hour", "bucket(4)", "field")
"""Partitions; `field` stands for one of the value, and needs a schema."""
ORDERS_OF_ROWS = ((), ("--sort-by", "offset"), ("--sort-by", "key,offset"), ("--sort-by", "timestamp"))
SIZES = ((), ("--target-file-size", "64KiB", "--row-group-size", "16KiB"))
KILLED = 0.25
"""The share of the runs that are killed."""
PATIENCE = 300
MOST_SHOWN = 5


@dataclass
class Table:
    """A table of growing logs: its form, and what was found.

    counts: runs, kills, rows, readers and so on. seconds: how long the last run took. wrong: what mustn't be.
    """

    folder: Path
    table_format: str
    columns: str
    partition_by: str
    chance: Random
    logs: GrowingLogs
    counts: Counter[str] = field(default_factory=Counter)
    seconds: float = 1.0
    wrong: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        chance, has_value = self.chance, self.columns != "raw"
        self.isolation = chance.choice(every_partition.ISOLATIONS)
        self.has_letters = has_value and chance.random() < 0.6
        self.is_per_topic = chance.random() < 0.3
        value = "country" if self.columns == "flat" else "value.country"
        self.options = [
            *("--format", self.table_format, *COLUMNS[self.columns], "--isolation", self.isolation),
            *("--partition-by", self.partition_by.replace("field", value), *chance.choice(ORDERS_OF_ROWS)),
            *chance.choice(SIZES),
            *(("--max-undecoded", "100%") if has_value else ()),
            *(("--dead-letter", "dead") if self.has_letters else ()),
        ]

    @property
    def name(self) -> str:
        """The form of the table, as options."""
        return " ".join(self.options)

    # --- runs ---

    def go(self, runs: int) -> None:
        """Grow and run some times; the last run isn't killed."""
        for left in range(runs, 0, -1):
            self.logs.grow(left)
            if not any(self.logs.directory.iterdir()):
                continue
            if left > 1 and self.chance.random() < KILLED * runs / (runs - 1):
                self._kill()
            else:
                self._run()
        self._check_idle()

    def _command(self) -> list[str]:
        chance = self.chance
        return [
            *("export", "logs", "--to", "out/{topic}" if self.is_per_topic else "out", *self.options, "-o", "json"),
            *("-j", chance.choice("112"), *(("--merge-files",) if chance.random() < 0.25 else ())),
            *(("--verify", "full") if chance.random() < 0.1 else ()),
            "--allow-missing",
        ]

    def _run(self) -> list[dict[str, Any]]:
        command, begun = self._command(), time.monotonic()
        ended = run.kseg(command, self.folder)
        self.seconds = time.monotonic() - begun
        self.counts["steps"] += 1
        lines = [json.loads(line) for line in ended.stdout.splitlines()]
        if ended.status not in (0, 1) or (ended.stderr and b"\n" in ended.stderr.strip()):
            self.wrong.append(f"{run.command(command)}: status {ended.status}: {ended.stderr.decode()}")
        for line in lines:
            if line.get("unexplained"):
                self.wrong.append(f"{run.command(command)}: unexplained: {line}")
        return lines

    def _kill(self) -> None:
        self.counts["steps"] += 1
        with TemporaryFile() as output, Path(os.devnull).open("rb") as nothing:
            streams = (nothing.fileno(), output.fileno(), output.fileno())
            with fork_process(self._command(), self.folder, streams, with_arrow=True) as process:
                if process.poll(self.chance.uniform(0.01, self.seconds)) is None:
                    with suppress(ProcessLookupError):
                        self.chance.choice((os.kill, os.killpg))(process.pid, signal.SIGKILL)
                    process.poll(PATIENCE)
                    self.counts["kills"] += 1

    def _check_idle(self) -> None:
        """Check that another run has nothing to add."""
        before = self._row_count()
        self._run()
        if self._row_count() != before:
            self.wrong.append(f"{before} rows, and {self._row_count()} after a run without new records")

    # --- reading ---

    def _places(self) -> list[Path]:
        """Return the tables that have rows."""
        out = self.folder / "out"
        places = sorted(out.iterdir()) if self.is_per_topic else [out]
        return [place for place in places if any(place.rglob("*.parquet"))]

    def _row_count(self) -> int:
        return sum(every_partition.TABLES[self.table_format](place).num_rows for place in self._places())

    def check(self) -> None:
        """Read the whole table by every reader, and compare it with the logs."""
        for reader, read in READERS[self.table_format].items():
            try:
                tables = [read(place) for place in self._places()]
            except Exception as error:  # noqa: BLE001 - whatever a reader raises is a finding with the table's name
                self.wrong.append(f"{reader}: {type(error).__name__}: {error}")
                continue
            self.counts["readers"] += 1
            for table in tables:
                self._check_partition_columns(reader, table)
            rows = [row for table in tables for row in table.to_pylist()]
            self._check_rows(reader, rows)
        if self.has_letters:
            self._check_letters()

    def _check_rows(self, reader: str, rows: list[dict[str, Any]]) -> None:
        found: dict[Key, list[dict[str, Any]]] = {}
        for row in rows:
            found.setdefault((row["topic"], row["partition"]), []).append(row)
        wanted = dict(self.logs.rows(self.isolation, ORDERS if "--schema" in self.options else None))
        for key in found.keys() | wanted.keys():
            own, expected = found.get(key, []), wanted.get(key, [])
            self.counts["rows"] += len(own)
            counted = Counter(row["offset"] for row in own)
            offsets = {row[0] for row in expected}
            self._count(reader, key, "lost", offsets - counted.keys())
            self._count(reader, key, "added", counted.keys() - offsets)
            self._count(reader, key, "doubled", {offset for offset, count in counted.items() if count > 1})
            by_offset = {row["offset"]: row for row in own}
            different = {row[0] for row in expected if row[0] in by_offset and not self._is(by_offset[row[0]], row)}
            self._count(reader, key, "wrong", different)

    def _count(self, reader: str, key: Key, what: str, offsets: set[int]) -> None:
        self.counts[what] += len(offsets)
        if offsets:
            self.wrong.append(f"{reader}: {key}: {len(offsets)} {what}: {sorted(offsets)[:MOST_SHOWN]}")

    def _is(self, row: dict[str, Any], expected: Row) -> bool:
        _, microseconds, key, value, headers = expected
        pairs = tuple((header["key"], header["value"]) for header in row["headers"])
        if (_microseconds(row["timestamp"]), row["key"], pairs) != (microseconds, key, headers):
            return False
        if self.columns != "flat" and row["value"] != value:
            return False
        if self.columns in ("typed", "flat"):
            decoded = row if self.columns == "flat" else row["valueDecoded"] or _order(None)
            return {name: decoded[name] for name in FIELD_NAMES} == _order(value)
        return True

    def _check_partition_columns(self, reader: str, table: pa.Table) -> None:
        """Check the values of columns of partitions, which a format of its own transforms doesn't have."""
        derive = DERIVED.get(self.partition_by)
        if derive is None or self.table_format == "iceberg":
            return
        name = self.partition_by.rpartition(",")[2].partition("(")[0]
        if self.partition_by == "field":
            name = "country"
        for row in table.to_pylist():
            if str(row[name]) != str(derive(row)):
                self.wrong.append(f"{reader}: {name} is {row[name]} at {row['offset']}, not {derive(row)}")
                break

    def _check_letters(self) -> None:
        """Check that the dead letters are the records whose values are null only when they are decoded."""
        wanted: set[tuple[Any, ...]] = set()
        for place in self._places():
            for row in every_partition.TABLES[self.table_format](place).to_pylist():
                if self._is_undecoded(row):
                    wanted.add((row["topic"], row["partition"], row["offset"]))
        dead = self.folder / "dead"
        letters = pq.read_table(dead).select(["topic", "partition", "offset"]).to_pylist() if dead.exists() else []
        found = Counter(tuple(row.values()) for row in letters)
        self.counts["letters"] += len(letters)
        if set(found) != wanted or len(letters) != len(found):
            both = len(found.keys() & wanted)
            self.wrong.append(f"{len(letters)} dead letters of {len(found)} records, not {len(wanted)}; {both} in both")

    def _is_undecoded(self, row: dict[str, Any]) -> bool:
        if self.columns == "flat":
            (value,) = (
                each[3]
                for key, rows in self.logs.rows(self.isolation, ORDERS)
                if key == (row["topic"], row["partition"])
                for each in rows
                if each[0] == row["offset"]
            )
            return value is not None and _order(value)["id"] is None
        return row["value"] is not None and row["valueDecoded"] is None


def _order(value: bytes | None) -> dict[str, Any]:
    """Return an order, with a null for each field if it doesn't decode."""
    nothing: dict[str, Any] = dict.fromkeys(FIELD_NAMES)
    if value is None:
        return nothing
    try:
        order = json.loads(value)
    except ValueError:
        return nothing
    return order if isinstance(order, dict) and isinstance(order["id"], int) else nothing


def _microseconds(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    return (moment.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)


def _bucket(row: dict[str, Any]) -> int | None:
    return None if row["key"] is None else (mmh3.hash(row["key"]) & 0x7FFFFFFF) % 4


def _day(row: dict[str, Any], form: str = "%Y-%m-%d") -> str | None:
    return None if row["timestamp"] is None else row["timestamp"].astimezone(UTC).strftime(form)


DERIVED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "topic,dt": _day,
    "hour": lambda row: _day(row, "%Y-%m-%d-%H"),
    "bucket(4)": _bucket,
}
"""Functions that derive a column of a partition from the row's other columns."""


# --- readers ----------------------------------------------------------------------------------------------------------


def _duckdb(files: list[str], *, has_folders: bool) -> pa.Table:
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        query = f"SELECT * FROM read_parquet($files, union_by_name = true, hive_partitioning = {has_folders})"
        return connection.sql(query, params={"files": files}).to_arrow_table()


def _delta_files(place: Path) -> list[str]:
    from deltalake import DeltaTable

    return list(DeltaTable(str(place)).file_uris())


def _iceberg_table(place: Path) -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    catalog = SqlCatalog("kseg", uri=f"sqlite:///{place / 'catalog.db'}", warehouse=str(place))
    (name,) = catalog.list_tables("kafka")
    return catalog.load_table(name)


def _iceberg_by_duckdb(place: Path) -> pa.Table:
    files = [task.file.file_path.removeprefix("file://") for task in _iceberg_table(place).scan().plan_files()]
    return _duckdb(files, has_folders=False)


READERS: dict[str, dict[str, Callable[[Path], pa.Table]]] = {
    "parquet": {
        "pyarrow": every_partition.TABLES["parquet"],
        "duckdb": lambda place: _duckdb([str(place / "**/*.parquet")], has_folders=True),
        "polars": lambda place: pl.scan_parquet(place / "**/*.parquet", hive_partitioning=True).collect().to_arrow(),
    },
    "delta": {
        "deltalake": every_partition.TABLES["delta"],
        "duckdb": lambda place: _duckdb(_delta_files(place), has_folders=True),
        "polars": lambda place: pl.scan_delta(str(place)).collect().to_arrow(),
    },
    "iceberg": {
        "pyiceberg": every_partition.TABLES["iceberg"],
        "duckdb": _iceberg_by_duckdb,
        "polars": lambda place: pl.scan_iceberg(_iceberg_table(place)).collect().to_arrow(),
    },
}


# --- the test ---------------------------------------------------------------------------------------------------------


def new_tables(table_format: str, work: Path, chance: Random) -> Iterator[Table]:
    """Yield a table of each form; those without a schema have all golden partitions together."""
    (work / "links").mkdir()
    links = list(every_partition.link_partitions(work / "links").items())
    (work / "schema.json").write_text(json.dumps(SCHEMA), encoding="utf-8")
    sound = [(key, path) for key, path in links if not every_partition.is_damaged(path)]
    chance.shuffle(sound)
    forms = [form for form in itertools.product(COLUMNS, FIELDS) if form[1] != "field" or form[0] in ("typed", "flat")]
    shares = sum("--schema" not in COLUMNS[columns] for columns, _ in forms)
    chance.shuffle(forms)
    share = 0
    for number, (columns, partition_by) in enumerate(forms):
        folder = work / str(number)
        folder.mkdir()
        sources = write_orders(folder / "made", chance)
        if "--schema" not in COLUMNS[columns]:
            sources |= dict(sound[share::shares])
            share += 1
        yield Table(folder, table_format, columns, partition_by, chance, GrowingLogs(folder / "logs", sources, chance))


@pytest.mark.parametrize("table_format", FORMATS)
def test_every_reader_finds_each_row_once(
    table_format: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    seed = int(os.environ.get("SEED") or time.time_ns() % 1_000_000)
    chance = Random(f"{table_format} {seed}")
    counts: Counter[str] = Counter()
    wrong = []
    tables = list(new_tables(table_format, tmp_path, chance))
    runs = max(2, round(STEPS / len(FORMATS) / len(tables)) - 1)
    for table in tables:
        try:
            table.go(runs)
            table.check()
        except (KsegError, OSError, AssertionError) as error:
            table.wrong.append(f"{type(error).__name__}: {error}")
        counts += table.counts
        counts["tables"] += 1
        wrong += [f"{table.name}: {each}" for each in table.wrong]
    with capsys.disabled():
        shown = ", ".join(f"{counts[name]} {name}" for name in SHOWN)
        print(f"\nSEED={seed} {table_format}: {shown}; {len(wrong)} problems")  # noqa: T201
    assert wrong == [], "\n".join(wrong)


SHOWN = ("tables", "steps", "kills", "readers", "rows", "lost", "added", "doubled", "wrong", "letters")
"""The counts in the order in which they are shown."""
