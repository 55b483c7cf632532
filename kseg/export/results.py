"""Results of work orders: files, record counts, and ranges of offsets that are accounted for."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from itertools import pairwise
from typing import Any, NamedTuple

from kseg.export.coverage import Coverage
from kseg.export.settings import OffsetRange
from kseg.export.undecoded import DecodedPart
from kseg.findings.kinds import status_of
from kseg.log.committed import HeldBackOffsets


@dataclass(slots=True)
class LostOffsets:
    """Damage, and the offsets lost to it: from `first` to below `end`, which is None if unknown."""

    segment: str
    position: int
    size: int
    kind: str
    detail: str
    first: int | None
    end: int | None = None

    @property
    def count(self) -> int | None:
        """The number of lost offsets, or None if unknown."""
        return None if self.first is None or self.end is None else max(self.end - self.first, 0)

    @property
    def is_harmless(self) -> bool:
        """True if it is the unwritten end of a preallocated file."""
        return not status_of(self.kind)


MOST_EPOCHS = 1000
"""The most leader epochs that an order records."""


@dataclass(slots=True)
class Tally:
    """Counts of records and offsets.

    read: intact records of any kind, each with its own offset. written: the written ones. control, aborted,
    superseded (not the latest of their key), unselected: those omitted. passed_over: further intact records with the
    offset of another one. gaps: offsets without a record, as compaction leaves them. holes: other offsets without a
    record, in a log whose offsets don't rise. lost: offsets lost to damage. missed: the first offsets, if the log no
    longer had them when it was read. disordered: records with an offset that isn't above all previous ones. undecoded:
    written keys and values that couldn't be decoded to text. without_time: written records whose timestamp a table
    can't hold. first_offset, next_offset: the range that was read, next_offset excluded; None if nothing was.
    open_from: the start of the oldest open transaction, if reading ended there; withheld: the records that it holds
    back. notes: files of the partition that were disregarded for transactions. epochs: leader epochs of the batches,
    each with its first offset; empty if there were many, or if they don't rise. decoded: counts of keys and values that
    were to be decoded; results of earlier kseg have only `undecoded`. undecoded_records: written records with an
    undecoded key or value.
    """

    read: int = 0
    written: int = 0
    control: int = 0
    aborted: int = 0
    superseded: int = 0
    unselected: int = 0
    passed_over: int = 0
    gaps: int = 0
    lost: int = 0
    missed: int = 0
    disordered: int = 0
    undecoded: int = 0
    undecoded_records: int = 0
    without_time: int = 0
    first_offset: int | None = None
    next_offset: int | None = None
    open_from: int | None = None
    withheld: HeldBackOffsets | None = None
    losses: list[LostOffsets] = field(default_factory=list)
    holes: list[OffsetRange] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    epochs: list[tuple[int, int]] = field(default_factory=list)
    decoded: list[DecodedPart] = field(default_factory=list)

    @property
    def span(self) -> OffsetRange | None:
        """The range of the offsets that were read, or None if there are none."""
        first, end = self.first_offset, self.next_offset
        return None if first is None or end is None or first >= end else OffsetRange(first, end)

    @property
    def open_holes(self) -> Coverage:
        """The holes, which may still get offsets."""
        return Coverage(tuple(self.holes))

    @property
    def read_offsets(self) -> Coverage:
        """The offsets that were read, without holes."""
        return Coverage() if self.span is None else self.open_holes.missing(self.span)

    @property
    def missing_offsets(self) -> Coverage:
        """The offsets that the log no longer had."""
        first = self.first_offset
        return Coverage() if first is None or not self.missed else Coverage((OffsetRange(first, first + self.missed),))

    @property
    def lost_offsets(self) -> Coverage:
        """The offsets lost to damage."""
        return Coverage(tuple(OffsetRange(loss.first, loss.end) for loss in self.losses if loss.count))

    @property
    def intact(self) -> Coverage:
        """The offsets of records and gaps: without lost or missed ones, and without holes."""
        if self.span is None:
            return Coverage()
        return (self.lost_offsets + self.open_holes + self.missing_offsets).missing(self.span)

    def goes_on_in(self, other: "Tally") -> bool:
        """Return True if another tally begins where this one ends."""
        return self.next_offset is not None and self.next_offset == other.first_offset

    def count_unexplained(self) -> int:
        """Return the number of offsets and records that the counts don't account for; 0 if they are consistent."""
        span = 0 if self.next_offset is None or self.first_offset is None else self.next_offset - self.first_offset
        offsets = span - self.read - self.gaps - self.open_holes.count - self.lost - self.missed
        left_out = self.control + self.aborted + self.superseded + self.unselected
        records = self.read - self.written - left_out
        return abs(offsets) + abs(records)

    def note_epoch(self, epoch: int, offset: int) -> None:
        """Add the leader epoch of the next batch, and its first offset."""
        if not self.epochs or self.epochs[-1][0] != epoch:
            self.epochs.append((epoch, offset))

    def check_epochs(self) -> None:
        """Discard leader epochs that can't be those of one append-only log, or are too many."""
        if len(self.epochs) > MOST_EPOCHS or any(later <= earlier for earlier, later in pairwise(self.epochs)):
            self.epochs.clear()

    def pass_to(self, offset: int, *, is_lost: bool = False) -> None:
        """Account for the offsets without a record before `offset`."""
        if self.next_offset is None:
            self.first_offset = self.next_offset = offset
        elif offset > self.next_offset:
            if is_lost:
                self.lost += offset - self.next_offset
            else:
                self.gaps += offset - self.next_offset
            self.next_offset = offset

    def to_json(self) -> dict[str, Any]:
        """Return the counts as JSON's values."""
        members: dict[str, Any] = {name: getattr(self, name) for name in _MEMBERS}  # asdict would copy each value
        members["losses"] = list(map(asdict, self.losses))
        members["epochs"] = list(map(list, self.epochs))
        members["holes"] = [[hole.first, hole.end] for hole in self.holes]
        members["decoded"] = [part.to_json() for part in self.decoded]
        if self.withheld is not None:
            members["withheld"] = self.withheld._asdict()
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "Tally":
        """Return the counts of `to_json`."""
        withheld = members.get("withheld")
        values = {
            "losses": [LostOffsets(**loss) for loss in members["losses"]],
            "holes": [OffsetRange(*hole) for hole in members.get("holes", ())],
            "epochs": [(epoch, first) for epoch, first in members.get("epochs", ())],
            "withheld": None if withheld is None else HeldBackOffsets(**withheld),
            "decoded": list(map(DecodedPart.from_json, members.get("decoded", ()))),
        }
        return cls(**{**members, **values})


_MEMBERS = tuple(each.name for each in fields(Tally))


class SourceFile(NamedTuple):
    """Bytes of a log that were read, from `start` to before `end`; size and time (milliseconds) of the file.

    crc: CRC-32C of these bytes; None if not requested. is_cleaned: whether the log cleaner has rewritten the file
    since, or damage has changed it: size and time are then those of the changed file.
    """

    path: str
    size: int
    modified_ms: int
    start: int
    end: int
    crc: int | None
    is_cleaned: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the file as JSON's values."""
        return {_JSON_NAMES.get(name, name): value for name, value in self._asdict().items()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "SourceFile":
        """Return the file of `to_json`."""
        named = {name: _JSON_NAMES.get(name, name) for name in cls._fields}
        return cls(**{name: members[own] for name, own in named.items() if own in members})


class ExportedFile(NamedTuple):
    """A complete Parquet file, or a part of one that several results share.

    attempt: the name under which it was written; path: its final name, None at first. folder: of the columns in its
    path. name: the prefix of its final name. size: of the complete file. Offsets and rows are the part's, which begins
    at the file's row `first_row`. first_time, last_time: the lowest and highest timestamp in microseconds; None if no
    record has one.
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
        """Return the file as JSON's values, without an unset path or default values."""
        members = {_JSON_NAMES.get(name, name): value for name, value in self._asdict().items() if value is not None}
        if self.first_row == 0:
            del members["firstRow"]
        return members

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "ExportedFile":
        """Return the file of `to_json`."""
        defaults = cls._field_defaults
        return cls(*(members.get(_JSON_NAMES.get(name, name), defaults.get(name)) for name in cls._fields))


def row_counts(results: Iterable["Result"]) -> dict[str, int]:
    """Return the number of results' rows in each file, by its attempt's name: several results may share a file."""
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
    """The result of an order, or of several orders whose results were joined.

    replica: the copy of the partition that was read. seconds: the duration. files: the written files; earlier_files:
    the number of others, which only a table's own log names. topic_id: the topic's, None if unknown; a recreated topic
    has the same name and offsets, but another id. has_changed: whether a log was missing or replaced when it was to be
    read, so that the rest of the order must be planned again. is_partly_gone: whether logs that were read have been
    deleted since and removed from the sources.
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
        """True if the order met any offset or damage."""
        return bool(self.tally.losses) or self.tally.first_offset != self.tally.next_offset

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON's values."""
        earlier = {"earlierFiles": self.earlier_files} if self.earlier_files else {}
        return {
            "topic": self.topic,
            "partition": self.partition,
            "replica": self.replica,
            "wanted": [self.wanted.first, self.wanted.end],
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
        """Return the result of `to_json`."""
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


def find_damaged(tallies: Iterable[Tally], present: Coverage) -> tuple[Coverage, bool]:
    """Return the offsets that were damaged in any copy, and whether any damage is followed by no known offset.

    present: the offsets that all orders account for. A loss without an end extends to the next of these.
    """
    losses = [loss for tally in tallies for loss in tally.losses if not loss.is_harmless]
    known = [part for loss in losses if (part := _resolve(loss, present)) is not None]
    return Coverage(tuple(known)).union(), len(known) < len(losses)


def _resolve(loss: LostOffsets, present: Coverage) -> OffsetRange | None:
    first = loss.first
    if first is None or loss.end is not None:
        return None if first is None else OffsetRange(first, loss.end)
    if any((part.first or 0) <= first < (part.end or 0) for part in present.ranges):
        return OffsetRange(first, first)
    later = (part.first for part in present.ranges if part.first is not None and part.first > first)
    end = min(later, default=None)
    return None if end is None else OffsetRange(first, end)


def find_explained(tallies: list[Tally], *, is_gapless: bool = False) -> Coverage:
    """Return the offsets that the orders account for: from the first offset to the last, except lost ones.

    Gaps between orders and before them count too, unless the log is gapless: compaction or retention left them, and
    older records of another copy must not fill them.
    """
    present = Coverage.join([tally.intact for tally in tallies])
    starts = [tally.first_offset for tally in tallies if tally.first_offset is not None]
    if not starts or is_gapless:
        return present
    hull = OffsetRange(0, max([min(starts), *(part.end or 0 for part in present.ranges)]))
    lacked = find_damaged(tallies, present)[0] + Coverage.join(
        [tally.missing_offsets + tally.open_holes for tally in tallies]
    )
    return lacked.without(present).missing(hull)
