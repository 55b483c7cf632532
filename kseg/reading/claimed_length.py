"""Whether a batch's contents match the length that its header claims."""

from collections.abc import Callable

from kseg.formats.positions import LENGTH
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint

RECORDS_LOOKED_AT = 1 << 12
"""Records whose lengths may speak for the length of a batch that is large and has a wrong CRC."""
SMALLEST_RECORD = 6
"""Bytes of a record after its length: attributes, two deltas, two sizes, the number of headers."""

Read = Callable[[int, int], bytes]
"""(position, size) → bytes of the file."""


def records_fill(read: Read, position: int, end: int) -> bool:
    """Whether the lengths of a batch's records, or as many as are worth a look, lead to its end."""
    for _ in range(RECORDS_LOOKED_AT):
        if position == end:
            return True
        try:
            number, size = read_uvarint(read(position, LONGEST_VARINT), 0, LONGEST_VARINT)
        except EOFError:
            return False
        length = from_zigzag(number)
        if length < SMALLEST_RECORD:
            return False
        position += size + length
        if position > end:
            return False
    return True


def message_fills(read: Read, position: int, end: int) -> bool:
    """Whether a message's key and value, of which the key is at a position, lead to its end."""
    for _ in range(2):
        position += LENGTH.size + max(LENGTH.read(read(position, LENGTH.size)), 0)
    return position == end
