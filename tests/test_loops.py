"""The loops that tests run in: no case is left out, and those that fail are named."""

from pathlib import Path

import pytest

from tests.loops import for_each

PROGRAM = """
import os
from tests.loops import for_each

@for_each("number", range(10), ids=lambda number: f"case {number}", shards=3)
def test_small(number, tmp_path, monkeypatch):
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "left").touch()
    assert "LEFT" not in os.environ
    monkeypatch.setenv("LEFT", "1")
    assert number not in (4, 7), "is odd"

@for_each("first, second", [(1, 1), (1, 2)])
def test_pairs(first, second):
    assert first == second
"""


def test_all_cases_run_and_each_failure_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PROGRAM)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*2 of 3 cases fail", "E*case 4: *AssertionError: is odd*", "E*case 7: *is odd*"])
    result.stdout.fnmatch_lines(["*1 of 2 cases fail", "E*(1, 2): *assert 1 == 2*"])


def test_a_loop_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="no case for path"):
        for_each("path", [])


@for_each("number", [0, 1, 2], shards=2)
def test_each_case_has_a_directory_of_its_own(number: int, tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
