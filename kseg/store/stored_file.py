"""A stored object as a Python file: read from any position, with read-ahead for sequential reads."""

import io
import os
from typing import Any

from kseg.store.location import ObjectStore, StoredObject

READ_AHEAD = 1 << 20
"""The fewest bytes in one request."""


class StoredFile(io.RawIOBase):
    """A readable object of a store."""

    def __init__(self, store: ObjectStore, found: StoredObject) -> None:
        self._file, self._found = store.open(found.key, found.size), found
        self._position, self._start, self._held = 0, 0, b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def seekable(self) -> bool:
        """Return True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position, and return it."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._found.size}[whence]
        self._position = max(base + offset, 0)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def size(self) -> int:
        """Return the size in bytes, as pyarrow asks for it."""
        return self._found.size

    def readinto(self, buffer: Any) -> int:
        """Fill a buffer with the available bytes."""
        end = min(self._position + len(buffer), self._found.size)
        if not self._start <= self._position <= end <= self._start + len(self._held):
            ahead = min(max(end, self._position + READ_AHEAD), self._found.size)
            self._start, self._held = self._position, self._file.read(self._position, ahead)
        piece = self._held[self._position - self._start : end - self._start]
        buffer[: len(piece)] = piece
        self._position += len(piece)
        return len(piece)
