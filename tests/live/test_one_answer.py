"""kseg's records from a cluster's disks equal its consumers', and its facts equal its tools'. Needs Java and Maven.

Three brokers with unclean elections. While one is down, a topic is deleted and recreated, and its partition is being
moved to that broker. Settings are set for a topic, for a broker, and for all of them.
"""

import re
import shutil
from collections.abc import Iterator, Sequence
from itertools import permutations
from pathlib import Path
from typing import NamedTuple

import pytest

import kseg
from tests.cluster.questions import ENDS_ASKED, RECORDS_ASKED, Found, lines
from tests.live.cluster import NODES, PATIENCE, Cluster
from tests.live.oracles import Oracles
from tests.live.replicated_topic import UNCLEAN, ReplicatedTopic
from tests.live.wire import answer_of
from tests.releases import NEWEST_TWO

pytestmark = pytest.mark.kafka

CONTROLLER = 4
PARTED, AGAIN = "parted", "again"
CONFIGS = "kafka.admin.ConfigCommand"
REASSIGN = 45
"""AlterPartitionReassignments."""


@pytest.fixture(params=["3.9.1", *NEWEST_TWO])
def cluster(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Cluster]:
    settings = {**UNCLEAN, "log.retention.hours": 100, "log.segment.bytes": 2 << 20}
    running = Cluster(request.param, tmp_path, settings, controllers=(CONTROLLER,))
    try:
        running.start(CONTROLLER, *NODES)
        yield running
    finally:
        running.stop()


def set_all(cluster: Cluster) -> None:
    """Set settings of a topic, of broker 1, and of all brokers."""
    asked = ("--bootstrap-server", cluster.bootstrap, "--alter", "--add-config")
    cluster.run(CONFIGS, *asked, "log.retention.ms=123456789", "--entity-type", "brokers", "--entity-default")
    cluster.run(CONFIGS, *asked, "log.cleaner.threads=2", "--entity-type", "brokers", "--entity-name", "1")
    cluster.run(CONFIGS, *asked, "segment.ms=7000000", "--entity-type", "topics", "--entity-name", PARTED)


def describe_topic(cluster: Cluster, topic: str) -> dict[str, str]:
    """Return the output of kafka-configs.sh --describe --all for a topic."""
    asked = ("--describe", "--all", "--entity-type", "topics", "--entity-name", topic)
    text = cluster.run(CONFIGS, "--bootstrap-server", cluster.bootstrap, *asked)
    return dict(re.findall(r"^  ([a-z0-9.]+)=(.*?) sensitive=", text, re.MULTILINE))


def part(cluster: Cluster) -> ReplicatedTopic:
    """Return a topic of which brokers 1 and 3 have records that the cluster lost; 2 leads at the end."""
    topic = ReplicatedTopic(cluster, PARTED, [[1, 2, 3], [1, 2, 3]])
    topic.wait_for(lambda partition: partition.leader == 1 and len(partition.isrs) == len(NODES))
    set_all(cluster)
    for number in topic.partitions:
        topic.produce(number, [f"both {n}" for n in range(80)], acks="all")
    cluster.kill(2)
    topic.wait_for(lambda partition: 2 not in partition.isrs)
    for number in topic.partitions:
        topic.produce(number, [f"lost {n}" for n in range(40 - 10 * number)], acks="all")
    cluster.kill(3)
    cluster.kill(1)
    cluster.start(2)
    topic.wait_for(lambda partition: partition.leader == 2)
    for number in topic.partitions:
        topic.produce(number, [f"new {n}" for n in range(25)])
    return topic


def create_again(cluster: Cluster) -> ReplicatedTopic:
    """Return a topic recreated while brokers 1 and 3, which have the old one, are down."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": cluster.bootstrap})
    admin.delete_topics([AGAIN])[AGAIN].result(PATIENCE)
    topic = ReplicatedTopic(cluster, AGAIN, [[2]])
    topic.wait_for(lambda partition: partition.leader == 2)
    topic.produce(0, [f"second {n}" for n in range(12)])
    return topic


def begin_to_move(cluster: Cluster, topic: ReplicatedTopic) -> None:
    """Reassign a topic's partition to a broker that is down: the reassignment stays in flight."""
    body = {"topics": [{"name": topic.name, "partitions": [{"partitionIndex": 0, "replicas": [3]}]}], "timeoutMs": 9000}
    answer = answer_of(cluster.nodes[2].port, REASSIGN, 0, body)
    assert (answer["errorCode"], [each["partitions"][0]["errorCode"] for each in answer["responses"]]) == (0, [0])
    topic.wait_for(lambda partition: sorted(partition.replicas) == [2, 3])


def take_disks(cluster: Cluster, to: Path) -> None:
    """Copy all brokers' disks unchanged."""
    for number in NODES:
        for log_dir in cluster.nodes[number].log_dirs:
            ignored = shutil.ignore_patterns("*.tmp", ".lock")
            shutil.copytree(log_dir, to / f"b{number}" / log_dir.name, ignore=ignored, ignore_dangling_symlinks=True)


def truth(topics: list[ReplicatedTopic], ends: dict[tuple[str, int], int | None]) -> Found:
    """Return the records that consumers get."""
    found: Found = {}
    for topic in topics:
        for each in topic.consume({number: ends[topic.name, number] or 0 for number in topic.partitions}):
            found.setdefault((topic.name, each.partition), []).append((each.offset, each.value))
    return {key: sorted(records) for key, records in sorted(found.items())}


def test_disks_answer_as_the_cluster_does(cluster: Cluster, tmp_path: Path) -> None:
    before = ReplicatedTopic(cluster, AGAIN, [[1, 2, 3]])
    before.wait_for(lambda partition: len(partition.isrs) == len(NODES))
    before.produce(0, [f"first {n}" for n in range(50)], acks="all")
    topics = [part(cluster), create_again(cluster)]
    begin_to_move(cluster, topics[1])
    offsets = Oracles(cluster).offsets("-1")
    ends = {key: end for key, end in offsets.items() if not key[0].startswith("__")}
    expected = truth(topics, ends)
    commit_all(cluster, ends)
    told = Told.of(Oracles(cluster))
    configs = {topic: describe_topic(cluster, topic) for topic in (PARTED, AGAIN)}
    disks = tmp_path / "taken" / "disks"
    take_disks(cluster, disks)
    orders = [*permutations(("b1", "b2", "b3")), (".",)]
    asked, wrong = 0, []
    for paths in orders:
        asked, wrong = asked + 4, wrong + differences(told, disks, paths)
    for choice in ((), ("--topic", PARTED, "--topic", AGAIN)):
        for paths in orders:
            for ask in RECORDS_ASKED:
                asked, wrong = asked + 1, wrong + [ask.__name__] * (ask(disks, paths, choice) != expected)
            for ask in ENDS_ASKED:
                asked, wrong = asked + 1, wrong + [ask.__name__] * (ask(disks, paths, choice) != ends)
            own = ["metadata", "--settings", "--server-properties", str(cluster.nodes[2].properties), "-o", "json"]
            for topic, settings in configs.items():
                rows = lines(disks, [*own, "--topic", topic], paths, ())
                found = {str(row["name"]): row["value"] for row in rows if row["type"] == "setting"}
                differing = [f"{topic} {name}" for name, value in settings.items() if found.get(name) != value]
                asked, wrong = asked + 1, wrong + differing
    assert (asked, wrong) == (len(orders) * (4 + 2 * (len(RECORDS_ASKED) + len(ENDS_ASKED) + len(configs))), [])


class Told(NamedTuple):
    """The output of Kafka's tools: bytes by directory of the running broker, lags, topics' ids, and leaders."""

    sizes: dict[str, int]
    lags: dict[tuple[str, int], int]
    topic_ids: dict[str, str]
    leaders: dict[tuple[str, int], int]

    @classmethod
    def of(cls, oracles: Oracles) -> "Told":
        """Query a cluster."""
        partitions = [each for each in oracles.partitions() if not each.topic.startswith("__")]
        return cls(
            {name: size for (_, _, name), size in oracles.sizes().items() if not name.startswith("__")},
            {(row["TOPIC"], int(row["PARTITION"])): int(row["LAG"]) for row in oracles.commits()},
            {each.topic: each.topic_id for each in partitions},
            {(each.topic, each.partition): each.leader for each in partitions},
        )


def differences(told: Told, disks: Path, paths: Sequence[str]) -> list[str]:
    """Return kseg's deviations."""
    with kseg.open_cluster([disks / path for path in paths]) as opened:
        lags = dict(opened.lag("late"))
        topic_ids = {name: topic.topic_id for name, topic in opened.topics.items() if not name.startswith("__")}
    rows = [row for row in lines(disks, ["ls", "-o", "json"], paths, ()) if row["type"] == "partition"]
    sizes = {
        f"{row['topic']}-{row['partition']}": row["bytes"]
        for row in rows
        if "b2/" in str(row["directory"]) and not str(row["topic"]).startswith("__")
    }
    leaders = {
        (row["topic"], row["partition"]): row["leader"]
        for row in lines(disks, ["metadata", "-o", "json"], paths, ())
        if row["type"] == "partition" and not str(row["topic"]).startswith("__")
    }
    found = {"sizes": sizes, "lags": lags, "topic_ids": topic_ids, "leaders": leaders}
    return [
        f"{name}: {each} for {told._asdict()[name]}" for name, each in found.items() if each != told._asdict()[name]
    ]


def commit_all(cluster: Cluster, ends: dict[tuple[str, int], int | None]) -> None:
    """Commit for a group in all partitions, a little before their ends."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "late", "enable.auto.commit": False})
    consumer.commit(
        offsets=[TopicPartition(topic, number, (end or 0) - 3) for (topic, number), end in ends.items()],
        asynchronous=False,
    )
    consumer.close()
