"""Headers of batches without their records: walked with few bytes read, or taken from runs that were checked."""

from collections.abc import Iterator
from typing import NamedTuple

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    Codec,
)
from kseg.formats.fixed import BATCH_HEADER_FIELDS, LOG_ENTRY_HEADER_V0_FIELDS, LOG_ENTRY_HEADER_V1_FIELDS
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.reading.batch import Batch
from kseg.reading.log_file import BUFFER_SIZE, Damage, LogFile, Run

WINDOW_SIZE = 1 << 14
"""Bytes read at once while batches are small."""
LARGE_BATCH = 1 << 12
"""Behind a batch of this size only the next header is read."""
SMALLEST_HEADER = LOG_ENTRY_HEADER_V0_FIELDS.struct.size

_BATCH = BATCH_HEADER_FIELDS.struct
_ENTRY_V0 = LOG_ENTRY_HEADER_V0_FIELDS.struct
_ENTRY_V1 = LOG_ENTRY_HEADER_V1_FIELDS.struct


class BatchHeader(NamedTuple):
    """What the header of a batch, or of a v0 or v1 log entry, says. What a format doesn't have is -1.

    `position` and `size` are bytes of the file. `base_offset` and `records_count` are None for a v0 or v1 wrapper: they
    lie in its compressed value. `is_valid`: the CRC holds; None if nobody looked.
    """

    position: int
    size: int
    magic: int
    attributes: int
    base_offset: int | None
    last_offset: int
    partition_leader_epoch: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int | None
    is_valid: bool | None

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec."""
        return self.attributes & CODEC_MASK

    @property
    def is_control(self) -> bool:
        """Whether it holds a control record."""
        return self.magic >= 2 and bool(self.attributes & CONTROL_MASK)

    @property
    def is_transactional(self) -> bool:
        """Whether it belongs to a transaction."""
        return self.magic >= 2 and bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker's clock set the times."""
        return self.magic >= 1 and bool(self.attributes & TIMESTAMP_TYPE_MASK)

    @property
    def end(self) -> int:
        """Position behind it."""
        return self.position + self.size

    @property
    def last_sequence(self) -> int:
        """Sequence of its last record, -1 for none; runs on at 0 behind 2³¹ - 1."""
        if self.base_sequence < 0 or self.base_offset is None:
            return -1
        return (self.base_sequence + self.last_offset - self.base_offset) & 0x7FFFFFFF


def parse_header(buffer: bytes | memoryview, at: int, position: int, is_valid: bool | None = None) -> BatchHeader:
    """The header at byte `at` of a buffer, which holds it whole; `position` is its place in the file."""
    magic = buffer[at + MAGIC_POSITION]
    if magic >= 2:
        base_offset, length, epoch, magic, _, attributes, delta, *others = _BATCH.unpack_from(buffer, at)
        size, last_offset = length + LOG_OVERHEAD, base_offset + delta
        fields = (position, size, magic, attributes, base_offset, last_offset, epoch, *others, is_valid)
        return BatchHeader._make(fields)
    timestamp = NO_TIMESTAMP
    if magic == 0:
        offset, size, _, magic, attributes, _ = _ENTRY_V0.unpack_from(buffer, at)
    else:
        offset, size, _, magic, attributes, timestamp, _ = _ENTRY_V1.unpack_from(buffer, at)
    plain = attributes & CODEC_MASK == Codec.NONE
    return BatchHeader(
        position,
        size + LOG_OVERHEAD,
        magic,
        attributes,
        offset if plain else None,
        offset,
        -1,
        timestamp,
        timestamp,
        -1,
        -1,
        -1,
        1 if plain else None,
        is_valid,
    )


def headers_of(run: Run) -> Iterator[BatchHeader]:
    """The headers of a run's batches."""
    rows = run.rows
    for row in range(0, run.row_count * ROW, ROW):
        start = rows[row + START]
        yield parse_header(run.buffer, start, run.position + start, bool(rows[row + VALID]))


def checked_headers(log_file: LogFile, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Headers of all batches from a batch's position on, CRCs checked, and damages; every byte is read."""
    for item in log_file.runs(start):
        if isinstance(item, Damage):
            yield item
        else:
            yield from headers_of(item)


def walk_headers(log_file: LogFile, start: int = 0) -> Iterator[BatchHeader | Damage]:
    """Headers from a batch's position on, CRCs unchecked (`is_valid` None); reads little but headers.

    As Kafka does it: a length is believed as far as the file goes. Where no header can stand, LogFile's careful reading
    says what lies there, and the walk goes on behind it. Source: FileLogInputStream.
    """
    position = start
    window, window_position, wanted = b"", start, WINDOW_SIZE
    while position < log_file.size:
        at = position - window_position
        if at + BATCH_HEADER_SIZE > len(window):
            window, window_position, at = log_file.read(position, wanted), position, 0
            if not window:
                return  # the file was cut while it was read
        header = _plausible_header(window, at, position, log_file.size)
        if header is not None and log_file.is_readable(position, BATCH_HEADER_SIZE):
            yield header
            position = header.end
            wanted = WINDOW_SIZE if header.size < LARGE_BATCH else BATCH_HEADER_SIZE
            continue
        for item in log_file.runs(position):
            yield from headers_of(item) if isinstance(item, Run) else (item,)
            position = _end(item)
            break
        else:
            return


def intact_header(log_file: LogFile, position: int) -> BatchHeader | None:
    """The header of the batch at a position, if one stands there and its CRC holds; reads little but that batch."""
    window = log_file.read(position, BATCH_HEADER_SIZE)
    header = _plausible_header(window, 0, position, log_file.size)
    return header._replace(is_valid=True) if header is not None and is_intact(log_file, header) else None


def is_intact(log_file: LogFile, header: BatchHeader) -> bool:
    """Whether the CRC of the batch holds; reads it, a large one by pieces."""
    if header.size > BUFFER_SIZE:
        item = next(log_file.runs(header.position), None)
        return isinstance(item, Run) and bool(item.rows[VALID])
    raw = log_file.read(header.position, header.size)
    if len(raw) < header.size:
        return False
    batch = Batch.parse(raw, header.position, is_valid=True)
    return batch.compute_crc() == batch.crc and log_file.is_readable(header.position, header.size)


def _plausible_header(window: bytes, at: int, position: int, file_size: int) -> BatchHeader | None:
    left = len(window) - at
    if left < SMALLEST_HEADER or (window[at + MAGIC_POSITION] and left < _ENTRY_V1.size):
        return None
    magic = window[at + MAGIC_POSITION]
    if magic > 2 or (magic == 2 and left < BATCH_HEADER_SIZE):
        return None
    header = parse_header(window, at, position)
    if header.size - LOG_OVERHEAD < MINIMUM_SIZE_FIELD[magic] or header.end > file_size:
        return None
    return header


def _end(item: Run | Damage) -> int:
    if isinstance(item, Damage):
        return item.position + item.size
    last = (item.row_count - 1) * ROW
    size: int = item.rows[last + START] + item.rows[last + SIZE]
    return item.position + size
