"""Files of entries of fixed size: indexes, and producer snapshots behind their header."""

import os
from collections.abc import Iterator

from kseg.errors import OpenError
from kseg.formats.fixed import FixedFields
from kseg.regular_file import open_regular

ENTRIES_AT_ONCE = 2048


class EntryFile:
    """One such file, open for reading.

    size: bytes of the file at opening. count: whole entries. trailing: bytes behind the last whole entry.
    """

    def __init__(self, path: str, fields: FixedFields, start: int = 0) -> None:
        """Opens the file, whose entries begin at byte `start`. Raises OpenError if it can't be opened."""
        self.path = path
        self._start = start
        self._struct = fields.struct
        self._descriptor, self.size = open_regular(path)
        self.count, self.trailing = divmod(max(self.size - start, 0), self._struct.size)

    def __enter__(self) -> "EntryFile":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer where it ends. Raises OpenError if the disk can't give them."""
        try:
            return os.pread(self._descriptor, size, position)
        except OSError as error:
            raise OpenError(f"can't be read: {error.strerror}", self.path, position) from error

    def entry(self, number: int) -> tuple[int, ...]:
        """The fields of one entry. Raises OpenError if the file was cut meanwhile."""
        position = self._start + number * self._struct.size
        fields = self.read(position, self._struct.size)
        if len(fields) < self._struct.size:
            raise OpenError("was cut while it was read", self.path, position)
        return self._struct.unpack(fields)

    def pieces(self, count: int | None = None) -> Iterator[list[tuple[int, ...]]]:
        """Lists of entries, in file order: all whole ones, or the first `count`. Ends where the file was cut."""
        size = self._struct.size
        left = self.count if count is None else min(count, self.count)
        position = self._start
        while left > 0:
            piece = self.read(position, min(left, ENTRIES_AT_ONCE) * size)
            whole = len(piece) // size
            if whole == 0:
                return
            yield list(self._struct.iter_unpack(piece[: whole * size]))
            left -= whole
            position += whole * size

    def content_behind(self, number: int) -> int | None:
        """Where the first byte behind an entry stands that isn't zero; None if only zeros follow."""
        position = self._start + (number + 1) * self._struct.size
        while piece := self.read(position, 1 << 20):
            content = piece.lstrip(b"\0")
            if content:
                return position + len(piece) - len(content)
            position += len(piece)
        return None
