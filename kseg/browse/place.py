"""A place: a list of rows, each with fields and bytes, some with a place inside."""

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
    """A time zone for timestamps on the screen, and its name."""

    zone: tzinfo = UTC
    name: str = "UTC"

    def text(self, timestamp: int | None) -> str:
        """Return a timestamp as ISO 8601; `none` for none."""
        return time_text(timestamp, self.zone, "none")

    def words(self) -> list[str]:
        """Return kseg's option for this time zone; nothing for UTC, the default."""
        return [] if self.zone is UTC else ["--tz", self.name]

    def with_age(self, timestamp: int | None) -> str:
        """Return a timestamp as ISO 8601 with its age."""
        if timestamp is None or not 0 <= timestamp <= now_ms():
            return self.text(timestamp)
        return f"{self.text(timestamp)} ({duration_text(now_ms() - timestamp)} ago)"


UTC_CLOCK = Clock()


class Scope(Enum):
    """The places in which a key works: all, those with records, those in files, those with values to decode."""

    ANY = "any"
    RECORDS = "records"
    FILE = "file"
    DECODED = "decoded"


class PlaceRow(NamedTuple):
    """A row of a place: one line of harmless text. is_wrong: it is damage; is_open: it has a place inside."""

    text: str
    is_wrong: bool = False
    is_open: bool = True


class ShownRow(NamedTuple):
    """The contents of a row: its fields, and the bytes that hold them. note: a remark next to its title.

    read_more: reads further fields, which takes a while, so not in the screen's thread. Raises KsegError.
    """

    item: Item
    source: ByteSource
    note: str = ""
    read_more: Callable[[], list[ExplainedField]] | None = None

    def with_more(self, found: list[ExplainedField]) -> "ShownRow":
        """Return a copy of the row that includes the remaining fields."""
        fields = [*self.item.fields, *found]
        return self._replace(item=replace(self.item, read=lambda: fields), read_more=None)


class ReadRows(NamedTuple):
    """Rows that were read and not taken yet: before or after the known ones, or None where a place ends."""

    rows: Sequence[object] | None
    end: int = 0


class Jump(NamedTuple):
    """The target of a jump: a log, a batch in it, and perhaps a record in that. note: a remark to show there."""

    path: Path
    position: int
    offset: int | None = None
    note: str = ""


class BrowsedPlace:
    """A list of rows. title: its own part of the path; path: its file or directory; heading: names of columns.

    clock: its time zone, set by the path of places.

    Reading may take long and is separate from changes of the place: `read_more` and `read_before` are for other
    threads, `take_more` and `take_before` for the screen's thread.
    """

    heading = ""
    clock = UTC_CLOCK
    scopes = frozenset((Scope.FILE,))
    """The scopes of keys that work here."""
    has_all = True
    """False if more rows follow the known ones."""
    has_beginning = True
    """False if more rows precede the known ones."""

    def __init__(self, title: str, path: Path) -> None:
        self.title = escaped_text(title)
        self.path = path

    @property
    def count(self) -> int:
        """The number of known rows."""
        raise NotImplementedError

    def heading_in(self, width: int) -> str:
        """Return the names of the columns in a list of this width."""
        return self.heading

    def row(self, number: int, width: int = 0) -> PlaceRow:
        """Return a row for a list of this width; 0 for the narrowest."""
        raise NotImplementedError

    def read_row(self, number: int) -> ShownRow:
        """Return the contents of a row. Raises KsegError if it can't be read."""
        raise NotImplementedError

    def printed_by(self, number: int) -> list[str] | None:
        """Return kseg's arguments that print a row, or None if no command does."""
        return None

    def enter(self, number: int) -> "BrowsedPlace | None":
        """Open the place inside a row, or return None if there is none. Raises KsegError if it can't be opened."""
        return None

    def number_of(self, path: Path) -> int | None:
        """Return the row that leads to a file or directory, or None if none does."""
        return None

    def find_named(self, is_match: Callable[[str], bool], number: int, *, is_back: bool) -> int | None:
        """Return the next or previous row whose name matches, wrapping around, or None without names or a match."""
        return None

    def logs_from(self, number: int) -> list[Path]:
        """Return the logs that a search from a row on goes through."""
        return []

    def read_more(self) -> ReadRows:
        """Read rows after the known ones."""
        return ReadRows(None)

    def take_more(self, found: ReadRows) -> None:
        """Append rows that were read."""

    def read_before(self) -> ReadRows:
        """Read rows before the known ones."""
        return ReadRows(None)

    def take_before(self, found: ReadRows) -> int:
        """Insert rows that were read before the known ones; return their number, by which the known ones move down."""
        return 0

    def look_again(self) -> str:
        """Check whether the file has changed, and return a description of the change or an empty string."""
        return ""

    def close(self) -> None:
        """Close open files."""


def explained_at(path: Path, position: int) -> list[str]:
    """Return kseg's arguments that explain the bytes at a position of a file."""
    return ["explain", path_word(path), "--position", str(position)]


def fact(name: str, value: object, meaning: str = "", *, problem: str | None = None) -> ExplainedField:
    """Return a fact about a directory or a file, without bytes of its own."""
    return ExplainedField(name, 0, 0, "", value, meaning, b"", problem=problem)


def facts(
    title: str,
    *known: ExplainedField | None,
    source: ByteSource | None = None,
    read_more: Callable[[], list[ExplainedField]] | None = None,
) -> ShownRow:
    """Return the facts of a directory or file; read_more: as in ShownRow."""
    fields = [each for each in known if each is not None]
    own = NoBytes() if source is None else source
    return ShownRow(Item(title, 0, own.size, lambda: fields), own, read_more=read_more)
