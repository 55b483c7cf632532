"""Headless batches: their first bytes are elsewhere, lost or uncertain, and follow from the batch after them."""

from collections.abc import Container, Iterator
from functools import lru_cache
from typing import NamedTuple

from kseg.carve.piece_crcs import PieceCrcs
from kseg.carve.runs import Run, Runs, StartIndex, TornHead
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD
from kseg.formats.header_fields import BATCH_BASE_OFFSET, BATCH_HEADER_FIELDS, BATCH_LENGTH, BATCH_MAGIC
from kseg.kernel.carve_contract import SURE_BREAK
from kseg.reading.batch import BatchHeader, parse_header

EPOCH = BATCH_HEADER_FIELDS.field("partition_leader_epoch")
_CRC = BATCH_HEADER_FIELDS.field("crc")
_LAST_OFFSET_DELTA = BATCH_HEADER_FIELDS.field("last_offset_delta")
_LEAST_SEARCHED = 1 << 20
"""The least bytes before a run in which a batch without its first bytes is looked for: `message.max.bytes`."""
_MOST_KEPT = 1 << 10
"""The most headers of rests that are kept."""


class Headless(NamedTuple):
    """A batch before a run: its header, its rebuilt first bytes, and the pieces that have the other ones."""

    header: BatchHeader
    rebuilt: bytes
    pieces: tuple[tuple[int, int], ...]


def find_headless(runs: Runs, run: Run) -> Headless | None:
    """Return the batch before a run that its CRC alone shows, if there is just one."""
    start = run.start - min(runs.uncovered_before(run.start), max(_LEAST_SEARCHED, runs.largest_batch))
    start += runs.room_after(start)
    if start >= run.start:
        return None
    tail = runs.images.read(start, run.start)
    found = runs.kernel.find_headless(memoryview(tail), runs.block)
    if len(found) != 1:
        return None
    at, missing = found[0]
    known = bytes(missing) + tail[at : at + BATCH_HEADER_SIZE - missing]
    pieces = ((start + at, run.start),)
    return rebuild_batch(known, len(tail) - at + missing, missing, run.base_offset, run.first_epoch, pieces)


def rebuild_batch(
    known: bytes, size: int, missing: int, next_offset: int, epoch: int, pieces: tuple[tuple[int, int], ...]
) -> Headless | None:
    """Return a batch whose first bytes are rebuilt, so that it ends where the next one begins.

    known: its header, in which the `missing` first bytes have any values. None if it would begin before offset 0.
    """
    base_offset = next_offset - _LAST_OFFSET_DELTA.read(known) - 1
    if base_offset < 0:
        return None
    header = bytearray(known)
    BATCH_BASE_OFFSET.write(header, base_offset)
    BATCH_LENGTH.write(header, size - LOG_OVERHEAD)
    EPOCH.write(header, epoch)
    BATCH_MAGIC.write(header, 2)
    rebuilt = bytes(header[:missing])
    return Headless(parse_header(rebuilt + known[missing:], 0, pieces[0][0], is_valid=True), rebuilt, pieces)


class EarlyBreaks:
    """Rests of batches whose head ends before SURE_BREAK: the CRC proves them, but not whose head it is."""

    def __init__(self, runs: Runs, crcs: PieceCrcs, index: StartIndex, most_candidates: int) -> None:
        self._runs, self._crcs, self._index, self._most = runs, crcs, index, most_candidates
        self._first_bytes = lru_cache(_MOST_KEPT)(self._read_first_bytes)

    def _read_first_bytes(self, position: int) -> bytes:
        return self._runs.images.read(position, position + BATCH_HEADER_SIZE)

    def fits(self, head: TornHead, taken: Container[int]) -> Iterator[tuple[int, Headless]]:
        """Yield runs before which a head has its rest, and the batch with the run's own offset and epoch.

        taken: numbers of runs that aren't tried.
        """
        size, room, position = head.header.size, head.room, head.header.position
        if room >= min(SURE_BREAK, size) or head.header.is_legacy:
            return
        beginning = self._runs.images.read(position, position + room)
        for number in self._index.after(self._runs.place_of(head.end), head.header.first_offset, self._most):
            run = self._runs.runs[number]
            start = run.start - (size - room)
            if number in taken or start < run.start - self._runs.uncovered_before(run.start):
                continue
            known = (beginning + self._first_bytes(start))[:BATCH_HEADER_SIZE]
            if head.header.first_offset + _LAST_OFFSET_DELTA.read(known) + 1 != run.base_offset:
                continue
            rest = self._crcs.rest(run.start, size - room)
            (wanted,) = self._runs.kernel.wanted_crcs(memoryview(known), size, _CRC.read(known), room, size)
            if rest.crcs[(size - room - rest.least) // self._runs.block] == wanted:
                pieces = ((position + EPOCH.end, position + room), (start, run.start))
                batch = rebuild_batch(known, size, EPOCH.end, run.base_offset, run.first_epoch, pieces)
                if batch is not None:
                    yield number, batch
