"""`kseg diff`: compares copies of partitions, disks or brokers."""

from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import (
    gentle_options,
    output_option,
    paths_argument,
    processes_beside_others,
    processes_option,
    progress_option,
    quiet_option,
)
from kseg.commands.partition_options import partition_options
from kseg.errors import KsegError
from kseg.log.diff.diff import diff_partitions
from kseg.log.diff.sides import find_copies
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.diff import DiffSummary, diff_object
from kseg.output.json_lines import write_json
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_stdout
from kseg.output.talk import note_unless


@click.command()
@paths_argument
@partition_options
@click.option(
    "--leader",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Which of the PATHS leads: where the others would truncate, and what they lose by that.",
)
@output_option("json")
@processes_option
@gentle_options
@quiet_option
@progress_option
@reads_archives("paths", "leader")
@click.pass_context
def diff(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    leader: Path | None,
    output: str,
    processes: int | None,
    keep_cache: bool,
    gentle: bool,
    quiet: bool,
    progress: bool | None,
) -> None:
    """Compare copies of partitions: replicas, backups, disks, whole brokers.

    \b
    Examples:
      kseg diff broker1/orders-0 broker2/orders-0

    PATHS are two or more sides.
    """
    processes = processes_beside_others(processes, gentle=gentle)
    refuse, note = Refusals(), note_unless(quiet=quiet)
    found = find_copies(paths, refuse, note, choice, leader=leader)
    summary = DiffSummary()
    with ProgressBar(False if quiet else progress) as bar:
        on_read = bar.counting("diff", sum(copies.size for copies in found))
        for item in diff_partitions(found, keep_cache=keep_cache, processes=processes, on_read=on_read):
            if isinstance(item, bytes):
                write_stdout(item)
            elif isinstance(item, KsegError):
                refuse(item)
            else:
                summary.add(item)
                write_json(diff_object(item))
    write_json(summary.as_object())
    flush_stdout()
    command.exit(max(refuse.status, int(not summary.is_identical)))
