"""Lags, share groups' offsets and reset plans equal those of Kafka's own tools for a running broker.

Groups of all kinds: classic, of the consumer protocol, share and streams ones, with members and without. Commits that
are pending in a transaction, expired, or for topics that were deleted or recreated. Needs Java and Maven.
"""

import csv
import io
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from struct import pack
from typing import TYPE_CHECKING, Any

import pytest

from tests import run
from tests.live.compared import Compared
from tests.live.one_broker import TOOLS, OneBroker
from tests.log.real_broker import PATIENCE, RELEASE, new_broker

if TYPE_CHECKING:
    from confluent_kafka import Consumer, Producer

pytestmark = pytest.mark.kafka

CONSUMER_GROUPS = "consumer.group.ConsumerGroupCommand"
SHARE_GROUPS = "consumer.group.ShareGroupCommand"
STREAMS_GROUPS = "streams.StreamsGroupCommand"
RECORDS = 240
TOPICS = {"orders": 3, "pay": 2, "deleted": 2, "again": 1, "quiet": 1}
"""Topics with their numbers of partitions."""
OFFSET_COMMIT, WITH_RETENTION = 8, 2
"""The request, and its version with the retention time of a commit."""
ODD = 'odd, "quoted" é'
"""A group's name that a CSV must quote."""


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    second = tmp_path_factory.mktemp("disks") / "disk2"
    settings = {"auto.create.topics.enable": "false", "offsets.topic.num.partitions": 3}
    settings |= {"share.coordinator.state.topic.num.partitions": 3}
    broker = new_broker(tmp_path_factory, settings, log_dirs=[second])
    with ExitStack() as running:
        running.enter_context(broker.running("live"))
        made = OneBroker(broker, (broker.logs, second), int(time.time() * 1000), running)
        make_topics(made)
        fill(made)
        make_members(made, running)
        make_commits(made, running)
        make_share_groups(made, running)
        make_streams_groups(made, running)
        change_topics(made)
        yield made


# --- the broker's groups ---------------------------------------------------------------------------------------------


def admin_of(live: OneBroker) -> Any:
    from confluent_kafka.admin import AdminClient

    return AdminClient({"bootstrap.servers": live.server})


def make_topics(live: OneBroker, *names: str) -> None:
    from confluent_kafka.admin import NewTopic

    wanted = [NewTopic(name, TOPICS[name], 1) for name in names or TOPICS]
    admin = admin_of(live)  # its pending operations end with it
    for future in admin.create_topics(wanted).values():
        future.result(PATIENCE)


def fill(live: OneBroker, *names: str) -> None:
    producer = producer_of(live)
    for number in range(RECORDS):
        for topic in names or TOPICS:
            producer.produce(topic, b"%d" % number, b"k", number % TOPICS[topic])
    producer.flush(PATIENCE)


def producer_of(live: OneBroker, **settings: object) -> "Producer":
    from confluent_kafka import Producer

    return Producer({"bootstrap.servers": live.server, **settings})


def consumer_of(live: OneBroker, group: str, **settings: object) -> "Consumer":
    from confluent_kafka import Consumer

    own = {"bootstrap.servers": live.server, "group.id": group, "enable.auto.commit": False}
    return Consumer({**own, "auto.offset.reset": "earliest", **settings})


def commit(live: OneBroker, group: str, offsets: dict[tuple[str, int], int], metadata: str = "") -> None:
    """Commit without membership."""
    from confluent_kafka import TopicPartition

    consumer = consumer_of(live, group)
    wanted = [TopicPartition(*place, offset, metadata=metadata) for place, offset in offsets.items()]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def make_members(live: OneBroker, clients: ExitStack) -> None:
    """Make groups of both protocols: one whose members stay, and one whose members committed and left."""
    for protocol in ("classic", "consumer"):
        for state in ("stays", "left"):
            members = [consumer_of(live, f"{protocol}-{state}", **{"group.protocol": protocol}) for _ in range(2)]
            for member in members:
                member.subscribe(["orders"])
            read_and_commit(members)
            for member in members:
                clients.callback(member.close) if state == "stays" else member.close()


def read_and_commit(members: list["Consumer"]) -> None:
    """Commit after some records of each partition, once all partitions are assigned and read."""
    seen: set[int] = set()
    end = time.monotonic() + PATIENCE
    while len(seen) < TOPICS["orders"] or not all(member.assignment() for member in members):
        assert time.monotonic() < end, "the group didn't settle"
        for member in members:
            message = member.poll(0.2)
            if message is not None and message.error() is None:
                seen.add(message.partition())
    for number, member in enumerate(members):
        for partition in member.assignment():
            partition.offset = 10 * (number + 1) + partition.partition
            member.commit(offsets=[partition], asynchronous=False)


def make_commits(live: OneBroker, clients: ExitStack) -> None:
    """Make groups that only commit: at the end, at 0, beyond it, for removed topics, with metadata; pending ones."""
    end = RECORDS // TOPICS["orders"]
    commit(live, "alone", {("orders", 0): end, ("orders", 1): 0, ("pay", 1): 7}, "with metadata")
    commit(live, "beyond", {("orders", 0): 10 * end})
    commit(live, ODD, {("pay", 0): 3, ("orders", 2): 4})
    commit(live, "of-deleted", {("deleted", 0): 5, ("deleted", 1): 6, ("pay", 0): 1})
    commit(live, "of-deleted-alone", {("deleted", 0): 5})
    commit(live, "of-again", {("again", 0): 9})
    commit(live, "removed", {("pay", 0): 2, ("pay", 1): 2})
    live.tool(CONSUMER_GROUPS, "--delete-offsets", "--group", "removed", "--topic", "pay:0")
    commit(live, "both", {("orders", 0): 11, ("orders", 1): 12})
    for number, group in enumerate(("pending", "both")):
        clients.callback(pending(live, group, f"open-{number}").abort_transaction, PATIENCE)
    producer = pending(live, "by-transaction", "ended")
    producer.commit_transaction(PATIENCE)
    pending(live, "by-aborted", "aborted").abort_transaction(PATIENCE)
    commit_to_expire(live, "expired", "quiet", 8)


def pending(live: OneBroker, group: str, transactional_id: str) -> "Producer":
    """Return a producer with a group's offset and a record in an open transaction."""
    from confluent_kafka import TopicPartition

    producer = producer_of(live, **{"transactional.id": transactional_id, "transaction.timeout.ms": 900_000})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    producer.produce("pay", b"in a transaction", partition=1)
    producer.flush(PATIENCE)
    consumer = consumer_of(live, group)
    wanted = [TopicPartition("orders", 0, 70), TopicPartition("orders", 2, 71)]
    producer.send_offsets_to_transaction(wanted, consumer.consumer_group_metadata(), PATIENCE)
    consumer.close()
    return producer


def commit_to_expire(live: OneBroker, group: str, topic: str, offset: int) -> None:
    """Commit with a retention of a millisecond, which clients no longer request."""

    def text(name: str) -> bytes:
        return pack(">h", len(name)) + name.encode()

    body = text(group) + pack(">i", -1) + text("") + pack(">q", 1)
    body += pack(">i", 1) + text(topic) + pack(">i", 1) + pack(">iq", 0, offset) + text("")
    request = pack(">hhi", OFFSET_COMMIT, WITH_RETENTION, 0) + text("test") + body
    with socket.create_connection(("127.0.0.1", live.broker.port)) as connection:
        connection.sendall(pack(">i", len(request)) + request)
        answer = connection.recv(1 << 16)
    assert answer[-2:] == b"\0\0", answer


def make_share_groups(live: OneBroker, clients: ExitStack) -> None:
    """Make groups: one whose member stays, one that accepted every other record and left, and one without records."""
    from kafka_classes import KafkaClasses

    for group in ("share-stays", "share-gaps"):
        arguments = ("--entity-type", "groups", "--entity-name", group, "--alter")
        config = live.broker.kafka.command(
            "kafka.admin.ConfigCommand",
            *("--bootstrap-server", live.server, *arguments, "--add-config", "share.auto.offset.reset=earliest"),
        )
        subprocess.run(config, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    work = live.broker.work / "share"
    work.mkdir()
    slf4j = f"org.slf4j:slf4j-simple:{live.broker.tools.SLF4J}"
    java = KafkaClasses([f"org.apache.kafka:kafka-clients:{RELEASE}", slf4j], [], work)
    reader = str(Path(__file__).with_name("ShareReader.java"))
    subprocess.run(java.command(reader, live.server, "share-gaps", "orders", "15"), check=True, timeout=PATIENCE)
    for group in ("share-stays", "share-waits"):
        arguments = ("--bootstrap-server", live.server, "--topic", "pay", "--group", group)
        start(live.broker.kafka.command(f"{TOOLS}.consumer.ConsoleShareConsumer", *arguments), clients)
    wait_until(lambda: len(lags(live, "share-stays", "0")) == TOPICS["pay"], "the share group has read all")
    wait_until(lambda: len(lags(live, "share-waits", "-")) == TOPICS["pay"], "the other share group waits")
    arguments = ("--reset-offsets", "--group", "share-gaps", "--topic", "quiet", "--to-earliest", "--execute")
    live.tool(SHARE_GROUPS, *arguments)


def lags(live: OneBroker, group: str, lag: str) -> list[dict[str, str]]:
    """Return the tool's rows of a share group's partitions with that lag."""
    rows = live.table(SHARE_GROUPS, "--describe", "--all-groups", "--offsets")
    return [row for row in rows if (row["GROUP"], row["LAG"]) == (group, lag)]


def make_streams_groups(live: OneBroker, clients: ExitStack) -> None:
    """Make two groups: one whose application stays, and one whose application left."""
    from kafka_classes import KafkaClasses

    work = live.broker.work / "streams"
    work.mkdir()
    slf4j = f"org.slf4j:slf4j-simple:{live.broker.tools.SLF4J}"
    java = KafkaClasses([f"org.apache.kafka:kafka-streams:{RELEASE}", slf4j], [], work)
    application = str(Path(__file__).with_name("StreamsApp.java"))
    for group in ("streams-left", "streams-stays"):
        command = java.command(application, live.server, group, str(work / group), "quiet")
        process = start(command, clients)
        wait_until(lambda group=group: bool(of_group(live, group)), "the streams application commits")
        if group == "streams-left":
            process.communicate(timeout=PATIENCE)  # it leaves the group at the end of its input


def of_group(live: OneBroker, group: str) -> list[dict[str, Any]]:
    return [row for row in live.kseg("groups", "--group", group, "--show", "commits") if row["type"] == "commit"]


def change_topics(live: OneBroker) -> None:
    """Delete topics, recreate one of them, and add records to others, all after groups committed."""
    admin = admin_of(live)
    for future in admin.delete_topics(["deleted", "again"]).values():
        future.result(PATIENCE)
    places = [disk / f"{name}-0" for disk in live.disks for name in ("deleted", "again")]
    wait_until(lambda: not any(place.exists() for place in places), "the topics are gone")
    make_topics(live, "again")
    fill(live, "again", "orders")


def start(command: list[str], clients: ExitStack) -> "subprocess.Popen[bytes]":
    """Run a client until the end; its input stays open until then."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    clients.callback(process.wait)
    clients.callback(process.terminate)
    return process


def wait_until(is_true: Any, what: str) -> None:
    end = time.monotonic() + 2 * PATIENCE
    while not is_true():
        assert time.monotonic() < end, f"still waiting until {what}"
        time.sleep(0.2)


# --- comparing -------------------------------------------------------------------------------------------------------


def names_of(live: OneBroker, *types: str) -> set[str]:
    return {row["group"] for row in live.kseg("groups", "--show", "groups") if row["groupType"] in types}


def with_dashes(*values: object) -> tuple[str, ...]:
    """Return values as Kafka's tools print them."""
    return tuple("-" if value is None else str(value) for value in values)


def describe_group(live: OneBroker) -> list[tuple[str, ...]]:
    """Return the tool's rows of commits; groups' names may have spaces, other columns have none."""
    found = []
    for line in live.tool(CONSUMER_GROUPS, "--describe", "--all-groups", "--offsets", "--verbose"):
        *name, topic, partition, epoch, offset, end, lag, _, _, _ = (
            line.rsplit(maxsplit=9) if line.strip() else [""] * 10
        )
        if partition.isdigit() and offset != "-":
            found.append((*name, topic, partition, epoch, offset, end, lag))
    return found


def committed_rows(live: OneBroker) -> list[tuple[str, ...]]:
    own = names_of(live, "classic", "consumer")
    fields = ("group", "topic", "partition", "leaderEpoch", "offset", "logEndOffset", "lag")
    rows = live.kseg("groups", "--show", "commits")
    counting = (row for row in rows if row["group"] in own and row["pendingProducerId"] is None)
    return [with_dashes(*(row[name] for name in fields)) for row in counting]


def test_groups_have_the_same_offsets_ends_and_lags(live: OneBroker, compared: Compared) -> None:
    theirs = describe_group(live)
    compared.rows("commits, ends and lags", theirs, committed_rows(live))
    groups = {row[0] for row in theirs}
    wanted = {"classic-stays", "classic-left", "consumer-stays", "consumer-left", "alone", "beyond", ODD, "of-deleted"}
    assert wanted | {"both", "by-transaction", "removed", "expired"} <= groups
    assert not {"pending", "of-deleted-alone", "of-again", "by-aborted"} & groups
    assert any(int(row[-1]) < 0 for row in theirs if row[-1] != "-")


def test_share_groups_have_the_same_start_offsets_and_lags(live: OneBroker, compared: Compared) -> None:
    fields = ("GROUP", "TOPIC", "PARTITION", "LEADER-EPOCH", "START-OFFSET", "LAG")
    theirs = [
        tuple(row[field] for field in fields)
        for row in live.table(SHARE_GROUPS, "--describe", "--all-groups", "--offsets", "--verbose")
    ]
    rows = live.kseg("groups", "--show", "share-partitions")
    names = ("group", "topic", "partition", "leaderEpoch", "startOffset", "lag")
    compared.rows("share-partitions", theirs, (with_dashes(*(row[name] for name in names)) for row in rows))
    assert {"share-stays", "share-waits", "share-gaps"} == {row[0] for row in theirs}
    assert {row["group"] for row in rows if (row["deliveryCompleteCount"] or 0) > 0} >= {"share-gaps"}


def test_streams_groups_have_the_same_lags(live: OneBroker, compared: Compared) -> None:
    fields = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LEADER-EPOCH", "LOG-END-OFFSET", "OFFSET-LAG")
    theirs = live.table(STREAMS_GROUPS, "--describe", "--all-groups", "--offsets", "--verbose")
    names = ("group", "topic", "partition", "offset", "leaderEpoch", "logEndOffset", "lag")
    ours = (with_dashes(*(row[name] for name in names)) for row in of_group(live, "streams-stays"))
    compared.rows("streams groups' lags", (tuple(row[field] for field in fields) for row in theirs), ours)


def test_last_stable_offsets_are_what_read_committed_consumers_get(live: OneBroker, compared: Compared) -> None:
    from confluent_kafka import TopicPartition

    consumer = consumer_of(live, "reader", **{"isolation.level": "read_committed"})
    rows = {
        (row["topic"], row["partition"]): row["lastStableOffset"]
        for row in live.kseg("groups", "--show", "commits")
        if row["lastStableOffset"] is not None
    }
    theirs = {
        place: consumer.get_watermark_offsets(TopicPartition(*place), timeout=PATIENCE, cached=False)[1]
        for place in rows
    }
    consumer.close()
    compared.rows("last stable offsets", theirs.items(), rows.items())


# --- reset plans -----------------------------------------------------------------------------------------------------

QUIET = ["alone", "by-transaction", "classic-left", "consumer-left", ODD]
"""Groups without members whose topics all exist."""


def plan_of(live: OneBroker, *options: str) -> bytes:
    ran = run.kseg(["groups", *map(str, live.disks), "-o", "reset-csv", *options], live.broker.work)
    assert ran.status == 0, ran.stderr
    return ran.stdout


def rows_of(text: str) -> list[tuple[str, ...]]:
    return [tuple(row) for row in csv.reader(io.StringIO(text)) if row]


def exported_plan(live: OneBroker, *groups: str) -> list[tuple[str, ...]]:
    """Return the plan that Kafka's tool itself writes for later resets."""
    options = ("--all-topics", "--to-current", "--export", "--dry-run")
    named = [word for group in groups for word in ("--group", group)]
    lines = live.tool(CONSUMER_GROUPS, "--reset-offsets", *named, *options)
    return rows_of("\n".join(lines))


@pytest.mark.parametrize("group", QUIET)
def test_the_plan_of_one_group_is_what_the_tool_exports(group: str, live: OneBroker, compared: Compared) -> None:
    compared.rows(f"plan of {group}", exported_plan(live, group), rows_of(plan_of(live, "--group", group).decode()))


def test_the_plan_of_several_groups_is_what_the_tool_exports(live: OneBroker, compared: Compared) -> None:
    ours = [row for row in rows_of(plan_of(live).decode()) if row[0] in QUIET]
    compared.rows("plan of several groups", exported_plan(live, *QUIET), ours)


@pytest.mark.parametrize("form", ["one group", "several groups"])
def test_the_tool_takes_the_plan_and_brings_groups_back(form: str, live: OneBroker, compared: Compared) -> None:
    """Apply an old plan after later commits."""
    before = describe_group(live)
    at_ms = int(time.time() * 1000)
    for group in QUIET:
        live.tool(CONSUMER_GROUPS, "--reset-offsets", "--group", group, "--all-topics", "--to-earliest", "--execute")
    assert describe_group(live) != before
    path = live.broker.work / "plan.csv"
    options = ("--from-file", str(path), "--execute")
    if form == "one group":
        for group in QUIET:
            path.write_bytes(plan_of(live, "--group", group, "--at", str(at_ms)))
            live.tool(CONSUMER_GROUPS, "--reset-offsets", "--group", group, *options)
    else:
        path.write_bytes(plan_of(live, "--at", str(at_ms)))
        named = [word for group in QUIET for word in ("--group", group)]
        live.tool(CONSUMER_GROUPS, "--reset-offsets", *named, *options)
    after = [without_epoch(row) for row in describe_group(live) if row[0] in QUIET]
    compared.rows(f"after the plan of {form}", (without_epoch(row) for row in before if row[0] in QUIET), after)


def test_the_tool_of_streams_groups_takes_the_plan_too(live: OneBroker, compared: Compared) -> None:
    (before,) = of_group(live, "streams-left")
    path = live.broker.work / "plan.csv"
    path.write_text(f"{before['topic']},{before['partition']},{before['offset'] - 5}\n")
    options = ("--reset-offsets", "--group", "streams-left", "--from-file", str(path), "--execute")
    live.tool(STREAMS_GROUPS, *options)
    (changed,) = of_group(live, "streams-left")
    path.write_bytes(plan_of(live, "--group", "streams-left", "--at", str(changed["commitTimestamp"] - 1)))
    live.tool(STREAMS_GROUPS, *options)
    (after,) = of_group(live, "streams-left")
    compared.rows("after the plan of a streams group", [before["offset"]], [after["offset"]])
    assert changed["offset"] != before["offset"]


def without_epoch(row: tuple[str, ...]) -> tuple[str, ...]:
    """Return a row without leader epoch, which the tool's own resets lack."""
    return (*row[:3], *row[4:])


# --- expired commits -------------------------------------------------------------------------------------------------


def test_expired_commits_are_gone_when_the_broker_has_removed_them(live: OneBroker, compared: Compared) -> None:
    """Comes last: the clients end, and the broker restarts with frequent checks for expired commits."""
    live.running.close()
    properties = live.broker.work / "server.properties"
    properties.write_text(f"{properties.read_text()}offsets.retention.check.interval.ms=500\n")
    with live.broker.running("again"):
        wait_until(lambda: "expired" not in {row[0] for row in describe_group(live)}, "the commits have expired")
        compared.rows("after a restart", describe_group(live), committed_rows(live))
    stopped = committed_rows(live)
    assert "expired" not in {row[0] for row in stopped}
