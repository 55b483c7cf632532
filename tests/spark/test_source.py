"""`spark.read.format("kseg")`: the logs' records, under spark-sql-kafka's names, types and options."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import kseg
from tests import golden
from tests.export import exports
from tests.log_files import ABORT, NewBatch, NewRecord, marker, write_segment
from tests.transactional import SNAPSHOT_ENTRY, SNAPSHOT_HEADER, committed_offsets, mutate_partition

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.spark

BROKER = golden.ROOT / "logs" / "4.3.1"
CONNECTOR_SCHEMA = (
    "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,timestampType:int,"
    "headers:array<struct<key:string,value:binary>>>"
)


def read(spark: "SparkSession", path: Path, **options: Any) -> "DataFrame":
    """Read a table; __ in an option name stands for a dot."""
    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    return spark.read.format("kseg").options(**named).load(str(path))


def offsets(frame: "DataFrame") -> list[int]:
    return sorted(row.offset for row in frame.select("offset").collect())


def test_schema_is_the_connectors(spark: "SparkSession") -> None:
    assert read(spark, BROKER, includeHeaders="true").schema.simpleString() == CONNECTOR_SCHEMA


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_the_records_of_all_golden_partitions(isolation: str, spark: "SparkSession", tmp_path: Path) -> None:
    expected: dict[str, set[tuple[Any, ...]]] = {}
    partitions = sorted({path.parent for path in (golden.ROOT / "logs").glob("*/*/*.log")})
    for number, partition in enumerate(partitions):
        copy = shutil.copytree(partition, tmp_path / f"golden-{number}")
        (copy / "partition.metadata").unlink(missing_ok=True)  # they share one topic now
        expected[copy.name] = records_read(copy, isolation)
    columns = "concat(topic, '-', partition) name", "offset", "unix_micros(timestamp) time", "timestampType kind"
    options = {"includeHeaders": "true", "kafka__isolation__level": isolation, "failOnDataLoss": "false"}
    rows = (
        read(spark, tmp_path, **options)
        .selectExpr(*columns, "key", "value", "coalesce(headers, array()) headers")
        .collect()
    )
    found: dict[str, set[tuple[Any, ...]]] = {name: set() for name in expected}
    for row in rows:
        found[row.name].add((row.offset, row.time, row.kind, row.key, row.value, tuple(map(tuple, row.headers))))
    assert [name for name in expected if found[name] != expected[name]] == []
    assert len(rows) == sum(map(len, expected.values()))
    print(f"{isolation}: {len(rows)} rows of {len(expected)} partitions are those of an independent read")  # noqa: T201


def records_read(partition: Path, isolation: str) -> set[tuple[Any, ...]]:
    """Return the rows of a partition, read batch by batch; committed records end at the last stable offset."""
    control = {
        record.offset
        for path in partition.glob("*.log")
        for batch in batches_of(path)
        if batch.is_control
        for record in batch.records(on_damage="skip")
    }
    records = [record for record in exports.records_of(partition) if record.offset not in control]
    if isolation == "read_committed":
        wanted = set() if open_before(partition) else set(committed_offsets(partition))
        records = [record for record in records if record.offset in wanted]
    return {(row[0], _micros(record), *row[2:]) for record in records for row in [exports.row_of(record)]}


def _micros(record: kseg.Record) -> int | None:
    """Return Spark's form of a time, even after the year 9999, or None if its microseconds exceed 64 bits."""
    micros = record.timestamp * 1000
    return micros if -(1 << 63) <= micros < 1 << 63 else None


def open_before(partition: Path) -> set[int]:
    """Return producers with an open transaction from before the log: a broker's last stable offset is then its start.

    They come from the newest snapshot, which a broker loads: ProducerStateManager, UnifiedLog.
    """
    start = min(int(path.stem) for path in partition.glob("*.log"))
    newest = max(partition.glob("*.snapshot"), default=None)
    entries = [] if newest is None else SNAPSHOT_ENTRY.iter_unpack(newest.read_bytes()[SNAPSHOT_HEADER.size :])
    return {entry[0] for entry in entries if 0 <= entry[-1] < start}


def batches_of(path: Path) -> list[kseg.Batch]:
    with kseg.open_segment(path) as segment:
        return [item for item in segment.scan() if isinstance(item, kseg.Batch)]


def test_topics_by_name_by_pattern_and_by_assignment(spark: "SparkSession") -> None:
    def topics(**options: str) -> set[str]:
        return {row.topic for row in read(spark, BROKER, **options).select("topic").distinct().collect()}

    assert topics(subscribe="zstd,append-zstd") == {"zstd", "append-zstd"}
    assert topics(subscribePattern=".*zstd") == {"zstd", "append-zstd"}
    assert topics(assign='{"zstd":[0]}') == {"zstd"}


def test_offsets_name_every_partition_and_may_be_earliest_and_latest(spark: "SparkSession") -> None:
    ranges = {"startingOffsets": '{"zstd":{"0":300}}', "endingOffsets": '{"zstd":{"0":310}}'}
    assert offsets(read(spark, BROKER, subscribe="zstd", **ranges)) == list(range(300, 310))
    ends = {"startingOffsets": '{"zstd":{"0":-2}}', "endingOffsets": '{"zstd":{"0":-1}}'}
    assert offsets(read(spark, BROKER, subscribe="zstd", **ends)) == list(range(281, 571))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"subscribe": "a", "assign": "{}"}, "only one of"),
        ({"subscribe": "nowhere"}, "subscribe nowhere: no such topic here"),
        ({"subscribe": "zstd", "startingOffsets": "latest"}, "startingOffsets can't be"),
        ({"subscribe": "zstd", "endingOffsets": "earliest"}, "endingOffsets can't be"),
        ({"startingOffsets": '{"zstd":{"0":1}}'}, "must name exactly the partitions that are read"),
        ({"includeHeader": "true"}, "no option 'includeheader'; did you mean includeHeaders"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_wrong_options_are_refused_in_words(options: dict[str, str], complaint: str, spark: "SparkSession") -> None:
    with pytest.raises(Exception, match=complaint):
        read(spark, BROKER, **options).count()


def test_large_segments_are_cut_into_at_least_the_partitions_asked_for(spark: "SparkSession", tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 2000)
    frame = read(spark, tmp_path / "orders-0", minPartitions=4)
    assert frame.rdd.getNumPartitions() >= 4
    assert offsets(frame) == list(range(2000))


def test_read_committed_leaves_out_aborted_records(spark: "SparkSession", tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"c", b"3")], 0, 1, 0, True)
    write_segment(tmp_path / "orders-0", [aborted, marker(ABORT, aborted), NewBatch([NewRecord(b"e", b"5")], 2)])
    assert offsets(read(spark, tmp_path / "orders-0")) == [0, 2]
    assert offsets(read(spark, tmp_path / "orders-0", kafka__isolation__level="read_committed")) == [2]


def test_no_index_or_snapshot_changes_what_is_committed(spark: "SparkSession", tmp_path: Path) -> None:
    expected = {}
    (tmp_path / "disk").mkdir()
    for seed in range(204):
        partition, _, _ = mutate_partition(seed, tmp_path / "made" / str(seed))
        expected[seed] = committed_offsets(partition)
        partition.rename((tmp_path / "disk" / f"m-{seed}").absolute())
    rows = read(spark, tmp_path / "disk", kafka__isolation__level="read_committed").select("partition", "offset")
    found: dict[int, list[int]] = {seed: [] for seed in expected}
    for row in rows.collect():
        found[row.partition].append(row.offset)
    assert {seed: sorted(offsets) for seed, offsets in found.items()} == expected


def test_file_that_is_not_believed_is_named_on_a_tasks_stderr(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from kseg.spark.data_source import KsegReader
    from kseg.spark.options import Request

    aborted = NewBatch([NewRecord(b"c", b"3")], 0, 1, 0, True)
    write_segment(tmp_path / "orders-0", [aborted, marker(ABORT, aborted), NewBatch([NewRecord(b"e", b"5")], 2)])
    options = {"path": str(tmp_path / "orders-0"), "kafka.isolation.level": "read_committed"}
    reader = KsegReader(Request.parse(options), ["offset"])
    rows = [batch.column("offset").to_pylist() for part in reader.partitions() for batch in reader.read(part)]
    assert rows == [[2]]
    assert (
        ".txnindex: missing, although the log has aborted transactions: kseg uses the log instead"
    ) in capsys.readouterr().err


def test_damage_fails_with_its_place_unless_it_is_let_pass(spark: "SparkSession") -> None:
    damaged = golden.ROOT / "damaged" / "210-wiped-batch"
    with pytest.raises(Exception, match="at position 237: bad-length"):
        read(spark, damaged).count()
    assert read(spark, damaged, failOnDataLoss="false").count() == 35
    (row,) = read(spark, damaged, table="damages").collect()
    assert (row.position, row.kind, row.firstOffset, row.endOffset) == (237, "bad-length", 21938, 21939)


def test_batch_columns_make_a_forensic_table(spark: "SparkSession") -> None:
    frame = read(spark, BROKER, subscribe="compacted-txn", includeBatch="true", includeControl="true")
    assert frame.where("isControl").count() == 8
    kinds = {(row.magic, row.compression) for row in frame.select("magic", "compression").collect()}
    assert kinds == {(2, "none"), (2, "lz4")}


def test_export_by_spark_is_the_export_by_processes(spark: "SparkSession", tmp_path: Path) -> None:
    from kseg.export.planning import Export
    from kseg.export.run import run_export
    from kseg.spark.job import by_context

    seen: list[tuple[int, int, int]] = []
    wanted = Export((str(BROKER),), str(tmp_path / "spark"), parallelism=2)
    report = run_export(wanted, by_context(spark.sparkContext, 2, lambda *counts: seen.append(counts)))
    exports.export([BROKER], tmp_path / "here")
    assert [table for _, _, table in exports.tables(tmp_path / "spark")] == [
        table for _, _, table in exports.tables(tmp_path / "here")
    ]
    assert report.is_whole
    assert spark.read.parquet(str(tmp_path / "spark")).count() == sum(part.records_out for part in report.partitions)
    assert run_export(wanted, by_context(spark.sparkContext, 2)).new_files == 0
    size = sum(part.bytes for part in report.partitions)
    assert {total for _, total, _ in seen} <= {size}
    assert all(0 <= done <= size for done, _, _ in seen)


def test_accounts_of_damaged_logs_are_the_same_by_spark(spark: "SparkSession", tmp_path: Path) -> None:
    from kseg.export.planning import Export
    from kseg.export.run import run_export
    from kseg.spark.job import by_context

    sources = [golden.ROOT / "damaged" / name for name in ("163-record-offset-delta-same", "210-wiped-batch")]
    sources += sorted((golden.ROOT / "damaged").glob("21[4-9]-*"))
    wanted = Export(tuple(map(str, sources)), str(tmp_path / "spark"), parallelism=2)
    report = run_export(wanted, by_context(spark.sparkContext, 2))
    here = exports.export(sources, tmp_path / "here")
    accounts = [
        [
            (part.topic, part.records_in, part.gaps, part.lost, part.passed_over, part.disordered, part.unexplained)
            for part in each.partitions
        ]
        for each in (report, here)
    ]
    assert accounts[0] == accounts[1]
    assert sum(part.passed_over for part in report.partitions) == 17
    assert report.status == 1
    assert spark.read.parquet(str(tmp_path / "spark")).count() == sum(part.records_out for part in report.partitions)


def test_a_failing_task_shows_one_line(spark: "SparkSession", tmp_path: Path) -> None:
    from kseg.errors import KsegError
    from kseg.export.planning import Export
    from kseg.export.run import run_export
    from kseg.export.settings import Mode, ReadOptions
    from kseg.spark.job import by_context

    damaged = golden.ROOT / "damaged" / "210-wiped-batch"
    wanted = Export((str(damaged),), str(tmp_path / "out"), read=ReadOptions(mode=Mode.FAILFAST))
    with pytest.raises(KsegError) as caught:
        run_export(wanted, by_context(spark.sparkContext, 2))
    assert str(caught.value).startswith(f"{damaged}/00000000000000021933.log: at position 237: bad-length")
    assert "\n" not in str(caught.value)
    assert list((tmp_path / "out").rglob("*.parquet")) == []
