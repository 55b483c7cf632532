"""Exports into tables with their own log: Delta by deltalake, Iceberg by pyiceberg."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError, UsageError
from kseg.export.commit.order import Job, execute_here
from kseg.export.commit.protocol import NO_TABLE
from kseg.export.commit.table_log import TableLog
from kseg.export.destination import open_destination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, Mode
from kseg.text.export import report_lines
from tests import golden, run
from tests.export import exports
from tests.export.exports import table_log
from tests.export.test_incarnations import FIRST, SECOND, topic
from tests.log_files import NewBatch, NewRecord, write_segment

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"], ids=str)
Row = tuple[str, int | None, int, bytes | None]


def rows(out: Path, table_format: str) -> list[Row]:
    """Return topic, partition, offset and value of all rows, in this order, as the format's own library reads them."""
    columns = ("topic", "partition", "offset", "value")
    if table_format == "delta":
        from deltalake import DeltaTable

        table = DeltaTable(str(out)).to_pyarrow_table(columns=list(columns))
    else:
        table = catalog(out).load_table(NO_TABLE.name).scan(selected_fields=columns).to_arrow()
    found = zip(*(table.column(name).to_pylist() for name in columns), strict=True)
    return sorted(found, key=lambda row: (row[0], -1 if row[1] is None else row[1], row[2]))


def catalog(out: Path, name: str = "kseg") -> Any:
    from pyiceberg.catalog.sql import SqlCatalog

    return SqlCatalog(name, uri=f"sqlite:///{out}/catalog.db", warehouse=f"file://{out}")


def plain_rows(out: Path) -> list[Row]:
    """Return the same rows of an export of plain Parquet files."""
    found = [
        (topic, partition, offset, value)
        for topic, partition, table in exports.tables(out)
        for offset, value in zip(table.column("offset").to_pylist(), table.column("value").to_pylist(), strict=True)
    ]
    return sorted(found, key=lambda row: (row[0], -1 if row[1] is None else row[1], row[2]))


def offsets(out: Path, table_format: str) -> list[int]:
    return [offset for _, _, offset, _ in rows(out, table_format)]


def log_of(out: Path, table_format: str, **options: Any) -> TableLog:
    files = FileOptions(table_format=table_format, **options)
    return table_log(open_destination(str(out)), NO_TABLE, files)


def accounts(report: Report) -> list[dict[str, Any]]:
    """Return a report's accounts without times and files."""
    return [
        {name: value for name, value in partition.to_json().items() if name not in ("seconds", "fileCount")}
        for partition in report.partitions
    ]


@FORMATS
def test_a_later_run_adds_what_is_new_and_one_without_news_commits_nothing(tmp_path: Path, table_format: str) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 100)
    exports.export([source], out, table_format=table_format)
    exports.export([source], out, table_format=table_format)
    assert log_of(out, table_format).number() == 1
    exports.write_log(source, 100, 50)
    report = exports.export([source], out, table_format=table_format)
    assert log_of(out, table_format).number() == 2
    assert offsets(out, table_format) == list(range(150))
    assert (report.partitions[0].records_out, report.partitions[0].file_count) == (150, 2)


@FORMATS
def test_no_manifest_is_beside_a_table_and_no_run_leaves_anything(tmp_path: Path, table_format: str) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 10)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", table_format=table_format)
    there = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out" / "_kseg").rglob("*.*")}
    assert there == {"_kseg/report.json", "_kseg/damages.csv"}


@FORMATS
def test_what_was_replaced_leaves_the_table_in_the_same_commit(tmp_path: Path, table_format: str) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 100)
    exports.write_log(tmp_path / "orders-1", 0, 20)
    both = [source, tmp_path / "orders-1"]
    exports.export(both, out, table_format=table_format)
    exports.write_log(source, 0, 40, value=b"another")
    exports.export(both, out, table_format=table_format)
    found = rows(out, table_format)
    assert [row[2:] for row in found if row[1] == 0] == [(offset, b"another") for offset in range(40)]
    assert [row[2:] for row in found if row[1] == 1] == [(offset, b"value") for offset in range(20)]
    assert log_of(out, table_format).number() == 2


@FORMATS
@pytest.mark.parametrize("folders", [(), ("topic",), ("topic", "partition"), ("topic", "date")])
def test_rows_are_replaced_in_files_that_others_share_after_a_merge(
    folders: tuple[str, ...], tmp_path: Path, table_format: str
) -> None:
    """Progress names no files, so a table may be compacted between two runs."""
    out, sources = tmp_path / "out", [tmp_path / f"orders-{number}" for number in range(3)]
    options: dict[str, Any] = {"table_format": table_format, "partition_by": folders}
    for start in (0, 20):
        for source in sources:
            exports.write_log(source, start, 20)
        exports.export(sources, out, **options)
    merged = log_of(out, table_format, partition_by=folders).merge(1 << 30)
    assert merged["removed"] > merged["added"] > 0
    exports.write_log(sources[1], 20, 30, value=b"another")
    exports.export(sources, out, **options)
    wanted = [("orders", number, offset, b"value") for number in range(3) for offset in range(40)]
    wanted = [row for row in wanted if row[1] != 1 or row[2] < 20]
    wanted += [("orders", 1, offset, b"another") for offset in range(20, 50)]
    assert rows(out, table_format) == sorted(wanted)


@FORMATS
def test_another_selection_is_refused_and_overwrite_replaces_all(tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    for number in range(2):
        exports.write_log(tmp_path / f"orders-{number}", 0, 20)
    exports.export([tmp_path / "orders-0"], out, table_format=table_format)
    with pytest.raises(UsageError, match="the export was made with no --control; specify the same"):
        exports.export([tmp_path / "orders-1"], out, table_format=table_format, control=True)
    exports.export([tmp_path / "orders-1"], out, table_format=table_format, overwrite=True)
    assert [row[:3] for row in rows(out, table_format)] == [("orders", 1, offset) for offset in range(20)]
    assert log_of(out, table_format).number() == 2


@FORMATS
def test_a_later_run_may_write_other_files(tmp_path: Path, table_format: str) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    exports.write_log(source, 0, 20)
    exports.export([source], out, table_format=table_format)
    exports.write_log(source, 20, 20, base=20)
    other = {"compression": "snappy", "row_group_size": 1 << 20, "target_size": 1 << 20, "bloom_filter": "key"}
    exports.export([source], out, table_format=table_format, mode=Mode.FAILFAST, **other)
    assert [row[2] for row in rows(out, table_format)] == [*range(40)]
    codecs = {pq.ParquetFile(file).metadata.row_group(0).column(0).compression for file in out.rglob("*.parquet")}
    assert codecs == {"ZSTD", "SNAPPY"}


@FORMATS
def test_a_run_removes_an_unfinished_report_of_a_killed_run(tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    exports.write_log(tmp_path / "orders-0", 0, 20)
    exports.export([tmp_path / "orders-0"], out, table_format=table_format)
    (out / "_kseg" / "report.json.0123456789ab.tmp").write_bytes(b"{")
    exports.export([tmp_path / "orders-0"], out, table_format=table_format)
    assert {path.name for path in (out / "_kseg").iterdir()} == {"report.json", "damages.csv"}


def test_overwriting_a_delta_table_may_change_its_columns(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 20)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", table_format="delta")
    options = {"batch_columns": True, "partition_by": ("partition",)}
    exports.export([tmp_path / "orders-0"], tmp_path / "out", table_format="delta", overwrite=True, **options)
    assert offsets(tmp_path / "out", "delta") == list(range(20))


def test_overwriting_an_iceberg_table_keeps_its_columns(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 20)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", table_format="iceberg")
    options: dict[str, Any] = {"table_format": "iceberg", "overwrite": True, "batch_columns": True}
    with pytest.raises(UsageError, match="has other columns or partitions; choose another table with --table"):
        exports.export([tmp_path / "orders-0"], tmp_path / "out", **options)
    assert offsets(tmp_path / "out", "iceberg") == list(range(20))


@FORMATS
def test_only_the_latest_of_each_key_stays(tmp_path: Path, table_format: str) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    from kseg.export.settings import Tombstones

    options: dict[str, Any] = {"table_format": table_format, "latest_per_key": Tombstones.DROP}
    for number in range(3):
        exports.write_log(source, 0 if number == 0 else 100 * number, 100, value=b"%d" % number)
        exports.export([source], out, **options)
    exports.export([source], tmp_path / "plain", latest_per_key=Tombstones.DROP)
    assert rows(out, table_format) == plain_rows(tmp_path / "plain")


@pytest.mark.parametrize("name", ["damaged", "logs/4.3.1"])
def test_rows_and_accounts_of_golden_directories_are_those_of_plain_files(
    name: str, damaged_disk: Path, tmp_path: Path
) -> None:
    sources = [damaged_disk if name == "damaged" else golden.ROOT / name]
    plain, again = (accounts(exports.export(sources, tmp_path / "plain")) for _ in range(2))
    expected = plain_rows(tmp_path / "plain")
    assert expected != []
    for table_format in ("delta", "iceberg"):
        out = tmp_path / table_format
        assert accounts(exports.export(sources, out, table_format=table_format)) == plain, table_format
        assert accounts(exports.export(sources, out, table_format=table_format)) == again, table_format
        assert rows(out, table_format) == expected, table_format


# --- recreated topics -------------------------------------------------------------------------------------------------


@FORMATS
def test_rows_of_a_topic_and_of_a_later_one_of_its_name_stay_once(tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 20, b"a")
    exports.export([tmp_path / "disk"], out, table_format=table_format)
    topic(log, SECOND, 10, b"b")
    exports.export([tmp_path / "disk"], out, table_format=table_format)
    exports.write_log(log, 10, 20, value=b"b")
    for merges in (False, True, False):
        report = exports.export([tmp_path / "disk"], out, table_format=table_format, merge_files=merges)
        wanted = [(offset, b"a") for offset in range(20)] + [(offset, b"b") for offset in range(30)]
        assert sorted(row[2:] for row in rows(out, table_format)) == sorted(wanted)
        assert [(part.topic_id, part.records_out) for part in report.partitions] == [(FIRST, 20), (SECOND, 30)]
    assert [result.topic_id for result in log_of(out, table_format).progress().results] == [FIRST, SECOND, SECOND]


@FORMATS
def test_rows_that_would_go_with_an_earlier_topics_are_not_touched(tmp_path: Path, table_format: str) -> None:
    out = tmp_path / "out"
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 20, b"a")
    for count in (10, 40):
        exports.export([tmp_path / "disk"], out, table_format=table_format)
        topic(log, SECOND, count, b"b")
    exports.export([tmp_path / "disk"], out, table_format=table_format)
    before = rows(out, table_format)
    topic(log, SECOND, 40, b"c")
    with pytest.raises(
        KsegError, match=r"orders-0 have changed .* an earlier topic with that name; choose another destination"
    ):
        exports.export([tmp_path / "disk"], out, table_format=table_format)
    assert rows(out, table_format) == before


# --- fewer files -----------------------------------------------------------------------------------------------------


@FORMATS
def test_small_files_are_joined_and_later_runs_go_on(tmp_path: Path, table_format: str) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    for start in range(0, 50, 10):
        exports.write_log(source, start, 10)
        report = exports.export([source], out, table_format=table_format, merge_files=start == 40)
    assert report.merged == (5, 1)
    assert "merged: 5 files became 1" in list(report_lines(report))
    assert offsets(out, table_format) == list(range(50))
    exports.write_log(source, 50, 10)
    report = exports.export([source], out, table_format=table_format)
    assert (report.new_files, report.partitions[0].records_out) == (1, 60)
    assert offsets(out, table_format) == list(range(60))
    number = log_of(out, table_format).number()
    assert exports.export([source], out, table_format=table_format).new_files == 0
    assert log_of(out, table_format).number() == number


# --- interrupted runs -------------------------------------------------------------------------------------------------


@FORMATS
def test_nothing_of_a_run_that_was_broken_off_is_taken_up(tmp_path: Path, table_format: str) -> None:
    sources, out = [tmp_path / f"orders-{number}" for number in range(2)], tmp_path / "out"
    for source in sources:
        exports.write_log(source, 0, 20)

    def broken_off(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        yield next(iter(execute_here(orders, job)))
        raise KsegError("broken off")

    files = FileOptions(table_format=table_format)
    with pytest.raises(KsegError, match="broken off"):
        run_export(Export(tuple(map(str, sources)), str(out), files=files), broken_off)
    assert list(out.rglob("*.parquet")) == []
    report = exports.export(sources, out, table_format=table_format)
    assert (report.taken_up, offsets(out, table_format)) == (0, [*range(20)] * 2)


@FORMATS
def test_rows_of_segments_that_have_gone_stay_where_offsets_stop_rising(tmp_path: Path, table_format: str) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 100)
    exports.write_log(source, 100, 50)
    exports.export([source], out, table_format=table_format)
    for path in source.glob(f"{0:020}.*"):
        path.unlink()
    exports.write_log(source, 150, 10)
    exports.export([source], out, table_format=table_format)  # notes that the first segment was deleted
    with (source / f"{150:020}.log").open("ab") as last:
        last.write((source / f"{100:020}.log").read_bytes())
    exports.export([source], out, table_format=table_format)
    assert offsets(out, table_format) == list(range(160))


def test_the_catalog_in_the_destination_has_the_chosen_name(tmp_path: Path) -> None:
    source = tmp_path / "orders-0"
    for count in (10, 5):
        exports.write_log(source, 0 if count == 10 else 10, count)
        ran = run.kseg(["export", "orders-0", "out", "--format", "iceberg", "--catalog", "file:lake", "-q"], tmp_path)
        assert (ran.status, ran.stderr) == (0, b"")
    assert catalog(tmp_path / "out", "lake").load_table("kafka.records").scan().to_arrow().num_rows == 15
    assert not catalog(tmp_path / "out", "kseg").namespace_exists("kafka")
    unnamed = run.kseg(["export", "orders-0", "out", "--format", "iceberg", "--catalog", "file:"], tmp_path)
    assert (unnamed.status, unnamed.stderr) == (2, b"kseg: --catalog file: has no name; specify file:NAME\n")


def test_the_file_of_a_negative_offset_has_all_digits(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"v")])])
    log.write_bytes((-2).to_bytes(8, "big", signed=True) + log.read_bytes()[8:])
    assert run.kseg(["export", "orders-0", "out", "-q"], tmp_path).status in (0, 1)
    assert [path.name for path in (tmp_path / "out").rglob("*.parquet")] == [f"part-orders-0--{2:020}.parquet"]
