"""Ranges of a log that answer a fetch."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from kseg.kernel.contract import MOST
from kseg.reading.log_file import LogFile
from kseg.serve.fetch_batches import FetchBounds, FetchPlan, StoredRange, plan_fetches, readable_batches
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment

BATCHES = [
    NewBatch([NewRecord(b"k", b"v" * 50), NewRecord(None, b"w")], base_offset=2 * number) for number in range(10)
]
SIZES = [len(batch_bytes(batch)) for batch in BATCHES]
STARTS = [sum(SIZES[:number]) for number in range(len(SIZES) + 1)]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return write_segment(tmp_path / "t-0", BATCHES)


def plan_fetch(
    log: Path, first_offset: int = 0, end_offset: int = MOST, most_bytes: int = MOST, **bounds: bool
) -> FetchPlan:
    with LogFile(log) as log_file:
        wanted = FetchBounds(first_offset, end_offset, most_bytes, bounds.pop("takes_any_first", True), **bounds)
        return next(plan_fetches(readable_batches(log_file.runs()), wanted))


def flip(log: Path, *positions: int) -> None:
    content = bytearray(log.read_bytes())
    for position in positions:
        content[position] ^= 1
    log.write_bytes(content)


def ranges(*batches: Sequence[int]) -> tuple[StoredRange, ...]:
    """Return ranges of batches, each from one up to before another."""
    return tuple(StoredRange(STARTS[first], STARTS[last] - STARTS[first]) for first, last in batches)


def test_a_healthy_log_is_one_range(log: Path) -> None:
    assert plan_fetch(log) == FetchPlan(ranges((0, 10)), 0, 20, ())


@pytest.mark.parametrize(("offset", "batch"), [(0, 0), (1, 0), (2, 1), (7, 3), (19, 9)])
def test_a_range_begins_with_the_batch_that_has_the_offset(log: Path, offset: int, batch: int) -> None:
    plan = plan_fetch(log, offset)
    assert plan.ranges == ranges((batch, 10))
    assert plan.first_offset == 2 * batch


def test_nothing_is_wanted_after_the_last_offset(log: Path) -> None:
    assert plan_fetch(log, 20).ranges == ()


@pytest.mark.parametrize(("end", "batches"), [(0, 0), (1, 1), (2, 1), (8, 4), (20, 10), (99, 10)])
def test_batches_that_begin_before_the_end_are_sent(log: Path, end: int, batches: int) -> None:
    assert plan_fetch(log, 0, end).size == STARTS[batches]


def test_batches_are_sent_whole(log: Path) -> None:
    assert plan_fetch(log, 0, most_bytes=STARTS[3] + 1).ranges == ranges((0, 3))
    assert plan_fetch(log, 0, most_bytes=STARTS[3]).ranges == ranges((0, 3))
    assert plan_fetch(log, 0, most_bytes=STARTS[3] - 1).ranges == ranges((0, 2))


def test_the_first_batch_is_sent_whatever_its_size_if_nothing_else_is(log: Path) -> None:
    assert plan_fetch(log, 4, most_bytes=1).ranges == ranges((2, 3))
    assert plan_fetch(log, 4, most_bytes=1, takes_any_first=False).ranges == ()


def test_a_batch_with_a_wrong_crc_is_passed_over(log: Path) -> None:
    flip(log, STARTS[4] - 1)
    plan = plan_fetch(log)
    assert plan.ranges == ranges((0, 3), (4, 10))
    (missed,) = plan.missed
    assert (missed.position, missed.first_offset, missed.next_offset) == (STARTS[3], 6, 8)


def test_damage_at_the_wanted_offset_is_passed_over(log: Path) -> None:
    flip(log, STARTS[3] + 8, STARTS[4] + 8)
    plan = plan_fetch(log, 6)
    assert plan.ranges == ranges((5, 10))
    assert (plan.first_offset, plan.next_offset) == (10, 20)


def test_damage_before_the_wanted_offset_is_of_no_interest(log: Path) -> None:
    flip(log, STARTS[1] - 1)
    assert plan_fetch(log, 6).missed == ()


def test_a_plan_ends_at_damage_if_it_is_to(log: Path) -> None:
    flip(log, STARTS[4] - 1)
    assert plan_fetch(log, stops_at_damage=True) == FetchPlan(ranges((0, 3)), 0, 6, ())
    assert plan_fetch(log, 6, stops_at_damage=True).ranges == ranges((4, 10))


def test_a_torn_tail_is_not_sent(log: Path) -> None:
    log.write_bytes(log.read_bytes()[:-1])
    plan = plan_fetch(log)
    assert plan.ranges == ranges((0, 9))
    assert [each.next_offset for each in plan.missed] == [None]


def test_a_preallocated_end_is_no_damage(log: Path) -> None:
    log.write_bytes(log.read_bytes() + bytes(4096))
    assert plan_fetch(log) == FetchPlan(ranges((0, 10)), 0, 20, ())


def test_a_log_of_zeros_has_nothing(log: Path) -> None:
    log.write_bytes(bytes(4096))
    assert plan_fetch(log) == FetchPlan((), 0, 0, ())


def test_a_batch_whose_records_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    from crc32c import crc32c

    log = write_segment(tmp_path / "t-0", BATCHES)
    content = bytearray(log.read_bytes())
    content[STARTS[3] + 57 : STARTS[3] + 61] = (3).to_bytes(4, "big")  # the count of records
    content[STARTS[3] + 17 : STARTS[3] + 21] = crc32c(bytes(content[STARTS[3] + 21 : STARTS[4]])).to_bytes(4, "big")
    log.write_bytes(content)
    plan = plan_fetch(log)
    assert plan.ranges == ranges((0, 3), (4, 10))
    assert [(each.position, each.first_offset, each.next_offset) for each in plan.missed] == [(STARTS[3], 6, 8)]


@pytest.mark.parametrize("most_bytes", [1, SIZES[0], 3 * SIZES[0], MOST])
def test_plans_that_are_made_ahead_are_those_for_going_on(log: Path, most_bytes: int) -> None:
    flip(log, STARTS[4] + SIZES[4] - 1)
    with LogFile(log) as log_file:
        bounds = FetchBounds(3, 18, most_bytes, takes_any_first=True)
        ahead = list(plan_fetches(readable_batches(log_file.runs()), bounds))
    first_offset = 3
    for plan in ahead:
        assert plan._replace(missed=()) == plan_fetch(log, first_offset, 18, most_bytes)._replace(missed=())
        first_offset = plan.next_offset
    assert first_offset == 18
    assert [missed for plan in ahead for missed in plan.missed] == [*plan_fetch(log, 3, 18).missed]
