"""Features of queries that the source handles: filters, columns, the connector's options, a catalog's tables."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kseg.errors import KsegError
from tests import golden
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kseg.spark.data_source import KsegReader

pytestmark = pytest.mark.spark

BROKER = golden.ROOT / "logs" / "4.3.1"
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


def reader(path: Path, columns: str = "offset", **options: Any) -> "KsegReader":
    """Return a batch query's reader, without Spark; __ in an option name stands for a dot."""
    from kseg.spark.data_source import KsegReader
    from kseg.spark.options import Request

    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    return KsegReader(Request.parse({"path": str(path), **named}), columns.split())


def offsets_read(found: "KsegReader") -> list[int]:
    batches = [batch for task in found.partitions() for batch in found.read(task)]
    return [offset for batch in batches for offset in batch.column("offset").to_pylist()]


# --- filters ---------------------------------------------------------------------------------------------------------


def test_queries_of_one_frame_have_filters_of_their_own(spark: "SparkSession") -> None:
    for offered in ("true", "false"):
        spark.conf.set("spark.sql.python.filterPushdown.enabled", offered)
        frame = spark.read.format("kseg").option("subscribe", "zstd").load(str(BROKER))
        first = frame.where("offset < 300")
        assert [first.count(), frame.count(), first.union(frame.where("offset >= 560")).count()] == [19, 290, 19 + 11]


# --- columns ---------------------------------------------------------------------------------------------------------


def test_a_query_reads_the_columns_of_its_schema(spark: "SparkSession") -> None:
    def frame(schema: str) -> "DataFrame":
        return spark.read.format("kseg").option("subscribe", "zstd").schema(schema).load(str(BROKER))

    assert frame("offset bigint, topic string").columns == ["offset", "topic"]
    assert frame("offset bigint").count() == 290
    wide = frame("headers array<struct<key:string,value:binary>>, compression string").first()
    assert wide is not None
    assert wide.compression == "zstd"


@pytest.mark.parametrize("schema", ["number bigint", "offset int"])
def test_a_schema_of_other_columns_is_refused(schema: str, spark: "SparkSession") -> None:
    with pytest.raises(
        Exception, match=f"the schema has the column {schema}, which doesn't exist; choose from key binary, "
    ):
        spark.read.format("kseg").schema(schema).load(str(BROKER)).count()


def test_damages_of_all_damaged_partitions_are_a_table(spark: "SparkSession") -> None:
    frame = spark.read.format("kseg").option("table", "damages").load(str(golden.ROOT / "damaged"))
    rows = frame.where("position > 0").select("kind", "position").collect()
    assert len(rows) == frame.where("position + 0 > 0").count() > 50
    narrow = spark.read.format("kseg").option("table", "damages").schema("kind string, position bigint")
    assert narrow.load(str(golden.ROOT / "damaged")).where("position > 0").count() == len(rows)


# --- options ---------------------------------------------------------------------------------------------------------


def test_a_program_for_the_connector_runs_and_is_told_what_is_ignored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 10)
    options = {
        "kafka__bootstrap__servers": "localhost:9092",
        "kafka__security__protocol": "SASL_SSL",
        "kafka__isolation__level": "read_committed",
        "subscribe": "orders",
        "startingOffsets": "earliest",
        "endingOffsets": "latest",
        "groupIdPrefix": "mine",
        "fetchOffset__numRetries": 3,
        "maxOffsetsPerTrigger": 5,
        "minPartitions": 2,
        "failOnDataLoss": "true",
    }
    assert offsets_read(reader(tmp_path, **options)) == [*range(10)]
    assert [line for line in capsys.readouterr().err.splitlines() if "ignored" in line] == [
        "kseg: ignored these options, which have no effect here: fetchOffset.numRetries, groupIdPrefix, "
        "kafka.bootstrap.servers, kafka.security.protocol, maxOffsetsPerTrigger"
    ]


@pytest.fixture
def timed_partitions(tmp_path: Path) -> Path:
    """Return two partitions with offsets 0 to 9, whose times rise by a second from 1000 s on."""
    for partition in range(2):
        records = [NewBatch([NewRecord(b"k", b"v", 1_000_000 + 1000 * offset)], offset) for offset in range(10)]
        exports.write_indexes(write_segment(tmp_path / f"orders-{partition}", records))
    return tmp_path


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"startingTimestamp": 1_007_500}, [8, 9, 8, 9]),
        ({"endingTimestamp": 1_001_000}, [0, 0]),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1008000,"1":1009000}}'}, [8, 9, 9]),
        ({"endingOffsetsByTimestamp": '{"orders":{"0":1002000,"1":9999999}}'}, [0, 1, *range(10)]),
        ({"startingTimestamp": 9_999_999, "startingOffsetsByTimestampStrategy": "latest"}, []),
        ({"startingTimestamp": -1}, []),
        ({"startingOffsets": " Earliest ", "endingOffsets": "LATEST"}, [*range(10), *range(10)]),
        ({"subscribePattern": r"ord\p{Lower}+s$", "endingTimestamp": 1_001_000}, [0, 0]),
        ({"subscribePattern": "Orders"}, []),
        ({"assign": '{"orders":[1,7]}', "endingTimestamp": 1_001_000}, [0]),
        ({"startingTimestamp": 1_009_000, "startingOffsets": "earliest"}, [9, 9]),
        ({"startingOffsets": '{"orders":{"0":-2,"1":9}}', "endingOffsets": '{"orders":{"0":1,"1":-1}}'}, [0, 9]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_offsets_and_times_bound_a_query(options: dict[str, Any], expected: list[int], timed_partitions: Path) -> None:
    assert sorted(offsets_read(reader(timed_partitions, **options))) == sorted(expected)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"startingTimestamp": 9_999_999}, "no record has the timestamp 9999999 or a later one"),
        ({"startingOffsetsByTimestamp": '{"orders":{"0":1}}'}, "that are read: it lacks orders-1"),
        ({"startingOffsets": "nosuch"}, "startingOffsets isn't JSON"),
        ({"startingOffsets": '{"orders":{"0":11,"1":0}}'}, "the start offset 11 is greater than the end offset 10"),
        ({"startingTimestamp": "-3"}, "startingTimestamp is '-3', expected a number from -2 on"),
        ({"kafka__enable__auto__commit": "true"}, "kafka.enable.auto.commit can't be set; startingOffsets decides"),
        ({"assign": '{"orders":0}'}, "assign is '{\"orders\":0}', expected JSON such as"),
        ({"pushdown": "true"}, "no option 'pushdown'"),
        ({"startingOffsetsByTimestampStrategy": "none", "startingTimestamp": 9_999_999}, "expected error or latest"),
        ({"endingOffsets": '{"orders":{"0":11,"1":-1}}'}, "the log ends at offset 10, before the requested offset 11"),
        ({"minPartition": 1}, "no option 'minpartition'; did you mean minPartitions?"),
        ({"table": "batches"}, "table is 'batches', expected records or damages"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else None,
)
def test_what_cannot_be_read_is_refused_in_a_line(
    options: dict[str, Any], complaint: str, timed_partitions: Path
) -> None:
    def ask() -> None:
        reader(timed_partitions, **options).partitions()

    with pytest.raises(KsegError, match=re.escape(complaint)) as caught:
        ask()
    assert "\n" not in str(caught.value)


def test_offsets_that_are_gone_end_a_query_or_are_left_out(timed_partitions: Path) -> None:
    (timed_partitions / "orders-1" / f"{0:020}.log").unlink()
    exports.write_log(timed_partitions / "orders-1", 20, 5)
    wanted = {"startingOffsets": '{"orders":{"0":9,"1":15}}'}
    with pytest.raises(KsegError, match="the log begins at offset 20, so offsets 15 to 19 no longer exist"):
        reader(timed_partitions, **wanted).partitions()
    assert sorted(offsets_read(reader(timed_partitions, failOnDataLoss="false", **wanted))) == [9, *range(20, 25)]


def test_records_below_the_log_start_offset_are_left_out(timed_partitions: Path) -> None:
    (timed_partitions / "log-start-offset-checkpoint").write_text("0\n1\norders 1 7\n")
    assert offsets_read(reader(timed_partitions, assign='{"orders":[1]}')) == [7, 8, 9]
    assert sorted(offsets_read(reader(timed_partitions))) == sorted([*range(10), 7, 8, 9])
    wanted = {"startingOffsets": '{"orders":{"0":9,"1":5}}'}
    with pytest.raises(KsegError, match="the log begins at offset 7, so offsets 5 to 6 no longer exist"):
        reader(timed_partitions, **wanted).partitions()
    assert sorted(offsets_read(reader(timed_partitions, failOnDataLoss="false", **wanted))) == [7, 8, 9, 9]
    wanted |= {"respectLogStartOffset": "false"}
    assert sorted(offsets_read(reader(timed_partitions, **wanted))) == [5, 6, 7, 8, 9, 9]


def test_named_internal_topics_are_skipped_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    assert reader(BROKER, subscribe="__consumer_offsets,zstd").partitions()
    assert "kseg: subscribe skips internal topics (__consumer_offsets); omit it to read them" in capsys.readouterr().err
    assert reader(BROKER, subscribePattern="__consumer").partitions() == []


def test_a_data_frame_is_not_written(spark: "SparkSession", tmp_path: Path) -> None:
    from kseg.spark.tasks import message_of

    with pytest.raises(Exception, match="the data source only reads") as caught:
        spark.range(3).write.format("kseg").mode("append").save(str(tmp_path / "out"))
    assert message_of(caught.value).startswith("the data source only reads; write DataFrames with another format")


def test_a_log_cut_after_the_plan_ends_a_query_or_is_told(
    timed_partitions: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exports.write_log(timed_partitions / "orders-1", 10, 5)
    changed = f"{10:020}.log has changed since it was listed"
    found = {strict: reader(timed_partitions, failOnDataLoss=strict) for strict in ("true", "false")}
    tasks = {strict: one.partitions() for strict, one in found.items()}
    (timed_partitions / "orders-1" / f"{10:020}.log").write_bytes(b"")
    with pytest.raises(KsegError, match=f"{changed}; set failOnDataLoss=false to continue"):
        [batch for task in tasks["true"] for batch in found["true"].read(task)]
    rows = [batch.num_rows for task in tasks["false"] for batch in found["false"].read(task)]
    assert sum(rows) == 20
    assert changed in capsys.readouterr().err


# --- each offset once ------------------------------------------------------------------------------------------------


def _add_repeated(partition: Path) -> None:
    """Add a second segment that repeats some of the first one's offsets, with a later leader epoch."""
    write_segment(partition, [NewBatch([NewRecord(b"k", b"first")], offset) for offset in range(10)])
    later = [NewBatch([NewRecord(b"k", b"second")], offset, partition_leader_epoch=1) for offset in range(5, 15)]
    write_segment(partition, later, 10)


def _swap(partition: Path) -> None:
    offsets = [0, 1, 5, 6, 2, 3, 4, 7]
    write_segment(partition, [NewBatch([NewRecord(b"k", b"first")], offset) for offset in offsets])


@pytest.mark.parametrize(("write", "count"), [(_add_repeated, 15), (_swap, 8)])
def test_each_offset_is_read_once(write: Callable[[Path], None], count: int, tmp_path: Path) -> None:
    write(tmp_path / "orders-0")
    found = reader(tmp_path, "offset value")
    rows = [
        row
        for task in found.partitions()
        for batch in found.read(task)
        for row in zip(*batch.to_pydict().values(), strict=True)
    ]
    assert sorted(offset for offset, _ in rows) == [*range(count)]
    if write is _add_repeated:
        assert {offset for offset, value in rows if value == b"second"} == {*range(5, 15)}


def test_a_disordered_partition_cut_into_tasks_is_refused_or_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _add_repeated(tmp_path / "orders-0")
    cut = {"splitSize": 100, "minPartitions": 2}
    found = reader(tmp_path, **cut)
    tasks = found.partitions()
    assert len(tasks) == 2
    with pytest.raises(KsegError, match="offsets don't rise, so records may appear twice; increase splitSize"):
        [*found.read(tasks[0]), *found.read(tasks[1])]
    assert len(offsets_read(reader(tmp_path, failOnDataLoss="false", **cut))) == 20
    assert "offsets don't rise" in capsys.readouterr().err


# --- tables of a catalog ---------------------------------------------------------------------------------------------


def test_a_table_of_the_catalog_keeps_its_options(spark: "SparkSession", tmp_path: Path) -> None:
    exports.write_log(tmp_path / "a b" / "orders-0", 0, 10)
    exports.write_log(tmp_path / "a b" / "others-0", 0, 5)
    spark.sql(f"CREATE TABLE logs_table USING kseg OPTIONS (path '{tmp_path}/a b', subscribe 'orders')")
    try:
        assert spark.sql("SELECT count(*) n, max(offset) last FROM logs_table WHERE offset > 3").collect() == [(6, 9)]
        assert spark.table("logs_table").columns[:2] == ["key", "value"]
    finally:
        spark.sql("DROP TABLE logs_table")
    spark.sql(f"CREATE TEMPORARY VIEW logs_view USING kseg OPTIONS (path '{tmp_path}/a b', includeHeaders 'true')")
    assert spark.sql("SELECT topic, count(headers), count(*) FROM logs_view GROUP BY topic ORDER BY 1").collect() == [
        ("orders", 0, 10),
        ("others", 0, 5),
    ]
    spark.catalog.dropTempView("logs_view")


def test_a_table_with_columns_of_its_own_is_refused_in_words(spark: "SparkSession", tmp_path: Path) -> None:
    spark.sql(f"CREATE TABLE own_columns (offset bigint) USING kseg OPTIONS (path '{tmp_path}')")
    try:
        with pytest.raises(
            Exception, match="Spark doesn't pass on the path of a table that was created with its own columns"
        ):
            spark.sql("SELECT * FROM own_columns").collect()
    finally:
        spark.sql("DROP TABLE own_columns")
