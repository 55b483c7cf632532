"""Execution of work orders: each reads a part of a partition and writes its Parquet files."""

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.arrow import leave_out_pandas
from kseg.errors import OpenError
from kseg.export.commit.runs import write_finished
from kseg.export.destination import Destination, open_destination
from kseg.export.plan import WorkOrder
from kseg.export.read.order_reader import OrderReader
from kseg.export.read.ranges import has_gone
from kseg.export.results import ExportedFile, Result, Tally
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.parquet import ParquetFiles, with_readable_times
from kseg.export.write.shared_files import Bundle, SharedFiles, bundles_of
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
    shares_files: whether many small orders of a topic may share files.
    """

    id: str
    destination: str
    read: ReadOptions
    files: FileOptions
    identity: Identity | None = None
    shares_files: bool = False

    def to_json(self) -> dict[str, Any]:
        """Return the job as JSON's values for any machine, without the directory's identity, which may differ there."""
        own = {"id": self.id, "destination": self.destination, "sharesFiles": self.shares_files}
        return {**own, "read": self.read.to_json(), "files": self.files.to_json()}

    @classmethod
    def from_json(cls, members: dict[str, Any]) -> "Job":
        """Return the job of `to_json`."""
        read, files = ReadOptions.from_json(members["read"]), FileOptions.from_json(members["files"])
        return cls(members["id"], members["destination"], read, files, shares_files=members["sharesFiles"])


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
        has_changed = not _write(reader, files.write)
        is_nothing = has_changed and reader.needs_all
        if reader.is_useless or is_nothing:
            files.abandon()
    result = _result_of(reader, files.files, start)
    if is_nothing:
        result = replace(result, sources=(), tally=Tally())
    is_whole = result.says_something and not has_changed and not reader.is_useless
    if is_whole and not job.files.format.has_log:
        write_finished([result], (job.read, job.files), place, job.id, order.number)
    return replace(result, has_changed=has_changed)


def _result_of(reader: OrderReader, files: Iterable[ExportedFile], start: float) -> Result:
    """Return the result of an order that was read; start: seconds on the clock before."""
    order = reader.order
    return Result(
        topic=order.topic,
        partition=order.partition,
        replica=order.replica,
        wanted=order.offsets,
        sources=tuple(reader.sources),
        tally=reader.tally,
        files=tuple(files),
        seconds=round(time.monotonic() - start, 3),
        topic_id=order.topic_id,
    )


def execute_bundle(bundle: Bundle, job: Job, place: Destination) -> Iterator[Result]:
    """Execute a bundle's orders as `execute_order` does; several ones share files.

    An order whose log has changed, or whose offsets don't rise, is executed alone afterwards.
    """
    if len(bundle) == 1:
        yield execute_order(*bundle, job, place)
        return
    alone: list[WorkOrder] = []
    waiting = list(bundle)
    while waiting:
        shared = SharedFiles(waiting[0].topic, job.id, job.read, job.files, place)
        results: list[Result] = []
        while waiting and not shared.is_full:
            order, start = waiting.pop(0), time.monotonic()
            reader = OrderReader(order, job.read)
            records = _read_all(reader)
            if records is None:
                alone.append(order)
                continue
            shared.add(order, records)
            results.append(_result_of(reader, (), start))
        files = shared.write()
        results = [replace(result, files=tuple(own)) for result, own in zip(results, files, strict=True)]
        finished = [result for result in results if result.says_something]
        if finished:
            write_finished(finished, (job.read, job.files), place, job.id, bundle[0].number)
        yield from results
    yield from (execute_order(order, job, place) for order in alone)


def _read_all(reader: OrderReader) -> list[pa.RecordBatch] | None:
    """Return the reader's records, or None if its order must be executed alone."""
    records: list[pa.RecordBatch] = []
    is_complete = _write(reader, lambda batch, _: records.append(batch))
    return records if is_complete and not reader.is_useless else None


def _write(reader: OrderReader, write: Callable[[pa.RecordBatch, float], object]) -> bool:
    """Write the reader's records, with the progress; return False if a log had disappeared or was replaced."""
    try:
        for batch in reader.batches():
            if reader.is_useless:
                break
            if batch.num_rows:
                held = with_readable_times(batch)
                reader.tally.without_time += _null_times(held) - _null_times(batch)
                write(held, reader.progress)
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
    for bundle in bundles_for(job, (order for order in orders if not _is_waiting(order))):
        yield from execute_bundle(bundle, job, place)
    yield from in_threads(
        lambda order: execute_order(order, job, place), [order for order in orders if _is_waiting(order)]
    )


def bundles_for(job: Job, orders: Iterable[WorkOrder]) -> Iterator[Bundle]:
    """Yield a job's orders in bundles."""
    return bundles_of(orders, job.files) if job.shares_files else ((order,) for order in orders)


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

        waiting = [order for order in orders if _is_waiting(order)]
        together = [tuple(waiting[start : start + MOST_TOGETHER]) for start in range(0, len(waiting), MOST_TOGETHER)]
        local = bundles_for(job, (order for order in orders if not _is_waiting(order)))
        started = [(bundle, job) for bundle in (*local, *together)]
        yield from results_by_processes(min(count, len(started)), _execute_started, started)

    return execute


def _execute_started(started: tuple[Bundle, Job], _: OnRead) -> Iterable[Result]:
    leave_out_pandas()
    bundle, job = started
    if _is_waiting(bundle[0]):
        return execute_here(bundle, job)
    return execute_bundle(bundle, job, open_destination(job.destination, job.identity))
