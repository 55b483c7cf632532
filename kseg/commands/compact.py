"""`kseg compact`: cleans a partition like the log cleaner."""

from contextlib import nullcontext
from pathlib import Path
from typing import NamedTuple

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.cleaner_options import CleanerOptions, cleaner_options
from kseg.commands.options import (
    cluster_metadata_option,
    new_directory_option,
    option_values,
    output_option,
    paths_argument,
    quiet_option,
)
from kseg.commands.partition_options import partition_options
from kseg.errors import UsageError
from kseg.log.compact.compact import compact_partition
from kseg.log.compact.filter import Gone
from kseg.log.partition.log_dir import find_partitions, only_partition
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.compact import compaction_notes, write_compacted
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout
from kseg.output.talk import talk
from kseg.system.new_directory import new_directory
from kseg.views.topic_ids import TopicIds


class CompactOptions(NamedTuple):
    """Where the cleaned partition goes, and what is said."""

    directory: Path | None
    dry_run: bool
    output: str
    quiet: bool
    cluster_metadata: Path | None


@click.command()
@paths_argument
@partition_options
@new_directory_option()
@click.option("--dry-run", is_flag=True, help="Only tell how much would go.")
@cleaner_options
@output_option("text", "json")
@quiet_option
@cluster_metadata_option
@reads_archives("paths")
@click.pass_context
@option_values(options=CompactOptions)
def compact(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    cleaner: CleanerOptions,
    options: CompactOptions,
) -> None:
    """Clean a partition like the log cleaner: keep the last record of each key, at its offset.

    \b
    Examples:
      kseg compact orders-0/ --dry-run
      kseg compact orders-0/ --to cleaned/orders-0
      kseg compact orders-0/ --delete-retention-ms 0 --now 2026-12-01T00:00 -o json --to cleaned/orders-0

    PATHS, as in `kseg ls`, have one partition; with --dry-run there may be several. Tombstones, transaction markers and
    empty batches stay as long as the cleaner keeps them. The active segment stays unchanged, and so does everything
    after the start of an open transaction. v0 and v1 entries keep their format, as with cleaners before 4.0. The exit
    status is 1 if records have no key: Kafka refuses these on compacted topics, and its cleaner drops them.
    """
    directory = options.directory
    if options.dry_run == (directory is not None):
        raise UsageError("give either --to for a new directory, or --dry-run")
    refuse = Refusals()
    if directory is None:
        partitions = list(find_partitions(paths, refuse, choice))
    else:
        partitions = [only_partition(paths, refuse, choice)]
        check_outside(directory, (*paths, options.cluster_metadata))
    settings = cleaner.settings()
    without_key, topic_ids = 0, TopicIds(options.cluster_metadata)
    for partition in partitions:
        new = nullcontext() if directory is None else new_directory(directory)
        with new as unfinished:
            topic_id = None if unfinished is None else topic_ids.lost_by(partition)
            done = compact_partition(partition, settings, unfinished, topic_id=topic_id)
        for note in compaction_notes(partition, done):
            talk(f"kseg: {note}")
        without_key += done.gone[Gone.NO_KEY]
        write_compacted(partition, done, options.output, quiet=options.quiet)
    flush_stdout()
    command.exit(max(refuse.status, int(without_key > 0)))
