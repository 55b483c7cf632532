"""Kafka's own consumers and tools with groups of a server: console consumers, kafka-consumer-groups. Needs Java."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kseg.coordinators.groups import read_groups
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.serve.running import PATIENCE, Running, serving

pytestmark = pytest.mark.kafka

TOOLS = "org.apache.kafka.tools"
RELEASE = "4.3.1"
OFFSETS = golden.ROOT / "logs" / RELEASE / "__consumer_offsets-1"
PARTITIONS, RECORDS = 4, 200
TOPIC_ID = "kyhdsJGrQrOXD0nG3u2j8A"
PROTOCOLS = ("classic", "consumer")


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Any:
    sys.path.insert(0, str(golden.ROOT.parent / "tools"))
    import make_golden as tools

    return tools.kafka_classes(RELEASE, tmp_path_factory.mktemp("classes"))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    for number in range(PARTITIONS):
        values = [NewRecord(b"k", f"{number} {offset}".encode(), 1_700_000_000_000) for offset in range(RECORDS)]
        batches = [NewBatch(values[base : base + 5], base_offset=base) for base in range(0, RECORDS, 5)]
        write_segment(tmp_path / f"plain-{number}", batches)
        (tmp_path / f"plain-{number}" / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    with serving(tmp_path, OFFSETS) as server:
        yield server


def run(kafka: Any, running: Running, tool: str, *arguments: str) -> list[str]:
    command = kafka.command(f"{TOOLS}.{tool}", "--bootstrap-server", running.bootstrap, *arguments)
    ran = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE)
    assert ran.returncode == 0, ran.stderr.decode()[-2000:]
    return ran.stdout.decode().splitlines()


def consume(kafka: Any, running: Running, group: str, protocol: str, count: int) -> list[str]:
    settings = ("--command-property", f"group.protocol={protocol}", "--max-messages", str(count))
    return run(
        kafka,
        running,
        "consumer.ConsoleConsumer",
        *("--topic", "plain", "--group", group, "--from-beginning", *settings),
    )


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_console_consumer_goes_on_where_its_group_stopped(kafka: Any, running: Running, protocol: str) -> None:
    first = consume(kafka, running, "new", protocol, 300)
    second = consume(kafka, running, "new", protocol, PARTITIONS * RECORDS - 300)
    everything = [f"{number} {offset}" for number in range(PARTITIONS) for offset in range(RECORDS)]
    assert sorted(first + second) == sorted(everything)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_console_consumer_goes_on_from_the_disk(kafka: Any, running: Running, protocol: str) -> None:
    (group,) = (each for each in read_groups(OFFSETS).groups if each.group == "g-new-live")
    starts = {each.partition: each.offset for each in group.commits if each.topic == "plain"}
    left = [f"{number} {offset}" for number in range(PARTITIONS) for offset in range(starts.get(number, 0), RECORDS)]
    assert len(starts) == 3
    assert sorted(consume(kafka, running, "g-new-live", protocol, len(left))) == sorted(left)


def test_groups_are_described_as_kseg_groups_has_them(kafka: Any, running: Running) -> None:
    groups = "consumer.group.ConsumerGroupCommand"
    assert "g-new-live" in run(kafka, running, groups, "--list")
    lines = [line.split() for line in run(kafka, running, groups, "--describe", "--group", "g-new-live")]
    shown = {(row[1], int(row[2])): int(row[3]) for row in lines if row[:1] == ["g-new-live"]}
    (group,) = (each for each in read_groups(OFFSETS).groups if each.group == "g-new-live")
    assert shown == {(each.topic, each.partition): each.offset for each in group.commits if each.topic == "plain"}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_members_are_described(kafka: Any, running: Running, protocol: str) -> None:
    from confluent_kafka import Consumer

    settings = {"bootstrap.servers": running.bootstrap, "group.id": "new", "group.protocol": protocol}
    consumer = Consumer({**settings, "client.id": "member", "auto.offset.reset": "earliest"})
    try:
        consumer.subscribe(["plain"])
        assert consumer.poll(PATIENCE) is not None
        groups = "consumer.group.ConsumerGroupCommand"
        members = run(kafka, running, groups, "--describe", "--group", "new", "--members", "--verbose")
        (row,) = (line.split() for line in members if line.startswith("new "))
        assert row[2:5] == ["/127.0.0.1", "member", str(PARTITIONS)]
        assert "plain:0,1,2,3" in row
        (state,) = (
            line.split()
            for line in run(kafka, running, groups, "--describe", "--group", "new", "--state")
            if line.startswith("new ")
        )
        assert state[-2:] == ["Stable", "1"]
    finally:
        consumer.close()
