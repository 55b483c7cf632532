"""Folders and partitions of exports, as the libraries of each format read them."""

import json
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import mmh3
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from kseg.export.write.folders import NO_VALUE
from kseg.export.write.murmur import LONGEST, bucket_numbers
from tests import run
from tests.export import exports
from tests.export.test_tables import catalog
from tests.export.typed_logs import TypedLogs
from tests.log_files import NewBatch, NewRecord, write_segment

FORMATS = pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
HOUR = 3_600_000
TIMES = (0, HOUR - 1, HOUR, 40 * 24 * HOUR, -1, -HOUR, 2**62)
"""Milliseconds: in three months, before 1970, without a time, and after the year 9999."""
COUNTRIES = ("DE", "São Tomé", "a/b=c%20'#?", "", None, "..", NO_VALUE)
COUNTRY = {"type": "record", "name": "V", "fields": [{"name": "country", "type": ["null", "string"], "default": None}]}


def moment(time: int) -> datetime | None:
    return None if time not in exports.YEARS_1_TO_9999 else datetime.fromtimestamp(time / 1000, UTC)


def bucket(value: bytes | None, count: int) -> int | None:
    return None if value is None else (mmh3.hash(value) & 0x7FFFFFFF) % count


def rows(out: Path, table_format: str) -> pa.Table:
    """Return all rows with the columns of folders, as the format's library reads them, by offset."""
    if table_format == "parquet":
        found = ds.dataset(out, partitioning=ds.partitioning(flavor="hive"), exclude_invalid_files=True).to_table()
    elif table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(out)).to_pyarrow_table()
    else:
        found = catalog(out).load_table("kafka.records").scan().to_arrow()
    return found.sort_by("offset")


def partitions(out: Path) -> Counter[tuple[Any, ...]]:
    """Return the rows of each partition of an Iceberg table, by its metadata."""
    files = catalog(out).load_table("kafka.records").inspect.files().to_pylist()
    counts: Counter[tuple[Any, ...]] = Counter()
    for file in files:
        counts[tuple(file["partition"].values())] += file["record_count"]
    return counts


@pytest.fixture
def log(tmp_path: Path) -> Path:
    keys = [b"k%d" % number for number in range(len(TIMES) - 1)]
    records = [NewRecord(key, b"v", time) for key, time in zip([*keys, None], TIMES, strict=True)]
    return write_segment(
        tmp_path / "orders-0", [NewBatch([record], offset) for offset, record in enumerate(records)]
    ).parent


OF_TIMES: dict[str, Callable[[datetime], Any]] = {
    "dt": lambda time: time.date(),
    "month": lambda time: f"{time:%Y-%m}",
    "hour": lambda time: f"{time:%Y-%m-%d-%H}",
}


@FORMATS
@pytest.mark.parametrize("spelling", OF_TIMES)
def test_records_are_divided_by_parts_of_their_time(
    spelling: str, table_format: str, log: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    exports.export([log], out, partition_by=("topic", spelling), table_format=table_format)
    wanted = [None if (time := moment(each)) is None else OF_TIMES[spelling](time) for each in TIMES]
    found = rows(out, table_format)
    assert found.column("offset").to_pylist() == list(range(len(TIMES)))
    if table_format == "iceberg":
        assert len(partitions(out)) == len(set(wanted))
        assert sorted(partitions(out).values()) == sorted(Counter(wanted).values())
    else:
        assert list(map(str, found.column(spelling).to_pylist())) == list(map(str, wanted))


@FORMATS
@pytest.mark.parametrize("spelling", ["bucket(3)", "bucket(3, key)", "bucket(3, offset)"])
def test_records_are_divided_into_buckets(spelling: str, table_format: str, log: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([log], out, partition_by=(spelling,), table_format=table_format)
    found = rows(out, table_format)
    keys = (
        [offset.to_bytes(8, "little") for offset in found.column("offset").to_pylist()]
        if "offset" in spelling
        else found.column("key").to_pylist()
    )
    wanted = [bucket(key, 3) for key in keys]
    if table_format == "iceberg":
        assert partitions(out) == Counter((number,) for number in wanted)
        table = catalog(out).load_table("kafka.records")
        for key, offset in zip(keys, found.column("offset").to_pylist(), strict=True):
            chosen = f"offset == {offset}" if "offset" in spelling else f"key == '{(key or b'').decode()}'"
            if key is not None and "offset" in spelling:
                assert table.scan(row_filter=chosen).to_arrow().num_rows == 1
    else:
        assert found.column("bucket").to_pylist() == wanted
    assert found.num_rows == len(TIMES)


@FORMATS
@pytest.mark.parametrize("options", [("--partition-by", "value.country"), ("--flatten", "--partition-by", "country")])
def test_records_are_divided_by_a_decoded_field(table_format: str, options: tuple[str, ...], tmp_path: Path) -> None:
    logs, out = TypedLogs(tmp_path / "logs"), tmp_path / "out"
    logs.avro("orders", COUNTRY, [{"country": country} for country in COUNTRIES])
    logs.raw("orders", [b"other"])
    for _ in range(2):
        ran = logs.export(out, *options, "--format", table_format, "--max-undecoded", "1")
        assert (ran.status, ran.stderr) == (0, b"")
    wanted = [*COUNTRIES, None]
    found = rows(out, table_format)
    if table_format == "iceberg":
        assert partitions(out) == Counter((country,) for country in wanted)
    else:
        nulls = ("", NO_VALUE) if table_format == "parquet" else ("",)
        wanted = [None if country in nulls else country for country in wanted]
        assert found.column("country").to_pylist() == wanted
    if table_format == "delta":  # Polars takes the values from the names of folders
        by_polars = pl.scan_delta(str(out)).sort("offset").collect()
        assert by_polars["country"].to_list() == [None if country == NO_VALUE else country for country in wanted]
    if table_format == "parquet":
        lines = dict(
            line for line in json.loads(ran.stdout.splitlines()[-1]).items() if line[0] in ("duckdb", "polars")
        )
        by_duckdb = duckdb.execute(f'SELECT country FROM ({lines["duckdb"]}) ORDER BY "offset"').fetchall()
        assert [country for (country,) in by_duckdb] == wanted
        by_polars = eval(lines["polars"], {"pl": pl}).sort("offset").collect()
        assert by_polars["country"].to_list() == wanted


@FORMATS
def test_late_records_and_other_fields_of_later_runs(table_format: str, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    for first, time in ((0, 10 * 24 * HOUR), (1, 0)):
        write_segment(source, [NewBatch([NewRecord(b"k", b"v", time)], first)], first)
        exports.export([source], out, partition_by=("topic", "dt"), table_format=table_format)
    assert rows(out, table_format).column("offset").to_pylist() == [0, 1]
    if table_format != "iceberg":
        assert [*map(str, rows(out, table_format).column("dt").to_pylist())] == ["1970-01-11", "1970-01-01"]
    ran = run.kseg(["export", "orders-0", "out", "--format", table_format, "--partition-by", "hour"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"the export was made with --partition-by topic,dt; specify the same" in ran.stderr


@FORMATS
def test_many_values_wait_in_little_memory(table_format: str, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    exports.write_log(source, 0, 6000)
    options: dict[str, Any] = {"row_group_size": 100_000, "table_format": table_format, "order_size": None}
    exports.export([source], out, partition_by=("bucket(100)",), **options)
    found = rows(out, table_format)
    assert found.column("offset").to_pylist() == list(range(6000))
    count = len(list(out.rglob("part-*.parquet")))
    assert 100 <= count <= 2000


@pytest.mark.parametrize(
    ("spelling", "problem"),
    [
        ("color", b"--partition-by color: there is no such field"),
        ("value.country", b"there is no such field"),
        ("offset", b"there is no such field"),
        ("bucket(4, headers)", b"can't divide records"),
        ("bucket(0)", b"isn't a field"),
        ("bucket(9999999)", b"buckets are more than"),
        ("date,date", b"a field occurs twice"),
        ("bucket(2),bucket(3)", b"another column has the name bucket"),
        ("_id", b"isn't a field"),
    ],
)
def test_fields_that_do_not_fit_are_refused(spelling: str, problem: bytes, log: Path, tmp_path: Path) -> None:
    ran = run.kseg(["export", str(log), "out", "--partition-by", spelling], tmp_path)
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
    assert problem in ran.stderr


def test_iceberg_takes_one_field_of_the_time(log: Path, tmp_path: Path) -> None:
    ran = run.kseg(["export", str(log), "out", "--partition-by", "dt,hour", "--format", "iceberg"], tmp_path)
    assert ran.status == 2
    assert b"Iceberg takes one of these" in ran.stderr


def test_a_value_that_is_too_long_for_a_folder_is_refused(tmp_path: Path) -> None:
    logs = TypedLogs(tmp_path / "logs")
    logs.avro("orders", COUNTRY, [{"country": "x" * 300}])
    ran = logs.export(tmp_path / "out", "--partition-by", "value.country")
    assert ran.status in (2, 3)
    assert b"specify bucket(N, value.country)" in ran.stderr
    assert logs.export(tmp_path / "delta", "--partition-by", "value.country", "--format", "delta").status == 0


def test_hashes_are_those_of_iceberg() -> None:
    values = [None, b"", *(bytes(range(256)) * 40)[:0:-1].split(b"\x07"), b"x" * LONGEST, b"y" * (LONGEST + 3)]
    assert bucket_numbers(pa.array(values), 1 << 20).to_pylist() == [bucket(value, 1 << 20) for value in values]


@FORMATS
def test_small_files_are_joined_within_their_folder(table_format: str, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    for first in (0, 50):
        exports.write_log(source, first, 50, base=first)
        report = exports.export(
            [source], out, partition_by=("bucket(2)",), table_format=table_format, merge_files=True, reads_back=True
        )
    assert report.merged is not None
    assert rows(out, table_format).column("offset").to_pylist() == list(range(100))
    if table_format == "parquet":
        assert len(list(out.rglob("*.parquet"))) == 2
        assert {pq.read_metadata(path).num_columns for path in out.rglob("*.parquet")} != set()


@FORMATS
def test_rows_of_each_row_group_are_sorted(table_format: str, tmp_path: Path) -> None:
    out, source = tmp_path / "out", tmp_path / "orders-0"
    for first in (0, 1000):
        keys = [b"%d" % (number * 7919 % 1000) for number in range(1000)]
        batches = [
            NewBatch([NewRecord(key, b"v") for key in keys[at : at + 50]], first + at) for at in range(0, 1000, 50)
        ]
        write_segment(source, batches, first)
        is_merged = table_format != "delta"  # deltalake joins row groups
        exports.export([source], out, sort_by=("key", "offset"), table_format=table_format, merge_files=is_merged)
    assert rows(out, table_format).column("offset").to_pylist() == list(range(2000))
    for path in out.rglob("part-*.parquet"):
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            found = file.read_row_group(number).column("key").to_pylist()
            assert found == sorted(found)
        if table_format == "parquet":
            order = file.metadata.row_group(0).sorting_columns
            assert [file.schema.column(each.column_index).name for each in order] == ["key", "offset"]
    if table_format == "iceberg":
        assert len(catalog(out).load_table("kafka.records").sort_order().fields) == 2


@pytest.mark.parametrize("columns", ["headers", "color", "topic", "key,key"])
def test_columns_that_give_no_order_are_refused(columns: str, log: Path, tmp_path: Path) -> None:
    ran = run.kseg(["export", str(log), "out", "--sort-by", columns], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"--sort-by" in ran.stderr


def test_delta_orders_a_table_along_several_columns(log: Path, tmp_path: Path) -> None:
    from deltalake import DeltaTable

    out = tmp_path / "out"
    exports.export([log], out, table_format="delta")
    DeltaTable(str(out)).optimize.z_order(["key", "offset"])
    exports.export([log], out, table_format="delta", reads_back=True)
    assert rows(out, "delta").column("offset").to_pylist() == list(range(len(TIMES)))
