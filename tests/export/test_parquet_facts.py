"""Metadata of the files, as DuckDB reads it: bounds, order, filters; queries read less with it."""

from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow.parquet as pq
import pytest

from kseg.errors import UsageError
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

IO = Path("/proc/self/io")
FIRST_TIME = 1_700_000_000_000
RECORDS, SEGMENTS = 8000, 8


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a partition of several segments with distinct keys and times, and incompressible values."""
    random = Random(1)
    for base in range(0, RECORDS, RECORDS // SEGMENTS):
        records = [
            NewRecord(b"key-%d" % offset, random.randbytes(100), FIRST_TIME + offset)
            for offset in range(base, base + RECORDS // SEGMENTS)
        ]
        batches = [NewBatch(records[first : first + 50], base + first) for first in range(0, len(records), 50)]
        write_segment(tmp_path / "orders-0", batches, base)
    return tmp_path / "orders-0"


def exported_file(source: Path, **options: Any) -> Path:
    """Return the only file of an export, with several row groups."""
    out = source.parent / "out"
    exports.export([source], out, row_group_size=40_000, **options)
    (path,) = out.glob("**/*.parquet")
    return path


def run_query(query: str) -> list[tuple[Any, ...]]:
    found = duckdb.sql(query)
    assert found is not None
    return list(found.fetchall())


def row_groups(path: Path, condition: str) -> list[int]:
    """Return the numbers of row groups whose metadata match a condition."""
    query = f"SELECT DISTINCT row_group_id FROM parquet_metadata('{path}') WHERE {condition} ORDER BY 1"
    return [number for (number,) in run_query(query)]


def test_each_row_group_has_bounds_of_offset_and_timestamp(source: Path) -> None:
    path = exported_file(source)
    groups = row_groups(path, "true")
    assert len(groups) > 3
    for column in ("partition", "offset", "timestamp"):
        has_bounds = f"path_in_schema = '{column}' AND stats_min IS NOT NULL AND stats_max IS NOT NULL"
        assert row_groups(path, has_bounds) == groups
    bounds = run_query(
        f"SELECT stats_min::BIGINT, stats_max::BIGINT FROM parquet_metadata('{path}') "
        "WHERE path_in_schema = 'offset' ORDER BY row_group_id"
    )
    assert bounds[0][0] == 0
    assert bounds[-1][1] == RECORDS - 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(bounds))


def test_each_column_has_a_page_index(source: Path) -> None:
    metadata = pq.ParquetFile(exported_file(source)).metadata
    columns = [metadata.row_group(0).column(number) for number in range(metadata.num_columns)]
    assert all(column.has_column_index and column.has_offset_index for column in columns)


@pytest.mark.parametrize(
    ("folders", "declared"), [(("topic",), ["partition", "offset"]), ((), ["topic", "partition", "offset"])]
)
def test_the_order_of_rows_is_declared(source: Path, folders: tuple[str, ...], declared: list[str]) -> None:
    file = pq.ParquetFile(exported_file(source, partition_by=folders))
    for number in range(file.num_row_groups):
        sorting = file.metadata.row_group(number).sorting_columns
        assert [file.schema.column(each.column_index).name for each in sorting] == declared
        assert not any(each.descending for each in sorting)


def test_a_bloom_filter_is_there_if_it_is_asked_for(source: Path) -> None:
    assert row_groups(exported_file(source), "bloom_filter_offset IS NOT NULL") == []


def test_a_bloom_filter_finds_the_row_group_of_a_key(source: Path) -> None:
    path = exported_file(source, bloom_filter="key")
    assert row_groups(path, "bloom_filter_offset IS NOT NULL AND path_in_schema = 'key'") == row_groups(path, "true")
    probe = f"SELECT bloom_filter_excludes FROM parquet_bloom_probe('{path}', 'key', 'key-4321'::BLOB)"
    assert run_query(probe).count((False,)) == 1
    assert run_query(f"SELECT \"offset\" FROM '{path}' WHERE key = 'key-4321'::BLOB") == [(4321,)]


def bytes_read_for(path: Path, query: str) -> int:
    """Return the bytes that the process reads for a query, by the system's count; a new connection has no cache."""

    def counted() -> int:
        (line,) = [each for each in IO.read_text().splitlines() if each.startswith("rchar:")]
        return int(line.split()[1])

    with duckdb.connect() as connection:
        before = counted()
        found = connection.execute(query.format(path=path)).fetchall()
        assert len(found) == 1
        return counted() - before


@pytest.mark.parametrize("condition", ['"offset" = 4321', "timestamp = to_timestamp(1700000004.321)"])
def test_a_query_reads_only_the_row_groups_that_may_have_it(source: Path, condition: str) -> None:
    path = exported_file(source, compression="none")
    whole = bytes_read_for(path, "SELECT max(value) FROM '{path}'")
    assert bytes_read_for(path, f"SELECT value FROM '{{path}}' WHERE {condition}") * 2 < whole


def test_a_pyarrow_without_bloom_filters_says_so(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pq, "ParquetWriter", object)
    with pytest.raises(UsageError, match=r"can't write bloom filters; update pyarrow"):
        exported_file(source, bloom_filter="key")
