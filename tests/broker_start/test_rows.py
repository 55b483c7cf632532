"""The measured rows of starts on damaged disks: they are complete, and each once."""

import sys
from collections import Counter

import pytest

from tests import golden

sys.path.insert(0, str(golden.ROOT.parent / "tools"))
from start.cells import STOPS
from start.classes import CLASSES, REFUSES
from start.coverage import coverage
from start.verdicts import archive_of, rows

KEY = ("file", "fault", "kind", "stop", "role", "release")


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
