"""Runs of an export by topic: rows of the runs table, objects of `-q -o json`, and facts of lineage events."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import uuid4

from kseg.times import iso_time, now_ms


class RunStart(NamedTuple):
    """The id of a run, and its start in milliseconds."""

    id: str
    started_ms: int

    @classmethod
    def now(cls) -> "RunStart":
        """Return a run that starts now, with a new id."""
        return cls(str(uuid4()), now_ms())


class OffsetSpan(NamedTuple):
    """The offsets of a partition from `from_offset` to below `to_offset`."""

    partition: int | None
    from_offset: int
    to_offset: int

    def to_json(self) -> dict[str, Any]:
        """Return the offsets as JSON's values."""
        return {"partition": self.partition, "fromOffset": self.from_offset, "toOffset": self.to_offset}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "OffsetSpan":
        """Return the offsets of `to_json`."""
        return cls(members["partition"], members["fromOffset"], members["toOffset"])


@dataclass(frozen=True, slots=True)
class TopicCounts:
    """Numbers of a topic's data that a run added.

    rows: the change of the number of exported records; negative if a log was replaced. total_rows: all exported
    records. files, bytes: of files that the run wrote; None if unknown. undecoded: keys and values that don't decode.
    lost, missed: offsets that no earlier run reported. offsets: what the run read, for partitions with anything new.
    """

    topic: str
    rows: int
    total_rows: int
    files: int | None
    bytes: int | None
    undecoded: int
    lost: int
    missed: int
    offsets: tuple[OffsetSpan, ...]

    @property
    def outcome(self) -> "Outcome":
        """The outcome of a run that has committed."""
        return Outcome.COMMITTED if self.rows or self.files or self.offsets else Outcome.NOTHING_NEW

    def to_json(self) -> dict[str, Any]:
        """Return the numbers as JSON's values."""
        members = {own: getattr(self, name) for name, own in _COUNT_NAMES.items()}
        return {**members, "offsetRanges": [span.to_json() for span in self.offsets]}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "TopicCounts":
        """Return the numbers of `to_json`."""
        values = {name: members[own] for name, own in _COUNT_NAMES.items()}
        return cls(**{**values, "offsets": tuple(map(OffsetSpan.from_json, members["offsetRanges"]))})


_COUNT_NAMES = {
    "topic": "topic",
    "rows": "newRows",
    "total_rows": "totalRows",
    "files": "newFiles",
    "bytes": "newBytes",
    "undecoded": "newUndecoded",
    "lost": "newLost",
    "missed": "newMissed",
    "offsets": "offsetRanges",
}
"""Attributes of a topic's numbers, and their names in JSON and in the table of runs."""


class RunRecord(NamedTuple):
    """A run as its commit records it, so without later facts.

    runs_table: the path or URL of the table that gets its rows; None if there is none. commit: the commit's number.
    """

    start: RunStart
    runs_table: str | None
    commit: int
    seconds: float
    topics: tuple[TopicCounts, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the record as JSON's values."""
        own = {"runsTable": self.runs_table, "commit": self.commit, "seconds": self.seconds}
        return {
            "id": self.start.id,
            "startedMs": self.start.started_ms,
            **own,
            "topics": [each.to_json() for each in self.topics],
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "RunRecord":
        """Return the record of `to_json`."""
        return cls(
            RunStart(members["id"], members["startedMs"]),
            members["runsTable"],
            members["commit"],
            members["seconds"],
            tuple(map(TopicCounts.from_json, members["topics"])),
        )


class Outcome(StrEnum):
    """Outcomes of a run for the table of a topic."""

    COMMITTED = "committed"
    NOTHING_NEW = "nothing new"
    FAILED = "failed"


class ExportedTable(NamedTuple):
    """A table of an export. destination: its path or URL. name: in a catalog; None in formats without one."""

    destination: str
    name: str | None
    table_format: str


@dataclass(frozen=True, slots=True)
class TopicRun:
    """A topic in a run.

    counts: None if the run failed before its commit; `topic` is None then if the export has one table of all topics.
    status: the exit status due to this topic. error: a problem that the counts don't tell. commit: the number of the
    export's valid commit; version: Delta's version or Iceberg's snapshot of it. Both are None if unknown. dead_letters:
    the number of records that the run added to them.
    """

    start: RunStart
    seconds: float
    table: ExportedTable
    outcome: Outcome
    topic: str | None = None
    status: int = 0
    error: str | None = None
    commit: int | None = None
    version: str | None = None
    counts: TopicCounts | None = None
    dead_letters: int | None = None

    def with_problem(self, status: int, error: str) -> "TopicRun":
        """Return the run with a further problem."""
        return replace(self, status=max(self.status, status), error=error if self.error is None else self.error)

    def to_json(self) -> dict[str, Any]:
        """Return the run as JSON's values; the names are those of the runs table's columns."""
        numbers = dict.fromkeys(_COUNT_NAMES.values()) if self.counts is None else self.counts.to_json()
        ranges = numbers.pop("offsetRanges")
        return {
            "topic": self.topic,
            "outcome": str(self.outcome),
            "status": self.status,
            **{name: value for name, value in numbers.items() if name != "topic"},
            "newDeadLetters": self.dead_letters,
            "offsetRanges": ranges,
            "commit": self.commit,
            "tableVersion": self.version,
            "destination": self.table.destination,
            "table": self.table.name,
            "format": self.table.table_format,
            "startTime": iso_time(self.start.started_ms),
            "endTime": iso_time(self.ended_ms),
            "seconds": round(self.seconds, 3),
            "runId": self.start.id,
            "error": self.error,
        }

    @property
    def ended_ms(self) -> int:
        """The end of the run in milliseconds."""
        return self.start.started_ms + round(self.seconds * 1000)


def committed_runs(record: RunRecord, table: ExportedTable) -> Iterator[TopicRun]:
    """Yield the topics of a committed run, as far as its commit records them."""
    for counts in record.topics:
        yield TopicRun(
            record.start,
            record.seconds,
            table,
            counts.outcome,
            topic=counts.topic,
            commit=record.commit,
            counts=counts,
        )
