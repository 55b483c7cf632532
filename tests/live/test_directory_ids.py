"""A log directory with another `directory.id`: its partitions after a start. Needs Java and Maven."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from kseg.rewrite.metadata import new_directory_id
from tests.live.quorum_cluster import CLUSTER_ID, CONTROLLERS, PATIENCE, QuorumCluster, tools
from tests.log.real_broker import new_broker
from tests.releases import NEWEST_TWO
from tests.run import kseg

pytestmark = pytest.mark.kafka

TOPIC, PARTITIONS = "orders", 6
CHANGED = ([True], [False, True], [True, True])
"""True for each log directory whose id is changed."""


def make_topic(port: int) -> None:
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    topic = NewTopic(TOPIC, PARTITIONS, 1, config={"retention.ms": "-1", "min.insync.replicas": "1"})
    for future in admin.create_topics([topic]).values():
        future.result(PATIENCE)


def write(port: int) -> None:
    """Write a record to each partition, so that each one's leader must answer."""
    from confluent_kafka import Producer

    failed: list[str] = []
    producer = Producer({"bootstrap.servers": f"127.0.0.1:{port}", "acks": "all", "log_level": 0})
    for number in range(PARTITIONS):
        producer.produce(TOPIC, b"v", partition=number, on_delivery=lambda error, _: failed.append(str(error)))
    assert producer.flush(PATIENCE) == 0
    assert failed == ["None"] * PARTITIONS


def leaders(port: int) -> list[int]:
    from confluent_kafka.admin import AdminClient

    found = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"}).list_topics(TOPIC, PATIENCE).topics[TOPIC]
    return [found.partitions[number].leader for number in sorted(found.partitions)]


def change_ids(disks: Sequence[Path], changed: Sequence[bool]) -> set[str]:
    """Give some log directories new ids; return them."""
    new = []
    for disk, is_changed in zip(disks, changed, strict=True):
        properties = disk / "meta.properties"
        if is_changed:
            new.append(new_directory_id())
            properties.write_text(re.sub("directory.id=.*", f"directory.id={new[-1]}", properties.read_text()))
    return set(new)


def count_unknown(disks: Sequence[Path], work: Path) -> int:
    """Return the number of directories whose id the metadata lacks, by kseg."""
    ran = kseg(["verify", *map(str, disks), "-o", "json", "-q"], work)
    return [json.loads(line).get("id") for line in ran.stdout.splitlines()].count("directory-unknown")


@pytest.mark.parametrize("release", NEWEST_TWO)
@pytest.mark.parametrize("changed", CHANGED, ids=str)
def test_a_node_in_combined_mode_leads_all_partitions_after_another_start(
    changed: list[bool], release: str, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """At the first start, partitions without their leader may find none: the controller elects before it hears."""
    others = [tmp_path / f"disk{number}" for number in range(1, len(changed))]
    broker = new_broker(tmp_path_factory, release=release, log_dirs=others)
    disks = [broker.logs, *others]
    with broker.running("before"):
        make_topic(broker.port)
        write(broker.port)
    new = change_ids(disks, changed)
    assert count_unknown(disks, tmp_path) == sum(changed)
    with broker.running("first"):
        tools.wait_until(
            lambda: new <= assigned_ids(disks, tmp_path), PATIENCE, "the controller doesn't hear of the ids"
        )
        assert set(leaders(broker.port)) <= {1, -1}
    with broker.running("second"):
        tools.wait_until(lambda: set(leaders(broker.port)) == {1}, PATIENCE, "partitions have no leader")
        write(broker.port)
    assert count_unknown(disks, tmp_path) == 0


def assigned_ids(disks: Sequence[Path], work: Path) -> set[str]:
    """Return the ids of log directories that the metadata has for replicas."""
    ran = kseg(["metadata", *map(str, disks[:1]), "--show", "directories", "-o", "json"], work)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    return {row["directoryId"] for row in rows if row["replicaCount"]}


@pytest.mark.parametrize("release", NEWEST_TWO)
def test_a_broker_whose_controller_runs_leads_all_partitions_at_once(release: str, tmp_path: Path) -> None:
    cluster = QuorumCluster(release, tmp_path / "cluster", is_dynamic=False)
    first, broker = CONTROLLERS[0], cluster.nodes[1]
    try:
        cluster.configure([first])
        disks = [broker.logs, broker.directory / "logs2"]
        settings = broker.properties.read_text().replace(f"log.dirs={disks[0]}", f"log.dirs={disks[0]},{disks[1]}")
        broker.properties.write_text(f"{settings}offsets.topic.replication.factor=1\n")
        format_again = ("format", "-t", CLUSTER_ID, "-c", str(broker.properties), "--ignore-formatted")
        cluster.run("kafka.tools.StorageTool", *format_again)
        cluster.start(first, 1)
        make_topic(broker.port)
        write(broker.port)
        cluster.kill(1)
        assert len(change_ids(disks, [True, True])) == len(disks)
        cluster.start(1)
        tools.wait_until(lambda: set(leaders(broker.port)) == {1}, PATIENCE, "partitions have no leader")
        write(broker.port)
    finally:
        cluster.stop()
