"""Tables of hostile records: all readers find every row and every value, whatever made the tables."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from kseg.export.commit.order import execute_here
from kseg.export.commit.protocol import NO_TABLE
from tests.export.test_tables import catalog
from tests.spark.connectors import run_with_connectors
from tests.spark.hostile_tables import EXPORT, WAYS, Table, counting, make, rows_of, tables

pytestmark = pytest.mark.spark

COLUMNS = ("topic", "partition", "offset", "timestampMs", "timestamp", "key", "value")
OTHERS = ("timestampType", "headers", "valueDecoded")


@pytest.fixture(scope="module")
def made_tables(tmp_path_factory: pytest.TempPathFactory) -> list[Table]:
    """Return the tables of `export` and `spark-export`, which one session of Spark has read."""
    place = tmp_path_factory.mktemp("tables")
    for way in WAYS:
        make(way, place / EXPORT / way.name, execute_here)
    run_with_connectors("tests.spark.hostile_tables", [str(place)], tmp_path_factory.mktemp("jars"))
    return list(tables(place))


# --- readers ---------------------------------------------------------------------------------------------------------


def by_spark(table: Table) -> pa.Table:
    with pa.memory_map(str(table.spark)) as source:
        return pa.ipc.open_file(source).read_all()


def by_polars(table: Table) -> pa.Table:
    found: pl.LazyFrame = eval(table.lines["polars"], {"pl": pl})
    return found.collect().to_arrow()


def by_duckdb(table: Table) -> pa.Table:
    """Read through the report's line; if the table's extension comes from DuckDB's own servers, read its files."""
    with duckdb.connect() as connection:
        connection.execute("SET timezone = 'UTC'")
        if table.way.table_format == "parquet":
            return connection.sql(table.lines["duckdb"]).to_arrow_table()
        topic = "hive_types = {'topic': VARCHAR}" if "topic" in table.way.folders else "hive_partitioning = false"
        files = f"read_parquet({_files(table)}, union_by_name = true, {topic})"
        return connection.sql(f"FROM {files}").to_arrow_table()


def _files(table: Table) -> list[str]:
    """Return the files that a table log names."""
    if table.way.table_format == "delta":
        from deltalake import DeltaTable

        uris = DeltaTable(str(table.out)).file_uris()
    else:
        uris = [task.file.file_path for task in catalog(table.out).load_table(NO_TABLE.name).scan().plan_files()]
    return [uri.removeprefix("file://") for uri in uris]


def by_own_library(table: Table) -> pa.Table:
    """Read with pyarrow, deltalake or pyiceberg."""
    if table.way.table_format == "delta":
        from deltalake import DeltaTable

        return DeltaTable(str(table.out)).to_pyarrow_table()
    if table.way.table_format == "iceberg":
        return catalog(table.out).load_table(NO_TABLE.name).scan().to_arrow()
    types = {"topic": pa.string(), "date": pa.date32()}
    folders = ds.partitioning(pa.schema([(name, types[name]) for name in table.way.folders]), flavor="hive")
    return ds.dataset(table.out, partitioning=folders).to_table()


READERS: tuple[Callable[[Table], pa.Table], ...] = (by_own_library, by_duckdb, by_polars, by_spark)


# --- comparisons ------------------------------------------------------------------------------------------------------


def rows(found: pa.Table) -> list[tuple[Any, ...]]:
    """Return the rows in the form of `rows_of`."""
    table = found.select(COLUMNS).to_pydict()
    table["timestamp"] = found.column("timestamp").cast(pa.int64()).to_pylist()
    return sorted(zip(*(table[name] for name in COLUMNS), strict=True), key=lambda row: row[:3])


def others(found: pa.Table) -> Counter[str]:
    """Return all other columns, by offset, as text, in which readers' own types are equal."""
    columns = found.select(("topic", "partition", "offset", *OTHERS)).to_pylist()
    return Counter(repr({name: plain(value) for name, value in row.items()}) for row in columns)


def plain(value: Any) -> Any:
    """Return a value without readers' differences: maps as lists, times without zones, and pyiceberg's lists.

    pyiceberg returns an empty list for a null list, as docs/how-to/tables.md says.
    """
    if isinstance(value, dict):
        return {name: plain(each) for name, each in value.items()}
    if isinstance(value, list):
        return [
            plain(dict(zip(("key", "value"), each, strict=True)) if isinstance(each, tuple) else each) for each in value
        ] or None
    if isinstance(value, datetime):
        return str(value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None))
    return value


def differences(table: Table) -> Iterator[str]:
    """Yield the differences of readers from the logs, and from the format's own library."""
    wanted, own = rows_of(table.way), None
    for read in READERS:
        name = f"{table.maker}, {table.way.name}, {read.__name__}"
        try:
            found = read(table)
        except Exception as error:  # noqa: BLE001 - whatever a library raises, the table can't be read
            yield f"{name}: {type(error).__name__}: {str(error)[:300]}"
            continue
        if (has := rows(found)) != wanted:
            first = next((pair for pair in zip(has, wanted, strict=False) if pair[0] != pair[1]), None)
            yield f"{name}: {len(has)} rows instead of {len(wanted)}; first difference: {first}"
        values = others(found)
        own = own or values
        if values != own:
            yield f"{name}: {[*(values - own)][:1]} instead of {[*(own - values)][:1]}"


def test_all_readers_have_every_row_and_every_value(
    made_tables: list[Table], capsys: pytest.CaptureFixture[str]
) -> None:
    assert len(made_tables) == 2 * len(WAYS)
    assert [each for table in made_tables for each in differences(table)] == []
    with capsys.disabled():
        print(f"\n{len(made_tables)} tables, {len(READERS)} readers of each: no difference")  # noqa: T201


def test_filters_of_spark_take_all_rows_and_read_few_files(made_tables: list[Table]) -> None:
    filtered = [table for table in made_tables if table.is_filtered]
    assert len(filtered) == len(WAYS) / 2
    for table in filtered:
        with duckdb.connect() as connection:
            connection.execute("SET timezone = 'UTC'")
            connection.register("every_row", by_own_library(table))
            counts = sorted(map(list, connection.sql(counting(table.way, "every_row")).fetchall()))
        found, files = json.loads(table.counts.read_bytes())
        assert found == counts, table.way.name
        assert all(count for _, count in counts)
        if table.way.folders != ("date",):  # otherwise a partition has many files
            assert files == (1 if table.way.table_format == "delta" else None), table.way.name
