"""Healthy files of real brokers are well for `verify` too. Needs Java and Maven."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import golden, run
from tests.log import edits
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker

pytestmark = pytest.mark.kafka

TOPICS = ("plain", "transactional", "aborted", "wholly")
SETTINGS = {"log.index.size.max.bytes": 8000}
TOPIC = {"segment.ms": "600000", "index.interval.bytes": "1"}
ROLLED_MS = 1_200_000
FORMAT = "message.format.version"


def write(port: int, phase: int, now: int) -> None:
    """Write a committed and an aborted transaction, and empty ones, each phase in its own segment."""
    from confluent_kafka import Producer

    timestamp = now + phase * ROLLED_MS
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "t"})
    producer.init_transactions(PATIENCE)
    for is_committed in (True, False):
        producer.begin_transaction()
        for _ in range(3):
            for topic in TOPICS[1:]:
                producer.produce(topic, b"v", timestamp=timestamp)
            producer.flush(PATIENCE)
        (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE)
    write_plain(port, "plain", timestamp)


def write_plain(port: int, topic: str, timestamp: int) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}"})
    for _ in range(4):
        producer.produce(topic, b"v", timestamp=timestamp)
        assert producer.flush(PATIENCE) == 0


def delete_records(port: int, offsets: dict[str, int]) -> None:
    """Move the log start offsets of partitions."""
    from confluent_kafka import TopicPartition
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    wanted = [TopicPartition(topic, 0, offset) for topic, offset in offsets.items()]
    for future in admin.delete_records(wanted).values():
        future.result(PATIENCE)


def set_format(broker: Broker, topic: str, release: str) -> None:
    """Change a topic's message format, as soon as the broker knows the topic."""
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    broker.tools.wait_until(lambda: topic in admin.list_topics(timeout=PATIENCE).topics, PATIENCE, f"no {topic}")
    entry = ConfigEntry(FORMAT, release, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for future in admin.incremental_alter_configs([resource]).values():
        future.result(PATIENCE)


def assert_well(broker: Broker) -> None:
    """Check the complete log directory, and each partition given alone."""
    for path in (broker.logs, *(each for each in sorted(broker.logs.iterdir()) if each.is_dir())):
        ran = run.kseg(["verify", str(path)], broker.logs)
        assert (ran.status, ran.stdout) == (0, b"ok\n"), ran.stdout.decode()


@pytest.mark.parametrize("is_killed", [False, True])
def test_partitions_with_deleted_records_are_well(is_killed: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    broker = new_broker(tmp_path_factory, SETTINGS)
    now = time.time_ns() // 1_000_000
    for phase in range(3):
        with broker.running(f"run-{phase}"):
            if phase == 0:
                make_topics(broker.port, TOPICS, dict.fromkeys(TOPICS, TOPIC))
            write(broker.port, phase, now)
    assert_well(broker)
    with broker.running("deletion", is_killed=is_killed):
        delete_records(broker.port, {"plain": 7, "transactional": 10, "aborted": 13, "wholly": -1})
    assert_well(broker)
    with broker.running("more", is_killed=is_killed):
        write_plain(broker.port, "plain", now + 2 * ROLLED_MS)
    assert_well(broker)
    with broker.running("last"):
        delete_records(broker.port, {"plain": 11, "transactional": 21})
    assert_well(broker)


def test_topic_whose_message_format_is_lowered_and_raised_again_is_well(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    broker = new_broker(tmp_path_factory, release="2.8.2")
    now = time.time_ns() // 1_000_000
    formats = ["2.8", "0.10.0", "2.8", "0.9.0", "2.8"]
    for number, release in enumerate(formats):
        with broker.running(f"run-{number}"):
            if number == 0:
                make_topics(broker.port, ["changing"], {"changing": {FORMAT: release}})
            else:
                set_format(broker, "changing", release)
            write_plain(broker.port, "changing", now)
        assert_well(broker)
    noted = run.kseg(["verify", "-v", str(broker.logs / "changing-0")], Path(broker.logs))
    assert b"note leader-epochs-cleared" in noted.stdout


TRANSACTIONAL = ("2.3.1/txn-1", "4.3.1/compacted-txn-0")
OPENED = [f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in ("java.nio", "sun.nio.ch", "jdk.internal.ref")]


def test_what_the_log_of_0_11_rebuilds_is_well(tmp_path: Path) -> None:
    """It counts markers in its snapshots, and indexes aborted transactions without records."""
    places = []
    for name in TRANSACTIONAL:
        source = edits.copy_partition(tmp_path / "source", name)
        places.append(tmp_path / "recovered" / source.name.replace("compacted", "kept"))
        places[-1].mkdir(parents=True)
        for log in edits.logs(source):
            shutil.copy(log, places[-1])
    recover(tmp_path, places)
    assert all(list(place.glob("*.snapshot")) for place in places)
    assert_all_well(places)


def test_what_the_cleaner_of_0_11_leaves_is_well(tmp_path: Path) -> None:
    """Timestamps of batches that it emptied don't reach its time index."""
    now = time.time_ns() // 1_000_000
    lines: list[dict[str, object]] = []
    for number, end in enumerate(("commit", "abort")):
        timestamp = now + number * ROLLED_MS
        lines += [{"key": f"k{key}", "value": "v", "timestamp": timestamp} for key in range(4)]
        lines.append({"type": end})
    (tmp_path / "source").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ["--producer-id", "7", "--transaction", "open", "--batch-records", "2", "-q"]
    ran = run.kseg(["build", "source", "--to", "compacted-0", *options], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    place = tmp_path / "compacted-0"
    recover(tmp_path, [place])
    log = edits.logs(place)[0]
    assert 0 in [int.from_bytes(raw[57:61], "big") for raw in batches_of(log)]
    largest = log.with_suffix(".timeindex").read_bytes()[-12:-4]
    assert int.from_bytes(largest, "big") < now + ROLLED_MS
    assert_all_well([place])


def batches_of(log: Path) -> list[bytes]:
    return [log.read_bytes()[start : start + size] for start, size in edits.v2_batches(log)]


def recover(work: Path, places: list[Path]) -> None:
    """Let the log of 0.11 recover partitions, and clean those called `compacted`."""
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    from kafka_classes import KafkaClasses

    (work / "classes-of-0.11").mkdir()
    kafka = KafkaClasses(["org.apache.kafka:kafka_2.11:0.11.0.3"], ["RecoverLog"], work / "classes-of-0.11")
    (work / "log4j.properties").write_text("log4j.rootLogger=OFF\n")
    options = [*OPENED, f"-Dlog4j.configuration=file:{work / 'log4j.properties'}"]
    subprocess.run(kafka.command("RecoverLog", *map(str, places), options=options), check=True)


def assert_all_well(places: list[Path]) -> None:
    for place in places:
        ran = run.kseg(["verify", str(place)], place)
        assert (ran.status, ran.stdout) == (0, b"ok\n"), ran.stdout.decode()
