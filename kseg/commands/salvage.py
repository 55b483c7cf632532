"""`kseg salvage`: saves the intact batches of damaged partitions into a new directory."""

from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.new_directories import new_directory_of
from kseg.commands.options import (
    cluster_metadata_option,
    gentle_options,
    new_directory_option,
    paths_argument,
    progress_option,
    report_form_option,
)
from kseg.log.salvage.salvage_plan import find_replicas
from kseg.log.salvage.salvage_writer import salvage_partition
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.salvage import write_run, write_salvaged
from kseg.output.stdout import flush_stdout
from kseg.system.gentle import give_way
from kseg.views.topic_ids import TopicIds


@click.command()
@paths_argument
@new_directory_option("The new directory: it must not exist yet, or be empty.", form_option="--format")
@click.option(
    "--drop-unreadable",
    is_flag=True,
    help="Leave out batches whose CRC is right but whose records can't be read, where consumers would get stuck.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be saved; write nothing.")
@report_form_option("text", "json")
@gentle_options
@progress_option
@cluster_metadata_option
@reads_archives("paths")
@click.pass_context
def salvage(
    command: click.Context,
    paths: tuple[Path, ...],
    directory: Path | None,
    drop_unreadable: bool,
    dry_run: bool,
    form: str,
    keep_cache: bool,
    gentle: bool,
    progress: bool | None,
    cluster_metadata: Path | None,
) -> None:
    """Save every intact batch of damaged partitions into a new directory that a broker accepts.

    \b
    Examples:
      kseg salvage orders-0/ --dry-run
      kseg salvage orders-0/ -o saved
      kseg salvage orders-0/ --drop-unreadable -o saved
      kseg salvage broker1/orders-0 broker2/orders-0 broker3/orders-0 -o saved

    PATHS are partition directories, log directories or parents of these. If the same partition is there more
    than once, these are replicas: `salvage` combines what is intact in each. Offsets stay; indexes, leader epochs and
    producer snapshots are rebuilt, and partition.metadata too if __cluster_metadata has the topic's id. Each partition
    gets its own directory below DIRECTORY; batches whose offsets fit nowhere go to lost+found/ next to these. The exit
    status is 1 if something is lost, or if kept batches can't be read.

    Batches whose CRC is right, but whose records can't be read, are kept unchanged, since somebody may be able to read
    them one day. Consumers fail there until you move them past. --drop-unreadable leaves these batches out and counts
    them as lost.
    """
    target = new_directory_of(directory, dry_run=dry_run, beside=(*paths, cluster_metadata))
    if gentle:
        give_way()
    refuse = Refusals()
    replicas = find_replicas(paths, refuse)
    if refuse.status > 1 and not replicas:
        command.exit(refuse.status)
    topic_ids, is_whole = TopicIds(cluster_metadata), True
    with target as unfinished, ProgressBar(progress) as bar:
        if unfinished is not None:
            write_run(command.find_root().obj or (), form)
        for name, partitions in replicas.items():
            plan, written = salvage_partition(
                name,
                partitions,
                unfinished,
                keep_cache=keep_cache,
                drop_unreadable=drop_unreadable,
                topic_id=None if unfinished is None else topic_ids.lost_by(partitions[0]),
                on_read=bar.counting(name, sum(partition.size for partition in partitions)),
            )
            is_whole &= plan.is_whole
            write_salvaged(plan, written, form)
    flush_stdout()
    command.exit(max(refuse.status, int(not is_whole)))
