"""Varints read without construct: the grammar in `formats.varint` defines them, and tests compare both."""

LONGEST_VARINT, LONGEST_VARLONG = 5, 10
"""Bytes of the longest varint and of the longest varlong."""


def read_uvarint(data: bytes | memoryview, at: int, longest: int) -> tuple[int, int]:
    """The unsigned number at a place, and where it ends. Raises EOFError if it takes more than `longest` bytes.

    Bits of the last byte for which Kafka's integers have no room are there. Source: ByteUtils.readUnsignedVarint.
    """
    value = 0
    for index, byte in enumerate(data[at : at + longest]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise EOFError


def from_zigzag(number: int) -> int:
    """The signed number: 0, 1, 2, 3 stand for 0, -1, 1, -2."""
    return number >> 1 ^ -(number & 1)
