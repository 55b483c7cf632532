"""The twin joins pieces of torn batches like the compiled kernel, on arbitrary bytes."""

import random
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.carve_contract import CRC_START, MOST_MIDDLES
from tests.kernel.made import BatchHeader, Record, batch
from tests.kernel.test_same_carving import CONTENTS, LARGE

CRC = int.from_bytes(LARGE[17:21], "big")


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 9000), st.integers(1, 600), st.integers(40, 700), st.booleans())
def test_a_rest_has_the_wanted_crc_at_the_break_alone(
    seed: int, cut: int, first: int, block: int, is_right: bool
) -> None:
    cut = min(cut, len(LARGE) - 1)
    noise = random.Random(seed).randbytes(len(LARGE))
    head, ending = memoryview(LARGE[: max(cut, CRC_START)] + noise), memoryview(noise + LARGE[cut:])
    least = (len(LARGE) - first) % block or block
    results = [
        (
            kernel.wanted_crcs(head, len(LARGE), CRC ^ (not is_right), first, block),
            kernel.rest_crcs(ending, least, block),
        )
        for kernel in (fast, twin)
    ]
    assert results[0] == results[1]
    wanted, rests = results[0]
    assert len(wanted) == len(range(first, len(LARGE), block))
    breaks = {first + at * block for at, crc in enumerate(wanted) if rests[len(wanted) - 1 - at] == crc}
    assert breaks - {cut} == set() or cut < CRC_START
    assert (cut in breaks) == (is_right and cut >= first and (cut - first) % block == 0)


@pytest.mark.parametrize("size", [0, 21, 100])
def test_breaks_before_the_crc_need_the_uncovered_bytes(size: int) -> None:
    for kernel in (fast, twin):
        if size < CRC_START:
            with pytest.raises(IndexError):
                kernel.wanted_crcs(memoryview(LARGE[:size]), len(LARGE), CRC, 5, len(LARGE))
        else:
            (wanted,) = kernel.wanted_crcs(memoryview(LARGE[:size]), len(LARGE), CRC, 5, len(LARGE))
            assert [wanted] == kernel.rest_crcs(memoryview(LARGE), len(LARGE) - 5, len(LARGE))


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


def blocks_with(contents: bytes, before: int, after: int, seed: int, block: int) -> "tuple[array[int], array[int]]":
    """Return the positions and chained CRCs of random blocks, with some contents among them."""
    chance = random.Random(seed)
    blocks = chance.randbytes(before * block) + contents + chance.randbytes(after * block)
    single = array("I", bytes(4 * (len(blocks) // block)))
    fast.block_crcs(memoryview(blocks), block, single)
    crcs = array("I", [0, *single])
    fast.chain_crcs(crcs, block)
    of_twin = array("I", bytes(4 * len(single)))
    twin.block_crcs(memoryview(blocks), block, of_twin)
    of_twin.insert(0, 0)
    twin.chain_crcs(of_twin, block)
    assert of_twin == crcs
    return array("q", range(0, len(blocks), block)), crcs


def search_of(cut: int, ending: bytes, block: int, window: tuple[int, int]) -> tuple[int, ...]:
    """Return a search for the middle of LARGE, with the first breaks and rests."""
    least = len(ending) % block or block if ending else 0
    padding = 0 if ending else -(len(LARGE) - cut) % block
    rests = (len(ending) - least) // block + 1
    return 0, 0, 0, rests, (len(LARGE) + padding - cut - least) // block, least, padding, *window


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(0, 3),
    st.integers(1, 4),
    st.integers(0, 3),
    st.integers(22, 500),
    st.booleans(),
    st.integers(0, 3),
)
def test_middles_fit_equally(
    seed: int, heads: int, middles: int, tails: int, first: int, is_right: bool, start: int
) -> None:
    block = 512
    cut = first + heads * block
    ending = LARGE[cut + middles * block :] if tails else b""
    contents = LARGE[cut : cut + middles * block] if tails else LARGE[cut:]
    contents += bytes(-len(contents) % block)
    positions, crcs = blocks_with(contents, 2, 2, seed, block)
    least = len(ending) % block or block
    noise = random.Random(seed).randbytes(300)
    head, crc = memoryview(LARGE[:cut] + noise), CRC ^ (not is_right)
    wanted = array("I", [7, *fast.wanted_crcs(head, len(LARGE), crc, first, block)])
    rests = array("I", [9, *(fast.rest_crcs(memoryview(ending), least, block) if tails else [0])])
    search = array("q", search_of(first, ending, block, (start, len(positions))))
    search[0], search[1], search[2] = 1, len(wanted) - 1, 1
    searches = search + search
    found = [
        kernel.find_middles(searches, wanted, rests, memoryview(positions), memoryview(crcs), block)
        for kernel in (fast, twin)
    ]
    assert found[0] == found[1]
    fit = heads, 2, len(contents) // block
    assert ((0, *fit) in found[0]) == ((1, *fit) in found[0]) == (is_right and start <= 2)


@pytest.mark.parametrize("place", [0, 1022, 1023, 1024, 2050])
def test_a_middle_is_found_among_thousands_of_blocks(place: int) -> None:
    block, cut = 512, 100
    positions, crcs = blocks_with(LARGE[cut : cut + 2 * block], place, 2058 - place, place, block)
    ending = LARGE[cut + 2 * block :]
    wanted = array("I", fast.wanted_crcs(memoryview(LARGE[:cut]), len(LARGE), CRC, cut, block))
    rests = array("I", fast.rest_crcs(memoryview(ending), len(ending) % block, block))
    for window, is_near in (((place, place + 2), True), ((0, place + 1), False), ((place + 1, 2060), False)):
        search = array("q", search_of(cut, ending, block, window))
        search[1] = len(wanted)
        found = fast.find_middles(search, wanted, rests, memoryview(positions), memoryview(crcs), block)
        assert found == ([(0, 0, place, 2)] if is_near else [])


def test_equal_middles_are_bounded() -> None:
    block, cut = 512, 100
    positions, crcs = blocks_with(LARGE[cut : cut + block] * 100, 0, 0, 0, block)
    ending = LARGE[cut + block :]
    wanted = array("I", fast.wanted_crcs(memoryview(LARGE[:cut]), len(LARGE), CRC, cut, block))
    rests = array("I", fast.rest_crcs(memoryview(ending), len(ending) % block, block))
    search = array("q", search_of(cut, ending, block, (0, 100)))
    search[1] = len(wanted)
    for kernel in (fast, twin):
        found = kernel.find_middles(search, wanted, rests, memoryview(positions), memoryview(crcs), block)
        assert found == [(0, 0, number, 1) for number in range(MOST_MIDDLES)]


@pytest.mark.parametrize(
    ("place", "value"), [(0, 1), (1, -1), (2, 1), (3, 3), (5, -1), (6, -1), (7, -1), (7, 3), (8, 4)]
)
def test_a_search_outside_of_its_tables_is_refused(place: int, value: int) -> None:
    search = array("q", [0, 1, 0, 1, 1, 1, 0, 0, 2])
    search[place] = value
    one = array("I", [0]), array("I", [0])
    for kernel in (fast, twin):
        with pytest.raises(IndexError):
            kernel.find_middles(search, *one, memoryview(array("q", [0, 512])), memoryview(array("I", [0] * 3)), 512)


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
