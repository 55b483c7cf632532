"""Batches at given positions, for checks of indexes, and slices with redacted headers."""

from array import array
from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from kseg import kernel
from kseg.codecs.limits import limit_for
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MINIMUM_HEADER_SIZE,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    Codec,
)
from kseg.kernel.contract import LEAST, MOST, ROW, SIZE, START, ReplaceContents
from kseg.kernel.entry_points import Bodies
from kseg.reading.batch import BatchHeader, parse_header
from kseg.reading.blocks import Damage
from kseg.reading.bodies import Slice, with_bodies
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run

if TYPE_CHECKING:
    from kseg.redaction import Redaction


def redacted_slices(pieces: Iterator[Slice | Damage], redaction: "Redaction | None") -> Iterator[Slice | Damage]:
    """Yield the slices with redacted headers of v2 records, if requested; v0 and v1 have no headers.

    `RedactingDecoder` replaces keys and values at rendering: messages of v0 and v1 have CRCs of their own, which are
    shown as stored in the log.
    """
    if redaction is None or "headers" not in redaction.parts:
        yield from pieces
        return
    replace = kernel.load().Replacer(redaction.redactor(), keeps_keys=True)
    for piece in pieces:
        yield piece if isinstance(piece, Damage) else _redact(piece, replace)


def _redact(piece: Slice, replace: ReplaceContents) -> Slice:
    rows, buffer = piece.run.rows, bytearray(piece.run.buffer)
    replace_contents = kernel.load().replace_contents
    bodies: list[bytes | None] = []
    for row in range(piece.first, piece.last):
        start = rows[row * ROW + START]
        end = start + rows[row * ROW + SIZE]
        body = None if piece.bodies is None else piece.bodies[row - piece.first]
        header = parse_header(buffer, start, 0) if end - start >= BATCH_HEADER_SIZE else None
        if header is not None and not header.is_legacy:
            records = header.records_count or 0
            if header.codec == Codec.NONE:
                replace_contents(buffer, start + BATCH_HEADER_SIZE, end, records, None, replace)
            elif body is not None:
                changed = bytearray(body)
                replace_contents(changed, 0, len(changed), records, None, replace)
                body = bytes(changed)
        bodies.append(body)
    run = piece.run._replace(buffer=memoryview(buffer))
    if piece.bodies is None:
        return piece._replace(run=run)
    return piece._replace(run=run, bodies=bodies)  # type: ignore[arg-type]  # a list does as well


READ_AHEAD = 4096
"""Bytes read at once for a header and its successors: the distance between two entries of an index."""
EMPTY_BATCHES = 64
"""Most batches without records that a search for a record skips."""
WALKS, WALKS_FREE, WALK_OF_ENTRY = 2, 1 << 16, 2
"""Most batches that all searches may visit: per batch that fits in the log, in any log, and for each search."""
READS, READS_FREE = 32, 1 << 24
"""Most that all reading of records may cost: for each byte of the log, and in any log."""
COST_OF_READ, COST_OF_RECORD, RATIO_OF_BODY = 1 << 10, 1 << 6, 16
"""Costs of a batch and of a record in addition to their sizes, and the ratio for decompressed bytes."""
REMEMBERED = 1 << 14
"""Most batches whose records are cached: entries of a damaged index lead back and forth."""
_SMALLEST_SIZE_FIELD = min(MINIMUM_SIZE_FIELD.values())


class NoBatch(StrEnum):
    """A reason why an entry can't be compared."""

    NEGATIVE = "negative position"
    BEYOND_END = "position after the log's last complete batch"
    NO_HEADER = "position where no batch begins"
    TOO_LARGE = "batch larger than --max-message-size"
    UNREADABLE = "batch whose records can't be read"
    TOO_FAR = "batch that is too far away"
    TOO_COSTLY = "batch that isn't read, since earlier batches took too long"


class _Records(NamedTuple):
    """Facts about a batch's records: `first_offset` is None without any, `problem` is None if all could be read."""

    first_offset: int | None
    largest_timestamp: int
    problem: NoBatch | None


def wrap_offset(offset: int) -> int:
    """Return a sum of offsets as Java's 64 bits hold it."""
    return offset if LEAST <= offset <= MOST else (offset - LEAST) % 2**64 + LEAST


class BatchReader:
    """Reads single batches of a log. CRCs aren't checked, since only an index is compared."""

    def __init__(self, log: LogFile, largest: int, limit: int) -> None:
        """Read from an open log.

        Args:
            log: the log.
            largest: largest batch in bytes that `batch_at` returns: Kafka's --max-message-size.
            limit: most bytes of a decompressed body.
        """
        self._log = log
        self._largest = largest
        self._limit = limit
        self._buffer, self._buffer_position = bytes(BATCH_HEADER_SIZE), -BATCH_HEADER_SIZE
        self._walk: tuple[int, int, int] | None = None
        self._walk_budget = WALKS * (log.size // (_SMALLEST_SIZE_FIELD + LOG_OVERHEAD) + 1) + WALKS_FREE
        self._kernel = kernel.load()
        self._known: dict[int, _Records] = {}
        self._read_budget = READS * log.size + READS_FREE

    def batch_at(self, position: int) -> BatchHeader | NoBatch:
        """Return the batch that begins at a position."""
        batch = self._header(position, BATCH_HEADER_SIZE)
        return NoBatch.TOO_LARGE if isinstance(batch, BatchHeader) and batch.size > self._largest else batch

    def first_offset(self, batch: BatchHeader) -> int | NoBatch:
        """Return the offset of the first record in the batch; of an empty batch the offset after it."""
        found: BatchHeader | NoBatch = batch
        for _ in range(EMPTY_BATCHES):
            if isinstance(found, NoBatch):
                return found
            if found.magic < 2 and found.codec == Codec.NONE:
                return found.last_offset
            records = self._records(found)
            if records.first_offset is not None:
                return records.first_offset
            if records.problem is not None:
                return records.problem
            self._walk_budget -= 1
            if self._walk_budget < 0:
                break
            found = self._header(found.position + found.size, READ_AHEAD)
        return NoBatch.TOO_FAR

    def largest_timestamp(self, batch: BatchHeader) -> int | NoBatch:
        """Return the largest timestamp of the batch's records, -1 without records or timestamps."""
        records = self._records(batch)
        return records.largest_timestamp if records.problem is None else records.problem

    def find(self, start: int, offset: int) -> BatchHeader | NoBatch:
        """Return the first batch that ends at or after an offset, searching from a batch's position."""
        position = start
        if self._walk is not None and self._walk[0] == start and self._walk[1] <= offset:
            position = self._walk[2]  # all preceding batches end before that offset
        self._walk_budget += WALK_OF_ENTRY
        while self._walk_budget > 0:
            self._walk_budget -= 1
            batch = self._header(position, READ_AHEAD)
            if isinstance(batch, NoBatch) or batch.last_offset >= offset:
                self._walk = start, offset, position
                return batch
            position += batch.size
        return NoBatch.TOO_FAR

    def _header(self, position: int, size: int) -> BatchHeader | NoBatch:
        """Return the header at a position; read `size` bytes if it isn't buffered."""
        if position < 0:
            return NoBatch.NEGATIVE
        left = self._log.size - position
        if left < MINIMUM_HEADER_SIZE:
            return NoBatch.BEYOND_END
        at = position - self._buffer_position
        if not 0 <= at <= len(self._buffer) - BATCH_HEADER_SIZE:
            self._buffer = self._log.read(position, size).ljust(BATCH_HEADER_SIZE, b"\0")
            self._buffer_position, at = position, 0
        header = parse_header(self._buffer, at, position)
        if header.size < _SMALLEST_SIZE_FIELD + LOG_OVERHEAD:
            return NoBatch.NO_HEADER
        if header.size > left:
            return NoBatch.BEYOND_END
        if LEAST <= header.last_offset <= MOST:
            return header
        return header._replace(last_offset=wrap_offset(header.last_offset))

    def _records(self, batch: BatchHeader) -> _Records:
        """Return the batch's records; those of many batches are cached."""
        known = self._known.get(batch.position)
        if known is None:
            if len(self._known) == REMEMBERED:
                self._known.clear()
            known = self._known[batch.position] = self._read_records(batch)
        return known

    def _read_records(self, batch: BatchHeader) -> _Records:
        self._read_budget -= COST_OF_READ + batch.size
        if self._read_budget < 0:
            return _Records(None, NO_TIMESTAMP, NoBatch.TOO_COSTLY)
        run = self._run(batch)
        if run is None:
            return _Records(None, NO_TIMESTAMP, NoBatch.UNREADABLE)
        bodies, is_whole = self._bodies(run, batch)
        columns = self._kernel.columns(run.buffer, run.rows, 0, 1, batch.position, bodies)
        problem = None if is_whole and not columns.problems else NoBatch.UNREADABLE
        values_size = memoryview(columns.value_data).nbytes
        unpacked = limit_for(batch.size) if problem else values_size + COST_OF_RECORD * columns.count
        self._read_budget -= unpacked // RATIO_OF_BODY
        if columns.count == 0:
            return _Records(None, NO_TIMESTAMP, problem)
        offsets, timestamps = (
            memoryview(numbers).cast("B").cast("q") for numbers in (columns.offsets, columns.timestamps)
        )
        return _Records(offsets[0], max(NO_TIMESTAMP, max(timestamps)), problem)

    def _bodies(self, run: Run, batch: BatchHeader) -> tuple[Bodies | None, bool]:
        """Return the batch's body for the kernel, and whether it is complete, or None for an uncompressed batch."""
        if batch.codec == Codec.NONE:
            return None, True
        (piece,) = with_bodies(iter((run,)), 0, self._limit)
        assert isinstance(piece, Slice)
        return piece.bodies, not piece.damages

    def _run(self, batch: BatchHeader) -> Run | None:
        """Return a run of only this batch for the kernel, or None if its length is invalid for its magic."""
        least = MINIMUM_SIZE_FIELD.get(batch.magic)
        if least is None or batch.size < least + LOG_OVERHEAD:
            return None
        if batch.size > BUFFER_SIZE:
            # A length as large as this is trusted only as far as reading the log trusts it.
            run = next(self._log.runs(batch.position), None)
            return run._replace(row_count=1) if isinstance(run, Run) and run.rows[SIZE] == batch.size else None
        buffer = memoryview(self._log.read(batch.position, batch.size))
        rows = array("q", (0, batch.size, 1))
        return Run(buffer, batch.position, rows, 1, 1 << batch.codec) if len(buffer) == batch.size else None
