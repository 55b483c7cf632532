"""What kseg says of disks with the faults of measured rows agrees with what the starts on them did. No broker runs."""

import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

from tests import golden
from tests.loops import for_each

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
from start.rows import Row
from start.verdicts import contradicts, faulty_disk, findings, rows, sound_disk, verdict

EVERY = 75
"""Rows of which `make test` takes one."""

TAIL = "a kill, or a failure of the machine, leaves the same, and nothing on the disk says what was acknowledged"
READER = "the row's reader asked for few offsets and times, and a lookup goes wrong for some"
FITS = "another partition's bytes that fit: no file of the partition has its name"
UNTOLD = "no other file on the disk has it"
ROLE = "nothing on the disk says whether the node is a controller"
TIMING = "the broker tells the controller where its partitions are, and the reader may come before that"

EXCEPTIONS: dict[tuple[str, str], str] = {
    ("last .log", "cut in header"): TAIL,
    ("last .log", "cut in body"): TAIL,
    ("last .log", "empty"): TAIL,
    ("last segment", "renamed to .swap, cut"): TAIL,
    ("middle segment", "renamed to .swap, cut"): TAIL,
    ("first segment", "renamed to .deleted"): "retention leaves the same",
    ("first .index", "another's"): READER,
    ("middle .index", "another's"): READER,
    ("first .timeindex", "another's"): READER,
    ("first .log", "another's"): FITS,
    ("last .log", "another's"): FITS,
    ("first .log", "one bit of a base offset changed"): "no CRC covers it, and a compacted log may lack any offsets",
    ("last metadata .log", "one bit of a base offset changed"): "no CRC covers it; of five starts one was refused",
    ("last metadata .checkpoint", "another's"): "a controller alone has no partitions to lose",
    ("last metadata .checkpoint", "cut in body"): "a controller alone has no partitions to lose",
    ("__cluster_metadata-0", "absent"): ROLE,
    ("__cluster_metadata-0", "empty"): ROLE,
    ("meta.properties", "another cluster's"): UNTOLD,
    ("meta.properties", "another node's"): UNTOLD,
    ("meta.properties", "another directory's"): TIMING,
    ("meta.properties", "one bit changed"): TIMING,
    ("quorum-state", "a later epoch"): UNTOLD,
    ("cleaner-offset-checkpoint", "one bit changed"): "the cleaner went over a log once more, as it may at any time",
}
"""Faults of which some rows contradict the verdict, and why kseg can't know better."""
MOST_CONTRADICTED = 70
"""Rows of all that are exceptions, at most."""

OF_ROWS = {
    "foreign-directory": ("log directory", "with an unknown folder", "clean"),
    "identity-missing": ("meta.properties", "absent", "clean"),
    "identity-differs": ("log directory", "with a second log directory of another cluster", "clean"),
    "directory-unknown": ("meta.properties", "another directory's", "clean"),
    "metadata-missing": ("__cluster_metadata-0", "absent", "killed"),
    "metadata-checkpoint": ("last metadata .checkpoint", "cut in body", "clean"),
    "metadata-checkpoint-old": ("first metadata .checkpoint", "empty", "clean"),
    "metadata-log": ("last metadata .log", "one bit changed", "killed"),
    "other-owner": ("quorum-state", "unreadable", "clean"),
    "copy-missing": ("folder", "absent", "killed"),
    "topic-id-missing": ("partition.metadata", "absent", "clean"),
    "other-topic-id": ("partition.metadata", "another's", "clean"),
    "not-in-metadata": ("log directory", "with a partition of an unknown topic", "clean"),
    "unclean-tail": ("last .log", "padded with zeros", "clean"),
    "unclean-index": ("last .timeindex", "padded with zeros", "clean"),
    "log-end-lost": ("last .log", "empty", "clean"),
    "index-inexact": ("middle .index", "one bit changed", "clean"),
    "index-rebuilt": ("last .txnindex", "empty", "killed"),
    "time-index-zeros": ("first .timeindex", "padded with zeros", "killed"),
    "producer-state-wrong": ("last .snapshot", "another's", "clean"),
    "leftover-log": ("middle segment", "renamed to .deleted", "clean"),
    "misnamed-file": ("folder", "with a log of another name", "killed"),
    "orphan-index": ("first .log", "absent", "killed"),
    "bootstrap-checkpoint": ("bootstrap.checkpoint", "empty", "clean"),
}
"""Findings about starts, each with the file, the fault and the stop of a row that has it."""


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


def contradicted(command: str, measured: Iterable[Row], disks: Path) -> list[Row]:
    """The rows that a command contradicts."""
    usual = {}
    found = []
    for row in measured:
        sound = sound_disk(row, disks)
        if sound not in usual:
            usual[sound] = findings(command, sound)
        with faulty_disk(row, sound) as disk:
            if contradicts(row, verdict(findings(command, disk), usual[sound]).worst):
                found.append(row)
    return found


def unexplained(found: Iterable[Row]) -> list[Row]:
    return [row for row in found if (row["file"], row["fault"]) not in EXCEPTIONS]


@pytest.mark.parametrize(("command", "first"), [("verify", 0), ("doctor", EVERY // 2)])
def test_verdict_follows_the_start(command: str, first: int, disks: Path) -> None:
    assert unexplained(contradicted(command, rows()[first::EVERY], disks)) == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_verdict_follows_all_starts(command: str, disks: Path) -> None:
    found = contradicted(command, rows(), disks)
    assert unexplained(found) == []
    assert len(found) <= MOST_CONTRADICTED
    assert {(row["file"], row["fault"]) for row in found} == set(EXCEPTIONS)


@for_each("finding_id", OF_ROWS)
def test_fault_of_a_row_has_its_finding(finding_id: str, disks: Path) -> None:
    key = OF_ROWS[finding_id]
    combined = [row for row in rows() if row["role"] == "combined"]
    row = next(row for row in combined if (row["file"], row["fault"], row["stop"]) == key)
    sound = sound_disk(row, disks)
    with faulty_disk(row, sound) as disk:
        new = findings("verify", disk) - findings("verify", sound)
    assert finding_id in {found for _, found, _ in new}
