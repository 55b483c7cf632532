"""The twin carves like the compiled kernel, on arbitrary bytes."""

import random
from array import array

import pytest
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
    st.integers(1, 130),
)
def test_rows_are_split_and_compared_equally(parts: list[tuple[int, int, int, int]], block: int) -> None:
    rows, at, offset = array("q"), 0, 0
    for gap, offsets, size, crc in parts:
        at += max(gap - 6, 0)
        offset += offsets - 1
        rows.extend([at, offset, size, 0, 2, crc, 0, offset + 1, 0, 0, 0, 0, 0, 1, 1])
        at += size
        offset += 2
    count = len(parts)
    assert fast.split_runs(rows, count, block, 0) == twin.split_runs(rows, count, block, 0)
    assert fast.find_copies(rows, count) == twin.find_copies(rows, count)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9000), st.integers(1, 600), st.integers(1, 700), st.booleans())
def test_breaks_fit_equally(seed: int, cut: int, first: int, step: int, is_right: bool) -> None:
    cut = min(cut, len(LARGE) - 1)
    noise = random.Random(seed).randbytes(len(LARGE))
    head, tail = LARGE[:cut] + noise[cut:], noise[:cut] + LARGE[cut:]
    crc = int.from_bytes(LARGE[17:21], "big") ^ (not is_right)
    for size in (len(head), cut):
        found = [
            kernel.fit_breaks(memoryview(head[:size]), memoryview(tail), crc, first, step) for kernel in (fast, twin)
        ]
        assert found[0] == found[1]
        if cut >= 21 or not is_right:  # below, the CRC covers no byte of the head
            assert (cut in found[0]) == (is_right and cut >= first and (cut - first) % step == 0)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.integers(0, 3), st.integers(1, 40), st.booleans())
def test_batches_without_their_first_bytes_are_found_equally(
    seed: int, blocks: int, missing: int, is_large: bool
) -> None:
    whole = LARGE if is_large else batch(BatchHeader(base_offset=9), [Record(b"k", b"v" * 70)])
    tail = memoryview(random.Random(seed).randbytes(128 * blocks) + whole[missing:])
    found = fast.find_headless(tail, 128)
    assert found == twin.find_headless(tail, 128)
    assert ((128 * blocks, missing) in found) == (missing <= 17)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6), st.integers(0, 3), st.integers(1, 4), st.integers(0, 3), st.integers(22, 500), st.booleans()
)
def test_middles_fit_equally(seed: int, heads: int, middles: int, tails: int, first: int, is_right: bool) -> None:
    block, chance = 512, random.Random(seed)
    cut = first + heads * block
    rest = len(LARGE) - cut - middles * block if tails else 0
    contents = LARGE[cut : cut + middles * block] if tails else LARGE[cut:]
    contents += bytes(-len(contents) % block)
    blocks = chance.randbytes(2 * block) + contents + chance.randbytes(2 * block)
    positions = array("q", range(0, len(blocks), block))
    crc = int.from_bytes(LARGE[17:21], "big") ^ (not is_right)
    found = []
    for kernel in (fast, twin):
        single = array("I", bytes(4 * len(positions)))
        kernel.block_crcs(memoryview(blocks), block, single)
        crcs = array("I", [0, *single])
        kernel.chain_crcs(crcs, block)
        ends = memoryview(LARGE[: cut + 700]), memoryview(LARGE[len(LARGE) - rest :])
        found.append(kernel.find_middles(*ends, len(LARGE), crc, first, block, memoryview(positions), memoryview(crcs)))
    assert found[0] == found[1]
    assert ((cut, 2, len(contents) // block) in found[0]) == is_right


@pytest.mark.parametrize("place", [0, 1022, 1023, 1024, 2050])
def test_a_middle_is_found_among_thousands_of_blocks(place: int) -> None:
    block, cut = 512, 100
    blocks = bytearray(random.Random(place).randbytes(2060 * block))
    blocks[place * block : (place + 2) * block] = LARGE[cut : cut + 2 * block]
    crcs = array("I", bytes(4 * (len(blocks) // block)))
    fast.block_crcs(memoryview(blocks), block, crcs)
    crcs.insert(0, 0)
    fast.chain_crcs(crcs, block)
    ends = memoryview(LARGE[:cut]), memoryview(LARGE[cut + 2 * block :])
    crc, positions = int.from_bytes(LARGE[17:21], "big"), memoryview(array("q", range(0, len(blocks), block)))
    assert fast.find_middles(*ends, len(LARGE), crc, cut, block, positions, memoryview(crcs)) == [(cut, place, 2)]


@settings(max_examples=100, deadline=None)
@given(CONTENTS, st.integers(0, 700), st.integers(1, 300))
def test_heads_are_found_equally(content: bytes, zeros: int, block: int) -> None:
    content = bytes(zeros) + content
    assert fast.find_heads(memoryview(content), block) == twin.find_heads(memoryview(content), block)


def test_a_batch_that_breaks_at_the_end_of_a_block_is_found() -> None:
    content = bytes(1000) + LARGE
    for kernel in (fast, twin):
        assert 1000 not in kernel.find_heads(memoryview(content), 512)  # with 24 bytes in its block
        assert 1000 in kernel.find_heads(memoryview(content), 4096)
