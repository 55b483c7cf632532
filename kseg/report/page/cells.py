"""Cells of tables: as people read them, and as JSON has them."""

from collections.abc import Callable
from datetime import tzinfo

from kseg.output.sizes import human_size
from kseg.report.block import Cell, CellKind
from kseg.report.numbers import age_text, count_text, moment_text, ratio_text, share_text
from kseg.times import iso_time

NUMBERS = frozenset(
    (
        CellKind.COUNT,
        CellKind.SIZE,
        CellKind.TIME,
        CellKind.DURATION,
        CellKind.SHARE,
        CellKind.RATIO,
        CellKind.MONEY,
        CellKind.BAR,
    )
)
"""Kinds whose cells are aligned at their right."""
_TEXTS: dict[CellKind, Callable[[float], str]] = {
    CellKind.COUNT: lambda value: count_text(round(value)),
    CellKind.SIZE: lambda value: human_size(round(value)),
    CellKind.DURATION: lambda value: age_text(round(value)),
    CellKind.SHARE: share_text,
    CellKind.BAR: share_text,
    CellKind.RATIO: lambda value: ratio_text(value)[:-1],
    CellKind.MONEY: lambda value: f"{value:,.2f}",
}


def cell_text(kind: CellKind, value: Cell, zone: tzinfo) -> str:
    """A cell as people read it; a dash for what isn't known."""
    if value is None:
        return "\N{EN DASH}"
    if isinstance(value, str):
        return value
    if kind is CellKind.TIME:
        return moment_text(round(value), zone)
    return _TEXTS[kind](value) if kind in _TEXTS else str(value)


def cell_value(kind: CellKind, value: Cell, zone: tzinfo) -> Cell:
    """A cell for programs: times as ISO 8601, shares and ratios to some digits."""
    if kind is CellKind.TIME and isinstance(value, int):
        return iso_time(value, zone) or value
    return round(value, 6) if isinstance(value, float) else value
