"""The help of `kseg browse`: what the keys do."""

from typing import ClassVar

from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from kseg.browse.screen.keys import KEYS, MOVES, shown_key


class KeysScreen(ModalScreen[None]):
    """The keys, over everything else; any of a few keys closes it."""

    DEFAULT_CSS = """
    KeysScreen { align: center middle; }
    KeysScreen > VerticalScroll {
        width: 80; max-width: 100%; height: auto; max-height: 100%;
        background: $surface; border: round $primary; padding: 0 1;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [("escape,q,question_mark,enter", "dismiss", "close")]

    def compose(self) -> ComposeResult:
        """The table of keys."""
        table = Table.grid(padding=(0, 2))
        for keys, meaning in (*MOVES, *((shown_key(key), key.meaning) for key in KEYS)):
            table.add_row(Text(keys, "bold"), meaning)
        with VerticalScroll():
            yield Static(table, markup=False)
