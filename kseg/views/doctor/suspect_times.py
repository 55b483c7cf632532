"""Times in batches that can't be right: in the future, or in other units than milliseconds."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kseg import kernel
from kseg.formats.codes import NO_TIMESTAMP
from kseg.index.headers import header_of
from kseg.kernel.contract import ROW, VALID
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.segment_files import SegmentFiles
from kseg.log.partition.segment_listing import SegmentListing
from kseg.reading.bodies import Slice
from kseg.reading.header import BatchHeader

FUTURE, SECONDS, MICROSECONDS, NANOSECONDS = "future-times", "second-times", "microsecond-times", "nanosecond-times"
AHEAD_MS = 3_600_000
"""So far may a producer's clock be ahead: the default of `message.timestamp.after.max.ms` from 4.0 on."""
MOST_PRODUCERS = 256
"""The most producers of a partition that are told apart; the batches of others are told together."""
_FIRST_SECOND = 1_000_000_000
"""September 2001 in seconds. As milliseconds it is a day of January 1970, at which nobody wrote to Kafka."""
_UNITS_BY_MS = ((NANOSECONDS, 1_000_000), (MICROSECONDS, 1000))


def unit_of(timestamp: int, now_ms: int) -> str | None:
    """What is wrong with a time that should be in milliseconds; None if nothing is.

    A time in other units is recognized by what it would be in these: between 2001 and now.
    """
    if timestamp > now_ms + AHEAD_MS:
        for name, factor in _UNITS_BY_MS:
            if _FIRST_SECOND * 1000 <= timestamp // factor <= now_ms + AHEAD_MS:
                return name
        return FUTURE
    return SECONDS if _FIRST_SECOND <= timestamp <= (now_ms + AHEAD_MS) // 1000 else None


class Author(NamedTuple):
    """Who set a time: a producer, -1 one without an id, None one of which nothing is known; or a broker itself."""

    producer_id: int | None
    is_broker: bool = False


@dataclass(frozen=True, slots=True)
class SuspectTimes:
    """Batches of one author in a partition with times of one kind.

    id: what is wrong with them. file, position: where the first one stands. first_offset, last_offset: of all.
    batches: how many; None if only the segments' largest times were looked at. largest: the largest of the times.
    """

    id: str
    author: Author
    file: Path
    position: int | None
    first_offset: int
    last_offset: int
    batches: int | None
    largest: int


@dataclass(slots=True)
class _Tally:
    file: Path
    position: int
    first_offset: int
    last_offset: int
    batches: int = 0
    largest: int = NO_TIMESTAMP

    def add(self, header: BatchHeader) -> None:
        """Takes another batch."""
        self.batches += 1
        self.last_offset = max(self.last_offset, header.last_offset)
        self.largest = max(self.largest, header.max_timestamp)


@dataclass(slots=True)
class TimesWatch:
    """Looks at the times of batches while a partition is read; now_ms: times that are later can't be right."""

    now_ms: int
    _tallies: dict[tuple[str, Author], _Tally] = field(default_factory=dict)

    def take(self, segment: SegmentFiles, piece: Slice) -> None:
        """Takes batches of a segment."""
        run = piece.run
        columns = kernel.load().header_columns(run.buffer, run.rows, piece.first, piece.last, run.position)
        times = memoryview(columns.column("max_timestamp")).cast("B").cast("q")
        latest, last_second = self.now_ms + AHEAD_MS, (self.now_ms + AHEAD_MS) // 1000
        if min(times) > last_second and max(times) <= latest:
            return
        for place, timestamp in enumerate(times):
            if timestamp > latest or _FIRST_SECOND <= timestamp <= last_second:
                row = piece.first + place
                if run.rows[row * ROW + VALID]:
                    self._add(segment.path, header_of(run, row))

    def _add(self, path: Path, header: BatchHeader) -> None:
        name = unit_of(header.max_timestamp, self.now_ms)
        if name is None:
            return
        is_broker = header.is_log_append_time or header.is_control
        author = Author(None, is_broker=True) if is_broker else Author(header.producer_id)
        if len(self._tallies) >= MOST_PRODUCERS and (name, author) not in self._tallies:
            author = Author(None, is_broker)
        first = header.last_offset if header.base_offset is None else header.base_offset
        tally = self._tallies.setdefault((name, author), _Tally(path, header.position, first, header.last_offset))
        tally.add(header)

    def found(self) -> list[SuspectTimes]:
        """What was found so far."""
        return [
            SuspectTimes(
                id=name,
                author=author,
                file=tally.file,
                position=tally.position,
                first_offset=tally.first_offset,
                last_offset=tally.last_offset,
                batches=tally.batches,
                largest=tally.largest,
            )
            for (name, author), tally in self._tallies.items()
        ]


def suspect_segments(partition: PartitionLog, rows: Iterable[SegmentListing], now_ms: int) -> list[SuspectTimes]:
    """What the segments' largest times alone tell, without their batches: by nobody knows whom."""
    logs = {segment.base_offset: segment.path for segment in partition.segments}
    found: dict[str, SuspectTimes] = {}
    for row in rows:
        name = unit_of(row.largest_timestamp, now_ms)
        if name is None or row.base_offset not in logs:
            continue
        last = row.base_offset if row.last_offset is None else row.last_offset
        known = found.get(name)
        found[name] = SuspectTimes(
            id=name,
            author=Author(None),
            file=logs[row.base_offset] if known is None else known.file,
            position=None,
            first_offset=row.base_offset if known is None else known.first_offset,
            last_offset=last,
            batches=None,
            largest=max(row.largest_timestamp, NO_TIMESTAMP if known is None else known.largest),
        )
    return list(found.values())
