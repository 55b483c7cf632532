"""spark-sql-kafka, reading golden partitions from a real broker, and kseg, reading its files, give the same rows.

Maven fetches the broker and the connector. The connector's newest release is 4.2.0, and of what it needs the token
provider's is 4.0.0 where Maven Central's mirror lacks later ones.
"""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests import golden
from tests.spark.processes import free_port, is_listening, running, wait_until

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.kafka

TOOLS = golden.ROOT.parent / "tools"
RELEASES = ("2.8.2", "3.9.1", "4.3.1")
CONNECTOR = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": "4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}


class Broker(NamedTuple):
    """A broker's address and log directory, and its topics, which hold golden partitions."""

    bootstrap: str
    logs: Path
    topics: list[str]


def golden_partitions() -> dict[str, Path]:
    """Partitions 0 of topics that aren't internal, by the name of the topic that is to hold them here."""
    return {
        f"{path.name.removesuffix('-0')}_{release}".replace(".", "-"): path
        for release in RELEASES
        for path in sorted((golden.ROOT / "logs" / release).glob("*-0"))
        if not path.name.startswith("_") and any(log.stat().st_size for log in path.glob("*.log"))
    }


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A 4.3.1 broker, whose fresh topics' files were replaced by golden ones while it was stopped."""
    sys.path.insert(0, str(TOOLS))
    import make_golden

    work = tmp_path_factory.mktemp("broker")
    kafka = make_golden.kafka_classes("4.3.1", work)
    partitions = golden_partitions()
    logs = work / "logs"
    with make_golden.running_broker(kafka, logs, work) as bootstrap:
        asyncio.run(create_topics(bootstrap, list(partitions)))
    for topic, path in partitions.items():
        put_in_place(logs / f"{topic}-0", path)
    (logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    port, controller = free_port(), free_port()
    properties = work / "server.properties"
    properties.write_text(make_golden.server_properties(port, controller, logs))
    with running(kafka.command("kafka.Kafka", str(properties)), work / "broker.log"):
        wait_until(lambda: is_listening(port), "the broker listens")
        yield Broker(f"127.0.0.1:{port}", logs, list(partitions))


async def create_topics(bootstrap: str, topics: list[str]) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        settings = {"retention.ms": "-1", "retention.bytes": "-1"}
        await client.create_topics([NewTopic(topic, 1, 1, topic_configs=settings) for topic in topics])
    finally:
        await client.close()


def put_in_place(directory: Path, path: Path) -> None:
    """The log files of a golden partition, in place of a fresh topic's."""
    for file in directory.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for log in path.glob("*.log"):
        shutil.copy(log, directory)


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    """A session that has both sources."""
    from kseg.spark import register
    from kseg.spark.session import open_session

    jars = ",".join(map(str, connector_jars(tmp_path_factory.mktemp("jars"))))
    with open_session("local[2]", {"spark.jars": jars, "spark.driver.memory": "1g"}) as session:
        register(session)
        yield session


def connector_jars(work: Path) -> list[Path]:
    """The connector's jars, each as it is, without what it asks for."""
    dependencies = "".join(
        "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version><exclusions><exclusion>"
        "<groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions></dependency>".format(
            *name.split(":"), version
        )
        for name, version in CONNECTOR.items()
    )
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>kseg</groupId>'
        f"<artifactId>peer</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={work}/jars"]
    subprocess.run(command, cwd=work, check=True)
    return sorted((work / "jars").glob("*.jar"))


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_both_give_the_same_rows(isolation: str, spark: "SparkSession", broker: Broker) -> None:
    options = {"subscribe": ",".join(broker.topics), "includeHeaders": "true", "kafka.isolation.level": isolation}
    connector = spark.read.format("kafka").options(**{**options, "kafka.bootstrap.servers": broker.bootstrap}).load()
    ours = spark.read.format("kseg").options(**options).load(str(broker.logs))
    assert ours.schema == connector.schema
    counts = rows_by_topic(connector)
    assert rows_by_topic(ours) == counts
    assert set(counts) == set(broker.topics)
    assert connector.exceptAll(ours).count() == 0
    assert ours.exceptAll(connector).count() == 0


def rows_by_topic(frame: "DataFrame") -> dict[str, int]:
    return {row.topic: row["count"] for row in frame.groupBy("topic").count().collect()}
