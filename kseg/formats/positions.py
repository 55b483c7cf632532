"""Positions of the fields that find, measure and check batches and log entries, without construct."""

from typing import NamedTuple

from kseg.formats.codes import LOG_OVERHEAD, MAGIC_POSITION, MINIMUM_SIZE_FIELD
from kseg.formats.header_fields import (
    BATCH_ATTRIBUTES,
    BATCH_BASE_OFFSET,
    BATCH_CRC,
    BATCH_LENGTH,
    BATCH_MAGIC,
    CONTROL_KEY_VERSION,
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V1_KEY_LENGTH,
    KNOWN_ATTRIBUTES,
    Bytes,
    FixedField,
)

SIZE_POSITION = BATCH_LENGTH.position
"""The same in all formats; the size doesn't count the bytes up to its own end."""
BATCH_FLAGS = FixedField(BATCH_ATTRIBUTES.end - 1, 1, "B")
FLAGS_POSITION = BATCH_FLAGS.position
"""The lower byte of a batch's attributes: codec, timestamp type, and all flags there are."""
LEGACY_FLAGS_POSITION = ENTRY_V0_ATTRIBUTES.position
LENGTH = ENTRY_V0_KEY_LENGTH._replace(position=0)
"""The length of a v0 or v1 message's key or value, wherever it stands; negative for null."""
KEY_LENGTH_POSITION = {0: ENTRY_V0_KEY_LENGTH.position, 1: ENTRY_V1_KEY_LENGTH.position}
PLAUSIBLE_ATTRIBUTES = {magic: rb"[\0-\x%02x]" % bits for magic, bits in KNOWN_ATTRIBUTES.items()}
"""Magic to a pattern of the byte that holds the attributes' known bits, from the lowest on."""
VERSION = CONTROL_KEY_VERSION
"""What keys and values of Kafka's internal topics begin with, as those of control records do."""


class Checksum(NamedTuple):
    """Positions of a checksum and of the first byte that it covers; it covers all bytes from there to the end."""

    field: FixedField
    covers_from: int

    def stored(self, header: Bytes) -> int:
        """The checksum in a header."""
        return self.field.read(header)


_BATCH_CHECKSUM = Checksum(BATCH_CRC, BATCH_CRC.end)
_LEGACY_CHECKSUM = Checksum(ENTRY_V0_CRC, ENTRY_V0_CRC.end)


def checksum_of(magic: int) -> Checksum:
    """A v2 batch's checksum, which is a CRC-32C; that of a v0 or v1 message, a CRC-32."""
    return _BATCH_CHECKSUM if magic == 2 else _LEGACY_CHECKSUM


def stored_offset(header: Bytes) -> int:
    """A batch's base offset; a log entry's offset."""
    return BATCH_BASE_OFFSET.read(header)


def size_field(header: Bytes, at: int = 0) -> int:
    """The size field of the header at `at`, unchecked: the batch's or entry's size without LOG_OVERHEAD."""
    return BATCH_LENGTH.read(header, at)


def signed_magic(header: Bytes) -> int:
    """The magic as a signed byte, as in Java."""
    return BATCH_MAGIC.read(header)


def claimed_size(buffer: Bytes, at: int = 0) -> int | None:
    """Bytes of the batch or entry at `at`, by its size field; None if its magic can't have so few."""
    if len(buffer) - at <= MAGIC_POSITION:
        return None
    size = size_field(buffer, at)
    least = MINIMUM_SIZE_FIELD.get(buffer[at + MAGIC_POSITION])
    return None if least is None or size < least else size + LOG_OVERHEAD
