"""Times as people give them."""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from unittest.mock import patch

import pytest

from kseg.errors import UsageError
from kseg.times import parse_time
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each

SAMPLE = "docs/test-1-0"


def ms(*date: int) -> int:
    return int(datetime(*date, tzinfo=UTC).timestamp() * 1000)  # type: ignore[misc,arg-type]


@for_each(
    "text, meant",
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


@for_each(
    "text, meant",
    [
        ("10:00", (10, 0, 0)),
        ("today 9:05", (9, 5, 0)),
        ("today", (0, 0, 0)),
        ("yesterday", (-24, 0, 0)),
        ("yesterday 23:59:58", (-1, 59, 58)),
        ("yesterdayT10:00", (-14, 0, 0)),
    ],
)
def test_a_time_of_day_is_today_s_or_yesterday_s_in_the_zone(text: str, meant: tuple[int, int, int]) -> None:
    zone = timezone(timedelta(hours=2))
    noon = ms(2026, 11, 1, 12)
    with patch("kseg.times.now_ms", return_value=noon):
        hours, minutes, seconds = meant
        midnight = ms(2026, 11, 1) - 2 * 3_600_000
        assert parse_time(text, zone) == midnight + 1000 * (3600 * hours + 60 * minutes + seconds)


@pytest.mark.parametrize("text", ["", "25:00", "10:60", "tomorrow", "yesterday10"])
def test_what_is_no_time_of_day_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"isn't a valid time; specify .*10:00, yesterday"):
        parse_time(text)


@pytest.mark.parametrize("option", ["--from-time", "--to-time"])
def test_seconds_or_milliseconds_is_a_question(option: str) -> None:
    ran = run.kseg(["dump", SAMPLE, option, "1581597478"], golden.ROOT)
    assert (ran.status, ran.stdout) == (2, b"")
    assert ran.stderr.decode() == (
        "kseg: 1581597478 is ambiguous: in seconds it is 2020-02-13T12:37:58.000Z, in milliseconds"
        " 1970-01-19T07:19:57.478Z;"
        " specify 1581597478000 or 1581597478ms\n"
    )


@pytest.mark.parametrize("text", ["20261301", "20260231", "29990100"])
def test_eight_digits_that_are_no_date_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match=f"{text} isn't a valid date; specify {text}ms for milliseconds since 1970"):
        parse_time(text)


def test_a_year_selects_its_records(tmp_path: Path) -> None:
    records = [NewRecord(b"k", b"v", timestamp=time) for time in (ms(2024, 12, 31), ms(2025, 1, 1), ms(2026, 1, 1))]
    write_segment(tmp_path / "t-0", [NewBatch(records)])
    chosen = ["--from-time", "2025", "--to-time", "2026", "--template", "{offset}"]
    assert run.kseg(["dump", "t-0", *chosen], tmp_path).stdout == b"1\n"
    assert (
        run.kseg(["lookup", "t-0", "--timestamp", "20250101", "-o", "json"], tmp_path).stdout.count(b'"offset":1') > 0
    )


# --- printed times ---------------------------------------------------------------------------------------------------


@pytest.fixture
def seasons(tmp_path: Path) -> Path:
    """Return a record in winter and one in summer, with indexes."""
    records = [NewRecord(b"k", b"v", timestamp=time) for time in (ms(2026, 1, 1, 23, 30), ms(2026, 7, 1, 23, 30))]
    write_segment(tmp_path / "t-0", [NewBatch(records)])
    return tmp_path


@pytest.mark.parametrize(
    ("zone", "winter", "summer"),
    [
        ("Europe/Berlin", "2026-01-02T00:30:00.000+01:00", "2026-07-02T01:30:00.000+02:00"),
        ("-03:30", "2026-01-01T20:00:00.000-03:30", "2026-07-01T20:00:00.000-03:30"),
        ("Europe/London", "2026-01-01T23:30:00.000+00:00", "2026-07-02T00:30:00.000+01:00"),
        ("UTC", "2026-01-01T23:30:00.000Z", "2026-07-01T23:30:00.000Z"),
    ],
)
def test_times_are_printed_in_the_zone(zone: str, winter: str, summer: str, seasons: Path) -> None:
    def lines(*arguments: str) -> list[str]:
        return run.kseg([*arguments, "--tz", zone], seasons).stdout.decode().splitlines()

    log = f"t-0/{0:020}.log"
    assert lines("dump", log, "--template", "{time}") == [winter, summer]
    assert lines("dump", log, "--fields", "time") == [f"time: {winter}", f"time: {summer}"]
    assert lines("dump", log, "--fields", "time", "-o", "csv") == ["time", winter, summer]
    assert [line.strip() for line in lines("dump", log, "--fields", "time", "-o", "table")][-2:] == [winter, summer]
    assert [json.loads(line).get("time") for line in lines("dump", log, "-o", "json")] == [None, winter, summer, None]
    assert json.loads(lines("lookup", "t-0", "--offset", "1", "-o", "json")[0])["record"]["time"] == summer
    assert f"Looking for timestamp {summer} in" in lines("lookup", "t-0", "--timestamp", summer)[0]
    assert all(time in "\n".join(lines("ls", "t-0", "--by", "segment")) for time in (winter, summer))
    assert all(time in "\n".join(lines("ls", "t-0", "--by", "segment", "--tail", "2")) for time in (winter, summer))
    assert summer in "\n".join(lines("retain", "t-0"))
    assert winter in "\n".join(lines("retain", "t-0", "-o", "timeline"))


@pytest.mark.parametrize("form", ["text", "json"])
def test_times_of_frames_and_their_records_are_in_the_zone(form: str) -> None:
    ran = run.kseg(
        ["protocol", "protocol/4.3.1/clients.pcap", "--api", "Produce", "--tz", "+05:30", "-o", form], golden.ROOT
    )
    times = re.findall(r"2026-11-2[0-9]T[0-9:.]+(?:Z|[+-][0-9:]+)", ran.stdout.decode())
    assert times
    assert all(time.startswith("2026-11-22T00:54:") and time.endswith("+05:30") for time in times)


@pytest.mark.parametrize("command", ["groups", "groups -o json", "txns", "txns -o csv", "metadata -o json"])
def test_views_print_times_in_the_zone(command: str) -> None:
    """4.3.1's logs were written on 2026-11-21 from 10:14 UTC on."""
    shown = run.kseg([*command.split(), "logs/4.3.1", "--tz", "+05:30"], golden.ROOT).stdout.decode()
    assert re.search(r"2026-11-21T15:44:[0-9.]{6}\+05:30", shown)
    assert "2026-11-21T10:14" not in shown


def test_times_of_indexes_and_snapshots_are_printed_in_the_zone(seasons: Path) -> None:
    run.kseg(["reindex", "t-0", "--to", "new"], seasons)
    index = f"new/{0:020}.timeindex"
    ran = run.kseg(["dump", index, "-o", "json", "--tz", "Europe/Berlin"], seasons)
    assert json.loads(ran.stdout.splitlines()[0])["time"] == "2026-07-02T01:30:00.000+02:00"


def test_the_local_zone_has_its_summer_time(seasons: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    ran = run.kseg(["dump", "t-0", "--template", "{time}", "--tz", "local"], seasons)
    assert ran.stdout == b"2026-01-02T00:30:00.000+01:00\n2026-07-02T01:30:00.000+02:00\n"


@pytest.mark.parametrize("zone", ["XYZ+99:99", "XYZ-24", "Nowhere/Town", ":/etc/passwd", "", "../x"])
def test_a_local_zone_that_means_nothing_is_utc(zone: str, seasons: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    ran = run.run_bounded(["dump", "t-0", "--template", "{time}", "--tz", "local"], seasons)
    assert (ran.status, ran.stdout) == (0, b"2026-01-01T23:30:00.000Z\n2026-07-01T23:30:00.000Z\n")


def test_what_was_printed_can_be_asked_for(seasons: Path) -> None:
    asked = ["--from-time", "2026-07-02 01:30", "--to-time", "2026-07-02 01:31", "--tz", "Europe/Berlin"]
    assert run.kseg(["dump", "t-0", *asked, "--template", "{offset}"], seasons).stdout == b"1\n"
