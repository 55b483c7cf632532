"""Batches of a log at given positions, as far as the checks of its indexes need them."""

from array import array
from enum import StrEnum
from typing import NamedTuple

from kseg import kernel
from kseg.bodies import Slice, with_bodies
from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    LOG_OVERHEAD,
    MINIMUM_HEADER_SIZE,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    Codec,
)
from kseg.formats.fixed import BATCH_HEADER_FIELDS, LOG_ENTRY_HEADER_V0_FIELDS
from kseg.kernel.contract import SIZE, Program
from kseg.layouts.compiler import compile_template
from kseg.log_file import BUFFER_SIZE, Damage, LogFile, Run

READ_AHEAD = 4096
"""Bytes read for a header and those behind it: what lies between two entries of an index."""
EMPTY_BATCHES = 64
"""Batches without records that are passed over in search for a record."""
WALK_FACTOR = 4
"""Batches that all searches may look at, for each that the log can hold and each entry that asks."""
RECORD_LINE = "{offset} {timestamp}\n"
_SMALLEST_SIZE_FIELD = min(MINIMUM_SIZE_FIELD.values())


class NoBatch(StrEnum):
    """Why there is nothing to compare an entry with."""

    NEGATIVE = "have a negative position"
    BEYOND_END = "point behind the log's last whole batch"
    NO_HEADER = "point where no batch begins"
    TOO_LARGE = "point to a batch larger than --max-message-size"
    UNREADABLE = "point to a batch whose records can't be read"
    TOO_FAR = "would have to be searched for in too much of the log"


class LogBatch(NamedTuple):
    """A batch or v0/v1 log entry, as its header tells.

    `position` and `size` in bytes. `base_offset` and `last_offset` of a v0/v1 entry are both the entry's offset.
    """

    position: int
    size: int
    magic: int
    codec: int
    base_offset: int
    last_offset: int


def wrap_offset(offset: int) -> int:
    """A sum of offsets as Java's 64 bits hold it."""
    return (offset + 2**63) % 2**64 - 2**63


class _Records:
    """What the kernel's lines tell of a batch's records, kept without keeping the lines."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forgets the last batch."""
        self.first_offset: int | None = None
        self.largest_timestamp = NO_TIMESTAMP
        self._cut_line = b""

    def take(self, piece: memoryview) -> None:
        """Takes some bytes of the lines that RECORD_LINE makes."""
        text, end, self._cut_line = (self._cut_line + piece).rpartition(b"\n")
        if end:
            numbers = text.split()
            if self.first_offset is None:
                self.first_offset = int(numbers[0])
            self.largest_timestamp = max(self.largest_timestamp, *map(int, numbers[1::2]))


class BatchReader:
    """Reads single batches of a log, with their CRCs not looked at: an index is compared, the log isn't checked."""

    def __init__(self, log: LogFile, largest: int, limit: int) -> None:
        """Reads from an open log.

        Args:
            log: the log.
            largest: bytes of a batch that `batch_at` gives at most: Kafka's --max-message-size.
            limit: bytes that a body may become at most.
        """
        self._log = log
        self._largest = largest
        self._limit = limit
        self._buffer, self._buffer_position = bytes(BATCH_HEADER_SIZE), -BATCH_HEADER_SIZE
        self._walk: tuple[int, int, int] | None = None
        self._walk_budget = WALK_FACTOR * (log.size // MINIMUM_HEADER_SIZE + 1)
        self._records = _Records()
        self._output = kernel.load().Output(self._records.take, BUFFER_SIZE)
        line = compile_template(RECORD_LINE)
        self._renderer = kernel.load().Renderer(
            Program((None, None, None), (line, line, line), None), self._output, None, None, 0, None
        )

    @property
    def is_empty(self) -> bool:
        """Whether the log has no bytes."""
        return self._log.size == 0

    def batch_at(self, position: int) -> LogBatch | NoBatch:
        """The batch that begins at a position."""
        batch = self._header(position, BATCH_HEADER_SIZE)
        return NoBatch.TOO_LARGE if isinstance(batch, LogBatch) and batch.size > self._largest else batch

    def first_offset(self, batch: LogBatch) -> int | NoBatch:
        """The offset of the first record that is there in the batch, or behind it if it has none."""
        found: LogBatch | NoBatch = batch
        for _ in range(EMPTY_BATCHES):
            if isinstance(found, NoBatch):
                return found
            if found.magic < 2 and found.codec == Codec.NONE:
                return found.base_offset
            is_whole = self._read_records(found)
            if self._records.first_offset is not None:
                return self._records.first_offset
            if not is_whole:
                return NoBatch.UNREADABLE
            found = self._header(found.position + found.size, BATCH_HEADER_SIZE)
        return NoBatch.TOO_FAR

    def largest_timestamp(self, batch: LogBatch) -> int | NoBatch:
        """The largest timestamp of the batch's records, -1 without records or timestamps."""
        return self._records.largest_timestamp if self._read_records(batch) else NoBatch.UNREADABLE

    def find(self, start: int, offset: int) -> LogBatch | NoBatch:
        """The first batch from a batch's position on that ends at an offset or behind it."""
        position = start
        if self._walk is not None and self._walk[0] == start and self._walk[1] <= offset:
            position = self._walk[2]  # all batches before it end before that offset
        self._walk_budget += WALK_FACTOR
        while self._walk_budget > 0:
            self._walk_budget -= 1
            batch = self._header(position, READ_AHEAD)
            if isinstance(batch, NoBatch) or batch.last_offset >= offset:
                self._walk = start, offset, position
                return batch
            position += batch.size
        return NoBatch.TOO_FAR

    def _header(self, position: int, size: int) -> LogBatch | NoBatch:
        """The header at a position; reads `size` bytes if it isn't there yet."""
        if position < 0:
            return NoBatch.NEGATIVE
        left = self._log.size - position
        if left < MINIMUM_HEADER_SIZE:
            return NoBatch.BEYOND_END
        at = position - self._buffer_position
        if not 0 <= at <= len(self._buffer) - BATCH_HEADER_SIZE:
            self._buffer = self._log.read(position, size).ljust(BATCH_HEADER_SIZE, b"\0")
            self._buffer_position, at = position, 0
        fields = BATCH_HEADER_FIELDS.struct.unpack_from(self._buffer, at)
        base_offset, length, _, magic, _, attributes, last_offset_delta = fields[:7]
        if length < _SMALLEST_SIZE_FIELD:
            return NoBatch.NO_HEADER
        if length + LOG_OVERHEAD > left:
            return NoBatch.BEYOND_END
        if magic < 2:
            attributes = LOG_ENTRY_HEADER_V0_FIELDS.struct.unpack_from(self._buffer, at)[4]
            last_offset_delta = 0
        last_offset = wrap_offset(base_offset + last_offset_delta)
        return LogBatch(position, length + LOG_OVERHEAD, magic, attributes & CODEC_MASK, base_offset, last_offset)

    def _read_records(self, batch: LogBatch) -> bool:
        """Reads the batch's records into `_records`; gives whether all could be read."""
        self._records.clear()
        run = self._run(batch)
        if run is None:
            return False
        is_whole = True
        for piece in with_bodies(iter((run,)), 0, self._limit):
            assert isinstance(piece, Slice)
            self._renderer.render(run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies)
            is_whole = is_whole and not piece.damages
        self._output.flush()
        is_whole = is_whole and not self._renderer.problems
        self._renderer.problems.clear()
        return is_whole

    def _run(self, batch: LogBatch) -> Run | None:
        """The batch alone, as the kernel takes it; None if its length can't be one of its magic."""
        least = MINIMUM_SIZE_FIELD.get(batch.magic)
        if least is None or batch.size < least + LOG_OVERHEAD:
            return None
        if batch.size > BUFFER_SIZE:
            # So large a length is believed only as far as the log's own reading believes it.
            run = next(self._log.runs(batch.position), None)
            return run._replace(count=1) if isinstance(run, Run) and run.rows[SIZE] == batch.size else None
        buffer = memoryview(self._log.read(batch.position, batch.size))
        rows = array("q", (0, batch.size, 1))
        return Run(buffer, batch.position, rows, 1, 1 << batch.codec) if len(buffer) == batch.size else None
