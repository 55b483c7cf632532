"""A driver of `kseg browse`: presses keys without a terminal, counts them, and reads the screen."""

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
"""Rounds without a message after which a key has had all its effects: a message may cause another."""
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
    """A browser under test. strokes: the pressed keys."""

    def __init__(self, browser: Browser, pilot: Pilot[None]) -> None:
        self.browser = browser
        self.pilot = pilot
        self.strokes = 0

    async def press(self, *keys: str) -> None:
        """Press keys, in order, and wait until all work is done."""
        for key in keys:
            self.hit(key)
            self.strokes += 1
            await self.settle()

    async def press_meanwhile(self, *keys: str) -> None:
        """Press keys during a read, and wait for the screen alone."""
        for key in keys:
            self.hit(key)
            await self.quiet()

    def hit(self, key: str) -> None:
        """Press a key without waiting."""
        self.browser.post_message(Key(NAMES.get(key, key), key if len(key) == 1 else None))

    async def answer(self, key: str, text: str) -> None:
        """Press a key that asks a question, type the answer without pauses, and press Enter."""
        await self.press(key)
        for each in text:
            self.hit(each)
        self.strokes += len(text)
        await self.press("enter")

    async def settle(self) -> None:
        """Wait until all reads are done."""
        await self.quiet()
        while self.browser.is_busy or not all(worker.is_finished for worker in self.browser.workers):
            await self.browser.workers.wait_for_complete()
            await self.quiet()

    async def quiet(self) -> None:
        """Wait until no part of the screen has messages left; the pilot's own way takes 60 ms per key."""
        rounds = 0
        while rounds < QUIET_ROUNDS:
            await self.pilot.pause(0)
            pumps = (self.browser, *self.browser.screen.walk_children(with_self=True))
            rounds = 0 if any(pump.message_queue_size for pump in pumps) else rounds + 1

    @property
    def way(self) -> list[str]:
        """The titles of the places on the path."""
        return self.browser.way.titles

    @property
    def said(self) -> str:
        """The message in the last line."""
        return self.browser.said

    @property
    def row(self) -> str:
        """The row under the cursor."""
        return line_of(self.browser.rows)

    @property
    def field(self) -> str:
        """The line of fields under the cursor."""
        return line_of(self.browser.fields)

    @property
    def detail(self) -> str:
        """The description of the row or the field."""
        return str(self.browser.query_one("#detail", Static).content)

    @property
    def lit(self) -> bytes:
        """The highlighted bytes."""
        return self.browser.bytes_view.lit

    def rows(self) -> list[str]:
        """Return the rows on the screen."""
        return lines_of(self.browser.rows)

    def fields(self) -> list[str]:
        """Return the fields on the screen."""
        return lines_of(self.browser.fields)

    def red_rows(self) -> list[str]:
        """Return the rows that are red, or have a red cursor."""
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
        """Return the text of all panes and lines."""
        browser = self.browser
        said = "\n".join(str(each.content) for each in browser.query(Static))
        return "\n".join([said, *self.rows(), *self.fields(), *lines_of(browser.bytes_view)])


def line_of(rows: RowList) -> str:
    """Return the line of a list under the cursor."""
    return rows.render_line(rows.cursor - rows.scroll_offset.y).text.strip()


def lines_of(pane: RowList | HexView) -> list[str]:
    """Return the visible lines of a pane."""
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
    """Open a path, and run a scenario there."""

    async def run() -> Driver:
        browser = Browser(places_at(path), Decoders() if decoders is None else decoders, first)
        async with browser.run_test(size=size) as pilot:
            driver = Driver(browser, pilot)
            await driver.settle()
            await scenario(driver)
            return driver

    return asyncio.run(run())
