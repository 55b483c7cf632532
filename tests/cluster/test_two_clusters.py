"""Directories of two clusters in one call: commands that join partitions refuse them, listings keep them apart."""

import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

import kseg
from tests.cluster.made_metadata import write_metadata
from tests.cluster.questions import lines
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.run import kseg as run

IDS = {"a": "cJFU-m2vQ6uCEEqPGgnDXw", "b": "p1XHsPOYQDm0-X-eJ7nDVQ", "z": "AAAAAAAAAAAAAAAAAAAABQ"}
OF_OTHER = "AAAAAAAAAAAAAAAAAAAABg"
"""The id of the topic `z` of the other cluster, or of one that was deleted."""


@pytest.fixture
def disks(tmp_path: Path) -> Path:
    """Two clusters with a topic each; both also have one with the name `z`, and the first one's is outdated."""
    for number, (cluster, topic) in enumerate((("one", "a"), ("two", "b")), 1):
        for name, topic_id in ((topic, IDS[topic]), ("z", OF_OTHER)):
            records = [NewRecord(b"k", name.encode(), 1000)] * 3
            write_segment(tmp_path / cluster / f"{name}-0", [NewBatch(records)])
            told = f"version: 0\ntopic_id: {topic_id}\n"
            (tmp_path / cluster / f"{name}-0" / "partition.metadata").write_text(told, encoding="utf-8")
        identity = f"version=1\nnode.id={number}\ncluster.id={cluster}\n"
        (tmp_path / cluster / "meta.properties").write_text(identity, encoding="utf-8")
    write_metadata(tmp_path / "one", {"a": IDS["a"], "z": IDS["z"]})
    return tmp_path


@pytest.mark.parametrize("choice", [(), ("--topic", "a")], ids=["all", "one topic"])
@pytest.mark.parametrize(
    "command",
    [
        ("dump",),
        ("export", "--dry-run", "new"),
        ("lookup", "--partition", "0", "--offset", "1"),
        ("salvage", "--dry-run"),
        ("serve", "--listen", "127.0.0.1:0"),
        ("report",),
        ("query", "SELECT count(*) FROM records"),
        ("where", "--key", "k", "--topic", "a"),
        ("verify", "--cluster"),
    ],
    ids=lambda command: command[0],
)
def test_what_joins_partitions_refuses_them(command: tuple[str, ...], choice: tuple[str, ...], disks: Path) -> None:
    """A choice of partitions changes no answer."""
    paths = ("one", "two") if command[-1] != "new" else ("one", "two", "new")
    named = [each for each in command if each != "new"]
    ran = run([*named, *paths, *choice], disks)
    assert ran.status == 2
    assert command[0] == "verify" or ran.stdout == b""  # findings in single files are true in any case
    assert b" belong to different clusters, one and two; specify the directories of one cluster" in ran.stderr


def test_values_of_python_are_refused_too(disks: Path) -> None:
    with pytest.raises(kseg.UsageError, match="belong to different clusters, one and two"):
        kseg.open_cluster([disks / "one", disks / "two"]).topics  # noqa: B018 - reads them


@pytest.mark.parametrize("command", ["ls", "retain"])
def test_directory_is_to_each_cluster_what_it_is_without_the_other(command: str, disks: Path) -> None:
    def to_delete(*paths: str) -> dict[object, object]:
        rows = lines(disks, [command, "-o", "json", "--now", "2030-01-01"], paths, ())
        own = [row for row in rows if row["type"] in ("partition", "segment") and not is_metadata(row)]
        return {row["directory"]: row.get("segmentsToDelete", row.get("retention") is not None) for row in own}

    alone = {**to_delete("one"), **to_delete("two")}
    assert {name: count for name, count in alone.items() if count} == {"one/a-0": 1, "two/b-0": 1, "two/z-0": 1}
    assert to_delete("one", "two") == to_delete("two", "one") == alone


def is_metadata(row: Mapping[str, object]) -> bool:
    return "__cluster_metadata" in str(row["directory"])


def test_the_metadata_themselves_are_in_use(disks: Path) -> None:
    rows = lines(disks, ["doctor", "-o", "json"], ["one", "two"], ())
    not_in_use = {row["topic"]: row["bytesNotInUse"] for row in rows if row["type"] == "topic"}
    assert {topic: size for topic, size in not_in_use.items() if size} == {"z": 88}


@pytest.mark.parametrize(
    "command", [("query", "SELECT count(*) FROM records"), ("export", "--dry-run", "--to", "new"), ("dump",)]
)
def test_log_directory_without_partitions_is_of_its_cluster(command: tuple[str, ...], disks: Path) -> None:
    for each in (disks / "two").glob("*-0"):
        shutil.rmtree(each)
    ran = run([*command, "one", "two"], disks)
    assert (ran.status, ran.stdout) == (2, b"")
    assert b" belong to different clusters, one and two; specify the directories of one cluster" in ran.stderr
