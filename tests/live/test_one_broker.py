"""kseg's results from the disks of a running broker equal those of Kafka's own tools, row by row.

Needs Java and Maven. The broker has two log directories. Transactions are committed, aborted, open, and hanging:
written past the coordinator, as a client's late request was before brokers verified these.
"""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from tests import run
from tests.live.compared import Compared
from tests.live.one_broker import TOOLS, OneBroker
from tests.live.wire import write_late
from tests.log.real_broker import PATIENCE, RELEASE, new_broker, served_records

pytestmark = pytest.mark.kafka

LATE_PRODUCER = 4_000_000
"""A producer id that no coordinator issued."""
HOUR_MS = 3_600_000
DELETED = 10
"""The offset of plain-0 below which records are deleted."""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OneBroker]:
    second = tmp_path_factory.mktemp("disks") / "disk2"
    settings = {
        "transaction.partition.verification.enable": "false",
        "auto.create.topics.enable": "false",
        "log.flush.start.offset.checkpoint.interval.ms": 500,
        "offsets.topic.num.partitions": 5,
        "transaction.state.log.num.partitions": 5,
    }
    broker = new_broker(tmp_path_factory, settings, log_dirs=[second])
    disks = (broker.logs, second)
    with ExitStack() as running:
        running.enter_context(broker.running("live"))
        made = OneBroker(broker, disks, int(time.time() * 1000) - HOUR_MS, running)
        make_topics(made)
        make_transactions(made, running)
        make_groups(made, running)
        yield made


def make_topics(cluster: OneBroker) -> None:
    from confluent_kafka import Producer, TopicPartition
    from confluent_kafka.admin import AdminClient, NewTopic

    admin = AdminClient({"bootstrap.servers": cluster.server})
    wanted = [
        NewTopic("pay", 6, 1),
        NewTopic("plain", 4, 1),
        NewTopic("compacted", 2, 1, config={"cleanup.policy": "compact"}),
    ]
    for future in admin.create_topics(wanted).values():
        future.result(PATIENCE)
    producer = Producer({"bootstrap.servers": cluster.server, "linger.ms": 0})
    for number in range(200):
        topic, partition = (("plain", number % 3), ("compacted", number % 2))[number % 5 == 0]
        producer.produce(
            topic, b"%d" % number, b"%d" % (number % 7), partition, timestamp=cluster.hour_ago + number * 100
        )
    producer.flush(PATIENCE)
    for future in admin.delete_records([TopicPartition("plain", 0, DELETED)]).values():
        future.result(PATIENCE)
    named = f"plain 0 {DELETED}"
    end = time.monotonic() + PATIENCE
    while not any(
        named in path.read_text() for disk in cluster.disks for path in disk.glob("log-start-offset-checkpoint")
    ):
        assert time.monotonic() < end, "no checkpoint names the deletion"
        time.sleep(0.2)


# --- transactions ----------------------------------------------------------------------------------------------------


def make_transactions(cluster: OneBroker, clients: ExitStack) -> None:
    """Make three committed, two aborted, two open and four hanging transactions.

    The open ones are an hour old by their records' timestamps.
    """
    for number in range(5):
        producer = transactional(cluster, f"done-{number}")
        write(producer, number, cluster.hour_ago + number)
        (producer.commit_transaction if number < 3 else producer.abort_transaction)(PATIENCE)
    for number in range(2):
        producer = transactional(cluster, f"open-{number}")
        write(producer, number, cluster.hour_ago + 50 + number)
        clients.callback(producer.abort_transaction, PATIENCE)
    now = int(time.time() * 1000)
    write_late(cluster.broker.port, "pay", 3, LATE_PRODUCER, 0, cluster.hour_ago)
    write_late(cluster.broker.port, "pay", 4, LATE_PRODUCER, 0, now)
    write_late(cluster.broker.port, "pay", 0, LATE_PRODUCER + 1, 7, cluster.hour_ago)
    known = {row["TransactionalId"]: row for row in cluster.table("TransactionsCommand", "list")}
    write_late(cluster.broker.port, "pay", 5, int(known["done-3"]["ProducerId"]), 9, cluster.hour_ago)


def transactional(cluster: OneBroker, name: str) -> Any:
    from confluent_kafka import Producer

    settings = {"bootstrap.servers": cluster.server, "transactional.id": name, "transaction.timeout.ms": 900_000}
    producer = Producer({**settings, "linger.ms": 0})
    producer.init_transactions(PATIENCE)
    producer.begin_transaction()
    return producer


def write(producer: Any, number: int, timestamp: int) -> None:
    for partition in {number % 3, (number + 1) % 3}:
        producer.produce("pay", b"value", b"key", partition, timestamp=timestamp)
    producer.flush(PATIENCE)


@pytest.mark.parametrize("minutes", [15, 0, 120])
def test_the_same_transactions_hang(minutes: int, cluster: OneBroker, compared: Compared) -> None:
    arguments = ("find-hanging", "--broker-id", "1", "--max-transaction-timeout", str(minutes))
    theirs = cluster.table("TransactionsCommand", *arguments)
    ours = cluster.kseg("txns", "--open", "--now", "now", "--transaction-max-timeout-ms", str(minutes * 60_000))
    fields = ("Topic", "Partition", "ProducerId", "ProducerEpoch", "CoordinatorEpoch", "StartOffset", "LastTimestamp")
    names = ("topic", "partition", "producerId", "producerEpoch", "coordinatorEpoch", "firstOffset", "lastTimestamp")
    compared.rows(
        f"find-hanging {minutes}",
        (tuple(row[field] for field in fields) for row in theirs),
        (
            tuple(str(-1 if row[name] is None else row[name]) for name in names)
            for row in ours
            if row["type"] == "transaction" and row["isHanging"]
        ),
    )
    assert {15: 3, 0: 4, 120: 0}[minutes] == len(theirs)


def test_verify_finds_what_hangs(cluster: OneBroker, compared: Compared) -> None:
    """Its only reference time is the newest that the broker wrote."""
    theirs = cluster.table("TransactionsCommand", "find-hanging", "--broker-id", "1")
    ran = run.kseg(["verify", *map(str, cluster.disks), "-o", "json"], cluster.broker.work)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    ours = (
        (Path(each["file"]).parent.name, str(each["firstOffset"]))
        for each in found
        if each.get("id") == "hanging-transaction"
    )
    compared.rows("verify", ((f"{row['Topic']}-{row['Partition']}", row["StartOffset"]) for row in theirs), ours)


def test_transactional_ids_are_those_that_are_listed_and_described(cluster: OneBroker, compared: Compared) -> None:
    listed = cluster.table("TransactionsCommand", "list")
    ours = {row["transactionalId"]: row for row in cluster.kseg("txns") if row["type"] == "coordinatorTransaction"}
    compared.rows(
        "list",
        ((row["TransactionalId"], row["ProducerId"], row["TransactionState"]) for row in listed),
        ((name, str(row["producerId"]), row["state"]) for name, row in ours.items()),
    )
    for name in ("done-0", "done-4", "open-0", "open-1"):
        (theirs,) = cluster.table("TransactionsCommand", "describe", "--transactional-id", name)
        row = ours[name]
        start = "None" if row["startTimestamp"] is None else str(row["startTimestamp"])
        own = (row["producerEpoch"], row["state"], row["timeoutMs"], start, tuple(sorted(row["transactionPartitions"])))
        partitions = tuple(sorted(filter(None, theirs.get("TopicPartitions", "").split(","))))
        fields = ("ProducerEpoch", "TransactionState", "TransactionTimeoutMs")
        wanted = (*(theirs[field] for field in fields), theirs["CurrentTransactionStartTimeMs"], partitions)
        compared.rows(
            f"describe {name}", [wanted], [tuple(each if isinstance(each, tuple) else str(each) for each in own)]
        )


# --- groups ----------------------------------------------------------------------------------------------------------


def make_groups(cluster: OneBroker, clients: ExitStack) -> None:
    """Make a classic group and a newer one with two members each, and a group that only committed."""
    from confluent_kafka import Consumer, TopicPartition

    for protocol in ("classic", "consumer"):
        settings = {"bootstrap.servers": cluster.server, "group.id": f"g-{protocol}", "group.protocol": protocol}
        members = [Consumer({**settings, "enable.auto.commit": False, "client.id": f"c-{one}"}) for one in "ab"]
        for member in members:
            member.subscribe(["plain", "compacted"])
            clients.callback(member.close)
        end = time.monotonic() + PATIENCE
        while sum(len(member.assignment()) for member in members) < 6 or not all(each.assignment() for each in members):
            assert time.monotonic() < end, "the group didn't settle"
            for member in members:
                member.poll(0.2)
        for member in members:
            member.commit(
                offsets=[TopicPartition(each.topic, each.partition, 3) for each in member.assignment()],
                asynchronous=False,
            )
    make_java_groups(cluster, clients)
    alone = Consumer({"bootstrap.servers": cluster.server, "group.id": "g-alone"})
    alone.commit(offsets=[TopicPartition("pay", number, number) for number in range(3)], asynchronous=False)
    alone.close()


def make_java_groups(cluster: OneBroker, clients: ExitStack) -> None:
    """Make a streams group and a share group, which need Java's clients; and a transaction of version 2."""
    from kafka_classes import KafkaClasses

    work = cluster.broker.work / "streams"
    work.mkdir()
    slf4j = f"org.slf4j:slf4j-simple:{cluster.broker.tools.SLF4J}"
    java = KafkaClasses([f"org.apache.kafka:kafka-streams:{RELEASE}", slf4j], [], work)
    application = str(Path(__file__).parent / "StreamsApp.java")
    start(java.command(application, cluster.server, "g-streams", str(work / "state"), "plain"), clients)
    consumer = f"{TOOLS}.consumer.ConsoleShareConsumer"
    arguments = ("--bootstrap-server", cluster.server, "--topic", "plain", "--group", "g-share")
    start(cluster.broker.kafka.command(consumer, *arguments), clients)
    settings = ("--num-records", "50", "--record-size", "10", "--throughput", "-1", "--transactional-id", "version-2")
    cluster.tool("ProducerPerformance", "--topic", "pay", *settings, "--transaction-duration-ms", "50")
    end = time.monotonic() + 2 * PATIENCE
    while not {"g-streams", "g-share"} <= settled_groups(cluster):
        assert time.monotonic() < end, "the groups of Java's clients didn't settle"
        time.sleep(0.5)


def settled_groups(cluster: OneBroker) -> set[str]:
    """Return the groups whose members have their target partitions."""
    return {
        row["group"]
        for row in cluster.kseg("groups", "--show", "members")
        if row["assignment"] and row["assignment"] == row["targetAssignment"]
    }


def start(command: list[str], clients: ExitStack) -> None:
    """Run a client until the end; its input stays open until then."""
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    clients.callback(process.wait)
    clients.callback(process.terminate)


GROUPS = "consumer.group.ConsumerGroupCommand"


def of_types(cluster: OneBroker, show: str, *types: str) -> list[dict[str, Any]]:
    """Return rows of the groups of some types: each type has a tool of its own."""
    names = {row["group"] for row in cluster.kseg("groups", "--show", "groups") if row["groupType"] in types}
    return [row for row in cluster.kseg("groups", "--show", show) if row["group"] in names]


CONSUMERS = ("classic", "consumer")


def test_groups_have_the_same_offsets(cluster: OneBroker, compared: Compared) -> None:
    theirs = cluster.table(GROUPS, "--describe", "--all-groups", "--offsets")
    ours = of_types(cluster, "commits", *CONSUMERS)
    fields = ("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET")
    compared.rows(
        "groups' offsets",
        (tuple(row[name] for name in fields) for row in theirs if row["CURRENT-OFFSET"] != "-"),
        (tuple(str(row[name]) for name in ("group", "topic", "partition", "offset")) for row in ours),
    )


def test_groups_have_the_same_states_epochs_and_assignors(cluster: OneBroker, compared: Compared) -> None:
    theirs = cluster.table(GROUPS, "--describe", "--all-groups", "--state", "--verbose")
    ours = of_types(cluster, "groups", *CONSUMERS)
    fields = ("GROUP", "ASSIGNMENT-STRATEGY", "STATE", "GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH", "#MEMBERS")
    compared.rows(
        "groups' states",
        (tuple(row[name] for name in fields) for row in theirs),
        (
            (
                row["group"],
                row["protocol"] or row["assignor"] or "-",
                row["state"],
                "-" if row["groupType"] == "classic" else str(row["epoch"]),
                "-" if row["assignmentEpoch"] is None else str(row["assignmentEpoch"]),
                str(row["members"]),
            )
            for row in ours
        ),
    )


def assignment(topics: list[dict[str, Any]] | None) -> str:
    """Return topics and partitions in the tool's form."""
    return ";".join(f"{each['topic']}:{','.join(map(str, each['partitions']))}" for each in topics or ())


def test_groups_have_the_same_members(cluster: OneBroker, compared: Compared) -> None:
    theirs = cluster.table(GROUPS, "--describe", "--all-groups", "--members", "--verbose")
    ours = of_types(cluster, "members", *CONSUMERS)
    fields = ("GROUP", "CONSUMER-ID", "HOST", "CLIENT-ID", "CURRENT-EPOCH", "CURRENT-ASSIGNMENT")
    compared.rows(
        "members",
        ((*(row[name] for name in fields), row.get("TARGET-ASSIGNMENT", "")) for row in theirs),
        (
            (
                *(row[name] for name in ("group", "memberId", "clientHost", "clientId")),
                "-" if row["epoch"] is None else str(row["epoch"]),
                assignment(row["assignment"]),
                "-" if row["targetAssignment"] is None else assignment(row["targetAssignment"]),
            )
            for row in ours
        ),
    )


@pytest.mark.parametrize(
    ("kind", "tool", "epoch"),
    [
        ("streams", "streams.StreamsGroupCommand", "TARGET-ASSIGNMENT-EPOCH"),
        ("share", "consumer.group.ShareGroupCommand", "ASSIGNMENT-EPOCH"),
    ],
)
def test_streams_and_share_groups_are_as_their_tools_have_them(
    kind: str, tool: str, epoch: str, cluster: OneBroker, compared: Compared
) -> None:
    theirs = cluster.table(tool, "--describe", "--all-groups", "--state", "--verbose")
    compared.rows(
        f"{kind} groups' states",
        (tuple(row[name] for name in ("GROUP", "STATE", "GROUP-EPOCH", epoch, "#MEMBERS")) for row in theirs),
        (
            tuple(str(row[name]) for name in ("group", "state", "epoch", "assignmentEpoch", "members"))
            for row in of_types(cluster, "groups", kind)
        ),
    )
    compared.rows(
        f"{kind} groups' members",
        described_members(cluster.tool(tool, "--describe", "--all-groups", "--members", "--verbose")),
        (
            (row["group"], row["memberId"], row["clientId"], str(row["epoch"]), has(row["assignment"]))
            for row in of_types(cluster, "members", kind)
        ),
    )


def described_members(lines: list[str]) -> Iterator[tuple[str, ...]]:
    """Yield group, member, client, epoch and assignment from the tables of both tools."""
    titles = next(line.split() for line in lines if line.strip())
    member = "MEMBER" if "MEMBER" in titles else "CONSUMER-ID"
    for line in lines:
        cells = line.split(maxsplit=len(titles) - 1)
        if cells and cells[0] != "GROUP":
            row = dict(zip(titles, cells, strict=False))
            held = row.get("ASSIGNMENTS", row.get("ASSIGNMENT", "")).split("TARGET-")[0].rstrip("; ")
            yield row["GROUP"], row[member], row["CLIENT-ID"], row["MEMBER-EPOCH"], held


def has(assigned: list[dict[str, Any]]) -> str:
    """Return tasks or partitions in the tools' forms."""
    if assigned and "kind" in assigned[0]:
        tasks = (f"{each['subtopologyId']}:[{','.join(map(str, each['partitions']))}]" for each in assigned)
        return f"ACTIVE: {'; '.join(tasks)}"
    return assignment(assigned)


# --- offsets, sizes, places ------------------------------------------------------------------------------------------


def partitions(cluster: OneBroker) -> list[dict[str, Any]]:
    """Return partitions of all topics; the tools don't know the metadata log."""
    rows = (row for row in cluster.kseg("ls") if row["type"] == "partition")
    return [row for row in rows if row["topic"] != "__cluster_metadata"]


@pytest.mark.parametrize("when", ["-1", "-2", "-3", "-4", "-5", 5_000, 15_000, 3 * HOUR_MS])
def test_lookups_give_the_offsets_that_the_broker_gives(
    when: str | int, cluster: OneBroker, compared: Compared
) -> None:
    moment = when if isinstance(when, str) else str(cluster.hour_ago + when)
    theirs = [tuple(line.split(":")) for line in cluster.tool("GetOffsetShell", "--time", moment)]
    ours = []
    for row in partitions(cluster):
        ran = run.kseg(["lookup", row["directory"], "--timestamp", moment, "-o", "json"], cluster.broker.work)
        offset = json.loads(ran.stdout)["offset"]
        if offset is not None:
            ours.append((row["topic"], str(row["partition"]), str(offset)))
    compared.rows(f"offsets at {when}", theirs, ours)


def test_partitions_have_their_sizes_and_lie_where_the_broker_says(cluster: OneBroker, compared: Compared) -> None:
    (described,) = (json.loads(line) for line in cluster.tool("LogDirsCommand", "--describe") if line.startswith("{"))
    theirs = [
        (str(Path(log_dir["logDir"])), each["partition"], each["size"])
        for log_dir in described["brokers"][0]["logDirs"]
        for each in log_dir["partitions"]
    ]
    rows = partitions(cluster)
    ours = [(str(Path(row["directory"]).parent), Path(row["directory"]).name, row["bytes"]) for row in rows]
    compared.rows("log directories", theirs, ours)
    told = [
        (place["path"], f"{row['topic']}-{row['partition']}")
        for row in cluster.kseg("metadata", "--show", "partitions")
        for place in row["directories"]
    ]
    compared.rows("places of replicas", [row[:2] for row in theirs], told)


def test_metadata_are_those_that_the_broker_describes(cluster: OneBroker, compared: Compared) -> None:
    theirs = []
    for line in cluster.tool("TopicCommand", "--describe"):
        fields = dict(zip(words := line.split(), words[1:], strict=False))
        if "Partition:" in fields:
            theirs.append(tuple(fields[f"{name}:"] for name in ("Topic", "Partition", "Leader", "Replicas", "Isr")))
    ours = (
        (
            row["topic"],
            *(str(row[name]) for name in ("partition", "leader")),
            *(",".join(map(str, row[name])) for name in ("replicas", "isr")),
        )
        for row in cluster.kseg("metadata", "--show", "partitions")
    )
    compared.rows("topics' partitions", theirs, ours)


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_records_are_those_that_a_consumer_gets(isolation: str, cluster: OneBroker, compared: Compared) -> None:
    for topic in ("pay", "plain", "compacted"):
        served = served_records(cluster.broker.port, topic, isolation)
        (place,) = (row["directory"] for row in partitions(cluster) if (row["topic"], row["partition"]) == (topic, 0))
        start = "0" if topic != "plain" else str(DELETED)
        arguments = (
            ["--isolation", isolation, "--no-control"]
            if isolation == "read_uncommitted"
            else ["--isolation", isolation]
        )
        ran = run.kseg(
            ["dump", place, *arguments, "--from-offset", start, "--template", "{offset} {timestamp}"],
            cluster.broker.work,
        )
        ours = [tuple(map(int, line.split())) for line in ran.stdout.splitlines()]
        compared.rows(f"{isolation} of {topic}", (record[:2] for record in served), ours)


# --- advice ----------------------------------------------------------------------------------------------------------


def test_lines_that_abort_are_for_what_hangs_alone_and_are_taken(cluster: OneBroker) -> None:
    """Comes after the comparisons: then nothing hangs any more, and open transactions stay open."""
    open_before = {(row["partition"], row["producerId"]) for row in hanging(cluster, is_hanging=False)}
    lines = [row["abortCommand"] for row in hanging(cluster, is_hanging=True)]
    assert len(lines) == 4
    for line in lines:
        _, _, server, *arguments = line.split()
        assert server == "localhost:9092"
        cluster.tool("TransactionsCommand", *arguments)
    assert hanging(cluster, is_hanging=True) == []
    assert {(row["partition"], row["producerId"]) for row in hanging(cluster, is_hanging=False)} == open_before


def test_verify_finds_nothing_where_the_broker_was_stopped(cluster: OneBroker) -> None:
    """Comes last: nothing hangs any more, and the clients end before the broker."""
    cluster.running.close()
    ran = run.kseg(["verify", *map(str, cluster.disks)], cluster.broker.work)
    assert ran.stdout.decode().splitlines()[-1:] == ["ok"], ran.stdout.decode()
    assert ran.status == 0


def hanging(cluster: OneBroker, *, is_hanging: bool) -> list[dict[str, Any]]:
    arguments = ("--open", "--now", "now", "--transaction-max-timeout-ms", "0")
    rows = (row for row in cluster.kseg("txns", *arguments) if row["type"] == "transaction")
    return [row for row in rows if row["isHanging"] is is_hanging]
