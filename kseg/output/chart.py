"""Bars of characters from values, and the width of a chart of bars."""

import locale
import os
from typing import NamedTuple

from kseg.output.fitting import room_on_terminal

CHART = "chart"
"""The form of output that draws bars."""
BAR_WIDTH = 10
PIPED_WIDTH = 100
"""Width of a chart's line in a pipe or a file, so that the same input gives the same bytes."""
LEAST_BAR = 10
"""Width of the narrowest bars; a terminal without room for them breaks the lines."""
BAR_GAP = 2
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_HALVES = {(True, True): "█", (True, False): "▌", (False, True): "▐", (False, False): " "}
_PLAIN = "#"


class Canvas(NamedTuple):
    """The width of the lines of a chart, and whether they may have block characters."""

    width: int = PIPED_WIDTH
    has_blocks: bool = True


def canvas_of_stdout() -> Canvas:
    """Return the canvas of standard output: the terminal width; plain characters if it can't show others.

    kseg writes UTF-8 everywhere. The locale tells whether the terminal shows it; in a pipe it must not matter.
    """
    has_blocks = os.environ.get("TERM") != "dumb"
    width = room_on_terminal()
    if width is None:
        return Canvas(has_blocks=has_blocks)
    is_utf8 = "utf" in locale.getencoding().lower()
    return Canvas(width, has_blocks=has_blocks and is_utf8)


def bar(value: int, largest: int, width: int = BAR_WIDTH, *, has_blocks: bool = True) -> str:
    """Draw a value between 0 and the largest, in eighths of characters if block characters are allowed."""
    parts = 8 if has_blocks else 1
    filled = 0 if largest <= 0 else max(min(round(value * width * parts / largest), width * parts), int(value > 0))
    if not has_blocks:
        return (_PLAIN * filled).ljust(width)
    return (_EIGHTHS[-1] * (filled // 8) + _EIGHTHS[filled % 8].strip()).ljust(width)


class Span(NamedTuple):
    """A stretch of an axis, or a complete axis; both ends are included."""

    first: int
    last: int


def span_bar(span: Span, axis: Span, width: int, *, has_blocks: bool = True) -> str:
    """Draw a stretch of an axis in halves of characters, at least one half; plain characters are drawn whole."""
    length = max(axis.last - axis.first, 1)
    begin = min(2 * width * (span.first - axis.first) // length, 2 * width - 1)
    end = max(-(-2 * width * (span.last - axis.first) // length), begin + 1)
    halves = [begin <= half < end for half in range(2 * width)]
    cells = zip(halves[::2], halves[1::2], strict=True)
    if has_blocks:
        return "".join(_HALVES[cell] for cell in cells)
    return "".join(_PLAIN if any(cell) else " " for cell in cells)
