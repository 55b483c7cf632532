"""Parts of grammars that are made from the declared fields."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from construct import BitsInteger, BitStruct, Flag, Int8sb, Int16sb, Int32sb, Int32ub, Int64sb, Rebuild

from kseg.formats.header_fields import INT8, INT16, INT32, INT64, UINT32, Bits, Field, FixedFields

_INTEGERS = {INT8: Int8sb, INT16: Int16sb, INT32: Int32sb, UINT32: Int32ub, INT64: Int64sb}


def grammars(
    fields: FixedFields, meanings: Mapping[str, str] = MappingProxyType({}), **rebuilt: Callable[[Any], int]
) -> list[Any]:
    """The grammars of declared fields, in order.

    Args:
        fields: the fields.
        meanings: of bits whose declaration doesn't have all of it, by name.
        rebuilt: what computes a field when it is built, by name.
    """
    return [grammar(field, rebuilt.get(field.name), meanings) for field in fields.fields]


def grammar(
    field: Field, rebuild: Callable[[Any], int] | None = None, meanings: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """The grammar of a field, with its name and meaning."""
    inner = _bits(field.bits, meanings) if field.bits else _INTEGERS[field.type]
    return field.name / (inner if rebuild is None else Rebuild(inner, rebuild)) * field.meaning


def _bits(bits: tuple[Bits, ...], meanings: Mapping[str, str]) -> Any:
    return BitStruct(
        *(
            each.name / (Flag if each.is_flag else BitsInteger(each.width)) * meanings.get(each.name, each.meaning)
            for each in bits
        )
    )
