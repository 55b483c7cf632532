"""`kseg restore` brings a dead cluster of three 4.4.0 brokers to a running one of 4.3.1. Needs Java and Maven.

The old cluster has what clusters have: compaction, deleted records, moved partitions, transactions of all ends, groups
of all kinds with members, Streams applications. All brokers are killed at once, and the disks of one are lost. Clients
read the old cluster, started again from copies, and the new one.
"""

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import run
from tests.live.cluster import NODES, Cluster
from tests.live.oracles import Oracles, Row
from tests.live.test_restore import ReadRecord, committed_offset, read_all
from tests.log.real_broker import PATIENCE

pytestmark = pytest.mark.kafka

SOURCE, TARGET = "4.4.0", "4.3.1"
LOST = 3
GROUPS = ("by-transactions", "classic-group", "consumer-group", "left-classic", "left-consumer")
GROUPS += ("streams-classic", "streams-new")
SETTINGS: dict[str, object] = {"default.replication.factor": 3, "transaction.partition.verification.enable": "false"}

TopicPartition = tuple[str, int]


class Restored(NamedTuple):
    """What clients read in the old cluster, the running new cluster, and the report of the restore."""

    records: Mapping[TopicPartition, Sequence[ReadRecord]]
    commits: Mapping[tuple[str, str, int], int]
    share_offsets: Sequence[Row]
    target: Cluster
    report: Sequence[Mapping[str, Any]]

    @property
    def port(self) -> int:
        return self.target.nodes[NODES[0]].port


@pytest.fixture(scope="module")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Restored]:
    work = tmp_path_factory.mktemp("source")
    source = Cluster(SOURCE, work, SETTINGS)
    try:
        source.start(*NODES)
        source.run("Workload", source.bootstrap, "fill")
        source.run("Workload", source.bootstrap, "change", str(source.nodes[1].log_dirs[1]))
        with source.working():
            pass
        for number in NODES:
            source.kill(number)
        disks = copies_of_disks(source, work / "disks")
        source.start(*NODES)
        end_open_transaction(source)
        oracles = Oracles(source)
        places = [(row.topic, row.partition) for row in oracles.partitions() if not row.topic.startswith("__")]
        port = source.nodes[NODES[0]].port
        commits = {(group, *place): committed_offset(port, group, *place) for group in GROUPS for place in places}
        shares = oracles.share_offsets()
        records = {place: read_all(port, *place) for place in places}
    finally:
        source.stop()
    target = Cluster(TARGET, tmp_path_factory.mktemp("target"), {})
    try:
        target.start(*NODES)
        options = ["--bootstrap", target.bootstrap, "--yes", "-q", "-o", "json"]
        ran = run.kseg(["restore", *map(str, disks), *options], work)
        assert (ran.status, ran.stderr) == (0, b"")
        yield Restored(records, commits, shares, target, [json.loads(line) for line in ran.stdout.splitlines()])
    finally:
        target.stop()


def copies_of_disks(cluster: Cluster, to: Path) -> list[Path]:
    """Copy the log directories of the brokers that weren't lost."""
    kept = [path for number in NODES if number != LOST for path in cluster.nodes[number].log_dirs]
    return [Path(shutil.copytree(path, to / path.parent.name / path.name)) for path in kept]


def end_open_transaction(cluster: Cluster) -> None:
    """Abort the transaction that was open, so that a client can read what was committed after its begin."""
    from confluent_kafka import Producer

    Producer({"bootstrap.servers": cluster.bootstrap, "transactional.id": "open-now"}).init_transactions(PATIENCE)


def test_each_record_arrives_once_and_unchanged(restored: Restored) -> None:
    assert len(restored.records) > 15
    for place, expected in restored.records.items():
        found = read_all(restored.port, *place)
        assert [each.contents for each in found] == [each.contents for each in expected], place
    assert restored.report[-1]["records"] == sum(map(len, restored.records.values()))


def test_groups_continue_with_the_same_record(restored: Restored) -> None:
    committed = {key: offset for key, offset in restored.commits.items() if offset >= 0}
    assert {group for group, *_ in committed} == set(GROUPS)
    for (group, topic, partition), offset in committed.items():
        read_before = [each for each in restored.records[topic, partition] if each.offset < offset]
        assert committed_offset(restored.port, group, topic, partition) == len(read_before), (group, topic, partition)


def test_share_groups_have_as_many_records_left(restored: Restored) -> None:
    expected = {(row["GROUP"], row["TOPIC"], row["PARTITION"]): row["LAG"] for row in restored.share_offsets}
    found = Oracles(restored.target).share_offsets()
    assert {(row["GROUP"], row["TOPIC"], row["PARTITION"]): row["LAG"] for row in found} == expected
    assert expected


def test_replicas_are_as_many_as_before(restored: Restored) -> None:
    parts = [row for row in Oracles(restored.target).partitions() if (row.topic, row.partition) in restored.records]
    assert {len(row.replicas) for row in parts if row.topic != "moved"} == {3}
    assert {len(row.replicas) for row in parts if row.topic == "moved"} == {2}
    assert len(parts) == len(restored.records)
