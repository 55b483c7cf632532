"""`kseg plan-move`: which partitions to move between a broker's log directories, so that these are equally full."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.cluster.move_plan import MoveSettings, plan_moves
from kseg.commands.option_groups import partition_options
from kseg.commands.options import (
    RowOptions,
    color_option,
    csv_safe_option,
    int_number,
    option_values,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
)
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Refusals, note_unless
from kseg.output.rows import write_json
from kseg.output.streams import flush_stdout
from kseg.output.table import RowWriter
from kseg.store.location import is_remote
from kseg.text.transactions import REASSIGNMENT, plan_sum, write_plan
from kseg.tiered.places import url_of


class PlanMoveOptions(NamedTuple):
    """What is level, and where the metadata are."""

    within: int
    by_capacity: bool
    cluster_metadata: Path | None
    quiet: bool


@click.command("plan-move")
@paths_argument
@partition_options
@click.option(
    "--within",
    metavar="PERCENT",
    type=int_number(),
    default=10,
    show_default=True,
    help="Stop when no directory is fuller than the level by more.",
)
@click.option("--by-capacity", is_flag=True, help="Level the shares of the file systems that are used, not the bytes.")
@click.option(
    "--cluster-metadata",
    type=click.Path(path_type=Path),
    help="__cluster_metadata-0 or the directory that has it, if none of the log directories does.",
)
@output_option(REASSIGNMENT, "text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@click.pass_context
@option_values(options=PlanMoveOptions, rows=RowOptions)
def plan_move(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    options: PlanMoveOptions,
    rows: RowOptions,
) -> None:
    """Plan which partitions to move between a broker's log directories, so that these are equally full.

    \b
    Examples:
      kseg plan-move data1/ data2/ >moves.json
      kseg plan-move data1/ data2/ -o table
      kseg plan-move data1/ data2/ --topic 'ord*' --within 5 -o text

    PATHS are all log directories (log.dirs) of one broker, given as the broker has them, or a parent of them. The
    output is the file for `kafka-reassign-partitions.sh --reassignment-json-file FILE --execute`: each replica stays on
    its broker, and this broker's goes to another directory. Other forms of output show the directories before and
    after, and the moves. kseg itself moves nothing.

    Few large moves come first; sizes are those of the logs, as kafka-log-dirs.sh tells them, without
    directories that the broker is about to delete (-delete). With --topic and --partition, only these partitions are
    moved. Partitions that are moving already or being reassigned stay where they are, and nothing goes into a cordoned
    directory, nor more than its disk has room for.
    """
    for url in filter(is_remote, (url_of(str(path)) for path in (*paths, options.cluster_metadata or ""))):
        raise UsageError("is no directory of a broker, between which a plan moves partitions: give its log.dirs", url)
    refuse = Refusals()
    note = note_unless(quiet=options.quiet)
    settings = MoveSettings(options.within / 100, choice, options.by_capacity)
    plan = plan_moves(paths, settings, options.cluster_metadata, refuse)
    writer = RowWriter(rows.form())
    if rows.output == REASSIGNMENT:
        write_json(plan.reassignment())
    else:
        write_plan(plan, writer)
    flush_stdout()
    for text in (*plan.notes, plan_sum(plan)):
        note(text)
    command.exit(refuse.status)
