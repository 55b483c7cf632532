"""Memory that a forked process shares with its parent: bytes in it needn't go through a pipe."""

import mmap
import os
from typing import NamedTuple

SLOT_SIZE = 256 << 10
SLOTS = 32
"""The number of slots of a process, which hold what it has written and its parent hasn't taken yet."""


class SharedPiece(NamedTuple):
    """Bytes in a slot."""

    slot: int
    size: int


class SharedSpace:
    """Slots that a process fills and its parent empties. The parent makes them before it forks.

    The numbers of freed slots return through a pipe.
    """

    _ends: tuple[int, ...]

    def __init__(self) -> None:
        self._memory = memoryview(mmap.mmap(-1, SLOTS * SLOT_SIZE))
        self._take_end, self._return_end = self._ends = os.pipe()
        self._free = bytearray(range(SLOTS))

    @property
    def is_full(self) -> bool:
        """True if `fill` may wait for the parent."""
        return not self._free

    def fill(self, piece: memoryview) -> SharedPiece:
        """Copy up to SLOT_SIZE bytes into a free slot; wait for one."""
        if not self._free:
            self._free = bytearray(os.read(self._take_end, SLOTS))
        slot = self._free.pop()
        self._memory[slot * SLOT_SIZE : slot * SLOT_SIZE + len(piece)] = piece
        return SharedPiece(slot, len(piece))

    def contents(self, piece: SharedPiece) -> memoryview:
        """Return the bytes in a slot, until it is freed."""
        return self._memory[piece.slot * SLOT_SIZE : piece.slot * SLOT_SIZE + piece.size]

    def free(self, piece: SharedPiece) -> None:
        """Let the process use a slot again."""
        os.write(self._return_end, bytes((piece.slot,)))

    def close(self) -> None:
        """Close the pipe, unless it is closed already."""
        ends, self._ends = self._ends, ()
        for end in ends:
            os.close(end)
