"""Time zones for the kernel: tables of their offsets from UTC."""

from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from kseg.kernel.contract import ZONE_CYCLE, ZONE_CYCLE_START, Zone

_WEEK_MS = 7 * 86_400_000


@lru_cache
def zone_table(zone: tzinfo) -> Zone:
    """A zone's offsets; empty for UTC. Finds them by asking for each week, since libraries don't list them."""
    if zone == UTC:
        return ()
    if isinstance(zone, timezone):
        return ((0, _offset_at(0, zone)),)
    found = [(0, _offset_at(0, zone))]
    for end in range(_WEEK_MS, ZONE_CYCLE_START + ZONE_CYCLE + _WEEK_MS, _WEEK_MS):
        offset = _offset_at(end, zone)
        if offset != found[-1][1]:
            found.append((_change(end - _WEEK_MS, end, zone), offset))
    return tuple(found)


def _change(before: int, after: int, zone: tzinfo) -> int:
    """The first second with another offset than before, in milliseconds."""
    old = _offset_at(before, zone)
    while after - before > 1000:
        middle = (before + after) // 2000 * 1000
        before, after = (middle, after) if _offset_at(middle, zone) == old else (before, middle)
    return after


def _offset_at(ms: int, zone: tzinfo) -> int:
    offset = datetime.fromtimestamp(ms // 1000, zone).utcoffset()
    assert offset is not None
    return offset // timedelta(seconds=1)
