"""Rows, lines and bytes with a cursor; only visible ones are rendered."""

from typing import ClassVar, NamedTuple, Protocol

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from kseg.browse.bytes import ByteSource, FieldLine, NoBytes
from kseg.browse.place import BrowsedPlace
from kseg.errors import KsegError
from kseg.system.terminal_text import escaped_text


class LinedView(ScrollView, can_focus=True):
    """A list of lines with a cursor that can be moved by lines and pages."""

    DEFAULT_CSS = "LinedView { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "lines(-1)", show=False),
        Binding("down,j", "lines(1)", show=False),
        Binding("pageup", "pages(-1)", show=False),
        Binding("pagedown,space", "pages(1)", show=False),
    ]

    @property
    def line_room(self) -> int:
        """Return the number of visible lines, which is at least one."""
        return max(self.scrollable_content_region.height, 1)

    def move_lines(self, by: int) -> None:
        """Move the cursor up or down by a number of lines."""
        raise NotImplementedError

    def action_lines(self, by: int) -> None:
        """Move the cursor by lines."""
        self.move_lines(by)

    def action_pages(self, by: int) -> None:
        """Move the cursor by whole pages. Consecutive pages overlap by one line."""
        self.move_lines(by * max(self.line_room - 1, 1))

    def scroll_at_once(self, line: int) -> None:
        """Put a line at the top."""
        self.scroll_to(y=line, animate=False, immediate=True, force=True)

    def on_focus(self) -> None:
        """Show that this view has the focus."""
        self.refresh()

    def on_blur(self) -> None:
        """Show that this view has lost the focus."""
        self.refresh()


BASE, NAME, NOTE, WRONG = "row", "row-name", "row-note", "row-wrong"
"""Styles of text: plain, a field's name, a note, damage."""


class LinePart(NamedTuple):
    """A part of a line in one of the styles of RowList."""

    text: str
    look: str = BASE


class ListedLines(Protocol):
    """The lines of a list, rendered on demand."""

    @property
    def count(self) -> int:
        """The number of lines."""

    def line(self, number: int, width: int) -> list[LinePart]:
        """Return a line for a list of this width."""


class NoLines:
    """An empty list."""

    count = 0

    def line(self, number: int, width: int) -> list[LinePart]:
        """Return no parts."""
        return []


class RowList(LinedView):
    """A list of lines with a cursor."""

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
        """Message sent when the cursor has moved to another line."""

        def __init__(self, rows: "RowList") -> None:
            super().__init__()
            self.rows = rows

        @property
        def control(self) -> "RowList":
            """The list."""
            return self.rows

    class Resized(Moved):
        """Message sent when the number of visible lines has changed."""

    class Chosen(Moved):
        """A message: the user wants the place of the cursor's line."""

    class EndWanted(Moved):
        """A message: the user wants the first or the last line, which may not be known yet."""

        def __init__(self, rows: "RowList", *, is_last: bool) -> None:
            super().__init__(rows)
            self.is_last = is_last

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._lines: ListedLines = NoLines()
        self.cursor = 0

    def show(self, lines: ListedLines, cursor: int = 0) -> None:
        """Show other lines."""
        self._lines = lines
        self.scroll_at_once(0)
        self.refit(cursor)

    def refit(self, cursor: int) -> None:
        """Follow a change of the number of lines, and put the cursor on one of them."""
        self.virtual_size = Size(self.scrollable_content_region.width, self._lines.count)
        self.cursor = max(min(cursor, self._lines.count - 1), 0)
        self._keep_in_view()
        self.refresh()

    def take_above(self, count: int) -> None:
        """Insert lines above the existing ones without scrolling the view."""
        self.virtual_size = Size(self.scrollable_content_region.width, self._lines.count)
        self.scroll_at_once(self.scroll_offset.y + count)
        self.refit(self.cursor + count)

    def put(self, cursor: int) -> None:
        """Move the cursor to a line and send a message."""
        self.refit(cursor)
        self.post_message(self.Moved(self))

    def _keep_in_view(self) -> None:
        top, height = self.scroll_offset.y, self.line_room
        if self.cursor < top or self.cursor >= top + height:
            wanted = self.cursor if self.cursor < top else self.cursor - height + 1
            far = abs(wanted - top) > height
            self.scroll_at_once(max(self.cursor - height // 3, 0) if far else wanted)

    def on_resize(self) -> None:
        """Keep the cursor's line visible, and post the new size."""
        self.refit(self.cursor)
        self.post_message(self.Resized(self))

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen."""
        width, number = self.scrollable_content_region.width, self.scroll_offset.y + y
        base = self.get_component_rich_style(BASE)
        if number >= self._lines.count:
            return Strip.blank(width, base)
        parts = self._lines.line(number, width)
        over = self._over(number, is_wrong=any(part.look == WRONG for part in parts))
        segments = [Segment(part.text, self.get_component_rich_style(part.look) + over) for part in parts]
        return Strip(segments).adjust_cell_length(width, base + over)

    def _over(self, number: int, *, is_wrong: bool) -> Style:
        """Return the cursor's style, which is stronger if this list has the focus."""
        if number != self.cursor:
            return Style()
        if self.has_focus:
            return self.get_component_rich_style("row-wrong-cursor" if is_wrong else "row-cursor")
        return Style(bgcolor=self.get_component_rich_style("row-here").bgcolor)

    def move_lines(self, by: int) -> None:
        """Move the cursor."""
        self.put(self.cursor + by)

    def action_first(self) -> None:
        """Move the cursor to the first line."""
        self.post_message(self.EndWanted(self, is_last=False))

    def action_last(self) -> None:
        """Move the cursor to the last line."""
        self.post_message(self.EndWanted(self, is_last=True))

    def action_choose(self) -> None:
        """Post a request for the line's place."""
        self.post_message(self.Chosen(self))

    def on_click(self, event: events.Click) -> None:
        """Put the cursor on the clicked line; a second click enters it."""
        number = self.scroll_offset.y + event.y
        if 0 <= number < self._lines.count:
            self.put(number)
            if event.chain > 1:
                self.action_choose()


_POSITION = 10
"""Digits of a position: a Kafka file has at most 2 GiB."""
_FORMS = (16, 8, 4)
"""Bytes per line; the largest that fits is used."""
_FIRST_PRINTABLE, _LAST_PRINTABLE = 0x20, 0x7E


class HexView(LinedView):
    """A hex view of a source with a cursor and highlighted bytes."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"hex", "hex-position", "hex-lit", "hex-item", "hex-cursor"}
    DEFAULT_CSS = """
    HexView > .hex { color: $text-muted; }
    HexView > .hex-position { color: $text-disabled; }
    HexView > .hex-item { color: $foreground; }
    HexView > .hex-lit { background: $warning; color: $background; text-style: bold; }
    HexView > .hex-cursor { background: $primary; color: $text; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left,h", "move(-1)", show=False),
        Binding("right,l", "move(1)", show=False),
        Binding("home", "move(-9223372036854775807)", show=False),
        Binding("end,G", "move(9223372036854775807)", show=False),
    ]

    class Pointed(Message):
        """A message: the cursor is on another byte."""

        def __init__(self, position: int) -> None:
            super().__init__()
            self.position = position

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._source: ByteSource = NoBytes()
        self._item = self._lit = range(0)
        self.cursor = 0

    @property
    def lit(self) -> bytes:
        """Return the highlighted bytes, up to 1 MiB."""
        return self._source.read(self._lit.start, min(len(self._lit), 1 << 20))

    @property
    def per_line(self) -> int:
        """The number of bytes per line."""
        width = self.scrollable_content_region.width
        return next((count for count in _FORMS if _POSITION + 2 + 4 * count <= width), _FORMS[-1])

    def show(self, source: ByteSource, item: range) -> None:
        """Show the bytes of another item and highlight them."""
        self._source, self._item, self._lit = source, item, range(0)
        self._fit()

    def light(self, lit: range) -> None:
        """Highlight the bytes of a field and scroll to them."""
        self._lit = lit
        if lit:
            self.cursor = lit.start
        self._fit()
        self._bring_into_view(lit.start if lit else self._item.start)

    def light_around(self, lit: range) -> None:
        """Highlight the bytes of the selected field without moving the cursor or the view."""
        self._lit = lit
        self.refresh()

    def _fit(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, -(-self._source.size // self.per_line))
        self.refresh()

    def _bring_into_view(self, position: int) -> None:
        row, height = position // self.per_line, self.line_room
        last = (max(self._lit.stop - 1, position)) // self.per_line
        top = self.scroll_offset.y
        if top <= row and min(last, row + height - 1) < top + height:
            return
        self.scroll_at_once(max(row - (height // 4 if last - row < height // 2 else 0), 0))

    def on_resize(self) -> None:
        """Keep the highlighted bytes visible; they may be on another line now."""
        self._fit()
        self._bring_into_view(self._lit.start if self._lit else self._item.start)

    def render_line(self, y: int) -> Strip:
        """Return a line of the screen: position, hex, text."""
        width, count = self.scrollable_content_region.width, self.per_line
        at = (self.scroll_offset.y + y) * count
        base = self.get_component_rich_style("hex")
        if at >= self._source.size:
            return Strip.blank(width, base)
        content = self._source.read(at, count)
        looks = [self._look(at + place) for place in range(len(content))]
        segments = [Segment(f"{at:>{_POSITION}} ", self.get_component_rich_style("hex-position"))]
        for place, byte in enumerate(content):
            is_joined = place > 0 and looks[place] == looks[place - 1]
            segments += [Segment(" ", looks[place] if is_joined else base), Segment(f"{byte:02x}", looks[place])]
        segments.append(Segment("   " * (count - len(content)) + " ", base))
        segments += [Segment(_character(byte), look) for byte, look in zip(content, looks, strict=True)]
        return Strip(segments).adjust_cell_length(width, base)

    def _look(self, position: int) -> Style:
        name = "hex-lit" if position in self._lit else "hex-item" if position in self._item else "hex"
        if position == self.cursor and self.has_focus:
            name = "hex-cursor"
        return self.get_component_rich_style(name)

    def _point(self, position: int) -> None:
        self.cursor = max(min(position, self._source.size - 1), 0)
        self.post_message(self.Pointed(self.cursor))
        self._bring_into_view(self.cursor)
        self.refresh()

    def action_move(self, by: int) -> None:
        """Move the cursor by bytes."""
        self._point(self.cursor + by)

    def move_lines(self, by: int) -> None:
        """Move the cursor by lines."""
        self._point(self.cursor + by * self.per_line)

    def on_click(self, event: events.Click) -> None:
        """Move the cursor to the clicked byte in the hex or text column."""
        count = self.per_line
        place = event.x - _POSITION - 1
        column = place // 3 if place < 3 * count else place - 3 * count - 1
        if 0 <= column < count:
            self._point((self.scroll_offset.y + event.y) * count + column)


def _character(byte: int) -> str:
    return chr(byte) if _FIRST_PRINTABLE <= byte <= _LAST_PRINTABLE else "."


_NAME_WIDTH = 24


class PlaceLines:
    """The rows of a place."""

    def __init__(self, place: BrowsedPlace) -> None:
        self._place = place

    @property
    def count(self) -> int:
        """The number of known rows."""
        return self._place.count

    def line(self, number: int, width: int) -> list[LinePart]:
        """Return a row, or a placeholder if the row can no longer be read."""
        try:
            row = self._place.row(number, width)
        except KsegError as error:
            return [LinePart(f" {escaped_text(error.message)}", WRONG)]
        return [LinePart(f" {row.text}", WRONG if row.is_wrong else BASE)]


class FieldPane:
    """The lines of the fields of a row."""

    def __init__(self, lines: list[FieldLine], room: int = 0) -> None:
        """Initialize the list with its lines and the width of the pane. Names use at most half of the width."""
        self.lines = lines
        deepest = max((2 * line.depth + len(line.name) for line in lines if not line.is_note), default=0)
        self._width = min(deepest, max(_NAME_WIDTH, room // 2))

    @property
    def count(self) -> int:
        """The number of lines."""
        return len(self.lines)

    def line(self, number: int, width: int) -> list[LinePart]:
        """Return the line for a field and its value, or for a note below a field."""
        line = self.lines[number]
        indent = "  " * line.depth
        if line.is_note:
            look = WRONG if line.is_wrong else NOTE
            return [LinePart(indent + " ".join(filter(None, (line.name, line.value))), look)]
        name = f"{indent + line.name:<{self._width}} "
        return [LinePart(name, WRONG if line.is_wrong else NAME), LinePart(line.value)]

    def line_at(self, position: int) -> int | None:
        """Return the line of the innermost field that contains a byte, or None if there is no such field."""
        holding = [
            (line.field.size, number)
            for number, line in enumerate(self.lines)
            if not line.is_note and line.field.position <= position < line.field.position + line.field.size
        ]
        return min(holding)[1] if holding else None
