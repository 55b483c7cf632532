"""Columns of the fields of decoded keys and values, next to kseg's own columns."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pyarrow as pa

from kseg.arrow import ArrowOptions, schema_of
from kseg.errors import UsageError

if TYPE_CHECKING:
    from kseg.decode.decoded import Part

_DECODED = frozenset(("keyDecoded", "valueDecoded"))
_OWN = frozenset((*schema_of(ArrowOptions(batch_columns=True, has_milliseconds=True)).names, "topicId", "date"))
_RESERVED = frozenset(name.lower() for name in _OWN | _DECODED)
"""Names that no field gets, in any export: a column would change its name if options decided."""


def is_decoded(name: str) -> bool:
    """Return True if a table's column comes from decoded keys or values."""
    return name not in _OWN


def flat_name(part: "Part", field: str) -> str:
    """Return the column name for a field, with the prefix `key_` or, if the name is taken, `value_`."""
    return f"{part}_{field}" if part == "key" or field.lower() in _RESERVED else field


def flat_fields(part: "Part", record: pa.StructType) -> list[pa.Field]:
    """Return the columns of the fields of a record."""
    return [field.with_name(flat_name(part, field.name)) for field in record]


def require_distinct_columns(fields: Iterable[tuple["Part", str]]) -> None:
    """Raise UsageError if two fields would have the same column, apart from case, which readers ignore."""
    known: dict[str, str] = {}
    for part, name in fields:
        column = flat_name(part, name)
        other = known.setdefault(column.lower(), f"{name} of {part}s")
        if other != f"{name} of {part}s":
            why = f"the fields {other} and {name} of {part}s would have the same column, {column}"
            raise UsageError(f"--flatten: {why}; omit --flatten for this topic")


def with_all_columns(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Add the missing columns of a schema to the rows of an older file, filled with nulls."""
    for field in schema:
        if field.name not in rows.schema.names and is_decoded(field.name):
            rows = rows.append_column(field, pa.nulls(rows.num_rows, field.type))
    return rows.select(schema.names).cast(schema)
