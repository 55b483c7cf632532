"""Queries return the same as DuckDB over an export of the same disk."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from kseg.query.session import QuerySession
from tests.export.exports import export
from tests.query.disks import START_MS, opened, rows, write_disk

AT = f"to_timestamp({START_MS / 1000 + 600})"
QUERIES = [
    "SELECT count(*) FROM records",
    "SELECT topic, partition, count(*), min(\"offset\"), max(\"offset\") FROM records GROUP BY ALL ORDER BY ALL",
    "SELECT * FROM orders ORDER BY partition, \"offset\"",
    "SELECT * FROM odd ORDER BY \"offset\"",
    "SELECT key, count(*) n FROM orders GROUP BY key ORDER BY n DESC, key LIMIT 7",
    f"SELECT count(*), min(timestamp) FROM orders WHERE timestamp > {AT}",
    f"SELECT count(*), max(timestamp) FROM orders WHERE timestamp <= {AT}",
    f"SELECT partition, \"offset\" FROM orders WHERE timestamp BETWEEN {AT} AND {AT} + INTERVAL 3 SECOND ORDER BY ALL",
    "SELECT * FROM orders WHERE partition = 1 AND \"offset\" = 777",
    "SELECT \"offset\", key FROM orders WHERE \"offset\" IN (3, 600, 1999, 5000) AND partition <> 0 ORDER BY ALL",
    "SELECT sum(octet_length(value)) FROM orders WHERE key = 'customer-3'::BLOB OR \"offset\" < 30",
    "SELECT count(*) FROM records WHERE topic IN ('odd', 'zstd') AND key IS NULL",
    "SELECT \"offset\", value IS NULL, timestamp FROM odd WHERE NOT (\"offset\" > 2) ORDER BY ALL",
    "SELECT producerId, producerEpoch, count(*), max(sequence) FROM records "
    "WHERE NOT isControl GROUP BY ALL ORDER BY ALL",
    "SELECT compression, magic, count(*), count(DISTINCT baseOffset) FROM records GROUP BY ALL ORDER BY ALL",
    "SELECT headers[1].key, headers[1].value, count(*) FROM orders GROUP BY ALL ORDER BY ALL LIMIT 20",
    "SELECT sum((json_extract_string(decode(value), '$.amount'))::INT) FROM orders WHERE partition = 2",
    "SELECT a.\"offset\" FROM orders a JOIN orders b USING (key, \"offset\") WHERE a.partition = 0 AND b.partition = 1 "
    "AND a.\"offset\" % 100 = 7 ORDER BY 1",
    "SELECT * FROM (SELECT *, row_number() OVER (PARTITION BY key ORDER BY timestamp DESC) n FROM orders) "
    "WHERE n = 1 ORDER BY ALL",
    "SELECT date_trunc('minute', timestamp) AS minute, count(*) FROM records "
    "WHERE topic LIKE 'o%' GROUP BY 1 ORDER BY 1",
    "SELECT topic, timestampType, segment, count(*) FROM records WHERE position > 100 GROUP BY ALL ORDER BY ALL",
    "SELECT count(*) FROM orders WHERE \"offset\" >= (SELECT max(\"offset\") - 10 FROM orders WHERE partition = 0)",
    "WITH last AS (FROM orders ORDER BY \"offset\" DESC, partition LIMIT 5) "
    "SELECT partition, \"offset\", value FROM last",
    "SELECT topic FROM records WHERE timestamp IS NULL "
    "UNION SELECT topic FROM records WHERE \"offset\" > 100 ORDER BY 1",
]  # fmt: skip


@pytest.fixture(scope="module")
def disk(restored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a disk with a broker's logs (zstd, transactions, compaction) and new ones."""
    root = write_disk(tmp_path_factory.mktemp("disk"))
    for partition in (restored / "logs" / "4.3.1").glob("[a-z]*-[0-9]"):
        (root / partition.name).symlink_to(partition)
    return root


@pytest.fixture(scope="module")
def session(disk: Path) -> Iterator[QuerySession]:
    with opened(disk) as session:
        yield session


@pytest.fixture(scope="module")
def parquet(disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[duckdb.DuckDBPyConnection]:
    """Yield DuckDB over the files of an export, with views of the same names."""
    out = tmp_path_factory.mktemp("export")
    export([disk], out, batch_columns=True)
    options = "hive_partitioning = true, hive_types = {'topic': VARCHAR}, union_by_name = true"
    with duckdb.connect() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        times = "CASE WHEN epoch_ms(timestamp) = -1 THEN NULL ELSE timestamp END AS timestamp"  # files have Kafka's -1
        rows = f"read_parquet('{out}/topic=*/*.parquet', {options})"
        connection.execute(f"CREATE VIEW records AS SELECT * REPLACE ({times}) FROM {rows}")
        columns = 'key, value, topic, partition, "offset", timestamp, timestampType, headers'
        for folder in out.glob("topic=*"):
            topic = folder.name.removeprefix("topic=")
            connection.execute(f"CREATE VIEW \"{topic}\" AS SELECT {columns} FROM records WHERE topic = '{topic}'")
        yield connection


def sorted_unless_asked(sql: str, found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    return found if "ORDER BY" in sql else sorted(found, key=repr)


@pytest.mark.parametrize("sql", QUERIES)
def test_query_gives_what_it_gives_over_the_export(
    session: QuerySession, parquet: duckdb.DuckDBPyConnection, sql: str
) -> None:
    expected = [tuple(row) for row in parquet.execute(sql).fetchall()]
    assert expected
    assert sorted_unless_asked(sql, rows(session, sql)) == sorted_unless_asked(sql, expected)


def test_views_have_the_columns_of_the_export(session: QuerySession, parquet: duckdb.DuckDBPyConnection) -> None:
    for name in ("orders", "odd", "zstd"):
        described = rows(session, f"SELECT column_name, column_type FROM (DESCRIBE {name})")
        assert described == parquet.execute(f"SELECT column_name, column_type FROM (DESCRIBE {name})").fetchall()
    own = dict(rows(session, "SELECT column_name, column_type FROM (DESCRIBE records)"))
    exported = dict(parquet.execute("SELECT column_name, column_type FROM (DESCRIBE records)").fetchall())
    assert (exported.pop("timestampMs"), own) == ("BIGINT", exported)
