"""Index files: entries, zero tails, searches, sanity checks."""

import re
from bisect import bisect_right
from collections.abc import Callable
from pathlib import Path
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.errors import OpenError
from kseg.index.entries import OffsetIndex, SlotRange, TimeIndex, TransactionIndex
from kseg.index.producers import ProducerSnapshot, ProducerState, ProducerStates, build_producer_snapshot
from tests import golden

DOCUMENTED = golden.ROOT / "docs/test-1-0/00000000000000203000.index"
NAME = "00000000000000001000"


def offset_index(folder: Path, entries: list[tuple[int, int]], tail: bytes = b"") -> Path:
    path = folder / f"{NAME}.index"
    path.write_bytes(b"".join(pack(">ii", *entry) for entry in entries) + tail)
    return path


def time_index(folder: Path, entries: list[tuple[int, int]], tail: bytes = b"") -> Path:
    path = folder / f"{NAME}.timeindex"
    path.write_bytes(b"".join(pack(">qi", *entry) for entry in entries) + tail)
    return path


def test_documented_lookup_of_203500_goes_by_the_floor_entry() -> None:
    with OffsetIndex(DOCUMENTED) as index:
        assert index.slot_range(203500) == SlotRange(0, 1)
        assert index.lookup(203500) == (203299, 8738)


def test_offset_below_the_first_entry_starts_at_the_segments_beginning() -> None:
    with OffsetIndex(DOCUMENTED) as index:
        assert index.slot_range(203298) == SlotRange(-1, 0)
        assert index.lookup(203298) == (203000, 0)


def test_offset_above_the_last_entry_has_no_upper_slot() -> None:
    with OffsetIndex(DOCUMENTED) as index:
        assert index.slot_range(300000) == SlotRange(10, -1)


def test_offset_of_an_entry_is_both_slots() -> None:
    with OffsetIndex(DOCUMENTED) as index:
        assert index.slot_range(204657) == SlotRange(1, 1)


def test_upper_bound_searches_positions() -> None:
    with OffsetIndex(DOCUMENTED) as index:
        assert index.upper_bound(34953, 1000) == (205169, 51314)
        assert index.upper_bound(182362, 1000) is None


def test_empty_index_gives_the_base_offset(tmp_path: Path) -> None:
    with OffsetIndex(offset_index(tmp_path, [])) as index:
        assert (index.count, index.slot_range(5), index.lookup(5)) == (0, SlotRange(-1, -1), (1000, 0))


def test_zero_tail_ends_the_entries(tmp_path: Path) -> None:
    with OffsetIndex(offset_index(tmp_path, [(5, 100), (9, 200)], bytes(8 * 100000))) as index:
        assert (index.count, index.capacity) == (2, 100002)
        assert list(index.entries()) == [(1005, 100), (1009, 200)]
        assert index.lookup(2000) == (1009, 200)


def test_preallocated_index_without_entries_is_empty(tmp_path: Path) -> None:
    with TimeIndex(time_index(tmp_path, [], bytes(12 * 1000))) as index:
        assert (index.count, index.lookup(5)) == (0, (-1, 1000))


def test_closed_time_index_may_hold_the_time_0(tmp_path: Path) -> None:
    with TimeIndex(time_index(tmp_path, [(0, 0)])) as index:
        assert list(index.entries()) == [(0, 1000)]


@given(st.sets(st.integers(1, 2**31 - 1), max_size=1500), st.integers(-5, 2**31), st.booleans())
def test_slots_are_those_of_a_full_search(
    tmp_path_factory: pytest.TempPathFactory, offsets: set[int], target: int, is_preallocated: bool
) -> None:
    rising = sorted(offsets)
    folder = tmp_path_factory.mktemp("index")
    tail = bytes(8 * 700) if is_preallocated else b""
    with OffsetIndex(offset_index(folder, [(o, o // 2 + 1) for o in rising], tail), 0) as index:
        place = bisect_right(rising, target)
        lower, upper = place - 1, place if place < len(rising) else -1
        if lower >= 0 and rising[lower] == target:
            upper = lower
        assert index.slot_range(target) == SlotRange(lower, upper)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pack(">ii", 5, 100), None),
        (bytes(80), None),
        (pack(">ii", 5, 100) + b"\0\0\0", "11 bytes, not a multiple of 8"),
        (pack(">ii", -5, 100), "the last offset is 995, below the base offset 1000"),
    ],
)
def test_sanity_of_an_offset_index(tmp_path: Path, content: bytes, complaint: str | None) -> None:
    path = tmp_path / f"{NAME}.index"
    path.write_bytes(content)
    with OffsetIndex(path) as index:
        problem = index.sanity_problem()
    assert (problem is None) if complaint is None else complaint in str(problem)


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (pack(">qi", 7, 1) + pack(">qi", 9, 2), None),
        (pack(">qi", 7, 1) + bytes(12), "the last timestamp is 0, before the first, 7"),
        (pack(">qi", 7, -1), "the last offset is 999"),
        (pack(">qi", 7, 1) + b"\0", "13 bytes, not a multiple of 12"),
    ],
)
def test_sanity_of_a_time_index(tmp_path: Path, content: bytes, complaint: str | None) -> None:
    path = tmp_path / f"{NAME}.timeindex"
    path.write_bytes(content)
    with TimeIndex(path) as index:
        problem = index.sanity_problem()
    assert (problem is None) if complaint is None else complaint in str(problem)


@pytest.mark.parametrize("path", golden.files(".txnindex"), ids=lambda path: str(path.relative_to(golden.ROOT)))
def test_transaction_indexes_of_brokers_are_sane(path: Path) -> None:
    with TransactionIndex(path) as index:
        assert index.sanity_problem() is None


@pytest.mark.parametrize("version", [1, 256, -1])
def test_sanity_of_a_transaction_index_of_another_version(tmp_path: Path, version: int) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(pack(">hqqqq", version, 7, 1000, 1002, 1003))
    with TransactionIndex(path) as index:
        assert index.sanity_problem() == f"entry 0 has version {version}, expected 0"


def test_aborted_transactions_of_a_range(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.txnindex"
    path.write_bytes(pack(">hqqqq", 0, 7, 1000, 1010, 1005) + pack(">hqqqq", 0, 8, 1020, 1030, 1031))
    with TransactionIndex(path) as index:
        assert [entry.producer_id for entry in index.find_aborted(1000, 2000)] == [7, 8]
        assert [entry.producer_id for entry in index.find_aborted(1011, 1020)] == []
        assert [entry.producer_id for entry in index.find_aborted(1000, 1004)] == [7]


def test_producer_snapshots_of_brokers_would_be_taken() -> None:
    for path in golden.files(".snapshot"):
        with ProducerSnapshot(path) as snapshot:
            assert snapshot.problem() is None, path
            assert len(list(snapshot.entries())) == snapshot.count


INT16 = st.integers(-(2**15), 2**15 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
INT64 = st.integers(-(2**63), 2**63 - 1)
PRODUCER_STATES = st.builds(ProducerState, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)


def producer_snapshot(folder: Path, content: bytes) -> Path:
    path = folder / f"{NAME}.snapshot"
    path.write_bytes(content)
    return path


@given(states=st.lists(PRODUCER_STATES, max_size=5, unique_by=lambda state: state.producer_id))
def test_producers_come_back(states: list[ProducerState], tmp_path_factory: pytest.TempPathFactory) -> None:
    path = producer_snapshot(tmp_path_factory.mktemp("snapshot"), build_producer_snapshot(ProducerStates(states)))
    with ProducerSnapshot(path) as snapshot:
        assert snapshot.problem() is None
        assert list(snapshot.entries()) == states


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        (lambda content: b"\0\x09" + content[2:], "version is 9, expected 1"),
        (lambda content: content[:2] + b"\0\0\0\7" + content[6:], r"CRC is 0x00000007, expected 0x[0-9a-f]{8}"),
        (lambda content: content + b"more", r"CRC is 0x[0-9a-f]{8}, expected 0x[0-9a-f]{8}"),
        (lambda content: content[:-1], r"CRC is 0x[0-9a-f]{8}, expected 0x[0-9a-f]{8}"),
    ],
)
def test_producer_snapshot_that_a_broker_would_not_take_tells_why(
    damage: Callable[[bytes], bytes], problem: str, tmp_path: Path
) -> None:
    states = [ProducerState(7, 0), ProducerState(8, 1)]
    path = producer_snapshot(tmp_path, damage(build_producer_snapshot(ProducerStates(states))))
    with ProducerSnapshot(path) as snapshot:
        assert re.fullmatch(problem, snapshot.problem() or "")
        assert list(snapshot.entries()) == states[: (path.stat().st_size - 10) // 46]


@given(content=st.binary(min_size=10, max_size=200))
def test_any_bytes_of_a_producer_snapshot_are_read(content: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    with ProducerSnapshot(producer_snapshot(tmp_path_factory.mktemp("snapshot"), content)) as snapshot:
        assert snapshot.problem() is not None or content[6:10] == bytes(4)
        assert len(list(snapshot.entries())) <= (len(content) - 10) // 46


def test_short_producer_snapshot_says_so(tmp_path: Path) -> None:
    path = tmp_path / f"{NAME}.snapshot"
    path.write_bytes(b"\0\1\0")
    with ProducerSnapshot(path) as snapshot:
        assert snapshot.problem() == "the size is 3 bytes, but a producer snapshot has at least 10"
        assert list(snapshot.entries()) == []


def test_missing_index_cannot_be_opened(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="can't be opened"):
        OffsetIndex(tmp_path / f"{NAME}.index")
