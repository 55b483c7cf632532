"""Streams: the content of each batch, its end by limits, and losses between batches."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kseg.errors import KsegError
from tests.export import exports
from tests.log_files import ABORT, NewBatch, NewRecord, marker, write_segment

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from kseg.spark.stream import KsegStreamReader

pytestmark = pytest.mark.spark

FIRST_ID, SECOND_ID = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg"
IS_FIRST: dict[str, dict[str, int]] = {f"kseg/topicId/orders/{FIRST_ID}": {}}
"""The member of an offset that has the topic's id."""


def reader(path: Path, **options: Any) -> "KsegStreamReader":
    """Return a stream's reader, without Spark; __ in an option name stands for a dot."""
    from kseg.spark.options import Request
    from kseg.spark.stream import KsegStreamReader

    named = {name.replace("__", "."): str(value) for name, value in options.items()}
    return KsegStreamReader(Request.parse({"path": str(path), **named}), ["topic", "partition", "offset"])


def offsets_between(stream: "KsegStreamReader", start: dict[str, Any], end: dict[str, Any]) -> list[int]:
    found = [
        offset
        for task in stream.partitions(start, end)
        for batch in stream.read(task)
        for offset in batch.column("offset").to_pylist()
    ]
    return sorted(found)


def write_topic_id(partition: Path, topic_id: str) -> None:
    (partition / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    """Return a log directory with a partition of offsets 0 to 99 in two segments; its topic has an id."""
    exports.write_log(tmp_path / "logs" / "orders-0", 0, 60)
    exports.write_log(tmp_path / "logs" / "orders-0", 60, 40)
    write_topic_id(tmp_path / "logs" / "orders-0", FIRST_ID)
    return tmp_path / "logs"


def test_progress_is_the_connectors_and_the_topics_id(logs: Path) -> None:
    stream = reader(logs, startingOffsets="earliest")
    assert stream.initialOffset() == {"orders": {"0": 0}, **IS_FIRST}
    assert stream.latestOffset() == {"orders": {"0": 100}, **IS_FIRST}
    assert reader(logs).initialOffset() == {"orders": {"0": 100}, **IS_FIRST}


def test_a_checkpoint_of_the_connector_goes_on(logs: Path) -> None:
    stream = reader(logs)
    assert offsets_between(stream, {"orders": {"0": 90}}, stream.latestOffset({"orders": {"0": 90}})) == [
        *range(90, 100)
    ]


@pytest.mark.parametrize("offset", [[], {"orders": 5}, {"orders": {"0": "5"}}, {"orders": {"first": 5}}], ids=str)
def test_another_checkpoint_is_refused_in_a_line(offset: Any, logs: Path) -> None:
    with pytest.raises(KsegError, match="use a new checkpoint"):
        reader(logs).latestOffset(offset)


def test_what_is_below_the_log_start_offset_is_left_out(logs: Path) -> None:
    write_log_start(logs, 20)
    stream = reader(logs, startingOffsets="earliest")
    assert stream.initialOffset()["orders"] == {"0": 20}
    with pytest.raises(KsegError, match="offsets 5 to 19 were removed before they were read"):
        stream.latestOffset({"orders": {"0": 5}})
    assert reader(logs, startingOffsets="earliest", respectLogStartOffset="false").initialOffset()["orders"] == {"0": 0}


def write_log_start(logs: Path, offset: int) -> None:
    """Write the log start offset of orders-0 after records were deleted."""
    (logs / "log-start-offset-checkpoint").write_text(f"0\n1\norders 0 {offset}\n")


def test_a_limit_shares_a_batch_among_partitions(logs: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadMaxRows

    exports.write_log(logs / "orders-1", 0, 300)
    stream = reader(logs, startingOffsets="earliest", maxOffsetsPerTrigger=40)
    limit = stream.getDefaultReadLimit()
    assert limit == ReadMaxRows(40)
    start = stream.initialOffset()
    taken: list[int] = []
    while (end := stream.latestOffset(start, limit)) != start:
        taken.append(len(offsets_between(stream, start, end)))
        start = end
    assert taken == [40] * 10
    assert start == {"orders": {"0": 100, "1": 300}, **IS_FIRST}


def test_a_limit_counts_a_new_partition_from_where_its_log_begins(logs: Path) -> None:
    exports.write_log(logs / "late-0", 5_000, 20)
    stream = reader(logs, failOnDataLoss="false", maxOffsetsPerTrigger=10)
    start = {"orders": {"0": 100}}
    end = stream.latestOffset(start, stream.getDefaultReadLimit())
    assert end["late"] == {"0": 5_010}


def test_what_comes_after_available_now_began_is_left_for_later(logs: Path) -> None:
    stream = reader(logs, startingOffsets="earliest", maxOffsetsPerTrigger=70)
    start = stream.initialOffset()
    stream.prepareForTriggerAvailableNow()
    exports.write_log(logs / "orders-0", 100, 50)
    exports.write_log(logs / "late-0", 0, 5)
    ends = []
    while (end := stream.latestOffset(start, stream.getDefaultReadLimit())) != start:
        ends.append(end["orders"]["0"])
        start = end
    assert ends == [70, 100]
    assert list(start) == ["orders", *IS_FIRST]


def test_too_few_offsets_wait_for_more_or_for_the_longest_delay(logs: Path) -> None:
    stream = reader(logs, startingOffsets="earliest", minOffsetsPerTrigger=50)
    limit = stream.getDefaultReadLimit()
    first = stream.latestOffset(stream.initialOffset(), limit)
    exports.write_log(logs / "orders-0", 100, 40)
    assert stream.latestOffset(first, limit) == first
    exports.write_log(logs / "orders-0", 140, 10)
    assert stream.latestOffset(first, limit)["orders"]["0"] == 150
    patient = reader(logs, minOffsetsPerTrigger=50, maxTriggerDelay="0s")
    patient.latestOffset(first, limit)
    assert patient.latestOffset(first, limit)["orders"]["0"] == 150


def test_starts_are_offsets_times_or_ends(logs: Path) -> None:
    assert reader(logs, startingOffsets='{"orders":{"0":7}}').initialOffset()["orders"]["0"] == 7
    assert reader(logs, startingOffsets='{"orders":{"0":-1}}').initialOffset()["orders"]["0"] == 100
    assert reader(logs, startingOffsets='{"orders":{"0":-2}}').initialOffset()["orders"]["0"] == 0
    assert reader(logs, startingTimestamp=1_700_000_000_000).initialOffset()["orders"]["0"] == 0
    with pytest.raises(KsegError, match="no record has the timestamp 1800000000000 or a later one"):
        reader(logs, startingTimestamp=1_800_000_000_000).initialOffset()


def test_a_time_that_the_best_copy_lost_is_found_in_another(tmp_path: Path) -> None:
    for broker in (1, 2):
        disk = tmp_path / "disks" / str(broker)
        exports.write_log(disk / "orders-0", 0, 20)
        write_topic_id(disk / "orders-0", FIRST_ID)
        (disk / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={broker}\n")
        (disk / "cleaner-offset-checkpoint").write_text("0\n0\n")
    log = tmp_path / "disks" / "1" / "orders-0" / f"{0:020}.log"
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    stream = reader(tmp_path / "disks", startingTimestamp=1_700_000_000_000)
    assert stream.initialOffset()["orders"]["0"] == 0


def _retain(logs: Path) -> None:
    (logs / "orders-0" / f"{0:020}.log").unlink()


def _truncate(logs: Path) -> None:
    (logs / "orders-0" / f"{60:020}.log").unlink()


def _recreate(logs: Path) -> None:
    shutil.rmtree(logs / "orders-0")
    exports.write_log(logs / "orders-0", 0, 200)
    write_topic_id(logs / "orders-0", SECOND_ID)


def _move_away(logs: Path) -> None:
    (logs / "orders-0").rename(logs.parent / "orders-0")


def _new_without_its_beginning(logs: Path) -> None:
    exports.write_log(logs / "late-0", 10, 5)


LOSSES: list[tuple[Callable[[Path], None], str, dict[str, Any], list[int]]] = [
    (_retain, "offsets 50 to 59 were removed before they were read", {"0": 100}, [*range(60, 100)]),
    (_truncate, "the log ends at offset 60, but the stream has read up to 70", {"0": 60}, []),
    (_recreate, f"recreated: its id is {SECOND_ID}, expected {FIRST_ID}", {"0": 200}, [*range(200)]),
    (_move_away, "orders-0 no longer exists; the stream has read it up to offset 50", {}, []),
    (
        _new_without_its_beginning,
        "the new partition begins at offset 10, expected 0",
        {"0": 100},
        [*range(10, 15), *range(50, 100)],
    ),
]


@pytest.mark.parametrize(("happen", "told", "ends", "read"), LOSSES, ids=lambda value: getattr(value, "__name__", None))
def test_what_is_lost_ends_the_query_or_is_told(
    happen: Callable[[Path], None],
    told: str,
    ends: dict[str, Any],
    read: list[int],
    logs: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    start = {"orders": {"0": 70 if happen is _truncate else 50}, **IS_FIRST}
    happen(logs)
    for ask in (lambda: reader(logs).latestOffset(start), lambda: reader(logs).partitions(start, start)):
        with pytest.raises(KsegError, match=told) as caught:
            ask()
        assert "\n" not in str(caught.value)
    patient = reader(logs, failOnDataLoss="false")
    end = patient.latestOffset(start)
    assert end.get("orders", {}) == ends
    assert ("kseg/gone/orders/0/50" in end) == (happen is _move_away)
    assert offsets_between(patient, start, end) == read
    assert capsys.readouterr().err.count(told) == 1
    assert patient.latestOffset(end) == end


def test_a_directory_that_has_gone_ends_the_query_or_is_told(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    start = reader(logs).latestOffset()
    logs.rename(logs.parent / "elsewhere")
    with pytest.raises(KsegError, match="logs"):
        reader(logs).latestOffset(start)
    patient = reader(logs, failOnDataLoss="false")
    assert patient.latestOffset(start) == {"kseg/gone/orders/0/100": {}, **IS_FIRST}
    assert "orders-0 no longer exists" in capsys.readouterr().err


def test_a_partition_that_comes_back_is_read_on_from_where_reading_ended(logs: Path) -> None:
    start = {"orders": {"0": 50}, **IS_FIRST}
    _move_away(logs)
    gone = reader(logs, failOnDataLoss="false").latestOffset(start)
    assert reader(logs).latestOffset(gone) == gone
    (logs.parent / "orders-0").rename(logs / "orders-0")
    end = reader(logs).latestOffset(gone)
    assert end == {"orders": {"0": 100}, **IS_FIRST}
    assert offsets_between(reader(logs), gone, end) == [*range(50, 100)]


def test_a_topic_recreated_before_a_batch_was_read_ends_the_query_or_is_told(logs: Path) -> None:
    stream = reader(logs, startingOffsets="earliest")
    start, end = stream.initialOffset(), stream.latestOffset()
    _recreate(logs)
    with pytest.raises(KsegError, match="recreated"):
        stream.partitions(start, end)
    assert reader(logs, failOnDataLoss="false").partitions(start, end) == []


def test_a_log_cut_between_plan_and_task_is_noticed(logs: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = logs / "orders-0" / f"{60:020}.log"
    tasks = {}
    for strict in ("true", "false"):
        stream = reader(logs, startingOffsets="earliest", failOnDataLoss=strict)
        tasks[strict] = stream, stream.partitions(stream.initialOffset(), stream.latestOffset())
    path.write_bytes(b"")
    stream, planned = tasks["true"]
    with pytest.raises(KsegError, match="offsets 60 to 99 no longer exist: the log changed"):
        [*stream.read(planned[0])]
    stream, planned = tasks["false"]
    assert sum(batch.num_rows for batch in stream.read(planned[0])) == 60
    assert "offsets 60 to 99 no longer exist" in capsys.readouterr().err


def test_open_transactions_are_waited_for(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"c", b"3")], 1, 1, 0, True)
    committed = [NewBatch([NewRecord(b"a", b"1")], 0), aborted]
    write_segment(tmp_path / "orders-0", committed)
    stream = reader(tmp_path, startingOffsets="earliest", kafka__isolation__level="read_committed")
    start = stream.initialOffset()
    first = stream.latestOffset(start)
    assert offsets_between(stream, start, first) == [0]
    write_segment(tmp_path / "orders-0", [*committed, marker(ABORT, aborted), NewBatch([NewRecord(b"e", b"5")], 3)])
    assert offsets_between(stream, first, stream.latestOffset(first)) == [3]


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"endingOffsets": "latest"}, "endingOffsets: a stream has no end"),
        ({"endingTimestamp": "1"}, "endingTimestamp: a stream has no end"),
        ({"table": "damages"}, "a stream has only records"),
        ({"minOffsetsPerTrigger": "5", "maxTriggerDelay": "soon"}, "maxTriggerDelay is 'soon'"),
    ],
    ids=lambda value: None if isinstance(value, str) else " ".join(value),
)
def test_options_without_meaning_for_streams_are_refused(options: dict[str, str], complaint: str, logs: Path) -> None:
    def ask() -> None:
        stream = reader(logs, **options)
        stream.latestOffset({"orders": {"0": 99}}, stream.getDefaultReadLimit())

    with pytest.raises(KsegError, match=complaint):
        ask()


def take(spark: "SparkSession", logs: Path, **options: Any) -> list[int]:
    """Run the query again, and return everything that all runs have written as Parquet."""
    out = logs.parent / "out"
    stream = spark.readStream.format("kseg").option("startingOffsets", "earliest").options(**options).load(str(logs))
    query = (
        stream.select("topic", "partition", "offset")
        .writeStream.format("parquet")
        .option("path", str(out))
        .option("checkpointLocation", str(logs.parent / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return sorted(row.offset for row in spark.read.parquet(str(out)).collect())


def planned_ends(logs: Path) -> list[int]:
    """Return the ends of the batches of a query, from its checkpoint."""
    files = sorted((logs.parent / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return [json.loads(path.read_text().splitlines()[-1])["orders"]["0"] for path in files]


def test_a_stream_follows_a_growing_log_across_rolls(spark: "SparkSession", tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    exports.write_log(logs / "orders-0", 0, 50)
    assert take(spark, logs) == list(range(50))
    exports.write_log(logs / "orders-0", 0, 80)
    exports.write_log(logs / "orders-0", 80, 20)
    assert take(spark, logs, maxOffsetsPerTrigger=20) == list(range(100))
    assert planned_ends(logs) == [50, 70, 90, 100]


def test_a_topic_recreated_ends_a_query_in_a_line(spark: "SparkSession", logs: Path) -> None:
    take(spark, logs)
    _recreate(logs)
    with pytest.raises(Exception, match=f"kseg.errors.DamagedError: .*recreated: its id is {SECOND_ID}"):
        take(spark, logs)
    assert len(take(spark, logs, failOnDataLoss="false")) == 300
