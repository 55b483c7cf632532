"""Strips, one under another: parts of a whole, and segments over time."""

from collections.abc import Sequence
from datetime import UTC, tzinfo
from typing import NamedTuple

from kseg.report.charts.axes import PlotArea, time_axis
from kseg.report.charts.svg import COLORS, WIDTH, Area, clipped, dim_label, label, line, number, picture, rect

_ROW = 20


class StripPart(NamedTuple):
    """A part of a strip: how large, of which colour, and what to say when it is pointed at; is_pale: it isn't there."""

    size: float
    color: int
    title: str
    is_pale: bool = False


class Strip(NamedTuple):
    """A strip: its name, its parts, and words at its end."""

    name: str
    parts: tuple[StripPart, ...]
    words: str = ""


def stacked(title: str, strips: Sequence[Strip], names: Sequence[str]) -> str:
    """Strips as long as their parts together; `names` of the colours."""
    parts, left, right = [], 118.0, WIDTH - 52.0
    total = max((sum(part.size for part in strip.parts) for strip in strips), default=0) or 1
    for place, strip in enumerate(strips):
        y, x = 4 + place * _ROW, left
        parts.append(label(left - 6, y + 12, clipped(strip.name, left - 8), "end"))
        for part in strip.parts:
            width = (right - left) * part.size / total
            extra = ' fill-opacity="0.25"' if part.is_pale else ""
            parts.append(rect(Area(x, y + 2, width, 13), part.color, part.title, extra))
            x += width
        parts.append(dim_label(x + 5, y + 12, strip.words))
    bottom = 4 + len(strips) * _ROW
    return picture(bottom + 22, title, [*parts, *color_names(bottom + 14, names)])


def color_names(y: float, names: Sequence[str], left: float = 6.0) -> list[str]:
    """Which colour is what."""
    parts, x = [], left
    for color, name in enumerate(names):
        if name:
            parts += [rect(Area(x, y - 8, 9, 9), color), label(x + 13, y, name)]
            x += 26 + 6.3 * len(name)
    return parts


class Span(NamedTuple):
    """A segment in time: from when to when, of which colour, and what to say when it is pointed at."""

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
    """Segments of several partitions over time, from `first` on; a line stands where now is."""
    spans = [span for lane in lanes for span in lane.spans]
    start = min((span.first for span in spans), default=now) if first is None else first
    end = max([now, *(span.last for span in spans)])
    frame = PlotArea(left=118, top=4, bottom=4 + len(lanes) * _ROW)
    wide = frame.width / max(end - start, 1)
    parts = []
    for place, lane in enumerate(lanes):
        y = frame.top + place * _ROW
        parts += [label(112, y + 13, clipped(lane.name, 110), "end"), line(frame.left, y + 9, frame.right, y + 9)]
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
