"""`kseg diff`'s lost records of a deposed leader equal those that a real broker cuts off. Needs Java and Maven.

Two brokers lead in turns, each elected uncleanly while the other is down, so that each has epochs that the other never
saw: the follower must ask several times for its truncation offset (KIP-279).
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.cluster import NODES, Cluster
from tests.live.replicated_topic import UNCLEAN, ReplicatedTopic
from tests.run import kseg

pytestmark = pytest.mark.kafka

TOPIC = "parted"
LEADER, DEPOSED = 2, 1


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    running = Cluster("4.3.1", tmp_path, UNCLEAN)
    try:
        running.start(*NODES)
        yield running
    finally:
        running.stop()


def values(word: str, count: int) -> list[str]:
    return [f"{word} {number}" for number in range(count)]


def test_lost_records_are_those_that_no_consumer_gets_any_more(cluster: Cluster, tmp_path: Path) -> None:
    topic = ReplicatedTopic(cluster, TOPIC, [[DEPOSED, LEADER]])
    topic.wait_for(lambda partition: partition.leader == DEPOSED and len(partition.isrs) > 1)
    topic.produce(0, values("both", 100), acks="all")
    cluster.kill(LEADER)
    topic.wait_for(lambda partition: partition.isrs == [DEPOSED])
    topic.produce(0, values("first alone", 20))
    for leader, follower, word, count in (
        (LEADER, DEPOSED, "second", 30),
        (DEPOSED, LEADER, "first again", 25),
        (LEADER, DEPOSED, "second again", 40),
    ):
        cluster.kill(follower)
        cluster.start(leader)  # it has fewer records, and leads nevertheless
        topic.wait_for(lambda partition, leader=leader: partition.leader == leader)
        topic.produce(0, values(word, count))
    topic.copy(DEPOSED, "deposed")
    topic.copy(LEADER, "leader")
    line = ["diff", "deposed", "leader", "--topic", TOPIC, "--leader", "leader", "--records", "-o", "json"]
    *records, partition, _ = map(json.loads, kseg(line, tmp_path).stdout.splitlines())
    cluster.start(DEPOSED)
    topic.wait_for(lambda partition: len(partition.isrs) > 1)
    gone = topic.acknowledged - topic.consume({0: partition["copies"][1]["logEndOffset"]})
    assert {(each["offset"], each["value"]) for each in records if each["isLost"]} == {each[1:] for each in gone}
    assert partition["lostRecords"] == len(gone) == 45
    assert partition["truncations"][0]["toOffset"] == partition["divergence"]["offset"] == 100
    topic.copy(DEPOSED, "deposed-after")
    topic.copy(LEADER, "leader-after")
    assert kseg(["diff", "deposed-after", "leader-after", "--topic", TOPIC, "-q"], tmp_path) == (0, b"", b"")
