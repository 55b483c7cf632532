"""Reports in a real browser: with and without scripts, light and dark, narrow and wide, printed, strict policy."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kseg.report.page import PRINTED_ROWS
from tests import chromium
from tests.report.made_disk import NOW, NOW_MS, build, made_disk, page_of, record

pytestmark = pytest.mark.browser

ADDRESS = "http://report.test/report.html"
JENKINS = "sandbox; default-src 'none'; img-src 'self'; style-src 'self'"
"""Policy with which Jenkins serves artifacts."""
WIDTHS, SCHEMES = (400, 1600), ("light", "dark")

A4_HEIGHT = 1123
"""Pixels of CSS."""


@dataclass
class Opened:
    """A page, and its messages and requests while it was open."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def is_quiet(self) -> bool:
        return self.messages == [] and self.requests == [ADDRESS]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.start_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> str:
    root = tmp_path_factory.mktemp("browser")
    made_disk(root)
    return page_of(root, "disk", "--now", NOW, "--price", "0.1", "--show-keys")


@contextmanager
def opened(
    browser: Any, content: str, width: int = 1600, policy: str | None = None, **options: Any
) -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": width, "height": 900}, **options)
    headers = {"Content-Type": "text/html; charset=utf-8"}
    if policy is not None:
        headers["Content-Security-Policy"] = policy
    context.route("**/*", lambda route: route.fulfill(status=200, headers=headers, body=content))
    found = Opened(context.new_page())
    found.page.on("console", lambda message: found.messages.append(message.text))
    found.page.on("pageerror", lambda error: found.messages.append(str(error)))
    found.page.on("dialog", lambda dialog: found.messages.append(dialog.message))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.goto(ADDRESS)
    yield found
    context.close()


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_page_is_accessible_quiet_and_no_wider_than_the_window(
    browser: Any, content: str, width: int, scheme: str
) -> None:
    from axe_core_python.sync_playwright import Axe

    with opened(browser, content, width, color_scheme=scheme) as found:
        assert found.page.evaluate("document.documentElement.scrollWidth") <= width
        result = Axe().run(found.page)
        assert [(each["id"], each["nodes"][0]["html"]) for each in result["violations"]] == []
        assert found.is_quiet()


@pytest.mark.parametrize("width", WIDTHS)
def test_words_of_pictures_are_large_enough_to_be_read(browser: Any, content: str, width: int) -> None:
    with opened(browser, content, width) as found:
        scale = "each => each.getBoundingClientRect().width / each.viewBox.baseVal.width"
        scales = found.page.evaluate(f"[...document.querySelectorAll('figure svg')].map({scale})")
        assert scales
        assert all(11 * scale >= 9.5 for scale in scales)


@pytest.mark.parametrize("options", [{"java_script_enabled": False}, {"policy": JENKINS}], ids=["noScript", "strict"])
def test_everything_can_be_read_without_script_and_style(browser: Any, content: str, options: dict[str, Any]) -> None:
    with opened(browser, content) as whole, opened(browser, content, **options) as bare:
        for name in ("section", "tbody tr", "figure svg", ".verdicts li"):
            assert bare.page.locator(name).count() == whole.page.locator(name).count() > 5
        text = " ".join(bare.page.locator("#verdicts").inner_text().split())
        assert "orders: one key has 33 % of the records" in text
        assert "kseg get disk/orders-2 --offset 1497 --field key" in text
        assert bare.page.locator("#kseg").is_hidden()
        assert bare.requests == [ADDRESS]
        blocked = [each for each in bare.messages if "Content Security Policy" in each or "sandboxed" in each]
        assert bare.messages == blocked  # of the style and the script in the page
        assert bool(blocked) == ("policy" in options)


def test_tables_are_sorted_and_filtered_by_mouse_and_keyboard(browser: Any, content: str) -> None:
    with opened(browser, content) as found:
        frame = found.page.locator(".part", has=found.page.locator("#t-topics"))
        first = frame.locator("tbody tr").first.locator("th")
        assert first.inner_text() == "orders"
        head = frame.locator("th", has_text="Topic")
        head.locator("button").focus()
        found.page.keyboard.press("Enter")
        assert (first.inner_text(), head.get_attribute("aria-sort")) == ("clicks", "ascending")
        found.page.keyboard.press("Enter")
        assert (first.inner_text(), head.get_attribute("aria-sort")) == ("unused", "descending")
        frame.locator("th", has_text="On disk").locator("button").click()
        assert first.inner_text() == "orders"
        keys = found.page.locator(".part", has=found.page.locator("#t-hotKeys"))
        keys.locator("input").fill("customer-1")
        assert re.fullmatch("[0-9]+ of [0-9]+", keys.locator(".filter span").inner_text())
        assert all("customer-1" in each for each in keys.locator("tbody tr:not([hidden])").all_inner_texts())
        assert found.is_quiet()


def test_page_prints_on_paper(browser: Any, content: str) -> None:
    with opened(browser, content, 1000, color_scheme="dark") as found:
        found.page.emulate_media(media="print", color_scheme="dark")
        assert found.page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
        assert found.page.pdf(format="A4").startswith(b"%PDF")
        shown = "body => [...body.rows].filter(row => getComputedStyle(row).display != 'none').length"
        assert found.page.evaluate(f"Math.max(...[...document.querySelectorAll('tbody')].map({shown}))") == PRINTED_ROWS
        assert found.page.locator(".printed").first.is_visible()
        assert found.page.locator("#summary").evaluate("part => part.getBoundingClientRect().bottom") < A4_HEIGHT


def test_hostile_names_and_keys_do_nothing(browser: Any, tmp_path: Path) -> None:
    key = "</script><script>alert(1)</script><img src=x onerror=alert(2)><style>*{display:none}</style>"
    build(tmp_path / "disk" / "t-0", [record(number, NOW_MS - 86_400_000, key, "v") for number in range(50)])
    (tmp_path / "disk" / "t-0").rename(tmp_path / "disk" / "<img src=x onerror=alert(3)>-0")
    with opened(browser, page_of(tmp_path, "disk", "--now", NOW, "--show-keys")) as found:
        assert found.page.locator("img").count() == 0
        assert "<img src=x onerror=alert(3)>" in found.page.locator("#bytes").inner_text()
        assert "</script><script>alert(1)" in found.page.locator("#keys").inner_text()
        assert found.is_quiet()
