"""Rows of starts on damaged disks, and kseg on these disks, made again from the base disks. No broker runs here."""

import sys
from collections import Counter
from pathlib import Path

import pytest

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
from start.cells import STOPS
from start.classes import CLASSES, REFUSES
from start.coverage import coverage
from start.verdicts import RANKS, archive_of, faulty_disk, findings, rows, sound_disk

EVERY = 25
"""Rows of which kseg reads one."""
KEY = ("file", "fault", "kind", "stop", "role", "release")


@pytest.fixture(scope="module")
def disks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("disks")


def test_each_row_has_a_base_disk_and_no_cell_has_two_rows() -> None:
    assert [row for row in rows() if not archive_of(row).exists()] == []
    keys = Counter(tuple(row[name] for name in KEY) for row in rows())
    assert [key for key, count in keys.items() if count > 1] == []


def test_rows_of_refused_starts_tell_of_the_next_start() -> None:
    assert [row for row in rows() if ("second" in row) != (row["class"] == REFUSES)] == []
    assert {row["second"] for row in rows() if "second" in row} <= set(CLASSES)


@pytest.mark.parametrize("stop", STOPS)
def test_each_fault_of_a_combined_node_has_a_row_unless_the_disk_cannot_have_it(stop: str) -> None:
    assert coverage("4.4.0", "combined", stop).not_run == 0


@pytest.mark.parametrize("command", ["verify", "doctor"])
def test_disks_with_faults_are_read_to_the_end(command: str, disks: Path) -> None:
    for row in rows()[::EVERY]:
        with faulty_disk(row, sound_disk(row, disks)) as disk:
            assert {severity for severity, _, _ in findings(command, disk)} <= set(RANKS), row
