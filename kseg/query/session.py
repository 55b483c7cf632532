"""A session of queries: views over directories, columns, and answers to SQL."""

import re
from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from kseg.cluster.copies import Copies, copies_of, find_replicas, require_replicas
from kseg.cluster.directories import Refuse
from kseg.cluster.taken import taken_of
from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.plan import Splitting, plan_orders
from kseg.export.settings import DecodedAs, LogSelection, ReadOptions
from kseg.export.write.typed_plan import with_typed_columns
from kseg.log.selection import EVERY_PARTITION, PartitionChoice, numbers_by_topic
from kseg.query.database import (
    DisorderedError,
    DuckdbSource,
    QueryLimits,
    QueryLog,
    condition_text,
    identifier,
    lock,
    new_database,
)
from kseg.query.record_scan import RecordScan, RecordTable, RowTable
from kseg.query.side_tables import INTERNAL_TOPICS, QueriedDirectories, tables_of
from kseg.system.new_directory import scratch_directory
from kseg.system.placed_path import as_given
from kseg.system.signals import Uninterrupted
from kseg.text.query import Scan

ALL_RECORDS = "records"
_WHOLE = Splitting(1 << 62, whole_partitions=True)


@dataclass(frozen=True, slots=True)
class RecordViews:
    """The content of the views. copies: the partitions; selection, read: the records, and their decoders.

    is_quick: whether CRCs stay unchecked where headers suffice.
    """

    copies: Copies
    selection: LogSelection
    read: ReadOptions
    is_quick: bool = False

    def topics(self) -> list[str]:
        """Return the topics, sorted."""
        return sorted({topic for topic, _ in self.copies})

    def all_records(self) -> RecordTable:
        """Return the records of all topics with their batches' fields; decoded columns are text there."""
        decode = replace(self.read.decode, decoded_as=DecodedAs.TEXT)
        read = replace(self.read, batch_columns=True, decode=decode)
        return RecordTable(ALL_RECORDS, self.copies, self.selection, read, is_quick=self.is_quick)

    def of_topic(self, topic: str) -> RecordTable:
        """Return the records of a topic with the columns of an export.

        For internal topics, keys and values are also structs.
        """
        copies = {key: known for key, known in self.copies.items() if key[0] == topic}
        internal = INTERNAL_TOPICS.get(topic)
        if internal is not None and not self.read.decode.fields():
            added = internal.fields(), internal.add_columns
            return RecordTable(topic, copies, self.selection, self.read, *added, is_quick=self.is_quick)
        read = self.read
        if read.decode.typed_parts():
            orders = plan_orders(copies, self.selection, _WHOLE)
            read = with_typed_columns(read, None, [topic], orders)
        return RecordTable(topic, copies, self.selection, read, is_quick=self.is_quick)


def view_names(topics: Sequence[str], tables: Collection[str], schema: str, note: Callable[[str], None]) -> list[str]:
    """Return the topics whose views get their names; SQL doesn't distinguish names by case.

    tables: those of `schema`, which a topic of the same name hides.
    """
    taken: dict[str, str] = {}
    for topic in topics:
        taken.setdefault(topic.lower(), topic)
    hidden = {table: f"{schema}.{table}" for table in tables if table in taken}
    for table, full_name in hidden.items():
        note(f"{taken[table]} is the topic; use {full_name} for kseg's table of that name")
    for topic in topics:
        if (first := taken[topic.lower()]) != topic:
            records = hidden.get(ALL_RECORDS, ALL_RECORDS)
            note(f"{topic} has no view, because {first} has the same name; query {records} where topic = '{topic}'")
    return list(taken.values())


SCHEMA = "kseg"
"""The schema of other tables than topics; without it, a topic of the same name takes precedence."""
ROWS = 1 << 12
"""Rows of an answer that are passed on at once."""
_INTERRUPTED = "Query interrupted"
_AGAIN = 0.05
"""Seconds between checks for Ctrl-C, and between interrupts of DuckDB while it continues."""
_ADVICE = {
    "'length(BLOB)'": "use octet_length(…) to count the bytes of a BLOB",
    "because schema": 'quote a topic whose name has dots: from "orders.v1"',
    "file system operations are disabled": "--allow-files DIR lets SQL read and write in one directory",
    "'max_temp_directory_size'": "raise --max-temp or --max-memory",
}
"""Advice by words of DuckDB's own messages, which name locked settings."""
_PLAIN = re.compile("[a-z_][a-z0-9_]*", re.IGNORECASE)
_WORDS = """
    SELECT view_name, true FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT DISTINCT column_name, true FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT upper(keyword_name), false FROM duckdb_keywords()
    UNION ALL SELECT DISTINCT function_name, false FROM duckdb_functions() WHERE function_name ~ '[a-z]'
"""


@dataclass(frozen=True, slots=True)
class QuerySources:
    """The data of a session. paths: local directories; choice: the partitions in them.

    selection, read: the records, and their decoders, as for an export. is_verbose: names the chosen copy of each
    partition. is_quick: whether CRCs stay unchecked where headers suffice.
    """

    paths: tuple[Path, ...]
    choice: PartitionChoice = EVERY_PARTITION
    selection: LogSelection = field(default_factory=LogSelection)
    read: ReadOptions = field(default_factory=ReadOptions)
    is_verbose: bool = False
    is_quick: bool = False


@dataclass(slots=True)
class QueryAnswer:
    """An answer: its columns, and its rows, which can be read once. Close it to stop early."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    close: Callable[[], None]


class QuerySession:
    """Views over directories, and the events of their queries: `log`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, log: QueryLog) -> None:
        """Take the database with its views; `open_session` makes both."""
        self.connection = connection
        self.log = log
        self._pool = ThreadPoolExecutor(1, "kseg-query")

    def statements(self, sql: str) -> list[str]:
        """Return the statements of a text. Raises UsageError if it isn't SQL."""
        return [statement.query.strip() for statement in self._parse(sql)]

    def _parse(self, sql: str) -> list[duckdb.Statement]:
        try:
            sql.encode()
            return self.connection.extract_statements(sql)
        except UnicodeEncodeError as error:
            raise UsageError("the SQL isn't UTF-8; save the file as UTF-8") from error
        except duckdb.Error as error:
            raise UsageError(one_line(error)) from error

    def words(self) -> list[str]:
        """Return a prompt's completions: names of views, tables and columns as SQL identifiers, then SQL's keywords."""
        found = self.connection.execute(_WORDS).fetchall()
        return list(
            dict.fromkeys(
                identifier(word) if is_name and not _PLAIN.fullmatch(word) else word for word, is_name in found
            )
        )

    def answers(self, sql: str) -> Iterator[QueryAnswer]:
        """Yield the answers to the statements of a text; read each before you request the next.

        Raises UsageError for invalid SQL, and for statements that fail.
        """
        statements = self.statements(sql)
        if not statements:
            raise UsageError("it contains no SQL")
        for statement in statements:
            yield self._answer(statement)

    def scans(self, sql: str) -> list[Scan]:
        """Return the reads that a query would make. Raises UsageError for other statements: they would be executed."""
        kinds = (
            {statement.type for statement in self.connection.extract_statements(sql)} if self.statements(sql) else ()
        )
        if any(kind != duckdb.StatementType.SELECT for kind in kinds):
            raise UsageError("--dry-run accepts only queries (SELECT …): other statements change something")
        self.log.is_dry, self.log.scans = True, []
        try:
            for answer in self.answers(sql):
                for _ in answer.batches:
                    pass
        finally:
            self.log.is_dry = False
        return self.log.scans

    def _answer(self, statement: str) -> QueryAnswer:
        batches = self._batches(statement)
        return QueryAnswer(next(batches), batches, batches.close)

    def _batches(self, statement: str) -> Generator[Any, None, None]:
        """Yield the schema, then the rows; restart if a partition must be read in another way."""
        is_begun = has_given = False
        while True:
            self.log.failure = None
            try:
                with self._reader(statement) as reader:
                    if not is_begun:
                        is_begun = True
                        yield reader.schema
                    while (batch := self._interruptible(partial(next, reader, None))) is not None:
                        has_given = True
                        yield batch
                return
            except DisorderedError as error:
                is_known = error.key in self.log.disordered
                self.log.disordered.add(error.key)
                if has_given or is_known:
                    raise

    def _interruptible(self, work: Callable[[], Any]) -> Any:
        """Run a DuckDB query in a separate thread, because Ctrl-C couldn't interrupt it otherwise."""
        coming: Future[Any] | None = None
        try:
            with Uninterrupted():  # or work might begin unnoticed
                coming = self._pool.submit(work)
            while wait([coming], _AGAIN).not_done:
                pass  # a signal just before an endless wait is seen only afterwards
            return coming.result()
        except KeyboardInterrupt:
            while coming is not None and wait([coming], _AGAIN).not_done:  # it may not have begun when interrupted
                self.connection.interrupt()
            raise

    @contextmanager
    def _reader(self, statement: str) -> Iterator[pa.RecordBatchReader]:
        """Yield the answer as a stream, and close it at the end; convert DuckDB's errors."""
        try:
            made = self._interruptible(lambda: self.connection.sql(statement).to_arrow_reader(ROWS))
            with closing(made) as reader:
                yield reader
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._convert_error(error) from error

    def _convert_error(self, error: Exception) -> BaseException:
        failure = self.log.failure
        if isinstance(error, KsegError):
            return error
        if _INTERRUPTED in str(error):
            return KeyboardInterrupt()
        return failure if isinstance(failure, KsegError) else UsageError(one_line(failure or error))


@contextmanager
def open_session(
    queried: QuerySources, limits: QueryLimits, refuse: Refuse, zone: tzinfo = UTC
) -> Iterator[QuerySession]:
    """Yield a session, close it and remove its temporary files; arguments and errors as in `new_session`."""
    with scratch_directory() as scratch:
        session = new_session(queried, limits, scratch, QueryLog(refuse), zone)
        with closing(session.connection):
            yield session


def new_session(
    queried: QuerySources, limits: QueryLimits, scratch: Path, log: QueryLog, zone: tzinfo = UTC
) -> QuerySession:
    """Return the views over some directories, as currently listed.

    Args:
        queried: the content of the views.
        limits: of queries.
        scratch: a directory for temporary files.
        log: receives events.
        zone: of times in SQL.

    Raises:
        UsageError: a decoder is missing, or the choice matches nothing.
        OpenError: there is nothing to query.
    """
    session = QuerySession(new_database(limits, scratch, zone), log)
    create_views(session, queried)
    lock(session.connection, limits)
    return session


def create_views(session: QuerySession, queried: QuerySources) -> None:
    """List the directories, and create the views over them. Raises the errors of `open_session`."""
    connection, log = session.connection, session.log
    views = _record_views(queried, log)
    _execute(connection, f"CREATE SCHEMA {SCHEMA}", f"USE {SCHEMA}")
    _create_record_view(session, views.all_records())
    tables = tables_of(QueriedDirectories(queried.paths, queried.choice, log, queried.is_quick))
    for table in tables:
        _create_row_view(session, table)
    _execute(connection, "CREATE MACRO as_text(bytes) AS decode(bytes, 'replace')", "USE main")
    names = (ALL_RECORDS, *(table.name for table in tables))
    for topic in view_names(views.topics(), names, SCHEMA, log.note):
        _create_record_view(session, views.of_topic(topic))
    _execute(connection, f"SET search_path = 'main,{SCHEMA}'")


def _execute(connection: duckdb.DuckDBPyConnection, *statements: str) -> None:
    for statement in statements:
        connection.execute(statement)


def _record_views(queried: QuerySources, log: QueryLog) -> RecordViews:
    return RecordViews(_chosen_copies(queried, log), queried.selection, queried.read, queried.is_quick)


def _chosen_copies(queried: QuerySources, log: QueryLog) -> Copies:
    refused: list[OpenError] = []
    replicas = find_replicas([*map(as_given, queried.paths)], refused.append)
    copies = copies_of(replicas)
    if not copies and refused:
        raise refused[0]
    for error in refused:
        log.refuse_once(error)
    require_replicas(copies, [*map(as_given, queried.paths)])
    chosen = {key: known for key, known in copies.items() if queried.choice.takes(*key)}
    queried.choice.require_among(numbers_by_topic(copies))
    taken = taken_of(each for each in replicas if queried.choice.takes(each.topic, each.partition))
    for line in taken.sentences(verbose=queried.is_verbose):
        log.note(line)
    return chosen


def _create_record_view(session: QuerySession, table: RecordTable) -> None:
    log = session.log  # views hold only what they need, so that nothing but the session keeps the connection

    def open_scan(columns: Sequence[str], condition: Any) -> Iterator[pa.RecordBatch]:
        scan = RecordScan(table, columns, condition, log)
        if log.is_dry:
            log.scans.append(scan.scan())
        else:
            yield from scan.batches()

    source = DuckdbSource(table.schema(), open_scan, log)
    names = ", ".join(map(identifier, table.column_names()))
    session.connection.from_arrow(source).project(names).create_view(table.name)


def _create_row_view(session: QuerySession, table: RowTable) -> None:
    log = session.log

    def open_scan(columns: Sequence[str], condition: Any) -> Iterator[pa.RecordBatch]:
        if log.is_dry:
            log.scans.append(Scan(table.name, columns, condition_text(condition)))
        else:
            yield from table.batches(columns, condition)

    session.connection.from_arrow(DuckdbSource(table.schema(), open_scan, log)).create_view(table.name)


def one_line(error: BaseException) -> str:
    """Return DuckDB's message in one line, without the quoted text, and with advice."""
    told = str(error).partition("\n\nLINE ")[0].partition("\n\nPossible solutions")[0]
    line = "; ".join(" ".join(part.split()) for part in told.splitlines() if part.strip())
    return next((f"{line}: {advice}" for words, advice in _ADVICE.items() if words in line), line)
