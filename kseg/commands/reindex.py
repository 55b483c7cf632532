"""`kseg reindex`: indexes rebuilt from the logs, in a new directory, and what else is missing or wrong there."""

from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import cluster_metadata_option, gentle_options, progress_option
from kseg.commands.parameters import NewDirectory, int_number
from kseg.errors import UsageError
from kseg.index.rebuild import INDEX_INTERVAL_BYTES
from kseg.log.partition.log_dir import partitions_at
from kseg.log.partition.partition_log import PartitionLog
from kseg.log.partition.side_files import SideFile, rebuilt_side_files
from kseg.log.reindex import Reindexed, reindex_partition, write_reindexed
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.talk import talk
from kseg.system.gentle import give_way
from kseg.system.new_directory import check_absent, new_directory
from kseg.views.index_intervals import IndexIntervals
from kseg.views.topic_ids import TopicIds


@click.command()
@click.argument("path", type=click.Path(path_type=Path), default=Path())
@click.option(
    "-o",
    "--output",
    "directory",
    type=NewDirectory(),
    help="The new directory: not there yet, or empty.",
)
@click.option("--dry-run", is_flag=True, help="Only compare with the indexes that are there; write nothing.")
@click.option(
    "--index-interval-bytes",
    type=int_number(),
    help=f"The topic's index.interval.bytes: as the metadata beside or the entries tell, else {INDEX_INTERVAL_BYTES}.",
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

    PATH is a partition's directory or a file in it: its indexes go to DIRECTORY; or a log directory: each partition
    gets a directory of its own there. How far entries lie apart is taken from the topic's settings, where
    __cluster_metadata lies beside, or from the indexes that are there. An index ends where its log is damaged; then the
    status is 1. Leader epochs, producer snapshots and partition.metadata come with them where they are missing or
    broken, or contradict the log.
    """
    if directory is None and not dry_run:
        raise UsageError("give -o DIRECTORY, or --dry-run")
    if directory is not None:
        check_absent(directory)
        check_outside(directory, (path, cluster_metadata))
    if gentle:
        give_way()
    refuse = Refusals()
    partitions = list(partitions_at(path, refuse))
    is_damaged, topic_ids = False, TopicIds(cluster_metadata)
    intervals = IndexIntervals(index_interval_bytes, cluster_metadata)
    new = nullcontext() if dry_run or directory is None else new_directory(directory)
    with new as target, ProgressBar(progress) as bar:
        on_read = bar.counting("reindex", sum(partition.size for partition in partitions))
        for partition in partitions:
            folder = _folder(target, partition, len(partitions))
            interval = intervals.of(partition)
            if interval.source is not None:
                talk(f"kseg: {partition.path}: index.interval.bytes is taken as {interval.size}, by {interval.source}")
            for each in reindex_partition(partition, interval=interval.size, keep_cache=keep_cache):
                if folder is not None:
                    write_reindexed(each, folder)
                for line in _lines(each):
                    write_line(line)
                is_damaged |= each.damage is not None
                on_read(each.segment.size)
            for file in rebuilt_side_files(partition, topic_ids.lost_by(partition)):
                if folder is not None and file.content is not None:
                    (folder / file.name).write_bytes(file.content)
                write_line(_side_line(partition, file))
    flush_stdout()
    command.exit(max(refuse.status, int(is_damaged)))


def _folder(target: Path | None, partition: PartitionLog, count: int) -> Path | None:
    """Where a partition's indexes go; None if nothing is written. It may lie on two disks."""
    if target is None or count == 1:
        return target
    path = partition.path.absolute()
    folder = target / path.name
    if folder.exists():
        folder = target / path.parent.name / path.name
    folder.mkdir(parents=True)
    return folder


def _side_line(partition: PartitionLog, file: SideFile) -> str:
    detail = f" ({file.detail})" if file.detail else ""
    outcome = "" if file.content is not None else "; --cluster-metadata may tell what it should hold"
    return f"{partition.path / file.name}: {file.reason}{detail}{outcome}"


def _lines(each: Reindexed) -> Iterator[str]:
    compared = ", ".join(f"{extension} {comparison}" for extension, comparison in each.compared.items())
    yield f"{each.segment.path}: {compared}"
    if each.damage is not None:
        yield (
            f"{each.segment.path}: at position {each.damage.position}: {each.damage.kind}: the indexes end here;"
            " `kseg salvage` goes on behind it"
        )
