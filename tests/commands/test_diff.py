"""`kseg diff` as its user sees it."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.log import edits
from tests.log.replicas import Part, copy_partition, replica, write_high_watermark
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg


def run_diff(directory: Path, *arguments: str, said: bytes = b"") -> tuple[int, list[dict[str, Any]]]:
    """Return exit status and objects."""
    ran = kseg(["diff", *arguments, "-o", "json"], directory)
    assert ran.stderr == said, ran.stderr.decode()
    return ran.status, [json.loads(line) for line in ran.stdout.splitlines()]


def diffed_one(directory: Path, *arguments: str) -> dict[str, Any]:
    """Return the only partition that differs."""
    status, (partition, summary) = run_diff(directory, *arguments)
    assert status == 1
    assert summary["partitions"] == 1
    assert summary["verdicts"][partition["verdict"]] == 1
    return partition


def ranges(records: list[dict[str, Any]]) -> dict[tuple[str, int], list[tuple[int, int]]]:
    """Return the ranges of each path and epoch."""
    return {
        (Path(each["path"]).parts[0], each["leaderEpoch"]): [(part["from"], part["to"]) for part in each["ranges"]]
        for each in records
    }


def test_copies_of_a_disk_are_identical(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "4.3.1"
    copy = tmp_path / "copy"
    for partition in source.glob("*-[0-9]"):
        copy_partition(partition, copy)
    status, (*partitions, summary) = run_diff(tmp_path, str(source), "copy")
    assert status == 0
    assert {each["verdict"] for each in partitions} == {"identical"}
    assert summary["verdicts"]["identical"] == summary["partitions"] == len(partitions) > 5


def test_log_that_goes_on_is_ahead(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5), Part(1, 15, 5)])
    replica(tmp_path / "b", [Part(0, 0, 10)])
    partition = diffed_one(tmp_path, "a", "b")
    assert partition["verdict"] == "ahead"
    assert ranges(partition["onlyIn"]) == {("a", 0): [(10, 14)], ("a", 1): [(15, 19)]}
    ahead, behind = partition["copies"]
    assert (ahead["records"], behind["missing"], behind["logEndOffset"], ahead["logEndOffset"]) == (10, 10, 10, 20)
    assert partition["divergence"] is None
    assert partition["firstDifference"] == 10


def test_unclean_election_diverges_and_the_leader_says_what_is_lost(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5, "lost")])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(2, 10, 3, "new")])
    write_high_watermark(tmp_path / "a", 12)
    partition = diffed_one(tmp_path, "a", "b", "--leader", "b")
    assert partition["verdict"] == "diverged"
    divergence = partition["divergence"]
    assert (divergence["offset"], divergence["leaderEpoch"]) == (10, 2)
    assert [(batch["baseOffset"], batch["leaderEpoch"]) for batch in divergence["batches"]] == [(10, 0), (10, 2)]
    assert ranges(partition["onlyIn"]) == {("a", 0): [(10, 14)], ("b", 2): [(10, 12)]}
    (truncation,) = partition["truncations"]
    assert (truncation["path"], truncation["toOffset"], truncation["lostRecords"]) == ("a/orders-0", 10, 5)
    assert truncation["rule"] == "leaderEpochs"
    assert partition["copies"][0]["highWatermark"] == 12


def test_what_followers_keep_and_the_leader_lacks_is_told(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5, "old")])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(0, 10, 5, "other"), Part(0, 15, 5, "more")])
    (truncation,) = diffed_one(tmp_path, "a", "b", "--leader", "b")["truncations"]
    assert (truncation["toOffset"], truncation["lostRecords"], truncation["keptRecords"]) == (15, 0, 5)
    assert [part["ranges"] for part in truncation["keptByEpoch"]] == [[{"from": 10, "to": 14}]]
    text = kseg(["diff", "a", "b", "--leader", "b"], tmp_path).stdout.decode()
    kept = "keeps 5 records with leader epoch 0 (offsets 10-14) that the leader lacks: consumers don't get them\n"
    assert f"and loses nothing\n      {kept}" in text


def test_hole_in_the_middle_is_told_by_its_offsets(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 10), Part(0, 20, 10)])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(0, 20, 10)])
    partition = diffed_one(tmp_path, "a", "b")
    assert partition["verdict"] == "holes"
    assert ranges(partition["onlyIn"]) == {("a", 0): [(10, 19)]}


def test_order_of_sides_changes_nothing_but_the_order(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5, "lost")])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(2, 10, 3, "new")])
    there, back = diffed_one(tmp_path, "a", "b"), diffed_one(tmp_path, "b", "a")
    assert there["copies"] == back["copies"][::-1]
    assert ranges(there["onlyIn"]) == ranges(back["onlyIn"])
    assert there["divergence"]["batches"] == back["divergence"]["batches"][::-1]


def test_flipped_byte_is_not_identical(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path / "a", "3.6.2/plain-1")
    copy = copy_partition(source, tmp_path / "b")
    log = edits.logs(copy)[0]
    data = bytearray(log.read_bytes())
    position, size = list(edits.v2_batches(log))[4]
    data[position + size - 1] ^= 1
    log.write_bytes(data)
    partition = diffed_one(tmp_path, str(source), str(copy))
    assert partition["verdict"] == "holes"
    (damage,) = partition["copies"][1]["damages"]
    assert (damage["id"], damage["position"]) == ("bad-crc", position)
    assert partition["copies"][1]["missing"] == partition["copies"][0]["records"] > 0


def test_one_side_is_not_enough(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 1)])
    ran = kseg(["diff", "a"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr == b"kseg: specify at least two directories or archives to compare\n"


@pytest.fixture
def diverged_copies(tmp_path: Path) -> Path:
    """Return three sides: an old leader, the new one, and a shorter follower."""
    replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5, "lost")])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(2, 10, 3, "new")])
    replica(tmp_path / "c", [Part(0, 0, 10), Part(0, 10, 5, "lost")])
    return tmp_path


def test_records_come_once_with_all_copies_that_have_them(diverged_copies: Path) -> None:
    status, items = run_diff(diverged_copies, "a", "b", "c", "--records", "--leader", "b")
    records = [each for each in items if each["type"] == "record"]
    assert status == 1
    assert sorted((each["offset"], each["value"], *each["paths"]) for each in records) == [
        *((offset, f"lost {offset}", "a/orders-0", "c/orders-0") for offset in (10,)),
        (10, "new 10", "b/orders-0"),
        (11, "lost 11", "a/orders-0", "c/orders-0"),
        (11, "new 11", "b/orders-0"),
        (12, "lost 12", "a/orders-0", "c/orders-0"),
        (12, "new 12", "b/orders-0"),
        (13, "lost 13", "a/orders-0", "c/orders-0"),
        (14, "lost 14", "a/orders-0", "c/orders-0"),
    ]
    assert {each["paths"][0]: each["isLost"] for each in records} == {"a/orders-0": True, "b/orders-0": False}
    partition, summary = items[-2:]
    assert [each["lostRecords"] for each in partition["truncations"]] == [5, 5]
    assert partition["lostRecords"] == summary["lostRecords"] == 5  # each once
    assert partition["copies"][0]["records"] == 0  # another copy has them too


def test_text_says_where_and_what_is_lost(diverged_copies: Path) -> None:
    ran = kseg(["diff", "a", "b", "--leader", "b"], diverged_copies)
    text = ran.stdout.decode()
    assert ran.status == 1
    assert text.startswith("orders-0: diverged at offset 10 in leader epoch 2\n")
    assert "    only here: 5 records with leader epoch 0 (offsets 10-14)\n" in text
    assert "a/orders-0 truncates to offset 10 by leader epochs, and loses 5 records with leader epoch 0" in text
    assert text.endswith("1 partition: 1 diverged; 5 records lost under the leader\n")


def test_csv_has_a_row_for_each_copy_or_for_each_record(diverged_copies: Path) -> None:
    copies = kseg(["diff", "a", "b", "--leader", "b", "-o", "csv"], diverged_copies).stdout.decode().splitlines()
    assert copies[1] == "orders,0,diverged,a/orders-0,0,15,,0,5,3,10,10,10,5"
    assert copies[2] == "orders,0,diverged,b/orders-0,0,13,,2,3,5,10,10,,"
    records = kseg(["diff", "a", "b", "--records", "-o", "csv"], diverged_copies).stdout.decode().splitlines()
    assert len(records) == 1 + 5 + 3
    assert records[1].endswith('2023-11-14T22:13:20.000Z,"10","lost 10","[]"')


def test_table_has_all_copies(diverged_copies: Path) -> None:
    lines = kseg(["diff", "a", "b", "c", "-o", "table"], diverged_copies).stdout.decode().splitlines()
    assert len([line for line in lines if "diverged " in line and "orders-0" in line]) == 3


def test_quiet_leaves_out_what_is_identical(diverged_copies: Path) -> None:
    assert kseg(["diff", "a", "c", "-q"], diverged_copies) == (0, b"", b"")
    assert kseg(["diff", "a", "c"], diverged_copies).stdout == (
        b"orders-0: identical, 2 copies, offsets 0 to 14\n1 partition: 1 identical\n"
    )


def test_partition_of_one_side_is_only_here(diverged_copies: Path) -> None:
    (diverged_copies / "c" / "orders-0").rename(diverged_copies / "c" / "orders-1")
    status, (first, second, summary) = run_diff(diverged_copies, "a", "c")
    assert (status, summary["verdicts"]["onlyHere"]) == (1, 2)
    assert (first["partition"], first["absentFrom"], second["partition"]) == (0, ["c"], 1)
    assert ranges(first["onlyIn"]) == {("a", 0): [(0, 14)]}


def test_missing_partitions_are_one_line_per_topic(tmp_path: Path) -> None:
    for side, numbers in (("a", (0, 1, 2, 3, 5)), ("b", (3,))):
        for number in numbers:
            replica(tmp_path / "made", [Part(0, 0, 3)])
            (tmp_path / side).mkdir(exist_ok=True)
            (tmp_path / "made" / "orders-0").rename(tmp_path / side / f"orders-{number}")
    lines = kseg(["diff", "a", "b"], tmp_path).stdout.decode().splitlines()
    assert lines[0] == "orders: partitions 0-2,5 missing in b"
    assert lines[1:-1] == ["orders-3: identical, 2 copies, offsets 0 to 2"]
    assert "orders-5: only in a/orders-5" in kseg(["diff", "a", "b", "-v"], tmp_path).stdout.decode().splitlines()


def test_directories_of_single_partitions_are_compared_whatever_their_names(diverged_copies: Path) -> None:
    (diverged_copies / "c" / "orders-0").rename(diverged_copies / "restored")
    status, (partition, _) = run_diff(diverged_copies, "a/orders-0", "restored")
    assert (status, partition["verdict"]) == (0, "identical")


def test_leader_must_be_one_of_the_sides(diverged_copies: Path) -> None:
    ran = kseg(["diff", "a", "b", "--leader", "c"], diverged_copies)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr == b"kseg: c: --leader isn't one of the compared directories\n"


def test_side_that_is_not_there_is_an_error_and_the_rest_is_done(diverged_copies: Path) -> None:
    ran = kseg(["diff", "a", "c", "nowhere"], diverged_copies)
    assert ran.status == 2
    assert ran.stderr == b"kseg: nowhere: no such file or directory\n"


def test_files_are_no_sides(diverged_copies: Path) -> None:
    ran = kseg(["diff", "a/orders-0/00000000000000000000.log", "b"], diverged_copies)
    assert ran.status == 2
    assert b"it is a log segment, where a directory is expected" in ran.stderr


def test_directory_that_is_given_twice_is_told(diverged_copies: Path) -> None:
    ran = kseg(["diff", "a", "./a"], diverged_copies)
    assert (ran.status, ran.stderr) == (0, b"kseg: a and a are the same directory\n")


def test_short_third_copy_does_not_hide_what_the_others_share(tmp_path: Path) -> None:
    for side, count in (("a", 10), ("b", 10), ("c", 3)):
        replica(tmp_path / side, [Part(0, number * 10, 10) for number in range(count)])
    partition = diffed_one(tmp_path, "a", "b", "c", "--leader", "c")
    assert partition["verdict"] == "ahead"
    assert [copy["missing"] for copy in partition["copies"]] == [0, 0, 70]
    assert [each["lostRecords"] for each in partition["truncations"]] == [70, 70]
    assert (partition["lostRecords"], partition["onlyIn"]) == (70, [])


def test_partition_that_is_being_deleted_is_left_out(diverged_copies: Path) -> None:
    copy_partition(diverged_copies / "a" / "orders-0", diverged_copies / "a" / "gone")
    (diverged_copies / "a" / "gone" / "orders-0").rename(diverged_copies / "a" / f"orders-1.{'0' * 32}-delete")
    (diverged_copies / "a" / "gone").rmdir()
    gone = f"a/orders-1.{'0' * 32}-delete"
    said = f"kseg: omitted: {gone}: about to be deleted by its broker (-delete)\n".encode()
    status, (*partitions, _) = run_diff(diverged_copies, "a", "c", said=said)
    assert (status, len(partitions)) == (0, 1)


ABANDONED = "".join(
    f"kseg: omitted: {side}/orders-0: offsets 10 to 14, leader epoch 0:"
    " the cluster continued without them (`kseg diff`)\n"
    for side in "ac"
).encode()
"""Warnings of the side with three disks about abandoned batches."""


@pytest.mark.parametrize("sides", [(".", "a"), ("a", ".")])
def test_leader_inside_of_another_side_is_found(diverged_copies: Path, sides: tuple[str, str]) -> None:
    status, (partition, _) = run_diff(diverged_copies, *sides, "--leader", "a", said=ABANDONED)
    assert (status, partition["leaderPath"]) == (1, "a/orders-0")


def test_leader_without_a_copy_is_told(diverged_copies: Path) -> None:
    replica(diverged_copies / "b" / "other", [Part(0, 0, 3)])
    (diverged_copies / "b" / "other" / "orders-0").rename(diverged_copies / "b" / "orders-7")
    (diverged_copies / "b" / "other").rmdir()
    _, items = run_diff(diverged_copies, "a", "b", "--leader", "a", "--partition", "7")
    assert [each["leaderPath"] for each in items[:-1]] == [None]
    text = kseg(["diff", "a", "b", "--leader", "a", "--partition", "7"], diverged_copies).stdout.decode()
    assert "  not in a\n  the side of the leader has no copy\n" in text


def test_partition_that_no_side_has_is_missing(restored: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(restored / "logs" / "4.3.1", tmp_path / name)
        shutil.rmtree(tmp_path / name / "zstd-0")
    chosen = ["--topic", "zstd", "--topic", "append-zstd", "--partition", "0"]
    status, (*_, partition, summary) = run_diff(tmp_path, "a", "b", *chosen)
    assert (status, summary["verdicts"]["missing"], summary["verdicts"]["identical"]) == (1, 1, 1)
    assert (partition["verdict"], partition["topic"], partition["partition"]) == ("missing", "zstd", 0)
    assert (partition["copies"], partition["absentFrom"]) == ([], ["a", "b"])
    for form in ("text", "csv", "table"):
        ran = kseg(["diff", "a", "b", *chosen, "-o", form], tmp_path)
        assert ran.status == 1
        assert b"missing" in ran.stdout


def test_side_of_a_broker_without_a_replica_lacks_nothing(restored: Path, tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        shutil.copytree(restored / "logs" / "4.3.1", tmp_path / name)
    shutil.rmtree(tmp_path / "c" / "zstd-0")
    chosen = ["--topic", "zstd", "--partition", "0"]
    assert diffed_one(tmp_path, "a", "b", "c", *chosen)["absentFrom"] == ["c"]
    properties = tmp_path / "c" / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=7"))
    status, (partition, _) = run_diff(tmp_path, "a", "b", "c", *chosen)
    assert (status, partition["verdict"], partition["absentFrom"]) == (0, "identical", [])


def test_brokers_of_two_clusters_have_no_replicas_in_common(restored: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        shutil.copytree(restored / "logs" / "4.3.1", tmp_path / name)
    shutil.rmtree(tmp_path / "b" / "__cluster_metadata-0")
    shutil.rmtree(tmp_path / "b" / "zstd-0")
    properties = tmp_path / "b" / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=7").replace("AbhBk", "Other"))
    partition = diffed_one(tmp_path, "a", "b", "--topic", "zstd")
    assert (partition["verdict"], partition["absentFrom"]) == ("onlyHere", ["b"])


def test_empty_copy_has_nothing_in_common_with_another(tmp_path: Path) -> None:
    write_segment(tmp_path / "a" / "orders-0", [NewBatch([NewRecord(b"k", b"v")] * 3)])
    write_segment(tmp_path / "b" / "orders-0", [])
    said = kseg(["diff", "a/orders-0", "b/orders-0"], tmp_path).stdout.decode()
    assert said.startswith("orders-0: ahead: nothing in common, because the shortest copy is empty\n")
