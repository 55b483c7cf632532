"""What a work order did: files read, files written, accounts. As values, and as JSON for manifests and for Spark."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

from kseg.export.settings import OffsetRange
from kseg.export.tally import Tally


class SourceFile(NamedTuple):
    """Bytes of a log that were read, from `start` to before `end`; size and time (milliseconds) of the file.

    crc: CRC-32C of these bytes; None if it wasn't asked for. is_cleaned: the log cleaner has rewritten the file since:
    size and time are those of what it left.
    """

    path: str
    size: int
    modified_ms: int
    start: int
    end: int
    crc: int | None
    is_cleaned: bool = False

    def to_json(self) -> dict[str, Any]:
        """The file as JSON's values."""
        return {_JSON_NAMES.get(name, name): value for name, value in self._asdict().items()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "SourceFile":
        """The file of `to_json`."""
        named = {name: _JSON_NAMES.get(name, name) for name in cls._fields}
        return cls(**{name: members[own] for name, own in named.items() if own in members})


class ExportedFile(NamedTuple):
    """A Parquet file that is whole, or a part of one that several results share.

    attempt: the name under which it was written; path: its final one, None until it is given. folder: of the columns
    that are in its path; name: what its final name begins with. size: the whole file's. Offsets and rows are the
    part's, which begins at the file's row `first_row`. first_time, last_time: the lowest and highest timestamp, in
    microseconds; None if no record has one.
    """

    attempt: str
    folder: str
    name: str
    first_offset: int
    last_offset: int
    rows: int
    size: int
    path: str | None = None
    first_row: int = 0
    first_time: int | None = None
    last_time: int | None = None

    def to_json(self) -> dict[str, Any]:
        """The file as JSON's values; without a path that it hasn't got yet, and what is as always."""
        members = {_JSON_NAMES.get(name, name): value for name, value in self._asdict().items() if value is not None}
        if self.first_row == 0:
            del members["firstRow"]
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ExportedFile":
        """The file of `to_json`."""
        defaults = cls._field_defaults
        return cls(*(members.get(_JSON_NAMES.get(name, name), defaults.get(name)) for name in cls._fields))


def row_counts(results: Iterable["Result"]) -> dict[str, int]:
    """How many rows results have in each file, by its attempt's name: several may share one."""
    counts: Counter[str] = Counter()
    for file in (file for result in results for file in result.files):
        counts[file.attempt] += file.rows
    return counts


_JSON_NAMES = {
    "is_cleaned": "isCleaned",
    "modified_ms": "modifiedMs",
    "first_offset": "firstOffset",
    "last_offset": "lastOffset",
    "first_row": "firstRow",
    "first_time": "firstTime",
    "last_time": "lastTime",
}


@dataclass(frozen=True, slots=True)
class Result:
    """What an order did, or several whose results were joined.

    replica: the copy of the partition that was read; seconds: how long it took. files: those written; earlier_files:
    how many more there were, which only a table's own log names. topic_id: the topic's, None if it isn't known: a
    topic that was deleted and recreated has the same name and offsets, and another id. has_changed: a log had gone
    when it was to be read, or was another one: the rest of the order is to be planned again. is_partly_gone: logs that
    were read have gone since, and don't stand among the sources any more.
    """

    topic: str
    partition: int | None
    replica: str
    wanted: OffsetRange
    sources: tuple[SourceFile, ...]
    tally: Tally
    files: tuple[ExportedFile, ...]
    seconds: float
    earlier_files: int = 0
    topic_id: str | None = None
    has_changed: bool = False
    is_partly_gone: bool = False

    @property
    def size(self) -> int:
        """Bytes of log that were read."""
        return sum(source.end - source.start for source in self.sources)

    @property
    def says_something(self) -> bool:
        """Whether the order met any offset or damage."""
        return bool(self.tally.losses) or self.tally.first_offset != self.tally.next_offset

    def to_json(self) -> dict[str, Any]:
        """The result as JSON's values."""
        earlier = {"earlierFiles": self.earlier_files} if self.earlier_files else {}
        return {
            "topic": self.topic,
            "partition": self.partition,
            "replica": self.replica,
            "wanted": list(asdict(self.wanted).values()),
            "sources": [source.to_json() for source in self.sources],
            "tally": self.tally.to_json(),
            "files": [file.to_json() for file in self.files],
            "seconds": self.seconds,
            "topicId": self.topic_id,
            **earlier,
            **({"hasChanged": True} if self.has_changed else {}),
            **({"isPartlyGone": True} if self.is_partly_gone else {}),
        }

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "Result":
        """The result of `to_json`."""
        return cls(
            members["topic"],
            members["partition"],
            members["replica"],
            OffsetRange(*members["wanted"]),
            tuple(map(SourceFile.from_json, members["sources"])),
            Tally.from_json(members["tally"]),
            tuple(map(ExportedFile.from_json, members["files"])),
            members["seconds"],
            members.get("earlierFiles", 0),
            members.get("topicId"),
            members.get("hasChanged", False),
            members.get("isPartlyGone", False),
        )
