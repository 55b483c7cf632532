"""docs/pictures/browse.svg and browse-damage.svg: the screen of `kseg browse` after some keys on golden files."""

import asyncio
import re
from pathlib import Path

from kseg.browse.bytes import Decoders
from kseg.browse.places import places_at
from kseg.browse.screen.browser import Browser

GOLDEN = Path(__file__).resolve().parent.parent.parent / "golden"
_WEB_FONT = re.compile(r"\s*@font-face \{[^}]*\}")
_FONT = re.compile(r"font-family: Fira Code, monospace")
_ID = re.compile(r"terminal-[0-9]+")


def record() -> str:
    """Return a record of the segment in Kafka's documentation, with the bytes of its value highlighted."""
    keys = ("enter", "enter", "down", "tab", *("down",) * 6)
    return asyncio.run(_screen(GOLDEN / "docs" / "test-1-0", (120, 26), keys))


def damage() -> str:
    """Return a batch that was overwritten with zeros, in a terminal of 80 columns."""
    return asyncio.run(_screen(GOLDEN / "damaged" / "210-wiped-batch", (80, 24), ("d",)))


async def _screen(path: Path, size: tuple[int, int], keys: tuple[str, ...]) -> str:
    browser = Browser(places_at(path), Decoders())
    async with browser.run_test(size=size) as pilot:
        for key in ("", *keys):
            await pilot.press(*filter(None, (key,)))
            await pilot.pause()
            while browser.is_busy:
                await browser.workers.wait_for_complete()
                await pilot.pause()
        svg = browser.export_screenshot(title=f"kseg browse {path.name}", simplify=True)
    svg = _FONT.sub('font-family: Menlo, Consolas, "DejaVu Sans Mono", monospace', _WEB_FONT.sub("", svg))
    return _ID.sub("browse", svg)
