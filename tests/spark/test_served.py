"""spark-sql-kafka on `kseg serve` reads the same rows as kseg's data source, in a query and in a stream.

It sees no internal topics: it lists topics as administrators do by default.
"""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import golden
from tests.serve.pages import block
from tests.serve.reading import on_disk
from tests.serve.running import Running, serving
from tests.spark.test_peer import rows_by_topic
from tests.spark.test_peer import spark as spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

BROKERS = ("0.10.2.2", "2.8.2", "4.3.1")
LOGS = golden.ROOT / "logs"


def by_kseg(spark: "SparkSession", broker: str, **options: str) -> "DataFrame":
    """Return the rows of the broker's topics, except internal ones."""
    return (
        spark.read.format("kseg")
        .options(includeHeaders="true", **options)
        .load(str(LOGS / broker))
        .where("not startswith(topic, '__')")
    )


def by_connector(running: Running, **options: str) -> dict[str, str]:
    """Return the connector's options."""
    names = [name for name in running.served.topics if not name.startswith("__")]
    return {
        "kafka.bootstrap.servers": running.bootstrap,
        "subscribe": ",".join(names),
        "includeHeaders": "true",
        **options,
    }


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.parametrize("broker", BROKERS)
def test_a_query_gives_the_same_rows(broker: str, isolation: str, spark: "SparkSession") -> None:
    level = {"kafka.isolation.level": isolation}
    ours = by_kseg(spark, broker, **level)
    with serving(LOGS / broker) as running:
        connector = spark.read.format("kafka").options(**by_connector(running, **level)).load()
        counts = rows_by_topic(connector)
        assert counts == rows_by_topic(ours)
        assert sum(counts.values()) > 300
        assert connector.exceptAll(ours).count() == 0
        assert ours.exceptAll(connector).count() == 0


def test_the_line_of_the_page_reads_a_topic(spark: "SparkSession") -> None:
    line = block("spark.read").replace('"orders"', '"zstd"')
    with serving(LOGS / "4.3.1" / "zstd-0") as running:
        rows = eval(line.replace("127.0.0.1:9092", running.bootstrap), {"spark": spark})
        assert rows.count() == len(on_disk(LOGS / "4.3.1" / "zstd-0"))


def test_a_stream_gives_the_same_rows(spark: "SparkSession", tmp_path: Path) -> None:
    ours = by_kseg(spark, "4.3.1")
    places = {"path": str(tmp_path / "out"), "checkpointLocation": str(tmp_path / "checkpoint")}
    with serving(LOGS / "4.3.1") as running:
        options = by_connector(running, startingOffsets="earliest", maxOffsetsPerTrigger="200")
        stream = spark.readStream.format("kafka").options(**options).load()
        writer = stream.writeStream.format("parquet").trigger(availableNow=True)
        writer.options(**places).start().awaitTermination()
    written = spark.read.schema(ours.schema).parquet(places["path"])
    assert written.exceptAll(ours).count() == 0
    assert ours.exceptAll(written).count() == 0
