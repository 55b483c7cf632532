"""Cells of tables: as people read them, and as JSON has them."""

from collections.abc import Callable
from datetime import tzinfo

from kseg.output.sizes import human_size
from kseg.report.block import Cell, Kind
from kseg.report.numbers import age_text, count_text, moment_text, ratio_text, share_text
from kseg.times import iso_time

NUMBERS = frozenset((Kind.COUNT, Kind.SIZE, Kind.TIME, Kind.DURATION, Kind.SHARE, Kind.RATIO, Kind.MONEY, Kind.BAR))
"""Kinds whose cells are aligned at their right."""
_TEXTS: dict[Kind, Callable[[float], str]] = {
    Kind.COUNT: lambda value: count_text(round(value)),
    Kind.SIZE: lambda value: human_size(round(value)),
    Kind.DURATION: lambda value: age_text(round(value)),
    Kind.SHARE: share_text,
    Kind.BAR: share_text,
    Kind.RATIO: lambda value: ratio_text(value)[:-1],
    Kind.MONEY: lambda value: f"{value:,.2f}",
}


def cell_text(kind: Kind, value: Cell, zone: tzinfo) -> str:
    """A cell as people read it; a dash for what isn't known."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    if kind is Kind.TIME:
        return moment_text(round(value), zone)
    return _TEXTS[kind](value) if kind in _TEXTS else str(value)


def cell_value(kind: Kind, value: Cell, zone: tzinfo) -> Cell:
    """A cell for programs: times as ISO 8601, shares and ratios to some digits."""
    if kind is Kind.TIME and isinstance(value, int):
        return iso_time(value, zone) or value
    return round(value, 6) if isinstance(value, float) else value
