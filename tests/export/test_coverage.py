"""Coverages of offsets compared with sets of offsets."""

from hypothesis import given
from hypothesis import strategies as st

from kseg.export.coverage import Coverage
from kseg.export.settings import OffsetRange

MOST = 12
"""Offsets from 0 to below this one are distinguished; an open end reaches all of them."""
SIDES = st.one_of(st.none(), st.integers(0, MOST))
RANGES = st.builds(OffsetRange, SIDES, SIDES)
CLOSED = st.builds(OffsetRange, st.integers(0, MOST), st.integers(0, MOST))


def coverages(ranges: st.SearchStrategy[OffsetRange]) -> st.SearchStrategy[Coverage]:
    return st.lists(ranges, max_size=5).map(lambda found: Coverage(tuple(found)))


def offsets(*ranges: OffsetRange) -> set[int]:
    found: set[int] = set()
    for part in ranges:
        found.update(range(part.first or 0, MOST if part.end is None else part.end))
    return found


@given(coverages(RANGES), RANGES)
def test_what_is_missing_of_a_range_rises_and_lies_in_none_of_the_others(
    present: Coverage, wanted: OffsetRange
) -> None:
    found = present.missing(wanted).ranges
    assert offsets(*found) == offsets(wanted) - offsets(*present.ranges)
    firsts = [part.first or 0 for part in found]
    assert firsts == sorted(set(firsts))


@given(coverages(RANGES), RANGES)
def test_a_range_is_held_if_nothing_is_missing_and_met_if_something_is_there(
    present: Coverage, part: OffsetRange
) -> None:
    own, known = offsets(part), offsets(*present.ranges)
    if part.end is not None:  # an open end has higher offsets than the distinguished ones
        assert present.holds(part) == (own <= known)
        assert present.meets(part) == (not own or bool(own & known))


@given(coverages(CLOSED), coverages(CLOSED))
def test_coverages_are_joined_and_subtracted_as_sets_are(one: Coverage, other: Coverage) -> None:
    own, others = offsets(*one.ranges), offsets(*other.ranges)
    assert offsets(*(one + other).ranges) == offsets(*Coverage.join([one, other]).ranges) == own | others
    assert offsets(*one.without(other).ranges) == own - others
    whole = one.union()
    assert (offsets(*whole.ranges), whole.count) == (own, len(own))


def test_neighbours_stay_apart_since_a_border_says_where_an_account_ended() -> None:
    parts = Coverage((OffsetRange(0, 5), OffsetRange(5, 9)))
    assert parts.union().pairs() == [(0, 5), (5, 9)]
    assert parts.ends_at(5)
    assert not parts.ends_at(4)
    assert parts.hull == OffsetRange(0, 9)
    assert Coverage().hull is None


def test_a_range_without_offsets_meets_no_range() -> None:
    assert not Coverage((OffsetRange(5, 5),)).meets(OffsetRange(0, 9))
