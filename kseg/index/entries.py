"""Offset, time and transaction indexes of a segment, as files of entries."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from kseg.errors import OpenError, UnreadableError, plural
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.file_names import parse_file_name
from kseg.formats.header_fields import (
    OFFSET_INDEX_ENTRY_FIELDS,
    TIME_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_ENTRY_FIELDS,
    TRANSACTION_INDEX_VERSION,
    AbortedTransaction,
    FixedFields,
    OffsetIndexEntry,
    TimeIndexEntry,
)
from kseg.system.files import open_regular, stored_stretches
from kseg.system.placed_path import as_path

ENTRIES_AT_ONCE = 2048
"""Entries read at once when all are needed."""
BYTES_AT_ONCE = 1 << 20
"""Bytes read at once when entries don't matter."""
ENTRIES_IN_VIEW = 256
"""Entries that end a search and are read at once: a block of the disk or less."""


class EntryFile:
    """A file of entries, open for reading; a context manager.

    name: its path as given. size: bytes of the file at opening. entry_size: bytes of an entry. capacity: complete
    entries, including unwritten (zero) ones. trailing: bytes after the last complete entry.
    """

    def __init__(self, path: str | os.PathLike[str], fields: FixedFields, start: int = 0) -> None:
        """Open the file, whose entries begin at byte `start`. Raises OpenError if it can't be opened."""
        self.name = path
        self._start = start
        self._struct = fields.struct
        self.entry_size = self._struct.size
        self._descriptor, self.size = open_regular(path)
        self._last_block: tuple[int, list[tuple[int, ...]]] = (0, [])
        self.capacity, self.trailing = divmod(max(self.size - start, 0), self._struct.size)

    @property
    def trailing_problem(self) -> str | None:
        """The problem of the bytes after the last complete entry, or None if there are none."""
        return (
            f"the last {self.trailing} of its {plural(self.size, 'byte is', 'bytes are')} not a complete entry"
            if self.trailing
            else None
        )

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "EntryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, position: int, size: int) -> bytes:
        """Return bytes of the file, fewer at its end. Raises UnreadableError if the disk can't read them."""
        try:
            return os.pread(self._descriptor, size, position)
        except OSError as error:
            raise UnreadableError(f"can't be read: {error.strerror}", self.name, position) from error

    def entry(self, slot: int) -> tuple[int, ...]:
        """Return the fields of one entry. Raises OpenError if the file was cut meanwhile."""
        return self.block(slot, 1)[0]

    def block(self, slot: int, count: int) -> list[tuple[int, ...]]:
        """Return the fields of consecutive entries. Raises OpenError if the file was cut meanwhile."""
        known, entries = self._last_block
        if known <= slot and slot + count <= known + len(entries):
            return entries[slot - known : slot - known + count]
        size = self._struct.size
        position = self._start + slot * size
        content = self.read(position, count * size)
        if len(content) < count * size:
            raise OpenError("was truncated while kseg was reading it; run the command again", self.name, position)
        self._last_block = slot, list(self._struct.iter_unpack(content))
        return self._last_block[1]

    def pieces(self, count: int | None = None) -> Iterator[list[tuple[int, ...]]]:
        """Yield lists of entries in file order: all complete ones, or the first `count`.

        Stops where the file was cut.
        """
        size = self._struct.size
        left = self.capacity if count is None else min(count, self.capacity)
        position = self._start
        while left > 0:
            piece = self.read(position, min(left, ENTRIES_AT_ONCE) * size)
            whole = len(piece) // size
            if whole == 0:
                return
            yield list(self._struct.iter_unpack(piece[: whole * size]))
            left -= whole
            position += whole * size

    def stored_pieces(self) -> Iterator[tuple[int, list[tuple[int, ...]]]]:
        """Yield lists of entries with the slot of each list's first, in file order; one entry for each hole.

        Entries in holes are zeros. Stops where the file was cut.
        """
        size = self._struct.size
        slot = 0
        for start, end in (*stored_stretches(self._descriptor, self._start, self.size), (self.size, self.size)):
            first, last = (start - self._start) // size, min(-(-(end - self._start) // size), self.capacity)
            if slot < min(first, self.capacity):
                yield slot, self.block(slot, 1)
            slot = max(slot, first)
            while slot < last:
                yield slot, (piece := self.block(slot, min(last - slot, ENTRIES_AT_ONCE)))
                slot += len(piece)

    def check_readable(self, count: int) -> None:
        """Read the first `count` entries, without holes. Raises UnreadableError if the disk can't read them."""
        for start, end in stored_stretches(self._descriptor, 0, self._start + count * self._struct.size):
            for position in range(start, end, BYTES_AT_ONCE):
                self.read(position, min(BYTES_AT_ONCE, end - position))

    def content_after(self, slot: int) -> int | None:
        """Return the position of the first nonzero byte after an entry, or None if only zeros follow."""
        return self.first_content(self._start + (slot + 1) * self._struct.size, self.size)

    def first_content(self, position: int, end: int) -> int | None:
        """Return the position of the first nonzero byte between a position and an end, or None if all are zeros."""
        for start, stored_end in stored_stretches(self._descriptor, position, end):
            at = start
            while piece := self.read(at, min(BYTES_AT_ONCE, stored_end - at)):
                content = piece.lstrip(b"\0")
                if content:
                    return at + len(piece) - len(content)
                at += len(piece)
        return None

    def crc32c(self, position: int) -> int:
        """Compute the CRC-32C of all bytes from a position on."""
        from crc32c import crc32c

        crc = 0
        while piece := self.read(position, BYTES_AT_ONCE):
            crc = crc32c(piece, crc)
            position += len(piece)
        return crc

    def first_slot(self, holds: Callable[[tuple[int, ...]], bool], count: int) -> int:
        """Return the first of `count` slots from which on `holds` is true for all; `count` if there is none.

        Reads few KiB whatever the size.
        """
        low, high = 0, count
        while high - low > ENTRIES_IN_VIEW:
            middle = (low + high) // 2
            if holds(self.entry(middle)):
                high = middle
            else:
                low = middle + 1
        for slot, entry in enumerate(self.block(low, high - low) if high > low else (), low):
            if holds(entry):
                return slot
        return high

    def count_written(self) -> int:
        """Count the entries before the zero tail of a preallocated file.

        A single zero entry counts: a closed time index with largest time 0 looks like this.
        """
        if self.capacity == 1:
            return 1
        return self.first_slot(lambda entry: not any(entry), self.capacity)


class SlotRange(NamedTuple):
    """Slots around a target: the last entry at or below it and the first one above, or -1 if there is none.

    As in Kafka, both are the same slot if the entry equals the target. Source: AbstractIndex.indexSlotRangeFor.
    """

    lower: int
    upper: int


def slot_range(file: EntryFile, count: int, target: int, column: int) -> SlotRange:
    """Return the slots around a target among the first `count` entries, which are ordered by field number `column`."""
    above = file.first_slot(lambda entry: entry[column] > target, count)
    lower = above - 1
    if lower >= 0 and file.entry(lower)[column] == target:
        return SlotRange(lower, lower)
    return SlotRange(lower, above if above < count else -1)


class OffsetIndex:
    """An .index, open for reading; a context manager. Offsets are absolute.

    base_offset: the segment's, from the file's name unless given (0 if it has none). count: entries before the zero
    tail of a preallocated file. size, capacity, trailing: as in EntryFile. Reading doesn't check the contents;
    `sanity_problem` and `kseg.index.health` do. Source: OffsetIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Open the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, OFFSET_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.capacity, self.trailing = self.file.size, self.file.capacity, self.file.trailing
        self.count = self.file.count_written()
        if self.count == 1 and not any(self.file.entry(0)):
            self.count = 0  # a segment's first batch never has an entry

    @property
    def path(self) -> Path:
        """The file path."""
        return as_path(self.file.name)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> "OffsetIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, slot: int) -> OffsetIndexEntry:
        """Return the entry of a slot, from 0. Raises OpenError if the file was cut meanwhile."""
        relative_offset, position = self.file.entry(slot)
        return OffsetIndexEntry(self.base_offset + relative_offset, position)

    def entries(self) -> Iterator[OffsetIndexEntry]:
        """Yield all entries, in file order, up to the zero tail."""
        for piece in self.file.pieces(self.count):
            for relative_offset, position in piece:
                yield OffsetIndexEntry(self.base_offset + relative_offset, position)

    def last_entry(self) -> OffsetIndexEntry:
        """Return the last entry; the base offset of the segment at position 0 if there is none."""
        return self.entry(self.count - 1) if self.count else OffsetIndexEntry(self.base_offset, 0)

    def slot_range(self, offset: int) -> SlotRange:
        """Return the slots around an offset. Source: AbstractIndex.indexSlotRangeFor."""
        return slot_range(self.file, self.count, offset - self.base_offset, 0)

    def lookup(self, offset: int) -> OffsetIndexEntry:
        """Return the floor entry: the last one at or below the offset; (base offset, 0) if there is none.

        With any release as writer, the offset is at or after the entry's position.
        """
        lower = self.slot_range(offset).lower
        return self.entry(lower) if lower >= 0 else OffsetIndexEntry(self.base_offset, 0)

    def upper_bound(self, position: int, size: int) -> OffsetIndexEntry | None:
        """Return the first entry whose position is above position + size, or None if it doesn't exist.

        Source: OffsetIndex.fetchUpperBoundOffset.
        """
        upper = slot_range(self.file, self.count, position + size, 1).upper
        return self.entry(upper) if upper >= 0 else None

    def sanity_problem(self) -> str | None:
        """Return the problem that a broker would find at startup, or None if the file passes the check.

        A broker treats all complete entries as written, including zeros. Source: OffsetIndex.sanityCheck.
        """
        if self.trailing:
            return (
                f"its size is {plural(self.size, 'byte')}, not a multiple of 8, so kseg ignores the"
                f" last {self.trailing}"
            )
        if self.capacity and (last := self.entry(self.capacity - 1).offset) < self.base_offset:
            return f"the last offset is {last}, below the base offset {self.base_offset}"
        return None


class TransactionIndex:
    """A .txnindex, open for reading; a context manager. It is never preallocated.

    base_offset, size, trailing: as in OffsetIndex; count: complete entries. Source: TransactionIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Open the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, TRANSACTION_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.count, self.trailing = self.file.size, self.file.capacity, self.file.trailing

    @property
    def path(self) -> Path:
        """The file path."""
        return as_path(self.file.name)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> "TransactionIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entries(self) -> Iterator[AbortedTransaction]:
        """Yield all complete entries in file order; of the zeros in a hole of the file only the first."""
        for _, entry in self._numbered_entries():
            yield entry

    def _numbered_entries(self) -> Iterator[tuple[int, AbortedTransaction]]:
        for slot, piece in self.file.stored_pieces():
            yield from enumerate(map(AbortedTransaction._make, piece), slot)

    def find_aborted(self, start: int, end: int) -> Iterator[AbortedTransaction]:
        """Yield aborted transactions that overlap the offsets from `start` to below `end`.

        Ends at the first entry whose last stable offset is at or above `end`: no later one can overlap the range.
        Source: TransactionIndex.collectAbortedTxns.
        """
        for entry in self.entries():
            if entry.last_offset >= start and entry.first_offset < end:
                yield entry
            if entry.last_stable_offset >= end:
                return

    def sanity_problem(self) -> str | None:
        """Return the problem that a broker's check at start finds, or None if it doesn't exist.

        Source: TransactionIndex.sanityCheck (4.4; earlier releases read only the first byte of the version, and
        accept negative ones).
        """
        for number, entry in self._numbered_entries():
            if entry.version != TRANSACTION_INDEX_VERSION:
                return f"entry {number} has version {entry.version}, expected {TRANSACTION_INDEX_VERSION}"
            if entry.last_offset < self.base_offset:
                return (
                    f"the last offset of entry {number} is {entry.last_offset}, below the base offset"
                    f" {self.base_offset}"
                )
        if self.trailing:
            return (
                f"its size is {plural(self.size, 'byte')}, not a multiple of 34, so kseg ignores the"
                f" last {self.trailing}"
            )
        return None


class TimeIndex:
    """A .timeindex, open for reading; a context manager. Times are milliseconds, offsets absolute.

    base_offset, count, size, capacity, trailing: as in OffsetIndex. Source: TimeIndex.
    """

    def __init__(self, path: str | os.PathLike[str], base_offset: int | None = None) -> None:
        """Open the file. Raises OpenError if it can't be opened."""
        self.file = EntryFile(path, TIME_INDEX_ENTRY_FIELDS)
        self.base_offset = base_offset if base_offset is not None else parse_file_name(path).base_offset or 0
        self.size, self.capacity, self.trailing = self.file.size, self.file.capacity, self.file.trailing
        self.count = self.file.count_written()

    @property
    def path(self) -> Path:
        """The file path."""
        return as_path(self.file.name)

    def close(self) -> None:
        """Close the file."""
        self.file.close()

    def __enter__(self) -> "TimeIndex":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def entry(self, slot: int) -> TimeIndexEntry:
        """Return the entry of a slot, from 0. Raises OpenError if the file was cut meanwhile."""
        timestamp, relative_offset = self.file.entry(slot)
        return TimeIndexEntry(timestamp, self.base_offset + relative_offset)

    def entries(self) -> Iterator[TimeIndexEntry]:
        """Yield all entries, in file order, up to the zero tail."""
        for piece in self.file.pieces(self.count):
            for timestamp, relative_offset in piece:
                yield TimeIndexEntry(timestamp, self.base_offset + relative_offset)

    def last_entry(self) -> TimeIndexEntry:
        """Return the last entry; (-1, base offset) if there is none."""
        return self.entry(self.count - 1) if self.count else TimeIndexEntry(NO_TIMESTAMP, self.base_offset)

    def slot_range(self, timestamp: int) -> SlotRange:
        """Return the slots around a time. Source: AbstractIndex.indexSlotRangeFor."""
        return slot_range(self.file, self.count, timestamp, 0)

    def lookup(self, timestamp: int) -> TimeIndexEntry:
        """Return the floor entry: the last one at or below the time; (-1, base offset) if there is none."""
        lower = self.slot_range(timestamp).lower
        return self.entry(lower) if lower >= 0 else TimeIndexEntry(NO_TIMESTAMP, self.base_offset)

    def sanity_problem(self) -> str | None:
        """Return the problem that a broker's check at start finds, or None if the file passes.

        A broker treats all complete entries as written, including zeros. Source: TimeIndex.sanityCheck.
        """
        if self.trailing:
            return (
                f"its size is {plural(self.size, 'byte')}, not a multiple of 12, so kseg ignores the"
                f" last {self.trailing}"
            )
        if not self.capacity:
            return None
        first, last = self.entry(0), self.entry(self.capacity - 1)
        if last.timestamp < first.timestamp:
            return f"the last timestamp is {last.timestamp}, before the first, {first.timestamp}"
        if last.offset < self.base_offset:
            return f"the last offset is {last.offset}, below the base offset {self.base_offset}"
        return None
