"""Bytes in hex and as text, from any place of a file of any size; those of a field are lit."""

from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.message import Message
from textual.strip import Strip

from kseg.browse.byte_source import ByteSource, NoBytes
from kseg.browse.screen.lined_view import LinedView

_POSITION = 10
"""Digits of a position: a file of Kafka's has at most 2 GiB."""
_FORMS = (16, 8, 4)
"""Bytes of a line: as many as there is room for."""
_FIRST_PRINTABLE, _LAST_PRINTABLE = 0x20, 0x7E


class HexView(LinedView):
    """The bytes of a source; some of them are lit, and one of them has the cursor."""

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
        """The cursor is on another byte."""

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
        """The bytes that are lit, at most a MiB of them."""
        return self._source.read(self._lit.start, min(len(self._lit), 1 << 20))

    @property
    def per_line(self) -> int:
        """Bytes of a line."""
        width = self.scrollable_content_region.width
        return next((count for count in _FORMS if _POSITION + 2 + 4 * count <= width), _FORMS[-1])

    def show(self, source: ByteSource, item: range) -> None:
        """Shows other bytes, with those of an item distinct from what is around them."""
        self._source, self._item, self._lit = source, item, range(0)
        self._fit()

    def light(self, lit: range) -> None:
        """Lights the bytes of a field, and brings them into view."""
        self._lit = lit
        if lit:
            self.cursor = lit.start
        self._fit()
        self._bring_into_view(lit.start if lit else self._item.start)

    def light_around(self, lit: range) -> None:
        """Lights the bytes of the field that the cursor is in; neither the cursor nor the view moves."""
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
        """Keeps what is lit in view, which may be on another line now."""
        self._fit()
        self._bring_into_view(self._lit.start if self._lit else self._item.start)

    def render_line(self, y: int) -> Strip:
        """A line of the screen: position, hex, text."""
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
        """Moves the cursor by bytes."""
        self._point(self.cursor + by)

    def move_lines(self, by: int) -> None:
        """Moves it by lines."""
        self._point(self.cursor + by * self.per_line)

    def on_click(self, event: events.Click) -> None:
        """Puts the cursor on the byte under the mouse, in hex or as text."""
        count = self.per_line
        place = event.x - _POSITION - 1
        column = place // 3 if place < 3 * count else place - 3 * count - 1
        if 0 <= column < count:
            self._point((self.scroll_offset.y + event.y) * count + column)


def _character(byte: int) -> str:
    return chr(byte) if _FIRST_PRINTABLE <= byte <= _LAST_PRINTABLE else "."
