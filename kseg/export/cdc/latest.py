"""The latest change of each key."""

from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg.export.cdc.envelope import DELETE, TOMBSTONE
from kseg.export.cdc.positions import compare
from kseg.export.changes import row_numbers
from kseg.export.columns.unwrapped import OFFSET, OP, PARTITION

UNAVAILABLE = "__debezium_unavailable_value"
"""Debezium's placeholder for large values of PostgreSQL that an update didn't change."""
_ESCAPED = "\x1f"
"""A separator of key columns; each text is preceded by its length, so that no two keys are alike."""


class Latest(NamedTuple):
    """The latest change of each key, and the number of pairs whose order isn't known."""

    rows: pa.Table
    undecided: int


def key_of(rows: pa.Table, keys: tuple[str, ...]) -> pa.Array:
    """Return one value for each row that identifies its key."""
    columns = [rows.column(name).combine_chunks() for name in keys]
    if len(columns) == 1 and (pa.types.is_integer(columns[0].type) or pa.types.is_string(columns[0].type)):
        return columns[0]
    texts = [_text(column) for column in columns]
    sized = [pc.binary_join_element_wise(pc.binary_length(text).cast(pa.string()), text, ":") for text in texts]
    return pc.binary_join_element_wise(*sized, _ESCAPED)


def _text(column: pa.Array) -> pa.Array:
    if pa.types.is_binary(column.type):
        return pc.fill_null(column, b"").cast(pa.string(), safe=False)
    return pc.fill_null(column.cast(pa.string()), "")


def latest_changes(changes: pa.Table, keys: tuple[str, ...]) -> Latest:
    """Return the latest change of each key: the last one of each partition, and the latest of these."""
    ids = key_of(changes, keys).dictionary_encode() if changes.num_rows else None
    if ids is None or len(ids.dictionary) == len(ids):
        return Latest(changes, 0)
    order = pa.table(
        {
            "id": ids.indices,
            PARTITION.name: changes.column(PARTITION.name),
            OFFSET.name: changes.column(OFFSET.name),
            "row": row_numbers(changes.num_rows),
        }
    )
    order = order.take(pc.sort_indices(order, [(name, "ascending") for name in order.column_names[:3]]))
    order = order.filter(pc.invert(_repeats_delete(changes, order)))
    is_first = _is_first(order)
    changes = _with_earlier_values(changes, order, is_first)
    order = order.filter(pa.concat_arrays([is_first.slice(1), pa.array([True])]) if order.num_rows else is_first)
    return _across_partitions(changes, order)


def _is_first(order: pa.Table) -> pa.Array:
    """Return whether each row is the first of its key and partition."""
    if not order.num_rows:
        return pa.array([], pa.bool_())
    ids, partitions = (order.column(name).combine_chunks() for name in ("id", PARTITION.name))
    others = (pc.not_equal(each.slice(1), each.slice(0, len(each) - 1)) for each in (ids, partitions))
    return pa.concat_arrays([pa.array([True]), pc.or_(*others)])


def unavailable_columns(rows: pa.Table) -> list[str]:
    """Return the columns with values that PostgreSQL didn't log, since the change left them as they were."""
    texts = [each.name for each in rows.schema if pa.types.is_string(each.type)]
    return [name for name in texts if pc.any(pc.equal(rows.column(name), UNAVAILABLE)).as_py()]


def _with_earlier_values(changes: pa.Table, order: pa.Table, is_first: pa.Array) -> pa.Table:
    """Return the changes with values that weren't logged from the preceding changes of their key, as far as known."""
    names = unavailable_columns(changes)
    if not names:
        return changes
    own, numbers = order.column("row").combine_chunks(), row_numbers(order.num_rows)
    begins = pc.fill_null_forward(pc.if_else(is_first, numbers, None))
    for name in names:
        column = changes.column(name).combine_chunks()
        values = column.take(own)
        is_known = pc.fill_null(pc.not_equal(values, UNAVAILABLE), True)
        known = pc.fill_null_forward(pc.if_else(is_known, numbers, None))
        is_its = pc.fill_null(pc.greater_equal(known, begins), False)
        filled = pc.if_else(is_its, values.take(known), UNAVAILABLE)
        places = pc.index_in(row_numbers(changes.num_rows), value_set=own)
        place = changes.schema.get_field_index(name)
        changes = changes.set_column(place, name, pc.if_else(pc.is_valid(places), filled.take(places), column))
    return changes


def _repeats_delete(changes: pa.Table, order: pa.Table) -> pa.Array:
    """Return whether each row is a tombstone after a deletion of its key, which Debezium adds for compaction."""
    ops = changes.column(OP.name).combine_chunks().take(order.column("row").combine_chunks())
    is_tombstone, is_gone = pc.equal(ops, TOMBSTONE), pc.is_in(ops, value_set=pa.array([DELETE, TOMBSTONE]))
    before = pa.concat_arrays([pa.array([False]), is_gone.slice(0, len(ops) - 1)]) if len(ops) else is_gone
    return pc.and_(pc.and_(is_tombstone, before), pc.invert(_is_first(order)))


def _across_partitions(changes: pa.Table, order: pa.Table) -> Latest:
    """Return the latest of the changes with the same key, each from another partition."""
    counts = order.group_by("id").aggregate([([], "count_all")])
    several = counts.filter(pc.greater(counts.column("count_all"), 1)).column("id").combine_chunks()
    is_one_of_several = pc.is_in(order.column("id"), value_set=several).combine_chunks()
    found = changes.take(order.column("row").filter(pc.invert(is_one_of_several)))
    left, undecided = order.filter(is_one_of_several), 0
    if not left.num_rows:
        return Latest(found.combine_chunks(), 0)
    best = left.slice(0, 0)
    for partition in pc.unique(left.column(PARTITION.name)).to_pylist():
        own = left.filter(pc.equal(left.column(PARTITION.name), partition))
        best, more = _join(changes, best, own)
        undecided += more
    return Latest(pa.concat_tables([found, changes.take(best.column("row"))]).combine_chunks(), undecided)


def _join(changes: pa.Table, best: pa.Table, own: pa.Table) -> tuple[pa.Table, int]:
    """Return the later of two changes of each key, and the number of undecided pairs."""
    places = pc.index_in(own.column("id").combine_chunks(), value_set=best.column("id").combine_chunks())
    both = own.filter(pc.is_valid(places))
    rivals = best.take(places.drop_null())
    wins, is_undecided = compare(changes.take(rivals.column("row")), changes.take(both.column("row")))
    beaten = pc.is_in(best.column("id").combine_chunks(), value_set=both.filter(wins).column("id").combine_chunks())
    new = own.filter(pc.is_null(places))
    return pa.concat_tables([best.filter(pc.invert(beaten)), both.filter(wins), new]), is_undecided.true_count
