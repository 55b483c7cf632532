"""Headers of batches and log entries, as declared in formats.header_fields; finding, choosing and listing them."""

import os
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from kseg.formats.codes import (
    BATCH_HEADER_SIZE,
    CODEC_MASK,
    CONTROL_MASK,
    DELETE_HORIZON_MASK,
    ENTRY_MINIMUM_SIZE,
    FLAGS_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    TimestampType,
    checksum_of,
    crc_function,
    size_field,
)
from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_MAGIC,
    ENTRY_V0_OFFSET,
    ENTRY_V1_TIMESTAMP,
    HEADER_NAMES,
    KNOWN_ATTRIBUTES,
    LEAST_SIZES,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
)
from kseg.kernel.contract import MOST, ROW, BatchFilter, Buffer, Rows, Stop
from kseg.kernel.fold_contract import UNCHECKED


def int64(number: int) -> int:
    """Return a sum with the overflow of Java's long."""
    return (number + 2**63) % 2**64 - 2**63


class Header(NamedTuple):
    """A header's values by HEADER_NAMES, and whether it is a v2 batch's.

    A v0 or v1 entry, also a wrapper, is a batch of one record without producer here.
    """

    position: int
    base_offset: int
    size: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int
    is_valid: int
    is_batch: bool

    @property
    def codec(self) -> int:
        """Number of the codec; 0 if nothing is compressed."""
        return self.attributes & CODEC_MASK

    @property
    def is_wrapper(self) -> bool:
        """True if it is a v0 or v1 message that holds other messages."""
        return not self.is_batch and self.codec != 0

    @property
    def timestamp_type(self) -> int:
        """A TimestampType; v0 has none."""
        if self.magic != 1 and not self.is_batch:
            return TimestampType.NO_TIMESTAMP_TYPE.value
        return int(self.attributes & TIMESTAMP_TYPE_MASK != 0)

    @property
    def append_time(self) -> int | None:
        """Return the timestamp that the broker assigned to all records, if any."""
        return self.max_timestamp if self.timestamp_type == TimestampType.LOG_APPEND_TIME.value else None

    @property
    def is_transactional(self) -> bool:
        """True if it is part of a transaction."""
        return self.is_batch and self.attributes & TRANSACTIONAL_MASK != 0

    @property
    def is_control(self) -> bool:
        """True if its records are the broker's control records."""
        return self.is_batch and self.attributes & CONTROL_MASK != 0

    @property
    def has_delete_horizon(self) -> bool:
        """True if the base timestamp is the delete horizon."""
        return self.is_batch and self.attributes & DELETE_HORIZON_MASK != 0

    @property
    def last_offset_delta(self) -> int:
        """Last offset minus base offset."""
        return int64(self.last_offset - self.base_offset)


def read_header(buffer: memoryview | bytes, at: int, size: int, is_valid: int, position: int) -> Header:
    """Return the header of the row at `at`, whose position in the file is `position`.

    Like Kafka, it reads a v2 header although the stored size is smaller, if the bytes exist.
    """
    if 2 <= buffer[at + MAGIC_POSITION] < 128 and len(buffer) - at >= BATCH_HEADER_SIZE:
        names = BATCH_HEADER_FIELDS.names
        fields: dict[str, Any] = dict(zip(names, BATCH_HEADER_FIELDS.struct.unpack_from(buffer, at), strict=True))
        del fields["length"]
        last_offset = int64(fields["base_offset"] + fields.pop("last_offset_delta"))
        return Header(position=position, size=size, last_offset=last_offset, is_valid=is_valid, is_batch=True, **fields)
    offset, magic = ENTRY_V0_OFFSET.read(buffer, at), ENTRY_V0_MAGIC.read(buffer, at)
    timestamp = ENTRY_V1_TIMESTAMP.read(buffer, at) if magic == 1 else -1
    return Header(
        position=position,
        base_offset=offset,
        size=size,
        partition_leader_epoch=-1,
        magic=magic,
        crc=ENTRY_V0_CRC.read(buffer, at),
        attributes=ENTRY_V0_ATTRIBUTES.read(buffer, at) & 0xFF,
        last_offset=offset,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=1,
        is_valid=is_valid,
        is_batch=False,
    )


def sequence_after(base: int, delta: int) -> int:
    """Return the sequence `delta` after a base; it wraps from 2³¹ - 1 to 0.

    Source: DefaultRecordBatch.incrementSequence.
    """
    if base == -1:
        return -1
    return base + delta - (2**31 if base + delta >= 2**31 else 0)


# --- finding batches -------------------------------------------------------------------------------------------------


def scan(buffer: memoryview, start: int, end: int, rows: Rows, count: int) -> tuple[int, int, int, int]:
    """Fill `rows` from row `count` on with the intact batches from `start`; see the contract."""
    if start < 0 or end > len(buffer):
        raise IndexError("scan beyond its buffer")
    at, codecs, stop = start, 0, Stop.END
    while stop is Stop.END and end - at > MAGIC_POSITION:
        size, magic = size_field(buffer, at) + LOG_OVERHEAD, buffer[at + MAGIC_POSITION]
        if size < LEAST_SIZES.get(magic, ENTRY_MINIMUM_SIZE):
            stop = Stop.BAD_LENGTH
        elif size > end - at:
            break
        elif magic not in LEAST_SIZES:
            stop = Stop.BAD_MAGIC
        elif not _crc_holds(buffer[at : at + size], magic):
            stop = Stop.BAD_CRC
        elif count == len(rows) // ROW:
            stop = Stop.FULL
        else:
            _put_row(rows, count, at, size, 1)
            codecs |= 1 << read_header(buffer, at, size, 1, 0).codec
            count += 1
            at += size
    return count, at, stop, codecs


def _crc_holds(batch: memoryview, magic: int) -> bool:
    checksum = checksum_of(magic)
    return crc_function(magic)(batch[checksum.covers_from :], 0) == checksum.read_stored(batch)


def _put_row(rows: Rows, number: int, at: int, size: int, is_valid: int) -> None:
    rows[number * ROW : (number + 1) * ROW] = array("q", (at, size, is_valid))


def crc32c(data: memoryview) -> int:
    """Return CRC-32C of the given bytes."""
    return crc_function(2)(data, 0)


def find_header(buffer: memoryview, start: int, end: int, base_offset: int, room: int) -> int:
    """Return the position of the next plausible header of a batch, or -1; see the contract."""
    if start < 0 or end > len(buffer):
        raise IndexError("search beyond its buffer")
    for at in range(start, end - ENTRY_MINIMUM_SIZE + 1):
        magic = buffer[at + MAGIC_POSITION]
        if magic in LEAST_SIZES and LEAST_SIZES[magic] <= size_field(buffer, at) + LOG_OVERHEAD <= room - at:
            header = read_header(buffer, at, 0, 0, 0)
            is_near = 0 <= header.base_offset - base_offset <= 2**31
            if is_near and header.attributes & ~KNOWN_ATTRIBUTES[magic] == 0:
                return at
    return -1


def walk(buffer: memoryview | bytes, start: int, rows: Rows, room: int) -> tuple[int, int, bool]:
    """Fill `rows` with batches whose headers are in the buffer; see the contract."""
    if start < 0:
        raise IndexError("a walk before its buffer")
    count, at, end = 0, start, len(buffer)
    while count < len(rows) // ROW and end - at > MAGIC_POSITION:
        magic = buffer[at + MAGIC_POSITION]
        if magic not in LEAST_SIZES:
            return count, at, True
        if end - at < LEAST_SIZES[magic]:
            break
        size = size_field(buffer, at) + LOG_OVERHEAD
        if not LEAST_SIZES[magic] <= size <= room - at:
            return count, at, True
        _put_row(rows, count, at, size, UNCHECKED)
        count += 1
        at += size
    return count, at, False


def walk_file(descriptor: int, position: int, buffer: memoryview, rows: Rows, room: int, large: int) -> tuple[int, int]:
    """Fill `rows` with batches whose headers are read one by one; see the contract."""
    count = at = 0
    while count < len(rows) // ROW and at + BATCH_HEADER_SIZE <= min(len(buffer), room):
        try:
            header = os.pread(descriptor, BATCH_HEADER_SIZE, position + at)
        except OSError:
            break
        if len(header) < BATCH_HEADER_SIZE or header[MAGIC_POSITION] != 2:
            break
        size = size_field(header) + LOG_OVERHEAD
        is_control = header[FLAGS_POSITION] & CONTROL_MASK
        if is_control or not max(large, BATCH_HEADER_SIZE) <= size <= room - at:
            break
        buffer[at : at + BATCH_HEADER_SIZE] = header
        _put_row(rows, count, at, size, UNCHECKED)
        count += 1
        at += size
    return count, at


# --- headers of rows -------------------------------------------------------------------------------------------------


def rows_of(rows: Rows, first: int, last: int) -> Iterator[Sequence[int]]:
    """Return start, size and validity of rows first … last - 1. Raises IndexError if they aren't in the table."""
    if not 0 <= first <= last <= len(rows) // ROW:
        raise IndexError("rows that aren't there")
    return (rows[number * ROW : (number + 1) * ROW] for number in range(first, last))


def check_row(buffer: memoryview | bytes, at: int, size: int) -> None:
    """Raise IndexError unless the buffer contains a complete row and at least the smallest entry."""
    if not (at >= 0 and ENTRY_MINIMUM_SIZE <= size <= len(buffer) - at):
        raise IndexError("a row outside the buffer")


def read_lone_header(buffer: memoryview | bytes, at: int, size: int, is_valid: int, position: int) -> Header:
    """Return the header of a row. Raises IndexError if the buffer lacks a byte of the header."""
    if at >= 0 and size >= ENTRY_MINIMUM_SIZE and len(buffer) - at > MAGIC_POSITION:
        magic = buffer[at + MAGIC_POSITION]
        is_batch = 2 <= magic < 128
        entry = LOG_ENTRY_HEADER_V1_FIELDS if magic == 1 else LOG_ENTRY_HEADER_V0_FIELDS
        wanted = BATCH_HEADER_SIZE if is_batch else entry.struct.size
        if len(buffer) - at >= wanted and (size >= BATCH_HEADER_SIZE or not is_batch):
            return read_header(buffer, at, size, is_valid, position)
    raise IndexError("a row whose header isn't in the buffer")


class HeaderColumns:
    """The header columns of the contract."""

    def __init__(self, headers: list[Header]) -> None:
        self.has_wrappers = any(header.is_wrapper for header in headers)
        self._headers = [
            header._replace(base_offset=-1, records_count=-1) if header.is_wrapper else header for header in headers
        ]

    def column(self, name: str) -> Buffer:
        """Return the column of a name; see the contract."""
        place = HEADER_NAMES.index(name)
        return array("q", [header[place] for header in self._headers]).tobytes()


def header_columns(buffer: memoryview | bytes, rows: Rows, first: int, last: int, position: int) -> HeaderColumns:
    """Return the headers of rows first … last - 1; see the contract."""
    table = rows_of(rows, first, last)
    return HeaderColumns([read_lone_header(buffer, at, size, valid, position + at) for at, size, valid in table])


def select(buffer: memoryview, rows: Rows, count: int, wanted: BatchFilter) -> tuple[int, int, int, bool]:
    """Keep the rows among the first `count` whose headers meet the conditions; see the contract."""
    kept = codecs = 0
    earliest, last_offset, is_behind = MOST, -1, False
    for at, size, is_valid in list(rows_of(rows, 0, count)):
        check_row(buffer, at, size)
        header = read_header(buffer, at, size, is_valid, 0)
        first_offset = last_offset + 1 if header.is_wrapper else header.base_offset
        earliest = min(earliest, header.base_timestamp, header.max_timestamp)
        is_behind |= first_offset > wanted.last_offset
        last_offset = header.last_offset
        if _is_wanted(header, wanted):
            _put_row(rows, kept, at, size, is_valid)
            codecs |= 1 << header.codec
            kept += 1
    return kept, codecs, earliest, is_behind


def _is_wanted(header: Header, wanted: BatchFilter) -> bool:
    has_one_timestamp = header.append_time is not None or not (header.is_batch or header.is_wrapper)
    return (
        (header.last_offset >= wanted.first_offset or (header.is_wrapper and header.last_offset == 0))
        and (header.base_offset <= wanted.last_offset or header.is_wrapper)
        and header.max_timestamp >= wanted.first_timestamp
        and (header.max_timestamp <= wanted.last_timestamp or not has_one_timestamp)
        and wanted.producer_id in (None, header.producer_id)
        and wanted.is_transactional in (None, header.is_transactional)
        and wanted.is_control in (None, header.is_control)
    )
