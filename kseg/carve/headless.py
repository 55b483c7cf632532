"""Headless batches: their first bytes are elsewhere, lost or uncertain, and follow from the batch after them."""

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from kseg import kernel
from kseg.carve.piece_crcs import PieceCrcs
from kseg.carve.runs import Run, Runs, StartIndex, TornHead
from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, BATCH_LENGTH, BATCH_MAGIC
from kseg.kernel.carve_contract import SURE_BREAK
from kseg.reading.batch import BatchHeader, parse_header

EPOCH = BATCH_HEADER_FIELDS.field("partition_leader_epoch")
_LEAST_SEARCHED = 1 << 20
"""The least bytes before a run in which a batch without its first bytes is looked for: `message.max.bytes`."""
_MOST_KEPT = 1 << 10
"""The most headers of rests that are kept."""


class Headless(NamedTuple):
    """A batch before a run: its rebuilt first bytes, and the pieces that have the other ones."""

    rebuilt: bytes
    pieces: tuple[tuple[int, int], ...]


def find_headless(runs: Runs, run: Run) -> Headless | None:
    """Return the batch before a run that its CRC alone shows, if there is just one."""
    start = run.start - min(runs.uncovered_before(run.start), max(_LEAST_SEARCHED, runs.largest_batch))
    start += runs.room_after(start)
    if start >= run.start:
        return None
    tail = runs.images.read(start, run.start)
    found = kernel.load().find_headless(memoryview(tail), runs.block)
    if len(found) != 1:
        return None
    at, missing = found[0]
    size = len(tail) - at + missing
    known = bytes(missing) + tail[at : at + BATCH_HEADER_SIZE]
    header = parse_header(_with_magic(known), 0, start + at)._replace(size=size)
    follower = runs.batches.header(run.first)
    rebuilt = rebuild_head(header, follower, follower.partition_leader_epoch)[:missing]
    return Headless(rebuilt, ((start + at, run.start),)) if rebuilt else None


class EarlyBreaks:
    """Rests of batches whose head ends before SURE_BREAK: the CRC proves them, but not whose head it is."""

    def __init__(self, runs: Runs, crcs: PieceCrcs, index: StartIndex, most_candidates: int) -> None:
        self._runs, self._crcs, self._index, self._most = runs, crcs, index, most_candidates
        self._first_bytes = lru_cache(_MOST_KEPT)(self._read_first_bytes)

    def _read_first_bytes(self, position: int) -> bytes:
        return self._runs.images.read(position, position + BATCH_HEADER_SIZE)

    def fits(self, head: TornHead) -> Iterator[tuple[Run, Headless]]:
        """Yield the runs before which a head has its rest, and the batch with the run's own offset and epoch."""
        size, room, position = head.header.size, head.room, head.header.position
        if room >= min(SURE_BREAK, size) or head.header.is_legacy:
            return
        beginning = self._runs.images.read(position, position + room)
        for number in self._index.after(self._runs.place_of(head.end), head.header.first_offset, self._most):
            run = self._runs.runs[number]
            start = run.start - (size - room)
            if start < run.start - self._runs.uncovered_before(run.start):
                continue
            known = (beginning + self._first_bytes(start))[:BATCH_HEADER_SIZE]
            header = parse_header(known, 0, position)
            if header.last_offset + 1 != run.base_offset:
                continue
            rest = self._crcs.rest(run.start, size - room)
            (wanted,) = kernel.load().wanted_crcs(memoryview(known), size, header.crc, room, size)
            if rest.crcs[(size - room - rest.least) // self._runs.block] == wanted:
                rebuilt = rebuild_head(header, self._runs.batches.header(run.first), run.first_epoch)[: EPOCH.end]
                yield run, Headless(rebuilt, ((position + EPOCH.end, position + room), (start, run.start)))


def _with_magic(header: bytes) -> bytes:
    return header[: BATCH_MAGIC.position] + b"\2" + header[BATCH_MAGIC.end :]


def rebuild_head(header: BatchHeader, follower: BatchHeader, epoch: int) -> bytes:
    """Return the first bytes of a batch, up to its magic, so that it ends where another one begins.

    Empty if it would begin before offset 0.
    """
    base_offset = follower.first_offset - (header.last_offset - header.first_offset) - 1
    if base_offset < 0:
        return b""
    head = bytearray(BATCH_MAGIC.end)
    BATCH_HEADER_FIELDS.field("base_offset").write(head, base_offset)
    BATCH_LENGTH.write(head, header.size - LOG_OVERHEAD)
    EPOCH.write(head, epoch)
    BATCH_MAGIC.write(head, 2)
    return bytes(head)
