"""Tables that fit a terminal: common values are printed above, texts are shortened, columns are omitted."""

import sys
from collections.abc import Sequence
from os.path import commonpath
from typing import NamedTuple

LEAST_PATH = 24
"""Fewest characters of a shortened path or name."""
LEAST_TEXT = 16
"""Fewest characters of another shortened text."""
MANY_ROWS = 3
"""Number of equal values that are printed once above, even if there is room for them."""
NEVER_LEFT_OUT = 0
"""Rank of columns that always stay."""


class Cut(NamedTuple):
    """The way a text is shortened: its least width, and whether at its end or in its middle."""

    least: int
    in_middle: bool

    def shorten(self, text: str, width: int) -> str:
        """Return a text that has at most the given width."""
        if width_of(text) <= width:
            return text
        kept = width - 1
        while True:
            end = (kept * 2 // 3) if self.in_middle else 0
            cut = f"{text[: kept - end]}…{text[len(text) - end :]}"
            if width_of(cut) <= width or not kept:
                return cut
            kept -= 1  # a character may take two cells


class Head(NamedTuple):
    """The form of a column if there is no room for all: its title, the cut of its texts (None: never), its rank.

    Columns of the highest rank are omitted first; of the same rank from the right. is_path: the directory that its
    paths have in common can be printed above. is_sentence: its texts are never cut; long ones get lines of their own.
    """

    title: str
    cut: Cut | None = None
    rank: int = 1
    is_path: bool = False
    is_sentence: bool = False


def room_on_terminal() -> int | None:
    """Return the width of the terminal that standard output is.

    None if it isn't a terminal: nothing is omitted there.
    """
    if not sys.stdout.isatty():
        return None
    import shutil  # imports four codecs, which a pipe needn't wait for

    return shutil.get_terminal_size().columns


class Fitting:
    """A table's columns and texts for the available room. Rows may come in pieces: the first decides for all.

    above and below: lines around the table. places: of the shown columns. sentences: of columns whose texts are below
    their row, by `lines_of`.
    """

    def __init__(
        self,
        heads: Sequence[Head],
        room: int | None,
        gap: int = 2,
        *,
        has_choice: bool = True,
        folds_cells: bool = False,
    ) -> None:
        """Take the columns, the characters of a line (None: any number), and the gap between two columns.

        has_choice: the command has --fields. Without it, all columns were requested: none is folded. folds_cells: the
        table folds sentences within their column, of `width_at`; none is below its row.
        """
        self._folds_cells = folds_cells
        self._has_choice = has_choice
        self.above: list[str] = []
        self.below: list[str] = []
        self.places = list(range(len(heads)))
        self.sentences: list[int] = []
        self._heads = heads
        self._room = room
        self._gap = gap
        self._widths: list[int] | None = None

    def take(self, rows: list[list[str]], *, is_whole: bool) -> list[list[str]]:
        """Return the shown texts of rows.

        is_whole: no rows follow, so their common values are known.
        """
        if self._room is None or not rows:
            return rows
        if self._widths is None:
            rows, self._widths = self._begin(rows, self._room, is_whole=is_whole and self._has_choice)
        else:
            self._widths = self._cut_widths(rows, self._room) or self._widths
        cuts = [(place, self._heads[place].cut, width) for place, width in zip(self.places, self._widths, strict=True)]
        return [
            [
                row[place] if cut is None or self._folds_at(place) else cut.shorten(row[place], width)
                for place, cut, width in cuts
            ]
            for row in rows
        ]

    def _folds_at(self, place: int) -> bool:
        return self._folds_cells and self._heads[place].is_sentence

    def width_at(self, place: int) -> int | None:
        """Return the width in which a shown column is folded, or None for an unfolded column."""
        if self._widths is None or not self._folds_at(place):
            return None
        return self._widths[self.places.index(place)]

    def lines_of(self, texts: list[str]) -> list[str]:
        """Return the lines below a row: its folded sentences, if it has any."""
        if not self.sentences or self._room is None:
            return []
        from textwrap import wrap

        told = [f"  {self._heads[place].title}: {texts[place]}" for place in self.sentences if texts[place]]
        return [line for text in told for line in wrap(text, self._room, subsequent_indent=" " * 4)]

    def _begin(self, rows: list[list[str]], room: int, *, is_whole: bool) -> tuple[list[list[str]], list[int]]:
        """Choose the columns; return the rows without common values, and the columns' widths."""
        heads = self._heads
        if is_whole and (len(rows) >= MANY_ROWS or self._width(rows) > room):
            self.places, self.above = _without_common(heads, rows)
        if is_whole and self._width(rows) > room:
            rows = [list(row) for row in rows]
            paths = (place for place in self.places if heads[place].is_path)
            self.above += [line for place in paths for line in _without_directory(heads, rows, place)]
        if self._width(rows) > room and not self._folds_cells:
            self.sentences = [place for place in self.places if self._is_long(rows, place)]
            self.places = [place for place in self.places if place not in self.sentences]
        left_out: list[int] = []
        while (widths := self._cut_widths(rows, room)) is None:
            rank, place = max((heads[place].rank, place) for place in self.places)
            if rank == NEVER_LEFT_OUT:  # the terminal breaks the lines
                widths = [_widest(heads, rows, each) for each in self.places]
                break
            self.places.remove(place)
            left_out.append(place)
        if left_out:
            titles = ", ".join(heads[place].title for place in sorted(left_out))
            choice = ", --fields chooses" if self._has_choice else ""
            self.below = [f"Hidden columns: {titles} (--wide shows all{choice})"]
        return rows, widths

    def _is_long(self, rows: list[list[str]], place: int) -> bool:
        return self._heads[place].is_sentence and _widest(self._heads, rows, place) > LEAST_PATH

    def _width(self, rows: list[list[str]]) -> int:
        return sum(_widest(self._heads, rows, place) for place in self.places) + self._gap * (len(self.places) - 1)

    def _cut_widths(self, rows: list[list[str]], room: int) -> list[int] | None:
        """Return widths that fit the room, the widest texts cut first, or None if there are none."""
        room -= self._gap * (len(self.places) - 1)
        heads = [self._heads[place] for place in self.places]
        widths = [_widest(self._heads, rows, place) for place in self.places]
        least = [
            width if head.cut is None else min(width, max(head.cut.least, len(head.title)))
            for head, width in zip(heads, widths, strict=True)
        ]
        if sum(least) > room:
            return None
        most = min(max(widths), room)
        while sum(map(max, least, (min(width, most) for width in widths))) > room:
            most -= 1
        return list(map(max, least, (min(width, most) for width in widths)))


def _without_common(heads: Sequence[Head], rows: list[list[str]]) -> tuple[list[int], list[str]]:
    """Return the columns whose values differ, and lines about the others.

    In a single row, columns with a value count as different.
    """
    texts = [{row[place] for row in rows} for place in range(len(heads))]
    differing = [place for place, found in enumerate(texts) if len(found) > 1 or (len(rows) == 1 and found != {""})]
    if not differing:
        return list(range(len(heads))), []
    shared = [(heads[place].title, rows[0][place]) for place in range(len(heads)) if place not in differing]
    told = ", ".join(f"{title} {text}" for title, text in shared if title and text)
    empty = ", ".join(title for title, text in shared if title and not text)
    return differing, [*([f"All {len(rows)}: {told}"] if told else []), *([f"Empty: {empty}"] if empty else [])]


def _without_directory(heads: Sequence[Head], rows: list[list[str]], place: int) -> list[str]:
    """Remove the common directory from all paths of a column; return the line that names it."""
    paths = [row[place] for row in rows]
    if len(set(paths)) == 1 or not all(paths) or len({path.startswith("/") for path in paths}) > 1:
        return []
    parents = [path.rpartition("/")[0] for path in paths]
    parent = commonpath(parents) if all(parents) else ""
    if not parent or not all(path.startswith(f"{parent}/") for path in paths):
        return []
    for row in rows:
        row[place] = row[place][len(parent) + 1 :]
    return [f"{heads[place].title} in {parent}/:"]


def _widest(heads: Sequence[Head], rows: list[list[str]], place: int) -> int:
    return max([len(heads[place].title), *(width_of(row[place]) for row in rows)])


def width_of(text: str) -> int:
    """Return the number of terminal cells of a text."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
