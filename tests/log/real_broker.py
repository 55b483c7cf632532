"""A real broker of Kafka 4.3.1 for tests marked `kafka`: started on partitions that are put into its log directory."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import golden

RELEASE = "4.3.1"
PATIENCE = 60
INFO = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"

ServedRecord = tuple[int, int, bytes | None, bytes | None]
"""Offset, time, key, value."""


class Broker(NamedTuple):
    """A broker of the release that can be started and stopped: its classes, files and ports."""

    tools: Any
    kafka: Any
    work: Path
    logs: Path
    port: int

    @contextmanager
    def running(self, name: str) -> Iterator[Path]:
        """Starts it; gives the file that has what it says. It is stopped in order at the end."""
        said = self.work / f"{name}.txt"
        properties = str(self.work / "server.properties")
        with said.open("wb") as output:
            command = self.kafka.command("kafka.Kafka", properties, options=[INFO])
            broker = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
            try:
                self.tools.wait_until(lambda: self.tools.is_listening(self.port), PATIENCE, "no broker", broker)
                yield said
            finally:
                broker.terminate()
                broker.wait()


def new_broker(tmp_path_factory: pytest.TempPathFactory, settings: Mapping[str, object] | None = None) -> Broker:
    """A broker with an empty log directory, and some settings beside those of tools/make_golden.py."""
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden as tools

    work = tmp_path_factory.mktemp("broker")
    kafka = tools.kafka_classes(RELEASE, work)
    port, logs = tools.free_port(), work / "logs"
    text = tools.server_properties(port, tools.free_port(), logs)
    properties = work / "server.properties"
    properties.write_text(text + "".join(f"{key}={value}\n" for key, value in (settings or {}).items()))
    storage = ("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
    subprocess.run(kafka.command(*storage, options=[tools.QUIET]), check=True, stdout=subprocess.DEVNULL)
    return Broker(tools, kafka, work, logs, port)


def served_records(port: int, topic: str) -> list[ServedRecord]:
    """What a consumer gets of a topic's only partition, aborted records too."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "test",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    place = TopicPartition(topic, 0, 0)
    start, _ = consumer.get_watermark_offsets(place, timeout=PATIENCE)
    consumer.assign([TopicPartition(topic, 0, start)])
    served: list[ServedRecord] = []
    while (message := consumer.poll(PATIENCE)) is not None:
        if message.error():
            break  # the end
        served.append((message.offset(), message.timestamp()[1], message.key(), message.value()))
    consumer.close()
    return served


def make_topics(port: int, topics: Iterable[str], settings: Mapping[str, Mapping[str, str]] | None = None) -> None:
    """Makes topics of one partition, whose records never go by age unless their own settings say so."""
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    own = settings or {}
    wanted = [NewTopic(name, 1, 1, config={"retention.ms": "-1", **own.get(name, {})}) for name in topics]
    made = admin.create_topics(wanted)
    for future in made.values():
        future.result(PATIENCE)


def put_in_place(source: Path, place: Path) -> None:
    """Puts a partition's files in the place of an empty topic's, whose id stays; the broker is stopped."""
    for path in place.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in source.iterdir():
        if path.name != "partition.metadata":
            shutil.copy2(path, place)
