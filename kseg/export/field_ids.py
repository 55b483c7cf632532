"""Iceberg's ids of columns, which its readers find columns by: in Parquet files they are the fields' ids."""

from collections.abc import Iterator
from itertools import count

import pyarrow as pa

_ID = b"PARQUET:field_id"


def with_field_ids(schema: pa.Schema) -> pa.Schema:
    """The schema with an id for each field, in the order in which Iceberg's catalogs number them.

    All fields of a struct are numbered before what is in them. Source: TypeUtil.assignFreshIds.
    """
    return pa.schema(_numbered(schema, count(1)))


def _numbered(fields: pa.Schema | pa.StructType, numbers: Iterator[int]) -> list[pa.Field]:
    own = [next(numbers) for _ in fields]
    return [
        _with_id(field, number).with_type(_inner(field.type, numbers))
        for field, number in zip(fields, own, strict=True)
    ]


def _with_id(field: pa.Field, number: int) -> pa.Field:
    return field.with_metadata({**(field.metadata or {}), _ID: str(number).encode()})


def _inner(kind: pa.DataType, numbers: Iterator[int]) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct(_numbered(kind, numbers))
    if pa.types.is_list(kind):
        element = _with_id(kind.value_field, next(numbers))
        return pa.list_(element.with_type(_inner(kind.value_type, numbers)))
    if pa.types.is_map(kind):
        key, item = _with_id(kind.key_field, next(numbers)), _with_id(kind.item_field, next(numbers))
        return pa.map_(key.with_type(_inner(kind.key_type, numbers)), item.with_type(_inner(kind.item_type, numbers)))
    return kind
