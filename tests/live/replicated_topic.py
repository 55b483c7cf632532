"""A topic whose replicas diverge: acknowledged records, consumed records, leaders. For tests marked `kafka`."""

import shutil
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import pytest

from tests.live.cluster import PATIENCE, Cluster

UNCLEAN: dict[str, object] = {
    "unclean.leader.election.enable": "true",
    "unclean.leader.election.interval.ms": 1000,
    "min.insync.replicas": 1,
    "broker.session.timeout.ms": 3000,
    "broker.heartbeat.interval.ms": 500,
}
"""Broker settings that let a replica without all records lead within a few seconds."""


class Sent(NamedTuple):
    """A record that a leader acknowledged, or that a consumer got."""

    partition: int
    offset: int
    value: str


class ReplicatedTopic:
    """A topic of a cluster. acknowledged: all records ever sent to it."""

    def __init__(self, cluster: Cluster, name: str, replicas: list[list[int]]) -> None:
        """Create the topic. replicas: of each partition, the preferred leader first."""
        from confluent_kafka.admin import AdminClient, NewTopic

        self.name = name
        self.acknowledged: set[Sent] = set()
        self.partitions = range(len(replicas))
        self._cluster = cluster
        topic = NewTopic(name, num_partitions=len(replicas), replica_assignment=replicas)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
        for future in admin.create_topics([topic]).values():
            future.result(PATIENCE)

    def wait_for(self, is_so: Callable[[Any], bool]) -> dict[int, int]:
        """Wait until each partition's metadata fulfil a condition; return the partitions' leaders."""
        from confluent_kafka import KafkaException
        from confluent_kafka.admin import AdminClient

        admin, give_up = AdminClient({"bootstrap.servers": self._cluster.bootstrap}), time.monotonic() + PATIENCE
        while time.monotonic() < give_up:
            try:
                found = admin.list_topics(self.name, timeout=5).topics[self.name].partitions
            except KafkaException:
                continue
            if len(found) == len(self.partitions) and all(map(is_so, found.values())):
                return {number: partition.leader for number, partition in found.items()}
        pytest.fail("the partitions' leaders or replicas aren't those that were waited for")

    def produce(self, partition: int, values: Iterable[str], **settings: object) -> None:
        """Send records, and wait until the leader, or with acks=all each in-sync replica, has acknowledged them."""
        from confluent_kafka import Producer

        def note(error: object, message: Any) -> None:
            assert error is None
            self.acknowledged.add(Sent(partition, message.offset(), message.value().decode()))

        defaults = {"acks": "1", "linger.ms": 5, "batch.num.messages": 7}
        producer = Producer({"bootstrap.servers": self._cluster.bootstrap, **defaults, **settings})
        for value in values:
            producer.produce(self.name, value.encode(), b"key", partition, on_delivery=note)
        assert producer.flush(PATIENCE) == 0

    def consume(self, ends: dict[int, int]) -> set[Sent]:
        """Return all records that consumers get up to the partitions' log end offsets."""
        from confluent_kafka import Consumer, TopicPartition

        settings = {"bootstrap.servers": self._cluster.bootstrap, "group.id": "reading", "enable.auto.commit": False}
        consumer, found = Consumer(settings), set[Sent]()
        left = {number for number, end in ends.items() if end}
        consumer.assign([TopicPartition(self.name, number, 0) for number in left])
        while left:
            message = consumer.poll(PATIENCE)
            assert message is not None
            assert message.error() is None
            found.add(Sent(message.partition(), message.offset(), message.value().decode()))
            if message.offset() + 1 >= ends[message.partition()]:
                left.discard(message.partition())
        consumer.close()
        return found

    def copy(self, number: int, name: str) -> None:
        """Copy the files of a broker and the topic's directories into the directory `name` next to the nodes'."""
        for log_dir in self._cluster.nodes[number].log_dirs:
            copy = log_dir.parents[1] / name / log_dir.name
            copy.mkdir(parents=True)
            for each in log_dir.iterdir():
                if each.name.startswith(f"{self.name}-"):
                    # A broker writes new checkpoints next to the old ones, and renames them.
                    shutil.copytree(each, copy / each.name, ignore=shutil.ignore_patterns("*.tmp"))
                elif each.is_file() and each.name != ".lock" and each.suffix != ".tmp":
                    shutil.copy(each, copy)
