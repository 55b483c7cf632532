"""`kseg salvage`: saves the intact batches of damaged partitions into a new directory."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import NamedTuple

import click

from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import TopicIds
from kseg.cluster.taken import taken_of
from kseg.commands.inputs import new_directory_of
from kseg.commands.options.command import WorkOptions, command
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.rewrite.salvage import SalvageOrder, SalvageTargets, salvage_order, salvage_orders
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work
from kseg.text.salvage import SalvageReport, advice_on_loss, salvage_report, write_report, write_run


class SalvageOptions(NamedTuple):
    """The new directory, the parts to leave out, and the format of the report."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    directory: Path | None
    drop_unreadable: bool
    dry_run: bool
    output: str
    cluster_metadata: Path | None
    keep_diverged: Path | None
    verbose: bool
    work: WorkOptions
    talk: Talk


@command(SalvageOptions)
def salvage(options: SalvageOptions) -> None:
    """Save the intact batches of damaged partitions.

    Use `salvage` to rescue a damaged partition. It copies intact batches to a new directory that a broker accepts.
    PATHS never change.

    \b
    Examples:
      kseg salvage orders-0/ --dry-run
      kseg salvage orders-0/ --to saved
      kseg salvage orders-0/ --drop-unreadable --to saved
      kseg salvage broker1/orders-0 broker2/orders-0 broker3/orders-0 --to saved
      kseg salvage bucket/ disk1/kafka-logs --to saved

    PATHS are partition directories, log directories, parents of these, or remote tiers (docs/how-to/buckets.md). If
    they have several replicas of a partition, `salvage` combines their intact batches. It omits records from
    leaders that the cluster abandoned; --keep-diverged keeps them in another directory.

    Each partition gets its own directory in DIR. Offsets stay; indexes, leader epochs and producer snapshots are
    rebuilt, and partition.metadata too if __cluster_metadata has the topic's id. Batches whose offsets fit nowhere go
    to lost+found/ next to the partitions.

    Batches with a right CRC and unreadable records are kept unchanged, since a later version may read them. Consumers
    fail there until you move them past. --drop-unreadable leaves these batches out and counts them as lost.

    The exit status is 1 if something is lost, or if kept batches can't be read.
    """
    paths, work, talk = options.paths, options.work, options.talk
    beside = (*paths, options.cluster_metadata)
    target = new_directory_of(options.directory, dry_run=options.dry_run, beside=beside)
    processes = work.begin()
    cluster = Cluster(paths, talk.refuse)
    partitions = cluster.partitions(options.choice)
    if talk.status > 1 and not partitions:
        return
    for line in taken_of(partitions).sentences(verbose=options.verbose):
        talk.note(line)
    is_whole = True
    advised: set[str] = set()
    with target as unfinished, _new_diverged_directory(options, beside) as diverged, talk.bar() as bar:
        if unfinished is not None and not talk.is_quiet:
            write_run(click.get_current_context().find_root().obj or (), form_named(options.output))
            flush_stdout()
        orders = salvage_orders(partitions, None if unfinished is None else TopicIds(cluster, options.cluster_metadata))
        salvage_one = partial(_salvage_one, SalvageTargets(unfinished, diverged), options, work.keep_cache)
        size = sum(place.size for each in partitions for place in each.places)
        on_read = bar.counting("salvage", size)
        with shared_work(
            salvage_one, orders, _cost_of, processes=processes, on_read=on_read, is_far=cluster.is_far
        ) as reports:
            for _, report in reports:
                is_whole &= report.is_whole
                advised |= set() if report.advised_topic is None else {report.advised_topic}
                if not (talk.is_quiet and report.is_whole):
                    write_report(report, form_named(options.output))
    flush_stdout()
    for topic in sorted(advised):
        talk.note(advice_on_loss(topic))
    talk.end_with(not is_whole)


def _new_diverged_directory(
    options: SalvageOptions, beside: tuple[Path | None, ...]
) -> AbstractContextManager[Path | None]:
    """Return the new directory of --keep-diverged, if it is given."""
    if options.keep_diverged is None:
        return nullcontext()
    return new_directory_of(options.keep_diverged, dry_run=options.dry_run, beside=(*beside, options.directory))


def _cost_of(order: SalvageOrder) -> int:
    return order.size + SMALLEST_COST


def _salvage_one(
    targets: SalvageTargets, options: SalvageOptions, keep_cache: bool, order: SalvageOrder, on_read: OnRead
) -> Iterator[SalvageReport]:
    salvaged = salvage_order(
        order, targets, drop_unreadable=options.drop_unreadable, keep_cache=keep_cache, on_read=on_read
    )
    yield salvage_report(salvaged.plan, salvaged.written, form_named(options.output))
