"""Carving by the twin: batches at any byte, runs, and breaks that fit, found by trying each."""

from array import array
from collections.abc import Iterator

from kseg.formats.codes import BATCH_HEADER_SIZE, LOG_OVERHEAD, Codec, crc_function
from kseg.formats.header_fields import BATCH_HEADER_FIELDS, BATCH_LENGTH, HEADER_NAMES, KNOWN_ATTRIBUTES
from kseg.kernel.carve_contract import CRC_START, CRC_STEP, HEADER_VALUES, LARGEST_BATCH, SURE_BREAK
from kseg.kernel.twin.headers import Header, crc32c, read_header

_LEAST_RECORD = 7
"""Bytes of a record without key, value and headers."""
_LAST_OFFSET_BYTE_CLEAR = 56
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
) -> tuple[int, int]:
    """Fill `rows` with the intact batches at any position; see the contract."""
    if start < 0 or end > len(buffer) or end // CRC_STEP >= len(crcs):
        raise IndexError("a search beyond its buffer")
    at = start
    while at + BATCH_HEADER_SIZE <= end:
        size = BATCH_LENGTH.read(buffer, at) + LOG_OVERHEAD
        if _may_be_batch(bytes(buffer[at : at + BATCH_HEADER_SIZE]), size):
            if size > end - at:
                if not is_last:
                    break
            elif crc32c(buffer[at + CRC_START : at + size]) == _CRC.read(buffer, at):
                if count >= len(rows) // HEADER_VALUES:
                    break
                header = read_header(buffer, at, size, 1, position + at)
                rows[count * HEADER_VALUES : (count + 1) * HEADER_VALUES] = array("q", header[:HEADER_VALUES])
                count += 1
                at += size
                continue
        at += 1
    return count, at


def _may_be_batch(header: bytes, size: int) -> bool:
    """Return True if all fields of a header have possible values."""
    found = Header(*read_header(memoryview(header), 0, size, 1, 0))
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
        if not is_next or into == 0 or block - into < SURE_BREAK:
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
