"""Records that `kseg diff` calls lost were acknowledged, and no consumer gets them, in any history of brokers.

Each history is made from its seed: records are sent, brokers killed and started, and disks removed, so that leaders
without all records are elected. Before a broker returns, and at the end, kseg compares the disks. Needs Java and
Maven.
"""

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.live.cluster import NODES, Cluster
from tests.live.compared import Compared
from tests.live.replicated_topic import UNCLEAN, ReplicatedTopic, Sent
from tests.run import kseg

pytestmark = pytest.mark.kafka

SEEDS = range(20)
CONTROLLER = 4
PARTITIONS = 3
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    running = Cluster("4.3.1", tmp_path_factory.mktemp("unclean"), UNCLEAN, controllers=(CONTROLLER,))
    try:
        running.start(CONTROLLER, *NODES)
        yield running
    finally:
        running.stop()


class History:
    """The events of a topic, with all brokers up at the start and at the end.

    destroyed: acknowledged records that no disk has any more.
    """

    def __init__(self, cluster: Cluster, seed: int, work: Path, compared: Compared) -> None:
        self._random = random.Random(seed)
        self._cluster = cluster
        self._work = work
        self._compared = compared
        self._up = set(NODES)
        self._sent = 0
        replicas = [self._random.sample(NODES, len(NODES)) for _ in range(PARTITIONS)]
        self._topic = ReplicatedTopic(cluster, f"unclean-{seed}", replicas)
        self._leaders = self._topic.wait_for(lambda partition: len(partition.isrs) == len(NODES))
        self.destroyed: set[Sent] = set()

    def happen(self, steps: int) -> None:
        """Take some random steps, then start brokers that are down."""
        self._produce()
        for _ in range(steps):
            down = sorted(set(NODES) - self._up)
            can = [self._produce] * 3 * bool(self._up) + [self._kill] * 2 * bool(self._up) + [self._start] * len(down)
            can += [self._take_disk] * bool(down and self._up)
            self._random.choice(can)()
        while len(self._up) < len(NODES):
            self._start()
        self._compare()

    def _produce(self) -> None:
        for partition in self._random.sample(range(PARTITIONS), self._random.randint(1, PARTITIONS)):
            count = self._random.randint(1, 40)
            values = [
                f"{number} {'x' * self._random.choice((0, 3, 200))}" for number in range(self._sent, self._sent + count)
            ]
            self._sent += count
            self._topic.produce(
                partition,
                values,
                acks=self._random.choice(("1", "all")),
                **{"compression.type": self._random.choice(CODECS), "batch.num.messages": self._random.randint(1, 20)},
            )

    def _kill(self) -> None:
        number = self._random.choice(sorted(self._up))
        self._cluster.kill(number)
        self._up.discard(number)
        if self._up:
            self._leaders = self._topic.wait_for(
                lambda partition: partition.leader in self._up and number not in partition.isrs
            )

    def _start(self) -> None:
        number = self._random.choice(sorted(set(NODES) - self._up))
        if self._up:
            self._destroy(number)
        self._cluster.start(number)
        self._up.add(number)
        self._leaders = self._topic.wait_for(
            lambda partition: set(partition.isrs) == self._up and partition.leader in self._up
        )

    def _take_disk(self) -> None:
        """Replace a disk of a broker that is down by a new one."""
        number = self._random.choice(sorted(set(NODES) - self._up))
        self._destroy(number)
        for directory in self._random.choice(self._cluster.nodes[number].log_dirs).glob(f"{self._topic.name}-*"):
            shutil.rmtree(directory)

    def _destroy(self, number: int) -> None:
        """Note the records that a broker is about to lose and no other has."""
        self.destroyed |= {record for record, holders in self._compare().items() if holders == {number}}

    def _compare(self) -> dict[Sent, set[int]]:
        """Return records lost under the present leaders, by kseg, and the brokers that have them."""
        copies = [self._work / "copies" / str(number) for number in NODES]
        for number, copy in zip(NODES, copies, strict=True):
            self._topic.copy(number, str(copy))
        lost: dict[Sent, set[int]] = {}
        ends = {}
        for partition, leader in self._leaders.items():
            chosen = ["--topic", self._topic.name, "--partition", str(partition), "--leader", str(leader)]
            ran = kseg(["diff", *map(str, NODES), *chosen, "--records", "-o", "json"], copies[0].parent)
            *records, found, _ = map(json.loads, ran.stdout.splitlines())
            for each in (each for each in records if each["isLost"]):
                holders = {int(Path(path).parts[0]) for path in each["paths"]}
                lost[Sent(partition, each["offset"], each["value"])] = holders
            assert found["lostRecords"] == sum(record.partition == partition for record in lost)
            (ends[partition],) = (
                copy["logEndOffset"] for copy in found["copies"] if Path(copy["path"]).parts[0] == str(leader)
            )
        gone = self._topic.acknowledged - self._topic.consume(ends)
        self._compared.rows("acknowledged records that no consumer gets", gone, {*lost, *self.destroyed})
        self._compared.counts["comparisons of three brokers"] += 1
        shutil.rmtree(copies[0].parent)
        return lost


@pytest.mark.parametrize("seed", SEEDS)
def test_lost_records_are_those_that_no_consumer_gets(
    cluster: Cluster, seed: int, tmp_path: Path, compared: Compared
) -> None:
    history = History(cluster, seed, tmp_path, compared)
    history.happen(steps=12)
