"""The loops of tests: no case is omitted, and failed cases are named."""

import re
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
LEAVING = """
import json

import pytest
from tests.loops import for_each

@for_each("how", ["skips", "expects", "passes"])
def test_left(how):
    if how == "skips":
        pytest.skip("not here")
    if how == "expects":
        pytest.xfail("known")

@for_each("text", ["x" * 1000], ids=lambda text: text)
def test_deep(text):
    json.loads(text)
"""


def test_all_cases_run_and_each_failure_is_named(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(PROGRAM)
    result = pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*2 of 3 cases fail", "E*case 4: *AssertionError: is odd*", "E*case 7: *is odd*"])
    result.stdout.fnmatch_lines(["*1 of 2 cases fail", "E*(1, 2): *assert 1 == 2*"])


def test_a_case_that_skips_itself_or_expects_to_fail_is_a_failure(pytester: pytest.Pytester) -> None:
    result = run_left(pytester, "test_left")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*2 of 3 cases fail", "E*skips: *Skipped: not here*", "E*expects: *XFailed: known*"])


def test_a_failure_shows_a_short_name_and_a_line_of_the_test(pytester: pytest.Pytester) -> None:
    result = run_left(pytester, "test_deep")
    (shown,) = [line for line in result.outlines if line.startswith("E ") and "…: " in line]
    line = LEAVING.lstrip().splitlines().index("    json.loads(text)") + 1
    assert re.fullmatch(rf"E +x{{99}}…: test_\w+\.py:{line}: JSONDecodeError: .*", shown)


def run_left(pytester: pytest.Pytester, name: str) -> pytest.RunResult:
    pytester.makepyfile(LEAVING)
    return pytester.runpytest_subprocess("-p", "no:randomly", "-p", "no:cacheprovider", "-k", name)


def test_a_loop_with_more_shards_than_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="3 shards for 2 cases of path"):
        for_each("path", [1, 2], shards=3)


def test_a_loop_without_cases_is_refused() -> None:
    with pytest.raises(AssertionError, match="no case for path"):
        for_each("path", [])


@for_each("number", [0, 1, 2], shards=2)
def test_each_case_has_a_directory_of_its_own(number: int, tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
