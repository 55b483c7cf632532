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

    The planned moves of partitions make the directories equally full.

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
    paths, rows, talk = options.paths, options.rows, options.talk
    for url in filter(is_remote, (url_of(str(path)) for path in (*paths, options.cluster_metadata or ""))):
        raise UsageError("is no directory of a broker, between which a plan moves partitions: give its log.dirs", url)
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
