"""A real broker takes salvaged partitions as they are, and serves exactly the intact records. Needs Java and Maven."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kseg.log.partition import PartitionLog
from kseg.log.salvage import find_replicas, plan_salvage, write_salvage
from kseg.new_directory import new_directory
from kseg.segment import open_segment
from tests import golden
from tests.log import edits

pytestmark = pytest.mark.kafka

RELEASE = "4.3.1"
PATIENCE = 60
INFO = "-Dorg.slf4j.simpleLogger.defaultLogLevel=info"
# What a broker says where it doesn't take a log as it finds it.
REBUILDING = ("Recovering unflushed segment", "Found invalid", "corrupt", "Rebuil", "missing", "runcat", "Deleting")
# What it says of each: from where on it reads batches for the state of producers.
READS_FROM = re.compile(r"partition=(saved-\d+)-0.* rebuilding producer state from offset (\d+)")
DAMAGED = [
    "3.6.2/plain-1",
    "2.3.1/txn-1",
    "2.8.2/broker-lz4-0",
    "2.4.1/zstd-0",
    "2.0.1/retained-0",
    "1.1.1/v1-gzip-0",
    "4.3.1/compacted-txn-0",
]

ServedRecord = tuple[int, int, bytes | None, bytes | None]


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


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Broker:
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden as tools

    work = tmp_path_factory.mktemp("broker")
    kafka = tools.kafka_classes(RELEASE, work)
    port, logs = tools.free_port(), work / "logs"
    text = tools.server_properties(port, tools.free_port(), logs)
    properties = work / "server.properties"
    properties.write_text(text)
    storage = ("kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qk", "-c", str(properties))
    subprocess.run(kafka.command(*storage, options=[tools.QUIET]), check=True, stdout=subprocess.DEVNULL)
    return Broker(tools, kafka, work, logs, port)


def damage(partition: Path) -> None:
    """A flipped bit in the second batch of the largest segment, and a torn end of the last one that has batches."""
    logs = [log for log in edits.logs(partition) if log.stat().st_size]
    largest = max(logs, key=lambda log: log.stat().st_size)
    data = bytearray(largest.read_bytes())
    position, size = list(edits.v2_batches(largest))[1]
    data[position + size - 3] ^= 0x40
    largest.write_bytes(data)
    os.truncate(logs[-1], logs[-1].stat().st_size - 7)


def salvaged(name: str, directory: Path) -> Path:
    partition = edits.copy_partition(directory / "damaged", name)
    damage(partition)
    ((found, partitions),) = find_replicas([partition]).items()
    plan = plan_salvage(found, partitions)
    assert not plan.is_whole
    with new_directory(directory / "saved" / found) as target:
        write_salvage(plan, target)
    return directory / "saved" / found / found


def intact_records(partition: Path) -> list[ServedRecord]:
    """What is in the salvaged logs, without control records, which a broker serves but no consumer gives."""
    found: list[ServedRecord] = []
    for log in edits.logs(partition):
        with open_segment(log) as segment:
            for batch in segment.batches():
                assert batch.is_valid
                if not batch.is_control:
                    found += [(each.offset, each.timestamp, each.key, each.value) for each in batch.records()]
    return found


def served_records(port: int, topic: str) -> list[ServedRecord]:
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


def make_topics(port: int, topics: list[str]) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    settings = {"retention.ms": "-1"}
    made = admin.create_topics([NewTopic(name, 1, 1, config=settings) for name in topics])
    for future in made.values():
        future.result(PATIENCE)


def put_in_place(saved: Path, place: Path) -> dict[str, bytes]:
    """Puts a salvaged partition in the place of an empty topic's, whose id stays; gives the indexes' contents."""
    for path in place.iterdir():
        if path.name != "partition.metadata":
            path.unlink()
    for path in saved.iterdir():
        if path.name != "partition.metadata":
            (place / path.name).write_bytes(path.read_bytes())
    return {path.name: path.read_bytes() for path in saved.iterdir() if "index" in path.suffix}


def test_broker_serves_exactly_the_intact_records(broker: Broker, tmp_path: Path) -> None:
    topics = {f"saved-{number}": salvaged(name, tmp_path / str(number)) for number, name in enumerate(DAMAGED)}
    with broker.running("first"):
        make_topics(broker.port, list(topics))
    indexes = {topic: put_in_place(saved, broker.logs / f"{topic}-0") for topic, saved in topics.items()}
    with broker.running("second") as said:
        for topic, saved in topics.items():
            assert served_records(broker.port, topic) == intact_records(saved)
    lines = [line for line in said.read_text().splitlines() if "saved-" in line]
    reads_from = {match[1]: int(match[2]) for match in map(READS_FROM.search, lines) if match}
    assert reads_from == {topic: PartitionLog(saved).read_log_end_offset() for topic, saved in topics.items()}
    assert [line for line in lines if any(word in line for word in REBUILDING)] == []
    for topic, contents in indexes.items():
        there = {name: (broker.logs / f"{topic}-0" / name).read_bytes() for name in contents}
        assert there == contents, f"the broker changed the indexes of {topic}"
