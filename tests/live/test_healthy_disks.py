"""No false alarm: disks of brokers at work, killed and stopped, upgraded, tiered, and with moves in flight.

Needs Java and Maven.
"""

import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import run
from tests.live.test_doctor_live import OF_MACHINE, load, make_topics, place_of
from tests.log.real_broker import PATIENCE, Broker, new_broker
from tests.log.real_broker import make_topics as make_some
from tests.releases import NEWEST_TWO
from tests.tiered.tiered_broker import TOPIC, tiered_broker, wait_until

if TYPE_CHECKING:
    from kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

RELEASES = ("3.9.1", *NEWEST_TWO)
"""The releases by which one node's disks are upgraded, one after the other."""
SETTINGS = {"log.cleaner.backoff.ms": 500, "log.segment.delete.delay.ms": 200, "transaction.max.timeout.ms": 900_000}
THROTTLE = "20000"
"""Bytes a second: a move between directories takes far longer than the test."""


def alarms(*disks: Path) -> list[dict[str, Any]]:
    """Return the doctor's errors and warnings, and its summary unless it says that all is well."""
    ran = run.kseg(["doctor", *map(str, disks), "-o", "json"], disks[0])
    said = [json.loads(line) for line in ran.stdout.splitlines()]
    found = [each for each in said if each.get("severity") in ("error", "warning") and each["id"] not in OF_MACHINE]
    summary = said[-1]
    is_well = (
        summary["startSentence"] == "A broker would start without problems." or summary["errors"]
    )  # the machine's disk may be full
    return found if is_well else [*found, summary]


def copies(disks: tuple[Path, ...], place: Path) -> list[Path]:
    """Return copies of a stopped node's disks."""
    return [shutil.copytree(disk, place / f"{number}-{disk.name}") for number, disk in enumerate(disks)]


def begin_move(broker: Broker, tools: "KafkaClasses", disks: tuple[Path, ...]) -> None:
    """Begin to move a partition slowly to the other disk; tools: of a release that has them next to the broker."""
    here = place_of(disks, "load-0").parent
    (there,) = [disk for disk in disks if disk != here]
    plan = broker.work / "plan.json"
    move = {"topic": "load", "partition": 0, "replicas": [1], "log_dirs": [str(there)]}
    plan.write_text(json.dumps({"version": 1, "partitions": [move]}))
    tool = ("org.apache.kafka.tools.reassign.ReassignPartitionsCommand", "--reassignment-json-file", str(plan))
    server = ("--bootstrap-server", f"127.0.0.1:{broker.port}", "--execute")
    command = tools.command(*tool, *server, "--replica-alter-log-dirs-throttle", THROTTLE)
    ran = subprocess.run(command, capture_output=True, check=False, timeout=3 * PATIENCE, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    wait_until(lambda: any(there.glob("load-0.*-future")), "no move began")


def wrong(broker: Broker, tools: "KafkaClasses", disks: tuple[Path, ...], release: str, place: Path) -> Iterator[str]:
    """Yield the doctor's findings for the disks of a release in several states."""
    with broker.running(f"{release}-killed", is_killed=True):
        if release == RELEASES[0]:
            make_topics(broker)
        with load(broker):
            yield from (f"{release} busy: {each}" for each in alarms(*disks))
        begin_move(broker, tools, disks)
        yield from (f"{release} moving: {each}" for each in alarms(*disks))
    yield from (f"{release} killed: {each}" for each in alarms(*copies(disks, place / f"{release}-killed")))
    with broker.running(f"{release}-stopped"), load(broker):
        pass
    yield from (f"{release} stopped: {each}" for each in alarms(*copies(disks, place / f"{release}-stopped")))


def test_disks_are_well_through_upgrades(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    second = tmp_path_factory.mktemp("disks") / "disk2"
    broker = new_broker(tmp_path_factory, SETTINGS, RELEASES[0], log_dirs=[second])
    disks = (broker.logs, second)
    found = []
    classes = [broker.tools.kafka_classes(release, tmp_path_factory.mktemp(release)) for release in RELEASES]
    for release, kafka in zip(RELEASES, classes, strict=True):
        found += wrong(broker._replace(kafka=kafka), classes[1], disks, release, tmp_path)
    assert found == []


def test_disks_of_a_tiered_broker_are_well(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    from confluent_kafka import Producer

    tier = tmp_path / "tier"
    broker = tiered_broker(tmp_path_factory, tier)
    with broker.running("tiered"):
        make_some(broker.port, ["tiered"], {"tiered": TOPIC})
        producer = Producer({"bootstrap.servers": f"127.0.0.1:{broker.port}"})
        for number in range(4000):
            producer.produce("tiered", bytes(1000), timestamp=time.time_ns() // 1_000_000 - 10_000 + number)
        producer.flush(PATIENCE)
        first = broker.logs / "tiered-0" / f"{0:020}.log"
        wait_until(lambda: not first.exists(), "the first segment is still on the disk")
        assert alarms(broker.logs) == []
    assert alarms(broker.logs) == []
    assert alarms(broker.logs, tier) == []
