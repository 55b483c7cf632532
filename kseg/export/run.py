"""An export from end to end: plan, orders, commit, report. Who executes the orders is a parameter."""

import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from uuid import uuid4

from kseg.errors import KsegError, OpenError, UsageError
from kseg.export import delta
from kseg.export import manifest as manifests
from kseg.export.coverage import explained
from kseg.export.damages import NAME as NAME_OF_DAMAGES
from kseg.export.damages import damage_rows, to_parquet
from kseg.export.destination import Destination, open_destination
from kseg.export.manifest import Key
from kseg.export.options import FileOptions, OffsetRange, ReadOptions, Selection, TableFormat
from kseg.export.order import Job, Result, execute_order
from kseg.export.plan import Done, Splitting, WorkOrder, plan_orders
from kseg.export.report import Report, reconcile
from kseg.export.seams import join_seams
from kseg.export.source import Copies, find_replicas, require_replicas
from kseg.export.tally import Tally
from kseg.export.untouched import check_destination
from kseg.interrupts import Uninterrupted

Execute = Callable[[Sequence[WorkOrder], Job], Iterable[Result]]
"""Executes orders, in any order, each at least once; gives one result for each as they come in."""
Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are done."""

WORTH_PROCESSES = 32 << 20
"""Bytes of log below which starting processes costs more than it gains."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be exported, from where to where, and how.

    overwrite: in the place of an export that is there. table_format: whether a log of a table format names the files.
    """

    sources: tuple[str, ...]
    destination: str
    selection: Selection = field(default_factory=Selection)
    read: ReadOptions = field(default_factory=ReadOptions)
    files: FileOptions = field(default_factory=FileOptions)
    parallelism: int = 1
    overwrite: bool = False
    table_format: TableFormat = TableFormat.PARQUET

    def splitting(self) -> Splitting:
        """How large its orders are."""
        return Splitting(self.files.target_size, self.parallelism, self.read.latest_per_key is not None)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would do: the orders for the best copies; results of earlier runs that stay; what is there.

    refused: what of the sources can't be opened or listed; the rest is exported.
    """

    orders: tuple[WorkOrder, ...]
    kept: tuple[Result, ...]
    previous: manifests.Manifest
    copies: Copies
    refused: tuple[OpenError, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(order.size for order in self.orders)


def plan_export(export: Export) -> Plan:
    """Plans a run, and changes nothing but to finish a commit that was broken off.

    Raises UsageError if there is nothing to read, the destination lies within what is read or holds something else;
    OpenError.
    """
    check_destination(export.destination, (*export.sources, export.read.decode.schema, export.read.decode.registry))
    refused: list[OpenError] = []
    copies = find_replicas(export.sources, refused.append)
    if not copies and refused:
        raise refused[0]
    require_replicas(copies, export.sources)
    check_destination(export.destination, (copy.path for copies_of_one in copies.values() for copy in copies_of_one))
    place = open_destination(export.destination)
    previous = manifests.previous_manifest(place, export.read, export.files, overwrite=export.overwrite)
    kept = tuple(manifests.still_valid(previous, copies, place))
    orders = plan_orders(copies, export.selection, export.splitting(), manifests.done(kept))
    if not orders and not kept and not any(export.selection.range_of(*key) is not None for key in copies):
        raise UsageError("no topic is wanted of those that are there", export.sources[0])
    return Plan(tuple(orders), kept, previous, copies, tuple(refused))


def run_export(export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Exports; gives the accounts of the whole destination.

    Where copies of a partition are there, what the best one lost or hasn't got is taken from the next. Raises what
    `plan_export` and `execute` raise; then nothing is changed in the destination.
    """
    start = time.monotonic()
    if export.table_format is TableFormat.DELTA:
        delta.library()
    plan = plan_export(export)
    place = open_destination(export.destination)
    job = Job(uuid4().hex[:8], place.url, export.read, export.files)
    try:
        results = _read_all(plan, job, export, execute, progress)
    except BaseException:
        with Uninterrupted():
            _give_up(job, place)
        raise
    with Uninterrupted():  # all of it, or nothing
        return _committed(plan, results, export, start)


def _read_all(plan: Plan, job: Job, export: Export, execute: Execute, progress: Progress | None) -> list[Result]:
    """What earlier runs and this one read, from copies as far as they are needed."""
    results = list(plan.kept)
    orders: Sequence[WorkOrder] = plan.orders
    for copy in range(max(map(len, plan.copies.values()))):
        if copy:
            known = _explained(results, plan.copies, copy)
            orders = plan_orders(plan.copies, export.selection, export.splitting(), known, copy)
        results += _executed(orders, job, execute, progress)
        join_seams(results)
    return results


def _give_up(job: Job, place: Destination) -> None:
    """Removes what a run wrote that won't be committed. A store that can't be reached has it swept by the next run."""
    with suppress(KsegError, OSError):
        for name in list(place.names()):
            if f"/{job.id}-" in name or f"-{job.id}-" in name or name.startswith(f"{manifests.FOLDER}/jobs/{job.id}/"):
                place.delete(name)


def _committed(plan: Plan, results: list[Result], export: Export, start: float) -> Report:
    """Commits; gives the accounts of all that the destination holds."""
    place = open_destination(export.destination)
    new = [result for result in results[len(plan.kept) :] if manifests.says_something(result)]
    is_same = not new and len(plan.kept) == len(plan.previous.results) and plan.previous.number > 0
    committed = plan.previous if is_same else manifests.commit(plan.previous, results, place)
    if export.table_format is TableFormat.DELTA:
        delta.publish(committed, place.url)
    seconds = time.monotonic() - start
    report = Report(place.url, reconcile(committed.results), sum(map(_file_count, new)), seconds, plan.refused)
    place.replace(f"{manifests.FOLDER}/report.json", report.to_bytes())
    damages = (damage_rows(part.topic, part.partition, part.damages) for part in report.partitions)
    place.replace(NAME_OF_DAMAGES, to_parquet(damages))
    return report


def _executed(orders: Sequence[WorkOrder], job: Job, execute: Execute, progress: Progress | None) -> Iterable[Result]:
    total, finished = sum(order.size for order in orders), 0
    for result in execute(orders, job) if orders else ():
        finished += sum(source["end"] - source["start"] for source in result["sources"])
        if progress is not None:
            progress(finished, total)
        yield result


def _file_count(result: Result) -> int:
    return len(result["files"])


def _explained(results: Iterable[Result], copies: Copies, copy: int) -> dict[Key, Done]:
    """What the better copies account for, and what an earlier run has read of this one already."""
    by_partition: dict[Key, list[Result]] = {}
    for result in results:
        by_partition.setdefault((result["topic"], result["partition"]), []).append(result)
    found = {}
    for key, own in by_partition.items():
        tallies = [Tally.from_json(result["tally"]) for result in own]
        path = copies[key][copy].path if len(copies.get(key, ())) > copy else None
        read = [
            OffsetRange(tally.first_offset, tally.next_offset)
            for result, tally in zip(own, tallies, strict=True)
            if result["replica"] == path and tally.next_offset is not None
        ]
        found[key] = Done((*explained(tallies), *read))
    return found


def execute_here(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
    """Executes orders one after another, in this process."""
    place = open_destination(job.destination)
    return (execute_order(order, job, place) for order in orders)


def in_processes(count: int) -> Execute:
    """Executes orders in a pool of processes, the largest first; in this process if there is little to do."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        if count <= 1 or len(orders) <= 1 or sum(order.size for order in orders) < WORTH_PROCESSES:
            yield from execute_here(orders, job)
            return
        from concurrent.futures import as_completed

        from kseg.processes import process_pool, without_interrupt

        with process_pool(min(count, len(orders)), "spawn") as pool:
            with without_interrupt():
                waiting = [pool.submit(execute_one, order, job) for order in orders]
            for future in as_completed(waiting):
                yield future.result()

    return execute


def execute_one(order: WorkOrder, job: Job) -> Result:
    """Executes one order, in whichever process."""
    return execute_order(order, job, open_destination(job.destination))
