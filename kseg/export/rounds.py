"""Rounds of reading: a plan's orders, then what the best copies lack from the next, and logs again that changed."""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from typing import NamedTuple

from kseg.cluster.copies import Copies
from kseg.errors import KsegError
from kseg.export.commit import manifest as manifests
from kseg.export.commit.manifest import Key, by_partition
from kseg.export.commit.order import Execute, Job
from kseg.export.commit.protocol import ExportPlan
from kseg.export.commit.relist import list_again, require_changed, told_apart
from kseg.export.coverage import Coverage
from kseg.export.plan import Done, WorkOrder, gapless_partitions, plan_orders
from kseg.export.planning import Export
from kseg.export.read.offset_accounts import disordered_keys, joined_at_seams
from kseg.export.results import Result, explained
from kseg.export.settings import OffsetRange
from kseg.system.placed_path import within

Progress = Callable[[int, int], object]
"""Is told how many bytes of how many are done."""
MOST_LISTINGS = 10
"""How often logs are listed that change while they are read."""


class RunResults(NamedTuple):
    """The results of earlier runs that stay, and those of this one."""

    kept: list[Result]
    new: list[Result]


class Reading(NamedTuple):
    """How a run's orders are executed. progress: None if nobody watches; start: when it began, in seconds."""

    export: Export
    job: Job
    execute: Execute
    progress: Progress | None
    start: float


def read_plan(plan: ExportPlan, reading: Reading) -> RunResults:
    """The results of earlier runs that stay, and new ones; logs that changed while they were read are listed again."""
    reading = reading._replace(job=reading.job._replace(read=plan.read))
    export, outcome = reading.export, RunResults(list(plan.kept), [])
    copies, orders = plan.copies, plan.orders
    for _ in range(MOST_LISTINGS):
        outcome = _results_of_listing(copies, orders, outcome, reading)
        changed = {(result.topic, result.partition) for result in outcome.new if result.has_changed}
        if not changed:
            return outcome
        new = [replace(result, has_changed=False) if result.has_changed else result for result in outcome.new]
        listed = list_again(export.sources, copies, changed, export.selection, [*outcome.kept, *new], plan.copies)
        require_changed(copies, listed.copies, changed)
        outcome = RunResults(outcome.kept, [*new, *listed.missed])
        copies = listed.copies
        orders = tuple(plan_orders(copies, export.selection, export.splitting(), listed.done))
    raise KsegError("logs change faster than they can be read: run it again", export.destination)


def _results_of_listing(
    copies: Copies, orders: Sequence[WorkOrder], outcome: RunResults, reading: Reading
) -> RunResults:
    """The results with those of orders: of the best copies, then of the next for what these lack.

    A copy whose offsets turn out not to rise is read once more, as a whole as far as it is there.
    """
    export, (kept, new) = reading.export, outcome
    for copy in range(max(map(len, copies.values()), default=0)):
        if copy:
            orders = plan_orders(
                copies, export.selection, export.splitting(), _known(copies, [*kept, *new], copy), copy
            )
        found = _executed(orders, reading)
        disordered = disordered_keys(found)
        if disordered:
            again = {key: copies[key] for key in disordered}
            if not copy:
                kept, new = ([each for each in some if not _is_read_again(each, again)] for some in (kept, new))
            found = [result for result in found if (result.topic, result.partition) not in disordered]
            splitting = replace(export.splitting(), disordered=disordered)
            orders = plan_orders(again, export.selection, splitting, _known(copies, [*kept, *new], copy), copy)
            found += _executed(orders, reading)
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


def _executed(orders: Sequence[WorkOrder], reading: Reading) -> list[Result]:
    if not orders:
        return []
    total, finished = sum(order.size for order in orders), 0
    directories = {order.replica: order.directory for order in orders}
    found: list[Result] = []
    with closing(_each(reading.execute(orders, reading.job))) as results:  # what others do ends before it is undone
        for result in results:
            finished += result.size
            if reading.progress is not None:
                reading.progress(finished, total)
            for loss in result.tally.losses:
                loss.segment = str(within(directories[result.replica], loss.segment))
            found.append(result)
    return found


def _each(results: Iterable[Result]) -> Generator[Result, None, None]:
    """The results as a generator: closing it closes the one that they come from."""
    yield from results


def _explained(results: Iterable[Result], copies: Copies, copy: int) -> dict[Key, Done]:
    """What the better copies account for, and what an earlier run has read of this one already."""
    found, gapless = {}, gapless_partitions(copies)
    for key, own in by_partition(results).items():
        path = copies[key][copy].path if len(copies.get(key, ())) > copy else None
        tallies = [result.tally for result in own if result.replica == path and result.tally.next_offset is not None]
        read = Coverage(tuple(OffsetRange(tally.first_offset, tally.next_offset) for tally in tallies))
        found[key] = Done(explained([each.tally for each in own], is_gapless=key in gapless) + read)
    return found
