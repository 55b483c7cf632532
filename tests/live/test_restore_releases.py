"""`kseg restore` into brokers of several releases, and the rules for batches that it relies on, one by one.

Needs Java and Maven.
"""

import random
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

from kseg import open as open_partition
from kseg.client.brokers import PASSING, Brokers, attempts
from kseg.client.connection import PRODUCE
from kseg.formats.codes import Codec
from kseg.kernel import load
from kseg.protocol.error_codes import ErrorCode
from kseg.writer.batches import RecordsBuilder
from tests import golden, run
from tests.live.test_restore import committed_offset
from tests.log.real_broker import Broker, make_topics, new_broker, served_messages
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.restore.test_sender import write_partition

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
    target = new_broker(tmp_path_factory, {"auto.create.topics.enable": "false"}, request.param)
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


# --- what a broker accepts --------------------------------------------------------------------------------------------

NONE, CORRUPT, INVALID = ErrorCode.NONE, ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
OUT_OF_ORDER = ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
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


GZIP = Codec.GZIP
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
    answer = {}
    for batch in rule.batches:
        data = [{"name": topic_of(rule), "partitionData": [{"index": 0, "records": batch}]}]
        body = {"transactionalId": None, "acks": -1, "timeoutMs": 30_000, "topicData": data}
        for _ in attempts():  # a new topic's leader may not know yet that it is one
            answer = brokers.ask(PRODUCE, body)["responses"][0]["partitionResponses"][0]
            if answer["errorCode"] not in PASSING:
                break
    assert ErrorCode(answer["errorCode"]) in rule.answers
    assert rule.base in (None, answer["baseOffset"])
