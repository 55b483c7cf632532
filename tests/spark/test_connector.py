"""Options of `spark.read`: kseg's data source reads the rows of spark-sql-kafka on `kseg serve`, or both refuse."""

import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests import golden
from tests.export import exports
from tests.serve.running import Running, serving
from tests.spark.test_peer import spark as spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

LOGS = "LOGS"
"""The log directory in a line."""
ZSTD = {"subscribe": "zstd"}
LATE = {**ZSTD, "startingTimestamp": "99999999999999"}


def starting(offsets: str, **options: str) -> dict[str, str]:
    return {**ZSTD, "startingOffsets": offsets, **options}


def ending(offsets: str, **options: str) -> dict[str, str]:
    return {**ZSTD, "endingOffsets": offsets, **options}


SAME = [
    *({"subscribePattern": pattern} for pattern in ("zst", " ^zstd$ ", "consumer_off|^zstd$", "nosuch", ".*")),
    *(
        {"subscribePattern": pattern}
        for pattern in (r"^\p{Alpha}{4}$", r"^\Qzstd\E$", "^(?i)ZSTD$", "^[a-z&&[^a]]{4}$")
    ),
    {"subscribe": "__consumer_offsets"},
    *({"assign": text} for text in ('{"zstd":[0]}', '{"zstd":[0,7]}', '{"zstd":[7]}', '{"__consumer_offsets":[1]}')),
    starting(" EARLIEST ", endingOffsets="Latest"),
    starting('{"zstd":{"0":571}}'),
    starting('{"zstd":{"0":5}}', failOnDataLoss="false"),
    starting('{"zstd":{"0":-2}}', endingOffsets='{"zstd":{"0":300}}'),
    ending('{"zstd":{"0":9999}}', failOnDataLoss="false", **{"kafkaConsumer.pollTimeoutMs": "3000"}),
    *({**ZSTD, "startingTimestamp": text} for text in ("-1", "-2")),
    *({**ZSTD, "endingTimestamp": text} for text in ("-1",)),
    {**LATE, "startingOffsetsByTimestampStrategy": "LATEST"},
    {**ZSTD, "includeHeaders": "TRUE", "maxRecordsPerPartition": "7"},
]
"""Options with which both read the same rows."""
REFUSED: list[tuple[dict[str, str], str]] = [
    ({"subscribePattern": "zstd["}, "subscribePattern: `[` before position 5 is invalid or not supported; "),
    ({"subscribePattern": " "}, "subscribePattern is empty; specify topics, or omit it to read all"),
    ({"subscribe": " , "}, "subscribe is empty; specify topics, or omit it to read all"),
    ({"subscribe": "zstd,nosuch"}, "subscribe nosuch: no such topic here; "),
    ({"assign": '{"zsdt":[0]}'}, "assign zsdt: no such topic here; did you mean zstd"),
    ({"assign": "zstd"}, "assign isn't JSON: "),
    ({"assign": '{"zstd":0}'}, """assign is '{"zstd":0}', expected JSON such as {"orders":[0,1]}"""),
    ({**ZSTD, "assign": '{"zstd":[0]}'}, "only one of subscribe, subscribePattern, assign can be given"),
    (starting("LATEST"), "startingOffsets can't be 'LATEST' in a batch query"),
    (starting("first"), "startingOffsets isn't JSON: "),
    (starting('{"zstd":[1]}'), "startingOffsets is '{\"zstd\":[1]}', expected JSON such as "),
    (starting('{"zstd":{"0":-1}}'), "startingOffsets can't be "),
    (starting('{"zstd":{"0":-3}}'), "startingOffsets can't be "),
    (ending("EARLIEST"), "endingOffsets can't be 'EARLIEST' in a batch query"),
    (ending('{"zstd":{"0":-2}}'), "endingOffsets can't be "),
    (
        {"subscribe": "zstd,append-zstd", "startingOffsets": '{"zstd":{"0":300}}'},
        "startingOffsets must name exactly the partitions that are read: it lacks append-zstd-0",
    ),
    (
        starting('{"zstd":{"0":300,"7":3},"nosuch":{"0":3}}'),
        "startingOffsets must name exactly the partitions that are read: it adds nosuch-0, zstd-7",
    ),
    (
        ending('{"zstd":{"0":300,"7":3}}'),
        "endingOffsets must name exactly the partitions that are read: it adds zstd-7",
    ),
    (
        {"subscribe": "zstd,append-zstd", "startingOffsetsByTimestamp": '{"zstd":{"0":300}}'},
        "startingOffsetsByTimestamp must name exactly the partitions that are read: it lacks append-zstd-0",
    ),
    (
        starting('{"zstd":{"0":9999}}', failOnDataLoss="false"),
        f"{LOGS}/zstd-0: the start offset 9999 is greater than the end offset 571",
    ),
    (
        ending('{"zstd":{"0":5}}', failOnDataLoss="false"),
        f"{LOGS}/zstd-0: the start offset 281 is greater than the end offset 5",
    ),
    (
        starting('{"zstd":{"0":400}}', endingOffsets='{"zstd":{"0":300}}'),
        f"{LOGS}/zstd-0: the start offset 400 is greater than the end offset 300",
    ),
    (starting('{"zstd":{"0":5}}'), f"{LOGS}/zstd-0: the log begins at offset 281, so offsets 5 to 280 no longer exist"),
    ({**ZSTD, "startingTimestamp": "soon"}, "startingTimestamp is 'soon', expected a number from -2 on"),
    (LATE, f"{LOGS}/zstd-0: no record has the timestamp 99999999999999 or a later one; set "),
    ({**ZSTD, "minPartitions": "0"}, "minPartitions is '0', expected a number from 1 on"),
    (
        {**ZSTD, "minOffsetsPerTrigger": "9", "maxOffsetsPerTrigger": "5"},
        "minOffsetsPerTrigger is 9, above maxOffsetsPerTrigger, which is 5",
    ),
    ({**ZSTD, "kafka.auto.offset.reset": "earliest"}, "kafka.auto.offset.reset can't be set; "),
    ({**ZSTD, "kafka.isolation.level": "READ_COMMITTED"}, "isolation level 'READ_COMMITTED' or "),
    ({**ZSTD, "failOnDataLoss": "maybe"}, "failOnDataLoss is 'maybe', expected true or false"),
]
"""Options that both refuse, and kseg's line."""


class Sources(NamedTuple):
    """A session, and a server of the logs."""

    spark: "SparkSession"
    running: Running
    logs: Path

    def by_connector(self, options: dict[str, str]) -> "DataFrame":
        reader = self.spark.read.format("kafka").option("kafka.bootstrap.servers", self.running.bootstrap)
        return reader.options(**options).load()

    def by_kseg(self, options: dict[str, str]) -> "DataFrame":
        return self.spark.read.format("kseg").options(**options).load(str(self.logs))


@pytest.fixture(scope="module")
def sources(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sources]:
    """Yield both sources of the same logs."""
    logs = tmp_path_factory.mktemp("logs")
    for name in ("zstd-0", "append-zstd-0", "__consumer_offsets-1"):
        shutil.copytree(golden.ROOT / "logs" / "4.3.1" / name, logs / name)
    with serving(logs) as running:
        yield Sources(spark, running, logs)


def places(frame: "DataFrame") -> list[tuple[Any, ...]]:
    """Return the rows' places and times."""
    return sorted(map(tuple, frame.selectExpr("topic", "partition", "offset", "unix_micros(timestamp)").collect()))


def text_of(options: dict[str, str]) -> str:
    return " ".join(f"{name}={value}" for name, value in options.items())


@pytest.mark.parametrize("options", SAME, ids=text_of)
def test_both_read_the_same_rows(options: dict[str, str], sources: Sources) -> None:
    assert places(sources.by_kseg(options)) == places(sources.by_connector(options))


@pytest.mark.parametrize(
    ("options", "line"), REFUSED, ids=lambda value: text_of(value) if isinstance(value, dict) else ""
)
def test_both_refuse(options: dict[str, str], line: str, sources: Sources) -> None:
    from kseg.spark.tasks import message_of

    with pytest.raises(Exception):  # noqa: B017, PT011  the connector's are many
        sources.by_connector(options).collect()
    with pytest.raises(Exception) as caught:  # noqa: PT011
        sources.by_kseg(options).collect()
    assert message_of(caught.value).startswith(line.replace(LOGS, str(sources.logs)))


def test_records_below_the_log_start_offset_are_left_out(spark: "SparkSession", tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 10)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 7\n")
    ours = spark.read.format("kseg").option("subscribe", "orders")
    with serving(tmp_path) as running:
        connector = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": running.bootstrap})
        found = places(connector.option("subscribe", "orders").load())
    assert places(ours.load(str(tmp_path))) == found
    assert [row[2] for row in found] == [7, 8, 9]
    assert ours.option("respectLogStartOffset", "false").load(str(tmp_path)).count() == 10


def test_records_without_a_time_are_a_millisecond_before_1970(spark: "SparkSession", tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 3)
    log = tmp_path / "orders-0" / f"{0:020}.log"
    log.write_bytes(v0_message(0) + v0_message(1))
    ours = spark.read.format("kseg").load(str(tmp_path))
    with serving(tmp_path) as running:
        connector = spark.read.format("kafka").options(**{"kafka.bootstrap.servers": running.bootstrap})
        theirs = connector.option("subscribe", "orders").load()
        assert places(ours) == places(theirs)
        assert theirs.exceptAll(ours).count() == 0
    assert {row[-1] for row in places(ours)} == {-1000}


def v0_message(offset: int) -> bytes:
    """Return an entry of format v0, which has no timestamp."""
    from zlib import crc32

    body = struct.pack(">bbi1si1s", 0, 0, 1, b"k", 1, b"v")
    return struct.pack(">qiI", offset, len(body) + 4, crc32(body)) + body
