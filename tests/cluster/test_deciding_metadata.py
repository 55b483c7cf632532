"""The cluster's metadata decide the same for every command, wherever they are."""

import json
import re
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import kseg
from kseg.formats.messages import ZERO_UUID
from kseg.formats.schemas import message_schema
from tests.cluster.made_metadata import BROKER, TOPIC, Setting, write_id
from tests.cluster.made_metadata import write_metadata as write_topics
from tests.cluster.questions import (
    ask_dump,
    ask_joined,
    ends_by_query,
    lines,
    of_rows,
)
from tests.cluster.test_consistency import BEFORE, CURRENT, upload
from tests.commands.made_transactions import coordinator_records
from tests.commands.test_plan_move import frame_record
from tests.coordinators.coordinators import commit
from tests.log.edits import write_bytes
from tests.log.replicas import Part, replica
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg as run

OF_ONE_BROKER = {"resourceType": 4, "resourceName": "1", "name": "log.segment.bytes", "value": "1000000"}


AS_JSON_NOW = ("-o", "json", "--now", "now")


@pytest.fixture
def three_nodes(tmp_path: Path) -> Path:
    """Two brokers and a controller; its metadata has only the second broker in sync; the records of a tier on it."""
    root = tmp_path / "bundle" / "disks"
    kept, new, lost = Part(3, 0, 80, "kept"), Part(5, 80, 25, "new"), Part(3, 80, 10, "led")
    for number, (broker, parts) in enumerate({"b1": (kept, new), "b2": (kept, lost), "ctl": ()}.items(), 1):
        (root / broker).mkdir(parents=True)
        if parts:
            write_id(replica(root / broker, parts), CURRENT)
        (root / broker / "meta.properties").write_text(f"version=1\nnode.id={number}\ncluster.id=c\n", encoding="utf-8")
    write_segment(root / "b1" / "orders-7", [NewBatch([NewRecord(b"k", b"old")])])
    write_id(root / "b1" / "orders-7", BEFORE)
    write_metadata(root / "ctl", isr=[2])
    return root


def write_metadata(log_dir: Path, *, epoch: int = 0, settings: int = 1, **of_partition: object) -> None:
    """Write the metadata of the two brokers and of the topic `orders`, with some fields of its only partition.

    epoch: the controllers' that wrote them. settings: the number of times that the topic's is set.
    """
    partition = {"partitionId": 0, "topicId": CURRENT, "replicas": [1, 2], "isr": [], "leader": 2, "leaderEpoch": 5}
    empty = {"partitionEpoch": 0, "removingReplicas": [], "addingReplicas": [], "directories": [ZERO_UUID, ZERO_UUID]}
    setting = {"resourceType": 2, "resourceName": "orders", "name": "retention.ms", "value": "1000"}
    records = [
        *(frame_record(message_schema("RegisterBrokerRecord"), {"brokerId": broker}, 0) for broker in (1, 2)),
        frame_record(message_schema("TopicRecord"), {"name": "orders", "topicId": CURRENT}),
        frame_record(message_schema("PartitionRecord"), partition | empty | of_partition, 2),
        *(frame_record(message_schema("ConfigRecord"), setting, 0) for _ in range(settings)),
        frame_record(message_schema("ConfigRecord"), OF_ONE_BROKER, 0),
    ]
    write_segment(log_dir / "__cluster_metadata-0", [NewBatch(records, partition_leader_epoch=epoch)])


@pytest.mark.parametrize("is_abandoned_in_store", [True, False])
def test_metadata_of_the_latest_epoch_decide_wherever_they_are(
    three_nodes: Path, *, is_abandoned_in_store: bool
) -> None:
    """The other metadata is longer, but no controller continues them."""
    abandoned, right = ("store", "ctl") if is_abandoned_in_store else ("ctl", "store")
    write_metadata(three_nodes / right, epoch=2, isr=[2])
    write_metadata(three_nodes / abandoned, epoch=1, settings=9, isr=[1])
    with upload(three_nodes / "store") as up:
        ran = run(["export", up, "b1", "b2", "ctl", "../../out"], three_nodes)
    assert ran.status == 0, ran.stderr
    rows = pq.read_table(three_nodes.parents[1] / "out", columns=["topic", "partition", "offset", "value"]).to_pylist()
    assert [value for offset, value in of_rows(rows)["orders", 0] if offset >= 80] == [
        f"led {n}" for n in range(80, 90)
    ]


def report_table(told: Path, name: str, paths: tuple[str, ...], choice: tuple[str, ...]) -> list[dict[str, Any]]:
    return [row for row in lines(told, ["report", "-o", "json"], paths, choice) if row.get("table") == name]


@pytest.mark.parametrize("paths", permutations(("b1", "b2", "ctl")), ids="/".join)
def test_a_controllers_metadata_decide_whatever_is_chosen(paths: tuple[str, ...], three_nodes: Path) -> None:
    """A directory without cluster id belongs to the cluster of the one next to it."""
    (three_nodes / "ctl" / "meta.properties").unlink()
    for choice in ((), ("--topic", "orders")):
        table = report_table(three_nodes, "replicas", paths, choice)
        status = {row["logDir"]: row["status"] for row in table if row["partition"] == "orders-0"}
        assert status == {"b2": "current", "b1": "abandoned from offset 80 on"}
        kept = [row for row in lines(three_nodes, ["retain", *AS_JSON_NOW], paths, choice) if row["type"] == "segment"]
        assert {row["retention"] for row in kept if str(row["directory"]).endswith("orders-0")} == {"delete-time"}
        settings = report_table(three_nodes, "topicSettings", paths, choice)
        assert [(row["setting"], row["value"]) for row in settings] == [("retention.ms", "1000")]
    given = [f"{path}/orders-0" if path != "ctl" else path for path in paths]
    for where in (paths, given):
        asked = ["lookup", "--timestamp", "latest", "--topic", "orders", "--partition", "0", "-o", "json", *where]
        assert json.loads(run(asked, three_nodes).stdout)["offset"] == 90
    home = json.loads(run(["where", "--key", "3", "--topic", "orders", "-o", "json", *paths], three_nodes).stdout)
    assert (home["partition"], home["partitions"], sorted(home["directories"])) == (
        0,
        1,
        ["b1/orders-0", "b2/orders-0"],
    )


def in_sync_finding(told: Path, *paths: str) -> bool:
    """Return True if `verify --cluster` reports that no copy of an in-sync replica is in the given paths."""
    findings = lines(told, ["verify", "--cluster", "-o", "json", "--topic", "orders"], paths, ())
    return "no-in-sync-copy" in {row.get("id") for row in findings}


@pytest.mark.parametrize(
    ("known", "end"),
    [
        ({"isr": [2]}, 90),
        ({"eligibleLeaderReplicas": [2]}, 90),
        ({"lastKnownElr": [2]}, 90),
        ({"isr": [1], "lastKnownElr": [2]}, 105),
        ({"isr": [2], "leaderEpoch": 4}, 105),
    ],
    ids=["isr", "eligible", "eligible before", "isr first", "older metadata"],
)
def test_who_is_in_sync_is_the_same_for_all(known: dict[str, object], end: int, three_nodes: Path) -> None:
    write_metadata(three_nodes / "ctl", **known)
    asked = ["lookup", "--timestamp", "latest", "--topic", "orders", "--partition", "0", "-o", "json"]
    assert json.loads(run([*asked, "b1", "b2", "ctl"], three_nodes).stdout)["offset"] == end
    assert in_sync_finding(three_nodes, "b1", "ctl") == (end == 90)
    write_segment(three_nodes / "b1" / "__consumer_offsets-0", [NewBatch([commit("orders", 50)])])
    rows = lines(three_nodes, ["groups", "-o", "json"], ("b1", "ctl", "b1/__consumer_offsets-0"), ())
    (lag,) = (row["lag"] for row in rows if row["type"] == "commit")
    assert lag == (None if end == 90 else 55)


@pytest.mark.parametrize(("paths", "size"), [(("b1", "ctl"), 1_000_000), (("b2", "ctl"), 1 << 30)], ids=["b1", "b2"])
def test_settings_are_those_of_the_only_broker_whoever_is_asked(
    paths: tuple[str, ...], size: int, three_nodes: Path
) -> None:
    rows = [
        row
        for row in lines(three_nodes, ["metadata", "--settings", "-o", "json"], paths, ())
        if row["type"] == "setting"
    ]
    assert [row["value"] for row in rows if (row["topic"], row["name"]) == ("orders", "segment.bytes")] == [str(size)]
    with kseg.open_cluster([three_nodes / path for path in paths]) as opened:
        assert opened.topics["orders"].settings["segment.bytes"].value == str(size)


def test_metadata_on_any_side_tell_which_directories_are_compared(three_nodes: Path) -> None:
    """The newer records on a side are those of a topic that was deleted."""
    (three_nodes / "one").mkdir()
    (three_nodes / "b1").rename(three_nodes / "one" / "b1")
    write_id(replica(three_nodes / "one" / "old", [Part(9, 0, 200, "gone")]), BEFORE)
    for sides in permutations(("one", "b2", "ctl")):
        ran = run(["diff", "-o", "json", "--topic", "orders", "--partition", "0", *sides], three_nodes)
        assert [json.loads(line)["verdict"] for line in ran.stdout.splitlines()[:1]] == ["diverged"]
        said = "kseg: omitted: one/old/orders-0: of a topic that was deleted, or created again since\n"
        assert ran.stderr.decode() == said


def test_directories_given_twice_are_one_copy(three_nodes: Path) -> None:
    ran = run(["verify", "--cluster", "-o", "json", "--topic", "orders", "ctl", "b1", "b2", "b1", "."], three_nodes)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    (found,) = (row for row in rows if row["type"] == "partition")
    assert [(copy["path"], copy["broker"]) for copy in found["copies"]] == [("b2/orders-0", 2), ("b1/orders-0", 1)]


def test_what_internal_topics_hold_does_not_come_from_other_given_directories(three_nodes: Path) -> None:
    ran = run(["metadata", "--show", "topics", "-o", "json", "b1/orders-0", "ctl"], three_nodes)
    assert [row["topic"] for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "topic"] == ["orders"]


def test_metadata_given_by_their_own_path_are_the_clusters(three_nodes: Path) -> None:
    """The topic's retention is a second; without metadata it would be Kafka's week."""
    paths = ["b1", "b2", "ctl/__cluster_metadata-0"]
    due = [row for row in lines(three_nodes, ["doctor", *AS_JSON_NOW], paths, ()) if row.get("id") == "retention-due"]
    assert [row for row in due if "default" in str(row["sentence"])] == []
    assert due != []
    ran = run(["verify", "--cluster", "-o", "json", "--topic", "orders", *paths], three_nodes)
    (found,) = (row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "partition")
    assert len(found["copies"]) == 2


def test_metadata_that_the_furthest_copy_lost_decide_too(three_nodes: Path) -> None:
    """A second controller's log is longer, but its first batch, with the topic and its replicas, is damaged."""
    log = next((three_nodes / "ctl" / "__cluster_metadata-0").glob("*.log")).read_bytes()
    further = {"name": "after", "topicId": BEFORE}
    later = NewBatch([frame_record(message_schema("TopicRecord"), further)], 5)
    copy = write_segment(three_nodes / "ctl2" / "__cluster_metadata-0", [later])
    copy.write_bytes(log + copy.read_bytes())
    write_bytes(copy, 100, b"\xff" * 8)
    for ask in (ask_dump, ask_joined, ends_by_query):
        assert ask(three_nodes, ("b1", "b2", "ctl", "ctl2"), ()) == ask(three_nodes, ("b1", "b2", "ctl"), ())


@pytest.mark.parametrize(
    ("numbers", "ids", "count"),
    [
        ((0, 1, 2), {}, 50),
        ((0,), {0: "g47"}, 50),
        ((0, 2), {0: "g47", 2: "g49"}, 50),
        ((0, 1, 2), {1: "g0"}, 3),
        ((0, 2), {0: "g47", 2: "g1"}, 3),
        ((0, 2), {0: "g9", 2: "g1"}, 5),
    ],
    ids=["no ids", "one fits both", "all fit both", "one proves it", "the last one proves it", "one proves more"],
)
def test_number_of_a_coordinators_partitions_is_the_same_for_all(
    numbers: tuple[int, ...], ids: dict[int, str], count: int, tmp_path: Path
) -> None:
    """Without metadata it is Kafka's default, unless that contradicts the partitions of the ids."""
    for number in numbers:
        name = ids.get(number)
        states = coordinator_records([(name, 7, 0, {})], 1_700_000_000_000) if name else []
        commits = [commit("orders", 1, group=name)] if name else []
        write_segment(tmp_path / f"__transaction_state-{number}", [NewBatch(states)] if name else [])
        write_segment(tmp_path / f"__consumer_offsets-{number}", [NewBatch(commits)] if name else [])
    for option in ("--group", "--transactional-id"):
        assert lines(tmp_path, ["where", option, "a", "-o", "json"], ["."], ())[0]["partitions"] == count
    for command, topic in (("groups", "__consumer_offsets"), ("txns", "__transaction_state")):
        said = run([command, "."], tmp_path).stderr.decode()
        told = re.search(f"of (?:probably )?([0-9]+) partitions of {topic} are here", said)
        assert int(told[1] if told else len(numbers)) == count, command


@pytest.mark.parametrize("settings", [(), [(TOPIC, "t", "retention.ms", "1000")]], ids=["none", "another"])
def test_policy_of_a_topic_that_the_metadata_know_is_known(settings: Sequence[Setting], tmp_path: Path) -> None:
    """An unset policy is the default, even if the cleaner has cleaned the partition before."""
    for base in (0, 1):
        write_segment(tmp_path / "t-0", [NewBatch([NewRecord(b"k", b"v", 1000)], base)], base)
    write_topics(tmp_path, {"t": CURRENT}, settings)
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 1\n", encoding="utf-8")
    rows = lines(tmp_path, ["metadata", "--settings", "-o", "json"], ["."], ())
    assert [row["value"] for row in rows if row.get("name") == "cleanup.policy"] == ["delete"]
    kept = lines(tmp_path, ["retain", "--now", "2030-01-01", "-o", "json"], ["t-0"], ())
    assert {row["retention"] for row in kept if row["type"] == "segment"} == {"delete-time"}
    listed = lines(tmp_path, ["ls", "--now", "2030-01-01", "-o", "json"], ["t-0"], ())[0]
    assert (listed["segmentsToDelete"], listed["cleanableReason"]) == (2, None)
    (plan,) = lines(tmp_path, ["retain", "--free", "1", "--now", "2030-01-01", "-o", "json"], ["t-0"], ())
    assert plan["segmentsDeletableNow"] == 2


def test_directory_of_a_topic_that_is_gone_is_in_use_for_no_command(tmp_path: Path) -> None:
    """The metadata has a topic of the same name with another id."""
    compacted = "AAAAAAAAAAAAAAAAAAAABw"
    for name, topic_id in (("t-0", CURRENT), ("t-1", BEFORE), ("c-0", compacted), ("c-1", BEFORE)):
        for base in (0, 1):
            write_segment(tmp_path / name, [NewBatch([NewRecord(b"k", b"v", 1000)], base)], base)
        write_id(tmp_path / name, topic_id)
    write_topics(tmp_path, {"t": CURRENT, "c": compacted}, [(TOPIC, "c", "cleanup.policy", "compact")])
    at = ("--now", "2030-01-01", "-o", "json")
    size = sum(log.stat().st_size for log in (tmp_path / "t-1").glob("*.log"))
    for choice in ((), ("--topic", "t")):
        rows = [row for row in lines(tmp_path, ["doctor", *at], ["."], choice) if row["type"] == "topic"]
        (topic,) = (row for row in rows if row["topic"] == "t")
        assert [topic[name] for name in ("bytes", "bytesNotInUse", "bytesToDelete")] == [2 * size, size, size]
        (plan,) = lines(tmp_path, ["retain", "--free", "1", *at], ["."], choice)
        assert plan["bytesDeletableNow"] == size
        judged = lines(tmp_path, ["retain", *at], ["."], choice)
        assert {row["directory"] for row in judged if row["type"] == "segment"} & {"t-0", "t-1"} == {"t-0"}
        assert [row["bytesToDelete"] for row in judged if row.get("topic") == "t"] == [size]
        for free in ([], ["--free", "1"]):
            said = run(["retain", *at[:2], *free, "--topic", "t", "."], tmp_path).stderr
            left_out = b"kseg: omitted: t-1: of a topic that was deleted, or created again since"
            assert said.splitlines()[0] == left_out
    alone = lines(tmp_path, ["retain", *at], ["t-1"], ())
    assert {row["directory"] for row in alone if row["type"] == "segment"} == {"t-1"}
    told = [row for row in lines(tmp_path, ["ls", *at], ["."], ()) if str(row.get("topic")) == "c"]
    assert [(row["partition"], row["firstDirtyOffset"]) for row in told if row["type"] == "partition"] == [
        (0, 0),
        (1, None),
    ]
    (table,) = [row for row in report_table(tmp_path, "topics", (".",), ()) if row["topic"] == "t"]
    assert (table["logBytes"], table["notInUseBytes"] > 0) == (2 * size, True)


RETENTION_OF_ALL, HOURS_OF_ALL = (
    (BROKER, "", "log.retention.ms", "172800000"),
    (BROKER, "", "log.retention.hours", "48"),
)


@pytest.mark.parametrize(
    ("setting", "properties", "by", "past"),
    [
        ((TOPIC, "t", "retention.ms", "172800000"), "", "the topic's retention", "is past its topic's retention"),
        (
            (BROKER, "1", *HOURS_OF_ALL[2:]),
            "",
            "the broker's default retention",
            "older than the broker's default retention",
        ),
        (RETENTION_OF_ALL, "", "the cluster's default retention", "older than the cluster's default retention"),
        (HOURS_OF_ALL, "", "the cluster's default retention", "older than the cluster's default retention"),
        (
            None,
            "log.retention.hours=48",
            "the default retention in server.properties",
            "older than the default retention in server.prop",
        ),
    ],
    ids=["topic", "broker", "all brokers", "hours of all brokers", "server.properties"],
)
def test_doctor_names_the_source_of_retention(
    setting: Setting | None, properties: str, by: str, past: str, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    for base, timestamp in enumerate((1000, 4_000_000_000_000, 2000)):
        write_segment(disk / "t-0", [NewBatch([NewRecord(b"k", b"v", timestamp)], base)], base)
    write_topics(disk, {"t": CURRENT}, [] if setting is None else [setting])
    (disk / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n", encoding="utf-8")
    (tmp_path / "server.properties").write_text(f"node.id=1\n{properties}\n", encoding="utf-8")
    asked = ["doctor", "--quick", "--now", "2030-01-01", "--server-properties", "server.properties", "-o", "json"]
    told = {row.get("id"): str(row.get("sentence")) for row in lines(tmp_path, asked, ["disk"], ())}
    assert f"by {by} of 2d00h" in told["future-times"]
    assert past in told["retention-due"]
