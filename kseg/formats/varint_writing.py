"""Numbers written as varints, without construct. Apart from reading them: its table takes a while to make."""

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


FEW_VARINTS = {number: _encode(number) for number in range(-_FEW, _FEW)}
"""The varints of small numbers, by the number."""


def varint(number: int) -> bytes:
    """A number in zig-zag and groups of 7 bits, lowest first. Source: ByteUtils.writeVarint, writeVarlong."""
    return FEW_VARINTS.get(number) or _encode(number)


def varint_size(number: int) -> int:
    """Bytes of the number's varint. Source: ByteUtils.sizeOfVarint, sizeOfVarlong."""
    return len(varint(number))
