"""Recordings of a terminal: their text, their last screen without motion, and the words that tell the same."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests import chromium, golden
from tests.loops import for_each
from tools.generators.animation import COLUMNS, LINE, ROWS, Run, animated
from tools.generators.recordings import RECORDINGS

ROOT = golden.ROOT.parent
PICTURES = ROOT / "docs" / "pictures"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FIRST_PAGES = {ROOT / "README.md", ROOT / "docs" / "index.md"}
LARGEST = 60_000
TEXT = "{http://www.w3.org/2000/svg}text"
SCREEN = re.compile(r'class="up" transform="translate\(0,-(\d+)\)"')


def rows(picture: str) -> dict[int, str]:
    """Return the lines of a recording's screen by their rows, without blanks."""
    found: dict[int, str] = {}
    (screen,) = ElementTree.fromstring(picture).iterfind(".//*[@class='up']")
    for text in screen.iter(TEXT):
        row = int(text.attrib["y"]) // LINE
        found[row] = found.get(row, "") + "".join("".join(text.itertext()).split())
    return found


def test_a_recording_has_commands_and_output_in_order() -> None:
    picture = animated("title", "words", [Run("kseg a \\\n  --b", "one\n\n<two>"), Run("kseg c", "")])
    assert rows(picture) == {0: "$ksega\\", 1: ">--b", 2: "one", 4: "<two>", 6: "$ksegc"}


def test_a_line_that_is_too_long_goes_on_in_the_next_row() -> None:
    picture = animated("title", "words", [Run("kseg a", "x" * COLUMNS + "y")])
    assert rows(picture) == {0: "$ksega", 1: "x" * COLUMNS, 2: "y"}


def test_colours_of_the_terminal_are_kept() -> None:
    picture = animated("title", "words", [Run("kseg a", "\x1b[1;31merror\x1b[0m \x1b[93mwarning\x1b[0m")])
    colours = {text.text: text.get("class") for text in ElementTree.fromstring(picture).iter(TEXT)}
    assert (colours["error"], colours["warning"]) == ("red b", "yellow")


@pytest.mark.parametrize(("lines", "hidden"), [(1, 0), (ROWS - 2, 0), (ROWS, 2), (3 * ROWS, 2 * ROWS + 2)])
def test_without_motion_the_last_screen_is_shown(lines: int, hidden: int) -> None:
    picture = animated("title", "words", [Run("kseg a", "\n".join("x" * lines))])
    found = SCREEN.search(picture)
    assert found is not None
    assert int(found[1]) == hidden * LINE


@for_each("name", RECORDINGS)
def test_a_recording_moves_only_for_readers_who_like_motion(name: str) -> None:
    picture = (PICTURES / name).read_text(encoding="utf-8")
    still, _, moving = picture.partition("@media(prefers-reduced-motion:no-preference){")
    assert "animation" not in still
    assert "animation" in moving
    assert "@media(prefers-color-scheme:dark)" in still
    assert len(picture.encode()) <= LARGEST


@for_each("name", RECORDINGS)
def test_pages_tell_in_words_what_a_recording_shows(name: str) -> None:
    shown = re.compile(rf"!\[([^\]]*)\]\([\w./]*pictures/{re.escape(name)}\)")
    told = {match[1] for page in PAGES for match in shown.finditer(page.read_text(encoding="utf-8"))}
    assert told == {RECORDINGS[name].words}


def test_first_pages_show_one_recording_and_link_the_pages_of_the_others() -> None:
    for page in FIRST_PAGES:
        text = page.read_text(encoding="utf-8")
        (shown,) = [name for name in RECORDINGS if f"pictures/{name})" in text]
        links = {(page.parent / link).resolve() for link in re.findall(r"\]\((?!https?:)([^)#]+\.md)", text)}
        for name in {*RECORDINGS} - {shown}:
            assert any(f"pictures/{name})" in linked.read_text(encoding="utf-8") for linked in links), (page, name)


def test_the_social_picture_shows_lines_of_a_recording() -> None:
    picture = ElementTree.parse(PICTURES / "social.svg").getroot()
    (terminal,) = picture.iterfind("{*}g")
    recorded = "".join(rows((PICTURES / "will-not-load.svg").read_text(encoding="utf-8")).values())
    lines = ["".join("".join(line.itertext()).split()).removesuffix("…") for line in terminal.iter(TEXT)]
    assert len(lines) == 5
    assert [line for line in lines if line not in recorded] == []
    assert picture.attrib["viewBox"] == "0 0 1280 640"


@pytest.mark.browser
def test_a_browser_shows_the_end_at_once_without_motion_and_types_with_it(tmp_path: Path) -> None:
    address = (PICTURES / "will-not-load.svg").as_uri()
    is_shown = "getComputedStyle([...document.querySelectorAll('text')].at(-1)).visibility"
    at = "for (const each of document.getAnimations()) {{ each.pause(); each.currentTime = {} }}"
    with chromium.start_browser() as browser:
        still = browser.new_context(reduced_motion="reduce").new_page()
        still.goto(address)
        assert still.evaluate(is_shown) == "visible"
        assert still.evaluate("document.getAnimations().length") == 0
        moving = browser.new_context(reduced_motion="no-preference").new_page()
        moving.goto(address)
        moving.evaluate(at.format(0))
        assert moving.evaluate(is_shown) == "hidden"
        moving.evaluate("for (const each of document.getAnimations()) each.finish()")
        assert moving.evaluate(is_shown) == "visible"
