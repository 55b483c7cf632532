"""The report as values: blocks of verdicts, pictures and tables, from which page and JSON are made."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

Cell = str | int | float | None
"""What stands in a table: bytes, milliseconds and counts as int, shares of 1 and ratios as float; None: not known."""


class Weight(StrEnum):
    """How much a verdict matters."""

    BAD = "bad"
    WATCH = "watch"
    PLAIN = "plain"


class Sentence(NamedTuple):
    """A sentence with numbers, and the command that shows the same or more; None if there is none."""

    sentence: str
    command: str | None = None
    weight: Weight = Weight.PLAIN


class CellKind(StrEnum):
    """What the values of a column are."""

    TEXT = "text"
    COMMAND = "command"
    COUNT = "count"
    SIZE = "size"
    TIME = "time"
    DURATION = "duration"
    SHARE = "share"
    RATIO = "ratio"
    MONEY = "money"
    BAR = "bar"
    "A share that is also drawn."


class CellColumn(NamedTuple):
    """A column: its name in JSON, its title on the page, what it has."""

    name: str
    title: str
    kind: CellKind = CellKind.TEXT


@dataclass(frozen=True, slots=True)
class Table:
    """A table; `id` is its name in JSON."""

    id: str
    title: str
    columns: tuple[CellColumn, ...]
    rows: tuple[tuple[Cell, ...], ...]


class Figure(NamedTuple):
    """A picture: its title, and SVG. What it shows stands in a table of the same block too."""

    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the report; `notes`: how its numbers came about, and what they leave out."""

    id: str
    title: str
    verdicts: tuple[Sentence, ...] = ()
    figures: tuple[Figure, ...] = ()
    tables: tuple[Table, ...] = ()
    notes: tuple[str, ...] = ()


class Term(NamedTuple):
    """A word of the glossary."""

    word: str
    meaning: str


class ReadDirectory(NamedTuple):
    """A log directory that was read, and what `meta.properties` says of it; None where it doesn't."""

    path: str
    cluster_id: str | None
    node_id: str | None


@dataclass(frozen=True, slots=True)
class About:
    """What the report is about: what was read when, by what, and how.

    command: the line that makes it again. read: what was read, in words. time_text: when it was judged.
    """

    title: str
    version: str
    command: str
    time_text: str
    read: str
    sources: tuple[ReadDirectory, ...]
    partitions: int
    size: int


@dataclass(frozen=True, slots=True)
class DiskReport:
    """All of it; is_well: whether there is no finding that is an error or a warning."""

    about: About
    blocks: tuple[Block, ...]
    glossary: tuple[Term, ...]
    is_well: bool = True

    @property
    def verdicts(self) -> list[tuple[Block, Sentence]]:
        """The verdicts of all blocks, those that matter most first."""
        order = list(Weight)
        found = [(block, verdict) for block in self.blocks for verdict in block.verdicts]
        return sorted(found, key=lambda each: order.index(each[1].weight))
