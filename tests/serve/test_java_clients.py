"""Kafka's own consumers of five releases read the same as the disk has: all golden directories."""

import json
import subprocess
from base64 import b64decode
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests import golden
from tests.releases import NEWEST_TWO
from tests.serve.reading import Got
from tests.serve.running import PATIENCE, log_directories, serving
from tests.serve.test_clients import BROKERS, FALLING, LOGS, STRAY, expected_records
from tests.transactional import TRANSACTIONAL, committed_offsets

if TYPE_CHECKING:
    from tools.kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

WITH_CONSUMER_PROTOCOL = ("3.9.2", *NEWEST_TWO)
RELEASES = ("2.3.1", "2.8.2", *WITH_CONSUMER_PROTOCOL)
LOGGER = "org.slf4j:slf4j-simple:1.7.36"
READ_ALL = Path(__file__).with_name("ReadAll.java")


@pytest.fixture(scope="module", params=RELEASES)
def java(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> "KafkaClasses":
    """The consumer of a release."""
    from tools.kafka_classes import KafkaClasses

    artifacts = [f"org.apache.kafka:kafka-clients:{request.param}", LOGGER]
    return KafkaClasses(artifacts, [], tmp_path_factory.mktemp("java"))


def read(
    java: "KafkaClasses", bootstrap: str, isolation: str = "read_uncommitted", *group_protocol: str
) -> dict[str, list[Got]]:
    """Return all records by `topic-partition`. The client must get through all partitions."""
    command = java.command(str(READ_ALL), bootstrap, isolation, *group_protocol)
    ran = subprocess.run(command, capture_output=True, timeout=PATIENCE, check=False)
    assert ran.returncode == 0, ran.stderr.decode()
    found: dict[str, list[Got]] = {}
    for line in map(json.loads, ran.stdout.splitlines()):
        assert "error" not in line, b64decode(line["error"])
        found.setdefault(line["partition"], []).append(_got(line))
    return found


def _got(line: dict[str, Any]) -> Got:
    headers = tuple((str(b64decode(key), "utf-8"), _bytes(value)) for key, value in line["headers"])
    return Got(line["offset"], line["timestamp"], _bytes(line["key"]), _bytes(line["value"]), headers)


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else b64decode(text)


def rising(records: Iterable[Got]) -> Iterator[Got]:
    """Yield the records whose offsets are above all before: consumers skip the others."""
    last = -1
    for record in records:
        if record.offset > last:
            last = record.offset
            yield record


def test_they_read_what_is_on_the_disk(java: "KafkaClasses") -> None:
    for broker in BROKERS:
        with serving(*log_directories(broker)) as running:
            got, wanted = read(java, running.bootstrap), expected_records(running)
        assert got == {name: records for name, records in wanted.items() if records}, broker.name


def test_they_read_what_is_intact_on_damaged_disks(java: "KafkaClasses") -> None:
    directories = [each for each in log_directories(golden.ROOT / "damaged") if each.name not in STRAY.keys() | FALLING]
    assert len(directories) > 200
    with serving(*directories) as running:
        got, wanted = read(java, running.bootstrap), expected_records(running)
    assert got == {name: list(rising(records)) for name, records in wanted.items() if records}


def assert_members_read_the_same(java: "KafkaClasses", protocol: str, directories: Iterable[Path]) -> None:
    with serving(*directories) as running:
        got = read(java, running.bootstrap, "read_uncommitted", protocol)
        wanted = expected_records(running)
        ends = {(each.topic, each.number): each.offsets().log_end for each in running.served.partitions}
        commits = running.served.groups.commits.new_of("readers")
    assert got == {name: [*rising(records)] for name, records in wanted.items() if records}
    assert {place: each.offset for place, each in commits.items() if place in ends} == ends


def test_members_of_groups_read_the_same(java: "KafkaClasses") -> None:
    for broker in (*BROKERS, golden.ROOT / "damaged"):
        directories = [each for each in log_directories(broker) if each.name not in STRAY.keys() | FALLING]
        assert_members_read_the_same(java, "classic", directories)


@pytest.mark.parametrize("java", WITH_CONSUMER_PROTOCOL, indirect=True)
def test_members_by_the_consumer_protocol_read_the_same(java: "KafkaClasses") -> None:
    for broker in BROKERS:
        directories = [each for each in log_directories(broker) if (each / "partition.metadata").exists()]
        if directories:  # since 2.8: this protocol knows topics by their ids alone
            assert_members_read_the_same(java, "consumer", directories)


def test_a_batch_whose_offset_is_too_large_leads_them_past_no_other(java: "KafkaClasses") -> None:
    with serving(*(golden.ROOT / "damaged" / name for name in STRAY)) as running:
        got, wanted = read(java, running.bootstrap), expected_records(running)
        said = running.said
    for name, lost in STRAY.items():
        assert set(got[f"{name}-0"]) < set(wanted[f"{name}-0"])
        assert len(wanted[f"{name}-0"]) - len(got[f"{name}-0"]) == lost
        assert [line for line in said if name in line and "offsets-fall" in line]


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_they_read_what_is_committed(name: str, java: "KafkaClasses") -> None:
    with serving(LOGS / name) as running:
        (served,) = running.served.partitions
        got = read(java, running.bootstrap, "read_committed").get(str(served), [])
        start = served.offsets().log_start
    assert [record.offset for record in got] == [offset for offset in committed_offsets(LOGS / name) if offset >= start]
