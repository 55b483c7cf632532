"""Work orders as partitions of Spark's queries, and what their tasks do: read them, and say what is to be said."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import zip_longest
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from kseg import kernel
from kseg.errors import DamagedError
from kseg.export import remote
from kseg.export.copies import Copies
from kseg.export.damages import damage_rows
from kseg.export.order_reader import OrderReader, coalesced
from kseg.export.plan import ByteRange, Splitting, WorkOrder, balance, plan_orders
from kseg.export.ranges import ChangedError, RangeReader
from kseg.export.settings import LogSelection
from kseg.index.headers import header_runs, walk_headers
from kseg.kernel.fold_contract import Event
from kseg.output.talk import talk
from kseg.reading.damage import Damage
from kseg.spark.pushed_filters import PushedFilters
from kseg.spark.request import Key, Request
from kseg.spark.table_schema import table_schema

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 14
"""Rows of a batch: between 8 and 32 thousand it makes no difference, below it costs more."""
MAXIMUM_PARTITIONS = 2000
"""Partitions of a query above which small orders share one."""
_NEXT_SIZE = 1 << 18
"""Bytes of the next order in which its first batch is looked for."""


class TaskOrder(NamedTuple):
    """An order for one task.

    next: where the next order of the same partition begins; None for the last one. is_whole: it is the partition's only
    one. must_reach: the offset up to which the log was seen when the query was planned; None if it doesn't matter.
    """

    order: WorkOrder
    next: ByteRange | None
    is_whole: bool
    must_reach: int | None

    def to_json(self) -> dict[str, Any]:
        """The order as JSON's values."""
        return {**self._asdict(), "order": self.order.to_json()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "TaskOrder":
        """The order of `to_json`."""
        return cls(**{**members, "order": WorkOrder.from_json(members["order"])})

    def has_disorder(self) -> bool:
        """Whether its batches' offsets don't rise, by their headers."""
        fold = kernel.load().HeaderFold(Event.FALL)
        fold.passes_legacy = True
        for part in self.order.ranges:
            with RangeReader(part, 0, checksum=False) as reader, reader.open(part.start, part.end, part.end) as log:
                for run in header_runs(log, part.start):
                    if not isinstance(run, Damage):
                        row, _ = fold.fold(run.buffer, run.rows, 0, run.row_count, run.position)
                        if row < run.row_count:
                            return True
        return False

    def next_offset(self) -> int | None:
        """The first offset of the next order; None if there is none, or its header can't be read."""
        if self.next is None:
            return None
        start, size = self.next.start, self.next.size
        with (
            suppress(ChangedError),
            RangeReader(self.next, 0, checksum=False) as reader,
            reader.open(start, min(start + _NEXT_SIZE, size), None) as log,
        ):
            header = next(walk_headers(log, start), None)
            return None if header is None or isinstance(header, Damage) else header.first_offset
        return None


class OrderPartition(InputPartition):
    """The orders of a task, as JSON's values."""

    def __init__(self, orders: Sequence[TaskOrder]) -> None:
        super().__init__([order.to_json() for order in orders])


class OrderExecutor:
    """What batch and stream readers do in a task."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        self.request = request
        self.columns = list(columns)
        self.filters = PushedFilters(table_schema(request), has_offsets=not request.is_of_damages)
        self.options = request.reading(None if request.is_of_damages else columns)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of the partition's orders; none for the empty partition that Spark makes of an empty list.

        What a report would note of transactions goes to the task's stderr.
        """
        said: dict[str, None] = {}
        for members in partition.value or ():
            for item in self._read(TaskOrder.from_json(members)):
                if not isinstance(item, str):
                    yield item
                elif item not in said:
                    said[item] = None
                    talk(f"kseg: {item}")

    def _read(self, task: TaskOrder) -> Iterator["pa.RecordBatch | str"]:
        """The rows of an order, then notes."""
        order, changes = task.order, list[str]()
        with suppress(ChangedError):  # it comes again below
            if task.is_whole and not remote.is_remote(order.replica) and task.has_disorder():
                order = replace(order, is_disordered=True)
        reader = OrderReader(order, self.options, checksums=False)
        batches = _until_changed(reader.batches(), changes)
        yield from self._damages(reader, batches) if self.request.is_of_damages else self._records(batches)
        yield from reader.notes()
        for problem in _problems(task, reader, changes):
            if self.request.flag("failOnDataLoss") and not self.request.is_of_damages:
                raise DamagedError(f"{problem}; failOnDataLoss=false goes on", order.replica)
            yield f"{order.replica}: {problem}"

    def _records(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        filtered = map(self.filters.apply, map(_as_connector, batches))
        wanted = (batch.select(self.columns) for batch in filtered if batch.num_rows)
        yield from coalesced(wanted, self.options.max_bytes, ROWS)

    def _damages(self, reader: OrderReader, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for _ in batches:
            pass  # only the accounts are wanted
        if reader.tally.losses:
            rows = damage_rows(reader.order.topic, reader.order.partition, reader.tally.losses)
            yield self.filters.apply(rows).select(self.columns)


def split(
    copies: Copies, selection: LogSelection, request: Request, reached: Mapping[Key, int] | None = None
) -> list[InputPartition]:
    """The query's partitions: at least `minPartitions`, each of about `splitSize` bytes at most.

    reached: for partitions the offset up to which the log is there.
    """
    total = sum(replicas[0].size for replicas in copies.values())
    least = request.number("minPartitions") or 1
    target = min(request.number("splitSize") or 1, max(total // least, 1))
    orders = plan_orders(copies, selection, Splitting(target, least))
    tasks = {task.order.number: task for task in _tasks(orders, reached or {})}
    balanced = balance(orders, min(len(orders), MAXIMUM_PARTITIONS))
    return [OrderPartition([tasks[order.number] for order in members]) for members in balanced]


def _tasks(orders: Sequence[WorkOrder], reached: Mapping[Key, int]) -> Iterator[TaskOrder]:
    by_partition: dict[Key, list[WorkOrder]] = defaultdict(list)
    for order in sorted(orders, key=lambda order: order.number):
        by_partition[order.topic, order.partition].append(order)
    for key, members in by_partition.items():
        for order, following in zip_longest(members, members[1:]):
            begins = following.ranges[0] if following is not None and following.ranges else None
            yield TaskOrder(order, begins, len(members) == 1, None if following is not None else reached.get(key))


def _as_connector(batch: "pa.RecordBatch") -> "pa.RecordBatch":
    """A record without headers has null in the connector's rows, and an empty list in kseg's.

    Only here: null lists make Spark's way to Arrow slow, which an export doesn't take.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    place = batch.schema.get_field_index("headers")
    if place < 0:
        return batch
    lists = batch.column(place)
    is_empty = pc.equal(pc.list_value_length(lists), 0)
    nulled = pa.ListArray.from_arrays(lists.offsets, lists.values, type=lists.type, mask=is_empty)
    return batch.set_column(place, batch.schema.field(place), nulled)


def _until_changed(batches: Iterator["pa.RecordBatch"], changes: list[str]) -> Iterator["pa.RecordBatch"]:
    """The records before a log that isn't the one any more that was listed; `changes` gets what to say of it."""
    try:
        yield from batches
    except ChangedError as error:
        changes.append(f"{PurePath(error.path or '').name} {error.message}")


def _problems(task: TaskOrder, reader: OrderReader, changes: Sequence[str]) -> Iterator[str]:
    """What can't be right of an order that was read; `changes` of its logs among it."""
    read_to = reader.tally.next_offset
    first_of_next = task.next_offset()
    falls_at_end = first_of_next is not None and read_to is not None and first_of_next < read_to
    if reader.is_useless or falls_at_end:
        yield "offsets don't rise, so records may come twice; with a larger splitSize one task takes each offset once"
    if task.must_reach is not None and (read_to is None or read_to < task.must_reach):
        yield f"offsets {read_to} to {task.must_reach} are gone: the log changed after the query was planned"
    else:
        yield from changes
