"""Scans of records for queries, and tables of rows as Arrow batches."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from itertools import islice
from operator import or_
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import MOST_MILLISECONDS, TIMESTAMP
from kseg.cluster.copies import Copies, PartitionCopy
from kseg.errors import OpenError
from kseg.export.coverage import Coverage
from kseg.export.plan import Done, Splitting, WorkOrder, gapless_partitions, plan_orders
from kseg.export.read.batch_sizes import coalesce_batches
from kseg.export.read.header_offsets import OFFSET_COLUMNS
from kseg.export.read.order_reader import OrderReader
from kseg.export.read.ranges import ChangedError
from kseg.export.results import LostOffsets, Tally, find_explained
from kseg.export.settings import COLUMNS, LogSelection, OffsetRange, ReadOptions
from kseg.formats.file_names import plain_text
from kseg.kernel.entry_points import Contents
from kseg.output.columns import Column, Field, Kind, Unit
from kseg.output.table import Section
from kseg.query.database import DisorderedError, Key, QueryLog, condition_text
from kseg.query.filter_bounds import Condition, FilterBounds
from kseg.system.placed_path import within
from kseg.text.query import Scan

ROWS = 1 << 16
"""The most rows of a record batch: DuckDB is slower with few rows in each."""
_WHOLE = 1 << 62
"""A size above all orders': one order reads all of a partition's wanted records, and detects whether offsets rise."""


@dataclass(frozen=True, slots=True)
class RecordTable:
    """Records as a table. read: the reading options, with all possible columns.

    copies: the table's partitions. selection: its records, further reduced by queries. added: adds the columns
    `added_fields`, which come from key and value, to record batches. is_quick: whether CRCs stay unchecked where
    headers suffice.
    """

    name: str
    copies: Copies
    selection: LogSelection
    read: ReadOptions
    added_fields: tuple[pa.Field, ...] = ()
    added: Callable[[pa.RecordBatch, Sequence[str]], pa.RecordBatch] | None = None
    is_quick: bool = False

    def schema(self) -> pa.Schema:
        """Return its columns; the first is a cheap one, since DuckDB reads the first column to count rows."""
        fields = [*self.read.schema(), *self.added_fields]
        return pa.schema(sorted(fields, key=lambda field: field.name != "partition"))

    def column_names(self) -> list[str]:
        """Return its columns in the order of exports."""
        return [*self.read.schema().names, *(field.name for field in self.added_fields)]


class RecordScan:
    """The records of a table for which a condition is true."""

    def __init__(self, table: RecordTable, columns: Sequence[str], condition: Condition | None, log: QueryLog) -> None:
        """Plan the partitions and offsets that may have such records; reads only indexes."""
        self._table = table
        self._columns = list(columns)
        self._condition = condition
        self._log = log
        needed = set(columns) | _columns_of(condition, table.schema())
        self._added = [field.name for field in table.added_fields if field.name in needed]
        self._options = _narrow(table.read, needed)
        self._contents = _contents(needed, self._options)
        self._of_headers = needed if needed.issubset(OFFSET_COLUMNS) and self._options.takes_all_contents else None
        if table.is_quick and self._of_headers is None:
            causes = sorted(needed.difference(OFFSET_COLUMNS)) or ["options that select by key, value or headers"]
            log.note(f"--quick has no effect on {table.name}: the query needs {', '.join(causes)}")
        bounds = FilterBounds(condition, table.schema())
        self._copies = {key: known for key, known in bounds.find(table.copies).items() if _is_selected(table, key)}
        self._selection = _selection(table.selection, bounds, self._copies)

    def scan(self) -> Scan:
        """Return the planned reads, from names, sizes and indexes."""
        orders = [order for key in sorted(self._copies, key=_rank) for order in self._orders(key)]
        table = self._table
        return Scan(
            table.name,
            self._columns,
            condition_text(self._condition),
            len({(order.topic, order.partition) for order in orders}),
            len(table.copies),
            sum(order.size for order in orders),
            sum(replicas[0].size for replicas in table.copies.values()),
            orders,
            self._of_headers is not None,
            table.is_quick,
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the records with the wanted columns, partition by partition, in their logs' order.

        Damaged parts are omitted, and noted in the log. Raises DisorderedError.
        """
        found = self._filter_rows()
        yield from islice(found, 1)  # immediately: a LIMIT may need no more
        yield from coalesce_batches(found, self._options.max_bytes, ROWS)

    def _filter_rows(self) -> Iterator[pa.RecordBatch]:
        for key in sorted(self._copies, key=_rank):
            for batch in map(_with_known_times, self._of_partition(key)):
                whole = self._table.added(batch, self._added) if self._table.added and self._added else batch
                wanted = whole if self._condition is None else whole.filter(self._condition)
                if wanted.num_rows:
                    yield wanted.select(self._columns)

    def _of_partition(self, key: Key) -> Iterator[pa.RecordBatch]:
        """Yield the records of the best copy, then those missing in it from the others."""
        readers: list[OrderReader] = []
        try:
            for rank in range(len(self._copies[key])):
                for order in self._orders(key, rank, [reader.tally for reader in readers]):
                    readers.append(self._reader(order))
                    yield from self._of_order(readers[-1], key)
        finally:  # also if DuckDB has enough rows
            self._say(readers)

    def _reader(self, order: WorkOrder) -> OrderReader:
        return OrderReader(
            order,
            self._options,
            checksums=False,
            contents=self._contents,
            of_headers=self._of_headers,
            is_quick=self._table.is_quick,
        )

    def _orders(self, key: Key, rank: int = 0, tallies: Sequence[Tally] = ()) -> list[WorkOrder]:
        own = {key: self._copies[key]}
        is_gapless = key in gapless_partitions(own)
        done = {key: Done(find_explained(list(tallies), is_gapless=is_gapless))} if tallies else None
        splitting = Splitting(_WHOLE, whole_partitions=True, disordered=frozenset(self._log.disordered))
        return plan_orders(own, self._selection, splitting, done, rank)

    def _of_order(self, reader: OrderReader, key: Key) -> Iterator[pa.RecordBatch]:
        try:
            for batch in reader.batches():
                if reader.is_useless:
                    break
                yield batch
        except ChangedError as error:
            self._log.damage(f"{error}; the query skipped the new contents")
        except OpenError as error:
            self._log.refuse_once(error)
        if reader.is_useless:
            raise DisorderedError(key, str(reader.order.place))

    def _say(self, readers: Sequence[OrderReader]) -> None:
        """Note damaged data that no copy has, and the readers' other notes."""
        present = find_explained([reader.tally for reader in readers])
        for reader in readers:
            for loss in reader.tally.losses:
                if not loss.is_harmless:
                    segment = within(reader.order.directory, loss.segment)
                    place = f"{_from_here(str(segment))}: at position {loss.position}"
                    self._log.damage(f"{place}: {loss.kind}: {loss.detail}; {_missing_text(loss, present)}")
            for note in reader.notes():
                self._log.note(note)


def _with_known_times(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the records with a null timestamp if it is negative: Kafka's -1 means none."""
    place = batch.schema.get_field_index("timestamp")
    if place < 0:
        return batch
    times = batch.column(place)
    least = pc.min(times.view(pa.int64())).as_py()
    if least is None or least >= 0:
        return batch
    known = pc.if_else(pc.greater_equal(times.view(pa.int64()), 0), times, pa.scalar(None, times.type))
    return batch.set_column(place, batch.schema.field(place), known)


def _from_here(path: str) -> str:
    """Return a path relative to the current directory."""
    return path.removeprefix(f"{Path.cwd()}/")


def _missing_text(loss: LostOffsets, present: Coverage) -> str:
    if loss.first is None:
        return "the missing offsets are unknown"
    if loss.end is None:
        return f"offsets from {loss.first} on may be missing"
    lacking = present.missing(OffsetRange(loss.first, loss.end)).ranges
    if not lacking:
        return "another copy has these offsets"
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
    """Return a selection narrowed by a condition; times are looked up in local files only."""
    own = bounds.offsets(copies)
    ranges = {key: own[key].common(selection.range_of(*key) or OffsetRange()) for key in copies}
    times = [selection.first_time, *([] if any(map(_is_remote, copies.values())) else [bounds.first_time()])]
    first_time = max((time for time in times if time is not None and time > 0), default=None)
    return replace(selection, offsets_of=ranges, first_time=first_time)


def _is_remote(replicas: Sequence[PartitionCopy]) -> bool:
    return any(replica.is_remote for replica in replicas)


def _columns_of(condition: Condition | None, schema: pa.Schema) -> set[str]:
    """Return the columns that a condition uses: it is invalid without them."""
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
"""Contents that columns are made of: a coordinator's key determines the type of its value."""


def _contents(columns: set[str], options: ReadOptions) -> Contents:
    wanted = Contents.HEADERS if options.headers else Contents(0)
    return reduce(or_, (_CONTENTS[name] for name in columns & _CONTENTS.keys()), wanted)


def _narrow(read: ReadOptions, columns: set[str]) -> ReadOptions:
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


BATCH_ROWS = 2048
"""Rows of a record batch, as many as DuckDB processes at once."""
_INT_BITS = 63


RowsOf = Callable[[FilterBounds, Sequence[str]], Iterable[Any]]
"""A function that returns rows that a condition's bounds allow; it gets the names of the columns used."""


@dataclass(frozen=True, slots=True)
class RowTable:
    """A table: its columns, and the function that returns its rows."""

    name: str
    columns: Sequence[Column[Any]]
    rows: RowsOf

    def schema(self) -> pa.Schema:
        """Return its columns in Arrow."""
        return pa.schema([pa.field(column.name, arrow_type(column.field)) for column in self.columns])

    def batches(self, names: Sequence[str], condition: Condition | None) -> Iterator[pa.RecordBatch]:
        """Yield the rows for which a condition is true, with these columns."""
        schema = self.schema()
        needed = [column for column in self.columns if condition is not None or column.name in names]
        own = pa.schema([schema.field(column.name) for column in needed])
        rows = iter(self.rows(FilterBounds(condition, schema), [column.name for column in needed]))
        while taken := list(islice(rows, BATCH_ROWS)):
            arrays = [_array(column, taken) for column in needed]
            batch = pa.RecordBatch.from_arrays(arrays, schema=own)
            wanted = batch if condition is None else batch.filter(condition)
            if wanted.num_rows:
                yield wanted.select(list(names))


def _array(column: Column[Any], rows: Sequence[Any]) -> pa.Array:
    values, kind = map(column.value, rows), arrow_type(column.field)
    if kind == TIMESTAMP:
        return pa.array(map(_microseconds, values), TIMESTAMP)
    if kind == pa.int64():
        return pa.array(map(_whole_number, values), pa.int64())
    if kind == pa.string():
        return pa.array([None if value is None else plain_text(str(value)) for value in values], pa.string())
    return pa.array(values, kind)


def _microseconds(milliseconds: object) -> int | None:
    """Convert a timestamp to microseconds. Returns None if it is missing or out of range."""
    is_held = isinstance(milliseconds, int) and 0 <= milliseconds <= MOST_MILLISECONDS
    return milliseconds * 1000 if isinstance(milliseconds, int) and is_held else None


def _whole_number(number: Any) -> int | None:
    """Return a number, or None if 64 bits can't hold it: sums from damaged headers may be larger."""
    return number if number is None or -1 << _INT_BITS <= number < 1 << _INT_BITS else None


_TYPES: Mapping[Kind, pa.DataType] = MappingProxyType(
    {
        Kind.INTEGER: pa.int64(),
        Kind.INT32: pa.int32(),
        Kind.NUMBER: pa.float64(),
        Kind.TEXT: pa.string(),
        Kind.BOOLEAN: pa.bool_(),
        Kind.TEXTS: pa.list_(pa.string()),
        Kind.INTEGERS: pa.list_(pa.int64()),
    }
)


def arrow_type(field: Field) -> pa.DataType:
    """Return the Arrow type of the values of a field."""
    if field.unit is Unit.TIMESTAMP:
        return TIMESTAMP
    if field.kind is Kind.OBJECTS:
        return pa.list_(pa.struct([(member.name, arrow_type(member)) for member in field.members]))
    return _TYPES[field.kind]


def columns_of(section: Section[Any]) -> list[Column[Any]]:
    """Return SQL's columns of a kind of rows: JSON's, but each time only once, as a timestamp."""
    return [column for column in section.columns if column.name and column.field.unit is not Unit.ISO_TIME]
