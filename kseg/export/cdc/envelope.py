"""Debezium's envelope: the kind of each record, the change that it describes, and the fields of the row."""

from collections import Counter
from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from kseg.errors import quote
from kseg.export.cdc.positions import positions
from kseg.export.changes import row_numbers

Fields = Mapping[str, pa.Array]
OPERATIONS = ("c", "u", "r", "d", "t")
"""Insert, update, row of a snapshot, delete, truncate. Source: Debezium's Envelope.Operation."""
DELETE, TRUNCATE, TOMBSTONE = "d", "t", "tombstone"
_UPSERTS = ("c", "u", "r")
_MESSAGE = "m"
"""A message that PostgreSQL's pg_logical_emit_message wrote into the log."""
_ROW_PREFIX = "__"
"""The prefix of fields that Debezium's ExtractNewRecordState adds to a row."""


class Skipped(StrEnum):
    """Records that describe no change of a row, by their kind."""

    TOMBSTONES = "tombstones"
    HEARTBEATS = "heartbeats"
    SCHEMA_CHANGES = "schemaChanges"
    TRANSACTIONS = "transactions"
    MESSAGES = "messages"


class Envelopes(NamedTuple):
    """The changes among some records.

    rows: the records' places. ops, times, places: the operation, time in milliseconds and position of each change.
    after, before: the row's fields. skipped: the other records by kind. failures: reasons by record.
    """

    rows: pa.Array
    ops: pa.Array
    times: pa.Array
    positions: pa.Array
    after: Fields
    before: Fields
    skipped: Counter[str]
    failures: dict[int, str]

    def filter_by(self, mask: pa.Array) -> "Envelopes":
        """Return the changes for which a mask is true."""
        return self._replace(
            rows=self.rows.filter(mask),
            ops=self.ops.filter(mask),
            times=self.times.filter(mask),
            positions=self.positions.filter(mask),
            after=_filter_fields(self.after, mask),
            before=_filter_fields(self.before, mask),
        )


def open_envelopes(fields: Fields, rows: pa.Array) -> Iterator[Envelopes]:
    """Yield the changes in decoded values, those of envelopes and those of rows without one.

    fields: the members of the values; rows: their places among the records.
    """
    fields = _payload(fields)
    is_flat = _is_flat(fields, len(rows))
    for mask in (is_flat, pc.invert(is_flat)):
        if mask.true_count == len(rows):
            yield _open(fields, rows, is_flat=mask is is_flat)
        elif mask.true_count:
            yield _open(_filter_fields(fields, mask), rows.filter(mask), is_flat=mask is is_flat)


def _open(fields: Fields, rows: pa.Array, *, is_flat: bool) -> Envelopes:
    count = len(rows)
    ops = _flat_ops(fields, count) if is_flat else _text(fields, "op", count)
    source = _flat_source(fields) if is_flat else struct_fields(_struct(fields, "source"))
    row = {name: each for name, each in fields.items() if not name.startswith(_ROW_PREFIX)}
    after, before = (row, row) if is_flat else (struct_fields(_struct(fields, name)) for name in ("after", "before"))
    has_after = pa.repeat(True, count) if is_flat else _is_there(fields, "after", count)
    kinds = _kinds(fields, ops, count)
    failures = _failures(ops, has_after, kinds)
    is_change = pc.fill_null(pc.is_in(ops, value_set=pa.array(OPERATIONS)), False)
    if failures:
        is_change = pc.and_(is_change, pc.invert(_are(failures, count)))
    times = pc.coalesce(_long(source, "ts_ms", count), _long(fields, "ts_ms", count))
    return Envelopes(
        rows.filter(is_change),
        ops.filter(is_change),
        times.filter(is_change),
        positions(source, count).filter(is_change),
        _filter_fields(after, is_change),
        _filter_fields(before, is_change),
        Counter({kind.value: mask.true_count for kind, mask in kinds.items() if mask.true_count}),
        {rows[place].as_py(): reason for place, reason in failures.items()},
    )


def _payload(fields: Fields) -> Fields:
    """Return the members of the payload, if all values are wrapped with their schema."""
    if set(fields) == {"schema", "payload"} and pa.types.is_struct(fields["payload"].type):
        return struct_fields(fields["payload"])
    return fields


def _struct(fields: Fields, name: str) -> pa.Array | None:
    column = fields.get(name)
    return column if column is not None and pa.types.is_struct(column.type) else None


def struct_fields(column: pa.Array | None) -> Fields:
    """Return the members of structs by name; none without structs."""
    return {} if column is None else dict(zip(column.type.names, column.flatten(), strict=True))


def _filter_fields(fields: Fields, mask: pa.Array) -> Fields:
    return {name: column.filter(mask) for name, column in fields.items()}


def _text(fields: Fields, name: str, count: int) -> pa.Array:
    column = fields.get(name)
    return column if column is not None and pa.types.is_string(column.type) else pa.nulls(count, pa.string())


def _long(fields: Fields, name: str, count: int) -> pa.Array:
    column = fields.get(name)
    return column if column is not None and pa.types.is_integer(column.type) else pa.nulls(count, pa.int64())


def _is_there(fields: Fields, name: str, count: int) -> pa.Array:
    column = fields.get(name)
    return pa.repeat(False, count) if column is None else pc.is_valid(column)


def _is_flat(fields: Fields, count: int) -> pa.Array:
    """Return which values are rows that ExtractNewRecordState took out of their envelopes."""
    return pc.or_(_is_there(fields, "__op", count), _is_there(fields, "__deleted", count))


def _flat_ops(fields: Fields, count: int) -> pa.Array:
    deleted = fields.get("__deleted")
    is_deleted = pa.nulls(count, pa.bool_()) if deleted is None else pc.equal(deleted.cast(pa.string()), "true")
    return pc.if_else(pc.fill_null(is_deleted, False), DELETE, pc.fill_null(_text(fields, "__op", count), "u"))


def _flat_source(fields: Fields) -> Fields:
    """Return the source's fields that `add.fields` added, with or without the name of their struct."""
    names = {name: name.removeprefix(_ROW_PREFIX).removeprefix("source_") for name in fields}
    return {names[name]: column for name, column in fields.items() if name.startswith(_ROW_PREFIX)}


def _kinds(fields: Fields, ops: pa.Array, count: int) -> dict[Skipped, pa.Array]:
    """Return masks of the records that describe no change of a row.

    Heartbeats have only a time. Schema changes have the statement or the new columns, and events of the transaction
    topic the status of a transaction.
    """
    has_no_op = pc.is_null(ops)
    has_schema = pc.or_(_is_there(fields, "ddl", count), _is_there(fields, "tableChanges", count))
    has_status = pc.and_(_is_there(fields, "status", count), _is_there(fields, "event_count", count))
    is_begin = pc.fill_null(pc.equal(_text(fields, "status", count), "BEGIN"), False)
    others = [pc.invert(_is_there(fields, name, count)) for name in fields if name != "ts_ms"]
    is_beat = reduce(pc.and_, others, _is_there(fields, "ts_ms", count))
    return {
        Skipped.SCHEMA_CHANGES: pc.and_(has_no_op, has_schema),
        Skipped.TRANSACTIONS: pc.and_(has_no_op, pc.or_(has_status, is_begin)),
        Skipped.HEARTBEATS: pc.and_(has_no_op, is_beat),
        Skipped.MESSAGES: pc.fill_null(pc.equal(ops, _MESSAGE), False),
    }


def _failures(ops: pa.Array, has_after: pa.Array, kinds: Mapping[Skipped, pa.Array]) -> dict[int, str]:
    """Return the records that are no envelopes, with what they lack."""
    is_other = reduce(pc.or_, kinds.values())
    has_no_op = pc.and_(pc.is_null(ops), pc.invert(is_other))
    has_no_row = pc.and_(pc.is_in(ops, value_set=pa.array(_UPSERTS)), pc.invert(has_after))
    is_unknown = pc.and_(pc.is_valid(ops), pc.invert(pc.is_in(ops, value_set=pa.array([*OPERATIONS, _MESSAGE]))))
    found: dict[int, str] = {}
    for mask, lack in ((has_no_op, "it has no field op"), (has_no_row, "it has no field after")):
        found |= dict.fromkeys(pc.indices_nonzero(mask).to_pylist(), f"not a change event of Debezium: {lack}")
    for place in pc.indices_nonzero(is_unknown).to_pylist():
        found[place] = f"not a change event of Debezium: its op is {quote(ops[place].as_py())}"
    return found


def _are(places: Mapping[int, str], count: int) -> pa.Array:
    numbers = row_numbers(count)
    return pc.is_in(numbers, value_set=pa.array(list(places), pa.int64()))
