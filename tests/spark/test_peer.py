"""spark-sql-kafka on a real broker with golden partitions, and kseg on its files, return the same rows."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
import peer_spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = [pytest.mark.kafka, pytest.mark.spark]

RELEASES = ("2.8.2", "3.9.1", "4.3.1")


def golden_partitions() -> dict[str, list[Path]]:
    """Return partitions 0 of ordinary topics, by the name of the topic that will hold them here."""
    return {
        f"{path.name.removesuffix('-0')}_{release}".replace(".", "-"): [path]
        for release in RELEASES
        for path in sorted((golden.ROOT / "logs" / release).glob("*-0"))
        if not path.name.startswith("_") and any(log.stat().st_size for log in path.glob("*.log"))
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[peer_spark.Broker]:
    """Yield a broker whose topics hold the golden partitions."""
    with peer_spark.serving(golden_partitions(), tmp_path_factory.mktemp("broker")) as serving:
        yield serving


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """Yield a session that has both sources."""
    from pyspark.sql import SparkSession

    from kseg.spark.data_source import register
    from kseg.spark.job import open_context

    jars = ",".join(map(str, peer_spark.connector_jars(tmp_path_factory.mktemp("jars"))))
    with open_context("local[2]", {"spark.jars": jars, "spark.driver.memory": "1g"}) as context:
        session = SparkSession(context)
        register(session)
        yield session


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_both_give_the_same_rows(isolation: str, spark: "SparkSession", broker: peer_spark.Broker) -> None:
    topics = set(golden_partitions())
    options = {"subscribe": ",".join(topics), "includeHeaders": "true", "kafka.isolation.level": isolation}
    connector = spark.read.format("kafka").options(**{**options, "kafka.bootstrap.servers": broker.bootstrap}).load()
    ours = spark.read.format("kseg").options(**options).load(str(broker.logs))
    assert ours.schema == connector.schema
    counts = rows_by_topic(connector)
    assert rows_by_topic(ours) == counts
    assert set(counts) == topics
    assert connector.exceptAll(ours).count() == 0
    assert ours.exceptAll(connector).count() == 0


def rows_by_topic(frame: "DataFrame") -> dict[str, int]:
    return {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
