"""kseg's results from a live cluster's disks equal those of the brokers' own tools. Needs Java and Maven.

Three brokers with two log directories each; groups of all kinds with their members; Streams applications. Transactions
of both versions (ended, open with producers' old timestamps, hanging). Records are deleted, partitions moved, topics
compacted, and one broker is killed. The disks are copied during all of that, and read again once the brokers were
stopped.
"""

import json
import shutil
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from struct import pack
from typing import Any, NamedTuple

import pytest

from tests import run
from tests.live.cluster import NODES, Cluster
from tests.live.compared import Compared
from tests.live.oracles import TIMES, Oracles, Row, TopicPartition
from tests.releases import NEWEST_TWO

pytestmark = pytest.mark.kafka

KILLED = 2
MOVED_TO = 1
"""The broker to whose second log directory partitions are moved."""
HOURS_AGO = 7_200_000


class Observed(NamedTuple):
    """The tools' output, and the disks: copied while the brokers ran, and after they were stopped."""

    group_states: list[Row]
    group_types: list[Row]
    group_members: list[Row]
    commits: list[Row]
    share_offsets: list[Row]
    transactions: list[Row]
    open_transactions: list[Row]
    hanging: list[Row]
    offsets: dict[str, dict[tuple[str, int], int | None]]
    sizes: dict[tuple[int, str, str], int]
    partitions: list[TopicPartition]
    live: dict[int, tuple[Path, ...]]
    stopped: dict[int, tuple[Path, ...]]


@pytest.fixture(scope="module", params=NEWEST_TWO)
def observed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Observed:
    work = tmp_path_factory.mktemp("live")
    # With verification nothing hangs.
    cluster = Cluster(request.param, work, {"transaction.partition.verification.enable": "false"})
    try:
        cluster.start(*NODES)
        cluster.run("Workload", cluster.bootstrap, "fill")
        cluster.kill(KILLED)
        cluster.start(KILLED)
        cluster.run("Workload", cluster.bootstrap, "change", str(cluster.nodes[MOVED_TO].log_dirs[1]))
        with cluster.working():
            _leave_hanging(cluster, work)
            seen = _observe(cluster, work)
    finally:
        cluster.stop()
    return seen._replace(stopped={node.id: node.log_dirs for node in cluster.nodes.values()})


def _leave_hanging(cluster: Cluster, work: Path) -> None:
    """Leave open transactions of producers that no coordinator knows, as after a lost marker."""
    (leader,) = (row.leader for row in Oracles(cluster).partitions() if row.topic == "hanging")
    for producer_id, age in ((9001, HOURS_AGO), (9002, 2 * HOURS_AGO)):
        built = work / f"hanging-{producer_id}"
        when = int(time.time() * 1000) - age
        options = f"--producer-id {producer_id} --producer-epoch 3 --transaction open --timestamp {when}".split()
        options += ["--input-format", "text"]
        (work / "values").write_text("one\ntwo\n")
        assert run.kseg(["build", str(work / "values"), *options, "-q", "--to", str(built)], work).status == 0
        _produce(cluster.nodes[leader].port, "hanging", (built / "00000000000000000000.log").read_bytes())


def _produce(port: int, topic: str, records: bytes) -> None:
    """Produce with version 8 to partition 0, acknowledged by all replicas."""
    header = pack(">hhih4s", 0, 8, 0, 4, b"test")
    name = topic.encode()
    asked = pack(">h5shi", 5, b"ghost", -1, 30_000) + pack(">ih", 1, len(name)) + name
    asked += pack(">iii", 1, 0, len(records)) + records
    with socket.create_connection(("127.0.0.1", port)) as connection:
        connection.sendall(pack(">i", len(header + asked)) + header + asked)
        answer = connection.recv(4096)
    (error,) = {int.from_bytes(answer[18 + len(name) : 20 + len(name)], "big")}
    assert error == 0, f"the broker refuses the batch: {error}"


def _observe(cluster: Cluster, work: Path) -> Observed:
    oracles = Oracles(cluster)
    transactions = oracles.transactions()
    going_on = [row["TransactionalId"] for row in transactions if row["TransactionState"] == "Ongoing"]
    seen = Observed(
        group_states=oracles.group_states(),
        group_types=oracles.group_types(),
        group_members=oracles.group_members(),
        commits=oracles.commits(),
        share_offsets=oracles.share_offsets(),
        transactions=transactions,
        open_transactions=[oracles.transaction(transactional_id) for transactional_id in going_on],
        hanging=[row for node in NODES for row in oracles.hanging(node)],
        offsets={time: oracles.offsets(code) for time, code in TIMES.items()},
        sizes=oracles.sizes(),
        partitions=oracles.partitions(),
        live={},
        stopped={},
    )
    for node in cluster.nodes.values():
        for log_dir in node.log_dirs:
            shutil.copytree(log_dir, work / "live" / str(node.id) / log_dir.name)
    return seen._replace(live={number: tuple(sorted((work / "live" / str(number)).iterdir())) for number in NODES})


# --- comparing -------------------------------------------------------------------------------------------------------


def rows_of(*arguments: str | Path, kind: str | None) -> list[dict[str, Any]]:
    """Return kseg's JSON output."""
    ran = run.kseg([*map(str, arguments), "-o", "json"], Path.cwd())
    assert ran.status in (0, 1), ran.stderr.decode()
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    return [row for row in rows if row.get("type") == kind]


BOTH = pytest.mark.parametrize("when", ["live", "stopped"])


def disks(observed: Observed, when: str) -> dict[int, tuple[Path, ...]]:
    return observed.live if when == "live" else observed.stopped


@BOTH
def test_verify_finds_nothing_wrong_but_what_hangs(observed: Observed, when: str) -> None:
    for number, log_dirs in disks(observed, when).items():
        for log_dir in log_dirs:
            ran = run.kseg(["verify", str(log_dir), "-o", "json"], log_dir)
            found = [json.loads(line) for line in ran.stdout.splitlines()]
            alarms = {row["id"] for row in found if row.get("severity") in ("warning", "error")}
            assert alarms <= {"hanging-transaction"}, (number, log_dir.name)
            assert ran.status == int(bool(alarms))
            assert found[-1]["partitions"] == len([path for path in log_dir.iterdir() if path.is_dir()])


@BOTH
def test_groups_and_their_states(observed: Observed, compared: Compared, when: str) -> None:
    types = {row["GROUP"]: row["TYPE"].lower() for row in observed.group_types}
    told = [(row["GROUP"], types[row["GROUP"]], row["STATE"], int(row["#MEMBERS"])) for row in observed.group_states]
    assert len(types) == len(told)
    for log_dirs in disks(observed, when).values():
        found = rows_of("groups", *log_dirs, kind="group")
        compared.rows("groups", told, [(row["group"], row["groupType"], row["state"], row["members"]) for row in found])


@BOTH
def test_commits(observed: Observed, compared: Compared, when: str) -> None:
    told = [
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"]), int(row["CURRENT-OFFSET"]))
        for row in observed.commits
        if row["CURRENT-OFFSET"] != "-"
    ]
    for log_dirs in disks(observed, when).values():
        found = rows_of("groups", *log_dirs, kind="commit")
        # Another tool shows a Streams group's commits, with lags alone.
        own = [row for row in found if row["group"] != "streams-new" and row["pendingProducerId"] is None]
        compared.rows("commits", told, [(row["group"], row["topic"], row["partition"], row["offset"]) for row in own])


def ends_and_lags(log_dirs: Iterable[Path]) -> list[tuple[object, ...]]:
    """Return ends and lags of the commits that the tool shows, unless unknown."""
    names = ("group", "topic", "partition", "logEndOffset", "lag")
    rows = [row for row in rows_of("groups", *log_dirs, kind="commit") if row["group"] != "streams-new"]
    return [tuple(row[name] for name in names) for row in rows if row["lag"] is not None]


def test_lags_by_the_disks_of_all_brokers_and_of_each(observed: Observed, compared: Compared) -> None:
    told = {
        (row["GROUP"], row["TOPIC"], int(row["PARTITION"])): (int(row["LOG-END-OFFSET"]), int(row["LAG"]))
        for row in observed.commits
        if row["CURRENT-OFFSET"] != "-"
    }
    everywhere = [log_dir for log_dirs in observed.live.values() for log_dir in log_dirs]
    compared.rows("lags", [(*place, *ends) for place, ends in told.items()], ends_and_lags(everywhere))
    for log_dirs in observed.live.values():
        found = ends_and_lags(log_dirs)
        compared.rows("lags by one broker", [(*row[:3], *told[row[:3]]) for row in found], found)
        assert found


def test_share_groups_offsets(observed: Observed, compared: Compared) -> None:
    fields = ("GROUP", "TOPIC", "PARTITION", "START-OFFSET", "LAG")
    names = ("group", "topic", "partition", "startOffset", "lag")
    for log_dirs in observed.live.values():
        rows = rows_of("groups", *log_dirs, kind="sharePartition")
        found = (tuple("-" if row[name] is None else str(row[name]) for name in names) for row in rows)
        compared.rows(
            "share-partitions", (tuple(row[name] for name in fields) for row in observed.share_offsets), found
        )


@BOTH
def test_transactions_of_the_coordinator(observed: Observed, compared: Compared, when: str) -> None:
    told = [(row["TransactionalId"], int(row["ProducerId"]), row["TransactionState"]) for row in observed.transactions]
    for log_dirs in disks(observed, when).values():
        found = rows_of("txns", *log_dirs, kind="coordinatorTransaction")
        compared.rows(
            "transactions", told, [(row["transactionalId"], row["producerId"], row["state"]) for row in found]
        )


@BOTH
def test_open_transactions(observed: Observed, compared: Compared, when: str) -> None:
    told = [
        (
            row["TransactionalId"],
            int(row["ProducerEpoch"]),
            int(row["TransactionTimeoutMs"]),
            int(row["CurrentTransactionStartTimeMs"]),
            frozenset(row["TopicPartitions"].split(",")),
        )
        for row in observed.open_transactions
    ]
    for log_dirs in disks(observed, when).values():
        rows = [row for row in rows_of("txns", *log_dirs, kind="coordinatorTransaction") if row["isOpen"]]
        found = [
            (
                row["transactionalId"],
                row["producerEpoch"],
                row["timeoutMs"],
                row["startTimestamp"],
                frozenset(row["partitions"]),
            )
            for row in rows
        ]
        compared.rows("open transactions", told, found)


@BOTH
def test_hanging_transactions(observed: Observed, compared: Compared, when: str) -> None:
    numbers = "Partition", "ProducerId", "ProducerEpoch", "StartOffset"
    told = {(row["Topic"], *(int(row[name]) for name in numbers)) for row in observed.hanging}  # each replica has it
    names = "topic", "partition", "producerId", "producerEpoch", "firstOffset"
    for log_dirs in disks(observed, when).values():
        rows = [row for row in rows_of("txns", *log_dirs, kind="transaction") if row["isHanging"]]
        compared.rows("hanging transactions", told, [tuple(row[name] for name in names) for row in rows])


@pytest.mark.parametrize("time", TIMES)
def test_offsets_at_special_times(observed: Observed, compared: Compared, time: str) -> None:
    leaders = {(row.topic, row.partition): row.leader for row in observed.partitions}
    told, found = [], []
    for (topic, number), offset in observed.offsets[time].items():
        told.append((topic, number, offset))
        (log_dir,) = (path for path in observed.live[leaders[topic, number]] if (path / f"{topic}-{number}").is_dir())
        (row,) = rows_of("lookup", log_dir / f"{topic}-{number}", "--timestamp", time, "-q", kind=None)
        found.append((topic, number, row["offset"]))
    compared.rows(f"offsets at {time}", told, found)


def test_sizes(observed: Observed, compared: Compared) -> None:
    told = [(broker, Path(log_dir).name, name, size) for (broker, log_dir, name), size in observed.sizes.items()]
    found = []
    for number, log_dirs in observed.live.items():
        for log_dir in log_dirs:
            for row in rows_of("ls", log_dir, kind="partition"):
                name = f"{row['topic']}-{row['partition']}"
                if name != "__cluster_metadata-0":  # the tool omits it
                    found.append((number, log_dir.name, name, row["bytes"]))
    compared.rows("sizes", told, found)


@BOTH
def test_partitions_of_the_metadata(observed: Observed, compared: Compared, when: str) -> None:
    told = [(row.topic, row.topic_id, row.partition, row.replicas) for row in observed.partitions]
    for log_dirs in disks(observed, when).values():
        rows = rows_of("metadata", *log_dirs, kind="partition")
        found = [(row["topic"], row["topicId"], row["partition"], tuple(row["replicas"])) for row in rows]
        compared.rows("partitions", told, found)
        if when == "live":
            leaders = [(row.topic, row.partition, row.leader, frozenset(row.isr)) for row in observed.partitions]
            found_leaders = [(row["topic"], row["partition"], row["leader"], frozenset(row["isr"])) for row in rows]
            compared.rows("leaders", leaders, found_leaders)


def copies_by(observed: Observed, when: str, *brokers: int) -> dict[tuple[str, int], dict[str, Any]]:
    """Return `verify --cluster`'s results for the cluster's partitions, by the disks of some brokers."""
    paths = [log_dir for broker in brokers for log_dir in disks(observed, when)[broker]]
    rows = rows_of("verify", "--cluster", *paths, kind="partition")
    return {(row["topic"], row["partition"]): row for row in rows}


@BOTH
def test_disks_of_all_brokers_are_enough(observed: Observed, when: str) -> None:
    found = copies_by(observed, when, *NODES)
    assert {place: set(row["replicas"]) for place, row in found.items()} == {
        (row.topic, row.partition): set(row.replicas) for row in observed.partitions
    }
    assert {row["verdict"] for row in found.values()} == {"enough"}
    assert {
        place: row for place, row in found.items() if row["absent"] or row["otherTopics"] or row["missingOffsets"]
    } == {}


@BOTH
@pytest.mark.parametrize("broker", NODES)
def test_disks_of_one_broker_are_enough_for_what_it_had_in_sync(
    observed: Observed, compared: Compared, when: str, broker: int
) -> None:
    found = copies_by(observed, when, broker)
    told = []
    for row in observed.partitions:
        verdict = "missing" if broker not in row.replicas else "enough" if broker in row.isr else "behind"
        told.append((row.topic, row.partition, verdict))
    compared.rows("verdicts", told, ((*place, row["verdict"]) for place, row in found.items()))
