"""An export from end to end: plan, orders, commit, report. Who executes the orders is a parameter."""

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace

from kseg.errors import OpenError, UnreadableError
from kseg.export import commit as commits
from kseg.export import delta
from kseg.export import manifest as manifests
from kseg.export.copies import Copies, find_replicas, require_replicas
from kseg.export.coverage import explained
from kseg.export.damages import NAME as NAME_OF_DAMAGES
from kseg.export.damages import damage_rows, to_csv
from kseg.export.destination import Destination, open_destination
from kseg.export.manifest import Key
from kseg.export.order import Job, execute_order
from kseg.export.outside_sources import check_destination
from kseg.export.plan import Done, Splitting, WorkOrder, plan_orders
from kseg.export.report import Report, reconcile
from kseg.export.result import Result
from kseg.export.runs import HERE, ExportRun, Processes
from kseg.export.seams import disordered_keys, joined_at_seams
from kseg.export.settings import FileOptions, LogSelection, OffsetRange, ReadOptions, TableFormat
from kseg.export.tiers import find_remote_parts
from kseg.export.typed_export import with_typed_columns, without_writers
from kseg.log.partition.partition_choice import NoSuchPartitionError, PartitionChoice
from kseg.system.interrupts import Uninterrupted
from kseg.system.shared_work import OnRead, are_worth_processes

Execute = Callable[[Sequence[WorkOrder], Job], Iterable[Result]]
"""Executes orders, in any order, each at least once; gives one result for each as they come in."""
Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are done."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be exported, from where to where, and how.

    overwrite: in the place of an export that is there. table_format: whether a log of a table format names the files.
    """

    sources: tuple[str, ...]
    destination: str
    selection: LogSelection = field(default_factory=LogSelection)
    read: ReadOptions = field(default_factory=ReadOptions)
    files: FileOptions = field(default_factory=FileOptions)
    parallelism: int = 1
    overwrite: bool = False
    table_format: TableFormat = TableFormat.PARQUET

    def splitting(self) -> Splitting:
        """How large its orders are."""
        return Splitting(self.files.target_size, self.parallelism, self.read.latest_per_key is not None)


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What a run would do: the orders for the best copies; results of earlier runs that stay; what is there.

    read: how records are read, with the typed columns that were found: its `schema()` is the table's.
    refused: sources that can't be opened or listed; the rest is exported.
    """

    orders: tuple[WorkOrder, ...]
    kept: tuple[Result, ...]
    previous: manifests.Manifest
    copies: Copies
    read: ReadOptions
    refused: tuple[OpenError, ...] = ()

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(order.size for order in self.orders)


def plan_export(export: Export) -> ExportPlan:
    """Plans a run, and changes nothing.

    Raises UsageError if there is nothing to read, the destination lies within what is read or holds something else;
    OpenError; KsegError if the destination's manifest can't be believed.
    """
    return _plan(export, open_destination(export.destination))


def _plan(export: Export, place: Destination) -> ExportPlan:
    check_destination(export.destination, (*export.sources, export.read.decode.schema, export.read.decode.registry))
    refused: list[OpenError] = []
    copies = find_replicas(export.sources, refused.append)
    if not copies and refused:
        raise refused[0]
    require_replicas(copies, export.sources)
    check_destination(export.destination, (copy.path for copies_of_one in copies.values() for copy in copies_of_one))
    previous = commits.previous_manifest(place, export.read, export.files, overwrite=export.overwrite)
    kept = tuple(manifests.still_valid(previous, copies, place))
    choice = export.selection.partitions
    orders = plan_orders(copies, export.selection, export.splitting(), manifests.done(kept))
    if not orders and not kept and not any(export.selection.range_of(*key) is not None for key in copies):
        raise NoSuchPartitionError(choice, (copy.path for copies_of_one in copies.values() for copy in copies_of_one))
    topics = {topic for topic, partition in copies if export.selection.range_of(topic, partition) is not None}
    read = with_typed_columns(export.read, previous.read if previous.number and kept else None, topics, orders)
    previous = replace(previous, read=without_writers(read))
    meant = tuple(each for each in refused if _is_meant(each, choice))
    return ExportPlan(tuple(orders), kept, previous, copies, read, meant)


def _is_meant(error: OpenError, choice: PartitionChoice) -> bool:
    """Whether an error is of a source, or of a partition below one that is to be exported."""
    return not isinstance(error, UnreadableError) or error.path is None or choice.takes_directory(error.path)


def run_export(export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Exports; gives the accounts of the whole destination.

    Where copies of a partition are there, what the best one lost or hasn't got is taken from the next. Raises what
    `plan_export` and `execute` raise, LostError if another run was quicker; then nothing is changed in the destination.
    """
    return export_into(open_destination(export.destination), export, execute, progress)


def export_into(
    place: Destination,
    export: Export,
    execute: Execute,
    progress: Progress | None = None,
    processes: Processes = HERE,
) -> Report:
    """Exports to a destination that is open; `processes` knows which runs of others are over."""
    start = time.monotonic()
    if export.table_format is TableFormat.DELTA:
        delta.library()
    with _under_way(place, export, processes) as (run, plan):
        job = Job(run.id, place.url, plan.read, export.files)
        kept, new = _results(plan, export, job, execute, progress)
        remote = find_remote_parts(plan.copies, export.selection)
        with Uninterrupted():  # all of it, or nothing
            committed, new_files = _committed(run, plan, kept, new, export, place)
            seconds = time.monotonic() - start
            report = Report(
                place.url,
                reconcile(kept, new, remote),
                new_files,
                seconds,
                plan.refused,
                folders=committed.files.partition_by,
                table_format=export.table_format,
                is_typed=bool(plan.read.decode.columns),
            )

            def publish(manifest: manifests.Manifest) -> None:
                _publish(manifest, report if manifest is committed else _report_of(manifest, report), export, place)

            commits.settle(committed, place, publish)
            left = commits.sweep(committed.number, place, processes, run)
    return replace(report, left_alone=tuple(map(str, left)))


def _committed(
    run: ExportRun, plan: ExportPlan, kept: list[Result], new: list[Result], export: Export, place: Destination
) -> tuple[manifests.Manifest, int]:
    """The manifest that holds the results, a new one unless nothing has changed; and how many of its files are new."""
    telling = [result for result in new if result.says_something]
    is_same = not telling and len(kept) == len(plan.previous.results) and plan.previous.number > 0
    is_kept = is_same and not export.overwrite
    committed = plan.previous if is_kept else commits.commit(run, plan.previous, [*kept, *new], place)
    return committed, sum(map(_file_count, telling))


@contextmanager
def _under_way(place: Destination, export: Export, processes: Processes) -> Iterator[tuple[ExportRun, ExportPlan]]:
    """A run, marked as under way until it ends, and its plan; what a broken commit left undone is done first."""
    while True:
        plan = _plan(export, place)
        run = commits.begin(plan.previous.number, place, processes)
        if run is not None:
            break
    try:
        if plan.previous.number:
            current = manifests.read_manifest(place)
            if current is not None:
                commits.finish(current, place)
        yield run, plan
    except BaseException:
        with Uninterrupted():
            commits.give_up(run, place)
        raise


def _results(
    plan: ExportPlan, export: Export, job: Job, execute: Execute, progress: Progress | None
) -> tuple[list[Result], list[Result]]:
    """The results of earlier runs that stay, and new ones: of the best copies, then of the next for what these lack.

    A copy whose offsets turn out not to rise is read once more, as a whole as far as it is there.
    """
    kept, new = list(plan.kept), list[Result]()
    orders: Sequence[WorkOrder] = plan.orders
    for copy in range(max(map(len, plan.copies.values()))):
        if copy:
            orders = plan_orders(plan.copies, export.selection, export.splitting(), _known(plan, kept, new, copy), copy)
        found = list(_executed(orders, job, execute, progress))
        disordered = disordered_keys(found)
        if disordered:
            if not copy:
                kept = [result for result in kept if not _is_read_again(result, disordered, plan.copies)]
            found = [result for result in found if (result.topic, result.partition) not in disordered]
            copies = {key: plan.copies[key] for key in disordered}
            splitting = replace(export.splitting(), disordered=disordered)
            known = _known(plan, kept, new, copy)
            orders = plan_orders(copies, export.selection, splitting, known, copy)
            found += _executed(orders, job, execute, progress)
        joined = joined_at_seams([*kept, *new, *found])
        kept, new = joined[: len(kept)], joined[len(kept) :]
    return kept, new


def _known(plan: ExportPlan, kept: list[Result], new: list[Result], copy: int) -> Mapping[Key, Done]:
    """What needn't be read of the copies of a rank."""
    return _explained([*kept, *new], plan.copies, copy) if copy else manifests.done(kept)


def _is_read_again(result: Result, disordered: frozenset[Key], copies: Copies) -> bool:
    """Whether a result is of a partition that is to be read again, and its sources are all there."""
    key = (result.topic, result.partition)
    if key not in disordered:
        return False
    there = {segment.log for replica in copies[key] for segment in replica.segments}
    return all(source.path in there for source in result.sources)


def _report_of(manifest: manifests.Manifest, own: Report) -> Report:
    """The report of a manifest that another run has built on this one's meanwhile."""
    return replace(own, partitions=reconcile(manifest.results), new_files=manifest.new_files)


def _publish(manifest: manifests.Manifest, report: Report, export: Export, place: Destination) -> None:
    """Writes the files that describe a manifest."""
    if export.table_format is TableFormat.DELTA:
        delta.publish(manifest, place.url)
    place.replace(f"{manifests.FOLDER}/report.json", report.to_bytes())
    damages = (damage_rows(part.topic, part.partition, part.damages) for part in report.partitions)
    place.replace(NAME_OF_DAMAGES, to_csv(damages))


def _executed(orders: Sequence[WorkOrder], job: Job, execute: Execute, progress: Progress | None) -> Iterable[Result]:
    total, finished = sum(order.size for order in orders), 0
    with closing(_each(execute(orders, job) if orders else ())) as results:  # what others do ends before it is undone
        for result in results:
            finished += result.size
            if progress is not None:
                progress(finished, total)
            yield result


def _each(results: Iterable[Result]) -> Generator[Result, None, None]:
    """The results as a generator: closing it closes the one that they come from."""
    yield from results


def _file_count(result: Result) -> int:
    return len(result.files)


def _explained(results: Iterable[Result], copies: Copies, copy: int) -> dict[Key, Done]:
    """What the better copies account for, and what an earlier run has read of this one already."""
    by_partition: dict[Key, list[Result]] = {}
    for result in results:
        by_partition.setdefault((result.topic, result.partition), []).append(result)
    found = {}
    for key, own in by_partition.items():
        path = copies[key][copy].path if len(copies.get(key, ())) > copy else None
        read = [
            OffsetRange(result.tally.first_offset, result.tally.next_offset)
            for result in own
            if result.replica == path and result.tally.next_offset is not None
        ]
        found[key] = Done((*explained([result.tally for result in own]), *read))
    return found


def execute_here(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
    """Executes orders one after another, in this process."""
    place = open_destination(job.destination)
    return (execute_order(order, job, place) for order in orders)


def in_processes(count: int) -> Execute:
    """Executes orders in a pool of processes, the largest first; in this process if there is little to do."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
        if count < 2 or not are_worth_processes([order.size for order in orders]):
            yield from execute_here(orders, job)
            return
        from kseg.system.processes import results_by_processes

        started = [(order, job) for order in orders]
        yield from results_by_processes(min(count, len(orders)), _execute_started, started)

    return execute


def _execute_started(started: tuple[WorkOrder, Job], _: OnRead) -> Iterator[Result]:
    yield execute_one(*started)


def execute_one(order: WorkOrder, job: Job) -> Result:
    """Executes one order, in whichever process."""
    return execute_order(order, job, open_destination(job.destination))
