"""Where fields stand that batches and log entries are found, measured and checked by, without construct."""

from typing import NamedTuple

from kseg.formats.codes import LOG_OVERHEAD, MAGIC_POSITION, MINIMUM_SIZE_FIELD
from kseg.formats.fixed import BATCH_HEADER_FIELDS, LOG_ENTRY_HEADER_V0_FIELDS, LOG_ENTRY_HEADER_V1_FIELDS

Bytes = bytes | memoryview

OFFSET_POSITION = BATCH_HEADER_FIELDS.position("base_offset")
SIZE_POSITION = BATCH_HEADER_FIELDS.position("length")
"""Both are the same in all formats; the size doesn't count the bytes up to its own end."""
CRC_POSITION = BATCH_HEADER_FIELDS.position("crc")
ATTRIBUTES_POSITION = BATCH_HEADER_FIELDS.position("attributes")
FLAGS_POSITION = ATTRIBUTES_POSITION + 1
"""The lower byte of a batch's attributes: codec, timestamp type, and all flags there are."""
PRODUCER_ID_POSITION = BATCH_HEADER_FIELDS.position("producer_id")
RECORDS_COUNT_POSITION = BATCH_HEADER_FIELDS.position("records_count")

LEGACY_CRC_POSITION = LOG_ENTRY_HEADER_V0_FIELDS.position("crc")
LEGACY_FLAGS_POSITION = LOG_ENTRY_HEADER_V0_FIELDS.position("attributes")
TIMESTAMP_POSITION = LOG_ENTRY_HEADER_V1_FIELDS.position("timestamp")
"""A v1 message's; v0 has none."""
KEY_LENGTH_POSITION = {
    0: LOG_ENTRY_HEADER_V0_FIELDS.position("key_length"),
    1: LOG_ENTRY_HEADER_V1_FIELDS.position("key_length"),
}


class Checksum(NamedTuple):
    """Where a checksum stands, and the first byte that it covers: all from there to the batch's or entry's end."""

    position: int
    covers_from: int

    def stored(self, header: Bytes) -> int:
        """The checksum in a header."""
        return int.from_bytes(header[self.position : self.position + 4], "big")


_BATCH_CHECKSUM = Checksum(CRC_POSITION, ATTRIBUTES_POSITION)
_LEGACY_CHECKSUM = Checksum(LEGACY_CRC_POSITION, MAGIC_POSITION)


def checksum_of(magic: int) -> Checksum:
    """A v2 batch's checksum, which is a CRC-32C; that of a v0 or v1 message, a CRC-32."""
    return _BATCH_CHECKSUM if magic == 2 else _LEGACY_CHECKSUM


def stored_offset(header: Bytes) -> int:
    """A batch's base offset; a log entry's offset."""
    return int.from_bytes(header[OFFSET_POSITION:SIZE_POSITION], "big", signed=True)


def size_field(header: Bytes, at: int = 0) -> int:
    """The size field of the header at `at`, as it stands there: a batch's or entry's bytes less LOG_OVERHEAD."""
    return int.from_bytes(header[at + SIZE_POSITION : at + LOG_OVERHEAD], "big", signed=True)


def signed_magic(header: Bytes) -> int:
    """The magic as Java's byte holds it."""
    return int.from_bytes(header[MAGIC_POSITION : MAGIC_POSITION + 1], "big", signed=True)


def claimed_size(buffer: Bytes, at: int = 0) -> int | None:
    """Bytes of the batch or entry at `at`, as its size field tells them; None if its magic can't have so few."""
    if len(buffer) - at <= MAGIC_POSITION:
        return None
    size = size_field(buffer, at)
    least = MINIMUM_SIZE_FIELD.get(buffer[at + MAGIC_POSITION])
    return None if least is None or size < least else size + LOG_OVERHEAD
