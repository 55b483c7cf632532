"""Questions on the screen's last line, the keys and their help, and reading in threads."""

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any, ClassVar, NamedTuple, Protocol, TypeAlias, TypeVar

from rich.table import Table
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.message import Message
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from kseg.browse.bytes import Decoders
from kseg.browse.navigation import Way
from kseg.browse.place import Jump, Scope
from kseg.browse.search import Sought, Watch, find
from kseg.errors import KsegError, UsageError
from kseg.formats.file_names import MAXIMUM_OFFSET
from kseg.times import parse_time


class QuestionLine(Horizontal):
    """A question and its answer; the last answer is the default of the next time."""

    DEFAULT_CSS = """
    QuestionLine { display: none; height: 1; }
    QuestionLine.-asked { display: block; }
    QuestionLine > Static { width: auto; padding: 0 1; color: $text-accent; }
    QuestionLine > Input { width: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape", "close", "close")]

    class Closed(Message):
        """Message sent when the question is closed, with the answer or None."""

        def __init__(self, name: str, text: str | None) -> None:
            super().__init__()
            self.name = name
            self.text = text

    def __init__(self) -> None:
        super().__init__()
        self._name_of_question = ""
        self._answers: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """Yield the question and its input."""
        yield Static(markup=False)
        yield Input(compact=True)

    def ask(self, name: str, text: str) -> None:
        """Ask the question of this name."""
        self._name_of_question = name
        self.add_class("-asked")
        self.query_one(Static).update(text)
        answer = self.query_one(Input)
        answer.value = self._answers.get(name, "")
        answer.focus()

    def on_input_submitted(self, message: Input.Submitted) -> None:
        """Post the answer."""
        message.stop()
        self._answers[self._name_of_question] = message.value.strip()
        self._close(message.value.strip())

    def action_close(self) -> None:
        """Close the question without an answer."""
        self._close(None)

    def _close(self, text: str | None) -> None:
        self.remove_class("-asked")
        self.post_message(self.Closed(self._name_of_question, text))


class Key(NamedTuple):
    """A key binding: its action, its label in the footer (may be empty), and its description.

    scope: the places whose line of keys lists it.
    """

    keys: str
    action: str
    word: str
    meaning: str
    scope: Scope = Scope.ANY


KEYS = (
    Key("o", "ask('offset')", "offset", "go to an offset", Scope.RECORDS),
    Key("t", "ask('time')", "time", "go to the first record at or after a time: 2026-11-01T03:00, -1h", Scope.RECORDS),
    Key("p", "ask('position')", "position", "go to the batch, entry or line at a position in the file", Scope.FILE),
    Key("d", "damage", "damage", "go to the next damage, also in later segments and topics", Scope.RECORDS),
    Key("slash", "ask('search')", "search", "search topic names, or keys, values and headers: text or /REGEX/"),
    Key("n", "search", "", "go to the next match"),
    Key("N", "search(True)", "", "go to the previous match"),
    Key("v", "ask('value')", "decode", "choose the decoder for values: json, avro, int64, …", Scope.DECODED),
    Key("V", "ask('key')", "", "choose the decoder for keys"),
    Key("c", "copy", "", "copy the field, the row or the highlighted bytes, also over ssh"),
    Key("C", "command", "command", "show and copy the kseg command that prints the row"),
    Key("e", "ask('export')", "export", "write the fields of the row as JSON to a new file"),
    Key("z", "zoom", "zoom", "maximize a pane, or restore all panes"),
    Key("r", "look_again", "", "check the file again for changes"),
    Key("question_mark", "keys", "", "show the keys"),
    Key("q", "quit", "quit", "quit"),
)
MOVES = (
    ("↑ ↓ j k", "move; PgUp, PgDn, space: one page; Home, End: first and last row"),
    ("Enter → l", "open: a record's fields, then a field's bytes"),
    ("← h Backspace", "go back"),
    ("Tab", "next pane; Shift+Tab: previous pane"),
    ("Esc", "stop a search, close a prompt, go back"),
    ("mouse", "click to move the cursor, double-click to open"),
)
_HELP = Key("question_mark", "keys", "keys", "")
_SHOWN = {"slash": "/", "question_mark": "?"}


def shown_key(key: Key) -> str:
    """Return the label of a key as printed on a keyboard."""
    return _SHOWN.get(key.keys, key.keys)


def keys_line(scopes: frozenset[Scope], room: int) -> str:
    """Return as many of the available key bindings as fit. The key to quit is always included."""
    first, *others, last = (
        f"{shown_key(key)} {key.word}"
        for key in (_HELP, *KEYS)
        if key.word and (key.scope is Scope.ANY or key.scope in scopes)
    )
    while others and len("  ".join([first, *others, last])) > room:
        others.pop()
    return "  ".join([first, *others, last])


T = TypeVar("T")
Work: TypeAlias = Callable[[Watch], Coroutine[Any, Any, None]]


class Background:
    """A worker that does one work at a time; of waiting works it keeps only the last."""

    def __init__(self, app: App[None], complain: Callable[[str], None], end: Callable[[], None]) -> None:
        """Initialize the worker with the application and the callbacks for failures and completion."""
        self._app, self._complain, self._end = app, complain, end
        self._reading = Lock()
        """A lock for reads next to the work: the object that it reads from caches its results."""
        self._watch: Watch | None = None
        self._waiting: Work | None = None

    @property
    def is_busy(self) -> bool:
        """Return True while a task is running."""
        return self._watch is not None

    @property
    def line(self) -> str:
        """The progress of a search; empty if there is none."""
        return "" if self._watch is None else self._watch.line

    def begin(self, work: Work) -> None:
        """Start a task, or queue it if another task is running."""
        if self.is_busy:
            self._waiting = work
            return
        self._watch = Watch()
        self._app.run_worker(self._run_watched(work, self._watch), exit_on_error=True)

    def stop(self) -> None:
        """Stop the running task at the next opportunity, and discard all queued tasks."""
        self._waiting = None
        if self._watch is not None:
            self._watch.is_stopped = True

    async def in_thread(self, read: Callable[[], T]) -> T:
        """Run a read operation of a task in another thread."""
        return await asyncio.to_thread(read)

    def read_apart(self, read: Callable[[], T], take: Callable[[T], None]) -> None:
        """Read something in parallel with other tasks. Only the most recent request is answered."""

        def read_alone() -> T:
            with self._reading:
                return read()

        async def work() -> None:
            try:
                take(await asyncio.to_thread(read_alone))
            except (KsegError, OSError) as error:
                self._complain(str(error))

        self._app.run_worker(work(), group="apart", exclusive=True)

    async def _run_watched(self, work: Work, watch: Watch) -> None:
        try:
            await work(watch)
        except (KsegError, OSError) as error:
            self._complain(error.message if isinstance(error, KsegError) and error.status == 1 else str(error))
        except MemoryError:
            self._complain("not enough memory for this")
        finally:
            self._watch = None
        waiting, self._waiting = self._waiting, None
        if waiting is not None and self._app.is_running:
            self.begin(waiting)
        self._end()


class Asked(Protocol):
    """The browser as answers use it."""

    way: Way
    decoders: Decoders
    sought: Sought | None
    background: Background

    async def go_to(self, target: Jump) -> None:
        """Go to a batch or a record."""

    async def go_to_file_position(self, position: int) -> None:
        """Jump to a position in the current file."""

    def action_search(self, *, is_back: bool = False) -> None:
        """Search for the next match, or for the previous one."""

    def refresh_fields(self) -> None:
        """Show the fields again."""

    def export(self, path: Path) -> None:
        """Write the shown row to a new file."""

    def say(self, text: str, *, is_wrong: bool = False) -> None:
        """Show a message in the last line."""


_DIGITS = 19


class Question(NamedTuple):
    """A question and a callback for the answer. The callback raises UsageError for invalid answers."""

    text: str
    answer: Callable[[Asked, str], None]


def _number(text: str) -> int:
    if not text.isascii() or not text.isdecimal() or len(text) > _DIGITS or int(text) > MAXIMUM_OFFSET:
        raise UsageError(f"{text!r} isn't a number of 0 or more")
    return int(text)


def _to_offset(browser: Asked, text: str) -> None:
    _to_record(browser, _number(text), is_time=False)


def _to_time(browser: Asked, text: str) -> None:
    _to_record(browser, parse_time(text, browser.way.clock.zone), is_time=True)


def _to_record(browser: Asked, target: int, *, is_time: bool) -> None:
    logs = browser.way.begin().logs
    if not logs:
        raise UsageError("no log is open; go into a partition first")

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
    browser.sought = Sought.of(text)
    browser.action_search()


def _decode(part: str, browser: Asked, text: str) -> None:
    browser.decoders.choose(part, text or None)
    browser.refresh_fields()
    browser.say(f"decoding {part}s as {text}" if text else f"showing {part}s as stored")


def _export(browser: Asked, text: str) -> None:
    if not text:
        raise UsageError("enter the name of a new file")
    try:
        path = Path(text).expanduser()
    except RuntimeError as error:
        raise UsageError(f"{text}: no such user; enter the complete path") from error
    browser.export(path)


QUESTIONS = {
    "offset": Question("offset:", _to_offset),
    "time": Question("time (in {zone}):", _to_time),
    "position": Question("position in the file:", _to_position),
    "search": Question("search names or records (/REGEX/):", _search),
    "value": Question("decode values as (empty: as stored):", partial(_decode, "value")),
    "key": Question("decode keys as (empty: as stored):", partial(_decode, "key")),
    "export": Question("export as JSON to the new file:", _export),
}


def keys_table() -> Table:
    """Return the keys and their meanings."""
    table = Table.grid(padding=(0, 2))
    for keys, meaning in (*MOVES, *((shown_key(key), key.meaning) for key in KEYS)):
        table.add_row(Text(keys, "bold"), meaning)
    return table


class Sheet(ModalScreen[None]):
    """A text that covers the screen until one of its keys is pressed."""

    DEFAULT_CSS = """
    Sheet { align: center middle; }
    Sheet > VerticalScroll {
        width: 80; max-width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,enter,C", "dismiss", "close")]

    def __init__(self, title: str, content: Table | Text) -> None:
        super().__init__()
        self._title, self._content = title, content

    def compose(self) -> ComposeResult:
        """Yield the content below its title."""
        with VerticalScroll() as sheet:
            sheet.border_title = self._title
            sheet.border_subtitle = "Esc closes"
            yield Static(self._content, markup=False)
