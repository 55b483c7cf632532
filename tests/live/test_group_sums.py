"""Lags, hints and coordinators' partitions of a broker with 48 partitions of its coordinators' topics.

Compared with Kafka's own tools and consumers for a running broker. Needs Java and Maven.
"""

import json
import shlex
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kseg.findings.disk_kinds import CLUSTER_FINDINGS
from kseg.findings.kinds import FINDINGS
from tests import run
from tests.live.one_broker import OneBroker
from tests.live.test_group_offsets import (
    CONSUMER_GROUPS,
    commit,
    consumer_of,
    fill,
    make_topics,
    producer_of,
    wait_until,
)
from tests.live.tool_scripts import ToolScripts
from tests.log.real_broker import PATIENCE, RELEASE, Broker, new_broker
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.releases import NEWEST_TWO

if TYPE_CHECKING:
    from kafka_classes import KafkaClasses

pytestmark = pytest.mark.kafka

PARTITIONS = 48
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": PARTITIONS,
    "transaction.state.log.num.partitions": PARTITIONS,
}
END = 120
"""The end of each of two partitions of `pay`."""
GROUPS = ("beyond", "plain", "-dash", 'odd, "quoted" é', *(f"billing-{number}" for number in range(60)))
IDS = 60
"""Transactional ids: a third of the partitions has enough to prove the number of partitions."""


@pytest.fixture(scope="module", params=NEWEST_TWO)
def live(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    broker = new_broker(tmp_path_factory, SETTINGS, request.param)
    with ExitStack() as running:
        running.enter_context(broker.running("live"))
        tools = classes_of_tools(broker, tmp_path_factory.mktemp("tools"))
        made = OneBroker(broker, (broker.logs,), int(time.time() * 1000), running, tools)
        make_topics(made, "pay", "quiet")
        fill(made, "pay", "quiet")
        wait_until(lambda: is_committed(made), "the coordinators are there")
        for number, group in enumerate(GROUPS):
            commit(made, group, {("pay", 0): number, ("pay", 1): END})
        commit(made, "beyond", {("pay", 0): END + 500, ("pay", 1): END - 15})
        for number in range(IDS):
            producer = producer_of(made, **{"transactional.id": f"payment-{number}"})
            producer.init_transactions(PATIENCE)
        yield made


def classes_of_tools(broker: Broker, work: Path) -> "KafkaClasses":
    """Return the tools, of one release for all brokers."""
    from kafka_classes import KafkaClasses

    slf4j = f"org.slf4j:slf4j-simple:{broker.tools.SLF4J}"
    return KafkaClasses([*broker.tools.tool_artifacts(RELEASE), slf4j], [], work)


def is_committed(live: OneBroker) -> bool:
    """Return True if each group could commit: the partitions of 48 get their coordinators one by one."""
    from confluent_kafka import KafkaException

    try:
        for group in GROUPS:
            commit(live, group, {("pay", 0): 0})
    except KafkaException:
        return False
    return True


def test_the_tool_prints_negative_lags_and_kseg_leaves_them_out_of_the_sum(live: OneBroker) -> None:
    rows = live.table(CONSUMER_GROUPS, "--describe", "--group", "beyond", "--group", "plain", "--offsets")
    theirs: dict[str, list[int]] = {}
    for row in rows:
        theirs.setdefault(row["GROUP"], []).append(int(row["LAG"]))
    assert sorted(theirs["beyond"]) == [-500, 15]
    ours = {row["group"]: row for row in live.kseg("groups", "--show", "groups")}
    for group, lags in theirs.items():
        assert ours[group]["lag"] == sum(lag for lag in lags if lag >= 0)
        assert (ours[group]["beyondLogEnd"], ours[group]["unknownLags"]) == (sum(lag < 0 for lag in lags), 0)
    found = [row for row in live.kseg("doctor") if row.get("id") == "commit-beyond-end"]
    assert [(row["topic"], row["partition"]) for row in found] == [("pay", 0)]


def test_a_consumer_beyond_the_log_end_gets_the_error_that_kseg_says(live: OneBroker) -> None:
    from confluent_kafka import KafkaError, TopicPartition

    consumer = consumer_of(live, "beyond", **{"auto.offset.reset": "error"})
    consumer.assign([TopicPartition("pay", 0)])
    end = time.monotonic() + PATIENCE
    error = None
    while error is None and time.monotonic() < end:
        message = consumer.poll(1)
        error = None if message is None else message.error()
    consumer.close()
    assert error is not None
    assert error.code() == KafkaError._AUTO_OFFSET_RESET
    assert "out of range" in error.str().lower()


# --- coordinators' partitions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("without", [None, "__cluster_metadata"])
@pytest.mark.parametrize("part", [1, 3])
def test_groups_and_ids_are_in_the_partitions_that_kseg_names(
    without: str | None, part: int, live: OneBroker, tmp_path: Path
) -> None:
    """The broker chose the partitions. Also without the metadata, and with a third of the partitions."""
    disk = tmp_path / "disk"
    disk.mkdir()
    numbers = [number for number in range(PARTITIONS) if number % part == 0]
    wanted = [f"{topic}-{number}" for topic in ("__consumer_offsets", "__transaction_state") for number in numbers]
    for name in (*wanted, "__cluster_metadata-0", "meta.properties"):
        if without is None or not name.startswith(without):
            place = live.broker.logs / name
            (shutil.copytree if place.is_dir() else shutil.copy)(place, disk / name)
    groups = {row["group"]: row["coordinatorPartition"] for row in live.kseg("groups", "--show", "groups")}
    ids = {
        row["transactionalId"]: row["coordinatorPartition"]
        for row in live.kseg("txns")
        if row["type"] == "coordinatorTransaction"
    }
    assert len(groups) >= len(GROUPS)
    assert len(ids) == IDS
    for option, places in (("--group", groups), ("--transactional-id", ids)):
        for name, partition in list(places.items())[::4]:
            ran = run.kseg(["where", f"{option}={name}", "disk", "-o", "json"], tmp_path)
            answer = json.loads(ran.stdout)
            assert (answer["partition"], answer["partitions"], answer["isSupposed"]) == (partition, PARTITIONS, False)
    for command in ("groups", "txns"):
        said = run.kseg([command, "disk"], tmp_path).stderr.decode()
        assert f"of {PARTITIONS} partitions of __" in said or part == 1
        assert "probably" not in said


# --- hints -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def empty(live: OneBroker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    """A new cluster with the same topics, of the same records, and no groups."""
    broker = new_broker(tmp_path_factory, SETTINGS, RELEASE)
    with ExitStack() as running:
        running.enter_context(broker.running("empty"))
        made = OneBroker(broker, (broker.logs,), int(time.time() * 1000), running)
        make_topics(made, "pay", "quiet")
        fill(made, "pay", "quiet")
        yield made


def offsets(live: OneBroker) -> set[tuple[str, str, int, int]]:
    if not any(live.broker.logs.glob("__consumer_offsets-*")):
        return set()
    names = ("group", "topic", "partition", "offset")
    return {tuple(row[name] for name in names) for row in live.kseg("groups", "--show", "commits")}


@pytest.mark.parametrize("options", [(), ("--group", "billing-3"), ("--group", "billing-3*"), ("--group", "-dash")])
def test_the_hint_of_a_reset_plan_works_in_a_new_cluster(
    options: tuple[str, ...], live: OneBroker, empty: OneBroker
) -> None:
    ran = run.kseg(["groups", str(live.broker.logs), "-o", "reset-csv", *options], live.broker.work)
    assert ran.status == 0
    plan = empty.broker.work / "plan.csv"
    plan.write_bytes(ran.stdout)
    (hint,) = [line for line in ran.stderr.decode().splitlines() if "try it: " in line]
    line = hint.partition("try it: ")[2].replace("FILE", shlex.quote(str(plan)))
    tools = ToolScripts(empty.broker)
    names = {row["group"] for row in live.kseg("groups", *options, "--show", "groups")}
    before = {row for row in offsets(empty) if row[0] not in names}
    dry = tools.run_line(line)
    assert all(f"\n{name} " in f"\n{dry}" for name in names)
    assert {row for row in offsets(empty) if row[0] not in names} == before
    tools.run_line(line.replace("--dry-run", "--execute"))
    ends = {0: END, 1: END}
    wanted = {(group, topic, number, min(offset, ends[number])) for group, topic, number, offset in offsets(live)}
    assert {row for row in offsets(empty) if row[0] in names} == {row for row in wanted if row[0] in names}


def test_hints_of_other_tools_run_as_they_are_written(live: OneBroker, tmp_path: Path) -> None:
    """The user replaces words in capitals, except for HOST."""
    tools = ToolScripts(live.broker, live.tools)
    find = "kafka-transactions.sh --bootstrap-server HOST:9092 find-hanging --broker-id ID"
    elect = "kafka-leader-election.sh --bootstrap-server HOST:9092 --election-type unclean --topic TOPIC --partition N"
    assert f"`{find}`" in FINDINGS["long-transaction"].next_step
    assert f"`{elect}`" in CLUSTER_FINDINGS["no-in-sync-copy"].next_step
    tools.run_line(find.replace("ID", "1"))
    assert "pay-0" in tools.run_line(elect.replace("TOPIC", "pay").replace(" N", " 0"))
    lost = salvage_hint(tmp_path)
    assert "billing-1 " in tools.run_line(lost.replace("GROUP", "billing-1"))
    assert ("billing-1", "quiet", 0, 2) in offsets(live)


def salvage_hint(place: Path) -> str:
    """Return the line with which `kseg salvage` moves a group past lost records."""
    log = write_segment(
        place / "quiet-0", [NewBatch([NewRecord(None, b"v")] * 2), NewBatch([NewRecord(None, b"w")], 2)]
    )
    content = bytearray(log.read_bytes())
    content[70] ^= 1
    log.write_bytes(content)
    ran = run.kseg(["salvage", str(place / "quiet-0"), "--dry-run"], place)
    (line,) = [each.strip() for each in ran.stdout.decode().splitlines() if "kafka-consumer-groups.sh" in each]
    return line
