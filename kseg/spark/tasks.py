"""Tasks of Spark: they execute work orders, exchange them, and report problems."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from itertools import zip_longest
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, NamedTuple

from pyspark.sql.datasource import InputPartition

from kseg import errors, kernel
from kseg.cluster.copies import Copies
from kseg.errors import ClusterError, DamagedError, KsegError, SwappedError, UsageError
from kseg.export.commit.manifest import MOST_BYTES, results_of_tasks
from kseg.export.commit.order import Job, bundles_for, execute_bundle
from kseg.export.commit.runs import JOBS
from kseg.export.commit.shapes import parse_json
from kseg.export.destination import open_destination
from kseg.export.plan import ByteRange, Splitting, WorkOrder, balance, plan_orders
from kseg.export.read.batch_sizes import coalesce_batches
from kseg.export.read.order_reader import OrderReader
from kseg.export.read.ranges import ChangedError, RangeReader
from kseg.export.report import damage_rows
from kseg.export.results import Result
from kseg.export.settings import LogSelection
from kseg.index.header_scan import header_runs, walk_headers
from kseg.kernel.fold_contract import Event
from kseg.output.progress import talk
from kseg.reading.blocks import Damage
from kseg.spark.options import Key, Request
from kseg.store.location import is_remote

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


class Round(NamedTuple):
    """The location of a round's orders: the destination, the job, and the round's number.

    digest: the SHA-256 of the written orders, in hexadecimal digits. Orders name code, such as decoders, and others may
    write to the destination.
    """

    destination: str
    job: str
    number: str
    digest: str = ""

    def with_orders(self, job: Job, tasks: Sequence[Sequence[WorkOrder]]) -> "Round":
        """Write the tasks' orders, and return a round whose tasks accept only these."""
        members = {"job": job.to_json(), "tasks": [[order.to_json() for order in task] for task in tasks]}
        content = json.dumps(members).encode()
        self._write("orders", content)
        return self._replace(digest=sha256(content).hexdigest())

    def execute(self, tasks: Iterable[int]) -> Iterator[Result]:
        """Execute the orders of the tasks with these numbers, in Spark's tasks.

        Attempts may run concurrently, be killed, and run again: each has its own file names.
        """
        place = open_destination(self.destination)
        content = self._read("orders")
        if sha256(content).hexdigest() != self.digest:
            raise SwappedError(f"{self.destination}/{self._name('orders')}")
        members: dict[str, Any] = parse_json(content, self._name("orders"), MOST_BYTES)
        job = Job.from_json(members["job"])
        for task in tasks:
            for bundle in bundles_for(job, map(WorkOrder.from_json, members["tasks"][task])):
                yield from execute_bundle(bundle, job, place)

    def write_results(self, results: Iterable[Result]) -> None:
        """Write the results for the calling program."""
        self._write("results", json.dumps([result.to_json() for result in results]).encode())

    def read_results(self) -> list[Result]:
        """Return the results that `write_results` has written. Raises KsegError for invalid ones."""
        name = self._name("results")
        return results_of_tasks(parse_json(self._read("results"), name, MOST_BYTES), name)

    def _name(self, what: str) -> str:
        return f"{JOBS}/{self.job}/{what}-{self.number}.json"

    def _write(self, what: str, content: bytes) -> None:
        open_destination(self.destination).replace(self._name(what), content)

    def _read(self, what: str) -> bytes:
        found = open_destination(self.destination).read(self._name(what), MOST_BYTES + 1)
        if found is None:
            raise KsegError(
                "the destination isn't the same here as on the driver; make it reachable from all machines",
                self.destination,
            )
        return found


_OWN = "kseg.errors."
_NO_MESSAGES = ("SQLSTATE", "Driver stacktrace:")
"""Prefixes of lines without meaning for users."""


def error_of(error: Exception) -> KsegError:
    """Return kseg's own error: of the kind and with the message of a task's error, else ClusterError."""
    lines = _lines_of(error)
    own = [line for line in lines if line.startswith(_OWN)]
    if not own:
        return ClusterError(lines[-1] if lines else type(error).__name__)
    name, _, message = own[-1].removeprefix(_OWN).partition(": ")
    kind = getattr(errors, name, None)
    return kind(message) if isinstance(kind, type) and issubclass(kind, KsegError) else KsegError(message)


def message_of(error: Exception) -> str:
    """Return the last line of a task's Python error, without the exception's name; else the JVM's message."""
    return error_of(error).message


def _lines_of(error: Exception) -> list[str]:
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.toString())
    return [line for line in text.splitlines() if line[:1].strip() and not line.startswith(_NO_MESSAGES)]


_METADATA = "kseg.options"
_OPTION = "option."
"""Prefix of options among a catalog's properties."""


def table_schema(request: Request) -> "pa.Schema":
    """Return the columns that the options request."""
    if request.is_of_damages:
        from kseg.export.report import SCHEMA

        return SCHEMA
    return request.reading().schema()


def spark_schema(options: Mapping[str, str]) -> "StructType":
    """Return Spark's schema for a query's options or a catalog table's properties.

    Raises UsageError if they are invalid.
    """
    if "provider" not in options:
        return _as_spark(table_schema(Request.parse(options)))
    own = {name.removeprefix(_OPTION): value for name, value in options.items() if name.startswith(_OPTION)}
    place = {"path": options["location"]} if "location" in options else {}
    request = Request.parse({**own, **place})
    sources = [source if "://" in source else str(Path(source).absolute()) for source in request.sources()]
    columns = _as_spark(table_schema(request))
    columns.fields[0].metadata = {_METADATA: json.dumps({**own, "path": json.dumps(sources)})}
    return columns


def request_of(options: Mapping[str, str], columns: "StructType") -> Request:
    """Return the request of a query's options together with those of its table."""
    metadata = columns.fields[0].metadata if columns.fields else {}
    return Request.parse({**json.loads(metadata.get(_METADATA, "{}")), **options})


def columns_of(asked: "StructType", request: Request) -> list[str]:
    """Return the names of the columns in a query's own schema.

    Raises UsageError if the table lacks such a column, or has another type: Spark relies on its own schema.
    """
    from kseg.export.settings import ReadOptions

    schema = table_schema(request) if request.is_of_damages else ReadOptions(batch_columns=True).schema()
    types = {column.name: column.dataType.simpleString() for column in _as_spark(schema).fields}
    for column in asked.fields:
        kind = column.dataType.simpleString()
        if types.get(column.name) != kind:
            had = ", ".join(f"{name} {known}" for name, known in types.items())
            raise UsageError(f"the schema has the column {column.name} {kind}, which doesn't exist; choose from {had}")
    return [column.name for column in asked.fields]


def _as_spark(schema: "pa.Schema") -> "StructType":
    from pyspark.sql.pandas.types import from_arrow_schema

    return from_arrow_schema(schema)


ROWS = 1 << 14
"""Rows of a batch: 8 to 32 thousand are equally fast, fewer are slower."""
MAXIMUM_PARTITIONS = 2000
"""Number of a query's partitions above which small orders share one."""
_NEXT_SIZE = 1 << 18
"""Bytes of the next order that are searched for its first batch."""


class TaskOrder(NamedTuple):
    """An order for one task.

    next: the start of the partition's next order; None for the last one. is_whole: whether it is the partition's only
    one. must_reach: the log's end when the query was planned; None if it doesn't matter.
    """

    order: WorkOrder
    next: ByteRange | None
    is_whole: bool
    must_reach: int | None

    def to_json(self) -> dict[str, Any]:
        """Return the order as JSON's values."""
        return {**self._asdict(), "order": self.order.to_json()}

    @classmethod
    def from_json(cls, members: Mapping[str, Any]) -> "TaskOrder":
        """Return the order of `to_json`."""
        return cls(**{**members, "order": WorkOrder.from_json(members["order"])})

    def has_disorder(self) -> bool:
        """Return True if the headers of its batches have offsets that don't rise."""
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
        """Return the first offset of the next order, or None if it doesn't exist, or its header can't be read."""
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
    """The part of batch and stream readers that runs in a task."""

    def __init__(self, request: Request, columns: Sequence[str]) -> None:
        self.request = request
        self.columns = list(columns)
        self.options = request.reading(None if request.is_of_damages else columns)

    def read(self, partition: InputPartition) -> Iterator["pa.RecordBatch"]:
        """Yield the rows of the partition's orders; none for the empty partition that Spark makes of an empty list.

        Notes on transactions, which a report would have, go to the task's stderr.
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
        """Yield the rows of an order, then notes."""
        order, changes = task.order, list[str]()
        with suppress(ChangedError):  # it is raised again below
            if task.is_whole and not is_remote(order.replica) and task.has_disorder():
                order = replace(order, is_disordered=True)
        reader = OrderReader(order, self.options, checksums=False)
        batches = _until_changed(reader.batches(), changes)
        yield from self._damages(reader, batches) if self.request.is_of_damages else self._records(batches)
        yield from reader.notes()
        for problem in _problems(task, reader, changes):
            if self.request.flag("failOnDataLoss") and not self.request.is_of_damages:
                raise DamagedError(f"{problem}; set failOnDataLoss=false to continue", order.replica)
            yield f"{order.replica}: {problem}"

    def _records(self, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        wanted = (_as_connector(batch).select(self.columns) for batch in batches if batch.num_rows)
        yield from coalesce_batches(wanted, self.options.max_bytes, ROWS)

    def _damages(self, reader: OrderReader, batches: Iterator["pa.RecordBatch"]) -> Iterator["pa.RecordBatch"]:
        for _ in batches:
            pass  # only the accounts are wanted
        if reader.tally.losses:
            rows = damage_rows(reader.order.topic, reader.order.partition, reader.tally.losses)
            yield rows.select(self.columns)


def split(
    copies: Copies, selection: LogSelection, request: Request, reached: Mapping[Key, int] | None = None
) -> list[InputPartition]:
    """Return the query's partitions: at least `minPartitions`, of at most about `splitSize` bytes.

    reached: by partition, the end of the log.
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
    """Replace empty lists of headers by null, as in the connector's rows.

    Only here: null lists slow down Spark's conversion to Arrow, which an export doesn't use.
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
    """Yield the records before a log that was replaced since it was listed; add a message about it to `changes`."""
    try:
        yield from batches
    except ChangedError as error:
        changes.append(f"{PurePath(error.path or '').name} {error.message}")


def _problems(task: TaskOrder, reader: OrderReader, changes: Sequence[str]) -> Iterator[str]:
    """Yield the problems of an order that was read, including `changes` of its logs."""
    read_to = reader.tally.next_offset
    first_of_next = task.next_offset()
    falls_at_end = first_of_next is not None and read_to is not None and first_of_next < read_to
    if reader.is_useless or falls_at_end:
        yield "offsets don't rise, so records may appear twice; increase splitSize, so that one task reads all of them"
    if task.must_reach is not None and (read_to is None or read_to < task.must_reach):
        yield f"offsets {read_to} to {task.must_reach - 1} no longer exist: the log changed after the query was planned"
    else:
        yield from changes
