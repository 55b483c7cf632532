"""Columns of a table of database rows, which `--unwrap` makes of the changes in a topic."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from kseg.errors import KsegError
from kseg.export.columns.column_types import (
    ColumnMember,
    ColumnType,
    DecimalType,
    ListType,
    MapType,
    Scalar,
    StructType,
    arrow_type,
    from_json,
    to_json,
)

PARTITION = pa.field("_kseg_partition", pa.int32())
OFFSET = pa.field("_kseg_offset", pa.int64())
POSITION = pa.field("_kseg_position", pa.string())
TIME = pa.field("_kseg_ts_ms", pa.int64())
OP = pa.field("_kseg_op", pa.string())
ORIGIN = (PARTITION, OFFSET, POSITION, TIME)
"""The change that made a row: its record, its position in the database's log, and its time."""
DELETED_ROWS = "_kseg/deleted"
"""The folder of the files with the keys of deleted rows."""
_DELETED_FILE = re.compile(rf"{DELETED_ROWS}/[0-9a-f]{{8}}-[0-9a-f]{{12}}\.parquet")


@dataclass(frozen=True, slots=True)
class Unwrapping:
    """The rows of changes instead of records.

    history: whether each change is a row; otherwise the table has the latest row of each key. columns: the names and
    types of the rows' columns so far, as JSON. keys: the columns among them that make the key. deleted: the file with
    the keys of deleted rows. truncated: the latest change that removed all rows, with the values of ORIGIN.
    """

    history: bool = False
    columns: Sequence[tuple[str, Any]] = field(default=(), compare=False)
    keys: Sequence[str] = field(default=(), compare=False)
    deleted: str | None = field(default=None, compare=False)
    truncated: Sequence[Any] = field(default=(), compare=False)

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "Unwrapping":
        """Return the unwrapping from JSON made of dataclasses.asdict. Raises KsegError if it is invalid."""
        columns = tuple((str(name), kind) for name, kind in members["columns"])
        deleted = members["deleted"]
        if deleted is not None and _DELETED_FILE.fullmatch(deleted) is None:
            raise KsegError("the file of deleted rows has a name that kseg doesn't give")
        truncated = tuple(members["truncated"])
        found = cls(bool(members["history"]), columns, tuple(map(str, members["keys"])), deleted, truncated)
        found.row_type()
        found.truncation()
        return found

    def truncation(self) -> pa.Table:
        """Return the latest change that removed all rows, if there is any. Raises pyarrow's errors if it is invalid."""
        schema = pa.schema(ORIGIN)
        if not self.truncated:
            return schema.empty_table()
        return pa.table(
            [pa.array([value], kind.type) for value, kind in zip(self.truncated, ORIGIN, strict=True)], schema
        )

    def row_type(self) -> StructType:
        """Return the columns of the rows as one type."""
        return StructType(tuple(ColumnMember(name, from_json(kind)) for name, kind in self.columns))

    def schema(self) -> pa.Schema:
        """Return the schema of the table."""
        own = (*ORIGIN, OP) if self.history else ORIGIN
        return pa.schema([*fields_of(self.row_type()), *own])

    def key_schema(self) -> pa.Schema:
        """Return the schema of the deleted rows: their keys, and the changes that deleted them."""
        keys = [field for field in fields_of(self.row_type()) if field.name in self.keys]
        return pa.schema([*keys, *ORIGIN])


def fields_of(record: StructType) -> list[pa.Field]:
    """Return a record's columns."""
    return [pa.field(member.name, arrow_type(member.type)) for member in record.members]


def columns_of(record: StructType) -> tuple[tuple[str, Any], ...]:
    """Return a record's columns as `Unwrapping` has them."""
    return tuple((member.name, to_json(member.type)) for member in record.members)


def new_deleted_name(run_id: str, suffix: str) -> str:
    """Return the name of a run's file of deleted rows."""
    return f"{DELETED_ROWS}/{run_id}-{suffix}.parquet"


def column_type(kind: pa.DataType) -> ColumnType | None:
    """Return the column of values that pyarrow has read; None if all are null or empty, so that nothing is known."""
    scalar = next((own for is_kind, own in _KINDS if is_kind(kind)), None)
    if scalar is not None:
        return scalar
    if pa.types.is_decimal(kind):
        return DecimalType(kind.precision, kind.scale)
    if pa.types.is_struct(kind):
        return struct_type(kind)
    inner = column_type(kind.item_type if pa.types.is_map(kind) else kind.value_type) if _has_items(kind) else None
    if inner is None:
        return None
    return MapType(Scalar.STRING, inner) if pa.types.is_map(kind) else ListType(inner)


def _has_items(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_map(kind))


def struct_type(fields: Iterable[pa.Field]) -> StructType | None:
    """Return the type of a record with some fields, without those of unknown type; None if none is known."""
    known = [(each.name, column_type(each.type)) for each in fields]
    members = tuple(ColumnMember(name, kind) for name, kind in known if kind is not None)
    return StructType(members) if members else None


_KINDS: tuple[tuple[Any, Scalar], ...] = (
    (pa.types.is_boolean, Scalar.BOOLEAN),
    (pa.types.is_integer, Scalar.LONG),
    (pa.types.is_float32, Scalar.FLOAT),
    (pa.types.is_float64, Scalar.DOUBLE),
    (pa.types.is_string, Scalar.STRING),
    (pa.types.is_binary, Scalar.BYTES),
    (pa.types.is_date32, Scalar.DATE),
    (lambda kind: pa.types.is_timestamp(kind) and kind.tz is not None, Scalar.TIMESTAMP),
    (pa.types.is_timestamp, Scalar.LOCAL_TIMESTAMP),
)
