"""What lists of rows and bytes in hex have in common: lines that keys move through, of which only those seen exist."""

from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.scroll_view import ScrollView


class LinedView(ScrollView, can_focus=True):
    """Lines that the cursor's keys move through, by one and by pages."""

    DEFAULT_CSS = "LinedView { height: 1fr; overflow-x: hidden; scrollbar-size-vertical: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "lines(-1)", show=False),
        Binding("down,j", "lines(1)", show=False),
        Binding("pageup", "pages(-1)", show=False),
        Binding("pagedown,space", "pages(1)", show=False),
    ]

    @property
    def line_room(self) -> int:
        """Lines that there is room for, at least one."""
        return max(self.scrollable_content_region.height, 1)

    def move_lines(self, by: int) -> None:
        """Moves the cursor down by lines, or up."""
        raise NotImplementedError

    def action_lines(self, by: int) -> None:
        """Moves the cursor by lines."""
        self.move_lines(by)

    def action_pages(self, by: int) -> None:
        """Moves it by pages, which share a line."""
        self.move_lines(by * max(self.line_room - 1, 1))

    def scroll_at_once(self, line: int) -> None:
        """Puts a line at the top."""
        self.scroll_to(y=line, animate=False, immediate=True, force=True)

    def on_focus(self) -> None:
        """Shows where the keys go."""
        self.refresh()

    def on_blur(self) -> None:
        """Shows that they go elsewhere."""
        self.refresh()
