"""The log cleaner's offset map: the last offset of each key, in a table of fixed size. Source: SkimpyOffsetMap."""

import mmap
from hashlib import md5

ENTRY_SIZE = 24
"""Bytes of a slot: the key's MD5 and its offset."""
LOAD_FACTOR = 0.9
"""`log.cleaner.io.buffer.load.factor`: how full the table may become."""
_HASH_SIZE = 16
_FREE = bytes(ENTRY_SIZE)


class OffsetMap:
    """Maps keys to offsets from 0 on; uses a fixed amount of memory, and distinguishes keys by their MD5.

    latest_offset: it has all keys of the log up to here; -1 at first. is_full: there is no room for another key.
    """

    def __init__(self, size: int) -> None:
        """Makes a map of `size` bytes."""
        self._slots = size // ENTRY_SIZE
        self._most = int(self._slots * LOAD_FACTOR)
        self._table = self._free_table()
        self._count = 0
        self.latest_offset = -1

    def clear(self) -> None:
        """Forgets all."""
        if self._count:
            self._table.close()  # frees the old one first
            self._table = self._free_table()
        self._count = 0
        self.latest_offset = -1

    @property
    def is_full(self) -> bool:
        """Whether there is no room for another key."""
        return self._count >= self._most

    def put(self, key: bytes, offset: int) -> None:
        """Sets a key's offset; there must be room."""
        digest = md5(key, usedforsecurity=False).digest()
        place, entry = self._find(digest)
        if entry == _FREE:
            self._count += 1
        self._table[place : place + ENTRY_SIZE] = digest + (offset + 1).to_bytes(8, "big")
        self.latest_offset = offset

    def get(self, key: bytes) -> int:
        """A key's offset, -1 if it isn't there."""
        _, entry = self._find(md5(key, usedforsecurity=False).digest())
        return int.from_bytes(entry[_HASH_SIZE:], "big") - 1

    def _free_table(self) -> mmap.mmap:
        """A table of free slots; the system allocates memory only for slots that are written."""
        try:
            return mmap.mmap(-1, max(self._slots * ENTRY_SIZE, 1))
        except OSError as error:  # as for any memory that isn't there
            raise MemoryError(str(error)) from error

    def _find(self, digest: bytes) -> tuple[int, bytes]:
        """The slot of a digest, or the one for it, and its contents: probes along the digest, then along the table."""
        table, probe = self._table, 0
        while True:
            start = min(probe, _HASH_SIZE - 4)
            number = int.from_bytes(digest[start : start + 4], "big") + probe - start
            place = number % self._slots * ENTRY_SIZE
            entry = table[place : place + ENTRY_SIZE]
            if entry == _FREE or entry.startswith(digest):
                return place, entry
            probe += 1
