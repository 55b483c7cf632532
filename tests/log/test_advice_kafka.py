"""The advice of `findings.md` on a real broker's disks: it starts on them, and `verify` is clean then.

Needs Java and Maven.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kseg.log.partition import CHECKPOINT_OF_FIELD
from tests import run
from tests.failing_disk import FailingDisk
from tests.log.advice import CASES, CLEAN, KILLED, SPARSE, Case, Place, nothing
from tests.log.real_broker import PATIENCE, Broker, make_topics, new_broker

if TYPE_CHECKING:
    from confluent_kafka import Producer

pytestmark = pytest.mark.kafka

ROLLED_MS = 600_000
PHASES = 3
SETTINGS = {"log.index.size.max.bytes": 8000, "log.cleaner.enable": "true", "transaction.max.timeout.ms": 900_000}
TOPIC = {"segment.ms": str(ROLLED_MS), "index.interval.bytes": "1"}
COUNTS = ("error", "warning")


def write(port: int, cases: Sequence[Case], phase: int, now: int) -> None:
    """Write a committed and an aborted transaction to each topic, in several batches; each phase rolls a segment."""
    producer = transactional_producer(port)
    producer.init_transactions(PATIENCE)
    if phase == 0:
        write_large(producer, [case.topic for case in cases if case.finding_id == SPARSE], now)
    for is_committed in (True, False):
        producer.begin_transaction()
        for number in range(3):
            for case in cases:
                for record in range(4):
                    key = b"k%d" % record if case.is_keyed else None
                    value, timestamp = b"%d %d" % (number, record), now + phase * 2 * ROLLED_MS + number
                    producer.produce(case.topic, value, key, timestamp=timestamp)
            producer.flush(PATIENCE)
        (producer.commit_transaction if is_committed else producer.abort_transaction)(PATIENCE)
    wait_for_markers(port)


def wait_for_markers(port: int) -> None:
    """Wait until the last transaction's markers are written, which its end doesn't wait for.

    Only then does its coordinator let the next producer of the same transactional id begin.
    """
    transactional_producer(port).init_transactions(PATIENCE)


def transactional_producer(port: int) -> "Producer":
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": f"127.0.0.1:{port}", "transactional.id": "t", "linger.ms": 5})


def write_large(producer: "Producer", topics: Sequence[str], now: int) -> None:
    """Write some MiB in many batches."""
    producer.begin_transaction()
    for topic in topics:
        for _ in range(60):
            producer.produce(topic, bytes(100_000), timestamp=now)
            producer.flush(PATIENCE)
    producer.commit_transaction(PATIENCE)


def run_verify(directory: Path) -> dict[str, dict[str, str]]:
    """Return `verify`'s findings: ids and severities, by the name of the partition or file below the log directory."""
    ran = run.kseg(["verify", "-o", "json", str(directory)], directory)
    things: dict[str, dict[str, str]] = {}
    for line in ran.stdout.splitlines():
        thing = json.loads(line)
        if thing["type"] == "finding":
            name = Path(thing["file"]).relative_to(directory).parts[0]
            if name.endswith("-checkpoint"):
                name = thing["sentence"].partition(":")[0]
            name = name.removesuffix(f".{'0' * 32}-delete")
            things.setdefault(name, {})[thing["id"]] = f"{thing['severity']}: {thing['file']}: {thing['sentence']}"
    return things


def found_alone(places: Iterable[Place]) -> dict[str, dict[str, str]]:
    """Return `verify`'s findings in copies of partitions alone, by their names."""
    things: dict[str, dict[str, str]] = {}
    for place in places:
        alone = place.scratch / "alone"
        shutil.copytree(place.partition, alone / place.partition.name)
        things |= run_verify(alone)
    return things


def counting(things: dict[str, str]) -> dict[str, str]:
    return {name: text for name, text in things.items() if text.startswith(COUNTS)}


@pytest.mark.parametrize("state", [CLEAN, KILLED])
def test_advice_makes_all_well(
    state: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, failing_disk: FailingDisk
) -> None:
    cases = [case for case in CASES if state in case.states]
    broker = new_broker(tmp_path_factory, SETTINGS)
    now = time.time_ns() // 1_000_000
    for phase in range(PHASES):
        is_last = phase == PHASES - 1
        with broker.running(f"run-{phase}", is_killed=is_last and state == KILLED):
            if phase == 0:
                make_topics(broker.port, [case.topic for case in cases], {case.topic: TOPIC for case in cases})
            write(broker.port, cases, phase, now)
    assert {name: counting(things) for name, things in run_verify(broker.logs).items() if counting(things)} == {}
    if state == KILLED:
        assert not (broker.logs / ".kafka_cleanshutdown").exists()
    shutil.copytree(broker.logs, tmp_path / "intact")
    places = {case: place_of(case, broker.logs, tmp_path, failing_disk) for case in cases}
    for case, place in places.items():
        case.damage(place)
    tripped = run_verify(broker.logs) | found_alone(place for case, place in places.items() if case.is_alone)
    told = {case: set(tripped.get(f"{case.topic}-0", {})) for case in cases}
    assert {case.topic: ids for case, ids in told.items() if case.finding_id not in ids} == {}
    for case, place in places.items():
        case.advice(place)
    failing_disk.mend()
    topics = [case.topic for case in cases]
    with broker.running("after"):
        assert set(topics) == whole_topics(broker.port, topics)
        for case in cases:
            if case.way == "abort":
                abort(broker, case.topic)
    left = run_verify(broker.logs)
    rows = [(case.topic, counting(left.get(f"{case.topic}-0", {}))) for case in cases]
    wrong = {topic: things for (topic, things), case in zip(rows, cases, strict=True) if things.keys() - case.remains}
    assert wrong == {}
    others = {name for name in left if counting(left[name])} - {f"{topic}-0" for topic in topics}
    assert others == set()


def test_advice_for_a_nodes_files_makes_it_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    topics = ["first", "second"]
    cases = [Case(topic, "x", nothing, nothing) for topic in topics]
    broker = new_broker(tmp_path_factory, SETTINGS)
    with broker.running("first"):
        make_topics(broker.port, [case.topic for case in cases], {})
        write(broker.port, cases, 0, time.time_ns() // 1_000_000)
    logs = broker.logs
    properties = (logs / "meta.properties").read_bytes()

    def fails_then_starts(finding_id: str, mend: Callable[[], object]) -> None:
        assert finding_id in errors_of(logs)
        page = run.kseg(["doctor", logs.name], logs.parent).stdout.decode()
        assert page.startswith("A broker doesn't start: "), page
        mend()
        assert errors_of(logs) == set()
        with broker.running(finding_id):
            assert whole_topics(broker.port, [case.topic for case in cases]) == {case.topic for case in cases}

    (logs / "photos").mkdir()
    fails_then_starts("foreign-directory", (logs / "photos").rmdir)
    (logs / "meta.properties").unlink()
    fails_then_starts("identity-missing", lambda: (logs / "meta.properties").write_bytes(properties))
    (logs / "bootstrap.checkpoint").write_bytes(b"")
    fails_then_starts("bootstrap-checkpoint", (logs / "bootstrap.checkpoint").unlink)
    newest = sorted((logs / "__cluster_metadata-0").glob("*.checkpoint"))[-1]
    newest.write_bytes(newest.read_bytes()[:-40])
    fails_then_starts("metadata-checkpoint", newest.unlink)


GARBAGE = b"\0" * 40


@pytest.mark.parametrize("state", [CLEAN, KILLED])
def test_advice_for_log_directories_makes_all_well(state: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    second = tmp_path_factory.mktemp("second") / "logs"
    cases = [Case(f"topic-{number}", "x", nothing, nothing) for number in range(6)]
    broker = new_broker(tmp_path_factory, SETTINGS, log_dirs=[second])
    with broker.running("first", is_killed=state == KILLED):
        make_topics(broker.port, [case.topic for case in cases], {case.topic: TOPIC for case in cases})
        write(broker.port, cases, 0, time.time_ns() // 1_000_000)
    assert errors_of(broker.logs, second) == set()

    checkpoints = [second / name for name in CHECKPOINT_OF_FIELD.values()]
    for path in checkpoints:
        path.write_bytes(GARBAGE)
    twice = next(path for path in sorted(broker.logs.glob("topic-*")) if path.is_dir())
    shutil.copytree(twice, second / twice.name)
    assert errors_of(broker.logs, second) == {"unreadable-text", "partition-twice"}
    for path in checkpoints:
        path.unlink()
    saved = tmp_path_factory.mktemp("saved") / "new"
    assert run.kseg(["salvage", str(twice), str(second / twice.name), "--to", str(saved)], second).status == 0
    shutil.rmtree(second / twice.name)
    shutil.rmtree(twice)
    shutil.copytree(saved / twice.name, twice)
    with broker.running("checkpoints", is_killed=state == KILLED):
        assert whole_topics(broker.port, [case.topic for case in cases]) == {case.topic for case in cases}
    assert errors_of(broker.logs, second) == set()

    (second / "meta.properties").write_bytes(GARBAGE)
    assert errors_of(broker.logs, second) == {"unreadable-text"}
    (second / "meta.properties").unlink()
    write_properties(second, broker.logs)
    with broker.running("properties"):
        assert whole_topics(broker.port, [case.topic for case in cases]) == {case.topic for case in cases}
    assert errors_of(broker.logs, second) == set()


def write_properties(log_dir: Path, other: Path) -> None:
    """Write the file of another log directory with the directory's own id from the metadata, as the advice says."""
    properties = dict(
        line.split("=", 1) for line in (other / "meta.properties").read_text().splitlines() if "=" in line
    )
    lines = run.kseg(["metadata", "-o", "json", str(other)], other).stdout.splitlines()
    (ids,) = [thing["logDirs"] for thing in map(json.loads, lines) if thing["type"] == "broker"]
    (own,) = set(ids) - {properties["directory.id"]}
    properties["directory.id"] = own
    (log_dir / "meta.properties").write_text("".join(f"{key}={value}\n" for key, value in properties.items()))


def errors_of(*log_dirs: Path) -> set[str]:
    """Return ids of the errors."""
    ran = run.kseg(["verify", "-o", "json", *map(str, log_dirs)], log_dirs[0])
    things = [json.loads(line) for line in ran.stdout.splitlines()]
    return {thing["id"] for thing in things if thing["type"] == "finding" and thing["severity"] in COUNTS}


def place_of(case: Case, logs: Path, directory: Path, disk: FailingDisk) -> Place:
    scratch = directory / "scratch" / case.topic
    scratch.mkdir(parents=True)
    name = f"{case.topic}-0"
    return Place(logs / name, directory / "intact" / name, scratch, disk)


def whole_topics(port: int, topics: Sequence[str]) -> set[str]:
    """Return the topics that a consumer reads to their ends."""
    from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

    consumer = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "test",
            "enable.auto.commit": False,
            "isolation.level": "read_uncommitted",
            "enable.partition.eof": True,
            "check.crcs": True,
        }
    )
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING) for topic in topics])
    ended: set[str] = set()
    stuck: set[str] = set()
    while len(ended | stuck) < len(topics) and (message := consumer.poll(PATIENCE / 4)) is not None:
        error = message.error()
        if error is not None and message.topic() is not None:
            (ended if error.code() == KafkaError._PARTITION_EOF else stuck).add(message.topic())
            consumer.incremental_unassign([TopicPartition(message.topic(), message.partition())])
    consumer.close()
    return ended


def abort(broker: Broker, topic: str) -> None:
    """End a hanging transaction as `kseg verify --explain hanging-transaction` says."""
    tool = ("org.apache.kafka.tools.TransactionsCommand", "--bootstrap-server", f"127.0.0.1:{broker.port}")
    place = ("--topic", topic, "--partition", "0")
    described = subprocess.run(
        broker.kafka.command(*tool, "describe-producers", *place), check=True, capture_output=True, text=True
    ).stdout.splitlines()
    starts = [line.split()[-1] for line in described[1:]]
    (start,) = [each for each in starts if each.isdigit()]
    subprocess.run(broker.kafka.command(*tool, "abort", *place, "--start-offset", start), check=True)
