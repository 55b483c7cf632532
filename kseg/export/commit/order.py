"""Executes work orders: each reads a part of a partition, writes its Parquet files, and says what it did."""

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
"""Small orders of a store that a process gets at once."""


class Job(NamedTuple):
    """What all orders of a run share. id: its own, in the names of what it writes. destination: a path or URL.

    identity: which directory the destination is, for processes of this machine; None where only its URL is known.
    """

    id: str
    destination: str
    read: ReadOptions
    files: FileOptions
    identity: Identity | None = None

    def to_json(self) -> dict[str, Any]:
        """The job as JSON's values, for any machine: its directory may have other numbers there."""
        own = {"id": self.id, "destination": self.destination}
        return {**own, "read": self.read.to_json(), "files": self.files.to_json()}

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> "Job":
        """The job of `to_json`."""
        read, files = ReadOptions.from_json(members["read"]), FileOptions.from_json(members["files"])
        return cls(members["id"], members["destination"], read, files)


Execute = Callable[[Sequence[WorkOrder], Job], Iterable[Result]]
"""Executes orders, in any order, each at least once; gives one result for each as they come in."""


def execute_order(order: WorkOrder, job: Job, place: Destination) -> Result:
    """Reads and writes an order; gives its files, its sources with their CRCs, its tally, bytes and seconds.

    The result is also left in the destination, should nobody come for it. May run several times, also at once: names of
    files are an attempt's own. Where offsets don't rise, and the order doesn't say so, it ends without files:
    `tally.disordered` isn't 0. Where a log has gone since it was listed, the result is of what was read before:
    `has_changed`. Raises KsegError if a file can't be read or written, or at damage if the mode is failfast.
    """
    start = time.monotonic()
    reader = OrderReader(order, job.read)
    with ParquetFiles(order, job.id, job.read, job.files, place) as files:
        has_changed = not _written(reader, files)
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


def _written(reader: OrderReader, files: ParquetFiles) -> bool:
    """Writes what is read; False if that ended early, at a log that had gone or was another one."""
    try:
        for batch in reader.batches():
            if reader.is_useless:
                break
            if batch.num_rows:
                held = with_readable_times(batch)
                reader.tally.without_time += _null_times(held) - _null_times(batch)
                files.write(held)
    except OpenError as error:
        if not has_gone(error):
            raise
        return False
    return True


def _null_times(batch: pa.RecordBatch) -> int:
    return int(batch.column("timestamp").null_count)


def execute_here(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
    """Executes orders in this process, one after another; those that wait for a store more than they work, together."""
    place = open_destination(job.destination, job.identity)
    yield from (execute_order(order, job, place) for order in orders if not _waits(order))
    yield from in_threads(lambda order: execute_order(order, job, place), [order for order in orders if _waits(order)])


def _waits(order: WorkOrder) -> bool:
    """Whether most of the time that an order takes is that of a store's answers."""
    return order.size <= remote.PIECE and is_remote(order.replica)


def in_processes(count: int) -> Execute:
    """Executes orders in a pool of processes, the largest first; in this process if there is little to do."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        if count < 2 or not are_worth_processes([order.size for order in orders]):
            yield from execute_here(orders, job)
            return
        from kseg.system.processes import results_by_processes

        started = [(bundle, job) for bundle in _bundles(orders)]
        yield from results_by_processes(min(count, len(started)), _execute_started, started)

    return execute


def _bundles(orders: Iterable[WorkOrder]) -> Iterator[tuple[WorkOrder, ...]]:
    """Orders that a process gets together: small ones of a store, which it reads at once; of others one."""
    small: list[WorkOrder] = []
    for order in orders:
        if not _waits(order):
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
