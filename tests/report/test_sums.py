"""Merged histograms and sums by time equal those of all numbers together."""

from hypothesis import given
from hypothesis import strategies as st

from kseg.kernel.statistics_contract import TIME_STEPS, bucket_of
from kseg.report.sums import LogHistogram, TimeSums

NUMBERS = st.lists(st.one_of(st.integers(0, 100), st.integers(0, 2**40)), max_size=60)


def histogram(numbers: list[int]) -> LogHistogram:
    found = LogHistogram()
    for number in numbers:
        found.add(LogHistogram(1, number, number, number, {bucket_of(number): 1}))
    return found


@given(NUMBERS, NUMBERS)
def test_histograms_are_merged(some: list[int], others: list[int]) -> None:
    merged = histogram(some)
    merged.add(histogram(others))
    assert merged == histogram([*some, *others])


@given(NUMBERS, st.floats(0.01, 1))
def test_percentiles_are_a_little_too_large(numbers: list[int], share: float) -> None:
    found = histogram(numbers).percentile(share)
    if not numbers:
        assert found is None
        return
    exact = sorted(numbers)[max(-(-len(numbers) * share // 1), 1).__int__() - 1]
    assert found is not None
    assert exact <= found <= exact + exact // 32 + 1


@given(st.lists(st.tuples(st.integers(0, 10**12), st.integers(1, 1000)), max_size=200), st.integers(0, 200))
def test_sums_by_time_are_merged(batches: list[tuple[int, int]], cut: int) -> None:
    def sums(some: list[tuple[int, int]]) -> TimeSums:
        found = TimeSums()
        for time, size in some:
            found.add(TimeSums(TIME_STEPS[0], {time // TIME_STEPS[0]: (1, 2, size)}))
        return found

    merged = sums(batches[:cut])
    merged.add(sums(batches[cut:]))
    assert merged == sums(batches)
    short = merged.at_most(10)
    assert len(short.sums) <= 10
    assert sum(each.size for each in short.stretches()) == sum(size for _, size in batches)
