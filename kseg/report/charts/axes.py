"""Axes: values to places in a picture, and round numbers to mark on them."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple

from kseg.report.charts.svg import WIDTH, dim_label, line

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = 3_600_000
_STEPS = tuple(_HOUR * hours for hours in (1, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760, 43800))


class PlotArea(NamedTuple):
    """Where values lie in a picture: between left and right, top and bottom."""

    left: float = 54
    top: float = 8
    right: float = WIDTH - 6
    bottom: float = 140

    @property
    def width(self) -> float:
        """From left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """From top to bottom."""
        return self.bottom - self.top


def ticks(most: float, base: int = 10) -> list[float]:
    """Two to five round numbers from 0 up to a largest one; of bytes with base 1024."""
    if most <= 0:
        return [0.0]
    unit = 1.0
    while unit * base <= most:
        unit *= base
    steps = (1, 2, 5, 10, 20, 50, 100, 200, 500) if base > 10 else (1, 2, 5)
    wanted = [unit * step / part for part in (10, 1) for step in steps]
    step = min((each for each in sorted(wanted) if most / each <= 4), default=most)
    return [step * place for place in range(int(most / step) + 1)]


def value_axis(frame: PlotArea, most: float, text: Callable[[float], str], base: int = 10) -> Iterator[str]:
    """Lines of the grid with what they stand for."""
    for value in ticks(most, base):
        y = frame.bottom - frame.height * value / most if most else frame.bottom
        yield line(frame.left, y, frame.right, y)
        yield dim_label(frame.left - 4, y + 4, text(value), "end")


def time_axis(frame: PlotArea, first: int, last: int, zone: tzinfo) -> Iterator[str]:
    """Days or hours under a picture."""
    span = max(last - first, 1)
    step = next((each for each in _STEPS if span / each <= 5), _STEPS[-1])
    offset = _offset(first, zone)
    at = ((first + offset) // step + 1) * step - offset
    marks: list[int] = []
    while at <= last and len(marks) < 12:
        marks.append(at)
        at += step
    for mark in marks or [first]:
        x = frame.left + frame.width * (mark - first) / span
        anchor = "middle" if frame.left + 20 < x < frame.right - 24 else "start" if x <= frame.left + 20 else "end"
        yield line(x, frame.bottom, x, frame.bottom + 3)
        yield dim_label(x, frame.bottom + 15, _mark_text(mark, step, zone), anchor)


def _offset(timestamp: int, zone: tzinfo) -> int:
    try:
        moment = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return 0
    return round((moment.utcoffset() or timedelta()).total_seconds() * 1000)


def _mark_text(timestamp: int, step: int, zone: tzinfo) -> str:
    try:
        moment = (_EPOCH + timedelta(milliseconds=timestamp)).astimezone(zone)
    except OverflowError:
        return "?"
    if step < 24 * _HOUR:
        return moment.strftime("%d %b %H:%M") if moment.hour == 0 else moment.strftime("%H:%M")
    return (
        moment.strftime("%Y") if step >= 8760 * _HOUR else moment.strftime("%d %b" if step < 720 * _HOUR else "%b %Y")
    )
