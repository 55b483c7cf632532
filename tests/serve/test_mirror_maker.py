"""A killed broker's topics and groups are copied by MirrorMaker 2 from a server into a new cluster."""

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.log.real_broker import PATIENCE, RELEASE, Broker, make_topics, new_broker, served_records
from tests.run import kseg
from tests.serve.pages import block
from tests.serve.running import serving

if TYPE_CHECKING:
    from tools.kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

TOPICS = {"orders": 900, "pay": 40}
GROUP = "billing"
COMMITTED = {"orders": 900, "pay": 25}
OWN_SETTINGS = """
offset-syncs.topic.replication.factor = 1
checkpoints.topic.replication.factor = 1
offset.storage.replication.factor = 1
status.storage.replication.factor = 1
config.storage.replication.factor = 1
sync.group.offsets.interval.seconds = 1
emit.checkpoints.interval.seconds = 1
refresh.groups.interval.seconds = 1
"""
"""Settings beyond those of docs/how-to/serve.md: there is one broker, and no time to wait."""


@pytest.fixture(scope="module")
def dead(tmp_path_factory: pytest.TempPathFactory) -> Broker:
    """A broker that was killed after a group had read some of its records."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    broker = new_broker(tmp_path_factory)
    with broker.running("dead", is_killed=True):
        make_topics(broker.port, TOPICS)
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        for topic, count in TOPICS.items():
            for number in range(count):
                producer.produce(topic, b"value %d" % number, b"key %d" % (number % 7))
        producer.flush(PATIENCE)
        reading = Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": GROUP})
        offsets = [TopicPartition(topic, 0, offset) for topic, offset in COMMITTED.items()]
        reading.commit(offsets=offsets, asynchronous=False)
        reading.close()
    return broker


@pytest.fixture
def new(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A running broker without topics."""
    broker = new_broker(tmp_path_factory)
    with broker.running("new"):
        yield broker


@pytest.fixture(scope="module")
def mirror_maker(tmp_path_factory: pytest.TempPathFactory) -> "KafkaClasses":
    from tools.kafka_classes import KafkaClasses

    return KafkaClasses([f"org.apache.kafka:connect-mirror:{RELEASE}"], [], tmp_path_factory.mktemp("java"))


@contextmanager
def mirroring(mirror_maker: "KafkaClasses", source: str, target: Broker, work: Path) -> Iterator[Path]:
    """Run MirrorMaker 2; yield the file with its output."""
    settings, said = work / "mm2.properties", work / "mm2.txt"
    shown = block("clusters", "properties")
    ours = {"127.0.0.1:9092": source, "new-cluster:9092": f"127.0.0.1:{target.port}", "factor = 3": "factor = 1"}
    for text, own in ours.items():
        assert text in shown
        shown = shown.replace(text, own)
    settings.write_text(shown + OWN_SETTINGS, encoding="utf-8")
    command = mirror_maker.command("org.apache.kafka.connect.mirror.MirrorMaker", str(settings))
    with said.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        try:
            yield said
        finally:
            process.kill()
            process.wait()


def ends(broker: Broker) -> dict[str, int]:
    """Return the high watermarks of the topics; 0 for missing ones."""
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    there = admin.list_topics(timeout=PATIENCE).topics
    return {name: _end(broker, name) if name in there else 0 for name in TOPICS}


def _end(broker: Broker, topic: str) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "none"})
    end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE)[1]
    consumer.close()
    return int(end)


def group_offsets(broker: Broker) -> dict[str, int]:
    """Return the group's offsets."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": GROUP})
    found = consumer.committed([TopicPartition(topic, 0) for topic in TOPICS], PATIENCE)
    consumer.close()
    return {each.topic: each.offset for each in found}


def test_a_dead_brokers_records_and_groups_go_on_in_a_new_cluster(
    dead: Broker, new: Broker, mirror_maker: "KafkaClasses", tmp_path: Path
) -> None:
    with serving(dead.logs) as running, mirroring(mirror_maker, running.bootstrap, new, tmp_path) as said:
        give_up = time.monotonic() + 2 * PATIENCE
        while ends(new) != TOPICS or group_offsets(new)["orders"] != COMMITTED["orders"]:
            assert time.monotonic() < give_up, (ends(new), group_offsets(new), said.read_text()[-4000:], running.said)
        translated = group_offsets(new)
    with dead.running("again"):
        for topic in TOPICS:
            assert served_records(new.port, topic) == served_records(dead.port, topic)
    for topic in TOPICS:  # batches and topics' ids differ
        sides = [str(broker.logs / f"{topic}-0") for broker in (dead, new)]
        assert kseg(["diff", *sides, "-q"], tmp_path) == (0, b"", b"")
    assert translated["orders"] == COMMITTED["orders"]
    assert 0 < translated["pay"] <= COMMITTED["pay"]
