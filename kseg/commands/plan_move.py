"""`kseg plan-move`: plans moves of partitions between a broker's log directories to level their sizes."""

from pathlib import Path
from typing import NamedTuple

from kseg.cluster.move_plan import MoveSettings, plan_moves
from kseg.commands.options.command import RowOptions, command
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.rows import write_json
from kseg.output.streams import flush_stdout
from kseg.store.location import is_remote
from kseg.text.transactions import REASSIGNMENT, plan_sum, write_plan
from kseg.tiered.places import url_of


class PlanMoveOptions(NamedTuple):
    """The levelled measure, and the place of the metadata."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    within: int
    by_capacity: bool
    cluster_metadata: Path | None
    talk: Talk
    rows: RowOptions


@command(PlanMoveOptions)
def plan_move(options: PlanMoveOptions) -> None:
    """Plan moves between a broker's log directories.

    Use `plan-move` to make a broker's log directories equally full. It prints a plan for Kafka's tool; kseg itself
    moves nothing.

    \b
    Examples:
      kseg plan-move data1/ data2/ >moves.json
      kseg plan-move data1/ data2/ -o table
      kseg plan-move data1/ data2/ --topic 'ord*' --within 5 -o text

    PATHS are all log directories (log.dirs) of one broker, as the broker has them, or a parent of them. The output is
    the file for `kafka-reassign-partitions.sh --reassignment-json-file FILE --execute`: each replica stays on its
    broker, and this broker's replica goes to another directory. Other output formats show the moves, and the
    directories before and after. --cluster-metadata matters only if no log directory has the metadata.

    Few large moves come first. Sizes are those of the logs, as in kafka-log-dirs.sh, without directories that the
    broker is about to delete (-delete). With --topic and --partition, only these partitions move. Partitions that are
    moving already or being reassigned stay in place. Nothing goes into a cordoned directory, nor more than its disk has
    room for.
    """
    paths, rows, talk = options.paths, options.rows, options.talk
    for url in filter(is_remote, (url_of(str(path)) for path in (*paths, options.cluster_metadata or ""))):
        raise UsageError("isn't a directory of a broker; specify the broker's log.dirs", url)
    settings = MoveSettings(options.within / 100, options.choice, options.by_capacity)
    plan = plan_moves(paths, settings, options.cluster_metadata, talk.refuse)
    writer = RowWriter(rows.form())
    if rows.output == REASSIGNMENT:
        write_json(plan.reassignment())
    else:
        write_plan(plan, writer)
    flush_stdout()
    for text in (*plan.notes, plan_sum(plan)):
        talk.note(text)
