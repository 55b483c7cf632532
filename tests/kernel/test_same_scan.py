"""The twin scans and searches like the compiled kernel, on arbitrary bytes."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import new_rows
from tests import golden
from tests.kernel.made import BATCHES, ENTRIES, INT64, damage_contents

CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=4).map(b"".join))
MARGINS = st.integers(0, 30)


@settings(max_examples=150, deadline=None)
@given(CONTENTS, MARGINS, MARGINS, st.integers(0, 3))
def test_scans_are_equal(content: bytes, before: int, behind: int, count: int) -> None:
    end = max(len(content) - behind, 0)
    start = min(before, end)
    results = []
    for kernel in (fast, twin):
        rows = new_rows(count + 2)
        results.append((kernel.scan(memoryview(content), start, end, rows, count), rows))
    assert results[0] == results[1]


@settings(max_examples=150, deadline=None)
@given(
    CONTENTS,
    MARGINS,
    MARGINS,
    st.one_of(st.just(0), INT64),
    st.one_of(st.integers(-9, 700), st.integers(0, 2**40)),
    st.booleans(),
)
def test_searches_are_equal(content: bytes, before: int, behind: int, base: int, room: int, is_near: bool) -> None:
    end = max(len(content) - behind, 0)
    start = min(before, end)
    if is_near:
        base = max(int.from_bytes(content[:8], "big", signed=True) - base % 2**31, 0)
    found = [kernel.find_header(memoryview(content), start, end, base, room) for kernel in (fast, twin)]
    assert found[0] == found[1]


@pytest.mark.parametrize("files", [golden.files, golden.damaged_files], ids=["healthy", "damaged"])
def test_golden_files_are_scanned_and_searched_equally(files: Callable[[str], list[Path]]) -> None:
    for path in files(".log"):
        content = memoryview(path.read_bytes())
        results = []
        for kernel in (fast, twin):
            rows = new_rows(len(content) // 26 + 1)
            scanned = kernel.scan(content, 0, len(content), rows, 0)
            headers = [kernel.find_header(content, start, len(content), 0, len(content)) for start in (0, 1, 100)]
            results.append((scanned, rows, headers))
        assert results[0] == results[1], path
