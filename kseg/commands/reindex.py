"""`kseg reindex`: rebuilds indexes and other missing or wrong files from the logs, in a new directory."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import AdjacentMetadata, TopicIds
from kseg.cluster.partition_settings import IndexInterval, IndexIntervals, interval_as_it_lies
from kseg.commands.inputs import new_directory_of
from kseg.commands.options.command import WorkOptions, command
from kseg.errors import plural
from kseg.log.partition import PartitionLog
from kseg.log.selection import PartitionChoice
from kseg.log.side_files import rebuilt_side_files
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_line, write_lines
from kseg.rewrite.reindex import Comparison, partition_folder, reindex_partition
from kseg.system.shared_work import SMALLEST_COST, OnRead, shared_work
from kseg.text.salvage import reindexed_lines, side_file_line


class ReindexOptions(NamedTuple):
    """The new directory, and the settings of the indexes."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    directory: Path | None
    dry_run: bool
    index_interval_bytes: int | None
    cluster_metadata: Path | None
    work: WorkOptions
    talk: Talk


@command(ReindexOptions)
def reindex(options: ReindexOptions) -> None:
    """Rebuild indexes from the logs.

    Use `reindex` if indexes are missing or wrong. It makes .index, .timeindex and .txnindex from the logs as a broker
    does, in a new directory. PATHS never change.

    \b
    Examples:
      kseg reindex orders-0/ --to indexes
      kseg reindex kafka-logs/ --dry-run | grep -E 'wrong|missing|unreadable'

    If PATHS have one partition, its indexes go to DIR; otherwise each partition gets its own directory there. `reindex`
    also rebuilds leader epochs, producer snapshots and partition.metadata if they are missing or damaged, or contradict
    the log.

    The interval between entries comes from the topic's settings if a __cluster_metadata is in PATHS or next to them,
    otherwise from the existing indexes. An existing index may differ from the rebuilt one and be right: the log doesn't
    say which batches have entries. An index ends where its log is damaged; the exit status is then 1.
    """
    paths, work, talk = options.paths, options.work, options.talk
    beside = (*paths, options.cluster_metadata)
    target = new_directory_of(options.directory, dry_run=options.dry_run, beside=beside)
    processes = work.begin()
    cluster = Cluster(paths, talk.refuse)
    partitions = list(cluster.directories(options.choice))
    if talk.status > 1 and not partitions:
        return
    told = AdjacentMetadata(log_dirs=cluster.metadata_dirs(), given=options.cluster_metadata)
    intervals = IndexIntervals(options.index_interval_bytes, told)
    topic_ids, is_damaged, written = TopicIds(cluster, options.cluster_metadata), False, 0
    is_fixable = False
    with target as unfinished, talk.bar() as bar:
        orders = _orders(partitions, unfinished, intervals, topic_ids)
        on_read = bar.counting("reindex", sum(partition.size for partition in partitions))
        with shared_work(
            partial(_reindex_one, work.keep_cache),
            orders,
            _cost_of,
            processes=processes,
            on_read=on_read,
            is_far=cluster.is_far,
        ) as reports:
            for _, report in reports:
                if not talk.is_quiet or report.is_damaged:
                    talk.say(*report.notes)
                    write_lines(report.lines)
                is_damaged |= report.is_damaged
                written += report.written
                is_fixable |= report.is_fixable
    if not options.dry_run and not talk.is_quiet:
        write_line(f"{plural(written, 'file')} written to {options.directory}")
    flush_stdout()
    if options.dry_run and is_fixable:
        talk.note("`--to DIR` instead of --dry-run writes the rebuilt files")
    talk.end_with(is_damaged)


class _ReindexOrder(NamedTuple):
    """A partition to reindex: its new directory, the interval (None: of its entries), its topic id if missing."""

    partition: PartitionLog
    folder: Path | None
    interval: IndexInterval | None
    topic_id: str | None


class _ReindexReport(NamedTuple):
    """The report on one partition for stderr and stdout, and whether a log is damaged.

    is_fixable: whether an existing file is wrong, unreadable or missing, and there is a rebuilt one.
    """

    notes: tuple[str, ...] = ()
    lines: tuple[str, ...] = ()
    is_damaged: bool = False
    written: int = 0
    is_fixable: bool = False


def _orders(
    partitions: list[PartitionLog], directory: Path | None, intervals: IndexIntervals, topic_ids: TopicIds
) -> Iterator[_ReindexOrder]:
    for partition in partitions:
        folder = partition_folder(directory, partition, len(partitions))
        yield _ReindexOrder(partition, folder, intervals.find(partition), topic_ids.lost_by(partition))


def _cost_of(order: _ReindexOrder) -> int:
    return order.partition.size + SMALLEST_COST


def _reindex_one(keep_cache: bool, order: _ReindexOrder, on_read: OnRead) -> Iterator[_ReindexReport]:
    partition, folder, told, topic_id = order
    interval = told or interval_as_it_lies(partition)
    if interval.source is not None:
        yield _ReindexReport(
            (f"kseg: {partition.path}: index.interval.bytes is {interval.size}, from {interval.source}",)
        )
    for each in reindex_partition(partition, folder, interval=interval.size, keep_cache=keep_cache):
        lines = tuple(reindexed_lines(each))
        is_fixable = not {*each.compared.values()} <= {Comparison.SAME, Comparison.RIGHT}
        damaged = each.damage is not None
        yield _ReindexReport(lines=lines, is_damaged=damaged, written=len(each.files), is_fixable=is_fixable)
        on_read(each.segment.size)
    for file in rebuilt_side_files(partition, topic_id, folder):
        line = side_file_line(partition, file, is_dry_run=folder is None)
        has_content = file.content is not None
        yield _ReindexReport(lines=(line,), written=has_content, is_fixable=has_content)
