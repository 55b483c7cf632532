"""`explain -o html`: a page that shows each field, folds long parts, is readable in both modes, and runs nothing."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kseg.explain.items import ExplainedField, explain_file
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, write_segment

READABLE = 4.5
"""The contrast that WCAG 2 requires (AA)."""
VOID = ("meta", "br")
HOSTILE = b"<script>alert(1)</script></details></body>&amp;'\" \x1b[2J\xe2\x80\xaeabc\0"


class Element:
    """An element of a page: its tag and attributes, the elements in it, its text with theirs."""

    def __init__(self, tag: str, attributes: dict[str, str | None]) -> None:
        self.tag = tag
        self.attributes = attributes
        self.inner: list[Element] = []
        self.pieces: list[str] = []

    @property
    def text(self) -> str:
        """All of its text."""
        return "".join(self.pieces)

    def all(self, tag: str, kind: str = "") -> Iterator["Element"]:
        """Yield the elements of a tag below it, and of a class if one is given, in order."""
        for each in self.inner:
            if each.tag == tag and kind in ["", *(each.attributes.get("class") or "").split()]:
                yield each
            yield from each.all(tag, kind)


class Page(HTMLParser):
    """A page as a browser reads it; each element must be closed where it was opened."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(document)
        assert self._open == [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        element = Element(tag, dict(attrs))
        self._open[-1].inner.append(element)
        if tag not in VOID:
            self._open.append(element)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop().tag == tag

    def handle_data(self, data: str) -> None:
        for element in self._open:
            element.pieces.append(data)


def page_of(path: Path | str, *options: str) -> Page:
    ran = run.kseg(["explain", str(path), "-o", "html", *options], golden.ROOT)
    return Page(ran.stdout.decode())


def leaves(fields: list[ExplainedField]) -> Iterator[ExplainedField]:
    for field in fields:
        for leaf in field.leaves():
            yield leaf
            yield from leaves(leaf.body)


# --- contents
# ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "logs/4.3.1/zstd-0/00000000000000000281.log",
        "logs/4.3.1/__consumer_offsets-1/00000000000000000173.log",
        "logs/0.10.0.1/gzip-0/00000000000000000114.log",
        "damaged/210-wiped-batch/00000000000000021933.log",
        "docs/test-1-0/00000000000000203000.index",
        "logs/4.3.1/meta.properties",
    ],
)
def test_every_field_is_a_row(path: str) -> None:
    fields = [leaf for item in explain_file(golden.ROOT / path) for leaf in leaves(item.fields)]
    root = page_of(path).root
    rows = [row for row in root.all("div", "field") if list(row.all("span", "at"))]
    assert [(int(text(row, "at")), text(row, "name"), text(row, "kind")) for row in rows] == [
        (field.position, field.name, field.kind) for field in fields
    ]
    assert all(row.inner[1].text.startswith(field.raw[:8].hex(" ")) for row, field in zip(rows, fields, strict=True))
    (title,) = root.all("title")
    assert title.text == f"{path} explained"
    shown = root.text
    assert [field.meaning for field in fields if field.meaning not in shown] == []


def text(row: Element, kind: str) -> str:
    (found,) = row.all("span", kind)
    return found.text


def test_what_is_wrong_stands_in_the_page_and_is_never_folded() -> None:
    root = page_of(damaged_logs()[0]).root
    bad = list(root.all("span", "bad"))
    assert "length field is 0" in " ".join(each.text for each in bad)
    closed = [each for each in root.all("details") if "open" not in each.attributes]
    assert [each.text for part in closed for each in part.all("span", "bad")] == []


def damaged_logs() -> list[str]:
    return [str(path.relative_to(golden.ROOT)) for path in golden.damaged_files(".log") if "210-wiped" in str(path)]


def test_long_lists_and_later_batches_are_folded(tmp_path: Path) -> None:
    long = NewBatch([NewRecord(b"k", b"v")] * 11)
    short = [NewBatch([NewRecord(b"k", b"v")] * 10, 11 + 10 * number) for number in range(11)]
    root = page_of(write_segment(tmp_path / "orders-0", [long, *short])).root
    items = list(root.all("details", "item"))
    assert ["open" in item.attributes for item in items] == [True] * 10 + [False] * 2
    parts = {name(part): "open" in part.attributes for part in items[0].all("details", "part")}
    assert (parts["header"], parts["records"], parts["records[10]"]) == (True, False, False)
    parts = {name(part): "open" in part.attributes for part in items[1].all("details", "part")}
    assert all(parts.values())


def name(part: Element) -> str:
    (summary, *_) = part.all("summary")
    return summary.text.partition(":")[0]


# --- readability ------------------------------------------------------------------------------------------------------


def modes() -> dict[str, dict[str, str]]:
    """Return the colours of both modes by their names, from a page's style sheet."""
    (style,) = page_of("docs/test-1-0/00000000000000203000.log", "--batch", "0").root.all("style")
    light, dark = re.findall(r":root \{([^}]*)\}", style.text)
    assert re.search(r"@media \(prefers-color-scheme: dark\) \{ :root \{" + re.escape(dark), style.text)
    return {
        "light": dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", light)),
        "dark": dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", dark)),
    }


def contrast(first: str, second: str) -> float:
    """Return the contrast as defined by WCAG 2."""
    darker, lighter = sorted(map(luminance, (first, second)))
    return (lighter + 0.05) / (darker + 0.05)


def luminance(color: str) -> float:
    shares = (int(color[at : at + 2], 16) / 255 for at in (1, 3, 5))
    linear = (share / 12.92 if share <= 0.04045 else ((share + 0.055) / 1.055) ** 2.4 for share in shares)
    return sum(weight * share for weight, share in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


@pytest.mark.parametrize("mode", ["light", "dark"])
def test_every_colour_of_text_can_be_read_on_each_background(mode: str) -> None:
    colors = modes()[mode]
    backgrounds = {colors.pop("back"), colors.pop("stripe")}
    del colors["line"]
    assert {"text", "dim", "bad", "field0", "field6"} <= set(colors)
    weak = {name: color for name, color in colors.items() for back in backgrounds if contrast(color, back) < READABLE}
    assert weak == {}
    assert contrast("#000000", "#ffffff") == pytest.approx(21)


def test_both_modes_have_the_same_names_and_the_page_uses_them_all() -> None:
    light, dark = modes().values()
    assert set(light) == set(dark)
    assert luminance(light["back"]) > 0.9 > 0.1 > luminance(dark["back"])
    (style,) = page_of("docs/test-1-0/00000000000000203000.log", "--batch", "0").root.all("style")
    assert {name for name in light if f"var(--{name})" not in style.text} == set()


# --- safety -----------------------------------------------------------------------------------------------------------


def test_contents_of_a_file_are_text_and_nothing_else(tmp_path: Path) -> None:
    record = NewRecord(HOSTILE, HOSTILE * 100, headers=[("<img src=x onerror=alert(1)>", HOSTILE)])
    path = write_segment(tmp_path / "<b>&\"'-0", [NewBatch([record])])
    root = page_of(path).root
    assert {each.tag for each in everything(root)} <= {
        *("html", "head", "meta", "title", "style", "body", "h1", "details", "summary", "b", "span", "div", "br")
    }
    assert not any(attribute.startswith("on") for each in everything(root) for attribute in each.attributes)
    assert "<script>alert(1)</script></details></body>&amp;" in root.text
    assert "<img src=x onerror=alert(1)>" in root.text
    assert not {"\x1b", "\0", "\u202e"} & set(root.text)
    assert next(root.all("h1")).text == str(path)


def everything(element: Element) -> Iterator[Element]:
    for each in element.inner:
        yield each
        yield from everything(each)


def test_the_page_needs_nothing_from_elsewhere() -> None:
    ran = run.kseg(["explain", "docs/test-1-0/00000000000000203000.log", "--batch", "0", "-o", "html"], golden.ROOT)
    assert not re.search(rb"https?://|url\(|@import|\bsrc=|\bhref=", ran.stdout)
    assert b"default-src 'none'; style-src 'unsafe-inline'" in ran.stdout
