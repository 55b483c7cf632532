"""`kseg verify --cluster` as its user sees it: are some disks enough to bring a cluster back?"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.log.replicas import Part, batch
from tests.log_files import write_segment
from tests.run import Run, kseg

HERE = {"__consumer_offsets-1", "__share_group_state-1", "__transaction_state-0", "append-zstd-0", "compacted-txn-0"}
HERE |= {"meta.9-0", "zstd-0"}
"""Kept partitions of the golden broker; its metadata has 70."""


@pytest.fixture
def disk(restored: Path, tmp_path: Path) -> Path:
    """Return a broker's only log directory."""
    return Path(shutil.copytree(restored / "logs" / "4.3.1", tmp_path / "disk"))


def run_verify(disk: Path, *arguments: str) -> tuple[list[dict[str, Any]], dict[str, dict[str, Any]]]:
    """Return findings, and the cluster's partitions by name."""
    ran = kseg(["verify", "--cluster", disk.name, *arguments, "-o", "json"], disk.parent)
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    partitions = {f"{row['topic']}-{row['partition']}": row for row in rows if row["type"] == "partition"}
    findings = [row for row in rows if row["type"] == "finding" and row["severity"] != "note"]
    assert ran.status == int(bool(findings))
    return findings, partitions


def verify(disk: Path, *arguments: str) -> Run:
    return kseg(["verify", "--cluster", disk.name, *arguments], disk.parent)


def test_partitions_without_a_copy_are_missing(disk: Path) -> None:
    findings, partitions = run_verify(disk)
    assert len(partitions) == 70
    assert {name for name, each in partitions.items() if each["verdict"] == "enough"} == HERE
    missing = {name for name, each in partitions.items() if each["verdict"] == "missing"}
    assert missing == partitions.keys() - HERE
    assert {Path(each["file"]).name for each in findings if each["id"] == "no-copy"} == missing
    assert {each["id"] for each in findings} == {"no-copy"}


def test_longest_copy_comes_first(disk: Path) -> None:
    other = disk.with_name("other")
    kseg(["slice", "disk/zstd-0", "--to-offset", "400", "--to", "other/zstd-0"], disk.parent)
    assert shutil.copy(disk / "meta.properties", other)
    _, partitions = run_verify(other, "disk", "--topic", "zstd", "--partition", "0")
    assert [copy["path"] for copy in partitions["zstd-0"]["copies"]] == ["disk/zstd-0", "other/zstd-0"]
    assert partitions["zstd-0"]["copies"][0]["logEndOffset"] == 571


def test_copy_of_a_replica_that_was_not_in_sync_may_lack_records(disk: Path) -> None:
    properties = disk / "meta.properties"
    properties.write_text(properties.read_text().replace("node.id=1", "node.id=7"))
    findings, partitions = run_verify(disk, "--topic", "append-zstd")
    assert partitions["append-zstd-0"]["verdict"] == "behind"
    (found,) = (each for each in findings if each["id"] == "no-in-sync-copy")
    assert found["sentence"] == (
        "only copy here: broker 7, offsets 104 to 219, last leader epoch 2; replicas are on brokers 1, in sync 1"
    )


def lay(log_dir: Path, *bases: int) -> None:
    """Write the partition zstd-0 with segments of 100 records each, instead of its own."""
    shutil.rmtree(log_dir / "zstd-0", ignore_errors=True)
    for base in bases:
        write_segment(log_dir / "zstd-0", [batch(Part(0, base, 100))], base)


def test_segments_that_no_copy_has_are_a_gap(disk: Path) -> None:
    lay(disk, 0, 100, 300)
    findings, partitions = run_verify(disk, "--topic", "zstd", "--partition", "0")
    assert partitions["zstd-0"]["verdict"] == "gaps"
    assert partitions["zstd-0"]["missingOffsets"] == [{"from": 200, "to": 299}]
    (found,) = (each for each in findings if each["id"] == "offsets-in-no-copy")
    assert (found["firstOffset"], found["lastOffset"]) == (200, 299)


def test_a_single_offset_that_no_copy_has_is_a_gap(disk: Path) -> None:
    lay(disk, 0, 101)
    _, partitions = run_verify(disk, "--topic", "zstd", "--partition", "0")
    assert partitions["zstd-0"]["missingOffsets"] == [{"from": 100, "to": 100}]


def test_another_copy_fills_a_gap(disk: Path) -> None:
    lay(disk, 0, 100, 300)
    lay(disk.with_name("other"), 200, 300)
    _, partitions = run_verify(disk, "other", "--topic", "zstd", "--partition", "0")
    assert partitions["zstd-0"]["missingOffsets"] == []
    assert partitions["zstd-0"]["verdict"] == "enough"


def test_offsets_of_an_abandoned_lineage_fill_no_gap(disk: Path) -> None:
    other = disk.with_name("other")
    for log_dir, parts in ((disk, (Part(0, 0, 100), Part(4, 200, 100))), (other, (Part(0, 0, 100), Part(3, 100, 100)))):
        lay(log_dir)
        for part in parts:
            write_segment(log_dir / "zstd-0", [batch(part)], part.first)
    findings, partitions = run_verify(disk, "other", "--topic", "zstd", "--partition", "0")
    assert partitions["zstd-0"]["verdict"] == "gaps"
    assert partitions["zstd-0"]["missingOffsets"] == [{"from": 100, "to": 199}]
    assert [copy["agreedEndOffset"] for copy in partitions["zstd-0"]["copies"]] == [None, 100]
    assert "offsets-in-no-copy" in {each["id"] for each in findings}
    ran = verify(disk, "other", "--topic", "zstd", "--partition", "0", "-v")
    assert b"offsets 0 to 199, last leader epoch 3, abandoned from offset 100 on\n" in ran.stdout


def test_directory_of_an_earlier_topic_is_no_copy(disk: Path) -> None:
    metadata = disk / "zstd-0" / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAABQ\n")
    findings, partitions = run_verify(disk, "--topic", "zstd", "--partition", "0")
    assert partitions["zstd-0"]["verdict"] == "missing"
    assert [copy["path"] for copy in partitions["zstd-0"]["otherTopics"]] == ["disk/zstd-0"]
    assert {each["id"] for each in findings} == {"no-copy", "other-topic-id"}


def test_partition_that_the_cluster_does_not_have_is_named(disk: Path) -> None:
    (disk / "zstd-0").rename(disk / "gone-0")
    findings, _ = run_verify(disk, "--topic", "gone")
    assert [(each["id"], each["file"]) for each in findings] == [("not-in-metadata", "disk/gone-0")]


def test_text_lists_copies_on_demand_and_sums_them_up(disk: Path) -> None:
    ran = verify(disk, "--topic", "zstd", "--partition", "0", "-v")
    assert ran.status == 0
    copies = b"zstd-0: enough\n  disk/zstd-0: broker 1, offsets 281 to 570, last leader epoch 2\n"
    assert ran.stdout.startswith(copies + b"A broker would start without problems, as far as kseg read.\n")
    assert ran.stdout.endswith(b"\nok\n")
    assert b"1 partition in the metadata up to offset 675 from 2026-11-21T10:14:40.884Z: 1 recoverable" in ran.stderr


def test_without_metadata_nothing_can_be_said(restored: Path) -> None:
    ran = kseg(["verify", "--cluster", "1.1.1"], restored / "logs")
    assert ran.status == 2
    assert b"__cluster_metadata" in ran.stderr.splitlines()[-1]
