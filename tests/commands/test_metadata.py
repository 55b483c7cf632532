"""`kseg metadata`."""

import csv
import io
import json
from pathlib import Path

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import message_schema
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg

LOGS = golden.ROOT / "logs"


def objects(arguments: list[str], directory: Path = LOGS) -> list[dict[str, object]]:
    return [json.loads(line) for line in kseg(["metadata", "-o", "json", *arguments], directory).stdout.splitlines()]


def test_text_has_all_sections() -> None:
    run = kseg(["metadata", "4.3.1"], LOGS)
    assert (run.status, run.stderr) == (0, b"kseg: 43 topics, 70 partitions\n")
    headings = [line for line in run.stdout.decode().splitlines() if not line.startswith(" ")]
    assert [heading.removesuffix(":") for heading in headings] == [
        "Features", "Voters", "Controllers", "Brokers", "Log directories", "Topics", "Partitions", "Configs",
        "ACLs", "Quotas", "SCRAM credentials", "Delegation tokens",
    ]  # fmt: skip


def test_json_begins_with_the_moment_and_has_an_object_for_each() -> None:
    found = objects(["4.3.1"])
    assert found[0] == {
        "type": "metadata",
        "offset": 675,
        "timestamp": 1795256080884,
        "time": "2026-11-21T10:14:40.884Z",
        "checkpoint": "00000000000000000674-0000000002.checkpoint",
        "missingBefore": None,
        "unapplied": 0,
        "kraftVersion": 1,
        "nextProducerId": 2000,
    }
    assert {row["type"] for row in found[1:]} == {
        "feature", "voter", "controller", "broker", "directory", "topic", "partition", "config",
        "acl", "quota", "scram", "token",
    }  # fmt: skip
    topic = next(row for row in found if row["type"] == "topic" and row["topic"] == "compacted-txn")
    assert topic == {"type": "topic", "topic": "compacted-txn", "topicId": "RI-mAOSURAe7LydtHh4Q4Q", "partitions": 1}


def test_the_topics_id_is_the_one_of_its_directory() -> None:
    found = objects(["4.3.1", "--show", "topics", "--topic", "compacted-txn"])
    written = (LOGS / "4.3.1" / "compacted-txn-0" / "partition.metadata").read_text()
    assert [f"topic_id: {row['topicId']}" in written for row in found] == [True]


def test_csv_has_the_partitions() -> None:
    run = kseg(["metadata", "4.3.1", "-o", "csv"], LOGS)
    rows = list(csv.DictReader(io.StringIO(run.stdout.decode())))
    of_json = objects(["4.3.1", "--show", "partitions"])
    assert [(row["topic"], row["partition"], row["isr"]) for row in rows] == [
        (row["topic"], str(row["partition"]), " ".join(map(str, row["isr"])))  # type: ignore[call-overload]
        for row in of_json
    ]


def test_at_takes_an_offset_or_a_time() -> None:
    by_offset = objects(["3.9.1-tiered", "--at", "60"])
    time = str(by_offset[0]["time"])
    by_time = objects(["3.9.1-tiered", "--at", time])
    assert by_time == objects(["3.9.1-tiered", "--at", str(by_time[0]["offset"])])
    assert by_time == objects(["3.9.1-tiered", "--at", str(by_offset[0]["timestamp"])])


def test_ages_count_back_from_the_newest_broker_time() -> None:
    ran = kseg(["metadata", "3.6.2", "--at", "-1d", "-o", "json"], LOGS)
    assert [row["offset"] for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "metadata"] == [None]
    assert ran.stderr.decode().splitlines()[:3:2] == [
        'kseg: "now" is 2026-11-21T10:14:00.675Z, the newest timestamp that a broker wrote',
        "kseg: earlier records were deleted; the first remaining record is from 2026-11-21T10:12:37.605Z",
    ]
    same = objects(["3.6.2", "--at", "2026-11-21T10:13:00.675"])
    assert objects(["3.6.2", "--at", "-60s"]) == same
    ran = kseg(["metadata", "3.6.2", "--at", "-1d", "--diff", "300"], LOGS)
    assert b" between the empty state and offset 300, 2026-" in ran.stderr


def test_an_incomplete_state_is_part_of_the_output() -> None:
    ran = kseg(["metadata", "4.3.1", "--at", "600"], LOGS)
    assert ran.stdout.startswith(b"Incomplete: the metadata is incomplete: records before offset 510 are missing, ")
    assert objects(["4.3.1", "--at", "600", "--show", "topics"])[0]["missingBefore"] == 510


def test_what_is_missing_is_said_and_ends_with_1() -> None:
    run = kseg(["metadata", "4.3.1", "--at", "600"], LOGS)
    assert run.status == 1
    assert b"records before offset 510 are missing" in run.stdout
    assert kseg(["metadata", "4.3.1", "--at", "600", "-q"], LOGS).stderr == b""


def config(name: str, value: str) -> NewRecord:
    fields = {"resourceType": 4, "resourceName": "1", "name": name, "value": value}
    return NewRecord(None, b"\1\4\0" + build_message(message_schema("ConfigRecord"), 0, fields))


def test_passwords_are_hidden_in_every_form(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("ssl.key.password", "s3cret")])])
    for form in ("text", "json", "csv", "table"):
        run = kseg(["metadata", ".", "--show", "configs", "-o", form], tmp_path)
        assert b"s3cret" not in run.stdout
        assert b"(hidden)" in run.stdout


def test_text_of_files_does_no_harm_to_a_terminal(tmp_path: Path) -> None:
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([config("x\x1b[2J", "[red]\x9b1m[/red]\n")])])
    for form in ("text", "table"):
        shown = kseg(["metadata", ".", "-o", form], tmp_path).stdout.decode()
        assert all(char.isprintable() or char == "\n" for char in shown)
        assert "[red]" in shown


def test_a_time_that_is_none_is_refused() -> None:
    run = kseg(["metadata", "4.3.1", "--at", "-5"], LOGS)
    assert run.status == 2
    assert b"'-5' isn't a valid time" in run.stderr


def test_help_has_examples() -> None:
    assert b"Examples:" in kseg(["metadata", "--help"], LOGS).stdout


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("voters", [{"voterId": 1, "directoryId": "YuJMIZRrTBe0MqyeYKOJyQ",
                     "endpoints": [{"name": "CONTROLLER", "host": "127.0.0.1", "port": 22102}]}]),
        ("directories", [{"brokerId": 1, "directoryId": "YuJMIZRrTBe0MqyeYKOJyQ", "path": "4.3.1",
                          "isCordoned": False, "replicaCount": 70}]),
        ("scram", [{"user": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096},
                   {"user": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 5000},
                   {"user": "formatted", "mechanism": "SCRAM-SHA-256", "iterations": 4096}]),
    ],
    ids=["voters", "directories", "scram"],
)  # fmt: skip
def test_show_has_rows_some_of_each(kind: str, rows: list[dict[str, object]]) -> None:
    assert [
        {key: value for key, value in row.items() if key != "type"} for row in objects(["4.3.1", "--show", kind])
    ] == rows


def test_a_static_quorum_has_the_voters_of_its_file() -> None:
    assert [row["voterId"] for row in objects(["3.6.2", "--show", "voters"])] == [1]
    assert objects(["3.6.2", "--show", "voters", "--at", "400"]) == []


def test_commands_are_those_of_the_cluster() -> None:
    run = kseg(["metadata", "4.3.1", "-o", "commands", "--bootstrap-server", "new:9092", "--show", "acls"], LOGS)
    assert run.status == 0
    lines = [line for line in run.stdout.decode().splitlines() if line and not line.startswith("#")]
    assert all(line.startswith("kafka-acls.sh --bootstrap-server new:9092 --add ") for line in lines)
    assert run.stderr == b"kseg: 5 commands; omitted: 0\n"


@pytest.mark.parametrize("options", [["--keep-brokers"], ["--command-config", "x"]])
def test_options_that_contradict_each_other_are_refused(options: list[str]) -> None:
    run = kseg(["metadata", "4.3.1", *options], LOGS)
    assert (run.status, run.stdout) == (2, b"")
    assert b"-o commands" in run.stderr
    assert run.stderr.count(b"\n") == 1


def write_disks(tmp_path: Path, leaders: tuple[int, ...] = (1, 1)) -> None:
    """Write the disks of two brokers.

    Broker 1 has two disks; the first partition of topic orders is on the second one, its replica on broker 2.
    """
    ids = {"disk1": "AQEBAQEBAQEBAQEBAQEBAQ", "disk2": "AgICAgICAgICAgICAgICAg"}
    for name, directory_id in ids.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "meta.properties").write_text(f"node.id=1\nversion=1\ndirectory.id={directory_id}\n")
    topic_id = "AAAAAAAAAAAAAAAAAAAABQ"
    topic = b"\1\2\0" + build_message(message_schema("TopicRecord"), 0, {"name": "orders", "topicId": topic_id})
    replicas = {"replicas": [1, 2], "isr": [1], "leaderEpoch": 0, "partitionEpoch": 0}
    fields = {**replicas, "topicId": topic_id, "directories": [ids["disk2"], "AAAAAAAAAAAAAAAAAAAAAQ"]}
    written = [
        b"\1\3\1"
        + build_message(message_schema("PartitionRecord"), 1, {**fields, "partitionId": number, "leader": leader})
        for number, leader in enumerate(leaders)
    ]
    changed = {"partitionId": 1, "topicId": topic_id, "directories": [ids["disk1"], "AwMDAwMDAwMDAwMDAwMDAw"]}
    written.append(b"\1\5\1" + build_message(message_schema("PartitionChangeRecord"), 1, changed))
    batch = NewBatch([NewRecord(None, value) for value in (topic, *written)])
    write_segment(tmp_path / "disk1" / "__cluster_metadata-0", [batch])
    write_segment(tmp_path / "disk2" / "orders-0", [NewBatch([NewRecord(b"k", b"v")])])


def test_people_see_partitions_without_a_leader_first(tmp_path: Path) -> None:
    write_disks(tmp_path, leaders=(1, -1))
    rows = kseg(["metadata", ".", "--show", "partitions"], tmp_path).stdout.decode().splitlines()[2:]
    assert [row.split()[1:3] for row in rows] == [["1", "none"], ["0", "1"]]
    assert [row["partition"] for row in objects([".", "--show", "partitions"], tmp_path)] == [0, 1]


def test_each_replica_is_said_to_lie_in_its_directory(tmp_path: Path) -> None:
    write_disks(tmp_path)
    for paths in (["disk1", "disk2"], ["."]):
        run = kseg(["metadata", *paths, "--show", "partitions"], tmp_path)
        rows = [line.split("1,2")[1].split() for line in run.stdout.decode().splitlines()[2:]]
        assert rows == [["1", "1:disk2", "2:unassigned"], ["1", "1:disk1", "2:AwMDAwMDAwMDAwMDAwMDAw"]]
    first = objects(["disk1", "--show", "partitions"], tmp_path)[0]
    assert first["directories"] == [
        {"replica": 1, "directoryId": "AgICAgICAgICAgICAgICAg", "path": None},
        {"replica": 2, "directoryId": "AAAAAAAAAAAAAAAAAAAAAQ", "path": None},
    ]


@pytest.mark.parametrize("node", ["9" * 5000, "2147483648", "\u0663", "one"])
def test_broker_id_that_no_broker_has_tells_of_no_directory(node: str, tmp_path: Path) -> None:
    write_disks(tmp_path)
    for name in ("disk1", "disk2"):
        properties = tmp_path / name / "meta.properties"
        properties.write_text(properties.read_text().replace("node.id=1", f"node.id={node}"))
    run = kseg(["metadata", ".", "--show", "partitions"], tmp_path)
    assert (run.status, run.stderr) == (0, b"")
    assert b"1:disk2" in run.stdout  # by the directory's id


def test_where_a_replica_lies_counts_more_than_what_was_recorded_before_it_moved(tmp_path: Path) -> None:
    write_disks(tmp_path)
    (tmp_path / "disk2" / "orders-0").rename(tmp_path / "disk1" / "orders-0")
    now = objects([".", "--show", "partitions"], tmp_path)[0]
    assert [place["path"] for place in now["directories"]] == ["disk1", None]  # type: ignore[attr-defined]
    then = objects([".", "--at", "9", "--show", "partitions"], tmp_path)[0]
    assert [place["path"] for place in then["directories"]] == ["disk2", None]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "topic_id"),
    [
        ("orders-0", "AAAAAAAAAAAAAAAAAAAABA"),
        (f"orders-0.{'0' * 32}-future", "AAAAAAAAAAAAAAAAAAAABQ"),
        (f"orders-0.{'0' * 32}-stray", "AAAAAAAAAAAAAAAAAAAABQ"),
    ],
    ids=["stale", "future", "stray"],
)
def test_a_replica_lies_where_its_topics_directory_is(name: str, topic_id: str, tmp_path: Path) -> None:
    write_disks(tmp_path)
    write_segment(tmp_path / "disk1" / name, [NewBatch([NewRecord(b"k", b"other")] * 9)])
    (tmp_path / "disk1" / name / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    row = objects([".", "--show", "partitions"], tmp_path)[0]
    assert [place["path"] for place in row["directories"]] == ["disk2", None]  # type: ignore[attr-defined]


def test_a_topic_that_is_not_there_is_an_error_that_names_those_there() -> None:
    run = kseg(["metadata", "4.1.0", "--topic", "nosuch"], LOGS)
    assert (run.status, run.stdout) == (2, b"")
    assert b"--topic nosuch: no such topic here; there are " in run.stderr


def test_settings_that_are_no_text_are_carried_over_as_brokers_read_them(tmp_path: Path) -> None:
    fields = {"resourceType": 16, "resourceName": "sub", "name": "match", "value": "a??b"}
    value = b"\1\4\0" + build_message(message_schema("ConfigRecord"), 0, fields).replace(b"??", b"\xff\xc3")
    write_segment(tmp_path / "__cluster_metadata-0", [NewBatch([NewRecord(None, value)])])
    run = kseg(["metadata", ".", "-o", "commands"], tmp_path)
    assert (run.status, run.stderr) == (0, b"kseg: 1 command; omitted: 0\n")
    assert "--add-config 'match=a\ufffd\ufffdb'\n".encode() in run.stdout


def test_settings_are_those_of_the_brokers_release() -> None:
    """kafka-configs.sh --describe --all printed them in 3.9.1, 4.1.0 and 4.4.0."""
    named = {
        "message.format.version": ["3.0-IV1", None, None],
        "message.timestamp.after.max.ms": [str(2**63 - 1), "3600000", "3600000"],
        "max.decompressed.message.bytes": [None, None, "2147483639"],
        "remote.copy.lag.ms": [None, None, "0"],
    }
    found = []
    for release in ("3.9.1-tiered", "4.1.0", "4.4.0-made"):
        rows = [row for row in objects([release, "--settings"]) if row["type"] == "setting"]
        found.append({row["name"]: row["value"] for row in rows if row["topic"] == rows[0]["topic"]})
    assert {name: [each.get(name) for each in found] for name in named} == named
