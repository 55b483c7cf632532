"""`kseg restore` into brokers of several releases, and the rules for batches that it relies on, one by one.

Needs Java and Maven.
"""

import gzip
import random
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from kseg import open as open_partition
from kseg.client.brokers import PASSING, Brokers, attempts
from kseg.client.connection import PRODUCE
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec
from kseg.formats.messages import Fields
from kseg.kernel import load
from kseg.protocol.error_codes import ErrorCode
from kseg.writer.batches import RecordsBuilder
from tests import golden, run
from tests.live.test_restore import committed_offset
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker, served_messages
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.restore.test_filler import write_later_partition
from tests.restore.test_sender import write_partition
from tests.tiered.tiered_broker import wait_until

pytestmark = pytest.mark.kafka

RELEASES = ("2.8.2", "3.9.1", "4.0.0", "4.3.1")
LOGS = golden.ROOT / "logs"
GROUP, GROUPS_TOPIC, COMMITTED = "g-new-live", "plain", 162
OLD_AND_NEW = tuple(
    LOGS / name
    for name in (
        "0.8.2.2/gzip-0",
        "0.10.2.2/v0-plain-0",
        "2.8.2/idem-0",
        "4.3.1/compacted-txn-0",
        "4.3.1/zstd-0",
    )
)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions with all kinds of batches, and a group with an offset in one of them."""
    root = tmp_path_factory.mktemp("source")
    write_partition(root / f"{GROUPS_TOPIC}-0", 60, random.Random(1))
    for partition in OLD_AND_NEW:
        shutil.copytree(partition, root / f"{partition.parent.name}-{partition.name}")
    shutil.copytree(LOGS / "4.3.1" / "__consumer_offsets-1", root / "__consumer_offsets-1")
    return root


@pytest.fixture(scope="module", params=RELEASES)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    settings = {"auto.create.topics.enable": "false", "log.retention.check.interval.ms": 500}
    settings |= {"log.initial.task.delay.ms": 200}
    target = new_broker(tmp_path_factory, settings, request.param)
    with target.running("target"):
        yield target


def test_each_record_arrives_in_each_release(source: Path, broker: Broker) -> None:
    bootstrap = f"127.0.0.1:{broker.port}"
    for words in (["--yes", "-q", "-o", "json"], ["--yes"]):
        ran = run.kseg(["restore", str(source), "--bootstrap", bootstrap, *words], broker.work)
        assert ran.status == 0, ran.stdout[-2000:] + ran.stderr
    assert b"already restored" in ran.stdout
    for path in source.iterdir():
        topic, _, _ = path.name.rpartition("-")
        if topic.startswith("__"):
            continue
        expected = [
            (each.timestamp, each.key, each.value) for each in open_partition(path).records(isolation="read_committed")
        ]
        found = served_messages(broker.port, topic, "read_committed")
        assert [(each.timestamp()[1], each.key(), each.value()) for each in found] == expected, topic
    left_before = [each for each in open_partition(source / f"{GROUPS_TOPIC}-0").records() if each.offset < COMMITTED]
    assert committed_offset(broker.port, GROUP, GROUPS_TOPIC, 0) == len(left_before)


HOSTILE = {
    "retention.ms": "1000",
    "message.timestamp.type": "LogAppendTime",
    "cleanup.policy": "compact",
    "compression.type": "gzip",
    "max.message.bytes": "2000",
}
"""Settings under which a broker refuses, changes or deletes records."""


def restore_one(source: Path, broker: Broker, topic: str, *options: str) -> run.Run:
    """Restore the partition with all kinds of batches to a topic."""
    words = [str(source / f"{GROUPS_TOPIC}-0"), "--topic-map", f"{GROUPS_TOPIC}={topic}", "--job", topic, "--yes"]
    return run.kseg(["restore", *words, "--bootstrap", f"127.0.0.1:{broker.port}", *options], broker.work)


def assert_arrived(source: Path, broker: Broker, topic: str) -> None:
    expected = [
        (each.timestamp, each.key, each.value) for each in open_partition(source / f"{GROUPS_TOPIC}-0").records()
    ]
    found = served_messages(broker.port, topic, "read_committed")
    assert [(each.timestamp()[1], each.key(), each.value()) for each in found] == expected


def is_empty(broker: Broker, topic: str) -> bool:
    """Return whether a broker has deleted all records of a topic."""
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "group.id": "test"})
    first, end = consumer.get_watermark_offsets(TopicPartition(topic, 0), PATIENCE)
    consumer.close()
    return 0 < first == end


def test_an_empty_topics_settings_change_and_delete_nothing(source: Path, broker: Broker) -> None:
    """A broker deletes the records of another topic meanwhile, which it had from the start."""
    make_topics(broker.port, ["hostile", "deleted"], {"hostile": HOSTILE, "deleted": {"retention.ms": "1000"}})
    ran = restore_one(source, broker, "hostile", "-q", "--keep-settings")
    assert (ran.status, ran.stderr) == (0, b"")
    with Brokers([("127.0.0.1", broker.port)]) as brokers:
        assert produce(brokers, "deleted", new_batch(), (NONE,))["errorCode"] == NONE
    wait_until(lambda: is_empty(broker, "deleted"), "the broker deletes nothing")
    assert_arrived(source, broker, "hostile")


def test_a_log_that_begins_later_keeps_its_offsets(broker: Broker, tmp_path: Path) -> None:
    written = write_later_partition(tmp_path / "later-0", 1_000_000)
    for words in (["-q"], []):
        options = ["--yes", "--offsets", "keep", "--job", "later", "--bootstrap", f"127.0.0.1:{broker.port}"]
        ran = run.kseg(["restore", "later-0", *options, *words], tmp_path)
        assert (ran.status, b"differs" in ran.stderr) == (0, False), ran.stderr
        found = served_messages(broker.port, "later", "read_committed")
        assert [(each.offset(), each.value()) for each in found] == [
            (offset, value) for offset, (_, _, value, _) in enumerate(written, 1_000_000)
        ]
    assert b"already restored" in ran.stdout


def test_retention_deletes_the_records_if_the_user_wants_it(source: Path, broker: Broker) -> None:
    ran = restore_one(source, broker, "old", "-q", "--final-settings", "source")
    assert (ran.status, ran.stderr) == (0, b"")
    wait_until(lambda: is_empty(broker, "old"), "the broker deletes nothing")
    ran = restore_one(source, broker, "old", "--final-settings", "source")
    shortened = b"old-0: compared up to the first record that the target's retention or cleaner has removed"
    assert (ran.status, shortened in ran.stdout) == (0, True)


def test_a_quota_only_slows_a_restore_down(source: Path, broker: Broker) -> None:
    def set_quota(*words: str) -> None:
        entity = ("--alter", "--entity-type", "clients", "--entity-default")
        command = broker.kafka.command(
            "kafka.admin.ConfigCommand", "--bootstrap-server", f"127.0.0.1:{broker.port}", *entity, *words
        )
        subprocess.run(command, check=True, capture_output=True)

    set_quota("--add-config", "producer_byte_rate=3000")
    try:
        ran = restore_one(source, broker, "slow")
    finally:
        set_quota("--delete-config", "producer_byte_rate")
    assert (ran.status, b"slows the restore down to a quota" in ran.stderr) == (0, True), ran.stderr
    assert_arrived(source, broker, "slow")


# --- what a broker accepts --------------------------------------------------------------------------------------------

NONE, CORRUPT, INVALID = ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
GZIP = Codec.GZIP
COUNT, LAST, ATTRIBUTES, EPOCH, SEQUENCE, CRC, MAGIC, FIRST_OFFSET = 57, 23, 21, 51, 53, 17, 16, 64


def new_batch(
    count: int = 3, codec: Codec = Codec.NONE, timestamp: int = 1_700_000_000_000, sequence: int = -1
) -> bytes:
    """Return a batch; with a sequence that of a producer."""
    builder = RecordsBuilder(
        0, codec=codec, producer_id=7 if sequence >= 0 else -1, producer_epoch=0 if sequence >= 0 else -1,
        base_sequence=sequence, partition_leader_epoch=-1,
    )  # fmt: skip
    builder.extend([(timestamp, b"k", b"%d" % number, ()) for number in range(count)])
    return bytes(builder.build().raw)


def compressed(raw: bytes) -> bytes:
    """Return an uncompressed batch compressed by gzip."""
    packed = raw[:BATCH_HEADER_SIZE] + gzip.compress(raw[BATCH_HEADER_SIZE:])
    size = (len(packed) - LOG_OVERHEAD).to_bytes(4, "big")
    return change(change(packed, 8, *size), ATTRIBUTES, 0, GZIP)


def change(raw: bytes, position: int, *content: int, is_sealed: bool = True) -> bytes:
    """Return a batch with other bytes, and its CRC for them."""
    changed = bytearray(raw)
    changed[position : position + len(content)] = content
    if is_sealed:
        changed[CRC : CRC + 4] = load().crc32c(memoryview(changed)[ATTRIBUTES:]).to_bytes(4, "big")
    return bytes(changed)


class Rule(NamedTuple):
    """Batches that a producer sends to a partition one after another, and the answer to the last one.

    base: the offset in that answer, None for any. settings: of the topic.
    """

    says: str
    batches: Sequence[bytes]
    answers: tuple[ErrorCode, ...]
    base: int | None = None
    settings: Mapping[str, str] = MappingProxyType({})


RULES = (
    Rule("a plain batch", [new_batch()], (NONE,), 0),
    Rule("a base offset other than 0", [change(new_batch(), 0, *bytes(7), 5)], (INVALID,)),
    Rule("any leader epoch", [change(new_batch(), 12, 0, 0, 3, 0)], (NONE,)),
    Rule("two batches", [new_batch() * 2], (INVALID,)),
    Rule("fewer records than offsets", [change(new_batch(), LAST, 0, 0, 0, 5)], (INVALID,)),
    Rule("no records", [change(change(new_batch(), COUNT, 0, 0, 0, 0), LAST, 255, 255, 255, 255)], (INVALID,)),
    Rule("a control batch", [change(new_batch(), ATTRIBUTES, 0, 0x20)], (INVALID,)),
    Rule(
        "a transaction without an id",
        [change(new_batch(sequence=0), ATTRIBUTES, 0, 0x10)],
        (ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, INVALID),
    ),
    Rule("a producer without a sequence", [change(new_batch(sequence=0), SEQUENCE, 255, 255, 255, 255)], (INVALID,)),
    Rule("any first sequence", [new_batch(sequence=70)], (NONE,)),
    Rule("the same again", [new_batch(sequence=0), new_batch(sequence=3), new_batch(sequence=0)], (NONE,), 0),
    Rule(
        "a duplicate after five others",
        [new_batch(sequence=3 * each) for each in (*range(6), 0)],
        (OUT_OF_ORDER, ErrorCode.DUPLICATE_SEQUENCE_NUMBER),
    ),
    Rule("a gap in the sequence", [new_batch(sequence=0), new_batch(sequence=4)], (OUT_OF_ORDER,)),
    Rule("other bounds", [new_batch(sequence=0), new_batch(2, sequence=2)], (OUT_OF_ORDER,)),
    Rule(
        "an older epoch",
        [change(new_batch(sequence=0), EPOCH, 0, 2), new_batch(sequence=3)],
        (ErrorCode.INVALID_PRODUCER_EPOCH,),
    ),
    Rule(
        "a newer epoch that goes on",
        [new_batch(sequence=0), change(new_batch(sequence=3), EPOCH, 0, 1)],
        (OUT_OF_ORDER,),
    ),
    Rule("a sequence that begins again at 0", [new_batch(sequence=2**31 - 2), new_batch(sequence=1)], (NONE,), 3),
    Rule("a wrong CRC", [change(new_batch(), CRC, 1, 2, 3, 4, is_sealed=False)], (CORRUPT,)),
    Rule("an older magic", [change(new_batch(), MAGIC, 1, is_sealed=False)], (INVALID, CORRUPT)),
    *(Rule(f"timestamp {each}", [new_batch(timestamp=each)], (NONE,)) for each in (-1, 0)),
    Rule("a wrong max timestamp", [change(new_batch(), 35, *bytes(8))], (NONE,)),
    Rule("a codec", [new_batch(codec=GZIP)], (NONE,)),
    Rule("a delete horizon", [change(new_batch(), ATTRIBUTES, 0, 0x40)], (NONE,)),
    Rule("the time of an append", [change(new_batch(), ATTRIBUTES, 0, 0x08)], (NONE, ErrorCode.INVALID_TIMESTAMP)),
    Rule("a wrong offset of an uncompressed record", [change(new_batch(), FIRST_OFFSET, 8)], (NONE,)),
    Rule(
        "a wrong offset of a compressed record",
        [compressed(change(new_batch(), FIRST_OFFSET, 8))],
        (ErrorCode.UNKNOWN_SERVER_ERROR, INVALID),
    ),
    Rule(
        "more in sync replicas than replicas",
        [new_batch()],
        (NONE, ErrorCode.NOT_ENOUGH_REPLICAS),
        settings={"min.insync.replicas": "2"},
    ),
    Rule(
        "odd headers",
        [batch_bytes(NewBatch([NewRecord(None, None, 0, [("", None), ("a", b""), ("a", None)])]))],
        (NONE,),
    ),
    Rule(
        "a record without a key in a compacted topic",
        [batch_bytes(NewBatch([NewRecord(None, b"v")]))],
        (INVALID,),
        settings={"cleanup.policy": "compact"},
    ),
    Rule("a record of the future", [new_batch(timestamp=4_000_000_000_000)], (NONE, ErrorCode.INVALID_TIMESTAMP)),
    Rule("a large batch", [new_batch(30)], (ErrorCode.MESSAGE_TOO_LARGE,), settings={"max.message.bytes": "100"}),
    Rule("a topic with another codec", [new_batch()], (NONE,), settings={"compression.type": "lz4"}),
    Rule("a compressed batch with a gap", [change(new_batch(codec=GZIP), LAST, 0, 0, 0, 5)], (INVALID,)),
)


def produce(brokers: Brokers, topic: str, batch: bytes, expected: Sequence[ErrorCode]) -> Fields:
    """Return the broker's answer to a batch; a new topic's leader may not know yet that it is one."""
    data = [{"name": topic, "partitionData": [{"index": 0, "records": batch}]}]
    body = {"transactionalId": None, "acks": -1, "timeoutMs": 30_000, "topicData": data}
    for _ in attempts():
        answer = brokers.ask(PRODUCE, body)["responses"][0]["partitionResponses"][0]
        if answer["errorCode"] in expected or answer["errorCode"] not in PASSING:
            break
    return answer


@pytest.fixture(scope="module")
def brokers(broker: Broker) -> Iterator[Brokers]:
    make_topics(broker.port, map(topic_of, RULES), {topic_of(rule): rule.settings for rule in RULES})
    with Brokers([("127.0.0.1", broker.port)]) as brokers:
        brokers.leaders([(topic_of(rule), 0) for rule in RULES])
        yield brokers


def topic_of(rule: Rule) -> str:
    return f"rule-{RULES.index(rule)}"


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.says.replace(" ", "-"))
def test_a_broker_answers_as_the_sender_expects(brokers: Brokers, rule: Rule) -> None:
    answer: Fields = {}
    for batch in rule.batches:
        answer = produce(brokers, topic_of(rule), batch, rule.answers)
    assert ErrorCode(answer["errorCode"]) in rule.answers
    assert rule.base in (None, answer["baseOffset"])
