"""Offsets of records from the headers of their batches: bodies are neither decompressed nor read."""

from collections.abc import Callable, Collection, Iterator
from functools import cache
from itertools import chain
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg import kernel
from kseg.arrow import repeated_int32, repeated_text
from kseg.codecs.limits import LARGEST_RATIO, LARGEST_RATIO_FREE
from kseg.index.header_scan import end_of, events, header_of, header_runs
from kseg.kernel.contract import LEAST_RECORD
from kseg.kernel.fold_contract import Event
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import LogFile, Run

OFFSET_COLUMNS = ("topic", "partition", "offset")
"""Columns for which headers suffice."""
ROWS = 1 << 16
"""Most rows of a record batch."""
_ENDS_STRETCH = Event.GAP | Event.CONTROL


class HeaderOffsets(NamedTuple):
    """A run of intact v2 batches that have a record at each of their offsets; offsets rise.

    piece: the batches, without bodies. stretches: consecutive offsets of records, without control records.
    """

    piece: Slice
    stretches: list[range]
    control_count: int

    @property
    def record_count(self) -> int:
        """The number of records, without control records."""
        return sum(map(len, self.stretches))


def with_needed_bodies(
    items: Iterator[Run | Damage], size: int, limit: int
) -> Iterator[HeaderOffsets | Slice | Damage]:
    """Yield the items as `with_bodies`, but without bodies up to the first run whose headers don't suffice."""
    for item in items:
        found = item if isinstance(item, Damage) else header_offsets(item)
        if found is None:
            yield from with_bodies(chain([item], items), size, limit)
            return
        yield found


def unchecked_runs(log_file: LogFile, start: int, is_wanted: Callable[[Run], bool]) -> Iterator[Run | Damage]:
    """Yield runs whose headers suffice, read without bodies and CRC checks.

    If only some batches of a run are wanted, kseg yields checked runs instead. From the first run whose headers don't
    suffice, all runs are checked.
    """
    position = start
    while position < log_file.size:
        suffices, end = True, position
        for item in header_runs(log_file, position):
            if isinstance(item, Run):
                suffices = header_offsets(item) is not None
                if not suffices or not is_wanted(item):
                    end = end_of(item)
                    break
            yield item
            position = end_of(item)
        for item in log_file.runs(position):
            yield item
            position = end_of(item)
            suffices = suffices and (isinstance(item, Damage) or header_offsets(item) is not None)
            if suffices and position >= end:
                break


def header_offsets(run: Run) -> HeaderOffsets | None:
    """Return the offsets of a run's records, or None if its headers don't suffice.

    They don't for v0 and v1, for batches with a wrong CRC, and for those from which compaction has removed records.
    """
    fold = kernel.load().HeaderFold(_ENDS_STRETCH | Event.FALL | Event.SPARSE)
    start = fold.next_offset = header_of(run, 0).first_offset
    stretches, control_count = [], 0
    for header, happened in events(fold, run):
        if happened & ~_ENDS_STRETCH:
            return None
        stretches.append(range(start, fold.next_offset))
        start = header.first_offset
        if happened & Event.CONTROL:
            start = header.last_offset + 1
            control_count += start - header.first_offset
    found = HeaderOffsets(
        Slice(run, 0, run.row_count, None), [*filter(None, [*stretches, range(start, fold.next_offset)])], control_count
    )
    count = found.record_count + control_count
    return found if count == fold.records and _may_have(count, run) else None


def _may_have(count: int, run: Run) -> bool:
    """Return True if a run's bodies may have so many records; a header can claim any number."""
    most = LARGEST_RATIO * (end_of(run) - run.position) + LARGEST_RATIO_FREE * run.row_count
    return count * LEAST_RECORD <= most


class OffsetBatches:
    """Record batches of a partition's offsets: small ones at first, then large ones.

    columns: the wanted ones of OFFSET_COLUMNS.
    """

    def __init__(self, topic: str, partition: int | None, columns: Collection[str]) -> None:
        self._topic, self._partition = topic, partition
        self._columns = [name for name in OFFSET_COLUMNS if name in columns]
        self._places: dict[str, pa.Array] = {}
        self._waiting = range(0)
        self._wanted = 1

    def of(self, found: HeaderOffsets) -> Iterator[pa.RecordBatch]:
        """Yield the records of a run without control records; the last ones wait for the following run."""
        for stretch in found.stretches:
            offsets = stretch
            if self._waiting.stop == offsets.start:
                offsets = range(self._waiting.start, offsets.stop)
            else:
                yield from self.rest()
            while len(offsets) >= self._wanted:
                yield self._batch(offsets[:ROWS])
                offsets = offsets[ROWS:]
                self._wanted = min(2 * self._wanted, ROWS)
            self._waiting = offsets

    def rest(self) -> Iterator[pa.RecordBatch]:
        """Yield the waiting records."""
        if self._waiting:
            yield self._batch(self._waiting)
        self._waiting = range(0)

    def _batch(self, offsets: range) -> pa.RecordBatch:
        return pa.RecordBatch.from_arrays([self._column(name, offsets) for name in self._columns], self._columns)

    def _column(self, name: str, offsets: range) -> pa.Array:
        count = len(offsets)
        if name == "offset":
            return pc.add(_numbers()[:count], offsets.start)
        if name not in self._places or len(self._places[name]) < count:
            is_topic = name == "topic"
            self._places[name] = (
                repeated_text(self._topic, count) if is_topic else repeated_int32(self._partition, count)
            )
        return self._places[name][:count]


@cache
def _numbers() -> pa.Array:
    """Return the numbers from 0 on, one for each row of a record batch."""
    return pa.array(range(ROWS), pa.int64())
