"""`kseg query`: answers SQL over logs, by DuckDB."""

import os
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from kseg.commands.export_options import ColumnOptions, decoding_options, read_options_of
from kseg.commands.inputs import reads_archives
from kseg.commands.option_groups import GivenSelection, partition_options, selection_options
from kseg.commands.options import (
    Command,
    RowOptions,
    Size,
    color_option,
    csv_safe_option,
    option_values,
    output_option,
    quiet_option,
    raw_option,
    verbose_copies_option,
)
from kseg.errors import OpenError, UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Refusals
from kseg.store.location import leads_inside, matching_paths
from kseg.store.target import check_outside
from kseg.times import parse_zone

if TYPE_CHECKING:
    from kseg.query.database import QueryLimits
    from kseg.query.session import Queried

LARGEST_SQL = 16 << 20
"""Bytes of SQL on standard input."""


def query_arguments(command: Command) -> Command:
    """`[SQL] [PATHS]…`: the command gets `sql`, None for the prompt, and `paths`, by default the current directory."""

    @click.argument("arguments", nargs=-1, type=click.Path(), metavar="[SQL] [PATHS]...")
    @wraps(command)
    def parted(*given: Any, arguments: tuple[str, ...], **options: Any) -> Any:
        sql, texts = sql_and_paths(arguments)
        paths = tuple(Path(path) for text in texts for path in matching_paths(text))
        return command(*given, sql=sql, paths=paths or (Path(),), **options)

    return cast(Command, parted)


def sql_and_paths(arguments: tuple[str, ...]) -> tuple[str | None, tuple[str, ...]]:
    """The SQL, and the other arguments. Without SQL as the first one, standard input has it, unless that is a terminal.

    Raises OpenError if the first argument seems to be a path that isn't there, UsageError if there is no SQL.
    """
    if arguments and not _is_path(arguments[0]):
        sql, *others = arguments
        if not sql.strip() or set(sql) & set(" \n\t;("):
            return sql, tuple(others)
        raise OpenError("no such file or directory; SQL goes first: kseg query 'SELECT …' PATH", sql)
    if sys.stdin is None or sys.stdin.isatty():
        return None, arguments
    return _standard_input(), arguments


def _standard_input() -> str:
    content = sys.stdin.buffer.read(LARGEST_SQL + 1)
    if len(content) > LARGEST_SQL:
        raise UsageError(f"the SQL on standard input has more than {LARGEST_SQL} bytes: split it")
    sql = content.decode(errors="surrogateescape")
    if not sql.strip():
        raise UsageError("there is no SQL: give it before the paths, or on standard input")
    return sql


def _is_path(text: str) -> bool:
    return os.path.lexists(text) or leads_inside(text) or matching_paths(text) != [text]


_OPTIONS = (
    click.option("--explain", is_flag=True, help="Print what a query would read, and read no log."),
    click.option(
        "--files",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="Let SQL read and write files in this directory (COPY … TO, read_csv); by default nowhere.",
    ),
    click.option("--memory", type=Size(), metavar="SIZE", help="The most memory for DuckDB.  [default: half of all]"),
    click.option(
        "--temporary",
        type=Size(0),
        default="10GiB",
        show_default=True,
        help="The most bytes of temporary files in TMPDIR, for what is larger than that.",
    ),
)


class QueryOptions(NamedTuple):
    """What is queried, what the query may take, and how it is answered."""

    explain: bool
    files: Path | None
    memory: int | None
    temporary: int
    selected: GivenSelection
    columns: ColumnOptions
    quiet: bool
    is_verbose: bool
    rows: RowOptions


def query_options(command: Command) -> Command:
    """`--explain` … `--temporary`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def queried_of(paths: tuple[Path, ...], choice: PartitionChoice, options: QueryOptions) -> "Queried":
    """What the options ask to be queried. Raises UsageError, OpenError for what can't be, UsageError without DuckDB."""
    from kseg.query import require_libraries

    require_libraries()
    from kseg.export.settings import LogSelection, OffsetRange
    from kseg.query.session import Queried

    selected = options.selected.selection()
    offsets = OffsetRange(selected.from_offset, selected.to_offset)
    selection = LogSelection(choice, offsets, first_time=selected.from_time)
    return Queried(paths, choice, selection, read_options_of(selected, options.columns), options.is_verbose)


def limits_of(paths: tuple[Path, ...], options: QueryOptions) -> "QueryLimits":
    """What the query may take. Raises UsageError if its files would lie within what is read."""
    from kseg.query.database import QueryLimits

    if options.files is not None:
        check_outside(options.files, paths)
    return QueryLimits(options.memory, options.temporary, options.files)


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
@verbose_copies_option
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
    from kseg.query.prompt import Dialogue
    from kseg.query.session import open_session
    from kseg.text.query import AnswerWriter

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
