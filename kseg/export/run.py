"""A run of an export, from its plan to its commit."""

import os
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import pyarrow as pa

from kseg.cluster.copies import Copies, copies_of, find_replicas, metadata_dirs_of, require_replicas
from kseg.cluster.taken import Taken, taken_of
from kseg.errors import KsegError, OpenError, UnreadableError
from kseg.export.commit import manifest as manifests
from kseg.export.commit.check import TableDiffersError, check_contents, check_rows, rows_of_run
from kseg.export.commit.commit import ExportRun, LostError, Marker
from kseg.export.commit.commit_log import Ledger, ManifestLedger, OvertakenError, TableLedger, changed_keys
from kseg.export.commit.manifest import Key
from kseg.export.commit.merge import Joined
from kseg.export.commit.order import Job, execute_order
from kseg.export.commit.relist import (
    gone_topics,
    list_again,
    require_changed,
    told_apart,
    with_ends_in_same_files,
    with_known_ids,
)
from kseg.export.commit.table_log import NO_TABLE, TableLog, TableName
from kseg.export.destination import Destination, open_destination
from kseg.export.plan import Done, Splitting, WorkOrder, find_remote_parts, gapless_partitions, plan_orders
from kseg.export.read.offset_accounts import disordered_keys, joined_at_seams
from kseg.export.report import NAME as NAME_OF_DAMAGES
from kseg.export.report import PartitionReport, Report, compared, damage_rows, reconcile, to_csv
from kseg.export.results import Result, explained
from kseg.export.settings import FileOptions, LogSelection, OffsetRange, ReadOptions
from kseg.export.write import parquet
from kseg.export.write.typed_plan import with_typed_columns, without_writers
from kseg.log.selection import NoSuchPartitionError, PartitionChoice
from kseg.store import remote_files as remote
from kseg.store.location import is_remote
from kseg.system.new_directory import HERE, Processes
from kseg.system.placed_path import StrPath, within
from kseg.system.run_usage import in_threads
from kseg.system.shared_work import OnRead, are_worth_processes
from kseg.system.signals import Uninterrupted


def ledger_of(
    place: Destination,
    processes: Processes,
    table: TableName,
    files: FileOptions,
    *,
    overwrite: bool,
) -> Ledger:
    """The ledger of a destination. Raises UsageError if the format's library isn't installed, or lacks something."""
    if not files.format.has_log:
        return ManifestLedger(place, processes)
    return TableLedger(place, table_log(place, table, files), processes, overwrite=overwrite)


def table_log(place: Destination, table: TableName, files: FileOptions) -> TableLog:
    """The log of the table at a destination."""
    module = files.format.load()
    files.format.require_address(place.url)
    log: TableLog = module.open_log(place, files, table)
    return log


Execute = Callable[[Sequence[WorkOrder], Job], Iterable[Result]]
"""Executes orders, in any order, each at least once; gives one result for each as they come in."""
MOST_TOGETHER = 64
"""Small orders of a store that a process gets at once."""
Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are done."""
MOST_LISTINGS = 10
"""How often logs are listed that change while they are read."""
MOST_ATTEMPTS = 100
"""How often a run commits to a table in vain, since another one was quicker each time."""


@dataclass(frozen=True, slots=True)
class Export:
    """What is to be exported, from where to where, and how.

    overwrite: in the place of an export that is there. table: which table of which catalog, where the format has them.
    merge_files: joins small files, those of earlier runs too. adds_milliseconds: whether a new table gets the column
    `timestampMs`; one that is there stays as it is. reads_back: reads all rows of the table before it is called done.
    """

    sources: tuple[StrPath, ...]
    destination: str
    selection: LogSelection = field(default_factory=LogSelection)
    read: ReadOptions = field(default_factory=ReadOptions)
    files: FileOptions = field(default_factory=FileOptions)
    parallelism: int = 1
    overwrite: bool = False
    table: TableName = NO_TABLE
    merge_files: bool = False
    reads_back: bool = False
    adds_milliseconds: bool = True

    def splitting(self) -> Splitting:
        """How large its orders are."""
        return Splitting(self.files.target_size, self.parallelism, self.read.latest_per_key is not None)


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What a run would do: the orders for the best copies; results of earlier runs that stay; what is there.

    read: how records are read, with the typed columns that were found: its `schema()` is the table's.
    kept: results of what is there; absent: of partitions that have gone, or were recreated since. refused: sources that
    can't be opened or listed; the rest is exported. taken_up: files of runs that were broken off; their results are
    among those kept. taken: which copies of the sources answer, and what is left out.
    """

    orders: tuple[WorkOrder, ...]
    kept: tuple[Result, ...]
    absent: tuple[Result, ...]
    previous: manifests.Manifest
    copies: Copies
    read: ReadOptions
    refused: tuple[OpenError, ...] = ()
    taken_up: int = 0
    taken: Taken | None = None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(order.size for order in self.orders)


class RunResults(NamedTuple):
    """The results of earlier runs that stay, and those of this one."""

    kept: list[Result]
    new: list[Result]


def plan_export(export: Export) -> ExportPlan:
    """Plans a run, and changes nothing.

    Raises UsageError if there is nothing to read, the destination lies within what is read or holds something else;
    OpenError; KsegError if the destination's manifest can't be believed.
    """
    return _plan(export, _ledger(export))


def _ledger(export: Export) -> Ledger:
    place = open_destination(export.destination)
    return ledger_of(place, HERE, export.table, export.files, overwrite=export.overwrite)


def _plan(export: Export, ledger: Ledger) -> ExportPlan:
    parquet.check_options(export.files)
    named = (*(os.fspath(each) for each in export.sources), export.read.decode.schema, export.read.decode.registry)
    ledger.place.keep_outside(named)
    ledger.place.require_plain()
    # Before the logs are listed: what others commit after it is noticed, and a listing older than a result seems to
    # show that its log was cut off.
    previous = ledger.previous(export.read, export.files, overwrite=export.overwrite)
    refused: list[OpenError] = []
    replicas = find_replicas(export.sources, refused.append)
    copies = copies_of(replicas)
    if not copies and refused:
        raise refused[0]
    require_replicas(copies, export.sources)
    ledger.place.keep_outside((*named, *(copy.path for copies_of_one in copies.values() for copy in copies_of_one)))
    copies = with_known_ids(copies, previous.results)
    present, absent = told_apart(previous.results, copies)
    kept = tuple(ledger.kept(replace(previous, results=tuple(present)), copies))
    choice = export.selection.partitions
    orders = plan_orders(copies, export.selection, export.splitting(), manifests.done(kept))
    if not orders and not kept and not any(export.selection.range_of(*key) is not None for key in copies):
        raise NoSuchPartitionError(choice, (copy.place for copies_of_one in copies.values() for copy in copies_of_one))
    topics = {topic for topic, partition in copies if export.selection.range_of(topic, partition) is not None}
    parquet.check_topics(topics, export.files)
    written = previous.read if kept or absent or (previous.results and ledger.keeps_columns) else None
    is_there = previous.number > 0 and not export.overwrite
    has_milliseconds = previous.read.has_milliseconds if is_there else export.adds_milliseconds
    wanted = replace(export.read, has_milliseconds=has_milliseconds)
    read = ledger.with_field_ids(with_typed_columns(wanted, written, topics, orders))
    return ExportPlan(
        tuple(orders),
        kept,
        tuple(manifests.with_files_there(absent, ledger.place)),
        replace(previous, read=without_writers(read)),
        copies,
        read,
        refused=tuple(each for each in refused if _is_meant(each, choice)),
        taken=taken_of(each for each in replicas if choice.takes(each.topic, each.partition)),
    )


def _is_meant(error: OpenError, choice: PartitionChoice) -> bool:
    """Whether an error is of a source, or of a partition below one that is to be exported."""
    return not isinstance(error, UnreadableError) or error.path is None or choice.takes_directory(error.path)


def run_export(export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Exports; gives the accounts of the whole destination.

    Where copies of a partition are there, what the best one lost or hasn't got is taken from the next. Raises what
    `plan_export` and `execute` raise, LostError if another run was quicker; then nothing is changed in the destination.
    Where a table's log tells what the other run has done, this one goes on from there.
    """
    return export_into(_ledger(export), export, execute, progress)


def export_into(ledger: Ledger, export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Exports to a destination that is open."""
    start = time.monotonic()
    place = ledger.place
    with _under_way(ledger, export) as (run, plan):
        job = Job(run.id, place.url, plan.read, export.files, place.identity)

        def results_of(wanted: ExportPlan) -> RunResults:
            return _results(wanted, export, job._replace(read=wanted.read), execute, progress)

        outcome = results_of(plan)
        tiered = find_remote_parts(plan.copies, export.selection, metadata_dirs_of(export.sources))
        for attempt in range(MOST_ATTEMPTS):
            try:
                gone = gone_topics(plan.absent, plan.copies, export.sources)
                joined = _joined(plan, outcome, job, ledger, merges=export.merge_files)
                with Uninterrupted():  # all of it, or nothing
                    committed, new_files = _committed(run, plan, joined, export, ledger)
                    report = Report(
                        place.url,
                        compared(
                            _named(reconcile([*plan.absent, *outcome.kept], outcome.new, tiered, gone), plan.copies),
                            reconcile(plan.previous.results),
                        ),
                        new_files,
                        time.monotonic() - start,
                        plan.refused,
                        folders=export.files.partition_by,
                        table_format=export.files.table_format,
                        table=ledger.table,
                        merged=joined.counts if export.merge_files else None,
                        taken_up=plan.taken_up,
                        is_typed=bool(plan.read.decode.columns),
                        taken=plan.taken,
                        has_milliseconds=plan.read.has_milliseconds,
                    )
                    left = _settled(run, committed, report, ledger)
                    place.require_unchanged()
                break
            except OvertakenError:
                if attempt == MOST_ATTEMPTS - 1:
                    raise
                plan, outcome = _after_others(plan, outcome, export, ledger, results_of)
    report = replace(report, left_alone=tuple(map(str, left)))
    if committed is not plan.previous:
        _check(
            ledger, committed, [*joined.kept, *joined.new], report, is_all=export.overwrite or not plan.previous.number
        )
    merged = ledger.merge_files(export.files.target_size) if export.merge_files else None
    if export.reads_back:
        check_rows(_rows_read(ledger, committed), report.partitions, ledger.table)
    return report if merged is None else replace(report, merged=merged)


def _named(partitions: Iterable[PartitionReport], copies: Copies) -> Iterator[PartitionReport]:
    """The partitions with the names that the user gave their copies."""
    names = {copy.path: str(copy.place) for known in copies.values() for copy in known}
    for each in partitions:
        yield replace(each, copies=[names.get(path, path) for path in each.copies])


def _check(
    ledger: Ledger, committed: manifests.Manifest, results: Sequence[Result], report: Report, *, is_all: bool
) -> None:
    """Opens what was committed, and compares it with the report. is_all: no rows but the report's can be there.

    Raises TableDiffersError.
    """
    written = rows_of_run(results, committed.run)
    found = ledger.contents(committed, written)
    if found is not None:
        total = sum(part.records_out for part in report.partitions) if is_all else None
        check_contents(found, written, total, ledger.table)


def _rows_read(ledger: Ledger, committed: manifests.Manifest) -> Counter[Key]:
    try:
        return ledger.row_counts(committed)
    except (KsegError, OSError, pa.ArrowException) as error:
        raise TableDiffersError(f"not all rows can be read: {error}", ledger.table) from error


def _joined(plan: ExportPlan, outcome: RunResults, job: Job, ledger: Ledger, *, merges: bool) -> Joined:
    """The results that are to be committed, in the files that they are to have."""
    telling = [result for result in outcome.new if result.says_something]
    return ledger.joined([*plan.absent, *outcome.kept], telling, plan.previous, job, merges=merges)


def _committed(
    run: ExportRun, plan: ExportPlan, joined: Joined, export: Export, ledger: Ledger
) -> tuple[manifests.Manifest, int]:
    """The manifest that holds the results, a new one unless nothing has changed; and how many of its files are new."""
    previous = plan.previous
    is_same = not joined.is_changed and not joined.new and previous.number > 0 and _are_those_of(joined.kept, previous)
    is_kept = is_same and not export.overwrite and not ledger.needs_renewal(previous)
    committed = previous if is_kept else ledger.commit(run, previous, joined.kept, joined.new)
    return committed, joined.new_files


def _settled(run: ExportRun, committed: manifests.Manifest, report: Report, ledger: Ledger) -> list[Marker]:
    """Describes what counts, and tidies up; gives the runs whose files are left alone."""

    def publish(manifest: manifests.Manifest) -> None:
        _publish(report if manifest is committed else _report_of(manifest, report), ledger.place)

    ledger.settle(committed, publish)
    return ledger.sweep(committed, run)


def _after_others(
    plan: ExportPlan,
    outcome: RunResults,
    export: Export,
    ledger: Ledger,
    results_of: Callable[[ExportPlan], RunResults],
) -> tuple[ExportPlan, RunResults]:
    """The plan and the results after what others have committed meanwhile.

    What this run has read stays, but for the partitions of which others have committed something: these are planned
    again.
    """
    again = _plan(export, ledger)
    planned, there = (parquet.schema_of_files(each.read, export.files) for each in (plan, again))
    if not planned.equals(there, check_metadata=True):  # Iceberg's ids are in it: files that are written can't change
        raise KsegError("another export has changed the columns of the table meanwhile: run it again", ledger.table)
    touched = changed_keys(plan.previous, again.previous)
    lost, new = _split(outcome.new, touched)
    ledger.drop(lost)
    _, kept = _split(outcome.kept, touched)
    theirs, _ = _split(again.kept, touched)
    orders = tuple(order for order in again.orders if (order.topic, order.partition) in touched)
    copies = {key: known for key, known in again.copies.items() if key in touched}
    more = results_of(replace(again, orders=orders, kept=tuple(theirs), copies=copies))
    return again, RunResults([*kept, *more.kept], [*new, *more.new])


def _split(results: Iterable[Result], keys: frozenset[Key]) -> tuple[list[Result], list[Result]]:
    """The results of some partitions, and those of others."""
    results = list(results)
    own = [result for result in results if (result.topic, result.partition) in keys]
    return own, [result for result in results if (result.topic, result.partition) not in keys]


@contextmanager
def _under_way(ledger: Ledger, export: Export) -> Iterator[tuple[ExportRun, ExportPlan]]:
    """A run, marked as under way until it ends, and its plan; what a broken commit left undone is done first."""
    while True:
        plan = _plan(export, ledger)
        run = ledger.begin(plan.previous.number)
        if run is not None:
            break
    try:
        ledger.take_up(plan.previous)
        yield run, _resumed(run, plan, export, ledger)
    except BaseException as error:
        has_finished = isinstance(error, Exception) and not isinstance(error, LostError)
        with Uninterrupted():
            (ledger.leave if has_finished else ledger.give_up)(run)
        raise


def _resumed(run: ExportRun, plan: ExportPlan, export: Export, ledger: Ledger) -> ExportPlan:
    """The plan without what runs have finished that are over: their results are taken up."""
    finished = ledger.finished_orders(plan.read, export.files)
    taken = [] if finished is None else finished.take_up(run, plan.kept, plan.copies, plan.orders)
    if not taken:
        return plan
    kept = (*plan.kept, *taken)
    orders = plan_orders(plan.copies, export.selection, export.splitting(), manifests.done(kept))
    return replace(plan, orders=tuple(orders), kept=kept, taken_up=sum(len(result.files) for result in taken))


def _results(plan: ExportPlan, export: Export, job: Job, execute: Execute, progress: Progress | None) -> RunResults:
    """The results of earlier runs that stay, and new ones; logs that changed while they were read are listed again."""
    outcome = RunResults(list(plan.kept), [])
    copies, orders = plan.copies, plan.orders
    for _ in range(MOST_LISTINGS):
        outcome = _results_of_listing(
            copies, orders, outcome, export, lambda each: _executed(each, job, execute, progress)
        )
        changed = {(result.topic, result.partition) for result in outcome.new if result.has_changed}
        if not changed:
            return outcome
        new = [replace(result, has_changed=False) if result.has_changed else result for result in outcome.new]
        listed = list_again(export.sources, copies, changed, export.selection, [*outcome.kept, *new])
        require_changed(copies, listed.copies, changed)
        outcome = RunResults(outcome.kept, [*new, *listed.missed])
        copies = listed.copies
        done = with_ends_in_same_files(listed.done, plan.copies, copies)
        orders = tuple(plan_orders(copies, export.selection, export.splitting(), done))
    raise KsegError("logs change faster than they can be read: run it again", export.destination)


def _results_of_listing(
    copies: Copies,
    orders: Sequence[WorkOrder],
    outcome: RunResults,
    export: Export,
    executed: Callable[[Sequence[WorkOrder]], Iterable[Result]],
) -> RunResults:
    """The results with those of orders: of the best copies, then of the next for what these lack.

    A copy whose offsets turn out not to rise is read once more, as a whole as far as it is there.
    """
    kept, new = outcome
    for copy in range(max(map(len, copies.values()), default=0)):
        if copy:
            orders = plan_orders(
                copies, export.selection, export.splitting(), _known(copies, [*kept, *new], copy), copy
            )
        found = list(executed(orders))
        disordered = disordered_keys(found)
        if disordered:
            again = {key: copies[key] for key in disordered}
            if not copy:
                kept, new = ([each for each in some if not _is_read_again(each, again)] for some in (kept, new))
            found = [result for result in found if (result.topic, result.partition) not in disordered]
            splitting = replace(export.splitting(), disordered=disordered)
            orders = plan_orders(again, export.selection, splitting, _known(copies, [*kept, *new], copy), copy)
            found += executed(orders)
        joined = joined_at_seams([*kept, *new, *found])
        kept, new = joined[: len(kept)], joined[len(kept) :]
    return RunResults(kept, new)


def _known(copies: Copies, results: Iterable[Result], copy: int) -> Mapping[Key, Done]:
    """What needn't be read of the copies of a rank."""
    present, _ = told_apart(results, copies)
    return _explained(present, copies, copy) if copy else manifests.done(present)


def _is_read_again(result: Result, copies: Copies) -> bool:
    """Whether a result is of one of these partitions, which are read again, and all that it has is there."""
    present, _ = told_apart([result], copies)
    there = {each.log for known in copies.values() for replica in known for each in replica.segments}
    is_there = all(source.path in there and not source.is_cleaned for source in result.sources)
    return bool(present) and is_there and not result.is_partly_gone


def _are_those_of(results: list[Result], manifest: manifests.Manifest) -> bool:
    """Whether results are those of a manifest, whatever their order."""
    old = {id(result): result for result in manifest.results}
    changed = [result for result in results if old.pop(id(result), None) is None]
    left = list(old.values())
    return len(changed) == len(left) and all(result in left for result in changed)


def _report_of(manifest: manifests.Manifest, own: Report) -> Report:
    """The report of a manifest that another run has built on this one's meanwhile."""
    partitions = compared(reconcile(manifest.results), own.partitions)
    return replace(own, partitions=partitions, new_files=manifest.new_files)


def _publish(report: Report, place: Destination) -> None:
    """Writes the files that describe what counts."""
    place.replace(f"{manifests.FOLDER}/report.json", report.to_bytes())
    damages = (damage_rows(part.topic, part.partition, part.damages) for part in report.partitions)
    place.replace(NAME_OF_DAMAGES, to_csv(damages))


def _executed(orders: Sequence[WorkOrder], job: Job, execute: Execute, progress: Progress | None) -> Iterable[Result]:
    total, finished = sum(order.size for order in orders), 0
    directories = {order.replica: order.directory for order in orders}
    with closing(_each(execute(orders, job) if orders else ())) as results:  # what others do ends before it is undone
        for result in results:
            finished += result.size
            if progress is not None:
                progress(finished, total)
            for loss in result.tally.losses:
                loss.segment = str(within(directories[result.replica], loss.segment))
            yield result


def _each(results: Iterable[Result]) -> Generator[Result, None, None]:
    """The results as a generator: closing it closes the one that they come from."""
    yield from results


def _explained(results: Iterable[Result], copies: Copies, copy: int) -> dict[Key, Done]:
    """What the better copies account for, and what an earlier run has read of this one already."""
    by_partition: dict[Key, list[Result]] = {}
    for result in results:
        by_partition.setdefault((result.topic, result.partition), []).append(result)
    found, gapless = {}, gapless_partitions(copies)
    for key, own in by_partition.items():
        path = copies[key][copy].path if len(copies.get(key, ())) > copy else None
        read = [
            OffsetRange(result.tally.first_offset, result.tally.next_offset)
            for result in own
            if result.replica == path and result.tally.next_offset is not None
        ]
        accounted = explained([result.tally for result in own], is_gapless=key in gapless)
        found[key] = Done((*accounted, *read))
    return found


def execute_here(orders: Sequence[WorkOrder], job: Job) -> Iterable[Result]:
    """Executes orders in this process, one after another; those that wait for a store more than they work, together."""
    place = open_destination(job.destination, job.identity)
    yield from (execute_order(order, job, place) for order in orders if not _waits(order))
    yield from in_threads(lambda order: execute_order(order, job, place), filter(_waits, orders))


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
