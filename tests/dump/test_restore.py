"""restore.py of docs/how-to/dead-cluster.md, against the mock cluster that Kafka's C client has."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Message, Producer, TopicPartition

from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment

RECOVERY = golden.ROOT.parent / "docs" / "how-to" / "dead-cluster.md"
PATIENCE = 30
TIMES = [1_600_000_000_000, 1_500_000_000_123, 1_700_000_000_000]


class MockCluster(NamedTuple):
    """A cluster inside the client that made it, which lives as long."""

    client: Producer
    server: str


@pytest.fixture
def cluster() -> MockCluster:
    client = Producer({"bootstrap.servers": "mock", "test.mock.num.brokers": 1})
    (broker,) = client.list_topics(timeout=PATIENCE).brokers.values()
    return MockCluster(client, f"{broker.host}:{broker.port}")


def consume(server: str, topic: str, partition: int) -> Iterator[Message]:
    consumer = Consumer({"bootstrap.servers": server, "group.id": "test", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    while (message := consumer.poll(PATIENCE)) is not None:
        error = message.error()
        if error is None:
            yield message
        elif error.code() == KafkaError._PARTITION_EOF:
            break
    consumer.close()


def restore(cluster: MockCluster, directory: Path, topic: str, partition: int) -> None:
    """Does what the page says."""
    (code,) = re.findall(r"^```py\n(.*?)^```", RECOVERY.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    program = directory.parent / "restore.py"
    program.write_text(code, encoding="utf-8")
    options = ["dump", "-o", "json", "--only", "records", "--isolation", "read_committed"]
    dumped = run.kseg([*options, str(directory)], directory.parent)
    assert dumped.status == 0
    command = [sys.executable, str(program), cluster.server, topic, str(partition)]
    subprocess.run(command, input=dumped.stdout, check=True, timeout=PATIENCE)


def test_restore_sends_records_with_all_that_they_have(cluster: MockCluster, tmp_path: Path) -> None:
    every = bytes(range(256))
    records = [
        NewRecord(key, value, TIMES[number % 3])
        for number, (key, value) in enumerate(
            (key, value) for key in (None, b"", every) for value in (None, b"", every)
        )
    ]
    lists: list[list[tuple[str, bytes | None]]] = [
        [("a", b"1"), ("a", None), ("a", b""), ("é", every)],
        [("a=b", b"c")],
        [("", b"c")],
    ]
    records += [NewRecord(b"k", "text é→".encode(), headers=headers) for headers in lists]
    write_segment(tmp_path / "orders-2", [NewBatch(records)])
    restore(cluster, tmp_path / "orders-2", "orders", 2)
    found = list(consume(cluster.server, "orders", 2))
    assert [(each.key(), each.value(), each.timestamp()[1], each.headers() or []) for each in found] == [
        (each.key, each.value, each.timestamp, list(each.headers)) for each in records
    ]
