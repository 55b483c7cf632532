"""The site in a real browser, from a server and from the disk: quiet, accessible, as wide as the window, searchable."""

import posixpath
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urldefrag, urlsplit

import pytest

from tests import chromium, golden

pytestmark = pytest.mark.browser

SITE = golden.ROOT.parent / "build" / "site"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if path.name != "404.html") or [
    "make site"
]
SCHEMES, WIDTHS = ("light", "dark"), (400, 1600)
SPREAD = ("index.html", "reference/commands/dump.html", "reference/findings.html", "python/index.html")
"""Pages that are looked at in all widths and colours: text, options, wide tables, code."""


@dataclass
class Opened:
    """A page, and what it said and asked for while it was open."""

    page: Any
    messages: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium.start_browser() as browser:
        yield browser


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@contextmanager
def opened(browser: Any, address: str, width: int = 1600, scheme: str = "light") -> Iterator[Opened]:
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = Opened(context.new_page())
    found.page.on("console", lambda message: found.messages.append(message.text))
    found.page.on("pageerror", lambda error: found.messages.append(str(error)))
    found.page.on("request", lambda request: found.requests.append(request.url))
    found.page.goto(address)
    yield found
    context.close()


def look(found: Opened, width: int) -> None:
    """Fails if the page says something, asks another host, is too wide, or keeps somebody out."""
    from axe_core_python.sync_playwright import Axe

    assert found.page.evaluate("document.documentElement.scrollWidth") <= width
    result = Axe().run(found.page)
    assert [(each["id"], each["nodes"][0]["html"]) for each in result["violations"]] == []
    assert found.messages == []
    assert {urlsplit(each).hostname for each in found.requests} <= {"127.0.0.1", None}


@pytest.mark.parametrize("page", PAGES)
def test_each_page_is_quiet_and_accessible_from_a_server(browser: Any, server: str, page: str) -> None:
    with opened(browser, f"{server}/{page}") as found:
        look(found, 1600)


@pytest.mark.parametrize("page", SPREAD)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_are_so_in_both_colours_and_widths_from_the_disk(
    browser: Any, page: str, scheme: str, width: int
) -> None:
    with opened(browser, (SITE / page).as_uri(), width, scheme) as found:
        look(found, width)


def test_each_link_within_the_site_leads_to_a_page_and_a_heading() -> None:
    names = {page: set(re.findall(r'\bid="([^"]+)"', (SITE / page).read_text(encoding="utf-8"))) for page in PAGES}
    lost = []
    for page in PAGES:
        for link in re.findall(r'href="(?!\w+:)([^"]+)"', (SITE / page).read_text(encoding="utf-8")):
            path, heading = urldefrag(unquote(link))
            there = posixpath.normpath(posixpath.join(posixpath.dirname(page), path)) if path else page
            if not (SITE / there).exists() or (heading and heading not in names[there]):
                lost.append((page, link))
    assert lost == []


@pytest.mark.parametrize("place", ["server", "disk"])
def test_search_finds_an_option(browser: Any, server: str, place: str) -> None:
    with opened(browser, f"{server}/index.html" if place == "server" else (SITE / "index.html").as_uri()) as found:
        found.page.locator("[data-md-component=search-query]").click()
        found.page.keyboard.type("--drop-offset")
        found.page.locator(".md-search-result__link").first.wait_for()
        links = found.page.locator(".md-search-result__link").evaluate_all("all => all.map(each => each.href)")
        assert any("reference/commands/slice.html" in link for link in links)
        assert found.messages == []


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("poison pill", "how-to/unreadable-batch.html"),
        ("Excel", "how-to/find-records.html"),
        ("disk full", "how-to/retention.html"),
        ("stuck consumer", "how-to/groups.html"),
    ],
)
def test_search_knows_the_words_of_users(browser: Any, server: str, words: str, page: str) -> None:
    with opened(browser, f"{server}/index.html") as found:
        found.page.locator("[data-md-component=search-query]").click()
        found.page.keyboard.type(words)
        found.page.locator(".md-search-result__link").first.wait_for()
        links = found.page.locator(".md-search-result__link").evaluate_all("all => all.map(each => each.href)")
        assert any(page in link for link in links)
