"""Varints read and written without construct; tests compare them with the grammar in `formats.grammar`."""

from functools import cache

LONGEST_VARINT, LONGEST_VARLONG = 5, 10
"""Bytes of the longest varint and of the longest varlong."""


def read_uvarint(data: bytes | memoryview, at: int, longest: int) -> tuple[int, int]:
    """Return the unsigned number at a position, and its end. Raises EOFError if it takes more than `longest` bytes.

    Keeps bits of the last byte for which Kafka's integers have no room. Source: ByteUtils.readUnsignedVarint.
    """
    value = 0
    for index, byte in enumerate(data[at : at + longest]):
        value |= (byte & 0x7F) << 7 * index
        if byte < 0x80:
            return value, at + index + 1
    raise EOFError


def from_zigzag(number: int) -> int:
    """Return the signed number for a zig-zag number: 0, 1, 2, 3 become 0, -1, 1, -2."""
    return number >> 1 ^ -(number & 1)


_FEW = 1 << 13
"""Numbers from -_FEW to _FEW - 1 take one byte or two."""


def _encode(number: int) -> bytes:
    rest = number << 1 if number >= 0 else ~(number << 1)
    encoded = bytearray()
    while rest > 0x7F:
        encoded.append(0x80 | rest & 0x7F)
        rest >>= 7
    encoded.append(rest)
    return bytes(encoded)


@cache
def few_varints() -> dict[int, bytes]:
    """Return the varints of small numbers, by number; making them takes milliseconds, which only writing needs."""
    return {number: _encode(number) for number in range(-_FEW, _FEW)}


def varint(number: int) -> bytes:
    """Encode a number in zig-zag and groups of 7 bits, lowest first. Source: ByteUtils.writeVarint, writeVarlong."""
    return few_varints().get(number) or _encode(number)


def varint_size(number: int) -> int:
    """Return the size of the number's varint. Source: ByteUtils.sizeOfVarint, sizeOfVarlong."""
    return len(varint(number))
