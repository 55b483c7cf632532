"""Exports as other programs read them: by the last lines of the report, and by a pattern of Parquet files."""

import json
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from kseg.export.commit.order import Job, execute_here
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from tests import golden, run
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

DAY_MS = 86_400_000
TOPICS = ("0042", "__consumer_offsets", "orders.eu")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return topics of three records each in partition 7: of 1970, 1969, and without a time; one name is a number."""
    records = [NewRecord(b"k", b"v", DAY_MS), NewRecord(b"k", None, -DAY_MS), NewRecord(None, b"w", -1)]
    for topic in TOPICS:
        batches = [NewBatch([record], offset) for offset, record in enumerate(records)]
        write_segment(tmp_path / "logs" / f"{topic}-7", batches)
    return tmp_path / "logs"


def readers(*arguments: str, cwd: Path) -> dict[str, str]:
    """Return the last lines of an export report, by the reader's name."""
    ran = run.kseg(["export", *arguments], cwd)
    assert (ran.status, ran.stderr) == (0, b"")
    lines = ran.stdout.decode().splitlines()[-2:]
    return dict(line.split(": ", 1) for line in lines)


def rows_by_both(lines: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of DuckDB and Polars, which are the same."""
    found = duckdb.sql(lines["duckdb"]).to_arrow_table().to_pylist()
    also = eval(lines["polars"], {"pl": pl}).collect().to_dicts()
    for rows in found, also:
        rows.sort(key=lambda row: (row["topic"], row["offset"]))
    assert found == also
    return found


@pytest.mark.parametrize("folders", ["none", "topic", "topic,partition", "date,topic", "topic,partition,date"])
def test_the_reports_lines_read_every_record_with_its_columns(folders: str, logs: Path, tmp_path: Path) -> None:
    rows = rows_by_both(readers("logs", "out", "--partition-by", folders, cwd=tmp_path))
    assert [(row["topic"], row["partition"], row["offset"]) for row in rows] == [
        (topic, 7, offset) for topic in TOPICS for offset in range(3)
    ]
    if "date" in folders:
        assert [row["date"] for row in rows[:2]] == [date(1970, 1, 2), date(1969, 12, 31)]


def test_a_destination_with_any_name_is_read(logs: Path, tmp_path: Path) -> None:
    out = """it's [a] "new"* place?"""
    assert len(rows_by_both(readers("logs", "--to", out, cwd=tmp_path))) == 9
    assert len(rows_by_both(readers("logs", "--to", out, cwd=tmp_path))) == 9, "nothing was new"


def test_json_has_the_lines_too_and_an_empty_export_has_none(logs: Path, tmp_path: Path) -> None:
    summary = json.loads(run.kseg(["export", "logs", "out", "-o", "json"], tmp_path).stdout.splitlines()[-1])
    assert len(rows_by_both(summary)) == 9
    nothing = run.kseg(["export", "logs", "nothing", "--key", "none", "-o", "json"], tmp_path).stdout.splitlines()[-1]
    assert {"duckdb", "polars"} & set(json.loads(nothing)) == set()


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
@pytest.mark.parametrize("folders", ["none", "topic,date"])
def test_the_lines_of_a_table_read_every_record(folders: str, table_format: str, logs: Path, tmp_path: Path) -> None:
    """DuckDB's extensions come from its own servers, so pyarrow's rows replace their scans."""
    out = "new-place"
    arguments = ("logs", "--to", out, "--format", table_format, "--partition-by", folders)
    lines = readers(*arguments, cwd=tmp_path)
    found = eval(lines["polars"], {"pl": pl}).collect()
    with duckdb.connect() as connection:
        connection.register("scanned", found.to_arrow())
        macro = f"{table_format}_scan"
        connection.execute(f"CREATE MACRO {macro}(place) AS TABLE SELECT *, place FROM scanned")
        rows = connection.sql(lines["duckdb"]).fetchall()
    assert {row[-1] for row in rows} == {eval(lines["polars"], {"pl": Names})}
    assert len(rows) == 9
    assert sorted(zip(found["topic"], found["partition"], found["offset"], strict=True)) == [
        (topic, 7, offset) for topic in TOPICS for offset in range(3)
    ]
    assert readers(*arguments, cwd=tmp_path) == lines, "nothing was new"


class Names:
    """A stand-in that returns the names of tables."""

    scan_delta = scan_iceberg = staticmethod(str)


def test_nothing_but_records_is_found_by_a_pattern_of_parquet_files(tmp_path: Path) -> None:
    run.kseg(["export", str(golden.ROOT / "damaged"), "out", "-q"], tmp_path)
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_bytes())
    written = sum(partition["recordsOut"] for partition in report["partitions"])
    pattern = str(tmp_path / "out" / "**" / "*.parquet")
    assert duckdb.sql(f"SELECT count(*) FROM '{pattern}'").fetchall() == [(written,)]
    assert pl.read_parquet(pattern).height == written
    damages = sum(len(partition["damages"]) for partition in report["partitions"])
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/out/_kseg/damages.csv'").fetchall() == [(damages,)]


def test_files_of_a_run_that_is_under_way_are_not_found_by_it(logs: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([logs / "orders.eu-7"], out)
    seen = []

    def look(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        assert list((out / "_kseg" / "attempts").iterdir())
        seen.append(pl.read_parquet(out / "**" / "*.parquet").height)
        return results

    run_export(Export((str(logs),), str(out)), look)
    assert seen == [3]
    assert pl.read_parquet(out / "**" / "*.parquet").height == 9
