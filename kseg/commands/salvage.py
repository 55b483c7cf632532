"""`kseg salvage`: the intact batches of damaged partitions, in a new directory."""

import shlex
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import cluster_metadata_option, gentle_options, paths_argument, progress_option
from kseg.commands.parameters import NewDirectory
from kseg.errors import UsageError
from kseg.log.salvage.salvage import Salvage, find_replicas, plan_salvage
from kseg.log.salvage.writer import Written, open_transactions, salvage_partition
from kseg.output.json_lines import write_json
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.salvage import salvage_lines, salvage_object
from kseg.output.stdout import flush_stdout, write_line
from kseg.system.gentle import give_way
from kseg.system.new_directory import check_absent, new_directory
from kseg.times import iso_time
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
@click.option(
    "--drop-unreadable",
    is_flag=True,
    help="Leave out batches whose CRC holds but whose records can't be read: consumers stick there else.",
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
    drop_unreadable: bool,
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
      kseg salvage orders-0/ --drop-unreadable -o saved
      kseg salvage broker1/orders-0 broker2/orders-0 broker3/orders-0 -o saved

    PATHS are partition directories, log directories or parents of these. The same partition found more than once is
    taken for replicas: the best of each is put together. Offsets stay as they are; indexes, leader epochs and producer
    snapshots are rebuilt, partition.metadata too if __cluster_metadata tells the topic's id. Each partition gets a
    directory of its own below DIRECTORY; batches whose offsets fit nowhere go to lost+found/ beside them. Ends with 1
    where something is lost, or stays that can't be read.

    Batches whose CRC holds, but whose records can't be read, are kept as they are, since somebody may read them one
    day: consumers fail there until they are moved past. With --drop-unreadable they are left out, and count as lost.
    """
    if directory is None and not dry_run:
        raise UsageError("give -o DIRECTORY, or --dry-run")
    if directory is not None:
        check_absent(directory)
        check_outside(directory, (*paths, cluster_metadata))
    if gentle:
        give_way()
    refuse = Refusals()
    replicas = find_replicas(paths, refuse)
    if refuse.status > 1 and not replicas:
        command.exit(refuse.status)
    is_whole, topic_ids = True, TopicIds(cluster_metadata)
    new = nullcontext() if dry_run or directory is None else new_directory(directory)
    with new as target, ProgressBar(progress) as bar:
        if target is not None:
            _report_run(command.find_root().obj or (), form)
        for name, partitions in replicas.items():
            on_read = bar.counting(name, sum(partition.size for partition in partitions))
            if target is None:
                plan = plan_salvage(
                    name, partitions, keep_cache=keep_cache, drop_unreadable=drop_unreadable, on_read=on_read
                )
                written = Written((), open_transactions(plan))
            else:
                topic_id = topic_ids.lost_by(partitions[0])
                plan, written = salvage_partition(
                    name,
                    partitions,
                    target,
                    keep_cache=keep_cache,
                    drop_unreadable=drop_unreadable,
                    topic_id=topic_id,
                    on_read=on_read,
                )
            is_whole &= plan.is_whole
            _report(plan, written, form)
    flush_stdout()
    command.exit(max(refuse.status, int(not is_whole)))


def _report_run(arguments: Sequence[str], form: str) -> None:
    """Which kseg made what follows, when, and by which command."""
    from importlib.metadata import version

    run = {"type": "run", "version": version("kseg"), "time": iso_time(time.time_ns() // 1_000_000)}
    if form == "json":
        write_json({**run, "command": ["kseg", *arguments]})
    else:
        write_line(f"kseg {run['version']}, {run['time']}: kseg {shlex.join(arguments)}")


def _report(plan: Salvage, written: Written, form: str) -> None:
    if form == "json":
        write_json(salvage_object(plan, written))
        return
    for line in salvage_lines(plan, written):
        write_line(line)
