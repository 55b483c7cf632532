"""Batches in bytes that a program changed as text, restored if their CRC is right then."""

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import combinations

from kseg.formats.codes import ENTRY_MINIMUM_SIZE, MAGIC_POSITION, checksum_of, claimed_size, crc_function

LARGEST_BATCH = 16 << 20
"""The size above which a batch isn't tried."""
HEAD = 256
"""Bytes that show the type of a batch."""
PIECE = 1 << 20
_MOST_CRS = 1 << 20
"""The number of lines above which a batch isn't tried."""
_MOST_OWN = 32
"""The most original CRLFs of a batch next to the added ones."""
_TRIED_BYTES = 256 << 20
"""The bytes of all trials that distinguish original CRLFs from added ones."""
_LEAST_TRIAL = 4 << 10
"""The least cost of a trial."""
_CRLF = re.compile(rb"\r\n")


class Trials:
    """The remaining budget of trials that distinguish a log's own CRLFs from added ones."""

    def __init__(self, size: int = _TRIED_BYTES) -> None:
        self.left = size


class ChangedBatches:
    """Batches in a stream of bytes in which CRs may have been added before LFs.

    Only the CRC shows which CRs were there before: programs don't change a CRLF. position: the number of taken bytes;
    taken: the last of them.
    """

    def __init__(self, pieces: Iterator[bytes], trials: Trials, *, has_crs: bool) -> None:
        self._pieces, self._trials, self._has_crs = pieces, trials, has_crs
        self._buffer, self._at = b"", 0
        self.position = 0
        self.taken = b""

    def peek(self, size: int) -> bytes:
        """Return the next bytes, fewer at the end of the stream."""
        if len(self._buffer) - self._at < size:
            parts = [self._buffer[self._at :]]
            count = len(parts[0])
            while count < size and (piece := next(self._pieces, None)) is not None:
                parts.append(piece)
                count += len(piece)
            self._buffer, self._at = b"".join(parts), 0
        return self._buffer[self._at : self._at + size]

    def _advance(self, content: bytes, size: int) -> bytes:
        self.taken = self._buffer[self._at : self._at + size]
        self.position += size
        self._at += size
        return content

    def take(self) -> bytes | None:
        """Take the next batch in its original form, or None if no form has the right CRC."""
        head = self.peek(HEAD)
        size = claimed_size(head)
        if size is not None and size <= LARGEST_BATCH and _is_intact(batch := self.peek(size), size):
            return self._advance(batch, size)
        if not self._has_crs or b"\r\n" not in self.peek(max(size or 0, HEAD)):
            return None
        for claimed in dict.fromkeys((claimed_size(_without_crs(head)), size)):
            if claimed is None or claimed > LARGEST_BATCH:
                continue
            least = self._trials.left // 2
            for batch, end in _ways(self.peek(2 * claimed), claimed):
                if _is_intact(batch, claimed):
                    return self._advance(batch, end)
                self._trials.left -= max(claimed, _LEAST_TRIAL)
                if self._trials.left <= least:
                    break
        return None

    def skip(self, most: int) -> bytes | None:
        """Skip a claimed batch, and return it without the CRs; None if there is none, or it exceeds `most` bytes."""
        head = self.peek(HEAD)
        size = claimed_size(_without_crs(head) if self._has_crs else head)
        if size is None or size > LARGEST_BATCH:
            return None
        if not self._has_crs:
            return self._advance(self.peek(size), size) if size <= most else None
        held = self.peek(2 * size)
        if held.count(b"\r\n") > _MOST_CRS:
            return None
        end = size + _count_before(_crs_of(held), size)
        return self._advance(_without_crs(held[:end]), end) if end <= min(most, len(held)) else None

    def rest(self) -> Iterator[bytes]:
        """Yield the remaining bytes without CRs before LFs."""
        while piece := self.peek(PIECE):
            size = len(piece) - piece.endswith(b"\r") if len(piece) > 1 else len(piece)
            content = self._advance(piece[:size], size)
            yield _without_crs(content) if self._has_crs else content


def _without_crs(piece: bytes) -> bytes:
    return piece.replace(b"\r\n", b"\n")


def _is_intact(batch: bytes, size: int) -> bool:
    if len(batch) != size or size < ENTRY_MINIMUM_SIZE:
        return False
    magic = batch[MAGIC_POSITION]
    covered = memoryview(batch)[checksum_of(magic).covers_from :]
    return crc_function(magic)(covered, 0) == checksum_of(magic).read_stored(batch)


def _ways(held: bytes, size: int) -> Iterator[tuple[bytes, int]]:
    """Yield the possible forms of a batch of a size: without CRs before LFs, with one of them, with two, and so on.

    Each has the number of bytes that it takes from the stream. There are none if an LF has no CR, since programs
    change every LF.
    """
    if held.count(b"\r\n") > _MOST_CRS:
        return
    crs = _crs_of(held)
    count = _count_before(crs, size)
    if size > len(held) or not count or held.count(b"\n", 0, min(size + count, len(held))) > count:
        return
    for kept_count in range(min(count, _MOST_OWN)):
        found = _count_before(crs, size - kept_count)
        end = size - kept_count + found
        if end > len(held):
            continue
        for kept in combinations(range(found), kept_count):
            yield _cut_out(held[:end], [crs[number] for number in range(found) if number not in kept]), end


def _crs_of(held: bytes) -> list[int]:
    """Return the positions of CRs before LFs."""
    return [match.start() for match in _CRLF.finditer(held)]


def _count_before(crs: Sequence[int], size: int) -> int:
    """Return how many of some CRs come before the end of `size` other bytes."""
    return bisect_left(range(len(crs)), size, key=lambda number: crs[number] - number)


def _cut_out(batch: bytes, positions: list[int]) -> bytes:
    """Return bytes without those at some positions."""
    starts = [0, *(position + 1 for position in positions)]
    return b"".join(batch[start:end] for start, end in zip(starts, [*positions, len(batch)], strict=True))
