"""The reasons for rolled segments, and retention's decisions."""

import pytest

from kseg.log.segments import (
    ClosedSegment,
    NextAppend,
    RetainedSegment,
    RetentionSettings,
    RollReason,
    RollSettings,
    retention_of,
    why_rolled,
)

SETTINGS = RollSettings(segment_bytes=1000, segment_ms=500, segment_index_bytes=80)
CLOSED = ClosedSegment(base_offset=100, size=800, first_timestamp=10_000, offset_entries=3, time_entries=3)
APPEND = NextAppend(size=200, last_offset=300, max_timestamp=10_500)


@pytest.mark.parametrize(
    ("segment", "append", "why"),
    [
        (CLOSED, APPEND, RollReason.UNKNOWN),
        (CLOSED._replace(size=801), APPEND, RollReason.SIZE),
        (CLOSED, APPEND._replace(max_timestamp=10_501), RollReason.TIME),
        (CLOSED._replace(first_timestamp=-1), APPEND._replace(max_timestamp=10_501), RollReason.UNKNOWN),
        (CLOSED._replace(offset_entries=9), APPEND, RollReason.UNKNOWN),
        (CLOSED._replace(offset_entries=10), APPEND, RollReason.INDEX_FULL),
        (CLOSED._replace(time_entries=4), APPEND, RollReason.UNKNOWN),
        (CLOSED._replace(time_entries=5), APPEND, RollReason.INDEX_FULL),
        (CLOSED, APPEND._replace(last_offset=100 + 2**31 - 1), RollReason.UNKNOWN),
        (CLOSED, APPEND._replace(last_offset=100 + 2**31), RollReason.OFFSET_RANGE),
        (CLOSED._replace(size=801), None, RollReason.UNKNOWN),
    ],
)
def test_first_rule_that_holds_is_the_reason(
    segment: ClosedSegment, append: NextAppend | None, why: RollReason
) -> None:
    assert why_rolled(segment, append, SETTINGS) is why


def run_retain(*largest_timestamps: int, size: int = 100) -> list[RetainedSegment]:
    return [RetainedSegment(size, time, 10 * number) for number, time in enumerate(largest_timestamps, 1)]


def decide(segments: list[RetainedSegment], settings: RetentionSettings, start: int = 0) -> list[str]:
    return [str(decision) for decision in retention_of(segments, settings, start)]


def test_retention_by_time_ends_at_the_first_segment_that_is_young_enough() -> None:
    settings = RetentionSettings(now_ms=1000, retention_ms=500)
    assert decide(run_retain(400, 499, 500, 100), settings) == ["delete-time", "delete-time", "keep", "keep"]


def test_retention_by_size_leaves_at_least_that_size() -> None:
    settings = RetentionSettings(now_ms=0, retention_ms=-1, retention_bytes=250)
    assert decide(run_retain(0, 0, 0, 0), settings) == ["delete-size", "keep", "keep", "keep"]


def test_segments_below_the_log_start_offset_go_whatever_their_age() -> None:
    settings = RetentionSettings(now_ms=0, retention_ms=-1)
    assert decide(run_retain(0, 0, 0), settings, start=20) == ["delete-log-start", "delete-log-start", "keep"]


def test_empty_last_segment_stays() -> None:
    settings = RetentionSettings(now_ms=1000, retention_ms=500)
    segments = [*run_retain(1), RetainedSegment(0, 1, 10)]
    assert decide(segments, settings) == ["delete-time", "keep"]


def test_nothing_goes_beyond_the_high_watermark() -> None:
    settings = RetentionSettings(now_ms=1000, retention_ms=500)
    decisions = retention_of(run_retain(1, 1, 1), settings, 0, high_watermark=19)
    assert [str(decision) for decision in decisions] == ["delete-time", "keep", "keep"]
