"""The arguments and options of `kseg query`, and what they ask for."""

import os
import sys
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import click

from kseg.archive.paths import leads_inside, matching_paths
from kseg.archive.untouched import check_outside
from kseg.commands.export_options import ColumnOptions
from kseg.commands.options import Command, RowOptions
from kseg.commands.parameters import Size
from kseg.commands.requested_export import read_options_of
from kseg.commands.selection_options import GivenSelection
from kseg.errors import OpenError, UsageError
from kseg.log.partition.partition_choice import PartitionChoice

if TYPE_CHECKING:
    from kseg.query.database import QueryLimits
    from kseg.query.query_session import Queried


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
    sql = sys.stdin.read()
    if not sql.strip():
        raise UsageError("there is no SQL: give it before the paths, or on standard input")
    return sql, arguments


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
    rows: RowOptions


def query_options(command: Command) -> Command:
    """`--explain` … `--temporary`."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def queried_of(paths: tuple[Path, ...], choice: PartitionChoice, options: QueryOptions) -> "Queried":
    """What the options ask to be queried. Raises UsageError, OpenError for what can't be, UsageError without DuckDB."""
    from kseg.query.libraries import require_libraries

    require_libraries()
    from kseg.export.settings import LogSelection, OffsetRange
    from kseg.query.query_session import Queried

    selected = options.selected.selection()
    offsets = OffsetRange(selected.from_offset, selected.to_offset)
    selection = LogSelection(choice, offsets, first_time=selected.from_time)
    return Queried(paths, choice, selection, read_options_of(selected, options.columns))


def limits_of(paths: tuple[Path, ...], options: QueryOptions) -> "QueryLimits":
    """What the query may take. Raises UsageError if its files would lie within what is read."""
    from kseg.query.database import QueryLimits

    if options.files is not None:
        check_outside(options.files, paths)
    return QueryLimits(options.memory, options.temporary, options.files)
