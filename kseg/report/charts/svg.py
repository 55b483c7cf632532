"""SVG as text: elements with attributes alone, so that a page without its style sheet shows them too."""

from collections.abc import Iterable
from html import escape
from typing import NamedTuple

from kseg.output.printable import printable

WIDTH = 400
"""Units of every picture: about as many pixels on a phone, so that its words can be read there."""
FONT_SIZE = 11
TEXT, DIM, LINE = "#1f2328", "#57606a", "#c9d1d9"
COLORS = ("#0b62c4", "#b35900", "#1a7f37", "#8a3ffc", "#b3261e", "#0a7c86", "#9c2c5a", "#6e5e00")
"""By what they tell apart; a style sheet gives `.c0` to `.c7` others in the dark. Words stand beside them, too."""


def shown(text: str) -> str:
    """Text that shows itself: whatever a name holds does nothing here."""
    return escape(printable(text))


def number(value: float) -> str:
    """A coordinate to a tenth."""
    return f"{value:.1f}".removesuffix(".0")


class Area(NamedTuple):
    """A rectangle of a picture."""

    x: float
    y: float
    width: float
    height: float


def rect(area: Area, color: int, title: str = "", extra: str = "") -> str:
    """A rectangle of a colour; `title` shows when it is pointed at."""
    place = (
        f'x="{number(area.x)}" y="{number(area.y)}" width="{number(max(area.width, 0))}"'
        f' height="{number(max(area.height, 0))}"'
    )
    paint = f'class="c{color}" fill="{COLORS[color]}"{extra}'
    return f"<rect {place} {paint}><title>{shown(title)}</title></rect>" if title else f"<rect {place} {paint}/>"


def label(x: float, y: float, text: str, anchor: str = "start", paint: str = f'class="t" fill="{TEXT}"') -> str:
    """Words; `anchor`: which end of them is at x."""
    where = "" if anchor == "start" else f' text-anchor="{anchor}"'
    return f'<text x="{number(x)}" y="{number(y)}"{where} {paint}>{shown(text)}</text>'


def dim_label(x: float, y: float, text: str, anchor: str = "start") -> str:
    """Words of an axis."""
    return label(x, y, text, anchor, f'class="d" fill="{DIM}"')


def line(x1: float, y1: float, x2: float, y2: float) -> str:
    """A line of a grid."""
    ends = f'x1="{number(x1)}" y1="{number(y1)}" x2="{number(x2)}" y2="{number(y2)}"'
    return f'<line {ends} class="g" stroke="{LINE}"/>'


def picture(height: float, title: str, parts: Iterable[str]) -> str:
    """A whole picture; who can't see it is told its title."""
    size = f'viewBox="0 0 {WIDTH} {number(height)}" width="{WIDTH}" height="{number(height)}"'
    font = f'font-family="system-ui, sans-serif" font-size="{FONT_SIZE}"'
    return f'<svg {size} {font} role="img" aria-label="{shown(title)}">{"".join(parts)}</svg>'


def clipped(text: str, width: float) -> str:
    """As much of a text as so many units hold, with an ellipsis; nothing if that says nothing."""
    most = int(width / (0.56 * FONT_SIZE))
    text = printable(text)
    if len(text) <= most:
        return text
    return f"{text[: most - 1]}…" if most >= 4 else ""
