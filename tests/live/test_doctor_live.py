"""The doctor next to a running broker; its findings on pinning timestamps match the broker's retention.

Needs Java and Maven.
"""

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import run
from tests.log.real_broker import PATIENCE, Broker, new_broker

pytestmark = pytest.mark.kafka

RUNS = 3
HOUR_MS = 3_600_000
EAGER = {"log.retention.check.interval.ms": 500, "log.initial.task.delay.ms": 300}
IDLE = {"log.retention.check.interval.ms": 24 * HOUR_MS, "log.initial.task.delay.ms": 24 * HOUR_MS}
OF_MACHINE = {"disk-full", "disk-nearly-full"}
CLOCKS = ("micro", "future", "seconds", "right")
"""Topics with wrong timestamps, except for the last one."""


class Seen(NamedTuple):
    """The doctor's results for the working broker's disks and the stopped one's; and the remaining files.

    segments, kept: names of the logs of each topic in CLOCKS, before and after the broker's retention. left: findings
    on the files put into a log directory then. is_stray_kept: whether the broker kept the stray partition among them.
    refusal: the broker's error at its next start.
    """

    beside: list[list[dict[str, Any]]]
    stopped: list[dict[str, Any]]
    segments: dict[str, list[str]]
    kept: dict[str, list[str]]
    left: dict[str, dict[str, Any]]
    is_stray_kept: bool
    refusal: str


def doctor(disks: tuple[Path, ...], *options: str) -> list[dict[str, Any]]:
    ran = run.kseg(["doctor", *map(str, disks), "-o", "json", *options], disks[0])
    assert ran.status in (0, 1), ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    second = tmp_path_factory.mktemp("disks") / "disk2"
    quick = {"log.cleaner.backoff.ms": 500, "log.segment.delete.delay.ms": 200, "transaction.max.timeout.ms": 900_000}
    broker = new_broker(tmp_path_factory, {**quick, **EAGER}, log_dirs=[second])
    disks = (broker.logs, second)
    with broker.running("load"):
        make_topics(broker)
        with load(broker):
            beside = [doctor(disks) for _ in range(RUNS)]
            quick_look = doctor(disks, "--quick")
        write_clocks(broker)
    configure(broker, IDLE)
    with broker.running("idle"):
        retain_for_an_hour(broker)
    stopped, segments = doctor(disks), logs_of(disks)
    configure(broker, EAGER)
    with broker.running("retention"):
        end = time.monotonic() + PATIENCE
        while len(logs_of(disks)["right"]) == len(segments["right"]):
            assert time.monotonic() < end, "retention deleted nothing"
            time.sleep(0.2)
        time.sleep(3)  # the same pass comes to other topics
        kept = logs_of(disks)
    stray = shutil.copytree(place_of(disks, "right-0"), second / f"gone-0.{'0' * 32}-stray")
    with broker.running("stray"):
        time.sleep(3)  # far longer than deletion takes
        is_stray_kept = bool(list(stray.glob("*.log")))
    (second / "backup").mkdir()
    left = {each["id"]: each for each in doctor(disks) if each["type"] == "finding"}
    with pytest.raises(SystemExit), broker.running("foreign"):
        pass
    refusal = (broker.work / "foreign.txt").read_text()
    return Seen([*beside, quick_look], stopped, segments, kept, left, is_stray_kept, refusal)


def place_of(disks: tuple[Path, ...], name: str) -> Path:
    """Return the directory of a partition on one of the disks."""
    return next(disk / name for disk in disks if (disk / name).is_dir())


def configure(broker: Broker, settings: dict[str, int]) -> None:
    """Append settings to the file, where later lines win."""
    with (broker.work / "server.properties").open("a") as file:
        file.writelines(f"{name}={value}\n" for name, value in settings.items())


def make_topics(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    any_time = {"message.timestamp.after.max.ms": str(2**63 - 1), "retention.ms": "-1", "segment.ms": "60000"}
    topics = [
        NewTopic("load", 4, 1, config={"segment.bytes": str(1 << 20), "retention.bytes": str(2 << 20)}),
        NewTopic("paid", 3, 1),
        NewTopic("compacted", 2, 1, config={"cleanup.policy": "compact", "segment.ms": "500"}),
        *(NewTopic(name, 1, 1, config=any_time) for name in CLOCKS),
    ]
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    for future in admin.create_topics(topics).values():
        future.result(PATIENCE)


@contextmanager
def load(broker: Broker) -> Iterator[None]:
    """Run producers of all kinds; the context begins when each topic has records."""
    has_ended, has_begun = threading.Event(), threading.Barrier(4)
    writers = (write_plain, write_compacted, write_transactions)
    threads = [threading.Thread(target=each, args=(broker, has_begun, has_ended)) for each in writers]
    for thread in threads:
        thread.start()
    has_begun.wait(PATIENCE)
    try:
        yield
    finally:
        has_ended.set()
        for thread in threads:
            thread.join(PATIENCE)


def write_plain(broker: Broker, has_begun: threading.Barrier, has_ended: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "compression.type": "lz4"})
    count = 0
    while not has_ended.is_set():
        for number in range(500):
            producer.produce("load", b"%d" % number * 200, partition=number % 4)
        producer.flush(PATIENCE)
        if not count:
            has_begun.wait(PATIENCE)
        count += 1


def write_compacted(broker: Broker, has_begun: threading.Barrier, has_ended: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "enable.idempotence": True})
    count = 0
    while not has_ended.wait(0.1):
        for number in range(100):
            producer.produce("compacted", b"value", b"%d" % (number % 9), partition=number % 2)
        producer.flush(PATIENCE)
        if not count:
            has_begun.wait(PATIENCE)
        count += 1


def write_transactions(broker: Broker, has_begun: threading.Barrier, has_ended: threading.Event) -> None:
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}", "transactional.id": "t"})
    producer.init_transactions(PATIENCE)
    count = 0
    while not has_ended.is_set():
        producer.begin_transaction()
        for partition in range(3):
            producer.produce("paid", b"value", b"key", partition)
        producer.flush(PATIENCE)
        (producer.abort_transaction if count % 3 == 2 else producer.commit_transaction)(PATIENCE)
        if not count:
            has_begun.wait(PATIENCE)
        count += 1


def write_clocks(broker: Broker) -> None:
    """Write about three segments to each topic, which all expire within an hour but for their timestamps."""
    from confluent_kafka import Producer

    now = int(time.time() * 1000)
    old = now - 3 * HOUR_MS
    times = {
        "micro": [old, now * 1000, old + 1],
        "future": [old, now + 24 * HOUR_MS, old + 1],
        "seconds": [now // 1000, now // 1000, now],
        "right": [old, old + HOUR_MS, now],
    }
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    for topic, timestamps in times.items():
        for timestamp in timestamps:
            producer.produce(topic, b"value", b"key", 0, timestamp=timestamp)
            producer.flush(PATIENCE)


def retain_for_an_hour(broker: Broker) -> None:
    from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource

    entry = ConfigEntry("retention.ms", str(HOUR_MS), incremental_operation=AlterConfigOpType.SET)
    wanted = [ConfigResource(ConfigResource.Type.TOPIC, name, incremental_configs=[entry]) for name in CLOCKS]
    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
    for future in admin.incremental_alter_configs(wanted).values():
        future.result(PATIENCE)


def logs_of(disks: tuple[Path, ...]) -> dict[str, list[str]]:
    return {name: sorted(path.name for disk in disks for path in disk.glob(f"{name}-0/*.log")) for name in CLOCKS}


# --- findings
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(RUNS + 1))
def test_no_alarm_beside_a_working_broker(number: int, seen: Seen) -> None:
    """Three complete examinations, one quick: logs grow, roll, are cleaned and deleted meanwhile."""
    found = seen.beside[number]
    alarms = [each for each in found if each.get("severity") in ("error", "warning") and each["id"] not in OF_MACHINE]
    assert alarms == []
    (summary,) = [each for each in found if each["type"] == "summary"]
    assert summary["result"] != "incomplete"
    assert summary["partitions"] >= 4 + 3 + 2 + len(CLOCKS)


def of_clocks(seen: Seen) -> dict[tuple[str, str], dict[str, Any]]:
    return {(each["topic"], each["id"]): each for each in seen.stopped if str(each.get("id")).endswith("-times")}


def test_wrong_times_are_found_where_they_are(seen: Seen) -> None:
    wanted = {("micro", "microsecond-times"), ("future", "future-times"), ("seconds", "second-times")}
    assert set(of_clocks(seen)) == wanted


@pytest.mark.parametrize(("topic", "finding_id"), [("micro", "microsecond-times"), ("future", "future-times")])
def test_the_broker_keeps_what_was_called_pinned(topic: str, finding_id: str, seen: Seen) -> None:
    found = of_clocks(seen)[topic, finding_id]
    pinned = [name for name in seen.segments[topic] if name >= Path(found["file"]).name]
    assert len(seen.segments[topic]) > len(pinned) > 0
    assert seen.kept[topic] == pinned
    count = f"keeps {len(pinned)} of {len(seen.segments[topic])} segments from {pinned[0][:-4]} on until "
    assert count in found["sentence"]
    assert "by the topic's retention of 1h00m" in found["sentence"]


def test_the_broker_deletes_segments_of_seconds_at_once(seen: Seen) -> None:
    found = of_clocks(seen)["seconds", "second-times"]
    (first, *others) = seen.segments["seconds"]
    assert f"deletes 1 of {1 + len(others)} segments from {first[:-4]} on at once" in found["sentence"]
    assert seen.kept["seconds"] == others
    assert others


def test_what_is_due_is_what_the_broker_deletes(seen: Seen) -> None:
    due = {each["topic"]: each["bytesToDelete"] for each in seen.stopped if each["type"] == "topic"}
    assert all((due[name] > 0) == (len(seen.kept[name]) < len(seen.segments[name])) for name in CLOCKS)


# --- directories ------------------------------------------------------------------------------------------------------


def test_the_broker_keeps_a_stray_partition(seen: Seen) -> None:
    found = seen.left["leftover-directory"]
    assert (found["severity"], found["file"].endswith("-stray")) == ("note", True)
    assert seen.is_stray_kept


def test_the_broker_refuses_a_directory_that_is_no_partitions(seen: Seen) -> None:
    found = seen.left["foreign-directory"]
    assert (found["severity"], Path(found["file"]).name) == ("error", "backup")
    assert f"Found directory {found['file']}, 'backup' is not in the form of topic-partition" in seen.refusal
