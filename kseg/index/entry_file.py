"""Files of entries of fixed size: indexes, and producer snapshots after their header."""

import os
from collections.abc import Callable, Iterator

from kseg.errors import OpenError, UnreadableError
from kseg.formats.header_fields import FixedFields
from kseg.system.file_holes import stored_stretches
from kseg.system.regular_file import open_regular

ENTRIES_AT_ONCE = 2048
"""Entries read at once when all are needed."""
BYTES_AT_ONCE = 1 << 20
"""Bytes read at once when entries don't matter."""
ENTRIES_IN_VIEW = 256
"""A search ends by reading this many entries at once: a block of the disk or less."""


class EntryFile:
    """One such file, open for reading; a context manager.

    name: its path as it was given. size: bytes of the file at opening. entry_size: of an entry. capacity: whole
    entries, including unwritten (zero) ones. trailing: bytes after the last whole entry.
    """

    def __init__(self, path: str | os.PathLike[str], fields: FixedFields, start: int = 0) -> None:
        """Opens the file, whose entries begin at byte `start`. Raises OpenError if it can't be opened."""
        self.name = os.fspath(path)
        self._start = start
        self._struct = fields.struct
        self.entry_size = self._struct.size
        self._descriptor, self.size = open_regular(path)
        self._last_block: tuple[int, list[tuple[int, ...]]] = (0, [])
        self.capacity, self.trailing = divmod(max(self.size - start, 0), self._struct.size)

    @property
    def trailing_problem(self) -> str | None:
        """What is wrong with the bytes after the last whole entry; None if there are none."""
        return f"the last {self.trailing} of its {self.size} bytes are no whole entry" if self.trailing else None

    def close(self) -> None:
        """Closes the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "EntryFile":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer at its end. Raises UnreadableError if the disk can't read them."""
        try:
            return os.pread(self._descriptor, size, position)
        except OSError as error:
            raise UnreadableError(f"can't be read: {error.strerror}", self.name, position) from error

    def entry(self, slot: int) -> tuple[int, ...]:
        """The fields of one entry. Raises OpenError if the file was cut meanwhile."""
        return self.block(slot, 1)[0]

    def block(self, slot: int, count: int) -> list[tuple[int, ...]]:
        """The fields of consecutive entries. Raises OpenError if the file was cut meanwhile."""
        known, entries = self._last_block
        if known <= slot and slot + count <= known + len(entries):
            return entries[slot - known : slot - known + count]
        size = self._struct.size
        position = self._start + slot * size
        content = self.read(position, count * size)
        if len(content) < count * size:
            raise OpenError("was cut while it was read", self.name, position)
        self._last_block = slot, list(self._struct.iter_unpack(content))
        return self._last_block[1]

    def pieces(self, count: int | None = None) -> Iterator[list[tuple[int, ...]]]:
        """Lists of entries, in file order: all whole ones, or the first `count`. Stops where the file was cut."""
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
        """Lists of entries, and the slot of each list's first, in file order; only one of the entries in a hole.

        Those in holes are zeros. Stops where the file was cut.
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
        """Reads the first `count` entries, without holes. Raises UnreadableError if the disk can't read them."""
        for start, end in stored_stretches(self._descriptor, 0, self._start + count * self._struct.size):
            for position in range(start, end, BYTES_AT_ONCE):
                self.read(position, min(BYTES_AT_ONCE, end - position))

    def content_after(self, slot: int) -> int | None:
        """Position of the first byte after an entry that isn't zero; None if only zeros follow."""
        return self.first_content(self._start + (slot + 1) * self._struct.size, self.size)

    def first_content(self, position: int, end: int) -> int | None:
        """Position of the first byte that isn't zero, between a position and an end; None if all are zeros."""
        for start, stored_end in stored_stretches(self._descriptor, position, end):
            at = start
            while piece := self.read(at, min(BYTES_AT_ONCE, stored_end - at)):
                content = piece.lstrip(b"\0")
                if content:
                    return at + len(piece) - len(content)
                at += len(piece)
        return None

    def crc32c(self, position: int) -> int:
        """CRC-32C of all bytes from a position on."""
        from crc32c import crc32c

        crc = 0
        while piece := self.read(position, BYTES_AT_ONCE):
            crc = crc32c(piece, crc)
            position += len(piece)
        return crc

    def first_slot(self, holds: Callable[[tuple[int, ...]], bool], count: int) -> int:
        """The first of `count` slots from which on `holds` is true for all; `count` if there is none.

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
        """Entries before the zero tail of a preallocated file.

        A single zero entry counts: a closed time index with largest time 0 looks like this.
        """
        if self.capacity == 1:
            return 1
        return self.first_slot(lambda entry: not any(entry), self.capacity)
