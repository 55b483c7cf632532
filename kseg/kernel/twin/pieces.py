"""Pieces of torn batches by the twin: CRCs of their parts, and blocks that fit between them."""

from typing import TYPE_CHECKING

from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, crc_function
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, BATCH_LENGTH, KNOWN_ATTRIBUTES
from kseg.kernel.carve_contract import CRC_START, LARGEST_BATCH, MOST_MIDDLES, SURE_BREAK, OfMiddle
from kseg.kernel.twin.carving import LAST_OFFSET_BYTE_CLEAR, may_be_batch
from kseg.kernel.twin.headers import Header, crc32c, read_header

if TYPE_CHECKING:
    from array import array

_CRC = BATCH_HEADER_FIELDS.field("crc")
_INVERTED = 0xFFFFFFFF
_POLYNOMIAL = 0x82F63B78
_CRC32C_ORDER = 2**31 - 1
"""The number of zero bytes that leave each CRC unchanged."""


def wanted_crcs(head: memoryview, size: int, crc: int, first: int, block: int) -> list[int]:
    """Return the CRCs that the rest of a batch must have, by break; see the contract."""
    if first <= 0 or block <= 0 or size <= CRC_START or (first < CRC_START and len(head) < CRC_START):
        raise IndexError("breaks outside of their batch")
    found = []
    for cut in range(first, min(len(head), size - 1) + 1, block):
        start = max(cut, CRC_START)
        of_head = _continue_crc(_INVERTED, head[CRC_START:start])
        of_rest = _move(of_head ^ _continue_crc(0, head[cut:start]), size - start)
        found.append(of_rest ^ crc ^ _INVERTED)
    return found


def rest_crcs(ending: memoryview, least: int, block: int) -> list[int]:
    """Return the CRCs of the last bytes of an ending; see the contract."""
    if least <= 0 or block <= 0:
        raise IndexError("rests without bytes")
    return [_continue_crc(0, ending[len(ending) - size :]) for size in range(least, len(ending) + 1, block)]


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
    return may_be_batch(bytes(header), size) and crc32c(rest[CRC_START - missing :]) == _CRC.read(known)


def chain_crcs(crcs: "array[int]", block: int) -> None:
    """Replace the CRCs of blocks by those of all blocks up to each; see the contract."""
    for number in range(1, len(crcs)):
        crcs[number] ^= _move(crcs[number - 1], block)


def block_crcs(buffer: memoryview, block: int, crcs: "array[int]") -> None:
    """Set the CRC of each block of a buffer; see the contract."""
    if block <= 0 or len(crcs) > len(buffer) // block:
        raise IndexError("blocks beyond their buffer")
    for number in range(len(crcs)):
        crcs[number] = _continue_crc(0, buffer[number * block : (number + 1) * block])


def _continue_crc(crc: int, content: memoryview) -> int:
    """Return a CRC after some bytes, which is inverted neither before nor after."""
    return int(crc_function(2)(content, crc ^ _INVERTED)) ^ _INVERTED


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
                0 <= header.base_offset < 1 << LAST_OFFSET_BYTE_CLEAR
                and header.magic == 2
                and header.attributes & ~KNOWN_ATTRIBUTES[2] == 0
                and min(header.partition_leader_epoch, header.base_timestamp) >= -1
                and header.last_offset >= header.base_offset
            ):
                found.append(at)
    return found


def find_middles(
    searches: "array[int]",
    wanted: "array[int]",
    rests: "array[int]",
    positions: memoryview,
    crcs: memoryview,
    block: int,
) -> list[tuple[int, int, int, int]]:
    """Return the blocks between beginnings and rests; see the contract."""
    if block <= 0 or len(crcs) < len(positions) + 1:
        raise IndexError("blocks without CRCs")
    rows = [searches[at : at + len(OfMiddle)] for at in range(0, len(searches), len(OfMiddle))]
    for row in rows:
        _check_search(row, len(wanted), len(rests), len(positions))
    counts = [0] * len(rows)
    found = []
    for middle in range(1, max((row[OfMiddle.MOST_BLOCKS] for row in rows), default=0) + 1):
        middles = _wanted_middles(rows, middle, wanted, rests, block)
        for number in range(len(positions) - middle + 1) if middles else ():
            if positions[number + middle - 1] - positions[number] != (middle - 1) * block:
                continue
            of_blocks = crcs[number + middle] ^ _move(crcs[number], middle * block)
            for search, cut in middles.get(of_blocks, ()):
                row = rows[search]
                is_near = row[OfMiddle.FIRST_BLOCK] <= number <= row[OfMiddle.LAST_BLOCK] - middle
                if is_near and counts[search] < MOST_MIDDLES:
                    counts[search] += 1
                    found.append((search, cut, number, middle))
    return found


def _check_search(row: "array[int]", wanted: int, rests: int, blocks: int) -> None:
    breaks = row[OfMiddle.FIRST_BREAK], row[OfMiddle.BREAKS], wanted
    endings = row[OfMiddle.FIRST_REST], row[OfMiddle.RESTS], rests
    if any(first < 0 or count < 0 or first + count > room for first, count, room in (breaks, endings)):
        raise IndexError("a search without its CRCs")
    if row[OfMiddle.LEAST_REST] < 0 or row[OfMiddle.PADDING] < 0:
        raise IndexError("a search without its CRCs")
    if not 0 <= row[OfMiddle.FIRST_BLOCK] <= row[OfMiddle.LAST_BLOCK] <= blocks:
        raise IndexError("a search outside of the blocks")


def _wanted_middles(
    rows: "list[array[int]]", middle: int, wanted: "array[int]", rests: "array[int]", block: int
) -> dict[int, list[tuple[int, int]]]:
    """Return the CRCs of so many blocks between each beginning and rest, with the searches and breaks."""
    found: dict[int, list[tuple[int, int]]] = {}
    for search, row in enumerate(rows):
        for cut in range(row[OfMiddle.BREAKS]):
            left = row[OfMiddle.MOST_BLOCKS] - middle - cut
            if 0 <= left < row[OfMiddle.RESTS]:
                crc = _move(wanted[row[OfMiddle.FIRST_BREAK] + cut], row[OfMiddle.PADDING])
                crc ^= rests[row[OfMiddle.FIRST_REST] + left]
                crc = _move(crc, _CRC32C_ORDER - row[OfMiddle.LEAST_REST] - left * block)
                found.setdefault(crc, []).append((search, cut))
    return found


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
