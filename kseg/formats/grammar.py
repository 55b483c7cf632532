"""Construct grammars made from declared fields, and the grammar of varints."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from construct import (
    BitsInteger,
    BitStruct,
    Construct,
    ExprAdapter,
    Flag,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    IntegerError,
    Rebuild,
    stream_read,
    stream_write,
)

from kseg.errors import plural
from kseg.formats.header_fields import INT8, INT16, INT32, INT64, UINT32, Bits, Field, FixedFields
from kseg.formats.varint_bytes import LONGEST_VARINT, LONGEST_VARLONG, from_zigzag


class _Base128(Construct):  # type: ignore[misc]  # construct has no types
    """An unsigned integer in groups of 7 bits, lowest first; a high bit says that more follow.

    Reads over-long encodings as Kafka does, and drops bits of the last byte that don't fit into `bits`. Builds the
    shortest encoding. Raises IntegerError if the last allowed byte says that more follow, and when it builds a number
    that doesn't fit. Source: ByteUtils.readUnsignedVarint, readVarlong.
    """

    def __init__(self, bits: int, maximum_size: int) -> None:
        super().__init__()
        self.maximum: int = (1 << bits) - 1
        self.maximum_size = maximum_size

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for index in range(self.maximum_size):
            byte: int = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << 7 * index
            if byte < 0x80:
                return value & self.maximum
        raise IntegerError(f"varint is longer than {plural(self.maximum_size, 'byte')}", path=path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> int:
        if not isinstance(obj, int) or not 0 <= obj <= self.maximum:
            raise IntegerError(f"{obj!r} isn't an integer from 0 to {self.maximum}", path=path)
        rest: int = obj
        encoded = bytearray()
        while rest > 0x7F:
            encoded.append(0x80 | rest & 0x7F)
            rest >>= 7
        encoded.append(rest)
        stream_write(stream, bytes(encoded), len(encoded), path)
        return obj


def _from_zigzag(value: int, _context: Any) -> int:
    return from_zigzag(value)


def _to_zigzag(value: int, _context: Any) -> int:
    return value << 1 if value >= 0 else ~(value << 1)


UVARINT = _Base128(32, LONGEST_VARINT)
"""uint32, without zig-zag: lengths, counts and tags of flexible message versions."""
VARINT = ExprAdapter(UVARINT, _from_zigzag, _to_zigzag)
"""int32 in zig-zag: 0, -1, 1, -2 become 0, 1, 2, 3."""
VARLONG = ExprAdapter(_Base128(64, LONGEST_VARLONG), _from_zigzag, _to_zigzag)
"""int64 in zig-zag."""


_INTEGERS = {INT8: Int8sb, INT16: Int16sb, INT32: Int32sb, UINT32: Int32ub, INT64: Int64sb}


def grammars(
    fields: FixedFields, meanings: Mapping[str, str] = MappingProxyType({}), **rebuilt: Callable[[Any], int]
) -> list[Any]:
    """Return the grammars of declared fields, in order.

    Args:
        fields: the fields.
        meanings: complete meanings of bits whose declaration is shorter, by name.
        rebuilt: functions that compute a field when it is built, by name.
    """
    return [grammar(field, rebuilt.get(field.name), meanings) for field in fields.fields]


def grammar(
    field: Field, rebuild: Callable[[Any], int] | None = None, meanings: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Return the grammar of a field, with its name and meaning."""
    inner = _bits(field.bits, meanings) if field.bits else _INTEGERS[field.type]
    return field.name / (inner if rebuild is None else Rebuild(inner, rebuild)) * field.meaning


def _bits(bits: tuple[Bits, ...], meanings: Mapping[str, str]) -> Any:
    return BitStruct(
        *(
            each.name / (Flag if each.is_flag else BitsInteger(each.width)) * meanings.get(each.name, each.meaning)
            for each in bits
        )
    )
