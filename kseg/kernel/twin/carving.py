"""Carving by the twin: batches at any byte, and copies."""

from array import array
from zlib import crc32

from kseg.formats.codes import BATCH_HEADER_SIZE, LENGTH, LOG_OVERHEAD, MAGIC_POSITION, Codec, crc_function
from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    BATCH_LENGTH,
    ENTRY_V0_CRC,
    HEADER_NAMES,
    KNOWN_ATTRIBUTES,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
)
from kseg.kernel.carve_contract import (
    CRC_START,
    CRC_STEP,
    HEADER_VALUES,
    LARGEST_BATCH,
    MOST_READ,
    SMALL_BATCH,
)
from kseg.kernel.contract import LEAST_RECORD
from kseg.kernel.twin.headers import Header, crc32c, read_header

LAST_OFFSET_BYTE_CLEAR = 56
"""The bits of an offset below its first byte, which is 0 in a batch that carving finds."""
_CRC = BATCH_HEADER_FIELDS.field("crc")
_INVERTED = 0xFFFFFFFF


def step_crcs(buffer: memoryview, first: int, last: int, crcs: "array[int]") -> None:
    """Set the CRCs of all bytes before steps; see the contract."""
    if not 0 <= first <= last or last * CRC_STEP > len(buffer) or last >= len(crcs):
        raise IndexError("steps beyond their buffer")
    for step in range(first, last):
        content = buffer[step * CRC_STEP : (step + 1) * CRC_STEP]
        crcs[step + 1] = crc_function(2)(content, crcs[step] ^ _INVERTED) ^ _INVERTED


def find_batches(
    buffer: memoryview,
    start: int,
    end: int,
    position: int,
    crcs: "array[int]",
    rows: "array[int]",
    count: int,
    is_last: bool,
    is_legacy: bool,
) -> tuple[int, int]:
    """Fill `rows` with the intact batches at any position; see the contract."""
    if start < 0 or end > len(buffer) or end // CRC_STEP >= len(crcs):
        raise IndexError("a search beyond its buffer")
    at, left = start, LARGEST_BATCH + (end - start) * MOST_READ
    while at + BATCH_HEADER_SIZE <= end:
        size = BATCH_LENGTH.read(buffer, at) + LOG_OVERHEAD
        is_message = is_legacy and buffer[at + MAGIC_POSITION] < 2
        is_possible = _may_be_message(buffer[at:end], size) if is_message else may_be_batch(buffer[at:end], size)
        if is_possible and size > end - at and not is_last:
            break
        is_tested = is_possible and size <= end - at and not (is_message and size > max(left, SMALL_BATCH))
        if is_tested and _crc_holds(buffer[at : at + size], is_message=is_message):
            if count >= len(rows) // HEADER_VALUES:
                break
            header = read_header(buffer, at, size, 1, position + at)
            rows[count * HEADER_VALUES : (count + 1) * HEADER_VALUES] = array("q", header[:HEADER_VALUES])
            count += 1
            at += size
            continue
        left -= size if is_tested and is_message else 0
        at += 1
    return count, at


def _crc_holds(item: memoryview, *, is_message: bool) -> bool:
    if is_message:
        return crc32(item[MAGIC_POSITION:]) == ENTRY_V0_CRC.read(item)
    return crc32c(item[CRC_START:]) == _CRC.read(item)


def _may_be_message(content: memoryview, size: int) -> bool:
    """Return True if key and value fill a message exactly; also if the length of the value isn't there."""
    header = read_header(content, 0, size, 1, 0)
    fields = LOG_ENTRY_HEADER_V1_FIELDS if header.magic == 1 else LOG_ENTRY_HEADER_V0_FIELDS
    key_length = fields.field("key_length").read(content)
    value_at = fields.struct.size + max(key_length, 0)
    is_possible = (
        LOG_OVERHEAD < size <= LARGEST_BATCH
        and 0 <= header.base_offset < 1 << LAST_OFFSET_BYTE_CLEAR
        and header.attributes & ~KNOWN_ATTRIBUTES[header.magic] == 0
        and header.codec in Codec.__members__.values()
        and min(header.base_timestamp, key_length) >= -1
        and value_at + LENGTH.size <= size
    )
    if not is_possible or value_at + LENGTH.size > len(content):
        return is_possible
    value_length = LENGTH.read(content, value_at)
    return value_length >= -1 and value_at + LENGTH.size + max(value_length, 0) == size


def may_be_batch(content: memoryview | bytes, size: int) -> bool:
    """Return True if all fields of a header have possible values."""
    found = Header(*read_header(content, 0, size, 1, 0))
    delta = found.last_offset - found.base_offset
    return (
        BATCH_HEADER_SIZE <= size <= LARGEST_BATCH
        and 0 <= found.base_offset < 1 << LAST_OFFSET_BYTE_CLEAR
        and found.magic == 2
        and found.attributes & ~KNOWN_ATTRIBUTES[2] == 0
        and found.codec in Codec.__members__.values()
        and min(found[3], *found[8:13]) >= -1
        and 0 <= found.records_count <= delta + 1
        and delta >= 0
        and (found.codec != Codec.NONE or size - BATCH_HEADER_SIZE >= found.records_count * LEAST_RECORD)
    )


def find_copies(rows: "array[int]", count: int) -> list[tuple[int, int]]:
    """Return each row that an earlier row equals, with that row; see the contract."""
    if count < 0 or count * HEADER_VALUES > len(rows):
        raise IndexError("rows that aren't there")
    places = [HEADER_NAMES.index(name) for name in ("base_offset", "size", "crc")]
    first_rows: dict[tuple[int, ...], int] = {}
    found = []
    for number in range(count):
        identity = tuple(rows[number * HEADER_VALUES + place] for place in places)
        first = first_rows.setdefault(identity, number)
        if first != number:
            found.append((number, first))
    return found
