"""A stream's checkpoint, continued by spark-sql-kafka on `kseg serve` and by kseg's data source in turns."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.export import exports
from tests.serve.running import serving
from tests.spark.test_peer import spark as spark
from tests.spark.test_stream import FIRST_ID, write_topic_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

SIZE = 50


def grow(logs: Path, turn: int) -> None:
    """Add 50 records to each of two partitions, in segments of their own."""
    for partition in range(2):
        exports.write_log(logs / f"orders-{partition}", turn * SIZE, SIZE)
        write_topic_id(logs / f"orders-{partition}", FIRST_ID)


def take(stream: "DataFrame", place: Path) -> None:
    """Write what is new as Parquet."""
    writer = stream.selectExpr("partition", "offset").writeStream.format("parquet").trigger(availableNow=True)
    places = {"path": str(place / "out"), "checkpointLocation": str(place / "checkpoint")}
    writer.options(**places).start().awaitTermination()


def take_by(format_: str, spark: "SparkSession", place: Path) -> None:
    options = {"subscribe": "orders", "startingOffsets": "earliest", "maxOffsetsPerTrigger": "30"}
    stream = spark.readStream.format(format_).options(**options)
    if format_ == "kseg":
        take(stream.load(str(place / "logs")), place)
        return
    with serving(place / "logs") as running:
        take(stream.option("kafka.bootstrap.servers", running.bootstrap).load(), place)


@pytest.mark.parametrize("formats", [("kafka", "kseg"), ("kseg", "kafka")], ids=" ".join)
def test_each_continues_the_others_checkpoint(formats: tuple[str, str], spark: "SparkSession", tmp_path: Path) -> None:
    for turn in range(4):
        grow(tmp_path / "logs", turn)
        take_by(formats[turn % 2], spark, tmp_path)
        rows = spark.read.parquet(str(tmp_path / "out")).collect()
        expected = [(partition, offset) for partition in range(2) for offset in range((turn + 1) * SIZE)]
        assert sorted((row.partition, row.offset) for row in rows) == expected
    files = sorted((tmp_path / "checkpoint" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    last = json.loads(files[-1].read_text("utf-8").splitlines()[-1])
    assert last["orders"] == {"0": 4 * SIZE, "1": 4 * SIZE}
