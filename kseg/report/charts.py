"""Charts of a report as SVG."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from html import escape
from typing import NamedTuple

from kseg.system.terminal_text import escaped_text

WIDTH = 400
"""Width of every picture: about as many pixels on a phone, so that its text is readable."""
FONT_SIZE = 11
TEXT, DIM, LINE = "#1f2328", "#57606a", "#c9d1d9"
COLORS = ("#0b62c4", "#b35900", "#1a7f37", "#8a3ffc", "#b3261e", "#0a7c86", "#9c2c5a", "#6e5e00")
"""Colours of categories; a style sheet replaces `.c0` to `.c7` in dark mode. Each colour also has a text."""


def escape_text(text: str) -> str:
    """Return escaped text: markup in a name has no effect."""
    return escape(escaped_text(text))


def number(value: float) -> str:
    """Return a coordinate to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


class Area(NamedTuple):
    """A rectangle of a picture."""

    x: float
    y: float
    width: float
    height: float


def rect(area: Area, color: int, title: str = "", extra: str = "") -> str:
    """Return a rectangle of a colour; `title` is its tooltip."""
    place = (
        f'x="{number(area.x)}" y="{number(area.y)}" width="{number(max(area.width, 0))}"'
        f' height="{number(max(area.height, 0))}"'
    )
    paint = f'class="c{color}" fill="{COLORS[color]}"{extra}'
    return f"<rect {place} {paint}><title>{escape_text(title)}</title></rect>" if title else f"<rect {place} {paint}/>"


def label(x: float, y: float, text: str, anchor: str = "start", paint: str = f'class="t" fill="{TEXT}"') -> str:
    """Return a text; `anchor`: the end of it that is at x."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{number(x)}" y="{number(y)}"{where} {paint}>{escape_text(text)}</text>'


def dim_label(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Return a text of an axis."""
    return label(x, y, text, anchor, f'class="d" fill="{DIM}"')


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """Return a line of a grid."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} class="g" stroke="{LINE}"/>'


def picture(height: float, title: str, parts: Iterable[str]) -> str:
    """Return a complete image. The title is used as the text for screen readers."""
    size = f'viewBox="0 0 {WIDTH} {number(height)}" width="{WIDTH}" height="{number(height)}"'
    font = f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE}"'
    return f'<svg {size} {font} role="img" aria-label="{escape_text(title)}">{"".join(parts)}</svg>'


def clip(text: str, width: float) -> str:
    """Return as much of a text as fits the width, with an ellipsis; empty if too little would remain."""
    most = int(width / (0.56 * FONT_SIZE))
    text = escaped_text(text)
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…" if most >= 4 else ""


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HOUR = 3_600_000
_STEPS = tuple(_HOUR * hours for hours in (1, 3, 6, 12, 24, 48, 168, 336, 720, 2160, 8760, 43800))


class PlotArea(NamedTuple):
    """The area of the values in a picture: between left and right, top and bottom."""

    left: float = 54
    top: float = 8
    right: float = WIDTH - 6
    bottom: float = 140

    @property
    def width(self) -> float:
        """Distance from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Distance from top to bottom."""
        return self.bottom - self.top


def ticks(most: float, base: int = 10) -> list[float]:
    """Return two to five round numbers from 0 up to a largest one; for bytes with base 1024."""
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
    """Yield lines of the grid with their values."""
    for value in ticks(most, base):
        y = frame.bottom - frame.height * value / most if most else frame.bottom
        yield line(frame.left, y, frame.right, y)
        yield dim_label(frame.left - 4, y + 4, text(value), "end")


def time_axis(frame: PlotArea, first: int, last: int, zone: tzinfo) -> Iterator[str]:
    """Yield days or hours under a picture."""
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


_HEIGHT, _HEAD, _GAP = 260, 15, 1.5
_WHITE = 'class="w" fill="#ffffff"'


class Tile(NamedTuple):
    """A part of a whole: its name, size, tooltip, and its own parts."""

    name: str
    size: int
    title: str
    parts: tuple["Tile", ...] = ()


def treemap(title: str, tiles: Sequence[Tile]) -> str:
    """Return a picture of tiles, largest first; empty tiles are omitted."""
    whole = Area(0, 0, WIDTH, _HEIGHT)
    parts: list[str] = []
    for number_of_tile, (tile, area) in enumerate(squarify([each for each in tiles if each.size > 0], whole)):
        parts += _tile(tile, area, number_of_tile % len(COLORS))
    return picture(_HEIGHT, title, parts)


def _tile(tile: Tile, area: Area, color: int) -> Iterator[str]:
    inner = Area(area.x + _GAP, area.y + _GAP, area.width - 2 * _GAP, area.height - 2 * _GAP)
    yield rect(inner, color, tile.title)
    name = clip(tile.name, inner.width - 8)
    has_head = bool(name) and inner.height > _HEAD
    if has_head:
        yield label(inner.x + 4, inner.y + 12, name, paint=_WHITE)
    below = inner._replace(y=inner.y + _HEAD, height=inner.height - _HEAD) if has_head else inner
    if len(tile.parts) < 2 or below.width < 12 or below.height < 12:
        return
    yield '<g fill="#ffffff" fill-opacity="0.13" stroke="#ffffff" stroke-opacity="0.6" stroke-width="0.6">'
    for part, place in squarify(tile.parts, below):
        yield _inset(part, place)
    yield "</g>"


def _inset(part: Tile, area: Area) -> str:
    """Return a part within a tile: an outline, so that the tile's colour stays."""
    place = (
        f'x="{number(area.x + 1)}" y="{number(area.y + 1)}" width="{number(max(area.width - 2, 0.5))}" '
        f'height="{number(max(area.height - 2, 0.5))}"'
    )
    return f"<rect {place}><title>{escape_text(part.title)}</title></rect>"


def squarify(tiles: Sequence[Tile], area: Area) -> Iterator[tuple[Tile, Area]]:
    """Yield each tile with its area, as close to a square as rows of descending size allow."""
    left = sorted((each for each in tiles if each.size > 0), key=lambda each: (-each.size, each.name))
    while left:
        scale = area.width * area.height / sum(each.size for each in left)
        side = min(area.width, area.height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side, scale) <= _worst(left[:count], side, scale):
            count += 1
        row, left = left[:count], left[count:]
        thick = scale * sum(each.size for each in row) / side if side else 0.0
        yield from _lay_out(row, area, thick, scale)
        if area.width <= area.height:
            area = area._replace(y=area.y + thick, height=max(area.height - thick, 0.0))
        else:
            area = area._replace(x=area.x + thick, width=max(area.width - thick, 0.0))


def _worst(row: Sequence[Tile], side: float, scale: float) -> float:
    """Return the worst aspect ratio in a row of tiles."""
    total = scale * sum(each.size for each in row)
    sizes = [scale * row[0].size, scale * row[-1].size]
    if not side or not total or not min(sizes):
        return float("inf")
    return max(side * side * sizes[0] / total**2, total**2 / (side * side * sizes[1]))


def _lay_out(row: Sequence[Tile], area: Area, thick: float, scale: float) -> Iterator[tuple[Tile, Area]]:
    at = 0.0
    for tile in row:
        long = scale * tile.size / thick if thick else 0.0
        if area.width <= area.height:
            yield tile, Area(area.x + at, area.y, long, thick)
        else:
            yield tile, Area(area.x, area.y + at, thick, long)
        at += long


_DAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MOST_COLUMN_LABELS = 7


class Series(NamedTuple):
    """A time series. A value applies until the next timestamp."""

    name: str
    points: Sequence[tuple[int, float]]
    is_line: bool = False


def steps(
    title: str, series: Sequence[Series], text: Callable[[float], str], zone: tzinfo = UTC, base: int = 10
) -> str:
    """Return a picture of values over time: areas, or lines, that change in steps."""
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
    name = f"<title>{escape_text(series.name)}</title>"
    if series.is_line:
        paint = f'class="l{color}" fill="none" stroke="{COLORS[color]}" stroke-width="1.6" stroke-dasharray="5 3"'
        return f'<path d="{"".join(path)}" {paint}>{name}</path>'
    start = x(series.points[0][0])
    area = f"{''.join(path)}V{number(frame.bottom)}H{start}Z"
    return f'<path d="{area}" class="c{color}" fill="{COLORS[color]}" fill-opacity="0.75">{name}</path>'


def _legend(y: float, names: Sequence[str]) -> list[str]:
    """Return the legend, if there is more than one series."""
    if len(names) < 2:
        return []
    parts, x = [], 54.0
    for color, name in enumerate(names):
        parts += [rect(Area(x, y - 8, 9, 9), color), label(x + 13, y, name)]
        x += 26 + 5.9 * len(name)
    return parts


class Bin(NamedTuple):
    """A column of a histogram: its label, height and tooltip."""

    name: str
    value: float
    title: str


def columns(title: str, bins: Sequence[Bin], text: Callable[[float], str], axis: str) -> str:
    """Return a picture of a histogram; `axis`: the unit of its counts."""
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
    """Draw a heat map of the hours of a week, starting on Monday."""
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
            cells.append(f"<rect {place} {size}><title>{name} {hour:02}:00: {escape_text(text(value))}</title></rect>")
    bottom = top + 7 * high
    parts.append(f'<g class="c0" fill="{COLORS[0]}">{"".join(cells)}</g>')
    parts += [dim_label(left + hour * wide, bottom + 12, f"{hour:02}:00") for hour in (0, 6, 12, 18)]
    return picture(bottom + 20, title, parts)


_ROW = 20


class StripPart(NamedTuple):
    """A part of a strip: its size, colour and tooltip; is_pale: it doesn't exist any more."""

    size: float
    color: int
    title: str
    is_pale: bool = False


class Strip(NamedTuple):
    """A strip: its name, its parts, and the text at its end."""

    name: str
    parts: tuple[StripPart, ...]
    words: str = ""


def draw_strips(title: str, strips: Sequence[Strip], names: Sequence[str]) -> str:
    """Return a picture of strips as long as their parts together; `names` of the colours."""
    parts, left, right = [], 118.0, WIDTH - 52.0
    total = max((sum(part.size for part in strip.parts) for strip in strips), default=0) or 1
    for place, strip in enumerate(strips):
        y, x = 4 + place * _ROW, left
        parts.append(label(left - 6, y + 12, clip(strip.name, left - 8), "end"))
        for part in strip.parts:
            width = (right - left) * part.size / total
            extra = ' fill-opacity="0.25"' if part.is_pale else ""
            parts.append(rect(Area(x, y + 2, width, 13), part.color, part.title, extra))
            x += width
        parts.append(dim_label(x + 5, y + 12, strip.words))
    bottom = 4 + len(strips) * _ROW
    return picture(bottom + 22, title, [*parts, *color_names(bottom + 14, names)])


def color_names(y: float, names: Sequence[str], left: float = 6.0) -> list[str]:
    """Return the legend of the colours."""
    parts, x = [], left
    for color, name in enumerate(names):
        if name:
            parts += [rect(Area(x, y - 8, 9, 9), color), label(x + 13, y, name)]
            x += 26 + 6.3 * len(name)
    return parts


class Span(NamedTuple):
    """A segment in time: its start, end, colour and tooltip."""

    first: int
    last: int
    color: int
    title: str


class Lane(NamedTuple):
    """The segments of a partition."""

    name: str
    spans: tuple[Span, ...]


def timeline(
    title: str, lanes: Sequence[Lane], now: int, names: Sequence[str], zone: tzinfo = UTC, first: int | None = None
) -> str:
    """Return a picture of segments of several partitions over time, from `first` on; a line marks now."""
    spans = [span for lane in lanes for span in lane.spans]
    start = min((span.first for span in spans), default=now) if first is None else first
    end = max([now, *(span.last for span in spans)])
    frame = PlotArea(left=118, top=4, bottom=4 + len(lanes) * _ROW)
    wide = frame.width / max(end - start, 1)
    parts = []
    for place, lane in enumerate(lanes):
        y = frame.top + place * _ROW
        parts += [label(112, y + 13, clip(lane.name, 110), "end"), line(frame.left, y + 9, frame.right, y + 9)]
        for span in lane.spans:
            x = frame.left + wide * max(span.first - start, 0)
            width = max(wide * (span.last - max(span.first, start)), 1.5)
            area = Area(min(x, frame.right - 1.5), y + 3, width - 0.5, 12)
            parts.append(rect(area, span.color, span.title))
    x = frame.left + wide * (now - start)
    stroke = f'class="l4" stroke="{COLORS[4]}" stroke-width="1.2" stroke-dasharray="3 2"'
    parts.append(f'<path d="M{number(x)} {number(frame.top)}V{number(frame.bottom)}" fill="none" {stroke}/>')
    parts += time_axis(frame, start, end, zone)
    return picture(frame.bottom + 42, title, [*parts, *color_names(frame.bottom + 34, names)])
