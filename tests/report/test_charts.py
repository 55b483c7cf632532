"""Pictures: areas and places are in proportion, and names stay text."""

import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kseg.report.charts import (
    Area,
    Bin,
    Lane,
    Series,
    Span,
    Strip,
    StripPart,
    Tile,
    columns,
    draw_strips,
    squarify,
    steps,
    ticks,
    timeline,
    treemap,
    week_map,
)

HOSTILE = "<script>alert('1')</script>&\"\x1b]0;\u202e"


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=60))
def test_areas_of_a_treemap_are_as_large_as_their_shares(sizes: list[int]) -> None:
    whole = Area(0, 0, 400, 260)
    placed = list(squarify([Tile(str(place), size, "") for place, size in enumerate(sizes)], whole))
    assert sorted(tile.size for tile, _ in placed) == sorted(sizes)
    for tile, area in placed:
        assert area.width * area.height == pytest.approx(400 * 260 * tile.size / sum(sizes), rel=1e-6)
        assert -1e-6 <= area.x <= area.x + area.width <= 400 + 1e-6
        assert -1e-6 <= area.y <= area.y + area.height <= 260 + 1e-6


@given(st.floats(0.001, 1e15), st.sampled_from([10, 1024]))
def test_axes_have_few_marks_within_them(most: float, base: int) -> None:
    marks = ticks(most, base)
    assert marks[0] == 0
    assert marks[-1] <= most
    assert 1 <= len(marks) <= 6


PICTURES = {
    "treemap": treemap(
        HOSTILE, [Tile(HOSTILE, 5, HOSTILE, (Tile(HOSTILE, 2, HOSTILE), Tile("b", 3, "b"))), Tile("a", 1, "a")]
    ),
    "steps": steps(HOSTILE, [Series(HOSTILE, [(0, 1.0), (1000, 3.0)]), Series("b", [(0, 2.0)], is_line=True)], str),
    "columns": columns(HOSTILE, [Bin(HOSTILE, 3, HOSTILE)], str, HOSTILE),
    "week": week_map(HOSTILE, [float(hour) for hour in range(168)], str),
    "stacked": draw_strips(HOSTILE, [Strip(HOSTILE, (StripPart(3, 0, HOSTILE),), HOSTILE)], [HOSTILE]),
    "timeline": timeline(HOSTILE, [Lane(HOSTILE, (Span(0, 10, 0, HOSTILE),))], 20, [HOSTILE]),
}


@pytest.mark.parametrize("name", PICTURES)
def test_names_in_pictures_stay_text(name: str) -> None:
    picture = ElementTree.fromstring(PICTURES[name])
    assert "alert" in "".join(picture.itertext()) + picture.attrib["aria-label"]
    assert "<script" not in PICTURES[name]
    assert "\x1b" not in PICTURES[name]
    assert "\u202e" not in PICTURES[name]


@pytest.mark.parametrize("name", PICTURES)
def test_pictures_need_no_style_sheet(name: str) -> None:
    assert "style" not in PICTURES[name]
    assert ElementTree.fromstring(PICTURES[name]).attrib["width"] == "400"
