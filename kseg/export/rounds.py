"""Rounds of reading: a plan's orders, then further copies for what the best ones lack, then changed logs again."""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from kseg.cluster.copies import Copies, PartitionCopy, SegmentSource, copies_of, find_replicas
from kseg.errors import KsegError, OpenError
from kseg.export.commit.manifest import Key
from kseg.export.commit.order import Execute, Job
from kseg.export.commit.protocol import ExportPlan
from kseg.export.commit.sources import by_partition, find_exported, split_by_presence, with_known_ids
from kseg.export.coverage import Coverage
from kseg.export.plan import Done, Splitting, WorkOrder, gapless_partitions, plan_orders
from kseg.export.planning import Export
from kseg.export.read.offset_accounts import disordered_keys, joined_at_seams
from kseg.export.results import Result, Tally, find_explained, row_counts
from kseg.export.settings import LogSelection, OffsetRange
from kseg.system.placed_path import StrPath, within

Progress = Callable[[int, int], object]
"""A function that is called with the bytes finished and the bytes in total."""
MOST_LISTINGS = 10
"""The most listings of logs that change while they are read."""


class RunResults(NamedTuple):
    """The results of earlier runs that stay, and those of this run.

    rows: the rows of each file with any of these results, including those of results that were dropped since.
    """

    kept: list[Result]
    new: list[Result]
    rows: dict[str, int]


class Reading(NamedTuple):
    """The execution of a run's orders. progress: None without an observer; start: of the run, in seconds."""

    export: Export
    job: Job
    execute: Execute
    progress: Progress | None
    start: float


def read_plan(plan: ExportPlan, reading: Reading) -> RunResults:
    """Return the kept results of earlier runs, and new ones; logs that changed meanwhile are listed and read again."""
    reading = reading._replace(job=reading.job._replace(read=plan.read))
    export, outcome = reading.export, RunResults(list(plan.kept), [], row_counts(plan.kept))
    copies, orders = plan.copies, plan.orders
    for _ in range(MOST_LISTINGS):
        outcome = _results_of_listing(copies, orders, outcome, reading, plan.splitting)
        changed = {(result.topic, result.partition) for result in outcome.new if result.has_changed}
        if not changed:
            return outcome
        new = [replace(result, has_changed=False) if result.has_changed else result for result in outcome.new]
        listed = _list_again(export.sources, copies, changed, export.selection, [*outcome.kept, *new], plan.copies)
        _require_changed(copies, listed.copies, changed)
        outcome = outcome._replace(new=[*new, *listed.missed])
        copies = listed.copies
        orders = tuple(plan_orders(copies, export.selection, plan.splitting, listed.done))
    raise KsegError("the logs change faster than kseg can read them; run the command again", export.destination)


def _results_of_listing(
    copies: Copies, orders: Sequence[WorkOrder], outcome: RunResults, reading: Reading, splitting: Splitting
) -> RunResults:
    """Return the results with those of orders: of the best copies, then of further copies for what these lack.

    A copy whose offsets turn out not to rise is read again as a whole, as far as it still exists.
    """
    export, (kept, new, rows) = reading.export, outcome
    for copy in range(max(map(len, copies.values()), default=0)):
        if copy:
            orders = plan_orders(copies, export.selection, splitting, _known_parts(copies, [*kept, *new], copy), copy)
        found = _execute(orders, reading)
        rows = {**rows, **row_counts(found)}
        disordered = disordered_keys(found)
        if disordered:
            again = {key: copies[key] for key in disordered}
            if not copy:
                kept, new = ([each for each in some if not _is_read_again(each, again)] for some in (kept, new))
            found = [result for result in found if (result.topic, result.partition) not in disordered]
            whole = replace(splitting, disordered=disordered)
            orders = plan_orders(again, export.selection, whole, _known_parts(copies, [*kept, *new], copy), copy)
            read_again = _execute(orders, reading)
            rows = {**rows, **row_counts(read_again)}
            found += read_again
        joined = joined_at_seams([*kept, *new, *found])
        kept, new = joined[: len(kept)], joined[len(kept) :]
    return RunResults(kept, new, rows)


def _known_parts(copies: Copies, results: Iterable[Result], copy: int) -> Mapping[Key, Done]:
    """Return what needn't be read of the copies of a rank."""
    present, _ = split_by_presence(results, copies)
    return _explained_parts(present, copies, copy) if copy else find_exported(present)


def _is_read_again(result: Result, copies: Copies) -> bool:
    """Return True if a result belongs to one of the copies' partitions and all its logs still exist unchanged."""
    present, _ = split_by_presence([result], copies)
    there = {each.log for known in copies.values() for replica in known for each in replica.segments}
    is_there = all(source.path in there and not source.is_cleaned for source in result.sources)
    return bool(present) and is_there and not result.is_partly_gone


def _execute(orders: Sequence[WorkOrder], reading: Reading) -> list[Result]:
    if not orders:
        return []
    total, finished = sum(order.size for order in orders), 0
    directories = {order.replica: order.directory for order in orders}
    found: list[Result] = []
    with closing(_each(reading.execute(orders, reading.job))) as results:  # stop the workers before anything is undone
        for result in results:
            finished += result.size
            if reading.progress is not None:
                reading.progress(finished, total)
            for loss in result.tally.losses:
                loss.segment = str(within(directories[result.replica], loss.segment))
            found.append(result)
    return found


def _each(results: Iterable[Result]) -> Generator[Result, None, None]:
    """Yield the results from a generator, so that closing it closes their source."""
    yield from results


def _explained_parts(results: Iterable[Result], copies: Copies, copy: int) -> dict[Key, Done]:
    """Return what the better copies account for, and what an earlier run has read of this one."""
    found, gapless = {}, gapless_partitions(copies)
    for key, own in by_partition(results).items():
        path = copies[key][copy].path if len(copies.get(key, ())) > copy else None
        tallies = [result.tally for result in own if result.replica == path and result.tally.next_offset is not None]
        read = Coverage(tuple(OffsetRange(tally.first_offset, tally.next_offset) for tally in tallies))
        found[key] = Done(find_explained([each.tally for each in own], is_gapless=key in gapless) + read)
    return found


class _NewListing(NamedTuple):
    """A new listing of partitions, what needn't be read of them, and the losses of deleted copies."""

    copies: Copies
    done: Mapping[Key, Done]
    missed: list[Result]


def _list_again(
    sources: Iterable[StrPath],
    before: Copies,
    keys: Collection[Key],
    selection: LogSelection,
    results: Iterable[Result],
    first: Copies,
) -> _NewListing:
    """List the partitions again whose logs have changed since `before`.

    first: the run's first listing. If a log has been replaced since then, reading can't continue at a position in it.
    Raises UsageError for copies of different topics.
    """
    results = [result for result in results if (result.topic, result.partition) in keys]
    listed = copies_of(find_replicas(sources, _ignore))
    copies = with_known_ids({key: listed[key] for key in keys if key in listed}, results)
    present, _ = split_by_presence(results, copies)
    of_present = find_exported(present)
    done, lost = {}, list[Result]()
    for key in keys:
        best, known = before[key][0], of_present.get(key, Done())
        done[key] = known._replace(ends=_in_same_files(known.ends, first[key], copies.get(key, ())))
        if key in copies and copies[key][0].topic_id == best.topic_id:
            done[key] = done[key]._replace(listed_from=best.segments[0].base_offset)
        else:
            lost += _lost_with(best, selection, [result for result in results if result.topic_id == best.topic_id])
    return _NewListing(copies, done, lost)


def _require_changed(before: Copies, now: Copies, keys: Iterable[Key]) -> None:
    """Check that logs which readers couldn't find have changed here too.

    Raises OpenError if they are unchanged: the readers' machine doesn't have them.
    """
    for key in keys:
        if now.get(key) == before[key]:
            what = "exists here, but not on the machine that reads it; make it reachable from all machines"
            raise OpenError(what, before[key][0].place)


def _in_same_files(
    ends: Mapping[str, int], first: Iterable[PartitionCopy], now: Iterable[PartitionCopy]
) -> dict[str, int]:
    listed, there = ({each.log: each for copy in copies for each in copy.segments} for copies in (first, now))
    return {path: end for path, end in ends.items() if path not in there or _is_same(listed.get(path), there[path])}


def _is_same(listed: SegmentSource | None, segment: SegmentSource) -> bool:
    """Return True if it is the listed file, though it may have grown; a remote file must be unchanged."""
    if listed is None or listed.inode != segment.inode:
        return False
    return bool(segment.inode) or listed == segment


def _ignore(_: OpenError) -> None:
    """Ignore an error that the first listing reported, or one of a file deleted since."""


def _lost_with(copy: PartitionCopy, selection: LogSelection, results: list[Result]) -> Iterator[Result]:
    """Yield the losses of a deleted copy: listed offsets, up to its last segment, that no result has."""
    wanted = selection.range_of(copy.topic, copy.partition)
    if wanted is None:
        return
    first, last = copy.segments[0].base_offset, copy.segments[-1].base_offset
    end = last if wanted.end is None else min(last, wanted.end)
    known = find_exported(results).get((copy.topic, copy.partition), Done())
    note = f"{copy.place}: was removed while kseg was reading it: its contents from offset {end} on are unknown"
    notes = [note]
    for part in (*known.offsets.missing(OffsetRange(max(first, wanted.first or 0), end)).ranges, None):
        if part is None and not notes:
            return
        start, stop = (end, end) if part is None else (part.first or 0, part.end or 0)
        tally = Tally(first_offset=start, next_offset=stop, missed=stop - start, notes=notes)
        yield Result(
            topic=copy.topic,
            partition=copy.partition,
            replica=copy.path,
            wanted=OffsetRange(start, stop),
            sources=(),
            tally=tally,
            files=(),
            seconds=0.0,
            topic_id=copy.topic_id,
        )
        notes = []
