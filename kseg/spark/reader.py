"""Reads segments in Spark's tasks: a partition of the query is a list of work orders."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)

from kseg.export.copies import Copies
from kseg.export.order_reader import OrderReader, coalesced
from kseg.export.plan import Splitting, WorkOrder, balance, plan_orders
from kseg.export.settings import LogSelection, OffsetRange
from kseg.output.talk import talk
from kseg.spark.request import Request

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 1 << 14
"""Rows of a batch: between 8 and 32 thousand it makes no difference, below it costs more."""
MAXIMUM_PARTITIONS = 2000
"""Partitions of a query above which small orders share one."""


class OrderPartition(InputPartition):
    """The orders of a task, as JSON's values."""

    def __init__(self, orders: Sequence[WorkOrder]) -> None:
        super().__init__([order.to_json() for order in orders])


class OrderExecutor:
    """What batch and stream readers do in a task."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        self.request = request
        self.columns = list(columns)
        self.options = request.reading()

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """The rows of the partition's orders; none for the empty partition that Spark makes of an empty list.

        What a report would note of transactions goes to the task's stderr.
        """
        said: dict[str, None] = {}
        for members in partition.value or ():
            order = OrderReader(WorkOrder.from_json(members), self.options, checksums=False)
            yield from _damages(order) if self.request.text("table") == "damages" else self._records(order)
            for note in _notes(order):
                if note not in said:
                    said[note] = None
                    talk(f"kseg: {note}")

    def _records(self, order: OrderReader) -> Iterator["pa.RecordBatch"]:
        wanted = (_as_connector(batch).select(self.columns) for batch in order.batches() if batch.num_rows)
        yield from coalesced(wanted, self.options.max_bytes, ROWS)


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


def _notes(reader: OrderReader) -> Iterator[str]:
    """What is to be said of an order that was read."""
    replica, tally = reader.order.replica, reader.tally
    yield from tally.notes
    if tally.without_time:
        yield f"{replica}: {tally.without_time} records have times that microseconds can't tell: null"
    if tally.disordered:
        yield f"{replica}: offsets don't rise: records may come twice, which an export passes over"


def _damages(reader: OrderReader) -> Iterator["pa.RecordBatch"]:
    from kseg.export.damages import damage_rows

    for _ in reader.batches():
        pass  # only the accounts are wanted
    if reader.tally.losses:
        yield damage_rows(reader.order.topic, reader.order.partition, reader.tally.losses)


class KsegReader(OrderExecutor, DataSourceReader):
    """A batch query."""

    def partitions(self) -> Sequence[InputPartition]:
        """Byte ranges of segments, balanced by bytes, planned from names, sizes and indexes. Runs on the driver."""
        copies = self.find()
        return split(copies, self.selection(copies), self.request)

    def find(self) -> Copies:
        """The partitions to read."""
        return self.request.find()

    def selection(self, copies: Copies) -> LogSelection:
        """What to read of them."""
        return self.request.selection(copies)


def split(copies: Copies, selection: LogSelection, request: Request) -> list[InputPartition]:
    """The query's partitions: at least `minPartitions`, each of about `splitSize` bytes at most."""
    total = sum(replicas[0].size for replicas in copies.values())
    least = request.number("minPartitions") or 1
    target = min(request.number("splitSize") or 1, max(total // least, 1))
    orders = plan_orders(copies, selection, Splitting(target, least))
    return [OrderPartition(members) for members in balance(orders, min(len(orders), MAXIMUM_PARTITIONS))]


class PushdownReader(KsegReader):
    """A batch query that takes filters from Spark; only where its configuration has that on."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        super().__init__(request, columns)
        self._topics: list[set[Any]] = []
        self._partitions: list[set[Any]] = []
        self._first: int | None = None
        self._end: int | None = None
        self._first_time: int | None = None

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Takes what can be answered exactly; gives the others back. A least time is used, and given back."""
        return [wanted for wanted in filters if not self._take(wanted)]

    def _take(self, wanted: Filter) -> bool:
        match wanted:
            case EqualTo(attribute=("topic",), value=value):
                self._topics.append({value})
            case In(attribute=("topic",), value=values):
                self._topics.append(set(values))
            case EqualTo(attribute=("partition",), value=value):
                self._partitions.append({value})
            case In(attribute=("partition",), value=values):
                self._partitions.append(set(values))
            case EqualTo(attribute=("offset",), value=value):
                self._narrow(value, value + 1)
            case GreaterThan(attribute=("offset",), value=value):
                self._narrow(value + 1, None)
            case GreaterThanOrEqual(attribute=("offset",), value=value):
                self._narrow(value, None)
            case LessThan(attribute=("offset",), value=value):
                self._narrow(None, value)
            case LessThanOrEqual(attribute=("offset",), value=value):
                self._narrow(None, value + 1)
            case (
                GreaterThan(attribute=("timestamp",), value=value)
                | GreaterThanOrEqual(attribute=("timestamp",), value=value)
            ):
                self._first_time = max(int(value.timestamp() * 1000) - 1, self._first_time or 0)
                return False
            case _:
                return False
        return True

    def _narrow(self, first: int | None, end: int | None) -> None:
        if first is not None:
            self._first = max(first, self._first or 0)
        if end is not None:
            self._end = end if self._end is None else min(end, self._end)

    def find(self) -> Copies:
        """The partitions to read; none is fine."""
        return {
            (topic, partition): replicas
            for (topic, partition), replicas in super().find().items()
            if all(topic in topics for topics in self._topics)
            and all(partition in partitions for partitions in self._partitions)
        }

    def selection(self, copies: Copies) -> LogSelection:
        """What the options and the filters leave."""
        selection = super().selection(copies)
        ranges = {key: self._narrowed(offsets) for key, offsets in selection.offsets_of.items()}
        is_local = all(not replicas[0].is_remote for replicas in copies.values())
        times = [time for time in (selection.first_time, self._first_time if is_local else None) if time is not None]
        return replace(selection, offsets_of=ranges, first_time=max(times, default=None))

    def _narrowed(self, offsets: OffsetRange) -> OffsetRange:
        firsts = [first for first in (offsets.first, self._first) if first is not None]
        ends = [end for end in (offsets.end, self._end) if end is not None]
        return OffsetRange(max(firsts, default=None), min(ends, default=None))
