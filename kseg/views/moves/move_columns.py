"""The columns of a plan of moves, for JSON, CSV and tables."""

from kseg.output.row_writer import NOT_SHOWN, RowWriter, Section
from kseg.output.sizes import human_size
from kseg.views.column_kinds import column, number_column, numbers_text
from kseg.views.moves.move_plan import Fill, Move, MovePlan

FILLS: Section[Fill] = Section(
    "logDir",
    "Log directories",
    (
        column("path", "LOG DIRECTORY", lambda row: str(row.path)),
        number_column("partitions", "PARTITIONS", lambda row: row.partitions),
        column("before", "BEFORE", lambda row: row.before, lambda row: human_size(row.before)),
        column("after", "AFTER", lambda row: row.after, lambda row: human_size(row.after)),
        column("available", NOT_SHOWN, lambda row: row.available),
    ),
)
MOVES: Section[Move] = Section(
    "move",
    "Moves",
    (
        column("topic", "TOPIC", lambda row: row.partition.topic),
        number_column("partition", "PART", lambda row: row.partition.partition),
        column("size", "SIZE", lambda row: row.size, lambda row: human_size(row.size)),
        column(
            "replicas",
            "REPLICAS",
            lambda row: list(row.partition.replicas),
            lambda row: numbers_text(row.partition.replicas),
        ),
        column("from", "FROM", lambda row: str(row.source)),
        column("to", "TO", lambda row: str(row.target)),
    ),
)
REASSIGNMENT = "reassignment"
"""The form of output that Kafka's tool takes."""


def write_plan(plan: MovePlan, writer: RowWriter) -> None:
    """Writes a plan: the directories and the moves; in CSV the moves alone."""
    if writer.form.name != "csv":
        writer.write(FILLS, plan.fills)
    writer.write(MOVES, plan.moves)


def plan_sum(plan: MovePlan) -> str:
    """What the moves come to, in a line."""
    if not plan.moves:
        return "nothing to move"
    size = sum(move.size for move in plan.moves)
    count = f"{len(plan.moves)} {'partition' if len(plan.moves) == 1 else 'partitions'}"
    return f"{count} to move, {human_size(size)}: kafka-reassign-partitions.sh --reassignment-json-file FILE --execute"
