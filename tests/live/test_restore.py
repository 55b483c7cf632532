"""`kseg restore` brings a broker's disks to another broker: every record once, and groups where they were.

Another client reads both brokers. The source has all codecs, transactions of all ends, compaction, deleted records,
and odd records. Needs Java and Maven.
"""

import asyncio
import json
import random
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from kseg.client.brokers import Brokers, error_codes
from kseg.client.connection import ALTER_SHARE_GROUP_OFFSETS
from kseg.formats.codes import Codec
from kseg.log.writer import PartitionWriter
from kseg.writer.batches import RecordsBuilder
from tests import golden, run
from tests.live.wire import DESCRIBE_SHARE_GROUP_OFFSETS, PRODUCE, answer_of
from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.serve.running import serving
from tests.serve.test_clients import partitions_by_aiokafka
from tests.tiered.tiered_broker import TOPIC as TIERED_TOPIC
from tests.tiered.tiered_broker import tiered_broker, wait_until

pytestmark = pytest.mark.kafka

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
TOPICS: Mapping[str, tuple[int, Mapping[str, str]]] = {
    "codecs": (3, {}),
    "odd": (1, {"retention.ms": "-1"}),
    "transactions": (1, {}),
    "compacted": (1, {"cleanup.policy": "compact", "segment.ms": "200", "min.cleanable.dirty.ratio": "0.01"}),
    "trimmed": (1, {"retention.ms": "86400000"}),
    "dated": (1, {"message.timestamp.type": "LogAppendTime"}),
}
"""Topics with their numbers of partitions and settings."""
GROUPS = {"begins": 0, "reads": 37, "beyond": 1_000_000}
"""Groups, and the offset that each has in all partitions."""
KILLS = 12


class ReadRecord(NamedTuple):
    """A record as a client reads it, and its offset."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]

    @property
    def contents(self) -> tuple[object, ...]:
        return tuple(self[1:])


class Pair(NamedTuple):
    """The disks of a stopped broker with their committed records, and the running broker of the new cluster."""

    disks: Path
    records: Mapping[tuple[str, int], list[ReadRecord]]
    target: Broker


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    fast = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": 3, "log.cleaner.backoff.ms": 200}
    fast |= {"log.initial.task.delay.ms": 200, "log.retention.check.interval.ms": 500}
    source, target = new_broker(tmp_path_factory, fast), new_broker(tmp_path_factory, fast)
    with source.running("source"):
        make_source(source)
        places = [(topic, number) for topic, (partitions, _) in TOPICS.items() for number in range(partitions)]
        records = {place: read_all(source.port, *place) for place in places}
    with ExitStack() as running:
        running.enter_context(target.running("target"))
        yield Pair(source.logs, records, target)


# --- the source ------------------------------------------------------------------------------------------------------


def make_source(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": server(broker.port)})
    wanted = [NewTopic(name, partitions, 1, config=dict(own)) for name, (partitions, own) in TOPICS.items()]
    for future in admin.create_topics(wanted).values():
        future.result(PATIENCE)
    fill_codecs(broker)
    for topic in ("trimmed", "dated"):
        produce(broker, topic, range(100))
    write_odd_records(broker)
    make_transactions(broker)
    make_compacted(broker)
    trim(admin)
    for group, offset in GROUPS.items():
        commit(broker, group, offset)
    set_share_offset(broker, 40)


def set_share_offset(broker: Broker, offset: int) -> None:
    """Create a share group that begins at an offset of the topic that begins at 30."""
    parts = [{"partitionIndex": 0, "startOffset": offset}]
    body = {"groupId": "shares", "topics": [{"topicName": "trimmed", "partitions": parts}]}
    with Brokers([("127.0.0.1", broker.port)]) as brokers:
        brokers.topics()
        assert not any(error_codes(brokers.ask_coordinator("shares", ALTER_SHARE_GROUP_OFFSETS, body)))


def share_offset(port: int) -> int:
    groups = [{"groupId": "shares", "topics": [{"topicName": "trimmed", "partitions": [0]}]}]
    (group,) = answer_of(port, DESCRIBE_SHARE_GROUP_OFFSETS, 0, {"groups": groups})["groups"]
    return int(group["topics"][0]["partitions"][0]["startOffset"])


def server(port: int) -> str:
    return f"127.0.0.1:{port}"


def produce(broker: Broker, topic: str, numbers: range, partition: int = 0, **settings: object) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": server(broker.port), "linger.ms": 20, **settings})
    for number in numbers:
        value = None if number % 13 == 0 else b"" if number % 17 == 0 else b"value %d " % number * (number % 40)
        headers: Any = [("h", b""), ("h", None), ("", b"x")] if number % 7 == 0 else None
        producer.produce(topic, value, b"key %d" % (number % 10), partition, headers=headers)
    assert producer.flush(PATIENCE) == 0


def fill_codecs(broker: Broker) -> None:
    for codec in CODECS:
        for partition in range(3):
            produce(broker, "codecs", range(1, 90), partition, **{"compression.type": codec})
        for number in range(5):  # a batch each
            produce(broker, "codecs", range(number, number + 1), 0, **{"compression.type": codec})


def write_odd_records(broker: Broker) -> None:
    """Write records that a client library would change: timestamps 0 and -1, a null key and value, header names."""
    for timestamp in (0, -1, 1, 1_700_000_000_000):
        records = [
            NewRecord(None, None, timestamp, [("", None), ("a", b""), ("a", None)]),
            NewRecord(b"", b"", timestamp),
            NewRecord(b"k", b"v" * 20_000, timestamp),
        ]
        part = {"index": 0, "records": batch_bytes(NewBatch(records))}
        body = {
            "transactionalId": None,
            "acks": -1,
            "timeoutMs": 5000,
            "topicData": [{"name": "odd", "partitionData": [part]}],
        }
        (answer,) = answer_of(broker.port, PRODUCE, 7, body)["responses"]
        assert answer["partitionResponses"][0]["errorCode"] == 0


def make_transactions(broker: Broker) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": server(broker.port), "transactional.id": "t"})
    producer.init_transactions(PATIENCE)
    numbers = count()
    for ends in (*(True, False, True, True, False) * 3, None):
        producer.begin_transaction()
        for _ in range(20):
            producer.produce("transactions", b"%d %d" % (next(numbers), ends is None), b"k", 0)
        producer.flush(PATIENCE)
        if ends is not None:
            (producer.commit_transaction if ends else producer.abort_transaction)(PATIENCE)


def make_compacted(broker: Broker) -> None:
    """Write until the cleaner has removed records."""
    end = time.monotonic() + PATIENCE
    for number in count():
        produce(broker, "compacted", range(1, 60))
        time.sleep(0.3)
        if number > 3 and len(read_all(broker.port, "compacted", 0)) < 59 * number:
            return
        assert time.monotonic() < end, "nothing is compacted"


def trim(admin: Any) -> None:
    from confluent_kafka import TopicPartition

    for future in admin.delete_records([TopicPartition("trimmed", 0, 30)]).values():
        future.result(PATIENCE)


def commit(broker: Broker, group: str, offset: int) -> None:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": server(broker.port), "group.id": group, "enable.auto.commit": False})
    places = [(topic, number) for topic, (partitions, _) in TOPICS.items() for number in range(partitions)]
    consumer.commit(offsets=[TopicPartition(*place, offset) for place in places], asynchronous=False)
    consumer.close()


# --- what clients see ------------------------------------------------------------------------------------------------


def read_all(port: int, topic: str, partition: int) -> list[ReadRecord]:
    """Return the committed records of a partition."""
    from confluent_kafka import OFFSET_BEGINNING, TIMESTAMP_NOT_AVAILABLE, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": server(port),
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)])
    found = []
    while (message := consumer.poll(PATIENCE)) is not None:
        error = message.error()
        if error is None:
            kind, timestamp = message.timestamp()
            own: Any = (
                message.offset(),
                -1 if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,  # v0 has none
                message.key(),
                message.value(),
                message.headers() or [],
            )
            found.append(ReadRecord(*own))
        elif error.code() == KafkaError._PARTITION_EOF:
            break
    consumer.close()
    return found


def committed_offset(port: int, group: str, topic: str, partition: int) -> int:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": server(port), "group.id": group})
    (found,) = consumer.committed([TopicPartition(topic, partition)], PATIENCE)
    consumer.close()
    return int(found.offset)


def restore(pair: Pair, paths: Path, *options: str) -> run.Run:
    return run.kseg(["restore", str(paths), "--bootstrap", server(pair.target.port), *options], pair.target.work)


def objects(ran: run.Run) -> list[dict[str, Any]]:
    return [json.loads(line) for line in ran.stdout.splitlines()]


# --- tests -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def restored(pair: Pair) -> list[dict[str, Any]]:
    """The objects of the first restore."""
    ran = restore(pair, pair.disks, "--yes", "-o", "json", "-q")
    assert (ran.status, ran.stderr) == (0, b"")
    return objects(ran)


def test_each_record_arrives_once_and_unchanged(pair: Pair, restored: list[dict[str, Any]]) -> None:
    for place, expected in pair.records.items():
        found = read_all(pair.target.port, *place)
        assert [each.contents for each in found] == [each.contents for each in expected], place
        assert [each.offset for each in found] == list(range(len(expected))), place
    assert restored[-1]["records"] == sum(map(len, pair.records.values()))


def test_the_source_has_what_is_hard(pair: Pair, restored: list[dict[str, Any]]) -> None:
    plan = {(each["topic"], each["partition"]): each for each in restored if each["type"] == "partition"}
    assert plan["trimmed", 0]["firstOffset"] == 30
    assert plan["transactions", 0]["leftOutRecords"] == {"aborted": 120, "open": 20, "control": 15}
    assert plan["compacted", 0]["records"] < plan["compacted", 0]["endOffset"]
    assert {each.timestamp for each in pair.records["odd", 0]} == {0, -1, 1, 1_700_000_000_000}


@pytest.mark.parametrize("group", GROUPS)
def test_groups_go_on_at_the_right_record(pair: Pair, restored: list[dict[str, Any]], group: str) -> None:
    for place, records in pair.records.items():
        left = [each.contents for each in records if each.offset >= GROUPS[group]]
        offset = committed_offset(pair.target.port, group, *place)
        assert offset == len(records) - len(left), place
        found = read_all(pair.target.port, *place)
        assert [each.contents for each in found if each.offset >= offset] == left


def test_share_groups_begin_at_the_right_record(pair: Pair, restored: list[dict[str, Any]]) -> None:
    assert share_offset(pair.target.port) == 10


def test_settings_come_back_without_retention(pair: Pair, restored: list[dict[str, Any]]) -> None:
    from confluent_kafka import admin as client

    admin = client.AdminClient({"bootstrap.servers": server(pair.target.port)})
    for topic, (_, own) in TOPICS.items():
        wanted = client.ConfigResource(client.ConfigResource.Type.TOPIC, topic)
        settings = admin.describe_configs([wanted])[wanted].result(PATIENCE)
        found = {name: entry.value for name, entry in settings.items() if entry.source == 1}
        off = {} if "cleanup.policy" in own else {"retention.ms": "-1", "retention.bytes": "-1"}
        assert found == {**own, **off}, topic
    held = {each["topic"]: each for each in restored if each["type"] == "setting" and each["name"] == "retention.ms"}
    assert "retention.ms=86400000" in held["trimmed"]["commands"][0]


def test_another_run_compares_and_says_so(pair: Pair, restored: list[dict[str, Any]]) -> None:
    ran = restore(pair, pair.disks, "--yes", "-q", "-o", "json")
    assert (ran.status, objects(ran)[-1]["wasDone"]) == (0, True)


def test_other_options_and_foreign_records_are_refused(pair: Pair, restored: list[dict[str, Any]]) -> None:
    ran = restore(pair, pair.disks, "--yes", "-q", "--topic", "odd")
    assert (ran.status, b"was begun with other sources" in ran.stderr) == (2, True)
    ran = restore(pair, pair.disks, "--yes", "-q", "--topic", "odd", "--job", "another")
    assert (ran.status, b"topic odd of the target isn't empty" in ran.stderr) == (2, True)


@pytest.mark.parametrize("place", [(topic, number) for topic, (count, _) in TOPICS.items() for number in range(count)])
def test_the_targets_logs_have_each_offset_once(
    pair: Pair, restored: list[dict[str, Any]], place: tuple[str, int]
) -> None:
    """The sequence of each batch is its offset; the tool of the brokers and kseg find nothing wrong."""
    partition = pair.target.logs / "{}-{}".format(*place)
    (log,) = partition.glob("*.log")
    command = pair.target.kafka.command(
        "org.apache.kafka.tools.DumpLogSegments",
        "--files",
        str(log),
        "--deep-iteration",
        options=[pair.target.tools.QUIET],
    )
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    batches = [dict(re.findall(r"(\w+): (\S+)", line)) for line in text.splitlines() if line.startswith("baseOffset")]
    ends = [0, *(int(each["lastOffset"]) + 1 for each in batches)]
    assert [int(each["baseOffset"]) for each in batches] == ends[:-1]
    assert [int(each["baseSequence"]) for each in batches] == ends[:-1]
    assert {each["isvalid"] for each in batches} == {"true"}
    assert ends[-1] == len(pair.records[place])
    ran = run.kseg(["verify", "-q", str(partition)], pair.target.work)
    assert (ran.status, ran.stdout) == (0, b"")


@pytest.mark.parametrize("topic", ["codecs", "odd", "transactions", "compacted", "trimmed"])
def test_the_java_consumer_reads_the_same(pair: Pair, restored: list[dict[str, Any]], topic: str) -> None:
    count = len(pair.records[topic, 0])
    with serving(pair.disks) as source:
        expected = java_lines(pair.target, source.bootstrap, topic, count)
    assert len(expected) >= count
    assert java_lines(pair.target, server(pair.target.port), topic, count) == expected


def test_aiokafka_reads_the_same(pair: Pair, restored: list[dict[str, Any]]) -> None:
    read = partitions_by_aiokafka(server(pair.target.port), pair.records, isolation_level="read_committed")
    found = asyncio.run(read)
    for (topic, number), records in pair.records.items():
        own = [(each.timestamp, each.key, each.value, [*each.headers]) for each in found[f"{topic}-{number}"]]
        assert own == [each.contents for each in records], topic


def java_lines(broker: Broker, bootstrap: str, topic: str, count: int) -> list[str]:
    """Return what the console consumer prints of partition 0, but offsets."""
    printed = ("timestamp", "headers", "key", "value")
    command = broker.kafka.command(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", bootstrap, "--topic", topic, "--partition", "0", "--offset", "earliest"),
        *("--isolation-level", "read_committed", "--max-messages", str(count), "--timeout-ms", "20000"),
        *(word for each in printed for word in ("--formatter-property", f"print.{each}=true")),
        options=[broker.tools.QUIET],
    )
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


@pytest.mark.parametrize("release", ["0.8.2.2", "0.10.2.2", "0.11.0.3", "2.8.2"])
def test_logs_of_old_releases_arrive(pair: Pair, release: str) -> None:
    """The source's records are those that `kseg serve` gives to the client."""
    logs = golden.ROOT / "logs" / release
    options = ["--yes", "-q", "-o", "json", "--no-groups", "--job", release]
    for topic in {each["topic"] for each in objects(restore(pair, logs, *options, "--dry-run"))}:
        options += ["--topic-map", f"{topic}={release}-{topic}"]
    ran = restore(pair, logs, *options)
    partitions = [each for each in objects(ran) if each["type"] == "partition"]
    assert ran.status in (0, 1), ran.stderr  # some logs lack a partition
    assert len(partitions) > 6
    with serving(logs) as source:
        for each in partitions:
            expected = read_all(source.address[1], each["sourceTopic"], each["partition"])
            found = read_all(pair.target.port, each["topic"], each["partition"])
            assert [one.contents for one in found] == [one.contents for one in expected], each


def test_records_of_a_tier_arrive(pair: Pair, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    tier = tmp_path / "tier"
    tier.mkdir()
    broker = tiered_broker(tmp_path_factory, tier)
    with broker.running("tiered"):
        admin = AdminClient({"bootstrap.servers": server(broker.port)})
        for future in admin.create_topics([NewTopic("tiered", 1, 1, config=dict(TIERED_TOPIC))]).values():
            future.result(PATIENCE)
        produce(broker, "tiered", range(20_000))
        expected = read_all(broker.port, "tiered", 0)
        wait_until(lambda: not (broker.logs / "tiered-0" / f"{0:020}.log").exists(), "no segment is in the tier alone")
    ran = restore(pair, broker.logs, "--tier", str(tier), "--yes", "-q", "--topic", "tiered", "--job", "tiered")
    assert (ran.status, ran.stderr) == (0, b"")
    found = read_all(pair.target.port, "tiered", 0)
    assert [each.contents for each in found] == [each.contents for each in expected]


def test_groups_with_members_are_named(pair: Pair, restored: list[dict[str, Any]]) -> None:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": server(pair.target.port), "group.id": "reads", "enable.auto.commit": False}
    member = Consumer(settings)
    member.subscribe(["codecs"])
    end = time.monotonic() + PATIENCE
    while not member.assignment():
        assert time.monotonic() < end
        member.poll(0.2)
    ran = restore(
        pair, pair.disks, "--yes", "-q", "--topic", "odd", "--topic-map", "odd=odd-2", "--job", "odd-2", "-o", "json"
    )
    member.close()
    states = {each["group"]: each["state"] for each in objects(ran) if each["type"] == "group"}
    assert (ran.status, states["reads"], states["begins"]) == (1, "active", "committed")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Partitions with all kinds of batches, large enough to be killed on the way."""
    root = tmp_path_factory.mktemp("large")
    for partition in range(3):
        write_partition(root / f"large-{partition}", random.Random(partition), 30_000)
    return root


def write_partition(directory: Path, chance: random.Random, records: int, first: int = 0, gaps: float = 0.005) -> None:
    """Write records with keys and times from 0 on. first: the first offset. gaps: the share of records after a gap."""
    directory.mkdir()
    codecs = (Codec.NONE, Codec.GZIP, Codec.LZ4, Codec.ZSTD)
    with PartitionWriter(directory, first) as writer:
        number, offset = 0, first
        while number < records:
            builder = RecordsBuilder(offset, codec=chance.choice(codecs))
            for _ in range(min(chance.choice((1, 3, 50, 400, 1500)), records - number)):
                offset += chance.random() < gaps
                builder.append_at(offset, number, b"%d" % number, b"%d " % number * chance.randrange(20))
                number, offset = number + 1, offset + 1
            writer.append(builder.build().raw)


def command_line(pair: Pair, large: Path, name: str) -> list[str]:
    kseg = [str(Path(sys.executable).with_name("kseg")), "restore", str(large), "--bootstrap", server(pair.target.port)]
    return [*kseg, "--yes", "-q", "--topic-map", f"large={name}", "--job", name, "--rate", "1MiB"]


def assert_all_arrived(port: int, name: str, earlier: int = 0, first: int = 0) -> None:
    """Check that a topic has each record once from its first offset on, after some earlier records."""
    for partition in range(3):
        found = read_all(port, name, partition)[earlier:]
        assert [each.key for each in found] == [b"%d" % number for number in range(30_000)], name
        assert all(each.timestamp == each.offset - earlier - first for each in found)


def make_topic_with_records(bootstrap: str, name: str) -> None:
    """Create a topic of three partitions with ten records each."""
    from confluent_kafka import Producer
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_topics([NewTopic(name, 3)]).values():
        future.result(PATIENCE)
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(30):
        producer.produce(name, b"earlier", b"%d" % number, number % 3)
    assert producer.flush(PATIENCE) == 0


def test_appended_records_follow_earlier_ones(pair: Pair, large: Path) -> None:
    make_topic_with_records(server(pair.target.port), "appended")
    for _ in range(2):
        ran = subprocess.run(
            [*command_line(pair, large, "appended"), "--append"], capture_output=True, check=False, timeout=PATIENCE
        )
        assert (ran.returncode, ran.stderr) == (0, b"")
        assert_all_arrived(pair.target.port, "appended", 10)


def test_killed_runs_lose_and_double_nothing(pair: Pair, large: Path) -> None:
    chance, kills = random.Random(4), 0
    while kills < KILLS:
        with subprocess.Popen(command_line(pair, large, "killed"), stdout=subprocess.DEVNULL) as process:
            try:
                process.wait(chance.uniform(0.3, 2))
                break  # it has ended before
            except subprocess.TimeoutExpired:
                process.kill()
                kills += 1
    ran = subprocess.run(command_line(pair, large, "killed"), capture_output=True, check=False, timeout=PATIENCE)
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert kills > 2
    assert_all_arrived(pair.target.port, "killed")


def test_runs_at_once_lose_and_double_nothing(pair: Pair, large: Path) -> None:
    runs = [
        subprocess.Popen(command_line(pair, large, "together"), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        for _ in range(3)
    ]
    ends = [(each.communicate(timeout=PATIENCE * 2)[1], each.returncode) for each in runs]
    assert ends == [(b"", 0)] * 3
    assert_all_arrived(pair.target.port, "together")
