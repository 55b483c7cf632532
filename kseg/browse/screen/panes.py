"""The lines of the panes: a place's rows, and a row's fields."""

from kseg.browse.field_lines import FieldLine
from kseg.browse.place import BrowsedPlace
from kseg.browse.screen.row_list import BASE, NAME, NOTE, WRONG, LinePart
from kseg.errors import KsegError
from kseg.output.printable import printable

_NAME_WIDTH = 24


class PlaceLines:
    """The rows of a place."""

    def __init__(self, place: BrowsedPlace) -> None:
        self._place = place

    @property
    def count(self) -> int:
        """How many are known."""
        return self._place.count

    def line(self, number: int) -> list[LinePart]:
        """A row; what can't be read any more says so."""
        try:
            row = self._place.row(number)
        except KsegError as error:
            return [LinePart(f" {printable(error.message)}", WRONG)]
        return [LinePart(f" {row.text}", WRONG if row.is_wrong else BASE)]


class FieldPane:
    """The lines of a row's fields."""

    def __init__(self, lines: list[FieldLine]) -> None:
        self.lines = lines
        deepest = max((2 * line.depth + len(line.name) for line in lines if not line.is_note), default=0)
        self._width = min(deepest, _NAME_WIDTH)

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.lines)

    def line(self, number: int) -> list[LinePart]:
        """A field with its value, or a note below it."""
        line = self.lines[number]
        indent = "  " * line.depth
        if line.is_note:
            look = WRONG if line.is_wrong else NOTE
            return [LinePart(indent + " ".join(filter(None, (line.name, line.value))), look)]
        name = f"{indent + line.name:<{self._width}} "
        return [LinePart(name, WRONG if line.is_wrong else NAME), LinePart(line.value)]

    def line_at(self, position: int) -> int | None:
        """The line of the smallest field that holds a byte; None if none does."""
        holding = [
            (line.field.size, number)
            for number, line in enumerate(self.lines)
            if not line.is_note and line.field.position <= position < line.field.position + line.field.size
        ]
        return min(holding)[1] if holding else None
