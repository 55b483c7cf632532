"""Drives `kseg browse` by its keys without a terminal, counts them, and reads the screen."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from textual.events import Key
from textual.pilot import Pilot
from textual.widgets import Static

from kseg.browse.bytes import Decoders
from kseg.browse.places import places_at
from kseg.browse.screen.browser import Browser
from kseg.browse.screen.rows import HexView, RowList

QUIET_ROUNDS = 3
"""Rounds in a row without a message, after which a key has done all that it does: a message may lead to another."""
NAMES = {
    "/": "slash",
    "?": "question_mark",
    "-": "minus",
    ":": "colon",
    ".": "full_stop",
    " ": "space",
    "_": "underscore",
}


class Driver:
    """A browser under test. strokes: the keys that were pressed."""

    def __init__(self, browser: Browser, pilot: Pilot[None]) -> None:
        self.browser = browser
        self.pilot = pilot
        self.strokes = 0

    async def press(self, *keys: str) -> None:
        """Presses keys, one after another, and waits until all is done."""
        for key in keys:
            self.hit(key)
            self.strokes += 1
            await self.settle()

    async def press_meanwhile(self, *keys: str) -> None:
        """Presses keys while something is being read, and waits for the screen alone."""
        for key in keys:
            self.hit(key)
            await self.quiet()

    def hit(self, key: str) -> None:
        """Presses a key, and waits for nothing."""
        self.browser.post_message(Key(NAMES.get(key, key), key if len(key) == 1 else None))

    async def answer(self, key: str, text: str) -> None:
        """Presses a key that asks something, answers without a pause between its keys, and presses Enter."""
        await self.press(key)
        for each in text:
            self.hit(each)
        self.strokes += len(text)
        await self.press("enter")

    async def settle(self) -> None:
        """Waits until nothing is read any more."""
        await self.quiet()
        while self.browser.is_busy or not all(worker.is_finished for worker in self.browser.workers):
            await self.browser.workers.wait_for_complete()
            await self.quiet()

    async def quiet(self) -> None:
        """Waits until no part of the screen has a message any more; the pilot's own way takes 60 ms for each key."""
        rounds = 0
        while rounds < QUIET_ROUNDS:
            await self.pilot.pause(0)
            pumps = (self.browser, *self.browser.screen.walk_children(with_self=True))
            rounds = 0 if any(pump.message_queue_size for pump in pumps) else rounds + 1

    @property
    def way(self) -> list[str]:
        """What the places are called that one is in."""
        return self.browser.way.titles

    @property
    def said(self) -> str:
        """What is said in the last line."""
        return self.browser.said

    @property
    def row(self) -> str:
        """The row that has the cursor."""
        return line_of(self.browser.rows)

    @property
    def field(self) -> str:
        """The line of fields that has the cursor."""
        return line_of(self.browser.fields)

    @property
    def detail(self) -> str:
        """What is said about the row or the field."""
        return str(self.browser.query_one("#detail", Static).content)

    @property
    def lit(self) -> bytes:
        """The bytes that are lit."""
        return self.browser.bytes_view.lit

    def rows(self) -> list[str]:
        """The rows on the screen."""
        return lines_of(self.browser.rows)

    def fields(self) -> list[str]:
        """The fields on the screen."""
        return lines_of(self.browser.fields)

    def red_rows(self) -> list[str]:
        """Those of the rows that are red, or that a red cursor is on."""
        rows = self.browser.rows
        red = {
            rows.get_component_rich_style("row-wrong").color,
            rows.get_component_rich_style("row-wrong-cursor").bgcolor,
        }
        strips = [rows.render_line(y) for y in range(rows.size.height)]
        styles = [[segment.style for segment in strip if segment.style is not None] for strip in strips]
        are_red = [any({style.color, style.bgcolor} & red for style in each) for each in styles]
        return [strip.text.strip() for strip, is_red in zip(strips, are_red, strict=True) if is_red]

    def text(self) -> str:
        """All that the panes and lines show."""
        browser = self.browser
        said = "\n".join(str(each.content) for each in browser.query(Static))
        return "\n".join([said, *self.rows(), *self.fields(), *lines_of(browser.bytes_view)])


def line_of(rows: RowList) -> str:
    """The line of a list that has the cursor."""
    return rows.render_line(rows.cursor - rows.scroll_offset.y).text.strip()


def lines_of(pane: RowList | HexView) -> list[str]:
    """The lines of a pane that are on the screen."""
    lines = [pane.render_line(y).text.rstrip() for y in range(pane.size.height)]
    return [line for line in lines if line]


def drive(
    path: Path,
    scenario: Callable[[Driver], Awaitable[None]],
    *,
    size: tuple[int, int] = (80, 24),
    decoders: Decoders | None = None,
    first: tuple[str, str] | None = None,
) -> Driver:
    """Opens a path, and does there what a scenario does."""

    async def run() -> Driver:
        browser = Browser(places_at(path), Decoders() if decoders is None else decoders, first)
        async with browser.run_test(size=size) as pilot:
            driver = Driver(browser, pilot)
            await driver.settle()
            await scenario(driver)
            return driver

    return asyncio.run(run())
