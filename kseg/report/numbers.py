"""Numbers for people: counts, sizes, shares, times, as tables, sentences and pictures show them."""

from datetime import UTC, datetime, timedelta, tzinfo

from kseg.output.sizes import human_size
from kseg.times import duration_text, time_text

DAY_MS = 86_400_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def count_text(count: int) -> str:
    """`1,234,567`."""
    return f"{count:,}"


def short_count(count: float) -> str:
    """`1.2 M`: a count for a picture."""
    for factor, unit in ((1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")):
        if count >= factor:
            return f"{count / factor:.3g}{unit}"
    return f"{count:.3g}"


def axis_size(size: float) -> str:
    """A size for an axis: `20 MiB`."""
    return human_size(round(size)).replace(".0 ", " ")


def share_text(share: float) -> str:
    """`41 %`; small ones with a decimal."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1 %"
    return f"{percent:.1f} %" if 0 < percent < 9.95 else f"{percent:.0f} %"


def ratio_text(ratio: float) -> str:
    """`3.2` and a sign for times."""
    return f"{ratio:.1f}\N{MULTIPLICATION SIGN}" if ratio < 100 else f"{ratio:,.0f}\N{MULTIPLICATION SIGN}"


def rate_text(size: float, milliseconds: int) -> str:
    """Bytes a second."""
    return f"{human_size(round(1000 * size / milliseconds))}/s" if milliseconds else ""


def moment_text(timestamp: int, zone: tzinfo = UTC) -> str:
    """A time to the minute: `2026-11-24 12:00`; the number itself beyond the year 9999."""
    try:
        moment = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return time_text(timestamp, zone)
    return moment.strftime("%Y-%m-%d %H:%M")


def age_text(milliseconds: int) -> str:
    """How long ago, or how long: `13 days`, `5h02m`."""
    days = milliseconds // DAY_MS
    return f"{days:,} days" if days >= 3 else duration_text(milliseconds)
