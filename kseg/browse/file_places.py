"""Files that aren't logs as places: indexes and other files of entries, and files of lines or of one piece."""

from itertools import islice
from pathlib import Path

from kseg.browse.byte_source import FileBytes
from kseg.browse.place import BrowsedPlace, PlaceRow, ReadRows, ShownRow
from kseg.explain.field import ExplainedField
from kseg.explain.items import EntryItems, Item, explain_file
from kseg.explain.words import shown_value
from kseg.output.printable import printable

ENOUGH_ITEMS = 512
_WIDTH = 14


class EntryPlace(BrowsedPlace):
    """The entries of an index or another such file, each read when it is looked at."""

    def __init__(self, path: Path) -> None:
        """Opens the file. Raises OpenError if it can't be opened, KsegError if it has no entries."""
        super().__init__(path.name, path)
        self._items = EntryItems(path)
        self.heading = " ".join(f"{name:>{_WIDTH}}" for name in self._items.names)

    @property
    def count(self) -> int:
        """How many entries there are, with what follows them."""
        return self._items.count

    def row(self, number: int) -> PlaceRow:
        """An entry's values."""
        item = self._items.item(number)
        values = [leaf for field in item.fields for leaf in field.leaves()]
        if item.problem is not None or len(values) != len(self._items.names):
            return PlaceRow(printable(f"{item.title}: {item.size} bytes"), item.problem is not None, is_open=False)
        return PlaceRow(printable(" ".join(f"{shown_value(leaf):>{_WIDTH}}" for leaf in values)), is_open=False)

    def shown(self, number: int) -> ShownRow:
        """An entry's fields."""
        return ShownRow(self._items.item(number), FileBytes(self.path))

    def row_at(self, position: int) -> int:
        """The entry that holds a position."""
        return min(max(position, 0) // self._items.entry_size, max(self.count - 1, 0))

    def look_again(self) -> str:
        """Opens the file again if its size has changed."""
        size = FileBytes(self.path).size
        if size == self._items.size or not size:
            return ""
        old = self._items.size
        self._items.close()
        self._items = EntryItems(self.path)
        return f"the file's size changed from {old} to {self._items.size} bytes"

    def close(self) -> None:
        """Closes the file."""
        self._items.close()


class PiecesPlace(BrowsedPlace):
    """The pieces of a file that are read one after another: lines, or the whole file as one."""

    def __init__(self, path: Path) -> None:
        """Reads the first ones. Raises OpenError if it can't be read, KsegError if kseg doesn't know such files."""
        super().__init__(path.name, path)
        self._begin()

    def _begin(self) -> None:
        self._known: list[Item] = []
        self._coming = explain_file(self.path)
        self._size = FileBytes(self.path).size
        self.take_more(self.read_more())

    @property
    def count(self) -> int:
        """How many pieces are known."""
        return len(self._known)

    def read_more(self) -> ReadRows:
        """Reads pieces after the known ones."""
        return ReadRows(list(islice(self._coming, ENOUGH_ITEMS)))

    def take_more(self, found: ReadRows) -> None:
        """Adds them."""
        added = [each for each in found.rows or () if isinstance(each, Item)]
        self._known += added
        self.has_all = len(added) < ENOUGH_ITEMS

    def row(self, number: int) -> PlaceRow:
        """A line's text, or the piece's title."""
        item = self._known[number]
        is_line = len(item.fields) == 1 and isinstance(item.fields[0].value, str)
        text = str(item.fields[0].value) if is_line else item.title
        return PlaceRow(
            printable(text[:256]), item.problem is not None or any(map(_is_wrong, item.fields)), is_open=False
        )

    def shown(self, number: int) -> ShownRow:
        """A piece's fields."""
        return ShownRow(self._known[number], FileBytes(self.path))

    def row_at(self, position: int) -> int:
        """The piece that holds a position, of the known ones."""
        return next((at for at, item in enumerate(self._known) if position < item.position + item.size), 0)

    def look_again(self) -> str:
        """Reads the file again if its size has changed."""
        old, size = self._size, FileBytes(self.path).size
        if size == old:
            return ""
        self._begin()
        return f"the file's size changed from {old} to {size} bytes"


def _is_wrong(field: ExplainedField) -> bool:
    return field.problem is not None or any(map(_is_wrong, field.children))
