"""Sets of offsets, and the choice of one record per offset, compared with lists of single offsets."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kseg.export.read.offset_accounts import EachOnce, OffsetSet
from kseg.kernel.contract import LEAST, MOST

RANGES = st.lists(st.tuples(st.integers(-20, 20), st.integers(0, 8), st.integers(0, 3)), max_size=12)


@given(RANGES)
def test_a_set_of_offsets_holds_what_was_added(ranges: list[tuple[int, int, int]]) -> None:
    found, expected = OffsetSet(), set[int]()
    for first, more, _ in ranges:
        assert found.meets(first, first + more) == any(first <= offset <= first + more for offset in expected)
        found.add(first, first + more)
        expected |= set(range(first, first + more + 1))
    assert {offset for offset in range(-30, 40) if offset in found} == expected
    runs = [*found.runs()]
    assert {offset for first, last in runs for offset in range(first, last + 1)} == expected
    assert all(last + 1 < first for (_, last), (first, _) in pairwise(runs))


def test_a_set_of_offsets_holds_the_least_and_the_most() -> None:
    found = OffsetSet()
    for offset in (MOST, LEAST, MOST - 1, LEAST + 1):
        found.add(offset, offset)
    assert [*found.runs()] == [(LEAST, LEAST + 1), (MOST - 1, MOST)]


@given(RANGES)
def test_of_each_offset_the_record_of_the_highest_epoch_counts_then_the_first(
    batches: list[tuple[int, int, int]],
) -> None:
    each_once = EachOnce()
    for first, more, epoch in batches:
        each_once.note(first, first + more, epoch)
    taken: dict[int, tuple[int, int]] = {}
    for number, (first, more, epoch) in enumerate(batches):
        for offset in range(first, first + more + 1):
            if each_once.take(offset, epoch):
                assert offset not in taken
                taken[offset] = (epoch, number)
    expected: dict[int, tuple[int, int]] = {}
    for number, (first, more, epoch) in enumerate(batches):
        for offset in range(first, first + more + 1):
            if offset not in expected or expected[offset][0] < epoch:
                expected[offset] = (epoch, number)
    assert taken == expected
