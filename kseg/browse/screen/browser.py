"""The screen of `kseg browse`, its style, and its run on a terminal."""

import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import ClassVar, TypeVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from kseg.browse.bytes import Decoders, FieldLine, copied_text, export_item, field_lines
from kseg.browse.log_place import BatchPlace, LogPlace
from kseg.browse.navigation import Way
from kseg.browse.place import UTC_CLOCK, BrowsedPlace, Clock, Jump, ShownRow
from kseg.browse.places import DirectoryPlace, EntryPlace, PiecesPlace, places_at
from kseg.browse.screen.questions import KEYS, QUESTIONS, Background, QuestionLine, Sheet, keys_line, keys_table
from kseg.browse.screen.rows import FieldPane, HexView, NoLines, PlaceLines, RowList
from kseg.browse.search import Sought, Watch, next_damage, next_match, previous_match
from kseg.decode.values import DecoderOptions
from kseg.doctor.kinds import command_line
from kseg.errors import KsegError, UsageError, plural
from kseg.explain.field import ExplainedField
from kseg.system.terminal_text import escaped_text

LOOK = """
Screen { layout: vertical; }
.line { height: 1; padding: 0 1; }
#way { background: $primary; color: $text; text-style: bold; }
#panes { height: 1fr; }
#rows-pane { width: 36; }
#fields-pane, #bytes-pane { border-left: solid $surface-lighten-2; }
.heading { height: 1; padding: 0 1; background: $surface; color: $text-muted; }
#fields-heading, #bytes-heading { padding: 0; }
#detail { height: 2; padding: 0 1; background: $surface; }
#says { height: 1; padding: 0 1; }
#says.-wrong { color: $text-error; text-style: bold; }
.-narrow #rows-pane { width: 34; }
.-wide #rows-pane { width: 40; }
.-large #rows-pane { width: 62; }
.-huge #rows-pane { width: 42%; }
.-narrow #contents, .-large #contents { layout: vertical; }
.-narrow #fields-pane, .-large #fields-pane { height: 3fr; }
.-narrow #bytes-pane, .-large #bytes-pane { height: 2fr; }
.-wide #contents, .-huge #contents { layout: horizontal; }
.-wide #fields-pane, .-huge #fields-pane { width: 1fr; }
.-wide #bytes-pane, .-huge #bytes-pane { width: 48; }
.-large #bytes-pane.-without, .-huge #bytes-pane.-without { display: none; }
.-zoomed .pane { display: none; }
.-zoomed .pane.-here { display: block; }
.-zoomed #rows-pane.-here, .-zoomed #fields-pane.-here, .-zoomed #bytes-pane.-here {
    width: 1fr; height: 1fr; border: none;
}
.-zoomed #contents.-empty { display: none; }
"""


T = TypeVar("T")
LOOK_AGAIN_SECONDS = 2.0
_TELL_SECONDS = 0.2
_NOTE_INDENT = 4
"""The indentation, in characters, of a key or value in full."""
_MOST_READ_ON = 64
"""The most reads of further rows on the way to the last row of a file that is read in pieces."""


class Browser(App[None]):
    """The application that walks through places; a stack leads to the present one."""

    TITLE = "kseg browse"
    ENABLE_COMMAND_PALETTE = False
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (116, "-wide"), (140, "-large"), (180, "-huge")]  # noqa: RUF012  as textual declares it
    CSS = LOOK
    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(key.keys, key.action, key.meaning, show=False) for key in KEYS),
        Binding("left,h,backspace", "out", show=False),
        Binding("escape", "leave", show=False),
        Binding("ctrl+c", "quit", show=False, priority=True),
    ]

    def __init__(
        self,
        places: list[BrowsedPlace],
        decoders: Decoders,
        first: tuple[str, str] | None = None,
        clock: Clock = UTC_CLOCK,
    ) -> None:
        """Start at the innermost of some places, and at the answer to a question there, if `first` has both."""
        super().__init__()
        self.way = Way(places, clock)
        self.decoders = decoders
        self._first = first
        self._fields = FieldPane([])
        self._shown: ShownRow | None = None
        self.background = Background(self, self._complain, self._read_on_if_needed)
        self.said = ""
        self.sought: Sought | None = None

    # --- the screen's parts -----------------------------------------------------------------------------------------

    def compose(self) -> ComposeResult:
        """Yield the panes, and the lines around them."""
        yield Static(id="way", classes="line", markup=False)
        with Horizontal(id="panes"):
            with Vertical(id="rows-pane", classes="pane"):
                yield Static(id="rows-heading", classes="heading", markup=False)
                yield RowList("rows")
            with Vertical(id="contents"):
                with Vertical(id="fields-pane", classes="pane"):
                    yield Static(id="fields-heading", classes="heading", markup=False)
                    yield RowList("fields")
                with Vertical(id="bytes-pane", classes="pane"):
                    yield Static(id="bytes-heading", classes="heading", markup=False)
                    yield HexView("bytes")
        yield Static(id="detail", markup=False)
        yield QuestionLine()
        yield Static(id="says", markup=False)

    def on_mount(self) -> None:
        """Show the first place."""
        self.rows.focus()
        self.say("")
        self._show_place()
        if self._first is not None:
            name, text = self._first
            self._answer(name, text)
        self.set_interval(LOOK_AGAIN_SECONDS, self._look_again)
        self.set_interval(_TELL_SECONDS, self._tell_progress)

    @property
    def place(self) -> BrowsedPlace:
        """The present place."""
        return self.way.place

    @property
    def rows(self) -> RowList:
        """The pane of the place's rows."""
        return self.query_one("#rows", RowList)

    @property
    def fields(self) -> RowList:
        """The pane of the row's fields."""
        return self.query_one("#fields", RowList)

    @property
    def bytes_view(self) -> HexView:
        """The pane of the bytes."""
        return self.query_one("#bytes", HexView)

    @property
    def field_line(self) -> FieldLine | None:
        """The line under the cursor of the fields' pane."""
        lines = self._fields.lines
        return lines[self.fields.cursor] if self.fields.cursor < len(lines) else None

    def _write(self, name: str, text: str, style: str = "") -> None:
        self.query_one(f"#{name}", Static).update(Text(text, style, no_wrap=name != "detail", overflow="ellipsis"))

    def say(self, text: str, *, is_wrong: bool = False) -> None:
        """Show a message in the last line, which then shows no keys."""
        self.said = escaped_text(text)
        says = self.query_one("#says", Static)
        says.set_class(is_wrong, "-wrong")
        room = self.size.width - len("  ")
        self._write("says", self.said or keys_line(self.place.scopes, room), "" if text else "dim")

    def _complain(self, text: str) -> None:
        self.say(text, is_wrong=True)

    def _show_place(self) -> None:
        self._write("way", " / ".join(self.way.titles))
        self._write("rows-heading", self.place.heading_in(self.rows.scrollable_content_region.width))
        self.rows.show(PlaceLines(self.place), self.way.cursor)
        if not self.said:
            self.say("")
        self._show_row()
        self._read_on_if_needed()

    def _show_row(self) -> None:
        """Show the fields and bytes of the row under the cursor."""
        self.way.cursor = self.rows.cursor
        self._shown = None
        try:
            if self.place.count:
                self._shown = self.place.read_row(self.rows.cursor)
        except (KsegError, OSError) as error:
            self._complain(str(error))
        self._show_fields()
        if self._shown is not None and self._shown.read_more is not None:
            self.background.read_apart(self._shown.read_more, partial(self._add_fields, self._shown))

    def _add_fields(self, shown: ShownRow, found: list[ExplainedField]) -> None:
        if shown is self._shown and found:
            self._shown = shown.with_more(found)
            number = self.fields.cursor
            self._show_fields()
            self.fields.refit(number)

    def _show_fields(self) -> None:
        """Show the fields and bytes of the contents of the row."""
        room = self.fields.scrollable_content_region.width - _NOTE_INDENT
        lines: list[FieldLine] = []
        try:
            if self._shown is not None:
                lines = field_lines(self._shown.item.fields, self.decoders, self.way.clock.zone, room)
        except (KsegError, OSError) as error:
            self._complain(str(error))
        self._fields = FieldPane(lines, room)
        if self._shown is not None:
            item = self._shown.item
            self._write("fields-heading", escaped_text("  ".join(filter(None, (item.title, self._shown.note)))))
            self._write("bytes-heading", escaped_text(self._shown.source.title))
            self.query_one("#bytes-pane").set_class(self._shown.source.size == 0, "-without")
            self.bytes_view.show(self._shown.source, range(item.position, item.position + item.size))
        self.fields.show(self._fields if lines else NoLines())
        self._show_field()

    def _show_field(self) -> None:
        """Highlight the bytes of the field under the cursor, and show its meaning."""
        line, shown = self.field_line, self._shown
        if shown is None or line is None:
            self.bytes_view.light(range(0))
            self._write("detail", "" if self.place.count else "empty")
            return
        problem = shown.item.problem
        if not self.fields.has_focus and not self.bytes_view.has_focus:
            self.bytes_view.light(range(0))
            item = shown.item
            bytes_text = f": position {item.position}, {plural(item.size, 'byte')}" if item.size else ""
            self._write("detail", escaped_text(problem or item.title + bytes_text), "bold red" if problem else "")
            return
        field = line.field
        if not self.bytes_view.has_focus:
            self.bytes_view.light(range(field.position, field.position + field.size))
        size = f"{plural(field.size, 'byte')} at {field.position}  " if field.size else ""
        text = f"{field.path}  {field.kind}  {size}{field.problem or field.meaning}"
        self._write("detail", escaped_text(text), "bold red" if field.problem else "")

    # --- reading in another thread ----------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """True while a read or a search runs."""
        return self.background.is_busy

    def on_unmount(self) -> None:
        """Stop work in other threads, so that it can't delay the exit."""
        self.background.stop()

    async def _read_here(self, read: Callable[[], T]) -> T | None:
        """Read for the present place; return None if the user has left it, since nobody wants the result then."""
        place = self.place
        found = await self.background.in_thread(read)
        return found if place is self.place else None

    def _tell_progress(self) -> None:
        if self.background.line:
            self.say(self.background.line)

    def _read_on_if_needed(self) -> None:
        """Read more rows if the cursor is near the last known row, or at the first."""
        if self.is_busy or not self.is_running:
            return
        cursor, near = self.rows.cursor, 2 * max(self.rows.size.height, 1)
        if cursor + near >= self.place.count and not self.place.has_all:
            self.background.begin(self._read_on)
        elif cursor < near and not self.place.has_beginning:
            self.background.begin(self._read_before)

    async def _read_on(self, _: Watch) -> None:
        place, was_empty = self.place, self.place.count == 0
        found = await self.background.in_thread(place.read_more)
        place.take_more(found)
        self._take_notice(place, 0, is_new=was_empty)

    async def _read_before(self, _: Watch) -> None:
        place = self.place
        found = await self._read_here(place.read_before)
        if found is not None:
            self._take_notice(place, place.take_before(found), is_new=False)

    def _take_notice(self, place: BrowsedPlace, moved: int, *, is_new: bool) -> None:
        """Show new rows of a place; its known rows moved down by some."""
        if place is not self.place:
            return
        self._mark_wrong(place)
        if moved:
            self.rows.take_above(moved)
        else:
            self.rows.refit(self.rows.cursor)
        self.way.cursor = self.rows.cursor
        if is_new:
            self._show_row()

    def _mark_wrong(self, place: BrowsedPlace) -> None:
        if isinstance(place, LogPlace) and place.has_damage:
            self.way.note_wrong(place.path)

    # --- navigation -------------------------------------------------------------------------------------------------

    def on_row_list_moved(self, message: RowList.Moved) -> None:
        """Follow a move of the cursor in rows or fields."""
        if message.rows is self.rows:
            self.say("")
            self._show_row()
            self._read_on_if_needed()
        else:
            self._show_field()

    def on_row_list_chosen(self, message: RowList.Chosen) -> None:
        """Go into a row's place, or from a record to its fields, or from a field to its bytes."""
        if message.rows is self.fields:
            self.bytes_view.focus()
            return
        try:
            entered = self.place.enter(self.rows.cursor) if self.place.count else None
        except (KsegError, OSError) as error:
            self.say(str(error), is_wrong=True)
            return
        if entered is None:
            self.fields.focus()
        else:
            self.way.push(entered)
            self._show_place()

    def action_out(self) -> None:
        """Go back: from bytes to fields, from fields to rows, or to the place above."""
        if self.bytes_view.has_focus:
            self.fields.focus()
        elif self.fields.has_focus:
            self.rows.focus()
        elif self.is_busy:
            self.say("still reading; Esc stops a search")
        elif self.way.depth > 1:
            self.way.pop()
            self.say("")
            self._show_place()

    def action_leave(self) -> None:
        """Stop a search, or go back."""
        if self.is_busy:
            self.background.stop()
        else:
            self.action_out()

    def on_descendant_focus(self) -> None:
        """Follow the focus to another pane with the highlighted bytes."""
        for name in ("rows", "fields", "bytes"):
            pane = self.query_one(f"#{name}-pane")
            pane.set_class(self.focused is not None and self.focused in pane.query("*"), "-here")
        self.query_one("#contents").set_class(self.rows.has_focus, "-empty")
        if self._shown is not None:
            self._show_field()

    def on_hex_view_pointed(self, message: HexView.Pointed) -> None:
        """Move the cursor of the fields to the field that holds the byte."""
        number = self._fields.line_at(message.position)
        if number is not None:
            self.fields.refit(number)
            field = self._fields.lines[number].field
            self.bytes_view.light_around(range(field.position, field.position + field.size))
            self._show_field()
        else:
            self._write("detail", f"position {message.position}: not in this row")

    def on_row_list_end_wanted(self, message: RowList.EndWanted) -> None:
        """Go to the first or the last of all rows, even if it isn't known yet."""
        place = self.place
        if message.rows is self.rows and not (place.has_all if message.is_last else place.has_beginning):
            self.background.begin(self._to_last if message.is_last else self._to_first)
        else:
            message.rows.put(1 << 62 if message.is_last else 0)

    async def _to_last(self, _: Watch) -> None:
        place = self.place
        if isinstance(place, LogPlace):
            found = await self._read_here(lambda: place.read_at(place.size - 1))
            if found is not None:
                place.take_at(found, place.size - 1)
        else:
            for _attempt in range(_MOST_READ_ON):
                if not place.has_all:
                    place.take_more(await self.background.in_thread(place.read_more))
        self._put(place, place.count - 1)

    async def _to_first(self, _: Watch) -> None:
        place = self.place
        if isinstance(place, LogPlace):
            found = await self._read_here(lambda: place.read_at(0))
            if found is not None:
                place.take_at(found, 0)
        self._put(place, 0)

    def _put(self, place: BrowsedPlace, number: int) -> None:
        """Put the cursor on a row of a place, if the place is still open."""
        if place is self.place:
            self._take_notice(place, 0, is_new=False)
            self.rows.put(number)

    async def go_to(self, target: Jump) -> None:
        """Go to a log, to a batch in it, and perhaps to a record."""
        log = self.way.go_into(target.path)
        self._show_place()  # keys apply to the visible place while the rest is read
        await self.go_to_position(log, target.position)
        if self.place is not log:
            return
        batch = None if target.offset is None else log.enter(self.way.cursor)
        if isinstance(batch, BatchPlace) and target.offset is not None:
            self.way.push(batch, batch.number_of_offset(target.offset))
        self._mark_wrong(log)
        self._show_place()
        self.rows.focus()

    async def go_to_file_position(self, position: int) -> None:
        """Go to the row that holds a position in the present file."""
        if isinstance(self.place, BatchPlace):
            self.way.pop()
        if isinstance(self.place, DirectoryPlace):
            raise UsageError("go into a file first")
        await self.go_to_position(self.place, position)
        self._show_place()

    async def go_to_position(self, place: BrowsedPlace, position: int) -> None:
        """Put the cursor on the row that holds a position."""
        if isinstance(place, EntryPlace | PiecesPlace):
            self.way.cursor = place.row_at(position)
        elif isinstance(place, LogPlace):
            number = place.row_at(position)
            if number is None:
                found = await self._read_here(lambda: place.read_at(position))
                if found is None:
                    return
                number = place.take_at(found, position)
            self.way.cursor = number

    def action_damage(self) -> None:
        """Go to the next damage."""
        begin = self.way.begin_after()

        async def work(watch: Watch) -> None:
            target = await self.background.in_thread(lambda: next_damage(begin, watch))
            await self.go_to(target)
            self.say(f"damage at position {target.position}; press d for the next")

        self.background.begin(work)

    def action_search(self, is_back: bool = False) -> None:
        """Search for the next match, or for the previous one: first in names, if a place has some."""
        sought = self.sought
        if sought is None:
            self.action_ask("search")
            return
        named = self.place.find_named(sought.is_in, self.rows.cursor, is_back=is_back)
        if named is not None:
            self.rows.put(named)
            return
        begin, find = (self.way.begin_before(), previous_match) if is_back else (self.way.begin(), next_match)

        async def work(watch: Watch) -> None:
            await self.go_to(await self.background.in_thread(lambda: find(begin, sought, watch)))
            self.say("")

        self.background.begin(work)

    # --- questions --------------------------------------------------------------------------------------------------

    def action_ask(self, name: str) -> None:
        """Ask for a target or a search text in the last line."""
        self.query_one("#says").display = False
        self.question.ask(name, QUESTIONS[name].text.format(zone=self.way.clock.name))

    @property
    def question(self) -> QuestionLine:
        """The line for questions."""
        return self.query_one(QuestionLine)

    def on_question_line_closed(self, message: QuestionLine.Closed) -> None:
        """Act on an answer, if it exists."""
        self.query_one("#says").display = True
        self.rows.focus()
        if message.text is not None:
            self._answer(message.name, message.text)

    def _answer(self, name: str, text: str) -> None:
        try:
            QUESTIONS[name].answer(self, text)
        except (KsegError, OSError) as error:
            self.say(error.message if isinstance(error, KsegError) else str(error), is_wrong=True)

    def on_row_list_resized(self, message: RowList.Resized) -> None:
        """Adapt headings and lines to the new width."""
        if message.rows is self.rows:
            self._write("rows-heading", self.place.heading_in(self.rows.scrollable_content_region.width))
            if not self.said:
                self.say("")
        else:
            self.refresh_fields()

    def refresh_fields(self) -> None:
        """Show the fields again, after a change of decoders."""
        number = self.fields.cursor
        self._show_row()
        self.fields.refit(number)

    # --- copying, exporting, refreshing -----------------------------------------------------------------------------

    def action_copy(self) -> None:
        """Copy the field's value, the row, or the highlighted bytes."""
        line = self.field_line
        if self.bytes_view.has_focus:
            text = self.bytes_view.lit.hex(" ")
        elif self.fields.has_focus and line is not None:
            text = copied_text(line)
        else:
            text = self.place.row(self.rows.cursor).text.strip() if self.place.count else ""
        self.copy_to_clipboard(text)
        self.say(f"copied: {text[:60]}")

    def action_command(self) -> None:
        """Show and copy the command that prints the row."""
        words = self.place.printed_by(self.rows.cursor) if self.place.count else None
        if words is None:
            self.say("no kseg command prints this row", is_wrong=True)
            return
        words += self.decoders.words() if "--print-data-log" in words else []
        line = command_line([*words, *([] if words[0] == "explain" else self.way.clock.words())])
        self.copy_to_clipboard(line)
        self.push_screen(Sheet("copied the command that prints this row", Text(line, overflow="fold")))

    def export(self, path: Path) -> None:
        """Write the shown row as JSON to a new file."""
        if self._shown is None:
            raise KsegError("this row has nothing to export")
        size = export_item(self._shown.item, self.rows.cursor, self.place.path, path)
        self.say(f"wrote {plural(size, 'byte')} to {path}")

    def action_zoom(self) -> None:
        """Switch between a single pane and the full screen."""
        self.screen.toggle_class("-zoomed")

    def action_keys(self) -> None:
        """Show the keys."""
        self.push_screen(Sheet("keys", keys_table()))

    def action_look_again(self) -> None:
        """Check whether the file or directory has changed."""
        if not self._look_again() and not self.is_busy:
            self.say("no changes")

    def _look_again(self) -> bool:
        """Report changes; return whether there are any. Checks nothing while a read or search runs."""
        if self.is_busy:
            return False
        try:
            said = self.place.look_again()
        except (KsegError, OSError) as error:
            self.say(str(error), is_wrong=True)
            return True
        if said:
            self.rows.refit(self.rows.cursor)
            self._show_row()
            self.say(said)
            self._read_on_if_needed()
        return bool(said)


def browse_path(
    path: Path,
    beginnings: Mapping[str, int | None],
    decoder_names: Mapping[str, str | None],
    options: DecoderOptions,
    clock: Clock,
) -> None:
    """Run the screen at a path until the user quits.

    Args:
        path: a directory or a file.
        beginnings: the offset or the position to begin at, if one isn't None.
        decoder_names: the decoders of keys and values, None for none.
        options: the decoders' options.
        clock: the time zone.

    Raises:
        UsageError: stdin or stdout isn't a terminal; two beginnings are given; a decoder's name or option is wrong.
        OpenError: the path, a schema or a registry can't be opened.
        KsegError: the path isn't a Kafka file.
    """
    first = [(name, str(number)) for name, number in beginnings.items() if number is not None]
    if len(first) > 1:
        raise UsageError("specify either --offset or --position")
    decoders = Decoders(options=options)
    for part, name in decoder_names.items():
        decoders.choose(part, name)
    places = places_at(path)
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("browse needs a terminal; use `kseg explain` to print fields and bytes")
    Browser(places, decoders, first[0] if first else None, clock).run()
