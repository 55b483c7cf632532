"""The peer of kseg's data source: a real broker with given partitions, and Spark's connector.

Maven fetches both. The connector's newest release is 4.2.0. Its token provider is taken from 4.0.0, since Maven
Central's mirror may lack later releases.
"""

import asyncio
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import make_golden

RELEASE = "4.3.1"
CONNECTOR = {
    "org.apache.spark:spark-sql-kafka-0-10_2.13": "4.2.0",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13": "4.0.0",
    "org.apache.kafka:kafka-clients": "3.9.2",
    "org.apache.commons:commons-pool2": "2.13.1",
}
AS_IN_PRODUCTION = ("-Xmx1g", "-XX:TieredStopAtLevel=4", "-XX:-UseSerialGC", "-XX:+UseG1GC")
"""Options of the JVM instead of those that let a broker start quickly."""


class Broker(NamedTuple):
    """A broker's address, log directory and process."""

    bootstrap: str
    logs: Path
    process_id: int


@contextmanager
def serving(topics: Mapping[str, Sequence[Path]], work: Path, java_options: Iterable[str] = ()) -> Iterator[Broker]:
    """Run a broker whose new topics got, while it was stopped, the logs of these partition directories."""
    kafka = make_golden.kafka_classes(RELEASE, work)
    logs = work / "logs"
    with make_golden.running_broker(kafka, logs, work) as bootstrap:
        asyncio.run(_create_topics(bootstrap, {topic: len(paths) for topic, paths in topics.items()}))
    for topic, paths in topics.items():
        for number, path in enumerate(paths):
            _put_in_place(logs / f"{topic}-{number}", path)
    (logs / ".kafka_cleanshutdown").unlink(missing_ok=True)
    port = make_golden.free_port()
    properties = work / "server.properties"
    properties.write_text(make_golden.server_properties(port, make_golden.free_port(), logs))
    command = kafka.command("kafka.Kafka", str(properties), options=[*java_options, make_golden.WARNINGS])
    with (work / "broker.log").open("wb") as log:
        broker = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            make_golden.wait_until(
                lambda: make_golden.is_listening(port), make_golden.START_SECONDS, "the broker has not come up", broker
            )
            yield Broker(f"127.0.0.1:{port}", logs, broker.pid)
        finally:
            broker.terminate()
            broker.wait()


async def _create_topics(bootstrap: str, partition_counts: Mapping[str, int]) -> None:
    from aiokafka.admin import AIOKafkaAdminClient, NewTopic

    client = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
    await client.start()
    try:
        settings = {"retention.ms": "-1", "retention.bytes": "-1"}
        wanted = [NewTopic(topic, count, 1, topic_configs=settings) for topic, count in partition_counts.items()]
        await client.create_topics(wanted)
    finally:
        await client.close()


def _put_in_place(directory: Path, path: Path) -> None:
    """Copy the logs of a partition over those of a new topic."""
    for file in directory.iterdir():
        if file.name != "partition.metadata":
            file.unlink()
    for log in path.glob("*.log"):
        shutil.copy(log, directory)


def connector_jars(work: Path) -> list[Path]:
    """Return the connector's jars."""
    return fetched_jars((f"{name}:{version}" for name, version in CONNECTOR.items()), work)


def fetched_jars(artifacts: Iterable[str], work: Path) -> list[Path]:
    """Return jars (GROUP:NAME:VERSION, perhaps :CLASSIFIER) fetched by Maven, without their dependencies."""
    names = ("groupId", "artifactId", "version", "classifier")
    members = (
        "".join(f"<{name}>{part}</{name}>" for name, part in zip(names, artifact.split(":"), strict=False))
        for artifact in artifacts
    )
    dependencies = "".join(
        f"<dependency>{each}<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        "</exclusions></dependency>"
        for each in members
    )
    work.mkdir(parents=True, exist_ok=True)
    (work / "pom.xml").write_text(
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion><groupId>kseg</groupId>'
        f"<artifactId>peer</artifactId><version>1</version><dependencies>{dependencies}</dependencies></project>",
        encoding="utf-8",
    )
    command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={work}/jars"]
    subprocess.run(command, cwd=work, check=True)
    return sorted((work / "jars").glob("*.jar"))
