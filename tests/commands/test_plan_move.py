"""`kseg plan-move`."""

import json
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.messages import build_message
from kseg.formats.schemas import MessageSchema, message_schema
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg

IDS = ("AQEBAQEBAQEBAQEBAQEBAQ", "AgICAgICAgICAgICAgICAg", "AwMDAwMDAwMDAwMDAwMDAw")
TOPIC_ID, EARLIER_ID = "AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABA"
UNIT = 20_000
"""Bytes of a partition's values, times its size in a test."""


def frame_record(message: MessageSchema, fields: dict[str, object], version: int = 0) -> NewRecord:
    return NewRecord(None, bytes((1, message.api_key or 0, version)) + build_message(message, version, fields))


def new_disks(work: Path, *disks: dict[int, int], cordoned: tuple[str, ...] = (), adding: tuple[int, ...] = ()) -> None:
    """Create log directories of broker 1 with partitions of topic `t`, by number with their sizes."""
    numbers = sorted(number for disk in disks for number in disk)
    registered = {"brokerId": 1, "logDirs": [*IDS[: len(disks)]], "cordonedLogDirs": [*cordoned]}
    written = [
        frame_record(message_schema("RegisterBrokerRecord"), registered, 4),
        frame_record(message_schema("TopicRecord"), {"name": "t", "topicId": TOPIC_ID}),
    ]
    for number in numbers:
        fields = {"partitionId": number, "topicId": TOPIC_ID, "replicas": [2, 1], "isr": [1], "leader": 1}
        own = {**fields, "leaderEpoch": 0, "partitionEpoch": 0, "directories": [IDS[2], IDS[0]]}
        own["addingReplicas"] = [3] if number in adding else []
        written.append(frame_record(message_schema("PartitionRecord"), own, 1))
    for place, (disk, directory_id) in enumerate(zip(disks, IDS, strict=False), 1):
        path = work / f"disk{place}"
        path.mkdir()
        (path / "meta.properties").write_text(f"version=1\nnode.id=1\ndirectory.id={directory_id}\n")
        for number, size in disk.items():
            write_segment(path / f"t-{number}", [NewBatch([NewRecord(b"k", bytes(UNIT * size))])])
    write_segment(work / "disk1" / "__cluster_metadata-0", [NewBatch(written)])


def moves(work: Path, *options: str) -> list[tuple[int, str]]:
    """Return the moved partitions, and the names of their new directories."""
    run = kseg(["plan-move", "disk1", "disk2", *options], work)
    assert run.status == 0
    return [(each["partition"], Path(each["log_dirs"][1]).name) for each in json.loads(run.stdout)["partitions"]]


def test_the_plan_is_what_kafkas_tool_takes(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 1, 1: 1}, {})
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert (run.status, json.loads(run.stdout)) == (
        0,
        {
            "version": 1,
            "partitions": [
                {"topic": "t", "partition": 0, "replicas": [2, 1], "log_dirs": ["any", str(tmp_path / "disk2")]}
            ],
        },
    )
    assert b"kseg: 1 partition to move, " in run.stderr
    assert b"on one file system: " in run.stderr


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({0: 4, 1: 3, 2: 1}, {}, [(0, "disk2")]),
        ({0: 9, 1: 1, 2: 1}, {3: 9}, [(1, "disk2")]),
        ({0: 8}, {}, []),  # the other one would be equally full
        ({0: 8, 1: 1}, {}, [(1, "disk2")]),
        ({0: 2}, {1: 2}, []),
        ({0: 5, 1: 5, 2: 5, 3: 5}, {}, [(0, "disk2"), (1, "disk2")]),
    ],
)
def test_few_large_moves_level_the_directories(
    first: dict[int, int], second: dict[int, int], expected: list[tuple[int, str]], tmp_path: Path
) -> None:
    new_disks(tmp_path, first, second)
    assert moves(tmp_path) == expected


def test_within_says_when_it_is_level_enough(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 6, 1: 1}, {2: 5})
    assert moves(tmp_path, "--within", "50") == []
    assert moves(tmp_path, "--within", "5") == [(1, "disk2")]


def test_only_chosen_partitions_are_moved(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3, 2: 1}, {})
    assert moves(tmp_path, "--partition", "2") == [(2, "disk2")]


def test_partitions_that_are_under_way_stay(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3, 2: 3}, {}, adding=(1,))
    (tmp_path / "disk1" / "t-2").rename(tmp_path / "disk2" / f"t-2.{'0' * 32}-future")
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert json.loads(run.stdout)["partitions"] == []
    assert b"since they are being reassigned: 1" in run.stderr


def test_nothing_goes_into_a_cordoned_directory(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3}, {}, cordoned=(IDS[1],))
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert json.loads(run.stdout)["partitions"] == []
    assert b"disk2 is cordoned, so no partition is moved into it" in run.stderr


def test_bytes_that_the_broker_is_about_to_free_level_nothing_and_are_told(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3, 2: 1}, {})
    expected = moves(tmp_path)
    gone = tmp_path / "disk2" / f"gone-0.{'0' * 32}-delete"
    log = write_segment(gone, [NewBatch([NewRecord(b"k", bytes(UNIT * 9))])])
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert moves(tmp_path) == expected
    told = f"since the broker is about to delete them (-delete): 1 directory of {log.stat().st_size} bytes"
    assert told in run.stderr.decode()


def test_partitions_that_the_metadata_dont_know_stay(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4}, {})
    write_segment(tmp_path / "disk1" / "stranger-0", [NewBatch([NewRecord(b"k", bytes(UNIT * 3))])])
    run = kseg(["plan-move", "."], tmp_path)
    assert [each["topic"] for each in json.loads(run.stdout)["partitions"]] == ["t"]
    assert b"since they are of a topic that was deleted, or created again since: 1" in run.stderr


def test_a_directory_of_the_topic_before_it_was_created_again_stays(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3}, {})
    expected = moves(tmp_path)
    write_segment(tmp_path / "disk2" / "t-0", [NewBatch([NewRecord(b"k", bytes(UNIT))])])
    for disk, topic_id in (("disk1", TOPIC_ID), ("disk2", EARLIER_ID)):
        (tmp_path / disk / "t-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert [(each["partition"], each["log_dirs"]) for each in json.loads(run.stdout)["partitions"]] == [
        (number, ["any", str(tmp_path / name)]) for number, name in expected
    ]
    assert b"since they are of a topic that was deleted, or created again since: 1" in run.stderr


def test_a_move_of_the_topic_before_it_was_created_again_is_not_under_way(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3, 2: 1}, {})
    expected = moves(tmp_path)
    future = tmp_path / "disk2" / f"t-0.{'0' * 32}-future"
    write_segment(future, [NewBatch([NewRecord(b"k", b"v")])])
    (future / "partition.metadata").write_text(f"version: 0\ntopic_id: {EARLIER_ID}\n")
    assert moves(tmp_path) == expected == [(0, "disk2")]


def test_a_partition_that_its_broker_has_twice_stays(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 4, 1: 3}, {})
    write_segment(tmp_path / "disk2" / "t-0", [NewBatch([NewRecord(b"k", b"v")])])
    run = kseg(["plan-move", "disk1", "disk2"], tmp_path)
    assert [each["partition"] for each in json.loads(run.stdout)["partitions"]] == [1]
    assert b"since they are in two log directories: 1" in run.stderr


def test_rows_show_directories_and_moves(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 2, 1: 2}, {})
    rows: list[dict[str, Any]] = [
        json.loads(line) for line in kseg(["plan-move", ".", "-o", "json"], tmp_path).stdout.splitlines()
    ]
    first, second, move = rows
    assert (first["type"], second["type"], move["type"]) == ("logDir", "logDir", "move")
    assert move["from"] == str(tmp_path / "disk1")
    assert second["before"] == 0
    assert second["after"] == move["size"] == first["before"] - first["after"]
    text = kseg(["plan-move", ".", "-o", "text"], tmp_path).stdout.decode()
    assert [line for line in text.splitlines() if not line.startswith(" ")] == ["Log directories:", "Moves:"]
    assert kseg(["plan-move", ".", "-o", "csv"], tmp_path).stdout.startswith(b"topic,partition,size,replicas,from,to\n")


def write_properties(path: Path, text: str) -> None:
    path.mkdir(exist_ok=True)
    (path / "meta.properties").write_text(text)


@pytest.mark.parametrize(
    ("change", "paths", "said"),
    [
        (
            lambda work: write_properties(work / "disk2", "node.id=2\n"),
            ["."],
            b"belong to brokers 1, 2; specify the log directories of one broker",
        ),
        (
            lambda work: write_properties(work / "disk2", "version=1\n"),
            ["."],
            b"disk2: meta.properties has no broker id",
        ),
        (lambda _: None, ["disk1", "disk2", "--topic", "nosuch"], b"--topic nosuch: no such topic here; there are t"),
        (lambda _: None, ["disk1"], b"disk1: is only one log directory; specify all log directories"),
        (lambda _: None, ["disk1", "disk1"], b"disk1: is only one log directory; specify all log directories"),
        (lambda work: (work / "empty").mkdir(), ["disk1", "empty"], b"empty: no partition here; specify a partition's"),
        (lambda _: None, ["disk1/t-0"], b"disk1/t-0: isn't a broker's log directory; specify all log directories"),
        (lambda _: None, ["disk1", "nosuch"], b"nosuch: "),
        (
            lambda work: (work / "disk1/__cluster_metadata-0").rename(work / "gone"),
            ["disk1", "disk2"],
            b"__cluster_meta",
        ),
    ],
    ids=["two-brokers", "no-broker", "no-topic", "one", "one-twice", "empty", "partition", "missing", "no-metadata"],
)
def test_what_can_not_be_planned_is_one_line(change: Any, paths: list[str], said: bytes, tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 2, 1: 2}, {})
    change(tmp_path)
    run = kseg(["plan-move", *paths], tmp_path)
    assert (run.status, run.stdout, run.stderr.count(b"\n")) == (2, b"", 1)
    assert said in run.stderr


def test_a_directory_that_is_given_twice_counts_once(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 2, 1: 2}, {})
    assert moves(tmp_path, "disk1") == moves(tmp_path) == [(0, "disk2")]


def test_the_metadata_may_lie_elsewhere(tmp_path: Path) -> None:
    new_disks(tmp_path, {0: 2, 1: 2}, {})
    (tmp_path / "disk1/__cluster_metadata-0").rename(tmp_path / "__cluster_metadata-0")
    assert moves(tmp_path, "--cluster-metadata", "__cluster_metadata-0") == [(0, "disk2")]
