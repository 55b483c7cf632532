"""Where a segment's chunks lie in its object: equal pieces of the segment, each stored with a size of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from kseg.errors import KsegError

LARGEST_CHUNK = 1 << 28
"""Bytes of a chunk that are decrypted or decompressed at once; the plugin's README recommends 4 MiB."""
LARGEST_FILE = (1 << 31) - 1
"""Kafka's segments have no more bytes."""


@dataclass(frozen=True, slots=True)
class ChunkTable:
    """A segment's chunks. chunk_size: bytes of each but the last before it was stored. size: bytes of the whole.

    stored_size, last_stored_size: of each chunk and of the last, if they are equal. ends: where each ends in the
    object, if their sizes differ.
    """

    chunk_size: int
    size: int
    stored_size: int
    last_stored_size: int
    ends: Sequence[int] | None = None

    @property
    def count(self) -> int:
        """How many there are."""
        return -(-self.size // self.chunk_size)

    @property
    def total(self) -> int:
        """Bytes of all chunks in the object."""
        return self.stored_end(self.count - 1) if self.count else 0

    def stored_end(self, slot: int) -> int:
        """Where a chunk ends in the object."""
        if self.ends is not None:
            return self.ends[slot]
        is_last = slot == self.count - 1
        return slot * self.stored_size + (self.last_stored_size if is_last else self.stored_size)

    def stored_start(self, slot: int) -> int:
        """Where a chunk begins in the object."""
        return self.stored_end(slot - 1) if slot else 0

    def stored_size_of(self, slots: range) -> int:
        """Bytes of neighbouring chunks in the object."""
        return self.stored_end(slots[-1]) - self.stored_start(slots[0])

    def size_of(self, slot: int) -> int:
        """Bytes of a chunk before it was stored."""
        return min(self.chunk_size, self.size - slot * self.chunk_size)


def equal_chunks(chunk_size: int, size: int, stored_size: int, last_stored_size: int) -> ChunkTable:
    """The table of chunks that are stored with equal sizes. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, (stored_size, last_stored_size))
    return ChunkTable(chunk_size, size, stored_size, last_stored_size)


def unequal_chunks(chunk_size: int, size: int, stored_sizes: Sequence[int]) -> ChunkTable:
    """The table of chunks that are stored with these sizes. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, stored_sizes)
    return ChunkTable(chunk_size, size, 0, 0, tuple(accumulate(stored_sizes)))


def chunk_count(chunk_size: int, size: int) -> int:
    """How many chunks a segment has. Raises KsegError for impossible numbers."""
    _check(chunk_size, size, ())
    return -(-size // chunk_size)


def _check(chunk_size: int, size: int, stored_sizes: Sequence[int]) -> None:
    if not 0 < chunk_size <= LARGEST_FILE:
        raise KsegError(f"chunks of {chunk_size} bytes")
    if not 0 <= size <= LARGEST_FILE:
        raise KsegError(f"a segment of {size} bytes")
    if min(stored_sizes, default=0) < 0:
        raise KsegError(f"a chunk of {min(stored_sizes)} bytes")
