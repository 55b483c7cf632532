"""--merge-files: few files, the same rows in order, the same accounts, and further runs that continue."""

import json
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from kseg.export.commit.manifest import manifest_name, read_manifest
from kseg.export.destination import LocalDestination
from tests.export import exports

PARTITIONS = 6
HOURS = 12


def append(directory: Path, first: int, count: int, value: bytes = b"value") -> None:
    """Append a segment, as an hour's records."""
    exports.write_log(directory, first, count, value=value)


def parquet_files(destination: Path) -> list[Path]:
    """Return the files that a reader without the manifest sees."""
    return sorted(destination.glob("**/*.parquet"))


def rows(destination: Path) -> list[tuple[Any, ...]]:
    """Return topic, partition, offset and value of all rows in those files, sorted."""
    names = ("topic", "partition", "offset", "value")
    table = pq.read_table(destination).select(names)
    return sorted(zip(*(table.column(name).to_pylist() for name in names), strict=True))


def accounts(report: exports.Report) -> list[dict[str, Any]]:
    """Return a report's accounts without files and times."""
    shown = [partition.to_json() for partition in report.partitions]
    return [{name: each[name] for name in each if name not in ("fileCount", "seconds")} for each in shown]


def test_hourly_runs_leave_few_files_with_the_same_rows(tmp_path: Path) -> None:
    logs, merged, plain = tmp_path / "logs", tmp_path / "merged", tmp_path / "plain"
    for hour in range(HOURS):
        for partition in range(PARTITIONS):
            append(logs / f"orders-{partition}", hour * 10, 10, b"hour %d" % hour)
        report = exports.export([logs], merged, merge_files=True)
        other = exports.export([logs], plain)
        assert accounts(report) == accounts(other)
    assert len(parquet_files(plain)) == HOURS * PARTITIONS
    assert len(parquet_files(merged)) <= 5
    assert rows(merged) == rows(plain)
    assert [exports.offsets(merged, "orders", number) for number in range(PARTITIONS)] == [
        list(range(HOURS * 10))
    ] * PARTITIONS
    assert report.merged is not None
    assert report.merged[1] == len(parquet_files(merged))


def test_rows_of_a_merged_file_are_in_the_order_that_it_declares(tmp_path: Path) -> None:
    for first in (0, 10, 20):
        for partition in (10, 2):
            append(tmp_path / "logs" / f"orders-{partition}", first, 10)
        exports.export([tmp_path / "logs"], tmp_path / "out", merge_files=True)
    for path in parquet_files(tmp_path / "out"):
        file = pq.ParquetFile(path)
        declared = [file.schema.column(each.column_index).name for each in file.metadata.row_group(0).sorting_columns]
        assert declared == ["partition", "offset"]
        found = list(zip(*(file.read().column(name).to_pylist() for name in declared), strict=True))
        assert found == sorted(found)


def test_an_old_export_is_joined_when_nothing_is_new(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number in range(8):
        append(logs / f"orders-{number}", 0, 10)
        append(logs / f"payments-{number}", 0, 10)
    exports.export([logs], out)
    before = rows(out)
    report = exports.export([logs], out, merge_files=True)
    assert (report.merged, [path.name for path in parquet_files(out)]) == (
        (16, 2),
        ["part-orders-0_7-00000000000000000000-2.parquet", "part-payments-0_7-00000000000000000000-2.parquet"],
    )
    assert rows(out) == before
    again = exports.export([logs], out, merge_files=True)
    assert (again.merged, again.new_files) == ((2, 2), 0)
    assert (out / "_SUCCESS").exists()
    assert sorted(path.name for path in (out / "_kseg").glob("**/*.attempt")) == []


def test_rows_beside_those_of_a_changed_log_stay_though_their_logs_have_gone(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number in range(3):
        append(logs / f"orders-{number}", 0, 10)
    exports.export([logs], out, merge_files=True)
    for path in (logs / "orders-0").iterdir():
        path.unlink()  # retention
    for path in (logs / "orders-1").iterdir():
        path.unlink()
    append(logs / "orders-0", 10, 10)
    append(logs / "orders-1", 0, 10, b"other")
    exports.export([logs], out)
    table = {(partition, offset): value for _, partition, offset, value in rows(out)}
    assert len(rows(out)) == len(table) == 40
    assert {table[0, offset] for offset in range(20)} == {b"value"}
    assert {table[1, offset] for offset in range(10)} == {b"other"}
    assert {table[2, offset] for offset in range(10)} == {b"value"}


def test_a_merged_file_that_has_gone_is_exported_again(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number in range(3):
        append(logs / f"orders-{number}", 0, 10)
    exports.export([logs], out, merge_files=True)
    before = rows(out)
    parquet_files(out)[0].unlink()
    exports.export([logs], out, merge_files=True)
    assert rows(out) == before


@pytest.mark.parametrize("folders", [(), ("date",), ("topic", "partition"), ("topic", "partition", "date")])
def test_files_are_joined_within_their_folders(tmp_path: Path, folders: tuple[str, ...]) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for first in (0, 10, 20):
        for name in ("orders-0", "orders-1", "payments-0"):
            append(logs / name, first, 10)
        exports.export([logs], out, partition_by=folders, merge_files=True)
    places = [path.parent for path in parquet_files(out)]
    assert len(set(places)) == {(): 1, ("date",): 1}.get(folders, 3)
    assert len(places) <= 2 * len(set(places))
    assert len(rows(out)) == 90
    assert [exports.offsets(out, *name) for name in (("orders", 1), ("payments", 0))] == [list(range(30))] * 2


def test_large_files_are_left_alone_and_none_becomes_larger_than_asked_for(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    append(logs / "orders-0", 0, 2000)
    for number in range(1, 30):
        append(logs / f"orders-{number}", 0, 50)
    sizes = {"target_size": 40_000, "row_group_size": 20_000, "compression": "none"}
    exports.export([logs], out, **sizes)
    large = {path.name: path.stat().st_ino for path in parquet_files(out) if path.stat().st_size >= 20_000}
    assert large
    exports.export([logs], out, merge_files=True, **sizes)
    found = {path.name: path.stat() for path in parquet_files(out)}
    assert {name: found[name].st_ino for name in large} == large
    assert 1 < len(found) - len(large) < 29
    assert max(each.st_size for each in found.values()) <= 44_000
    assert len(rows(out)) == 2000 + 29 * 50


def test_batches_out_of_order_are_merged_and_no_order_is_declared(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    append(logs / "orders-0", 10, 10)
    append(logs / "orders-0", 0, 10)
    first, second = sorted((logs / "orders-0").glob("*.log"))
    second.write_bytes(second.read_bytes() + first.read_bytes())
    first.unlink()
    append(logs / "orders-1", 0, 10)
    exports.export([logs], out, merge_files=True)
    (path,) = parquet_files(out)
    assert pq.ParquetFile(path).metadata.row_group(0).sorting_columns == ()
    assert len(rows(out)) == 30


def test_two_results_that_name_the_same_rows_are_refused(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    append(logs / "orders-0", 0, 10)
    append(logs / "orders-1", 0, 10)
    exports.export([logs], out, merge_files=True)
    path = out / manifest_name(1)
    manifest = json.loads(path.read_bytes())
    for result in manifest["results"]:
        result["files"][0].pop("firstRow", None)
    path.write_text(json.dumps(manifest))
    with pytest.raises(KsegError, match="a name that occurs once, or once for each part of its rows"):
        read_manifest(LocalDestination(str(out)))


def test_a_query_of_a_merged_file_reads_the_row_groups_of_its_partition(tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for number in range(20):
        append(logs / f"orders-{number}", 0, 500)
    exports.export([logs], out, merge_files=True, row_group_size=30_000)
    (path,) = parquet_files(out)
    bounds = duckdb.sql(
        f"SELECT row_group_id, stats_min::INT, stats_max::INT FROM parquet_metadata('{path}') "
        "WHERE path_in_schema = 'partition'"
    )
    assert bounds is not None
    found = bounds.fetchall()
    assert len(found) > 5
    assert sum(least <= 7 <= most for _, least, most in found) <= 2
