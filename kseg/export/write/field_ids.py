"""Field ids of Parquet files' columns, by which Iceberg finds them."""

from collections.abc import Iterable, Iterator
from itertools import count

import pyarrow as pa

_ID = b"PARQUET:field_id"


def with_field_ids(schema: pa.Schema, ids: Iterable[int] = ()) -> pa.Schema:
    """Return the schema with field ids: the given ones, or 1, 2 and so on as Iceberg's catalogs number new tables.

    All fields of a struct are numbered before their children. Source: TypeUtil.assignFreshIds.
    """
    return pa.schema(_number_fields(schema, iter(ids or count(1))))


def field_ids(schema: pa.Schema, table: pa.Schema) -> tuple[int, ...]:
    """Return the ids in a table schema for the fields of another one, in the order of `with_field_ids`.

    The table has all fields. Returns an empty tuple if the ids are those of a new table.
    """
    found = tuple(_ids_of(schema, table))
    return () if found == tuple(range(1, len(found) + 1)) else found


def _ids_of(fields: Iterable[pa.Field], table: Iterable[pa.Field]) -> Iterator[int]:
    there = {field.name: field for field in table}
    pairs = [(field, there[field.name]) for field in fields]
    for _, own in pairs:
        yield int(own.metadata[_ID])
    for field, own in pairs:
        yield from _ids_within(field.type, own.type)


def _ids_within(kind: pa.DataType, table: pa.DataType) -> Iterator[int]:
    if pa.types.is_struct(kind):
        yield from _ids_of(kind, table)
    elif pa.types.is_list(kind):
        yield int(table.value_field.metadata[_ID])
        yield from _ids_within(kind.value_type, table.value_type)
    elif pa.types.is_map(kind):
        yield from (int(table.key_field.metadata[_ID]), int(table.item_field.metadata[_ID]))
        yield from _ids_within(kind.item_type, table.item_type)


def _number_fields(fields: pa.Schema | pa.StructType, numbers: Iterator[int]) -> list[pa.Field]:
    own = [next(numbers) for _ in fields]
    return [
        _with_id(field, number).with_type(_inner(field.type, numbers))
        for field, number in zip(fields, own, strict=True)
    ]


def _with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), _ID: str(number).encode()})


def _inner(kind: pa.DataType, numbers: Iterator[int]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_number_fields(kind, numbers))
    if pa.types.is_list(kind):
        element = _with_id(kind.value_field, next(numbers))
        return pa.list_(element.with_type(_inner(kind.value_type, numbers)))
    if pa.types.is_map(kind):
        key, item = _with_id(kind.key_field, next(numbers)), _with_id(kind.item_field, next(numbers))
        return pa.map_(key.with_type(_inner(kind.key_type, numbers)), item.with_type(_inner(kind.item_type, numbers)))
    return kind
