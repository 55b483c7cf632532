"""The time index (.timeindex): up to which offset no record is later than a time."""

import os
from collections.abc import Iterator
from pathlib import Path

from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.entries import TimeIndexEntry
from kseg.formats.header_fields import TIME_INDEX_ENTRY_FIELDS
from kseg.formats.names import parse_file_name
from kseg.index.entry_file import EntryFile
from kseg.index.offset_index import SlotRange, slot_range


class TimeIndex:
    """A .timeindex, open for reading; a context manager. Times are milliseconds, offsets absolute.

    base_offset, count, size, capacity, trailing: as in OffsetIndex. Source: TimeIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Opens the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, TIME_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.capacity, self.trailing = self.file.size, self.file.capacity, self.file.trailing
        self.count = self.file.count_written()

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.file.name)

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "TimeIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, slot: int) -> TimeIndexEntry:
        """The entry of a slot, from 0. Raises OpenError if the file was cut meanwhile."""
        timestamp, relative_offset = self.file.entry(slot)
        return TimeIndexEntry(timestamp, self.base_offset + relative_offset)

    def entries(self) -> Iterator[TimeIndexEntry]:
        """All entries, in file order, up to the zero tail."""
        for piece in self.file.pieces(self.count):
            for timestamp, relative_offset in piece:
                yield TimeIndexEntry(timestamp, self.base_offset + relative_offset)

    def last_entry(self) -> TimeIndexEntry:
        """The last entry; (-1, base offset) if there is none."""
        return self.entry(self.count - 1) if self.count else TimeIndexEntry(NO_TIMESTAMP, self.base_offset)

    def slot_range(self, timestamp: int) -> SlotRange:
        """The slots around a time. Source: AbstractIndex.indexSlotRangeFor."""
        return slot_range(self.file, self.count, timestamp, 0)

    def lookup(self, timestamp: int) -> TimeIndexEntry:
        """The floor entry: the last one at or below the time; (-1, base offset) if there is none."""
        lower = self.slot_range(timestamp).lower
        return self.entry(lower) if lower >= 0 else TimeIndexEntry(NO_TIMESTAMP, self.base_offset)

    def sanity_problem(self) -> str | None:
        """What a broker's check at start says about the file; None if it passes.

        A broker treats all whole entries as written, including zeros. Source: TimeIndex.sanityCheck.
        """
        if self.trailing:
            return f"{self.size} bytes, not a multiple of 12: last {self.trailing} ignored"
        if not self.capacity:
            return None
        first, last = self.entry(0), self.entry(self.capacity - 1)
        if last.timestamp < first.timestamp:
            return f"the last time is {last.timestamp}, before the first {first.timestamp}"
        if last.offset < self.base_offset:
            return f"the last offset is {last.offset}, below the base offset {self.base_offset}"
        return None
