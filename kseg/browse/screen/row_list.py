"""A list of rows with a cursor: only the rows on the screen are ever made, however many there are."""

from typing import ClassVar, NamedTuple, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from kseg.browse.screen.lined_view import LinedView

BASE, NAME, NOTE, WRONG = "row", "row-name", "row-note", "row-wrong"
"""Looks of text: as it is, a field's name, a note, damage."""


class LinePart(NamedTuple):
    """A part of a line in one of the looks of RowList."""

    text: str
    look: str = BASE


class ListedLines(Protocol):
    """The lines of a list, made when they are looked at."""

    @property
    def count(self) -> int:
        """How many there are."""

    def line(self, number: int) -> list[LinePart]:
        """One of them."""


class NoLines:
    """An empty list."""

    count = 0

    def line(self, number: int) -> list[LinePart]:
        """Nothing."""
        return []


class RowList(LinedView):
    """A list of lines; a line has the cursor."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {BASE, NAME, NOTE, WRONG, "row-cursor", "row-here", "row-wrong-cursor"}
    DEFAULT_CSS = """
    RowList > .row { color: $foreground; }
    RowList > .row-wrong { color: $text-error; text-style: bold; }
    RowList > .row-name { color: $text-accent; }
    RowList > .row-note { color: $text-muted; }
    RowList > .row-cursor { background: $primary; color: $text; }
    RowList > .row-wrong-cursor { background: $error; color: $text; text-style: bold; }
    RowList > .row-here { background: $surface-lighten-2; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "first", show=False),
        Binding("end,G", "last", show=False),
        Binding("enter,right,l", "choose", show=False),
    ]

    class Moved(Message):
        """The cursor is on another line."""

        def __init__(self, rows: "RowList") -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> "RowList":
            """The list."""
            return self.rows

    class Chosen(Moved):
        """What the line of the cursor leads to is wanted."""

    class EndWanted(Moved):
        """The last line, or the first one, is wanted: more than the known ones may be meant."""

        def __init__(self, rows: "RowList", *, is_last: bool) -> None:
            super().__init__(rows)
            self.is_last = is_last

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._lines: ListedLines = NoLines()
        self.cursor = 0

    def show(self, lines: ListedLines, cursor: int = 0) -> None:
        """Shows other lines."""
        self._lines = lines
        self.scroll_at_once(0)
        self.refit(cursor)

    def refit(self, cursor: int) -> None:
        """Takes notice that there are more lines or fewer, and puts the cursor on one of them."""
        self.virtual_size = Size(self.scrollable_content_region.width, self._lines.count)
        self.cursor = max(min(cursor, self._lines.count - 1), 0)
        self._keep_in_view()
        self.refresh()

    def take_above(self, count: int) -> None:
        """Takes notice of more lines above the known ones, which stay where they are on the screen."""
        self.virtual_size = Size(self.scrollable_content_region.width, self._lines.count)
        self.scroll_at_once(self.scroll_offset.y + count)
        self.refit(self.cursor + count)

    def put(self, cursor: int) -> None:
        """Puts the cursor on a line, and tells of it."""
        self.refit(cursor)
        self.post_message(self.Moved(self))

    def _keep_in_view(self) -> None:
        top, height = self.scroll_offset.y, self.line_room
        if self.cursor < top or self.cursor >= top + height:
            wanted = self.cursor if self.cursor < top else self.cursor - height + 1
            far = abs(wanted - top) > height
            self.scroll_at_once(max(self.cursor - height // 3, 0) if far else wanted)

    def on_resize(self) -> None:
        """Keeps the cursor's line in view."""
        self.refit(self.cursor)

    def render_line(self, y: int) -> Strip:
        """A line of the screen."""
        width, number = self.scrollable_content_region.width, self.scroll_offset.y + y
        base = self.get_component_rich_style(BASE)
        if number >= self._lines.count:
            return Strip.blank(width, base)
        parts = self._lines.line(number)
        over = self._over(number, is_wrong=any(part.look == WRONG for part in parts))
        segments = [Segment(part.text, self.get_component_rich_style(part.look) + over) for part in parts]
        return Strip(segments).adjust_cell_length(width, base + over)

    def _over(self, number: int, *, is_wrong: bool) -> Style:
        """What the cursor adds to the look of a line: more where the keys go to this list."""
        if number != self.cursor:
            return Style()
        if self.has_focus:
            return self.get_component_rich_style("row-wrong-cursor" if is_wrong else "row-cursor")
        return Style(bgcolor=self.get_component_rich_style("row-here").bgcolor)

    def move_lines(self, by: int) -> None:
        """Moves the cursor."""
        self.put(self.cursor + by)

    def action_first(self) -> None:
        """Moves it to the first line of all."""
        self.post_message(self.EndWanted(self, is_last=False))

    def action_last(self) -> None:
        """Moves it to the last line of all."""
        self.post_message(self.EndWanted(self, is_last=True))

    def action_choose(self) -> None:
        """Asks for what the line leads to."""
        self.post_message(self.Chosen(self))

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor where the mouse is; a second click goes in."""
        number = self.scroll_offset.y + event.y
        if 0 <= number < self._lines.count:
            self.put(number)
            if event.chain > 1:
                self.action_choose()
