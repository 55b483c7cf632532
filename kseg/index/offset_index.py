"""The offset index (.index): where in a segment's log to look for an offset."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.formats.entries import OffsetIndexEntry
from kseg.formats.header_fields import OFFSET_INDEX_ENTRY_FIELDS
from kseg.formats.names import parse_file_name
from kseg.index.entry_file import EntryFile


class SlotRange(NamedTuple):
    """Slots around a target: the last entry at or below it and the first one above; -1 if there is none.

    As in Kafka, both are the same slot if the entry equals the target. Source: AbstractIndex.indexSlotRangeFor.
    """

    lower: int
    upper: int


def slot_range(file: EntryFile, count: int, target: int, column: int) -> SlotRange:
    """The slots around a target among the first `count` entries, which are ordered by field number `column`."""
    above = file.first_slot(lambda entry: entry[column] > target, count)
    lower = above - 1
    if lower >= 0 and file.entry(lower)[column] == target:
        return SlotRange(lower, lower)
    return SlotRange(lower, above if above < count else -1)


class OffsetIndex:
    """An .index, open for reading; a context manager. Offsets are absolute.

    base_offset: the segment's, of the file's name unless given (0 if it has none). count: entries before the zero tail
    of a preallocated file. size, capacity, trailing: as in EntryFile. Reading it doesn't check its contents:
    see `sanity_problem`, and `kseg.index.health`. Source: OffsetIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Opens the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, OFFSET_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.capacity, self.trailing = self.file.size, self.file.capacity, self.file.trailing
        self.count = self.file.count_written()
        if self.count == 1 and not any(self.file.entry(0)):
            self.count = 0  # a segment's first batch never has an entry

    @property
    def path(self) -> Path:
        """The file's path."""
        return Path(self.file.name)

    def close(self) -> None:
        """Closes the file."""
        self.file.close()

    def __enter__(self) -> "OffsetIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, slot: int) -> OffsetIndexEntry:
        """The entry of a slot, from 0. Raises OpenError if the file was cut meanwhile."""
        relative_offset, position = self.file.entry(slot)
        return OffsetIndexEntry(self.base_offset + relative_offset, position)

    def entries(self) -> Iterator[OffsetIndexEntry]:
        """All entries, in file order, up to the zero tail."""
        for piece in self.file.pieces(self.count):
            for relative_offset, position in piece:
                yield OffsetIndexEntry(self.base_offset + relative_offset, position)

    def last_entry(self) -> OffsetIndexEntry:
        """The last entry; the segment's base offset at position 0 if there is none."""
        return self.entry(self.count - 1) if self.count else OffsetIndexEntry(self.base_offset, 0)

    def slot_range(self, offset: int) -> SlotRange:
        """The slots around an offset. Source: AbstractIndex.indexSlotRangeFor."""
        return slot_range(self.file, self.count, offset - self.base_offset, 0)

    def lookup(self, offset: int) -> OffsetIndexEntry:
        """The floor entry: the last one at or below the offset; (base offset, 0) if there is none.

        Whichever release wrote it, the offset is at or after the entry's position.
        """
        lower = self.slot_range(offset).lower
        return self.entry(lower) if lower >= 0 else OffsetIndexEntry(self.base_offset, 0)

    def upper_bound(self, position: int, size: int) -> OffsetIndexEntry | None:
        """The first entry whose position is above position + size; None if there is none.

        Source: OffsetIndex.fetchUpperBoundOffset.
        """
        upper = slot_range(self.file, self.count, position + size, 1).upper
        return self.entry(upper) if upper >= 0 else None

    def sanity_problem(self) -> str | None:
        """What a broker's check at start says about the file; None if it passes.

        A broker treats all whole entries as written, including zeros. Source: OffsetIndex.sanityCheck.
        """
        if self.trailing:
            return f"{self.size} bytes, not a multiple of 8: last {self.trailing} ignored"
        if self.capacity and (last := self.entry(self.capacity - 1).offset) < self.base_offset:
            return f"the last offset is {last}, below the base offset {self.base_offset}"
        return None
