"""Runs over a growing topic of change events, some killed; the table must equal the database: `make test-unwrap`."""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import deltalake
import duckdb
import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog

from tests.export.debezium import Database, Row
from tests.spark.connectors import read_by_spark

SHARE_OF_SNAPSHOT = 0.1


def main() -> int:
    """Run, compare each format by each reader, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("formats", nargs="*", default=["delta", "iceberg"])
    given = parser.parse_args()
    return max(_try_format(each, given) for each in given.formats)


def _try_format(table_format: str, given: argparse.Namespace) -> int:
    chance, start = Random(given.seed), time.monotonic()
    database = Database(seed=given.seed, connector=chance.choice(["postgresql", "mysql"]))
    database.snapshot(int(given.changes * SHARE_OF_SNAPSHOT))
    with tempfile.TemporaryDirectory() as folder:
        logs, out = Path(folder, "logs"), Path(folder, "table")
        seconds, dead = 1.0, 0
        for number in range(given.runs):
            database.change(int(given.changes * (1 - SHARE_OF_SNAPSHOT)) // given.runs)
            if number == given.runs // 2:
                database.add_column("since")
            database.write(logs, late=() if number == given.runs - 1 else chance.sample(range(3), chance.randrange(3)))
            # a run may end before its time is up, and then a later one is killed instead
            share = 2 * (given.kills - dead) / (given.runs - number)
            if 0 < number < given.runs - 1 and chance.random() < share:
                dead += _export(logs, out, table_format, chance.uniform(0.4, 1.0) * seconds) != 0
            else:
                began = time.monotonic()
                assert _export(logs, out, table_format) == 0
                seconds = time.monotonic() - began
        expected = _without_nulls(database.expected())
        wrong = 0
        for name, table in _readers(out, table_format, Path(folder)):
            is_equal = _without_nulls(table.to_pylist()) == expected
            wrong += not is_equal
            _say(f"{table_format} read by {name}: {table.num_rows} rows, {'equal' if is_equal else 'DIFFERENT'}")
    took = round(time.monotonic() - start)
    _say(
        f"{table_format}: {database.changes} changes, {given.runs} runs, {dead} killed, {len(expected)} rows, {took} s"
    )
    return int(bool(wrong))


def _export(logs: Path, out: Path, table_format: str, most: float | None = None) -> int:
    """Run an export, and return its status; most: the seconds after which it is killed."""
    command = [sys.executable, "-m", "kseg", "export", str(logs), str(out), "--format", table_format]
    process = subprocess.Popen([*command, "--unwrap", "debezium", "-q", "--no-progress"])
    try:
        return process.wait(most)
    except subprocess.TimeoutExpired:
        process.kill()
        return process.wait()


def _readers(out: Path, table_format: str, work: Path) -> Iterator[tuple[str, pa.Table]]:
    """Yield the table as readers see it, in the order of keys; DuckDB reads the files that the table's log names."""
    if table_format == "delta":
        table = deltalake.DeltaTable(str(out))
        yield "deltalake", table.to_pyarrow_table().sort_by("id")
        files, location = table.file_uris(), str(out)
    else:
        catalog = SqlCatalog("kseg", uri=f"sqlite:///{out}/catalog.db")
        found = catalog.load_table("kafka.records")
        yield "pyiceberg", found.scan().to_arrow().sort_by("id")
        files = [task.file.file_path.removeprefix("file://") for task in found.scan().plan_files()]
        location = found.metadata_location
    yield "DuckDB", duckdb.sql(f"FROM read_parquet({files!r}, union_by_name = true) ORDER BY id").to_arrow_table()
    yield "Spark", read_by_spark([(table_format, location)], work)[0].sort_by("id")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _without_nulls(rows: list[dict[str, Any]]) -> list[Row]:
    return [
        {name: value for name, value in row.items() if value is not None and not name.startswith("_kseg")}
        for row in rows
    ]


if __name__ == "__main__":
    sys.exit(main())
