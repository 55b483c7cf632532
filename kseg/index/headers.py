"""Headers of batches without their records: read with few bytes, or taken from runs that were checked."""

from collections.abc import Iterator

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MINIMUM_SIZE_FIELD,
)
from kseg.formats.fixed import (
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
)
from kseg.kernel.contract import ROW, SIZE, START, VALID
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.reading.header import BatchHeader, parse_header
from kseg.reading.log_file import BUFFER_SIZE, LogFile, Run

WINDOW_SIZE = 1 << 14
"""Bytes read at once while batches are small."""
LARGE_BATCH = 1 << 12
"""After a batch of this size, only the next header is read."""
SMALLEST_HEADER = LOG_ENTRY_HEADER_V0_FIELDS.struct.size


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

    As in Kafka, a length is trusted up to the end of the file. Where there can't be a header, LogFile reads carefully
    what is there, and the walk continues after that. Source: FileLogInputStream.
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
    """The header of the batch at a position, if there is one and its CRC is right; reads little but that batch."""
    window = log_file.read(position, BATCH_HEADER_SIZE)
    header = _plausible_header(window, 0, position, log_file.size)
    return header._replace(is_valid=True) if header is not None and is_intact(log_file, header) else None


def is_intact(log_file: LogFile, header: BatchHeader) -> bool:
    """Whether the CRC of the batch is right; reads the batch, a large one in pieces."""
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
    if left < SMALLEST_HEADER or (window[at + MAGIC_POSITION] and left < LOG_ENTRY_HEADER_V1_FIELDS.struct.size):
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
