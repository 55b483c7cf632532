"""A place that one can be at: a list of rows, each with fields and bytes, some with a place inside."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, tzinfo
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from kseg.browse.bytes import ByteSource, NoBytes
from kseg.doctor.kinds import path_word
from kseg.explain.field import ExplainedField
from kseg.explain.items import Item
from kseg.system.terminal_text import escaped_text
from kseg.times import duration_text, now_ms, time_text


class Clock(NamedTuple):
    """How times are shown: in a zone, which has a name."""

    zone: tzinfo = UTC
    name: str = "UTC"

    def text(self, timestamp: int | None) -> str:
        """Return a timestamp as ISO 8601; `none` for none."""
        return time_text(timestamp, self.zone, "none")

    def words(self) -> list[str]:
        """Return the option of kseg that has times shown so; nothing for UTC, which it does by default."""
        return [] if self.zone is UTC else ["--tz", self.name]

    def with_age(self, timestamp: int | None) -> str:
        """Return the same, and how long ago that was."""
        if timestamp is None or not 0 <= timestamp <= now_ms():
            return self.text(timestamp)
        return f"{self.text(timestamp)} ({duration_text(now_ms() - timestamp)} ago)"


UTC_CLOCK = Clock()


class Scope(Enum):
    """Where a key is of use: everywhere, where records can be gone to, in a file, where values can be decoded."""

    ANY = "any"
    RECORDS = "records"
    FILE = "file"
    DECODED = "decoded"


class PlaceRow(NamedTuple):
    """A row of a place: one line of harmless text. is_wrong: damage; is_open: there is a place inside."""

    text: str
    is_wrong: bool = False
    is_open: bool = True


class ShownRow(NamedTuple):
    """What a row stands for: its fields, and the bytes that they are in. note: what to say next to its title.

    read_more: further fields, which take a while to read: not for the thread that shows them. Raises KsegError.
    """

    item: Item
    source: ByteSource
    note: str = ""
    read_more: Callable[[], list[ExplainedField]] | None = None

    def with_more(self, found: list[ExplainedField]) -> "ShownRow":
        """Return the same with those further fields."""
        fields = [*self.item.fields, *found]
        return self._replace(item=replace(self.item, read=lambda: fields), read_more=None)


class ReadRows(NamedTuple):
    """Rows that were read, still to be taken over: those before or after the known ones; None where a place ends."""

    rows: Sequence[object] | None
    end: int = 0


class Jump(NamedTuple):
    """Where to go: a log, a batch in it, and a record in that if one is meant. note: what to say there."""

    path: Path
    position: int
    offset: int | None = None
    note: str = ""


class BrowsedPlace:
    """A list of rows. title: its own part of the way to it; path: its file or directory; heading: names of columns.

    clock: how its times are shown; the trail of places sets it.

    Reading may take long, so it is apart from what changes the place: `read_more` and `read_before` are for other
    threads, `take_more` and `take_before` for the one that shows the rows.
    """

    heading = ""
    clock = UTC_CLOCK
    scopes = frozenset((Scope.FILE,))
    "What keys are of use here."
    has_all = True
    "Whether no rows follow the known ones."
    has_beginning = True
    "Whether none come before them."

    def __init__(self, title: str, path: Path) -> None:
        self.title = escaped_text(title)
        self.path = path

    @property
    def count(self) -> int:
        """How many rows are known."""
        raise NotImplementedError

    def heading_in(self, width: int) -> str:
        """Return the names of the columns that a list of this width has."""
        return self.heading

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """One of them, for a list of this width; 0 for the narrowest."""
        raise NotImplementedError

    def shown(self, number: int) -> ShownRow:
        """What it stands for. Raises KsegError if it can't be read."""
        raise NotImplementedError

    def printed_by(self, number: int) -> list[str] | None:
        """Return the arguments of kseg that print a row; None if no command does."""
        return None

    def enter(self, number: int) -> "BrowsedPlace | None":
        """The place inside a row; None if there is none. Raises KsegError if it can't be opened."""
        return None

    def number_of(self, path: Path) -> int | None:
        """The row that leads to a file or directory; None if none does."""
        return None

    def named(self, is_match: Callable[[str], bool], number: int, *, is_back: bool) -> int | None:
        """Return the next row whose name matches, or the one before, round the ends; None without names or a match."""
        return None

    def logs_from(self, number: int) -> list[Path]:
        """The logs that follow, from a row on: those that a search goes through."""
        return []

    def read_more(self) -> ReadRows:
        """Reads rows after the known ones."""
        return ReadRows(None)

    def take_more(self, found: ReadRows) -> None:
        """Takes them over."""

    def read_before(self) -> ReadRows:
        """Reads rows before the known ones."""
        return ReadRows(None)

    def take_before(self, found: ReadRows) -> int:
        """Takes them over; gives how many there are: the known ones move down by as many."""
        return 0

    def look_again(self) -> str:
        """Looks whether the file has changed; says what has, or nothing."""
        return ""

    def close(self) -> None:
        """Gives back what is open."""


def explained_at(path: Path, position: int) -> list[str]:
    """Return the arguments of kseg that explain what lies at a position of a file."""
    return ["explain", path_word(path), "--position", str(position)]


def fact(name: str, value: object, meaning: str = "", *, problem: str | None = None) -> ExplainedField:
    """Something that is known of a directory or a file, without bytes of its own."""
    return ExplainedField(name, 0, 0, "", value, meaning, b"", problem=problem)


def facts(
    title: str,
    *known: ExplainedField | None,
    source: ByteSource | None = None,
    read_more: Callable[[], list[ExplainedField]] | None = None,
) -> ShownRow:
    """What is known of a directory or file; read_more: as in ShownRow."""
    fields = [each for each in known if each is not None]
    own = NoBytes() if source is None else source
    return ShownRow(Item(title, 0, own.size, lambda: fields), own, read_more=read_more)
