"""Scans of records: only the partitions, offsets, times and columns that a query needs are read."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path

import pyarrow as pa

from kseg.errors import OpenError
from kseg.export.copies import Copies, PartitionCopy
from kseg.export.coverage import common, explained, missing
from kseg.export.decoding import COLUMNS
from kseg.export.filter_bounds import Condition, FilterBounds
from kseg.export.order_reader import OrderReader, coalesced
from kseg.export.plan import Done, Splitting, WorkOrder, plan_orders
from kseg.export.ranges import ChangedError
from kseg.export.settings import LogSelection, OffsetRange, ReadOptions
from kseg.export.tally import LostOffsets, Tally
from kseg.kernel.contract import Contents
from kseg.query.query_log import DisorderedError, Key, QueryLog, Scan, condition_text

ROWS = 1 << 16
"""Rows of a record batch at most: with few in each, DuckDB takes longer."""
_WHOLE = 1 << 62
"""No order is as large: one reads all that is wanted of a partition, so that it sees whether offsets rise."""


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records as a table. read: how its records are read, with all columns that it can have.

    copies: the partitions that it is of. selection: what of them, beside what queries ask. added: adds further columns
    to record batches, each named in `added_fields`, which are made of key and value.
    """

    name: str
    copies: Copies
    selection: LogSelection
    read: ReadOptions
    added_fields: tuple[pa.Field, ...] = ()
    added: Callable[[pa.RecordBatch, Sequence[str]], pa.RecordBatch] | None = None

    def schema(self) -> pa.Schema:
        """Its columns: one that costs nothing first, since DuckDB reads the first column where rows are counted."""
        fields = [*self.read.schema(), *self.added_fields]
        return pa.schema(sorted(fields, key=lambda field: field.name != "offset"))

    def column_names(self) -> list[str]:
        """Its columns in the order of exports."""
        return [*self.read.schema().names, *(field.name for field in self.added_fields)]


class RecordScan:
    """The records of a table for which a condition is true."""

    def __init__(self, table: RecordTable, columns: Sequence[str], condition: Condition | None, log: QueryLog) -> None:
        """Plans: which partitions may have such records, and at which offsets. Reads nothing but indexes."""
        self._table = table
        self._columns = list(columns)
        self._condition = condition
        self._log = log
        needed = set(columns) | _columns_of(condition, table.schema())
        self._added = [field.name for field in table.added_fields if field.name in needed]
        self._options = _narrowed(table.read, needed)
        self._contents = _contents(needed, self._options)
        bounds = FilterBounds(condition, table.schema())
        self._copies = {key: known for key, known in bounds.find(table.copies).items() if _is_selected(table, key)}
        self._selection = _selection(table.selection, bounds, self._copies)

    def scan(self) -> Scan:
        """What is to be read, by names, sizes and indexes."""
        orders = [order for key in sorted(self._copies, key=_rank) for order in self._orders(key)]
        return Scan(
            self._table.name,
            self._columns,
            condition_text(self._condition),
            len({(order.topic, order.partition) for order in orders}),
            len(self._table.copies),
            sum(order.size for order in orders),
            sum(replicas[0].size for replicas in self._table.copies.values()),
            orders,
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The records, partition by partition, in their logs' order; only the wanted columns.

        What is damaged is left out, and said in the log. Raises DisorderedError.
        """
        found = self._filtered()
        yield from islice(found, 1)  # at once: a LIMIT may want no more
        yield from coalesced(found, self._options.max_bytes, ROWS)

    def _filtered(self) -> Iterator[pa.RecordBatch]:
        for key in sorted(self._copies, key=_rank):
            for batch in self._of_partition(key):
                whole = self._table.added(batch, self._added) if self._table.added and self._added else batch
                wanted = whole if self._condition is None else whole.filter(self._condition)
                if wanted.num_rows:
                    yield wanted.select(self._columns)

    def _of_partition(self, key: Key) -> Iterator[pa.RecordBatch]:
        """The records of the best copy, then of the others what that one lacks."""
        readers: list[OrderReader] = []
        try:
            for rank in range(len(self._copies[key])):
                for order in self._orders(key, rank, [reader.tally for reader in readers]):
                    readers.append(OrderReader(order, self._options, checksums=False, contents=self._contents))
                    yield from self._of_order(readers[-1], key)
        finally:  # also where DuckDB has enough
            self._say(readers)

    def _orders(self, key: Key, rank: int = 0, tallies: Sequence[Tally] = ()) -> list[WorkOrder]:
        done = {key: Done(tuple(explained(list(tallies))))} if tallies else None
        splitting = Splitting(_WHOLE, whole_partitions=True, disordered=frozenset(self._log.disordered))
        return plan_orders({key: self._copies[key]}, self._selection, splitting, done, rank)

    def _of_order(self, reader: OrderReader, key: Key) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader.batches():
                if reader.is_useless:
                    break
                yield batch
        except ChangedError as error:
            self._log.damage(f"{error}: what is there now wasn't read")
        except OpenError as error:
            self._log.refuse_once(error)
        if reader.is_useless:
            raise DisorderedError(key, reader.order.replica)

    def _say(self, readers: Sequence[OrderReader]) -> None:
        """Says what no copy has of what was damaged in one, and what else there is to say."""
        present = explained([reader.tally for reader in readers])
        for reader in readers:
            for loss in reader.tally.losses:
                if not loss.is_harmless:
                    place = f"{_from_here(loss.segment)}: at position {loss.position}"
                    self._log.damage(f"{place}: {loss.kind}: {loss.detail}; {_what_is_missing(loss, present)}")
            for note in reader.notes():
                self._log.note(note)


def _from_here(path: str) -> str:
    """A path as somebody in the current directory would give it."""
    return path.removeprefix(f"{Path.cwd()}/")


def _what_is_missing(loss: LostOffsets, present: list[OffsetRange]) -> str:
    if loss.first is None:
        return "which offsets are missing isn't known"
    if loss.end is None:
        return f"offsets from {loss.first} on may be missing"
    lacking = list(missing(OffsetRange(loss.first, loss.end), present))
    if not lacking:
        return "another copy has what is missing there"
    return f"missing: {', '.join(map(_offsets_text, lacking))}"


def _offsets_text(part: OffsetRange) -> str:
    last = (part.end or 0) - 1
    return f"offset {last}" if part.first == last else f"offsets {part.first} to {last}"


def _rank(key: Key) -> tuple[str, int]:
    topic, partition = key
    return topic, -1 if partition is None else partition


def _is_selected(table: RecordTable, key: Key) -> bool:
    return table.selection.range_of(*key) is not None


def _selection(selection: LogSelection, bounds: FilterBounds, copies: Copies) -> LogSelection:
    """What a condition leaves of a selection; times are looked up in local files only."""
    own = bounds.offsets(copies)
    ranges = {key: common(own[key], selection.range_of(*key) or OffsetRange()) for key in copies}
    times = [selection.first_time, *([] if any(map(_is_remote, copies.values())) else [bounds.first_time()])]
    first_time = max((time for time in times if time is not None and time > 0), default=None)
    return replace(selection, offsets_of=ranges, first_time=first_time)


def _is_remote(replicas: Sequence[PartitionCopy]) -> bool:
    return any(replica.is_remote for replica in replicas)


def _columns_of(condition: Condition | None, schema: pa.Schema) -> set[str]:
    """The columns that a condition looks at: those without which it means nothing."""
    if condition is None:
        return set()
    return {name for name in schema.names if not _can_do_without(condition, schema, name)}


def _can_do_without(condition: Condition, schema: pa.Schema, name: str) -> bool:
    others = pa.schema([field for field in schema if field.name != name])
    try:
        others.empty_table().filter(condition)
    except (pa.ArrowInvalid, pa.ArrowKeyError):
        return False
    return True


_CONTENTS = {
    "key": Contents.KEYS,
    "value": Contents.VALUES,
    COLUMNS["key"]: Contents.KEYS,
    COLUMNS["value"]: Contents.KEYS | Contents.VALUES,
}
"""What columns are made of: a coordinator's key tells what its value is."""


def _contents(columns: set[str], options: ReadOptions) -> Contents:
    """What must be copied of records for these columns."""
    wanted = Contents.HEADERS if options.headers else Contents(0)
    return reduce(or_, (_CONTENTS[name] for name in columns & _CONTENTS.keys()), wanted)


def _narrowed(read: ReadOptions, columns: set[str]) -> ReadOptions:
    """How records are read for these columns."""
    decode = replace(
        read.decode,
        key=read.decode.key if COLUMNS["key"] in columns else None,
        value=read.decode.value if COLUMNS["value"] in columns else None,
    )
    plain = replace(read, headers=True, batch_columns=False).schema().names
    return replace(
        read,
        headers="headers" in columns or (read.headers and bool(decode.fields())),
        batch_columns=read.batch_columns and not columns <= {*plain, *COLUMNS.values()},
        decode=decode,
    )
