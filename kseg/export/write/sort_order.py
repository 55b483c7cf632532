"""The order of rows within row groups that `--sort-by` asks for."""

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.errors import UsageError


def check_sort(schema: pa.Schema, columns: tuple[str, ...]) -> None:
    """Raise UsageError if files with a schema can't be sorted by these columns."""
    for number, name in enumerate(columns):
        kind = schema.field(name).type if name in schema.names else None
        if kind is None or name in columns[:number]:
            raise UsageError(f"--sort-by {name}: files have no such column, or it occurs twice; specify other columns")
        if pa.types.is_nested(kind):
            raise UsageError(f"--sort-by {name}: values of type {kind} have no order; specify other columns")


def sorted_rows(rows: pa.Table, columns: tuple[str, ...]) -> pa.Table:
    """Return rows that rise by some columns, with nulls at the end; equal ones stay in the order of the log."""
    if not columns:
        return rows
    return rows.take(pc.sort_indices(rows, sort_keys=[(name, "ascending") for name in columns]))


def parquet_order(schema: pa.Schema, columns: tuple[str, ...]) -> list[pq.SortingColumn]:
    """Return the order for the metadata of row groups, which number the leaves of all columns."""
    starts, leaf = {}, 0
    for field in schema:
        starts[field.name] = leaf
        leaf += _leaf_count(field.type)
    return [pq.SortingColumn(starts[name], nulls_first=False) for name in columns]


def _leaf_count(kind: pa.DataType) -> int:
    if pa.types.is_list(kind):
        return _leaf_count(kind.value_type)
    if pa.types.is_map(kind):
        return _leaf_count(kind.key_type) + _leaf_count(kind.item_type)
    return sum(_leaf_count(field.type) for field in kind) if pa.types.is_struct(kind) else 1
