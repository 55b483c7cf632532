"""Records lost by one copy of a partition are read from another, by every command."""

import json
from itertools import permutations
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kseg.browse.facts import cheap_metadata
from kseg.browse.places import TopicPlace
from kseg.cluster.cluster import Cluster
from kseg.formats.schemas import message_schema
from tests.cluster.made_metadata import write_id
from tests.cluster.questions import (
    RECORDS_ASKED,
    Ask,
    lines,
)
from tests.commands.test_plan_move import frame_record
from tests.coordinators.coordinators import commit
from tests.log.edits import write_bytes
from tests.log.replicas import Part, replica
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.loops import for_each
from tests.run import kseg as run

CURRENT = "cJFU-m2vQ6uCEEqPGgnDXw"
"""The topic's id."""


@pytest.fixture
def damaged_brokers(tmp_path: Path) -> Path:
    """Two brokers; the first copy lost a batch, a segment and its log's end, the other some batches."""
    root = tmp_path / "bundle" / "disks"
    batches = {
        base: [NewBatch([NewRecord(b"k", b"v %d" % n, n)], n, partition_leader_epoch=2) for n in range(base, base + 10)]
        for base in (0, 10, 20)
    }
    size = len(batch_bytes(batches[10][0]))
    for broker, number in (("b1", 1), ("b2", 2)):
        for base, own in batches.items():
            write_segment(root / broker / "orders-0", own, base)
        (root / broker / "meta.properties").write_text(f"version=1\nnode.id={number}\n", encoding="utf-8")
        (root / broker / "cleaner-offset-checkpoint").write_text("0\n0\n", encoding="utf-8")
    first = root / "b1" / "orders-0"
    write_bytes(first / f"{0:020}.log", 3 * len(batch_bytes(batches[0][0])) + 40, b"\xff" * 8)
    (first / f"{10:020}.log").unlink()
    write_bytes(first / f"{20:020}.log", 7 * size + 30, b"\xff" * 8)
    write_bytes(root / "b2" / "orders-0" / f"{20:020}.log", 2 * size + 30, b"\xff" * 8)
    return root


@pytest.mark.parametrize("ask", RECORDS_ASKED, ids=lambda ask: ask.__name__)
def test_what_one_copy_lost_is_read_from_another(ask: Ask, damaged_brokers: Path) -> None:
    known = {("orders", 0): [(n, f"v {n}") for n in range(30)]}
    answers = {paths: ask(damaged_brokers, paths, ()) for paths in (("b1", "b2"), ("b2", "b1"), (".",))}
    assert {paths: answer for paths, answer in answers.items() if answer != known} == {}


def test_times_and_selected_records_that_one_copy_lost_are_found_in_another(damaged_brokers: Path) -> None:
    for paths in (("b1", "b2"), ("b2", "b1"), (".",)):
        for number in range(30):
            for asked in (["--timestamp", str(number)], ["--from-time", str(number)]):
                ran = run(
                    ["lookup", "--topic", "orders", "--partition", "0", "-o", "json", *asked, *paths], damaged_brokers
                )
                assert json.loads(ran.stdout).get("offset") == number, (paths, number, ran)


def test_times_that_one_copy_lost_are_found_where_dump_finds_them_if_the_log_may_be_compacted(
    damaged_brokers: Path,
) -> None:
    """In such a log a segment missing without a trace isn't a loss, but damage is."""
    for broker in ("b1", "b2"):
        (damaged_brokers / broker / "cleaner-offset-checkpoint").unlink()
    for asked in ("--from-time", "--from-offset"):
        first = {}
        for number in range(30):
            choice = (asked, str(number), "--limit", "1")
            dumped = lines(damaged_brokers, ["dump", "-o", "json", "--only", "records"], ["."], choice)
            first[number] = next(row["offset"] for row in dumped if row["type"] == "record")
        assert [first[number] for number in (3, 10, 27)] == [3, 20, 27]
        for paths in (("b1", "b2"), ("b2", "b1")):
            options = ["--topic", "orders", "--partition", "0", "-o", "json", *paths]
            ran = {number: run(["lookup", asked, str(number), *options], damaged_brokers) for number in first}
            assert {number: json.loads(each.stdout).get("offset") for number, each in ran.items()} == first
            if asked == "--from-time":
                ran = {
                    number: run(["lookup", "--timestamp", str(number), *options], damaged_brokers) for number in first
                }
                assert {number: json.loads(each.stdout).get("offset") for number, each in ran.items()} == first


def test_offsets_that_one_copy_lost_are_found_in_another(damaged_brokers: Path) -> None:
    for paths in (("b1", "b2"), ("b2", "b1"), (".",)):
        for offset in (3, 9, 10, 15, 19, 20, 28):
            ran = run(
                ["get", "--topic", "orders", "--partition", "0", "--offset", str(offset), *paths], damaged_brokers
            )
            assert ran.stdout.rstrip(b"\n") == b"v %d" % offset, (paths, offset, ran)


@pytest.mark.parametrize("ask", RECORDS_ASKED, ids=lambda ask: ask.__name__)
def test_a_segment_that_the_cleaner_may_have_taken_is_not_read_from_another(ask: Ask, damaged_brokers: Path) -> None:
    """Its records may be older than the first copy's."""
    for broker in ("b1", "b2"):
        (damaged_brokers / broker / "cleaner-offset-checkpoint").unlink()
    known = {("orders", 0): [(n, f"v {n}") for n in (*range(10), *range(20, 30))]}
    assert ask(damaged_brokers, ("b1", "b2"), ()) == known


def without_topic_id(root: Path, place: str) -> list[str]:
    """Return disks without a topic id on `b1`, and with the id in another place: a copy, or metadata."""
    for broker, parts in (("b1", [Part(0, 0, 9)]), ("b2", [Part(0, 0, 5)])):
        replica(root / broker, parts)
    if place == "copies":
        write_id(root / "b2" / "orders-0", CURRENT)
        return ["b1", "b2"]
    records = [frame_record(message_schema("TopicRecord"), {"name": "orders", "topicId": CURRENT})]
    write_segment(root / "ctl" / "__cluster_metadata-0", [NewBatch(records)])
    return ["b1", "ctl"]


LOSING = ("salvage --to {to}", "reindex --to {to}", "slice --to {to}", "compact --to {to}")


@for_each("command", LOSING)
def test_a_topic_id_that_a_copy_lost_is_found_elsewhere(command: str, tmp_path: Path) -> None:
    """The id is in the metadata of another disk, or in another copy."""
    for place in ("metadata", "copies"):
        root = tmp_path / place
        paths = without_topic_id(root, place)
        (root / "new").mkdir()
        chosen = ["--topic", "orders", "--partition", "0"]
        ran = run([*command.format(to="new/out").split(), *chosen, *paths], root)
        assert ran.status == 0, ran.stderr
        found = {path.read_text().strip() for path in (root / "new").rglob("partition.metadata")}
        assert found == {f"version: 0\ntopic_id: {CURRENT}"}


@pytest.mark.parametrize("place", ["metadata", "copies"])
def test_a_lost_topic_id_is_shown_with_the_evidence_for_it(place: str, tmp_path: Path) -> None:
    paths = without_topic_id(tmp_path, place)
    listed = run(["ls", *paths, "--topic", "orders", "-o", "json"], tmp_path).stdout.splitlines()
    rows = {row["directory"]: row for row in map(json.loads, listed) if row["type"] == "partition"}
    assert (rows["b1/orders-0"]["topicId"], rows["b1/orders-0"]["topicIdSource"]) == (CURRENT, place)
    if place == "copies":
        assert rows["b2/orders-0"]["topicIdSource"] == "partition.metadata"
    sql = "SELECT topicId, topicIdSource FROM partitions WHERE directory LIKE '%b1/orders-0'"
    answer = run(["query", sql, *paths, "-o", "json"], tmp_path)
    assert [json.loads(line) for line in answer.stdout.splitlines()] == [{"topicId": CURRENT, "topicIdSource": place}]
    text = run(["ls", *paths, "--topic", "orders", "--by", "segment"], tmp_path).stdout.decode()
    assert f"topic id {CURRENT} (from the {place})".replace("the copies", "other copies") in text
    cluster = Cluster([tmp_path])
    partition = [tmp_path / "b1" / "orders-0"]
    read_more = TopicPlace("orders", tmp_path / "b1", partition, cluster, cheap_metadata(cluster)).read_row(0).read_more
    assert read_more is not None
    assert [(each.value, each.meaning) for each in read_more() if each.name == "topic_id"] == [(CURRENT, f"by {place}")]


def test_commits_that_a_copy_lost_are_read_from_another(tmp_path: Path) -> None:
    """The first copy has the newer commit, and a wrong CRC where the other one is complete."""
    batches = [NewBatch([commit("orders", 10 + number, partition=number)], number) for number in range(3)]
    write_segment(tmp_path / "b1" / "__consumer_offsets-0", batches)
    write_segment(tmp_path / "b2" / "__consumer_offsets-0", batches[:2])
    write_bytes(tmp_path / "b1" / "__consumer_offsets-0" / f"{0:020}.log", len(batch_bytes(batches[0])) + 70, b"\xff")
    for number, broker in enumerate(("b1", "b2"), 1):
        (tmp_path / broker / "meta.properties").write_text(f"version=1\nnode.id={number}\n", encoding="utf-8")
    for paths in permutations(("b1", "b2")):
        rows = [row for row in lines(tmp_path, ["groups", "-o", "json"], paths, ()) if row["type"] == "commit"]
        assert [(row["partition"], row["offset"]) for row in rows] == [(0, 10), (1, 11), (2, 12)]
    alone = [row for row in lines(tmp_path, ["groups", "-o", "json"], ["b1"], ()) if row["type"] == "commit"]
    assert [row["partition"] for row in alone] == [0, 2]


@pytest.fixture
def lost_markers(tmp_path: Path) -> Path:
    """Two brokers with an aborted and a committed transaction; the first copy lost the markers."""
    aborted, committed = (NewBatch([NewRecord(b"k", b"v %d" % n)], n, n, 0, True) for n in (0, 1))
    after = NewBatch([NewRecord(b"k", b"v 4")], 4)
    last = NewBatch([NewRecord(b"k", b"v 5")], 5)
    batches = [aborted, committed, marker(ABORT, aborted, 1)._replace(base_offset=2)]
    batches += [marker(COMMIT, committed, 1)._replace(base_offset=3), after]
    root = tmp_path / "bundle" / "disks"
    for broker, number, written in (("b1", 1, [*batches, last]), ("b2", 2, batches)):
        write_segment(root / broker / "orders-0", written)
        (root / broker / "meta.properties").write_text(f"version=1\nnode.id={number}\n", encoding="utf-8")
        (root / broker / "cleaner-offset-checkpoint").write_text("0\n0\n", encoding="utf-8")
    start = sum(len(batch_bytes(batch)) for batch in batches[:2])
    lost = sum(len(batch_bytes(batch)) for batch in batches[2:4])
    write_bytes(root / "b1" / "orders-0" / f"{0:020}.log", start, b"\xff" * lost)
    return root


def test_markers_that_one_copy_lost_are_read_from_another(lost_markers: Path) -> None:
    for paths in (("b1", "b2"), ("b2", "b1"), (".",)):
        asked = ["dump", "--isolation", "read_committed", "-o", "json", "--only", "records"]
        assert [row["offset"] for row in lines(lost_markers, asked, paths, ())] == [1, 4, 5]
        sql = 'SELECT "offset" FROM records'
        queried = lines(lost_markers, ["query", sql, "--isolation", "read_committed", "-o", "json"], paths, ())
        assert sorted(row["offset"] for row in queried) == [1, 4, 5]
        target = lost_markers.parent / f"out-{'-'.join(paths)}"
        ran = run(["export", *paths, str(target), "--isolation", "read_committed"], lost_markers)
        assert ran.status == 0, ran
        assert sorted(pq.read_table(target, columns=["offset"])["offset"].to_pylist()) == [1, 4, 5]
        rows = lines(lost_markers, ["txns", "-o", "json"], paths, ())
        assert [(row["firstOffset"], row["state"]) for row in rows if row["type"] == "transaction"] == [
            (0, "aborted"),
            (1, "committed"),
        ]
        assert {row["lastStableOffset"] for row in rows if row["type"] == "partition"} == {6}
