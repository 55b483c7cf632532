"""The numbers of a report equal DuckDB's counts in an export of the same disk."""

from pathlib import Path
from typing import Any

import duckdb
import pytest

from tests.report.made_disk import NOW, made_disk, objects, row, rows
from tests.run import kseg

DISKS = ["0.10.2.2", "0.11.0.3", "2.0.1", "2.4.1", "2.8.2", "3.3.2", "3.9.1", "4.1.0", "4.3.1", "4.4.0-made"]
KEY, VALUE = "coalesce(octet_length(key), 0)", "coalesce(octet_length(value), 0)"
HEADER = "octet_length(encode(h.key)) + coalesce(octet_length(h.value), 0)"
HEADERS = f"(SELECT coalesce(sum({HEADER}), 0) FROM (SELECT unnest(headers) AS h))"


def export_records(disk: Path, target: Path) -> duckdb.DuckDBPyConnection:
    """Return the records of a disk as a table, each topic's by partition."""
    ran = kseg(["export", str(disk), str(target), "--batch-columns", "--partition-by", "topic", "-q"], target.parent)
    assert ran.status == 0, ran.stderr
    database = duckdb.connect()
    source = f"read_parquet('{target}/**/*.parquet', hive_partitioning=true, hive_types={{'topic': VARCHAR}})"
    database.execute(f"CREATE TABLE records AS SELECT *, {KEY} + {VALUE} + {HEADERS} AS bytes FROM {source}")
    return database


def run_query(database: duckdb.DuckDBPyConnection, query: str) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = database.execute(query).fetchall()
    return found


@pytest.fixture(scope="module", params=[*DISKS, "made"])
def counted_rows(
    request: pytest.FixtureRequest, restored: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[dict[str, Any]], duckdb.DuckDBPyConnection]:
    folder = tmp_path_factory.mktemp("counted")
    disk = made_disk(folder) if request.param == "made" else restored / "logs" / request.param
    return objects(folder, str(disk), "--now", NOW), export_records(disk, folder / "exported")


def test_report_counts_as_an_export_does(
    counted_rows: tuple[list[dict[str, Any]], duckdb.DuckDBPyConnection],
) -> None:
    found, database = counted_rows
    topics = run_query(
        database,
        "SELECT topic, count(*), count(*) FILTER (key IS NULL), count(*) FILTER (key IS NOT NULL AND value IS NULL),"
        " sum(bytes), min(bytes), max(bytes), count(DISTINCT (partition, key)) FILTER (key IS NOT NULL),"
        " count(DISTINCT (partition, segment, position)) FROM records GROUP BY topic",
    )
    assert topics
    for topic, records, null_keys, tombstones, size, least, most, keys, batches in topics:
        assert row(found, "topics", topic=topic)["records"] == records
        sizes = row(found, "sizes", topic=topic, part="record")
        assert (sizes["count"], sizes["bytes"], sizes["least"], sizes["most"]) == (records, size, least, most)
        counts = row(found, "keyCounts", topic=topic)
        assert (counts["keys"], counts["nullKeys"]) == (f"{keys:,}", null_keys)
        assert row(found, "batches", topic=topic)["batches"] >= batches
        for compacted in (each for each in rows(found, "compactionTopics") if each["topic"] == topic):
            assert (compacted["tombstones"], compacted["superseded"]) == (tombstones, records - null_keys - keys)


def test_report_counts_codecs_producers_and_keys_as_an_export_does(
    counted_rows: tuple[list[dict[str, Any]], duckdb.DuckDBPyConnection],
) -> None:
    found, database = counted_rows
    for topic, codec, records in run_query(database, "SELECT topic, compression, count(*) FROM records GROUP BY ALL"):
        assert row(found, "codecs", topic=topic, codec=codec)["records"] == records
    producers = (
        "SELECT topic, producerId, count(*), max(epoch_ms(timestamp)) FROM records WHERE producerId >= 0 GROUP BY ALL"
    )
    for topic, producer, records, _ in run_query(database, producers):
        assert row(found, "producers", topic=topic, producerId=str(producer))["records"] == records
    by_key = "SELECT topic, key, count(*) AS many FROM records WHERE key IS NOT NULL GROUP BY ALL"
    for topic, records in run_query(database, f"SELECT topic, max(many) FROM ({by_key}) GROUP BY topic"):
        hot = [each["records"] for each in rows(found, "hotKeys") if each["topic"] == topic]
        assert not hot or hot[0] == records, topic
        assert hot or records == 1 or not _has_repeated_key_within_a_partition(database, topic)


def _has_repeated_key_within_a_partition(database: duckdb.DuckDBPyConnection, topic: str) -> bool:
    query = (
        f"SELECT 1 FROM records WHERE topic = '{topic}' AND key IS NOT NULL GROUP BY partition, key HAVING count(*) > 1"
    )
    return bool(run_query(database, query))


def test_percentiles_are_at_most_three_percent_too_large(
    counted_rows: tuple[list[dict[str, Any]], duckdb.DuckDBPyConnection],
) -> None:
    found, database = counted_rows
    query = "SELECT topic, quantile_disc(bytes, 0.5), quantile_disc(bytes, 0.99) FROM records GROUP BY topic"
    for topic, half, most in run_query(database, query):
        sizes = row(found, "sizes", topic=topic, part="record")
        assert half <= sizes["p50"] <= half * 33 / 32 + 1
        assert most <= sizes["p99"] <= most * 33 / 32 + 1
