"""Administration without Java: confluent-kafka's AdminClient, and kafka-python's."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.protocol.messages import read_response
from tests import golden
from tests.protocol.packets import request
from tests.serve.running import PATIENCE, Running, serving
from tests.serve.test_server import METADATA, open_connection

LOGS = golden.ROOT / "logs" / "4.3.1"
TOPICS = {"__cluster_metadata", "__consumer_offsets", "__share_group_state", "__transaction_state", "append-zstd"}
TOPICS |= {"compacted-txn", "meta.9", "zstd"}
TOPIC = "compacted-txn"


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    with serving(LOGS) as running:
        yield running


@pytest.fixture(scope="module")
def confluent(running: Running) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": running.bootstrap})


@pytest.fixture(scope="module")
def kafka_python(running: Running) -> Iterator[Any]:
    from kafka import KafkaAdminClient

    client = KafkaAdminClient(bootstrap_servers=running.bootstrap)
    yield client
    client.close()


def size_on_disk(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


def test_bytes_after_a_request_are_ignored_as_librdkafka_sends_some(running: Running) -> None:
    with open_connection(running) as client:
        frame = request(METADATA, 13, {"topics": None}) + bytes(3)
        client.socket.sendall(len(frame).to_bytes(4, "big") + frame)
        message = read_response(client.receive(), METADATA, 13)
    assert message.body is not None
    assert {topic["name"] for topic in message.body["topics"]} == TOPICS


def test_confluent_lists_topics_and_the_broker(confluent: Any, running: Running) -> None:
    found = confluent.list_topics(timeout=PATIENCE)
    assert set(found.topics) == TOPICS
    assert [(broker.host, broker.port) for broker in found.brokers.values()] == [running.address]


def test_confluent_describes_the_cluster_and_a_topic(confluent: Any, running: Running) -> None:
    from confluent_kafka import TopicCollection

    assert confluent.describe_cluster().result(PATIENCE).cluster_id == running.served.cluster_id
    (described,) = confluent.describe_topics(TopicCollection([TOPIC])).values()
    topic = described.result(PATIENCE)
    assert (topic.name, [part.leader.id for part in topic.partitions]) == (TOPIC, [running.served.node_id])


def test_confluent_describes_settings(confluent: Any) -> None:
    from confluent_kafka.admin import ConfigResource

    (described,) = confluent.describe_configs([ConfigResource("TOPIC", TOPIC)]).values()
    settings = described.result(PATIENCE)
    assert settings["cleanup.policy"].value == "compact"
    assert settings["min.insync.replicas"].value == "1"


def test_confluent_lists_offsets(confluent: Any, running: Running) -> None:
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import OffsetSpec

    (listed,) = confluent.list_offsets({TopicPartition(TOPIC, 0): OffsetSpec.latest()}).values()
    partition = running.served.partition_of(TOPIC, 0)
    assert partition is not None
    assert listed.result(PATIENCE).offset == partition.offsets().log_end


def test_confluent_creates_nothing(confluent: Any) -> None:
    from confluent_kafka import KafkaError, KafkaException
    from confluent_kafka.admin import NewTopic

    (created,) = confluent.create_topics([NewTopic("new", 1, 1)]).values()
    with pytest.raises(KafkaException) as raised:
        created.result(PATIENCE)
    assert raised.value.args[0].code() == KafkaError._UNSUPPORTED_FEATURE


def test_kafka_python_describes_the_cluster_and_topics(kafka_python: Any, running: Running) -> None:
    assert kafka_python.describe_cluster()["cluster_id"] == running.served.cluster_id
    assert set(kafka_python.list_topics()) == TOPICS
    (topic,) = kafka_python.describe_topics([TOPIC])
    assert [part["leader_id"] for part in topic["partitions"]] == [running.served.node_id]


def test_kafka_python_describes_log_directories(kafka_python: Any) -> None:
    (broker,) = kafka_python.describe_log_dirs()
    (log_dir,) = broker["log_dirs"]
    sizes = {
        f"{topic['name']}-{part['partition_index']}": part["partition_size"]
        for topic in log_dir["topics"]
        for part in topic["partitions"]
    }
    assert log_dir["log_dir"] == str(LOGS)
    assert sizes == {path.name: size_on_disk(path) for path in LOGS.iterdir() if path.is_dir()}


def test_kafka_python_lists_transactions(kafka_python: Any) -> None:
    (listed,) = kafka_python.list_transactions().values()
    found = {each.transactional_id: each.state.value for each in listed}
    assert found == {"ctx-a-2": "CompleteCommit", "left-open": "Ongoing", "tx-1": "CompleteCommit"}


def test_kafka_python_creates_nothing(kafka_python: Any) -> None:
    from kafka.admin import NewTopic
    from kafka.errors import IncompatibleBrokerVersion

    with pytest.raises(IncompatibleBrokerVersion):
        kafka_python.create_topics([NewTopic("new", 1, 1)])
