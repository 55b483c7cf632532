"""Reads a file whose disk may fail: blocks that can't be read are filled, remembered, and not asked for again."""

import errno
import os
import time
from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from kseg.system.ranged_files import RangedBytes

SMALLEST_BLOCK = 512
"""Bytes of a disk's smallest block: a read that fails is tried again by pieces down to this size."""
PATIENCE = 30.0
"""Seconds that reads may fail for in one file before pieces are no longer tried again by smaller ones."""
_PIECES = (64 << 10, 4 << 10, SMALLEST_BLOCK)
_FILL = b"\xff"
"""Stands for what can't be read: no header of any format begins so, and no file's zero tail."""
_OWN_FAULTS = (errno.EBADF, errno.EINVAL, errno.EFAULT)
"""What a system says of a wrong call; all other errors are the disk's."""


class UnreadableRange(NamedTuple):
    """Bytes `start` to before `end` of a file, and what the system says of them."""

    start: int
    end: int
    reason: str


class BlockReader:
    """An open file of which some blocks may be unreadable; these read as 0xFF.

    size: bytes of the file. unreadable: what was found so far, by position; ranges don't touch unless their reasons
    differ.
    """

    def __init__(self, descriptor: int, size: int, source: RangedBytes | None = None) -> None:
        """Takes an open file, and what it stands for if its bytes lie elsewhere."""
        self._descriptor = descriptor
        self._source = source
        self._size = size
        self._waited = 0.0
        self._skip = _PIECES[0]
        self.unreadable: list[UnreadableRange] = []

    @classmethod
    def without_file(cls, size: int, reason: str) -> "BlockReader":
        """A file of which nothing can be read, since it can't even be opened."""
        reader = cls(-1, size)
        reader.unreadable.append(UnreadableRange(0, size, reason))
        return reader

    def read(self, position: int, size: int) -> bytes:
        """Bytes of the file, fewer where it ends."""
        if not self.unreadable:
            try:
                found = self._bytes_at(position, size)
            except OSError as error:
                if error.errno in _OWN_FAULTS:
                    raise
            else:
                if self._source is None or len(found) == min(size, self._size - position):
                    return found
        buffer = bytearray(max(min(size, self._size - position), 0))
        return bytes(memoryview(buffer)[: self.read_into(position, memoryview(buffer))])

    def read_into(self, position: int, buffer: memoryview) -> int:
        """Fills a buffer; gives how many bytes were there."""
        filled = 0
        while filled < len(buffer):
            at = position + filled
            known = next(self.unreadable_in(at, position + len(buffer)), None)
            if known is not None and known.start <= at:
                count = min(known.end, position + len(buffer)) - at
                buffer[filled : filled + count] = _FILL * count
            else:
                end = len(buffer) if known is None else known.start - position
                count = self._read(at, buffer[filled:end])
            if count == 0:
                break
            filled += count
        return filled

    def unreadable_in(self, start: int, end: int) -> Iterator[UnreadableRange]:
        """The unreadable ranges found so far that have bytes from `start` to before `end`."""
        slot = max(bisect_right(self.unreadable, start, key=_start_of) - 1, 0)
        for found in self.unreadable[slot:]:
            if found.start >= end:
                return
            if found.end > start:
                yield found

    def _read(self, position: int, buffer: memoryview) -> int:
        """One read; where it fails the same by smaller pieces, as long as patience lasts."""
        began = time.monotonic()
        try:
            return self._fill(position, buffer)
        except OSError as error:
            if error.errno in _OWN_FAULTS:
                raise
            reason = f"can't be read: {error.strerror}"
        self._waited += time.monotonic() - began
        if self._source is not None:
            return self._read_by_stretches(position, buffer, self._source, reason)
        piece = next((size for size in _PIECES if size < len(buffer)), None)
        if piece is None or self._waited > PATIENCE:
            return self._give_up(position, buffer, reason)
        filled = 0
        while filled < len(buffer):
            end = min((position + filled) // piece * piece + piece - position, len(buffer))
            count = self._read(position + filled, buffer[filled:end])
            if count == 0:
                break
            filled += count
        return filled

    def _read_by_stretches(self, position: int, buffer: memoryview, source: RangedBytes, reason: str) -> int:
        """The same chunk by chunk: one that can't be had is given up as a whole."""
        end = min(source.stretch_end(position), self._size)
        if end - position < len(buffer):
            return self._read(position, buffer[: end - position])
        self._remember(position, end, reason)
        buffer[:] = _FILL * len(buffer)
        return len(buffer)

    def _bytes_at(self, position: int, size: int) -> bytes:
        if self._source is None:
            return os.pread(self._descriptor, size, position)
        return self._source.read(position, size)

    def _fill(self, position: int, buffer: memoryview) -> int:
        if self._source is None:
            return os.preadv(self._descriptor, [buffer], position)
        found = self._source.read(position, len(buffer))
        buffer[: len(found)] = found
        return len(found)

    def _give_up(self, position: int, buffer: memoryview, reason: str) -> int:
        """Remembers the blocks that some bytes lie in; without patience ever larger stretches that follow, too."""
        end = position + len(buffer)
        if self._waited > PATIENCE:
            end, self._skip = max(end, position + self._skip), 2 * self._skip
        start = position // SMALLEST_BLOCK * SMALLEST_BLOCK
        self._remember(start, min(-(-end // SMALLEST_BLOCK) * SMALLEST_BLOCK, self._size), reason)
        buffer[:] = _FILL * len(buffer)
        return len(buffer)

    def _remember(self, start: int, end: int, reason: str) -> None:
        known = self.unreadable
        first = last = bisect_right(known, start, key=_start_of)
        if first and known[first - 1].end >= start and known[first - 1].reason == reason:
            first -= 1
        while last < len(known) and known[last].start <= end and known[last].reason == reason:
            last += 1
        joined = known[first:last]
        start, end = min([start, *(each.start for each in joined)]), max([end, *(each.end for each in joined)])
        known[first:last] = [UnreadableRange(start, end, reason)]


def _start_of(found: UnreadableRange) -> int:
    return found.start
