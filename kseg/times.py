"""Times as people give and read them: ISO 8601, milliseconds since 1970, or ages; in UTC by default."""

import os
import re
import time
from datetime import UTC, datetime, timedelta, tzinfo
from datetime import time as datetime_time
from pathlib import Path

from kseg.errors import UsageError

_LOCAL_ZONE = Path("/etc/localtime")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NUMBER = r"[0-9]{1,19}"
_MILLISECONDS = r"([0-9]{1,19})ms"
_YEAR_DIGITS, _DATE_DIGITS, _SECONDS_DIGITS = 4, 8, 10
"""Digits of bare numbers: of a year, of a date, and of Unix seconds in our days."""
_YEARS = range(1970, 3000)
_LARGEST = 2**63 - 1
_AGO = r"-([0-9]{1,12})(ms|s|m|h|d|w)"
_OFFSET = r"[+-][0-9]{2}(:?[0-9]{2})?"
_UNIT_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_CLOCK = r"(?:(today|yesterday)[ T]?)?(?:([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?)?"
NOW = "now"
TIME_FORMS = (
    "2026-11-01T03:00, '2026-11-01 03:00', 20261101, 2026, milliseconds since 1970 (1793502000000, 500ms),"
    " -1h, -2d, now, 10:00, yesterday or 'yesterday 10:00'"
)


def is_age(text: str | None) -> bool:
    """Return True for a time that counts back from the current one: `-90s`, `now`."""
    return text is not None and (text == NOW or re.fullmatch(_AGO, text) is not None)


def parse_time(text: str, zone: tzinfo = UTC, now: int | None = None) -> int:
    """Return milliseconds since 1970 for milliseconds, ISO 8601, an age (`-90s`, `now`), or a time of day.

    `10:00` is today's, `yesterday` is its first moment, in the zone. Of bare numbers 4 digits are a year and 8 a date,
    if they begin with 1970 to 2999. With `ms` they always are milliseconds.

    Args:
        text: the time.
        zone: of times that name none.
        now: the time that ages count back from; the clock's by default.

    Raises:
        UsageError: it is none of these; or a number of 10 digits, which may be seconds.
    """
    number = re.fullmatch(_MILLISECONDS, text)
    if number is not None:
        return min(int(number[1]), _LARGEST)
    if re.fullmatch(_NUMBER, text):
        return _bare_number(text, zone)
    ago = re.fullmatch(_AGO, text)
    if ago is not None or text == NOW:
        return max((now_ms() if now is None else now) - (int(ago[1]) * _UNIT_MS[ago[2]] if ago is not None else 0), -1)
    try:
        moment = _time_of_day(text, zone) or datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} isn't a valid time; specify {TIME_FORMS}") from error
    return _milliseconds(moment, zone)


def _time_of_day(text: str, zone: tzinfo) -> datetime | None:
    """Return a time of today or yesterday in a zone, or None for another text.

    Raises ValueError for an invalid time.
    """
    found = re.fullmatch(_CLOCK, text)
    if found is None or not text:
        return None
    day = (_EPOCH + timedelta(milliseconds=now_ms())).astimezone(zone).date()
    hour, minute, second = (int(part or 0) for part in found.groups()[1:])
    clock = datetime_time(hour, minute, second)
    return datetime.combine(day - timedelta(days=found[1] == "yesterday"), clock, zone)


def time_or_none(text: str | None, zone: tzinfo = UTC, now: int | None = None) -> int | None:
    """Return the result of `parse_time` for an option, or None if it is missing."""
    return None if text is None else parse_time(text, zone, now)


def milliseconds_of(moment: str | int | datetime, zone: tzinfo = UTC) -> int:
    """Return milliseconds since 1970 of a text as in `parse_time`, of a datetime, or of milliseconds themselves."""
    if isinstance(moment, str):
        return parse_time(moment, zone)
    return _milliseconds(moment, zone) if isinstance(moment, datetime) else moment


def now_ms() -> int:
    """Return the clock's time, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def _milliseconds(moment: datetime, zone: tzinfo) -> int:
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=zone)
    return (moment - _EPOCH) // timedelta(milliseconds=1)


def _bare_number(text: str, zone: tzinfo) -> int:
    number = int(text)
    if len(text) == _YEAR_DIGITS and number in _YEARS:
        return _milliseconds(datetime(number, 1, 1, tzinfo=zone), zone)
    if len(text) == _DATE_DIGITS and number // 10000 in _YEARS:
        try:
            return _milliseconds(datetime(number // 10000, number // 100 % 100, number % 100, tzinfo=zone), zone)
        except ValueError as error:
            raise UsageError(f"{text} isn't a valid date; specify {text}ms for milliseconds since 1970") from error
    if len(text) == _SECONDS_DIGITS:
        readings = f"in seconds it is {iso_time(1000 * number)}, in milliseconds {iso_time(number)}"
        raise UsageError(f"{text} is ambiguous: {readings}; specify {text}000 or {text}ms")
    return min(number, _LARGEST)


def parse_zone(name: str) -> tzinfo:
    """Return the zone of a name such as `Europe/Berlin`, an offset such as `+02:00`, or `local`, this machine's.

    Raises UsageError for an unknown zone.
    """
    if name.lower() in ("utc", "z"):
        return UTC
    from zoneinfo import ZoneInfo

    if name == "local":
        return _local_zone()

    try:
        if re.fullmatch(_OFFSET, name):
            offset = datetime.strptime(name if len(name) > 3 else f"{name}00", "%z").tzinfo
            assert offset is not None
            return offset
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(f"--tz {name}: no such time zone; specify Europe/Berlin, +02:00, local or UTC") from error


def zone_name(zone: tzinfo) -> str:
    """Return a zone's name for people: `local` for this machine's if only its rules are known."""
    return "local" if getattr(zone, "key", "") is None else str(zone)


def _local_zone() -> tzinfo:
    """Return this machine's zone: from TZ, or from the file of every Unix; without both, today's offset from UTC."""
    from zoneinfo import ZoneInfo

    try:
        if "TZ" in os.environ:
            return ZoneInfo(os.environ["TZ"].removeprefix(":"))
        with _LOCAL_ZONE.open("rb") as file:
            return ZoneInfo.from_file(file)
    except (KeyError, ValueError, OSError):
        try:
            local = datetime.now(UTC).astimezone().tzinfo
        except ValueError:
            return UTC  # TZ has an offset from UTC of a day or more
        assert local is not None
        return local


def iso_time(timestamp: int | None, zone: tzinfo = UTC) -> str | None:
    """Return ISO 8601 to the millisecond, as kseg prints each time; None without a time, and beyond the year 9999."""
    moment = _moment(timestamp, zone)
    if moment is None:
        return None
    text = moment.isoformat(timespec="milliseconds")
    return text.replace("+00:00", "Z") if zone == UTC else text


def time_text(timestamp: int | None, zone: tzinfo = UTC, none: str = "") -> str:
    """Return the same for people: `none` without a time; beyond the year 9999, that and the number."""
    if timestamp is None or timestamp < 0:
        return none
    return iso_time(timestamp, zone) or f"after year 9999: {timestamp}"


def _moment(timestamp: int | None, zone: tzinfo) -> datetime | None:
    """Return the date and time of a timestamp, or None if there isn't one, and beyond the year 9999."""
    if timestamp is None or timestamp < 0:
        return None
    try:
        return (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return None


def duration_text(duration_ms: int | None) -> str:
    """Return a duration for people: `35ms`, `1.204s`, `12m03s`, `3h07m`, `5d02h`."""
    if duration_ms is None:
        return ""
    seconds, milliseconds = divmod(duration_ms, 1000)
    if seconds < 1:
        return f"{milliseconds}ms"
    if seconds < 60:
        return f"{seconds}.{milliseconds:03}s"
    if seconds < 3600:
        return f"{seconds // 60}m{seconds % 60:02}s"
    hours, minutes = seconds // 3600, seconds % 3600 // 60
    return f"{hours}h{minutes:02}m" if hours < 24 else f"{hours // 24}d{hours % 24:02}h"
