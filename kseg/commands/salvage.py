"""`kseg salvage`: the intact batches of damaged partitions, in a new directory."""

from contextlib import nullcontext
from pathlib import Path

import click

from kseg.commands.options import (
    cluster_metadata_option,
    gentle_options,
    paths_argument,
    progress_option,
    reads_archives,
)
from kseg.commands.parameters import NewDirectory
from kseg.errors import UsageError
from kseg.gentle import give_way
from kseg.log.salvage import OpenTransaction, Salvage, find_replicas, plan_salvage, write_salvage
from kseg.new_directory import check_absent, new_directory
from kseg.output.json_lines import write_json
from kseg.output.progress import ProgressBar
from kseg.output.salvage import salvage_lines, salvage_object
from kseg.output.stdout import flush_stdout, write_line
from kseg.untouched import check_outside
from kseg.views.topic_ids import TopicIds


@click.command()
@paths_argument
@click.option(
    "-o",
    "--output",
    "directory",
    type=NewDirectory("--format"),
    help="The new directory: not there yet, or empty.",
)
@click.option("--dry-run", is_flag=True, help="Only say what would be saved; write nothing.")
@click.option(
    "--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True, help="Of the report."
)
@gentle_options
@progress_option
@cluster_metadata_option
@reads_archives("paths")
@click.pass_context
def salvage(
    command: click.Context,
    paths: tuple[Path, ...],
    directory: Path | None,
    dry_run: bool,
    form: str,
    keep_cache: bool,
    gentle: bool,
    progress: bool | None,
    cluster_metadata: Path | None,
) -> None:
    """Save every intact batch of damaged partitions into a new directory that a broker takes.

    \b
    Examples:
      kseg salvage orders-0/ --dry-run
      kseg salvage orders-0/ -o saved
      kseg salvage broker1/orders-0 broker2/orders-0 broker3/orders-0 -o saved

    PATHS are partition directories, log directories or parents of these. The same partition found more than once is
    taken for replicas: the best of each is put together. Offsets stay as they are; indexes, leader epochs and producer
    snapshots are made anew, partition.metadata too if __cluster_metadata tells the topic's id. Each partition gets a
    directory of its own below DIRECTORY; batches whose offsets fit nowhere go to lost+found/ beside them. Ends with 1
    where something is lost.
    """
    if directory is None and not dry_run:
        raise UsageError("give -o DIRECTORY, or --dry-run")
    if directory is not None:
        check_absent(directory)
        check_outside(directory, (*paths, cluster_metadata))
    if gentle:
        give_way()
    is_whole, topic_ids = True, TopicIds(cluster_metadata)
    new = nullcontext() if dry_run or directory is None else new_directory(directory)
    with new as target, ProgressBar(progress) as bar:
        for name, partitions in find_replicas(paths).items():
            on_read = bar.counting(name, sum(partition.size for partition in partitions))
            plan = plan_salvage(name, partitions, keep_cache=keep_cache, on_read=on_read)
            is_whole &= plan.is_whole
            transactions: tuple[OpenTransaction, ...] = ()
            if target is not None:
                topic_id = topic_ids.lost_by(partitions[0])
                transactions = write_salvage(plan, target, keep_cache=keep_cache, topic_id=topic_id)
            _report(plan, transactions, form)
    flush_stdout()
    command.exit(int(not is_whole))


def _report(plan: Salvage, transactions: tuple[OpenTransaction, ...], form: str) -> None:
    if form == "json":
        write_json(salvage_object(plan, transactions))
        return
    for line in salvage_lines(plan, transactions):
        write_line(line)
