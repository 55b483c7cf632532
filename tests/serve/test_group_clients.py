"""Clients of several libraries as members of a group: each record comes once, and reading resumes at commits."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.log_files import NewBatch, NewRecord, write_segment
from tests.serve.group_members import (
    ByAiokafka,
    ByKafkaPython,
    ByLibrdkafka,
    ByLibrdkafkaConsumerProtocol,
    Member,
    Place,
    members,
    poll_until,
)
from tests.serve.running import Running, serving

pytestmark = pytest.mark.filterwarnings("ignore:.*_text is deprecated:DeprecationWarning")  # of kafka-python

PARTITIONS, RECORDS = 4, 200
CLIENTS = [ByLibrdkafka, ByLibrdkafkaConsumerProtocol, ByKafkaPython, ByAiokafka]
TOPIC_IDS = {"orders": "kyhdsJGrQrOXD0nG3u2j8A", "payments": "kyhdsJGrQrOXD0nG3u2k8A"}


def write_topic(root: Path, topic: str) -> None:
    for number in range(PARTITIONS):
        batches = [
            NewBatch([NewRecord(b"k", b"v", 1_700_000_000_000)] * 5, base_offset=base) for base in range(0, RECORDS, 5)
        ]
        write_segment(root / f"{topic}-{number}", batches)
        metadata = f"version: 0\ntopic_id: {TOPIC_IDS[topic]}\n"
        (root / f"{topic}-{number}" / "partition.metadata").write_text(metadata)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    for topic in TOPIC_IDS:
        write_topic(tmp_path, topic)
    with serving(tmp_path) as server:
        yield server


def everything(topic: str) -> list[Place]:
    return [(topic, number, offset) for number in range(PARTITIONS) for offset in range(RECORDS)]


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_two_members_share_a_topic_and_one_goes_on_where_the_other_left(
    running: Running, kind: Callable[..., Member]
) -> None:
    got: list[Place] = []
    with members(running, kind, 2, ["orders"]) as (first, second):
        poll_until(
            [first, second], lambda _: len(first.assigned_partitions()) == len(second.assigned_partitions()) == 2, got
        )
        assert not first.assigned_partitions() & second.assigned_partitions()
        poll_until([first, second], lambda places: len(places) > 2 * RECORDS, got)
        assert len(set(got)) < PARTITIONS * RECORDS
        first.close()
        poll_until([second], lambda _: len(second.assigned_partitions()) == PARTITIONS, got)
        poll_until([second], lambda places: len(set(places)) == PARTITIONS * RECORDS, got)
    assert [place for place, count in Counter(got).items() if count > 1] == []
    assert sorted(got) == everything("orders")
    assert len([line for line in running.said if "not written to the disk" in line]) == 1


@pytest.mark.parametrize("kind", CLIENTS, ids=lambda kind: kind.__name__)
def test_a_group_that_comes_back_goes_on_from_its_commit(running: Running, kind: Callable[..., Member]) -> None:
    got: list[Place] = []
    for wanted in (RECORDS, PARTITIONS * RECORDS):
        with members(running, kind, 1, ["orders"]) as found:
            poll_until(found, lambda places, wanted=wanted: len(places) >= wanted, got)  # type: ignore[misc]
    assert sorted(got) == everything("orders")


@pytest.mark.parametrize("kind", [ByLibrdkafka, ByLibrdkafkaConsumerProtocol], ids=lambda kind: kind.__name__)
def test_a_static_member_that_is_started_again_has_its_partitions_back(
    running: Running, kind: type[ByLibrdkafka]
) -> None:
    got: list[Place] = []
    found = [kind(running.bootstrap, ["orders"], **{"group.instance.id": f"i{number}"}) for number in range(2)]
    try:
        poll_until(found, lambda _: all(len(member.assigned_partitions()) == PARTITIONS // 2 for member in found), got)
        before = [member.assigned_partitions() for member in found]
        found[0].close()
        found[0] = kind(running.bootstrap, ["orders"], **{"group.instance.id": "i0"})
        poll_until(found, lambda _: len(found[0].assigned_partitions()) == PARTITIONS // 2, got)
        assert [member.assigned_partitions() for member in found] == before
        poll_until(found, lambda places: len(places) == PARTITIONS * RECORDS, got)
    finally:
        for member in found:
            member.close()
    assert sorted(got) == everything("orders")


@pytest.mark.parametrize("kind", [ByLibrdkafka, ByLibrdkafkaConsumerProtocol], ids=lambda kind: kind.__name__)
def test_a_pattern_subscribes_to_the_topics_that_match(running: Running, kind: Callable[..., Member]) -> None:
    got: list[Place] = []
    with members(running, kind, 1, ["^pay.*"]) as (member,):
        poll_until([member], lambda places: len(places) == PARTITIONS * RECORDS, got)
        assert {topic for topic, _ in member.assigned_partitions()} == {"payments"}
    assert sorted(got) == everything("payments")
