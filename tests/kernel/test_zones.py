"""Times in a zone equal those of Python's own library, on both kernels."""

from bisect import bisect
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kseg.kernel import fast, twin
from kseg.kernel.contract import ZONE_CYCLE, ZONE_CYCLE_START
from kseg.layouts.template import zone_table, zoned_program
from kseg.times import iso_time
from tests.kernel.made import BatchHeader, Record, batch
from tests.kernel.runs import program_of, render, rows_by_lengths

NAMES = [
    *("Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca", "Asia/Kathmandu"),
    *("Africa/Monrovia", "America/Sao_Paulo", "Pacific/Apia", "Asia/Tokyo", "Europe/Dublin"),
]
ZONES: dict[str, tzinfo] = {
    **{name: ZoneInfo(name) for name in NAMES},
    "+14:00": timezone(timedelta(hours=14)),
    "-12:00": timezone(timedelta(hours=-12)),
    "UTC": UTC,
}
END = int(datetime(9999, 12, 31, 23, 59, 59, tzinfo=UTC).timestamp()) * 1000 + 999
TIMES = st.one_of(
    st.integers(0, 4 * ZONE_CYCLE_START), st.integers(-1, END + 1), st.integers(END - 2 * 86_400_000, END)
)


@settings(max_examples=300, deadline=None)
@given(st.lists(TIMES, min_size=1, max_size=5), st.sampled_from(sorted(ZONES)))
@example([0, ZONE_CYCLE_START + ZONE_CYCLE - 1, ZONE_CYCLE_START + ZONE_CYCLE, END], "Europe/Berlin")
@example([0, 63593069999, 63593070000], "Africa/Monrovia")  # 44 minutes and 30 seconds west of UTC up to 1972
@example([1774745999999, 1774746000000, 1792889999999, 1792890000000], "Europe/Berlin")
def test_times_in_a_zone_are_pythons(times: list[int], name: str) -> None:
    content = batch(BatchHeader(), [Record(timestamp_delta=time) for time in times])
    program = zoned_program(program_of(None, "{timestamp:iso}|{time}\n"), zone_table(ZONES[name]))
    wanted = [iso_time(time, ZONES[name]) for time in times]
    lines = "".join("null|\n" if time is None else f'"{time}"|{time}\n' for time in wanted)
    for kernel in (fast, twin):
        assert render(kernel, program, content, rows_by_lengths(content)).text.decode() == lines


@pytest.mark.parametrize("name", NAMES)
def test_every_change_of_a_zone_is_found(name: str) -> None:
    """One query per day suffices: no zone changes forth and back in less."""
    starts, offsets = zip(*sorted(zone_table(ZONES[name])), strict=True)
    last = None
    for day in range(60 * 366):
        moment = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(days=day)
        offset = moment.astimezone(ZONES[name]).utcoffset()
        assert offset == timedelta(seconds=offsets[bisect(starts, day * 86_400_000) - 1]), moment
        last = offset
    assert last is not None
