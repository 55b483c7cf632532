"""All controllers of a real cluster lost, and restored by `kseg rebuild-metadata`. Needs Java and Maven."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests import run
from tests.live.compared import Compared
from tests.live.going_on import GROUP, PARTITIONS, TOPIC, Producing, consumer_of, everything, take
from tests.live.quorum_cluster import BROKERS, CONTROLLERS, PATIENCE, QuorumCluster, tools
from tests.log.real_broker import Broker, make_topics, new_broker

pytestmark = pytest.mark.kafka

NEW, SECOND, THIRD = 3011, 3012, 3013
METADATA = "__cluster_metadata-0"
QUORUM_TOOL = "org.apache.kafka.tools.MetadataQuorumCommand"
QUORUMS = (("4.3.1", "dynamic"), ("4.3.1", "static"), ("3.9.1", "static"), ("3.6.2", "static"))
OLD_QUORUM_STATE = ("3.6",)
"""Releases that compare the voters of `quorum-state` with those of `controller.quorum.voters`, on brokers too."""


class Lost(NamedTuple):
    """A cluster whose controllers and their disks are lost, while producers continue; and its former state."""

    cluster: QuorumCluster
    release: str
    producing: Producing
    before: dict[str, Any]
    consumed: dict[int, tuple[int, int]]


def admin_of(cluster: QuorumCluster) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": cluster.bootstrap})


def make_topic(cluster: QuorumCluster, name: str, settings: dict[str, str] | None = None) -> None:
    from confluent_kafka.admin import NewTopic

    admin = admin_of(cluster)
    tools.wait_until(
        lambda: len(admin.list_topics(timeout=PATIENCE).brokers) == len(BROKERS), PATIENCE, "too few brokers"
    )
    made = admin.create_topics([NewTopic(name, PARTITIONS, 3, config=settings or {})])
    for future in made.values():
        future.result(PATIENCE)


def describe_topics(cluster: QuorumCluster) -> dict[str, Any]:
    """Return ids, replicas and settings of the topics that a client sees."""
    from confluent_kafka import TopicCollection
    from confluent_kafka.admin import ConfigResource, ResourceType

    admin = admin_of(cluster)
    topics = admin.describe_topics(TopicCollection([TOPIC]))[TOPIC].result(PATIENCE)
    configs = admin.describe_configs([ConfigResource(ResourceType.TOPIC, TOPIC)])
    settings = next(iter(configs.values())).result(PATIENCE)
    return {
        "id": str(topics.topic_id),
        "replicas": [sorted(node.id for node in partition.replicas) for partition in topics.partitions],
        "settings": {name: entry.value for name, entry in settings.items() if not entry.is_default},
    }


@pytest.fixture(params=QUORUMS, ids=lambda param: "-".join(param))
def lost(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lost]:
    release, kind = request.param
    cluster = QuorumCluster(release, tmp_path / "cluster", is_dynamic=kind == "dynamic")
    try:
        cluster.start(*CONTROLLERS)
        cluster.start(*BROKERS)
        make_topic(cluster, TOPIC, {"retention.ms": "-1", "min.insync.replicas": "2"})
        producing = Producing(cluster.bootstrap)
        producing.start()
        producing.wait_for_more(300)
        consumer = consumer_of(cluster.bootstrap, GROUP)
        consumer.subscribe([TOPIC])
        consumed = take(consumer, 200)
        consumer.close()
        before = describe_topics(cluster)
        cluster.kill(*CONTROLLERS)
        for number in CONTROLLERS:
            shutil.rmtree(cluster.nodes[number].logs)
        producing.wait_for_more(300)
        yield Lost(cluster, release, producing, before, consumed)
    finally:
        cluster.stop()


def bring_back(lost: Lost, work: Path) -> Path:
    """Follow docs/how-to/metadata.md: make a new controller's log directory, which all settings name alone."""
    cluster = lost.cluster
    cluster.kill(*BROKERS)
    new = cluster.add(NEW, "controller")
    disks = [cluster.nodes[number].logs for number in BROKERS]
    endpoint = ["--endpoint", f"CONTROLLER://{new.address}"] if cluster.is_dynamic else []
    arguments = [*map(str, disks), "--node-id", str(NEW), *endpoint, "--to", str(new.logs)]
    ran = run.kseg(["rebuild-metadata", *arguments], work)
    assert ran.status == 0, ran.stderr
    for number in CONTROLLERS:
        del cluster.nodes[number]
    cluster.configure([NEW])
    if lost.release.startswith(OLD_QUORUM_STATE):
        for disk in disks:
            (disk / METADATA / "quorum-state").unlink()
    return new.logs


def test_brokers_return_to_the_new_controller_and_no_acknowledged_record_is_lost(
    lost: Lost, tmp_path: Path, compared: Compared
) -> None:
    cluster, producing = lost.cluster, lost.producing
    bring_back(lost, tmp_path)
    cluster.start(NEW)
    cluster.start(*BROKERS)
    producing.wait_for_more(300)
    make_topic(cluster, "afterwards")
    producing.wait_for_more(100)
    producing.stop()
    assert producing.failed == []
    assert describe_topics(cluster) == lost.before
    found = everything(cluster.bootstrap)
    missing = {number: place for number, place in producing.acknowledged.items() if found.get(number) != place}
    assert missing == {}
    consumer = consumer_of(cluster.bootstrap, GROUP)
    consumer.subscribe([TOPIC])
    rest = take(consumer, len(found.keys() - lost.consumed.keys()))
    consumer.close()
    assert lost.consumed.keys() | rest.keys() == found.keys()
    compared.rows(f"{lost.release} acknowledged", [*producing.acknowledged], [*(found.keys() & producing.acknowledged)])


def voters(cluster: QuorumCluster) -> set[int]:
    """Return the voters' ids from kafka-metadata-quorum.sh describe --status."""
    said = cluster.run(QUORUM_TOOL, "--bootstrap-server", cluster.bootstrap, "describe", "--status")
    (line,) = [line for line in said.splitlines() if line.startswith("CurrentVoters:")]
    return {int(number) for number in re.findall(r'"id": (\d+)', line)}


@pytest.mark.parametrize("lost", [("4.3.1", "dynamic")], indirect=True)
def test_a_dynamic_quorum_grows_again(lost: Lost, tmp_path: Path) -> None:
    cluster = lost.cluster
    bring_back(lost, tmp_path)
    cluster.start(NEW)
    cluster.start(*BROKERS)
    second = cluster.add(SECOND, "controller")
    cluster.configure([NEW])
    cluster.format(SECOND, is_first=False)
    cluster.start(SECOND)
    reach = ("--bootstrap-controller", cluster.nodes[NEW].address, "--command-config", str(second.properties))
    cluster.run(QUORUM_TOOL, *reach, "add-controller")
    assert voters(cluster) == {NEW, SECOND}
    lost.producing.wait_for_more(100)
    lost.producing.stop()
    assert lost.producing.failed == []


@pytest.mark.parametrize("lost", [("4.3.1", "static")], indirect=True)
def test_a_static_quorum_grows_by_copies_of_the_new_controller(lost: Lost, tmp_path: Path) -> None:
    cluster = lost.cluster
    first = bring_back(lost, tmp_path)
    cluster.start(NEW)
    cluster.start(*BROKERS)
    make_topic(cluster, "afterwards")
    cluster.kill(NEW, *BROKERS)
    for number in (SECOND, THIRD):
        other = cluster.add(number, "controller").logs
        shutil.copytree(first, other)
        properties = other / "meta.properties"
        text = properties.read_text().replace(f"node.id={NEW}", f"node.id={number}")
        properties.write_text(re.sub("directory.id=.*\n", "", text))
    cluster.configure([NEW, SECOND, THIRD])
    for node in cluster.nodes.values():
        (node.logs / METADATA / "quorum-state").unlink()
    cluster.start(NEW, SECOND, THIRD)
    cluster.start(*BROKERS)
    assert voters(cluster) == {NEW, SECOND, THIRD}
    cluster.kill(NEW)  # two of three are enough
    make_topic(cluster, "later")
    lost.producing.wait_for_more(100)
    lost.producing.stop()
    assert lost.producing.failed == []


def test_a_node_that_is_broker_and_controller_replaces_its_own_copy(tmp_path_factory: pytest.TempPathFactory) -> None:
    broker = new_broker(tmp_path_factory, is_dynamic=True)
    with broker.running("before"):
        make_topics(broker.port, [TOPIC])
        voter = next(iter(rows_of(broker, "voters")))
    endpoint = f"CONTROLLER://127.0.0.1:{voter['endpoints'][0]['port']}"
    arguments = [str(broker.logs), "--node-id", "1", "--endpoint", endpoint, "--to", str(broker.work / "new")]
    assert run.kseg(["rebuild-metadata", *arguments], broker.work).status == 0
    shutil.rmtree(broker.logs / METADATA)
    (broker.work / "new" / METADATA).rename(broker.logs / METADATA)
    with broker.running("after"):
        make_topics(broker.port, ["afterwards"])
        assert {row["topic"] for row in rows_of(broker, "topics")} == {TOPIC, "afterwards"}
        assert [*rows_of(broker, "voters")] == [voter]


def test_an_old_copy_is_refused_and_brokers_that_have_more_return_to_it(tmp_path: Path) -> None:
    cluster = QuorumCluster("4.3.1", tmp_path / "cluster", is_dynamic=True)
    try:
        cluster.start(*CONTROLLERS)
        cluster.start(*BROKERS)
        make_topic(cluster, TOPIC)
        early = tmp_path / "early"
        cluster.kill(3)
        shutil.copytree(cluster.nodes[3].logs, early)
        cluster.start(3)
        make_topic(cluster, "later")
        later = [cluster.nodes[broker].logs / f"later-{number}" for broker in BROKERS for number in range(PARTITIONS)]
        tools.wait_until(lambda: all((each / "partition.metadata").exists() for each in later), PATIENCE, "no replicas")
        cluster.kill(*CONTROLLERS, *BROKERS)
        new = cluster.add(NEW, "controller")
        arguments = ["--node-id", str(NEW), "--endpoint", f"CONTROLLER://{new.address}", "--to", str(new.logs)]
        others = [others_of(cluster.nodes[number].logs, tmp_path) for number in BROKERS]
        ran = run.kseg(["rebuild-metadata", str(early), *others, *arguments], tmp_path)
        assert (ran.status, new.logs.exists()) == (1, False)
        assert ran.stdout.count(b"isn't in the copy") == len(later)
        assert run.kseg(["rebuild-metadata", str(early), *arguments], tmp_path).status == 0  # nothing shows it
        for number in CONTROLLERS:
            del cluster.nodes[number]
        cluster.configure([NEW])
        cluster.start(NEW)
        for number in BROKERS:  # those with more records see the new voter only after truncating
            cluster.start_until(number, lambda: bool([*cluster.nodes[number].logs.glob("later-0.*-stray")]))  # noqa: B023
        cluster.start(*BROKERS)
        make_topic(cluster, "afterwards")
        topics = admin_of(cluster).list_topics(timeout=PATIENCE).topics
        assert topics.keys() == {TOPIC, "afterwards"}
    finally:
        cluster.stop()


def others_of(log_dir: Path, work: Path) -> str:
    """Return a log directory without its copy of the metadata."""
    copy = work / f"others-{log_dir.parent.name}"
    shutil.copytree(log_dir, copy, ignore=lambda _, names: {METADATA}.intersection(names))
    return str(copy)


def rows_of(broker: Broker, kind: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of `kseg metadata` for a broker's directory."""
    ran = run.kseg(["metadata", str(broker.logs), "--show", kind, "-o", "json"], broker.work)
    return map(json.loads, ran.stdout.splitlines())


def test_deleted_topics_stay_away(tmp_path_factory: pytest.TempPathFactory) -> None:
    """The broker was still deleting directories of one; of the other, a disk was offline at the deletion."""
    disk, away = tmp_path_factory.mktemp("disk") / "logs", tmp_path_factory.mktemp("away")
    broker = new_broker(tmp_path_factory, {"log.segment.delete.delay.ms": 600_000}, log_dirs=[disk], is_dynamic=True)
    with broker.running("before"):
        make_topics(broker.port, [TOPIC, "marked", "away"])
    (place,) = (each for log_dir in (broker.logs, disk) for each in log_dir.glob("away-0"))
    shutil.copytree(place, away / "away-0")
    with broker.running("deleting"):
        delete_topics(broker.port, ["marked", "away"])
        marked = lambda: [*broker.logs.glob("*-delete"), *disk.glob("*-delete")]  # noqa: E731
        tools.wait_until(lambda: len(marked()) == 2, PATIENCE, "no directories that are being deleted")
        voter = next(iter(rows_of(broker, "voters")))
    assert len(marked()) == 2
    shutil.copytree(away / "away-0", place)
    endpoint = f"CONTROLLER://127.0.0.1:{voter['endpoints'][0]['port']}"
    arguments = ["--node-id", "1", "--endpoint", endpoint, "--to", str(broker.work / "new")]
    ran = run.kseg(["rebuild-metadata", str(broker.logs), str(disk), *arguments], broker.work)
    assert (ran.status, ran.stderr.count(b"3 directories of deleted partitions are omitted")) == (0, 1)
    shutil.rmtree(broker.logs / METADATA)
    (broker.work / "new" / METADATA).rename(broker.logs / METADATA)
    with broker.running("after"):
        make_topics(broker.port, ["afterwards"])
        assert {row["topic"] for row in rows_of(broker, "topics")} == {TOPIC, "afterwards"}
        tools.wait_until(lambda: not place.exists(), PATIENCE, "the partition is still in use")


def delete_topics(port: int, topics: list[str]) -> None:
    from confluent_kafka.admin import AdminClient

    admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{port}"})
    for future in admin.delete_topics(topics).values():
        future.result(PATIENCE)
