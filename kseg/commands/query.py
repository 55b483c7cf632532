"""`kseg query`: answers SQL over logs, by DuckDB."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.commands.export_options import ColumnOptions, read_options_of
from kseg.commands.inputs import Given
from kseg.commands.options.command import GivenSelection, RowOptions, command
from kseg.errors import OpenError, UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk
from kseg.store.location import leads_inside, matching_paths
from kseg.store.target import check_outside
from kseg.times import parse_zone

if TYPE_CHECKING:
    from kseg.query.database import QueryLimits
    from kseg.query.session import QuerySources


LARGEST_SQL = 16 << 20
"""Most bytes of SQL on standard input."""


def sql_and_paths(given: Given) -> Given:
    """Split arguments into SQL, None for the prompt, and paths, by default the current directory.

    If the first argument isn't SQL, standard input has it, unless that is a terminal. Raises OpenError if the first
    argument looks like the path of a missing file, UsageError if there is no SQL.
    """
    sql, texts = None, given["paths"]
    if texts and not _is_path(texts[0]):
        sql, *texts = texts
        if sql.strip() and not set(sql) & set(" \n\t;("):
            raise OpenError("no such file or directory; SQL goes first: kseg query 'SELECT …' PATH", sql)
    elif sys.stdin is not None and not sys.stdin.isatty():
        sql = _standard_input()
    paths = tuple(Path(path) for text in texts for path in matching_paths(text))
    return {**given, "sql": sql, "paths": paths or (Path(),)}


def _standard_input() -> str:
    content = sys.stdin.buffer.read(LARGEST_SQL + 1)
    if len(content) > LARGEST_SQL:
        raise UsageError(f"the SQL on standard input has more than {LARGEST_SQL} bytes; split it")
    sql = content.decode(errors="surrogateescape")
    if not sql.strip():
        raise UsageError("SQL is missing; specify it before the paths, or on standard input")
    return sql


def _is_path(text: str) -> bool:
    return os.path.lexists(text) or leads_inside(text) or matching_paths(text) != [text]


class QueryOptions(NamedTuple):
    """The queried data, the limits of a query, and the form of the answer."""

    sql: str | None
    paths: tuple[Path, ...]
    choice: PartitionChoice
    dry_run: bool
    quick: bool
    allow_files: Path | None
    max_memory: int | None
    max_temp: int
    selected: GivenSelection
    columns: ColumnOptions
    talk: Talk
    verbose: bool
    rows: RowOptions


def queried_of(options: QueryOptions) -> "QuerySources":
    """Return the data to query.

    Raises UsageError or OpenError for data that can't be queried, UsageError without DuckDB.
    """
    from kseg.query import require_libraries

    require_libraries()
    from kseg.arrow import leave_out_pandas

    leave_out_pandas()
    from kseg.export.settings import LogSelection, OffsetRange
    from kseg.query.session import QuerySources

    selected = options.selected.selection()
    offsets = OffsetRange(selected.from_offset, selected.to_offset)
    selection = LogSelection(options.choice, offsets, first_time=selected.from_time)
    return QuerySources(
        options.paths,
        options.choice,
        selection,
        read_options_of(selected, options.columns),
        options.verbose,
        options.quick,
    )


def limits_of(options: QueryOptions) -> "QueryLimits":
    """Return the limits of a query. Raises UsageError if its files would be inside an input."""
    from kseg.query.database import QueryLimits

    if options.allow_files is not None:
        check_outside(options.allow_files, options.paths)
    return QueryLimits(options.max_memory, options.max_temp, options.allow_files)


@command(QueryOptions, prepare=sql_and_paths)
def query(options: QueryOptions) -> None:
    """Query logs with SQL.

    Use `query` to count, group and join records. Each topic is a view; batches, segments, groups, transactions and
    findings are tables. DuckDB runs the SQL, without access to files or the network.

    \b
    Examples:
      kseg query 'select key, count(*) n from orders group by key order by n desc limit 10' kafka-logs/
      kseg query "select count(*) from orders where timestamp > now() - interval 1 day" disk1 disk2 disk3
      kseg query 'select topic, sum(bytes) from segments group by all' -o csv kafka-logs/
      kseg query "from orders where \\"offset\\" = 203500" --value-decoder json -o json kafka-logs/
      kseg query "copy (from orders) to 'out/orders.parquet'" --allow-files out kafka-logs/
      kseg query kafka-logs/ <report.sql

    PATHS are partition directories, log directories (such as all disks of a broker), or parents of these; by default
    the current directory. Without SQL, `query` opens a prompt with completion or, if standard input isn't a terminal,
    reads the SQL there. `show tables` lists views and tables, `describe NAME` columns; see docs/how-to/query.md.

    Topics' views have the columns of `kseg export`. kseg reads only the partitions, offsets, times and columns that a
    query needs; --dry-run shows them. It omits damaged parts and reports them on stderr; the exit status is then
    1.

    --quick takes counts and offsets from batch headers, without reading the rest. It doesn't check CRCs, so it counts
    the records of a damaged batch.

    --allow-files allows COPY … TO and read_csv in one directory. DuckDB can't load extensions.
    """
    queried, limits, talk = queried_of(options), limits_of(options), options.talk
    from kseg.query.prompt import Dialogue
    from kseg.query.session import open_session
    from kseg.text.query import AnswerWriter
    from kseg.text.selected import asked_text

    zone = parse_zone(options.selected.zone)
    writer = AnswerWriter(options.rows.form(zone))
    with open_session(queried, limits, talk.refuse, zone) as session:
        dialogue = Dialogue(session, writer, quiet=talk.is_quiet)
        if options.sql is None:
            dialogue.hold()
        elif options.dry_run:
            dialogue.explain(options.sql)
        else:
            dialogue.answer(options.sql)
            if not writer.total:
                asked = asked_text(options.selected.selection(), zone)
                of_selected = f" of records that match {asked}" if asked else ""
                talk.note(f"no rows{of_selected}; --dry-run shows where the query looks")
    talk.end_with(dialogue.status)
