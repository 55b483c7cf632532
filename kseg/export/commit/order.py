"""Execution of work orders: each reads a part of a partition and writes its Parquet files."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.errors import OpenError
from kseg.export.commit.runs import write_finished
from kseg.export.destination import Destination, open_destination
from kseg.export.plan import WorkOrder
from kseg.export.read.order_reader import OrderReader, has_gone
from kseg.export.results import Result, Tally
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.parquet import ParquetFiles, with_readable_times
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.files import Identity
from kseg.system.run_usage import in_threads
from kseg.system.shared_work import OnRead, are_worth_processes

MOST_TOGETHER = 64
"""The most small orders of a store that a process gets at once."""


class Job(NamedTuple):
    """The common data of a run's orders. id: the run's, in the names of its files. destination: a path or URL.

    identity: of the destination's directory, for processes of this machine; None if only its URL is known.
    """

    id: str
    destination: str
    read: ReadOptions
    files: FileOptions
    identity: Identity | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON's values for any machine, without the directory's identity, which may differ there."""
        own = {"id": self.id, "destination": self.destination}
        return {**own, "read": self.read.to_json(), "files": self.files.to_json()}

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> "Job":
        """Return the job of `to_json`."""
        read, files = ReadOptions.from_json(members["read"]), FileOptions.from_json(members["files"])
        return cls(members["id"], members["destination"], read, files)


Execute = Callable[[Sequence[WorkOrder], Job], Iterable[Result]]
"""A function that executes orders, in any order, each at least once, and yields one result for each."""


def execute_order(order: WorkOrder, job: Job, place: Destination) -> Result:
    """Read an order and write its files; return the files, the sources with their CRCs, the tally, bytes and seconds.

    The result is also left in the destination, in case the caller ends early. The function may run several times, even
    concurrently: each attempt has unique file names. If offsets don't rise although the order doesn't say so, it ends
    without files, and `tally.disordered` isn't 0. If a log has disappeared since it was listed, the result has the
    records read before, and `has_changed` is set. Raises KsegError if a file can't be read or written, or at damage if
    the mode is failfast.
    """
    start = time.monotonic()
    reader = OrderReader(order, job.read)
    with ParquetFiles(order, job.id, job.read, job.files, place) as files:
        has_changed = not _write(reader, files)
        is_nothing = has_changed and reader.needs_all
        if reader.is_useless or is_nothing:
            files.abandon()
    result = Result(
        topic=order.topic,
        partition=order.partition,
        replica=order.replica,
        wanted=order.offsets,
        sources=() if is_nothing else tuple(reader.sources),
        tally=Tally() if is_nothing else reader.tally,
        files=tuple(files.files),
        seconds=round(time.monotonic() - start, 3),
        topic_id=order.topic_id,
        has_changed=has_changed,
    )
    is_whole = result.says_something and not has_changed and not reader.is_useless
    if is_whole and not job.files.format.has_log:
        write_finished(result, (job.read, job.files), place, job.id, order.number)
    return result


def _write(reader: OrderReader, files: ParquetFiles) -> bool:
    """Write the reader's records; return False if a log had disappeared or was replaced."""
    try:
        for batch in reader.batches():
            if reader.is_useless:
                break
            if batch.num_rows:
                held = with_readable_times(batch)
                reader.tally.without_time += _null_times(held) - _null_times(batch)
                files.write(held, reader.progress)
    except OpenError as error:
        if not has_gone(error):
            raise
        return False
    return True


def _null_times(batch: pa.RecordBatch) -> int:
    return int(batch.column("timestamp").null_count)


def execute_here(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
    """Execute orders in this process in order; orders that mostly wait for a store run concurrently."""
    place = open_destination(job.destination, job.identity)
    yield from (execute_order(order, job, place) for order in orders if not _is_waiting(order))
    yield from in_threads(
        lambda order: execute_order(order, job, place), [order for order in orders if _is_waiting(order)]
    )


def _is_waiting(order: WorkOrder) -> bool:
    """Return True if an order mostly waits for a store's answers."""
    return order.size <= remote.PIECE and is_remote(order.replica)


def in_processes(count: int) -> Execute:
    """Return a function that executes orders in a pool of processes, largest first; small jobs run in this one."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        if count < 2 or not are_worth_processes([order.size for order in orders]):
            yield from execute_here(orders, job)
            return
        from kseg.system.processes import results_by_processes

        started = [(bundle, job) for bundle in _bundles(orders)]
        yield from results_by_processes(min(count, len(started)), _execute_started, started)

    return execute


def _bundles(orders: Iterable[WorkOrder]) -> Iterator[tuple[WorkOrder, ...]]:
    """Yield the orders that a process gets together: several small ones of a store, otherwise one."""
    small: list[WorkOrder] = []
    for order in orders:
        if not _is_waiting(order):
            yield (order,)
            continue
        small.append(order)
        if len(small) == MOST_TOGETHER:
            yield tuple(small)
            small = []
    if small:
        yield tuple(small)


def _execute_started(started: tuple[tuple[WorkOrder, ...], Job], _: OnRead) -> Iterable[Result]:
    orders, job = started
    return execute_here(orders, job)
