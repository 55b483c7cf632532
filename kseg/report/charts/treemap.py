"""A treemap: areas as large as what they stand for, squarified (Bruls, Huizing, van Wijk)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kseg.report.charts.svg import COLORS, WIDTH, Area, clipped, label, number, picture, rect, shown

_HEIGHT, _HEAD, _GAP = 260, 15, 1.5
_WHITE = 'class="w" fill="#ffffff"'


class Tile(NamedTuple):
    """A part of a whole: its name, how large it is, what to say of it when it is pointed at, its own parts."""

    name: str
    size: int
    title: str
    parts: tuple["Tile", ...] = ()


def treemap(title: str, tiles: Sequence[Tile]) -> str:
    """A picture of tiles, the largest first; those of no size are left out."""
    whole = Area(0, 0, WIDTH, _HEIGHT)
    parts: list[str] = []
    for number_of_tile, (tile, area) in enumerate(squarified([each for each in tiles if each.size > 0], whole)):
        parts += _tile(tile, area, number_of_tile % len(COLORS))
    return picture(_HEIGHT, title, parts)


def _tile(tile: Tile, area: Area, color: int) -> Iterator[str]:
    inner = Area(area.x + _GAP, area.y + _GAP, area.width - 2 * _GAP, area.height - 2 * _GAP)
    yield rect(inner, color, tile.title)
    name = clipped(tile.name, inner.width - 8)
    has_head = bool(name) and inner.height > _HEAD
    if has_head:
        yield label(inner.x + 4, inner.y + 12, name, paint=_WHITE)
    below = inner._replace(y=inner.y + _HEAD, height=inner.height - _HEAD) if has_head else inner
    if len(tile.parts) < 2 or below.width < 12 or below.height < 12:
        return
    yield '<g fill="#ffffff" fill-opacity="0.13" stroke="#ffffff" stroke-opacity="0.6" stroke-width="0.6">'
    for part, place in squarified(tile.parts, below):
        yield _inset(part, place)
    yield "</g>"


def _inset(part: Tile, area: Area) -> str:
    """A part within a tile: an outline, so that the tile's colour stays."""
    place = (
        f'x="{number(area.x + 1)}" y="{number(area.y + 1)}" width="{number(max(area.width - 2, 0.5))}" '
        f'height="{number(max(area.height - 2, 0.5))}"'
    )
    return f"<rect {place}><title>{shown(part.title)}</title></rect>"


def squarified(tiles: Sequence[Tile], area: Area) -> Iterator[tuple[Tile, Area]]:
    """Each tile with its place in an area, as near to a square as rows of the largest ones allow."""
    left = sorted((each for each in tiles if each.size > 0), key=lambda each: (-each.size, each.name))
    while left:
        scale = area.width * area.height / sum(each.size for each in left)
        side = min(area.width, area.height)
        count = 1
        while count < len(left) and _worst(left[: count + 1], side, scale) <= _worst(left[:count], side, scale):
            count += 1
        row, left = left[:count], left[count:]
        thick = scale * sum(each.size for each in row) / side if side else 0.0
        yield from _laid_out(row, area, thick, scale)
        if area.width <= area.height:
            area = area._replace(y=area.y + thick, height=max(area.height - thick, 0.0))
        else:
            area = area._replace(x=area.x + thick, width=max(area.width - thick, 0.0))


def _worst(row: Sequence[Tile], side: float, scale: float) -> float:
    """The least square of a row's tiles: how many times as long as wide it is."""
    total = scale * sum(each.size for each in row)
    sizes = [scale * row[0].size, scale * row[-1].size]
    if not side or not total or not min(sizes):
        return float("inf")
    return max(side * side * sizes[0] / total**2, total**2 / (side * side * sizes[1]))


def _laid_out(row: Sequence[Tile], area: Area, thick: float, scale: float) -> Iterator[tuple[Tile, Area]]:
    at = 0.0
    for tile in row:
        long = scale * tile.size / thick if thick else 0.0
        if area.width <= area.height:
            yield tile, Area(area.x + at, area.y, long, thick)
        else:
            yield tile, Area(area.x, area.y + at, thick, long)
        at += long
