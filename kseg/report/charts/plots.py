"""Plots with axes: values over time as steps, histograms as columns, an hour-of-week map."""

from collections.abc import Callable, Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple

from kseg.report.charts.axes import PlotArea, time_axis, value_axis
from kseg.report.charts.svg import COLORS, WIDTH, Area, dim_label, label, number, picture, rect, shown

_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_COLUMN_LABELS = 7


class Series(NamedTuple):
    """Values over time: its name, and (time, value), each of which holds up to the next time."""

    name: str
    points: Sequence[tuple[int, float]]
    is_line: bool = False


def steps(
    title: str, series: Sequence[Series], text: Callable[[float], str], zone: tzinfo = UTC, base: int = 10
) -> str:
    """Values over time: areas, or lines, that change in steps."""
    frame = PlotArea()
    times = [time for each in series for time, _ in each.points]
    first, last = min(times), max(times)
    most = max((value for each in series for _, value in each.points), default=0) or 1
    parts = [*value_axis(frame, most, text, base), *time_axis(frame, first, last, zone)]
    for color, each in enumerate(series):
        parts.append(_step_path(frame, each, first, max(last - first, 1), most, color))
    return picture(frame.bottom + 38, title, [*parts, *_legend(frame.bottom + 32, [each.name for each in series])])


def _step_path(frame: PlotArea, series: Series, first: int, span: int, most: float, color: int) -> str:
    def x(time: int) -> str:
        return number(frame.left + frame.width * (time - first) / span)

    def y(value: float) -> str:
        return number(frame.bottom - frame.height * value / most)

    path: list[str] = []
    height = None
    for time, value in series.points:
        path.append(f"M{x(time)} {y(value)}" if height is None else f"H{x(time)}V{y(value)}")
        height = value
    name = f"<title>{shown(series.name)}</title>"
    if series.is_line:
        paint = f'class="l{color}" fill="none" stroke="{COLORS[color]}" stroke-width="1.6" stroke-dasharray="5 3"'
        return f'<path d="{"".join(path)}" {paint}>{name}</path>'
    start = x(series.points[0][0])
    area = f"{''.join(path)}V{number(frame.bottom)}H{start}Z"
    return f'<path d="{area}" class="c{color}" fill="{COLORS[color]}" fill-opacity="0.75">{name}</path>'


def _legend(y: float, names: Sequence[str]) -> list[str]:
    """Which colour is what, if there is more than one."""
    if len(names) < 2:
        return []
    parts, x = [], 54.0
    for color, name in enumerate(names):
        parts += [rect(Area(x, y - 8, 9, 9), color), label(x + 13, y, name)]
        x += 26 + 5.9 * len(name)
    return parts


class Bin(NamedTuple):
    """A column of a histogram: what it is of, how high, and what to say when it is pointed at."""

    name: str
    value: float
    title: str


def columns(title: str, bins: Sequence[Bin], text: Callable[[float], str], axis: str) -> str:
    """A histogram; `axis`: what is counted in what."""
    frame = PlotArea()
    most = max((each.value for each in bins), default=0) or 1
    wide = frame.width / max(len(bins), 1)
    parts = list(value_axis(frame, most, text))
    every = -(-len(bins) // _MOST_COLUMN_LABELS)
    for place, each in enumerate(bins):
        x, height = frame.left + place * wide, frame.height * each.value / most
        if each.value:
            area = Area(x + 1, frame.bottom - max(height, 1), wide - 2, max(height, 1))
            parts.append(rect(area, 0, each.title))
        if place % every == 0:
            parts.append(dim_label(x + wide / 2, frame.bottom + 14, each.name, "middle"))
    return picture(frame.bottom + 36, title, [*parts, dim_label(frame.right, frame.bottom + 30, axis, "end")])


def week_map(title: str, values: Sequence[float], text: Callable[[float], str]) -> str:
    """Hours of a week, Monday's first: the darker, the more."""
    most = max(values, default=0) or 1
    left, top, wide, high = 34, 4, (WIDTH - 40) / 24, 17
    parts, cells = [], []
    for day, name in enumerate(_DAYS):
        parts.append(dim_label(left - 6, top + day * high + 12, name, "end"))
        for hour in range(24):
            value = values[24 * day + hour]
            shade = 0.06 + 0.94 * value / most
            place = f'x="{number(left + hour * wide)}" y="{top + day * high}" fill-opacity="{shade:.2f}"'
            size = f'width="{number(wide - 1.5)}" height="{high - 1.5}"'
            cells.append(f"<rect {place} {size}><title>{name} {hour:02}:00: {shown(text(value))}</title></rect>")
    bottom = top + 7 * high
    parts.append(f'<g class="c0" fill="{COLORS[0]}">{"".join(cells)}</g>')
    parts += [dim_label(left + hour * wide, bottom + 12, f"{hour:02}:00") for hour in (0, 6, 12, 18)]
    return picture(bottom + 20, title, parts)
