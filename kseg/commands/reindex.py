"""`kseg reindex`: rebuilds indexes and other missing or wrong files from the logs, in a new directory."""

from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.new_directories import new_directory_of
from kseg.commands.options import cluster_metadata_option, gentle_options, new_directory_option, progress_option
from kseg.commands.parameters import int_number
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.partition.log_dir import partitions_at
from kseg.log.partition.side_files import rebuilt_side_files
from kseg.log.reindex import partition_folder, reindex_partition
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.reindex import reindexed_lines, side_file_line
from kseg.output.stdout import flush_stdout, write_line, write_lines
from kseg.output.talk import talk
from kseg.system.gentle import give_way
from kseg.views.index_intervals import IndexIntervals
from kseg.views.topic_ids import TopicIds


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@new_directory_option("The new directory: it must not exist yet, or be empty.")
@click.option("--dry-run", is_flag=True, help="Only compare with the indexes that are there; write nothing.")
@click.option(
    "--index-interval-bytes",
    type=int_number(),
    help=f"The topic's index.interval.bytes; by default from metadata or entries there, else {INDEX_INTERVAL_BYTES}.",
)
@gentle_options
@progress_option
@cluster_metadata_option
@reads_archives("path")
@click.pass_context
def reindex(
    command: click.Context,
    path: Path,
    directory: Path | None,
    dry_run: bool,
    index_interval_bytes: int | None,
    keep_cache: bool,
    gentle: bool,
    progress: bool | None,
    cluster_metadata: Path | None,
) -> None:
    """Rebuild .index, .timeindex and .txnindex from the logs, as a broker does.

    \b
    Examples:
      kseg reindex orders-0/ -o indexes
      kseg reindex kafka-logs/ --dry-run | grep -v 'same'

    PATH is a partition's directory or a file in it: its indexes go to DIRECTORY. Or it is a log directory: each
    partition gets its own directory there. The interval between entries comes from the topic's settings, if
    __cluster_metadata is next to the partition, or from the existing indexes. An index ends where its log is damaged;
    the exit status is then 1. `reindex` also rebuilds leader epochs, producer snapshots and partition.metadata if they
    are missing or broken, or contradict the log.
    """
    target = new_directory_of(directory, dry_run=dry_run, beside=(path, cluster_metadata))
    if gentle:
        give_way()
    refuse = Refusals()
    partitions = list(partitions_at(path, refuse))
    intervals = IndexIntervals(index_interval_bytes, cluster_metadata)
    topic_ids, is_damaged = TopicIds(cluster_metadata), False
    with target as unfinished, ProgressBar(progress) as bar:
        on_read = bar.counting("reindex", sum(partition.size for partition in partitions))
        for partition in partitions:
            folder = partition_folder(unfinished, partition, len(partitions))
            interval = intervals.of(partition)
            if interval.source is not None:
                talk(f"kseg: {partition.path}: index.interval.bytes is {interval.size}, from {interval.source}")
            for each in reindex_partition(partition, folder, interval=interval.size, keep_cache=keep_cache):
                write_lines(reindexed_lines(each))
                is_damaged |= each.damage is not None
                on_read(each.segment.size)
            for file in rebuilt_side_files(partition, topic_ids.lost_by(partition), folder):
                write_line(side_file_line(partition, file))
    flush_stdout()
    command.exit(max(refuse.status, int(is_damaged)))
