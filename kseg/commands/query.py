"""`kseg query`: SQL over logs, by DuckDB."""

from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.export_options import decoding_options
from kseg.commands.options import (
    RowOptions,
    color_option,
    csv_safe_option,
    option_values,
    output_option,
    quiet_option,
    raw_option,
)
from kseg.commands.partition_options import partition_options
from kseg.commands.query_options import QueryOptions, limits_of, queried_of, query_arguments, query_options
from kseg.commands.selection_options import selection_options
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.refusals import Refusals
from kseg.times import parse_zone


@click.command()
@query_arguments
@query_options
@partition_options
@selection_options("limit", "tail", "is_followed")
@decoding_options
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
@option_values(rows=RowOptions)
@option_values(options=QueryOptions)
def query(
    command: click.Context,
    sql: str | None,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    options: QueryOptions,
) -> None:
    """Query logs by SQL: a view for each topic, and tables of batches, segments, groups, transactions, findings.

    \b
    Examples:
      kseg query 'select key, count(*) n from orders group by key order by n desc limit 10' kafka-logs/
      kseg query "select count(*) from orders where timestamp > now() - interval 1 day" disk1 disk2 disk3
      kseg query 'select topic, sum(bytes) from segments group by all' -o csv kafka-logs/
      kseg query "from orders where \\"offset\\" = 203500" --value-decoder json -o json kafka-logs/
      kseg query "copy (from orders) to 'out/orders.parquet'" --files out kafka-logs/
      kseg query kafka-logs/ <report.sql

    PATHS are partition directories, log directories (such as all disks of a broker), or parents of these; by default
    the current directory. Without SQL there is a prompt, with completion; if standard input isn't a terminal, it has
    the SQL. `show tables` lists views and tables, `describe NAME` columns; docs/how-to/query.md describes them.

    Topics' views have the columns of `kseg export`. Only the partitions, offsets, times and columns that a query needs
    are read; --explain shows which. What is damaged is left out and said on stderr; the exit status is 1 then.

    DuckDB runs the SQL. It can't reach files or the network, nor load extensions; --files allows one directory.
    """
    queried, limits, refuse = queried_of(paths, choice, options), limits_of(paths, options), Refusals()
    from kseg.output.query import AnswerWriter
    from kseg.query.dialogue import Dialogue
    from kseg.query.query_session import open_session

    zone = parse_zone(options.selected.zone)
    writer = AnswerWriter(options.rows.form(zone))
    with open_session(queried, limits, refuse, zone) as session:
        dialogue = Dialogue(session, writer, quiet=options.quiet)
        if sql is None:
            dialogue.hold()
        elif options.explain:
            dialogue.explain(sql)
        else:
            dialogue.answer(sql)
    command.exit(max(refuse.status, dialogue.status))
