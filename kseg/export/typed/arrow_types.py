"""Decoded columns as Arrow: the type of each, and arrays of one schema brought into the type of all."""

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import TIMESTAMP
from kseg.export.typed.column_type import (
    ColumnMember,
    ColumnType,
    DecimalType,
    ListType,
    MapType,
    Scalar,
    StructType,
    UnionType,
)
from kseg.export.typed.unify import partner, place_in

_SCALARS: dict[Scalar, pa.DataType] = {
    Scalar.BOOLEAN: pa.bool_(),
    Scalar.LONG: pa.int64(),
    Scalar.FLOAT: pa.float32(),
    Scalar.DOUBLE: pa.float64(),
    Scalar.STRING: pa.string(),
    Scalar.BYTES: pa.binary(),
    Scalar.DATE: pa.date32(),
    Scalar.TIMESTAMP: TIMESTAMP,
    Scalar.LOCAL_TIMESTAMP: pa.timestamp("us"),
    Scalar.JSON: pa.string(),
}


def arrow_type(column: ColumnType) -> pa.DataType:
    """The type of a column in Arrow; lists have Parquet's names, as Spark asks for."""
    match column:
        case Scalar():
            return _SCALARS[column]
        case DecimalType():
            return pa.decimal128(column.precision, column.scale)
        case ListType():
            return list_of(arrow_type(column.item))
        case MapType():
            return pa.map_(_SCALARS[column.key], arrow_type(column.value))
        case StructType() | UnionType():
            return pa.struct([pa.field(member.name, arrow_type(member.type)) for member in column.members])


def list_of(item: pa.DataType) -> pa.ListType:
    """Lists, as Parquet calls what is in them."""
    return pa.list_(pa.field("element", item))


def widened(array: pa.Array, own: ColumnType, wide: ColumnType) -> pa.Array:
    """An array of a type, as one of a type that has room for it. It must begin where its buffers do.

    Raises pyarrow.ArrowInvalid if a value has no place there: a time beyond microseconds.
    """
    match own, wide:
        case UnionType(), UnionType():
            return _struct(array, own.members, wide)
        case _, UnionType():
            return _as_member(array, own, wide)
        case StructType(), StructType():
            return _struct(array, own.members, wide)
        case ListType(), ListType():
            items = widened(array.values, own.item, wide.item)
            return _rebuilt(array, arrow_type(wide), items)
        case MapType(), MapType():
            return _map(array, own, wide)
        case _:
            return pc.cast(array, arrow_type(wide), safe=not _may_round(array.type, arrow_type(wide)))


def _may_round(own: pa.DataType, wide: pa.DataType) -> bool:
    """Whether digits may go: of a long as a double, as Avro has it; of nanoseconds, which table formats don't have."""
    return bool(pa.types.is_floating(wide) or (pa.types.is_timestamp(own) and own.unit == "ns"))


def _struct(array: pa.StructArray, own: tuple[ColumnMember, ...], wide: StructType | UnionType) -> pa.Array:
    places = {}
    for place, member in enumerate(own):
        match = partner(member, wide.members)
        if match is not None:
            places[match.name] = place
    children = [
        widened(array.field(places[member.name]), own[places[member.name]].type, member.type)
        if member.name in places
        else pa.nulls(len(array), arrow_type(member.type))
        for member in wide.members
    ]
    return _struct_array(children, wide, array.is_null())


def _as_member(array: pa.Array, own: ColumnType, wide: UnionType) -> pa.Array:
    place = place_in(wide, own)
    children = [
        widened(array, own, member.type) if number == place else pa.nulls(len(array), arrow_type(member.type))
        for number, member in enumerate(wide.members)
    ]
    return _struct_array(children, wide, array.is_null())


def _struct_array(children: list[pa.Array], wide: StructType | UnionType, mask: pa.Array) -> pa.Array:
    return pa.StructArray.from_arrays(children, fields=list(arrow_type(wide)), mask=mask)


def _map(array: pa.MapArray, own: MapType, wide: MapType) -> pa.Array:
    kind = arrow_type(wide)
    values = widened(array.items, own.value, wide.value)
    keys = pc.cast(array.keys, kind.key_type)
    entries = pa.StructArray.from_arrays([keys, values], fields=[kind.key_field, kind.item_field])
    return _rebuilt(array, kind, entries)


def _rebuilt(array: pa.Array, kind: pa.DataType, inner: pa.Array) -> pa.Array:
    """A list or map with other contents of the same places."""
    return pa.Array.from_buffers(kind, len(array), array.buffers()[:2], children=[inner])


def text_columns(field: pa.Field) -> Iterator[str]:
    """The paths, as Parquet names them, of a column's texts: words that come again and again are written once."""
    yield from _text_columns(field.type, field.name)


def _text_columns(kind: pa.DataType, path: str) -> Iterator[str]:
    if pa.types.is_string(kind):
        yield path
    elif pa.types.is_struct(kind):
        for inner in kind:
            yield from _text_columns(inner.type, f"{path}.{inner.name}")
    elif pa.types.is_list(kind):
        yield from _text_columns(kind.value_type, f"{path}.list.element")
    elif pa.types.is_map(kind):
        yield from _text_columns(kind.key_type, f"{path}.key_value.key")
        yield from _text_columns(kind.item_type, f"{path}.key_value.value")
