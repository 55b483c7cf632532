"""Parts of grammars that are made from the declared fields."""

from collections.abc import Callable
from typing import Any

from construct import BitsInteger, BitStruct, Flag, Int8sb, Int16sb, Int32sb, Int32ub, Int64sb, Rebuild

from kseg.formats.header_fields import INT8, INT16, INT32, INT64, UINT32, Bits, Field, FixedFields

_INTEGERS = {INT8: Int8sb, INT16: Int16sb, INT32: Int32sb, UINT32: Int32ub, INT64: Int64sb}


def grammars(fields: FixedFields, **rebuilt: Callable[[Any], int]) -> list[Any]:
    """The grammars of declared fields, in order; a field that `rebuilt` names is computed when it is built."""
    return [grammar(field, rebuilt.get(field.name)) for field in fields.fields]


def grammar(field: Field, rebuild: Callable[[Any], int] | None = None) -> Any:
    """The grammar of a field, with its name and meaning."""
    inner = bits_grammar(field.bits) if field.bits else _INTEGERS[field.type]
    return field.name / (inner if rebuild is None else Rebuild(inner, rebuild)) * field.meaning


def bits_grammar(bits: tuple[Bits, ...]) -> Any:
    """The grammar of a field's bits."""
    return BitStruct(*(each.name / (Flag if each.is_flag else BitsInteger(each.width)) * each.meaning for each in bits))
