"""Times as people give and read them: ISO 8601 or milliseconds since 1970, in UTC."""

import re
from datetime import UTC, datetime, timedelta

from kseg.errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS = re.compile(r"[0-9]{1,19}")


def parse_time(text: str) -> int:
    """Milliseconds since 1970 of such a number, or of a time in ISO 8601; UTC if it has no zone.

    Raises UsageError for anything else.
    """
    if _MILLISECONDS.fullmatch(text):
        return int(text)
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is no time: give 2026-11-01T03:00 or milliseconds since 1970") from error
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(milliseconds=1)


def iso_time(timestamp: int | None) -> str | None:
    """ISO 8601 with milliseconds; None for none, and beyond the year 9999."""
    if timestamp is None or timestamp < 0:
        return None
    try:
        time = _EPOCH + timedelta(milliseconds=timestamp)
    except OverflowError:
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def short_time(timestamp: int | None) -> str:
    """The same for a column: without `T` and zone; the number itself beyond the year 9999."""
    text = iso_time(timestamp)
    if text is None:
        return "" if timestamp is None or timestamp < 0 else str(timestamp)
    return text.replace("T", " ").removesuffix("Z")


def duration_text(duration_ms: int | None) -> str:
    """A duration for people: `35ms`, `1.204s`, `12m03s`, `3h07m`, `5d02h`."""
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
