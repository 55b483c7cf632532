"""Carving by the twin: batches at any byte, runs, and breaks that fit, found by trying each."""

from array import array
from collections.abc import Iterator
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
    MOST_MIDDLES,
    MOST_READ,
    SMALL_BATCH,
    SURE_BREAK,
    SURE_REST,
)
from kseg.kernel.twin.headers import Header, crc32c, read_header

_LEAST_RECORD = 7
"""Bytes of a record without key, value and headers."""
_LAST_OFFSET_BYTE_CLEAR = 56
_CRC = BATCH_HEADER_FIELDS.field("crc")
_INVERTED = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78
_CRC32C_ORDER = 2**31 - 1
"""The number of zero bytes that leave each CRC unchanged."""


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
        is_possible = _may_be_message(buffer[at:end], size) if is_message else _may_be_batch(buffer[at:end], size)
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
        and 0 <= header.base_offset < 1 << _LAST_OFFSET_BYTE_CLEAR
        and header.attributes & ~KNOWN_ATTRIBUTES[header.magic] == 0
        and header.codec in Codec.__members__.values()
        and min(header.base_timestamp, key_length) >= -1
        and value_at + LENGTH.size <= size
    )
    if not is_possible or value_at + LENGTH.size > len(content):
        return is_possible
    value_length = LENGTH.read(content, value_at)
    return value_length >= -1 and value_at + LENGTH.size + max(value_length, 0) == size


def _may_be_batch(content: memoryview | bytes, size: int) -> bool:
    """Return True if all fields of a header have possible values."""
    found = Header(*read_header(content, 0, size, 1, 0))
    delta = found.last_offset - found.base_offset
    return (
        BATCH_HEADER_SIZE <= size <= LARGEST_BATCH
        and 0 <= found.base_offset < 1 << _LAST_OFFSET_BYTE_CLEAR
        and found.magic == 2
        and found.attributes & ~KNOWN_ATTRIBUTES[2] == 0
        and found.codec in Codec.__members__.values()
        and min(found[3], *found[8:13]) >= -1
        and 0 <= found.records_count <= delta + 1
        and delta >= 0
        and (found.codec != Codec.NONE or size - BATCH_HEADER_SIZE >= found.records_count * _LEAST_RECORD)
    )


def split_runs(rows: "array[int]", count: int, block: int, phase: int) -> list[int]:
    """Return the first row of each run; see the contract."""
    if count < 0 or count * HEADER_VALUES > len(rows) or block <= 0 or not 0 <= phase < block:
        raise IndexError("rows that aren't there")
    return list(_first_rows(rows, count, block, phase))


def _first_rows(rows: "array[int]", count: int, block: int, phase: int) -> Iterator[int]:
    before = None
    for number in range(count):
        values = rows[number * HEADER_VALUES : (number + 1) * HEADER_VALUES]
        header = dict(zip(HEADER_NAMES, values, strict=True))
        into = (header["position"] - phase) % block
        is_next = (
            before is not None
            and before["position"] + before["size"] == header["position"]
            and before["last_offset"] < header["base_offset"]
        )
        if not is_next or into < SURE_REST or block - into < SURE_BREAK:
            yield number
        before = header


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


def fit_breaks(head: memoryview, tail: memoryview, crc: int, first: int, step: int) -> list[int]:
    """Return each break for which head and tail fit; see the contract."""
    if first <= 0 or step <= 0:
        raise IndexError("breaks before their batch")
    if len(tail) <= CRC_START:
        return []
    cuts = range(first, min(len(head), len(tail) - 1) + 1, step)
    return [cut for cut in cuts if crc32c(memoryview(bytes(head[:cut]) + bytes(tail[cut:]))[CRC_START:]) == crc]


def find_headless(tail: memoryview, block: int) -> list[tuple[int, int]]:
    """Return the batches that end with `tail` and lack their first bytes; see the contract."""
    if block < BATCH_HEADER_SIZE:
        raise IndexError("blocks smaller than a header")
    starts = range((len(tail) - 1) // block * block, -1, -block)
    return [(start, missing) for start in starts for missing in range(1, 18) if _is_headless(tail[start:], missing)]


def _is_headless(rest: memoryview, missing: int) -> bool:
    """Return True if a batch lacks just its first bytes."""
    size = len(rest) + missing
    known = bytes(missing) + bytes(rest[: BATCH_HEADER_SIZE - missing])
    if len(known) < BATCH_HEADER_SIZE:
        return False
    if missing <= BATCH_LENGTH.position and BATCH_LENGTH.read(known) + LOG_OVERHEAD != size:
        return False
    header = bytearray(known)
    if missing > BATCH_HEADER_FIELDS.position("magic"):
        header[BATCH_HEADER_FIELDS.position("magic")] = 2
    for name in ("base_offset", "partition_leader_epoch"):
        field = BATCH_HEADER_FIELDS.field(name)
        if missing > field.position:
            field.write(header, 0)
    return _may_be_batch(bytes(header), size) and crc32c(rest[CRC_START - missing :]) == _CRC.read(known)


def chain_crcs(crcs: "array[int]", block: int) -> None:
    """Replace the CRCs of blocks by those of all blocks up to each; see the contract."""
    for number in range(1, len(crcs)):
        crcs[number] ^= _move(crcs[number - 1], block)


def block_crcs(buffer: memoryview, block: int, crcs: "array[int]") -> None:
    """Set the CRC of each block of a buffer; see the contract."""
    if block <= 0 or len(crcs) > len(buffer) // block:
        raise IndexError("blocks beyond their buffer")
    for number in range(len(crcs)):
        crcs[number] = _linear_crc(buffer[number * block : (number + 1) * block])


def _linear_crc(content: memoryview) -> int:
    """Return a CRC that begins with 0 and isn't inverted."""
    return int(crc_function(2)(content, _INVERTED)) ^ _INVERTED


def find_heads(buffer: memoryview, block: int) -> list[int]:
    """Return the positions of headers that begin in a block and break at its end; see the contract."""
    if block <= 0:
        raise IndexError("blocks without bytes")
    found = []
    for at in range(len(buffer) - BATCH_HEADER_SIZE + 1):
        size, room = BATCH_LENGTH.read(buffer, at) + LOG_OVERHEAD, block - at % block
        if BATCH_HEADER_SIZE <= size <= LARGEST_BATCH and SURE_BREAK <= room < size:
            header = Header(*read_header(buffer, at, size, 1, 0))
            if (
                0 <= header.base_offset < 1 << _LAST_OFFSET_BYTE_CLEAR
                and header.magic == 2
                and header.attributes & ~KNOWN_ATTRIBUTES[2] == 0
                and min(header.partition_leader_epoch, header.base_timestamp) >= -1
                and header.last_offset >= header.base_offset
            ):
                found.append(at)
    return found


def find_middles(
    head: memoryview,
    tail: memoryview,
    size: int,
    crc: int,
    first: int,
    block: int,
    positions: memoryview,
    crcs: memoryview,
) -> list[tuple[int, int, int]]:
    """Return blocks that fit between the head and the tail of a batch; see the contract."""
    if not CRC_START < first <= len(head) <= size or first == size or len(tail) > size or block <= 0:
        raise IndexError("ends beyond their batch")
    if len(crcs) < len(positions) + 1:
        raise IndexError("blocks without CRCs")
    whole = size if len(tail) else size + -(size - first) % block
    target = _move(crc ^ _INVERTED, whole - size)
    found = []
    for middle in range(1, len(positions) + 1):
        wanted = {}
        for cut in range(first, min(len(head), whole - middle * block) + 1, block):
            rest = whole - cut - middle * block
            if rest <= len(tail) and (rest > 0 or not len(tail)):
                of_head = int(crc_function(2)(head[CRC_START:cut], 0)) ^ _INVERTED
                of_tail = _linear_crc(tail[len(tail) - rest :])
                wanted[cut] = _move(_move(of_head, whole - cut) ^ of_tail ^ target, _CRC32C_ORDER - rest)
        if not wanted:
            continue
        for number in range(len(positions) - middle + 1):
            if positions[number + middle - 1] - positions[number] == (middle - 1) * block:
                of_blocks = crcs[number + middle] ^ _move(crcs[number], middle * block)
                found += [(cut, number, middle) for cut, wanted_crc in wanted.items() if wanted_crc == of_blocks]
    return found[:MOST_MIDDLES]


def _move(crc: int, size: int) -> int:
    """Return a CRC after some zero bytes."""
    power = 0x00800000  # x to the 8th, in reflected bits
    while size:
        if size & 1:
            crc = _times(crc, power)
        power = _times(power, power)
        size >>= 1
    return crc


def _times(one: int, other: int) -> int:
    """Return the product of two polynomials modulo CRC-32C's, in reflected bits."""
    product = 0
    for bit in range(31, -1, -1):
        product ^= other if one >> bit & 1 else 0
        other = other >> 1 ^ (_POLYNOMIAL if other & 1 else 0)
    return product
