"""Blocks of a report as values: verdicts, figures, tables, commands, and the glossary."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from kseg.cluster.now import Now
from kseg.doctor.kinds import command_line, path_word
from kseg.report.gather import PartitionFacts, ReportFacts, TopicFacts

Cell = str | int | float | None
"""Type of table cells: bytes, milliseconds and counts as int, shares of 1 and ratios as float; None: unknown."""


class Weight(StrEnum):
    """Importance of a verdict."""

    BAD = "bad"
    WATCH = "watch"
    PLAIN = "plain"


class Sentence(NamedTuple):
    """A sentence about the data, and the command that shows more details, or None if there isn't one."""

    sentence: str
    command: str | None = None
    weight: Weight = Weight.PLAIN


class CellKind(StrEnum):
    """Kinds of the values of a column."""

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
    "A share that is also drawn as a bar."


class CellColumn(NamedTuple):
    """A column: its name in JSON, its title on the page, the kind of its values."""

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
    """A picture: its title, and SVG. A table of the same block has its values too."""

    title: str
    svg: str


@dataclass(frozen=True, slots=True)
class Block:
    """A part of the report; `notes`: the origin of its numbers, and the parts that they omit."""

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
    """A log directory that was read, and its values in `meta.properties`, or None for missing values."""

    path: str
    cluster_id: str | None
    node_id: int | None


@dataclass(frozen=True, slots=True)
class About:
    """The subject of the report: its directories, time, program and command.

    command: the command line that creates it again. read: the input, in words. now, time_text: the time used as now.
    """

    title: str
    version: str
    command: str
    now: Now
    time_text: str
    read: str
    sources: tuple[ReadDirectory, ...]
    partitions: int
    size: int


class SummaryPart(NamedTuple):
    """A part of the summary; `id` is its name in JSON."""

    id: str
    title: str
    sentences: tuple[Sentence, ...]


def sorted_verdicts(blocks: Sequence[Block]) -> list[tuple[Block, Sentence]]:
    """Return the verdicts of blocks, most important first."""
    order = list(Weight)
    found = [(block, verdict) for block in blocks for verdict in block.verdicts]
    return sorted(found, key=lambda each: order.index(each[1].weight))


@dataclass(frozen=True, slots=True)
class DiskReport:
    """A complete report. `is_well` is True if there are no errors or warnings."""

    about: About
    summary: tuple[SummaryPart, ...]
    blocks: tuple[Block, ...]
    glossary: tuple[Term, ...]
    is_well: bool = True

    @property
    def verdicts(self) -> list[tuple[Block, Sentence]]:
        """The verdicts of all blocks, most important first."""
        return sorted_verdicts(self.blocks)


_MOST_PATHS = 3


def line_of(known: ReportFacts, command: str, *words: str) -> str | None:
    """Return a command over all log directories, or None if they are too many for a line."""
    paths = known.log_dirs
    return command_line([command, *map(path_word, paths), *words]) if len(paths) <= _MOST_PATHS else None


def topic_line(topic: TopicFacts, command: str, *words: str) -> str | None:
    """Return a command over a topic."""
    paths = list(dict.fromkeys(each.log_dir for each in topic.partitions))
    if len(paths) > _MOST_PATHS:
        return None
    return command_line([command, *map(path_word, paths), "--topic", topic.name, *words])


def partition_line(partition: PartitionFacts, command: str, *words: str) -> str:
    """Return a command over a partition."""
    return command_line([command, path_word(partition.path), *words])


GLOSSARY = (
    Term(
        "Partition, log, segment",
        "A partition of a topic is a directory. Its log is a series of segments: files named after the offset of"
        " their first record. The broker appends to the last segment, the active one. Retention deletes only complete"
        " segments.",
    ),
    Term("Offset", "The number of a record in its partition."),
    Term(
        "Batch",
        "Records that a producer writes and the broker stores together: a header of 61 bytes, then the records,"
        " compressed together. Up to 0.10, logs had single messages, and wrappers of compressed messages.",
    ),
    Term(
        "Batch fill",
        "The number of records in a batch. With linger.ms, a producer waits for more records, up to batch.size.",
    ),
    Term(
        "Rolling",
        "The start of the next segment, because of segment.bytes, segment.ms, a full index, offsets too far apart, or"
        " a restart.",
    ),
    Term(
        "Retention",
        "The deletion of old segments, by the topic's retention.ms and retention.bytes. Retention by time uses a"
        " segment's largest timestamp. A segment that isn't old enough keeps all later segments.",
    ),
    Term(
        "Pinned",
        "Kept although old enough to be deleted. An earlier segment isn't old enough, or a record has a timestamp in"
        " the future.",
    ),
    Term("Compaction", "cleanup.policy=compact: the log cleaner keeps the last record of each key."),
    Term(
        "Dirty ratio",
        "The bytes not yet compacted, divided by all bytes that can be. The cleaner cleans a log from"
        " min.cleanable.dirty.ratio on, 0.5 by default.",
    ),
    Term("Superseded", "A record with a later record of the same key. Compaction removes it."),
    Term(
        "Tombstone",
        "A record with a key and no value. It deletes the key. The cleaner removes the tombstone delete.retention.ms"
        " after it first cleaned it.",
    ),
    Term("CreateTime, LogAppendTime", "The source of a record's timestamp: the producer, or the broker."),
    Term("Late", "A record with a timestamp below the largest earlier one in its partition."),
    Term(
        "Producer id, epoch",
        "The numbers that the broker gives to an idempotent or transactional producer; other producers have none. A"
        " higher epoch fences the previous one.",
    ),
    Term(
        "Last stable offset",
        "The offset below which no transaction is open. Consumers with read_committed read no further.",
    ),
    Term("Lag", "The log end offset minus the group's committed offset."),
    Term("Skew", "The largest partition of a topic, divided by the median partition."),
    Term("Set aside on disk", "Blocks that files use in the file system: less than their size if they have holes."),
    Term(
        "Share, 50 %, 99 %",
        "Half of the values, or 99 % of them, are no larger. These values are at most 3 % too large. Counts, sums,"
        " minimum and maximum are exact.",
    ),
)
