"""Times as people give them."""

from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest

from kseg.errors import UsageError
from kseg.times import parse_time
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment

SAMPLE = "docs/test-1-0"


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("1970", 0),
        ("2026", ms(2026, 1, 1)),
        ("2999", ms(2999, 1, 1)),
        ("20261101", ms(2026, 11, 1)),
        ("19700102", 86_400_000),
        ("1581597478310", 1581597478310),
        ("0", 0),
        ("1969", 1969),
        ("3000", 3000),
        ("0999", 999),
        ("12", 12),
        ("12345", 12345),
        ("1234567", 1234567),
        ("123456789", 123456789),
        ("12345678901", 12345678901),
        ("2026ms", 2026),
        ("20261101ms", 20261101),
        ("1581597478ms", 1581597478),
        ("60000000", 60000000),
        ("19691231", 19691231),
        ("123ms", 123),
        ("9999999999999999999ms", 2**63 - 1),
    ],
)
def test_numbers_are_years_dates_or_milliseconds(text: str, meant: int) -> None:
    assert parse_time(text) == meant


def test_years_and_dates_begin_in_the_zone_given() -> None:
    zone = timezone(timedelta(hours=2))
    assert parse_time("2026", zone) == ms(2025, 12, 31, 22)
    assert parse_time("20261101", zone) == ms(2026, 10, 31, 22)


@pytest.mark.parametrize("option", ["--from-time", "--to-time"])
def test_seconds_or_milliseconds_is_a_question(option: str) -> None:
    ran = run.kseg(["dump", SAMPLE, option, "1581597478"], golden.ROOT)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.decode() == (
        "kseg: 1581597478 may be in seconds 2020-02-13T12:37:58.000Z, in milliseconds 1970-01-19T07:19:57.478Z:"
        " give 1581597478000 or 1581597478ms\n"
    )


@pytest.mark.parametrize("text", ["20261301", "20260231", "29990100"])
def test_eight_digits_that_are_no_date_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"{text} is no date; {text}ms are milliseconds since 1970"):
        parse_time(text)


def test_a_year_selects_its_records(tmp_path: Path) -> None:
    records = [NewRecord(b"k", b"v", timestamp=time) for time in (ms(2024, 12, 31), ms(2025, 1, 1), ms(2026, 1, 1))]
    write_segment(tmp_path / "t-0", [NewBatch(records)])
    chosen = ["--from-time", "2025", "--to-time", "2026", "--template", "{offset}"]
    assert run.kseg(["dump", "t-0", *chosen], tmp_path).stdout == b"1\n"
    assert (
        run.kseg(["lookup", "t-0", "--timestamp", "20250101", "-o", "json"], tmp_path).stdout.count(b'"offset":1') > 0
    )
