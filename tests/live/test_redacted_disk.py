"""A broker starts on what `kseg redact` makes of its disk, and serves as many records. Needs Java and Maven."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from kseg.rewrite.redact import redact_settings
from kseg.rewrite.redacted_names import NameKind, Names
from tests import run
from tests.live.compared import Compared
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker, served_messages

if TYPE_CHECKING:
    from confluent_kafka import Message

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
COMMITTED, ABORTED = "paid", "refused"
GROUPS = {"billing": 40, "reports-of-berlin": 7}
"""With the offsets that they commit."""
RECORDS = 200
Shape = tuple[int | tuple[int | None, ...] | None, ...]
"""Offset, time, and the sizes of key, value, and of names and values of headers."""


class Before(NamedTuple):
    """A broker that was stopped, what a consumer of committed records got of each topic, and offsets of groups."""

    broker: Broker
    served: dict[str, list[Shape]]
    offsets: dict[str, dict[str, int]]


def shapes(port: int, topic: str) -> list[Shape]:
    return [
        (message.offset(), message.timestamp()[1], *map(_size, (message.key(), message.value())), _headers(message))
        for message in served_messages(port, topic, "read_committed")
    ]


def _size(part: bytes | str | None) -> int | None:
    return None if part is None else len(part)


def _headers(message: "Message") -> tuple[int | None, ...]:
    return tuple(_size(part) for header in message.headers() or () for part in header)


def offsets_of(port: int, groups: list[str]) -> dict[str, dict[str, int]]:
    from confluent_kafka import ConsumerGroupTopicPartitions
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    found = {}
    for group in groups:
        (answer,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
        found[group] = {place.topic: place.offset for place in answer.result(PATIENCE).topic_partitions}
    return found


def produce(port: int, topic: str, settings: dict[str, Any], transactional_id: str | None = None) -> Any:
    from confluent_kafka import Producer

    own = {"bootstrap.servers": f"127.0.0.1:{port}", "linger.ms": 20, **settings}
    producer = Producer({**own, "transactional.id": transactional_id} if transactional_id else own)
    if transactional_id:
        producer.init_transactions(PATIENCE)
        producer.begin_transaction()
    for number in range(RECORDS):
        value = None if number % 50 == 0 else f'{{"customer": "Alice Example", "number": {number}}}'.encode()
        producer.produce(topic, value, b"customer-%d" % (number % 20), headers={"trace-id": b"%016d" % number})
    producer.flush(PATIENCE)
    return producer


def commit(port: int, group: str, topic: str, offset: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{port}", "group.id": group, "client.id": "of-the-customer"})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset, metadata="seen by alice")], asynchronous=False)
    consumer.close()


@pytest.fixture(params=[False, True], ids=["static", "dynamic"])
def before(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Before:
    broker = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"}, is_dynamic=request.param)
    topics = [f"customers.{codec}" for codec in CODECS]
    with broker.running("before"):
        make_topics(broker.port, topics, {topics[0]: {"cleanup.policy": "compact"}})
        for codec, topic in zip(CODECS, topics, strict=True):
            produce(broker.port, topic, {"compression.type": codec})
            produce(broker.port, topic, {"compression.type": codec}, f"{COMMITTED}-{codec}").commit_transaction(
                PATIENCE
            )
            produce(broker.port, topic, {"compression.type": codec}, f"{ABORTED}-{codec}").abort_transaction(PATIENCE)
        for group, offset in GROUPS.items():
            commit(broker.port, group, topics[0], offset)
        served = {topic: shapes(broker.port, topic) for topic in topics}
        offsets = offsets_of(broker.port, list(GROUPS))
    return Before(broker, served, offsets)


def test_broker_starts_on_a_redacted_disk_and_serves_as_many_records(
    before: Before, tmp_path: Path, compared: Compared
) -> None:
    broker, original, key_file = before.broker, tmp_path / "original", tmp_path / "key"
    key_file.write_text("a long secret")
    shutil.move(broker.logs, original)
    ran = run.kseg(["redact", str(original), "--to", str(broker.logs), "--key-file", str(key_file)], tmp_path)
    assert ran.status == 0, ran.stderr
    settings = redact_settings("a long secret", (), [original])
    names = Names(settings.redaction.redactor(), (), settings.partition_counts)
    topics = {topic: names.topic(topic) for topic in before.served}
    groups = {group: names.name(NameKind.GROUP, group) for group in GROUPS}
    assert not {*topics} & {*topics.values()}
    with broker.running("redacted") as said:
        served = {topic: shapes(broker.port, other) for topic, other in topics.items()}
        offsets = offsets_of(broker.port, list(groups.values()))
        text = said.read_text(errors="replace")
    assert not [line for line in text.splitlines() if " ERROR " in line]
    for topic, records in before.served.items():
        compared.rows(topic, records, served[topic])
        assert len(records) == 2 * RECORDS
    assert offsets == {
        groups[group]: {topics[topic]: offset for topic, offset in places.items()}
        for group, places in before.offsets.items()
    }
    stored = b"".join(path.read_bytes() for path in broker.logs.rglob("*") if path.is_file())
    assert not [text for text in (b"customer", b"Alice", b"alice", b"billing", COMMITTED.encode()) if text in stored]
