"""The twin carves like the compiled kernel, on arbitrary bytes."""

from array import array

from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.carve_contract import CRC_STEP, HEADER_VALUES
from tests.kernel.made import BATCHES, ENTRIES, BatchHeader, Record, batch, damage_contents

CONTENTS = damage_contents(st.lists(st.one_of(BATCHES, ENTRIES), max_size=6).map(b"".join))
LARGE = batch(BatchHeader(base_offset=9, last_offset_delta=1), [Record(b"k", bytes(5000)), Record(b"k", bytes(4000))])


@settings(max_examples=150, deadline=None)
@given(CONTENTS, st.integers(0, 700), st.integers(0, 4), st.booleans(), st.booleans(), st.integers(0, 2**40))
def test_batches_are_found_equally(
    content: bytes, zeros: int, room: int, is_last: bool, is_legacy: bool, position: int
) -> None:
    content = bytes(zeros) + content
    results = []
    for kernel in (fast, twin):
        crcs = array("I", bytes(4 * (len(content) // CRC_STEP + 1)))
        rows = array("q", bytes(8 * HEADER_VALUES * room))
        kernel.step_crcs(memoryview(content), 0, len(content) // CRC_STEP, crcs)
        found = kernel.find_batches(memoryview(content), 0, len(content), position, crcs, rows, 0, is_last, is_legacy)
        results.append((found, rows, crcs))
    assert results[0] == results[1]


def test_large_batches_have_the_crc_of_their_steps() -> None:
    content = bytes(1000) + LARGE + bytes(77) + LARGE
    for kernel in (fast, twin):
        crcs = array("I", bytes(4 * (len(content) // CRC_STEP + 1)))
        rows = array("q", bytes(8 * HEADER_VALUES * 3))
        kernel.step_crcs(memoryview(content), 0, len(content) // CRC_STEP, crcs)
        found = kernel.find_batches(memoryview(content), 0, len(content), 0, crcs, rows, 0, True, False)
        assert found[0] == 2
        assert rows[0 : 2 * HEADER_VALUES : HEADER_VALUES].tolist() == [1000, 1000 + len(LARGE) + 77]


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5), st.integers(1, 90), st.integers(0, 3)), max_size=20),
)
def test_copies_are_found_equally(parts: list[tuple[int, int, int, int]]) -> None:
    rows, at, offset = array("q"), 0, 0
    for gap, offsets, size, crc in parts:
        at += max(gap - 6, 0)
        offset += offsets - 1
        rows.extend([at, offset, size, 0, 2, crc, 0, offset + 1, 0, 0, 0, 0, 0, 1, 1])
        at += size
        offset += 2
    count = len(parts)
    assert fast.find_copies(rows, count) == twin.find_copies(rows, count)
