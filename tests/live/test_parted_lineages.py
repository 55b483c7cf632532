"""What `kseg diff` says a deposed leader will cut off and lose is what a real broker does. Needs Java and Maven.

Two brokers lead in turns, each elected uncleanly while the other is down, so that each has epochs that the other never
saw: the follower has to ask more than once where to truncate (KIP-279).
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.live.cluster import NODES, PATIENCE, Cluster
from tests.run import kseg

pytestmark = pytest.mark.kafka

TOPIC = "parted"
LEADER, DEPOSED = 2, 1
SETTINGS: dict[str, object] = {
    "unclean.leader.election.enable": "true",
    "unclean.leader.election.interval.ms": 1000,
    "min.insync.replicas": 1,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster("4.3.1", tmp_path, SETTINGS)
    try:
        running.start(*NODES)
        yield running
    finally:
        running.stop()


def make_topic(cluster: Cluster) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    topic = NewTopic(TOPIC, num_partitions=1, replica_assignment=[[DEPOSED, LEADER]])
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    for future in admin.create_topics([topic]).values():
        future.result(PATIENCE)


def wait_for(cluster: Cluster, is_so: Callable[[Any], bool]) -> None:
    """Waits until the partition's metadata are so."""
    from confluent_kafka import KafkaException
    from confluent_kafka.admin import AdminClient

    admin, give_up = AdminClient({"bootstrap.servers": cluster.bootstrap}), time.monotonic() + PATIENCE
    while time.monotonic() < give_up:
        try:
            partitions = admin.list_topics(TOPIC, timeout=5).topics[TOPIC].partitions
        except KafkaException:
            continue
        if 0 in partitions and is_so(partitions[0]):
            return
    pytest.fail("the partition's leader or replicas aren't those that were waited for")


def produce(cluster: Cluster, word: str, count: int, acks: str = "1") -> set[tuple[int, str]]:
    """Offsets and values of records that the leader, alone or with all in-sync replicas, has acknowledged."""
    from confluent_kafka import Producer

    acknowledged: set[tuple[int, str]] = set()

    def note(error: object, message: Any) -> None:
        assert error is None
        acknowledged.add((message.offset(), message.value().decode()))

    producer = Producer({"bootstrap.servers": cluster.bootstrap, "acks": acks, "linger.ms": 5, "batch.num.messages": 7})
    for number in range(count):
        producer.produce(TOPIC, f"{word} {number}".encode(), b"key", 0, on_delivery=note)
    assert producer.flush(PATIENCE) == 0
    return acknowledged


def consumed(cluster: Cluster) -> set[tuple[int, str]]:
    """Offsets and values of all records that consumers get."""
    from confluent_kafka import Consumer, TopicPartition

    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": "reading", "enable.auto.commit": False}
    consumer, found = Consumer(settings), set[tuple[int, str]]()
    end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), PATIENCE)[1]
    consumer.assign([TopicPartition(TOPIC, 0, 0)])
    while len(found) < end:
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error() is None
        found.add((message.offset(), message.value().decode()))
    consumer.close()
    return found


def elect(cluster: Cluster, number: int, instead_of: int) -> None:
    """Kills a leader and starts the other replica, which has less and leads all the same."""
    cluster.kill(instead_of)
    cluster.start(number)
    wait_for(cluster, lambda partition: partition.leader == number)


def copy_of(cluster: Cluster, number: int, name: str) -> str:
    """A copy of a broker's log directories."""
    for log_dir in cluster.nodes[number].log_dirs:
        shutil.copytree(log_dir, log_dir.parents[1] / name / log_dir.name, ignore=shutil.ignore_patterns(".lock"))
    return name


def test_lost_records_are_those_that_no_consumer_gets_any_more(cluster: Cluster, tmp_path: Path) -> None:
    make_topic(cluster)
    wait_for(cluster, lambda partition: partition.leader == DEPOSED and len(partition.isrs) > 1)
    acknowledged = produce(cluster, "both", 100, acks="all")
    cluster.kill(LEADER)
    wait_for(cluster, lambda partition: partition.isrs == [DEPOSED])
    acknowledged |= produce(cluster, "first alone", 20)
    for leader, follower, word, count in (
        (LEADER, DEPOSED, "second", 30),
        (DEPOSED, LEADER, "first again", 25),
        (LEADER, DEPOSED, "second again", 40),
    ):
        elect(cluster, leader, follower)
        acknowledged |= produce(cluster, word, count)
    sides = [copy_of(cluster, DEPOSED, "deposed"), copy_of(cluster, LEADER, "leader")]
    ran = kseg(["diff", *sides, "--topic", TOPIC, "--leader", "leader", "--records", "-o", "json"], tmp_path)
    *records, partition, _ = map(json.loads, ran.stdout.splitlines())
    cluster.start(DEPOSED)
    wait_for(cluster, lambda partition: len(partition.isrs) > 1)
    gone = acknowledged - consumed(cluster)
    assert {(each["offset"], each["value"]) for each in records if each["isLost"]} == gone
    assert partition["lostRecords"] == len(gone) == 45
    assert partition["truncations"][0]["toOffset"] == partition["divergence"]["offset"] == 100
    sides = [copy_of(cluster, number, f"after-{number}") for number in (DEPOSED, LEADER)]
    assert kseg(["diff", *sides, "--topic", TOPIC, "-q"], tmp_path) == (0, b"", b"")
