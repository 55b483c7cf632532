"""What is asked in the last line of the screen, and what is done with the answers."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple, Protocol

from kseg.browse.field_lines import Decoders
from kseg.browse.place import Jump
from kseg.browse.screen.background import Background
from kseg.browse.searches import Begin, Watch, find, next_match, parse_pattern
from kseg.browse.way import Way
from kseg.errors import UsageError
from kseg.formats.names import MAXIMUM_OFFSET
from kseg.times import parse_time


class Asked(Protocol):
    """What answers act on: the browser."""

    way: Way
    decoders: Decoders
    search: Callable[[Begin, Watch], Jump] | None
    background: Background

    async def go_to(self, target: Jump) -> None:
        """Goes to a batch or a record."""

    async def go_to_file_position(self, position: int) -> None:
        """Goes to a position in the file that one is in."""

    def action_again(self) -> None:
        """Searches for the next match."""

    def refresh_fields(self) -> None:
        """Shows the fields again."""

    def export(self, path: Path) -> None:
        """Writes the row that is shown to a new file."""

    def say(self, text: str, *, is_wrong: bool = False) -> None:
        """Says something in the last line."""


_DIGITS = 19


class Question(NamedTuple):
    """A question, and what to do with its answer. The latter raises UsageError for an answer that is none."""

    text: str
    answer: Callable[[Asked, str], None]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS or int(text) > MAXIMUM_OFFSET:
        raise UsageError(f"{text!r} is no number from 0 on")
    return int(text)


def _to_offset(browser: Asked, text: str) -> None:
    _to_record(browser, _number(text), is_time=False)


def _to_time(browser: Asked, text: str) -> None:
    _to_record(browser, parse_time(text), is_time=True)


def _to_record(browser: Asked, target: int, *, is_time: bool) -> None:
    logs = browser.way.begin().logs
    if not logs:
        raise UsageError("there is no log here: go into a partition first")

    async def work(_: Watch) -> None:
        found = await browser.background.in_thread(lambda: find(logs[0], target, is_time=is_time))
        await browser.go_to(found)
        browser.say(found.note)

    browser.background.begin(work)


def _to_position(browser: Asked, text: str) -> None:
    position = _number(text)

    async def work(_: Watch) -> None:
        await browser.go_to_file_position(position)

    browser.background.begin(work)


def _search(browser: Asked, text: str) -> None:
    if not text:
        return
    pattern = parse_pattern(text)
    browser.search = lambda begin, watch: next_match(begin, pattern, watch)
    browser.action_again()


def _decode(part: str, browser: Asked, text: str) -> None:
    browser.decoders.choose(part, text or None)
    browser.refresh_fields()
    browser.say(f"{part}s are decoded as {text}" if text else f"{part}s are shown as they are")


def _export(browser: Asked, text: str) -> None:
    if not text:
        raise UsageError("give the name of a new file")
    browser.export(Path(text).expanduser())


QUESTIONS = {
    "offset": Question("offset:", _to_offset),
    "time": Question("time (UTC):", _to_time),
    "position": Question("position in the file:", _to_position),
    "search": Question("search keys and values, REGEX:", _search),
    "value": Question("decode values as (empty: not at all):", partial(_decode, "value")),
    "key": Question("decode keys as (empty: not at all):", partial(_decode, "key")),
    "export": Question("export as JSON to the new file:", _export),
}
