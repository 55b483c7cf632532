"""The typed columns of an export: found from schemas, from what records name, and from what the destination has."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.decode.decoded import Headers, NotDecodable, Part
from kseg.decode.wire import ID_PREFIX_SIZE, MAGIC_GUID, SchemaId, parse_indexed, parse_wire
from kseg.export.decoding import NOTHING, OnMismatch
from kseg.export.order_reader import OrderReader
from kseg.export.plan import WorkOrder
from kseg.export.settings import Mode, ReadOptions
from kseg.export.typed.column_plan import TEXT, ColumnWish, plan_column
from kseg.export.typed.typed_cells import headers_with_ids
from kseg.export.typed.writer_schema import TypedColumn

UsedId = tuple[SchemaId, tuple[int, ...]]


def with_typed_columns(
    read: ReadOptions, written: ReadOptions | None, topics: Iterable[str], orders: Sequence[WorkOrder]
) -> ReadOptions:
    """How records are read, with the typed columns that all topics share: its `schema()` is the table's.

    written: how those of the destination were read, if there are some; its columns are in the new ones. orders: those
    whose records are looked at where no schema is registered for a topic. Raises what `plan_column` does.
    """
    decode = read.decode
    columns: dict[str, Any] = {}
    for part, decoder in decode.typed_parts().items():
        wish = ColumnWish(
            part,
            decoder,
            _path(decode.schema),
            decode.message,
            _path(decode.registry),
            decode.on_mismatch is OnMismatch.RAW,
            None if written is None else written.decode.typed_columns().get(part, TEXT),
        )
        column = plan_column(wish, topics, _RecordIds(read, orders, part).used_ids)
        if column is not None:
            columns[part] = column.to_json()
    return read if not columns else replace(read, decode=replace(decode, columns=columns))


def without_writers(read: ReadOptions) -> ReadOptions:
    """The same with the types of the columns alone, for a manifest."""
    columns: dict[str, Any] = {
        part: TypedColumn(column.type).to_json() for part, column in read.decode.typed_columns().items()
    }
    return read if not columns else replace(read, decode=replace(read.decode, columns=columns))


def _path(text: str | None) -> Path | None:
    return None if text is None else Path(text)


class _RecordIds:
    """The schema ids that the records of orders name."""

    def __init__(self, read: ReadOptions, orders: Sequence[WorkOrder], part: Part) -> None:
        self._read = replace(
            read, headers=True, batch_columns=False, latest_per_key=None, redaction=None, decode=NOTHING,
            mode=Mode.PERMISSIVE,
        )  # fmt: skip
        self._orders = orders
        self._part = part

    def used_ids(self, topic: str, has_indexes: Callable[[SchemaId], bool]) -> set[UsedId]:
        """Those of a topic's keys or values, as `UsedIds` has them."""
        found: set[UsedId] = set()
        for order in self._orders:
            if order.topic == topic:
                for batch in OrderReader(order, self._read, checksums=False).batches():
                    found |= self._ids_of(batch, has_indexes)
        return found

    def _ids_of(self, batch: pa.RecordBatch, has_indexes: Callable[[SchemaId], bool]) -> set[UsedId]:
        messages, headers = batch.column(self._part), headers_with_ids(batch.column("headers"), self._part)
        if headers is None and not self._has_guids(messages):
            starts = pc.unique(pc.binary_slice(messages, 0, ID_PREFIX_SIZE)).to_pylist()
            found = set(self._named(((start, ()) for start in starts), lambda _: False))
            if not any(has_indexes(own) for own, _ in found):
                return found
        pairs = zip(messages.to_pylist(), headers or repeat(()))  # noqa: B905  the second has no end
        return set(self._named(pairs, has_indexes))

    def _has_guids(self, messages: pa.Array) -> bool:
        return bool(pc.any(pc.equal(pc.binary_slice(messages, 0, 1), MAGIC_GUID)).as_py())

    def _named(
        self, messages: Iterable[tuple[bytes | None, Headers]], has_indexes: Callable[[SchemaId], bool]
    ) -> Iterator[UsedId]:
        for message, headers in messages:
            wire = None if message is None else parse_wire(message, headers, self._part)
            if wire is None:
                continue
            if not has_indexes(wire.schema_id):
                yield wire.schema_id, ()
                continue
            with suppress(NotDecodable):
                yield wire.schema_id, parse_indexed(wire).indexes
