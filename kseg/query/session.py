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
from kseg.log.selection import EVERY_PARTITION, NoSuchPartitionError, PartitionChoice
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
    """What the views are of. copies: the partitions; selection, read: which records, and what decodes them."""

    copies: Copies
    selection: LogSelection
    read: ReadOptions

    def topics(self) -> list[str]:
        """The topics, sorted."""
        return sorted({topic for topic, _ in self.copies})

    def all_records(self) -> RecordTable:
        """The records of all topics, with what the batch of each says; decoded columns are text there."""
        decode = replace(self.read.decode, decoded_as=DecodedAs.TEXT)
        return RecordTable(
            ALL_RECORDS, self.copies, self.selection, replace(self.read, batch_columns=True, decode=decode)
        )

    def of_topic(self, topic: str) -> RecordTable:
        """The records of a topic as exports have them; keys and values of internal topics as structs, too."""
        copies = {key: known for key, known in self.copies.items() if key[0] == topic}
        internal = INTERNAL_TOPICS.get(topic)
        if internal is not None and not self.read.decode.fields():
            return RecordTable(topic, copies, self.selection, self.read, internal.fields(), internal.added)
        read = self.read
        if read.decode.typed_parts():
            orders = plan_orders(copies, self.selection, _WHOLE)
            read = with_typed_columns(read, None, [topic], orders)
        return RecordTable(topic, copies, self.selection, read)


def view_names(topics: Sequence[str], tables: Collection[str], schema: str, note: Callable[[str], None]) -> list[str]:
    """The topics that get a view of their name; SQL doesn't tell names apart that differ by case alone.

    tables: those of `schema`, which a topic of the same name hides.
    """
    taken: dict[str, str] = {}
    for topic in topics:
        taken.setdefault(topic.lower(), topic)
    hidden = {table: f"{schema}.{table}" for table in tables if table in taken}
    for table, full_name in hidden.items():
        note(f"{taken[table]} is the topic here: the table of that name is {full_name}")
    for topic in topics:
        if (first := taken[topic.lower()]) != topic:
            records = hidden.get(ALL_RECORDS, ALL_RECORDS)
            note(f"{topic} has no view beside {first}: it is in {records}, where topic = '{topic}'")
    return list(taken.values())


SCHEMA = "kseg"
"""The schema of the tables that are no topics: a topic of the same name comes first, without it."""
ROWS = 1 << 12
"""Rows of an answer that are handed on at once."""
_INTERRUPTED = "Query interrupted"
_AGAIN = 0.05
"""Seconds after which it is looked whether Ctrl-C came; and after which DuckDB, if it goes on, is interrupted again."""
_ADVICE = {
    "file system operations are disabled": "--files DIR lets SQL read and write in one directory",
    "'max_temp_directory_size'": "give more --temporary, or more --memory",
}
"""What to do, by words of DuckDB's own messages, which name settings that are locked."""
_PLAIN = re.compile("[a-z_][a-z0-9_]*", re.IGNORECASE)
_WORDS = """
    SELECT view_name, true FROM duckdb_views() WHERE NOT internal
    UNION ALL SELECT DISTINCT column_name, true FROM duckdb_columns() WHERE NOT internal
    UNION ALL SELECT upper(keyword_name), false FROM duckdb_keywords()
    UNION ALL SELECT DISTINCT function_name, false FROM duckdb_functions() WHERE function_name ~ '[a-z]'
"""


@dataclass(frozen=True, slots=True)
class Queried:
    """What is queried. paths: directories of this machine; choice: which partitions of them.

    selection, read: which records, and what decodes them, as for an export. is_verbose: says of each partition which
    copy answers.
    """

    paths: tuple[Path, ...]
    choice: PartitionChoice = EVERY_PARTITION
    selection: LogSelection = field(default_factory=LogSelection)
    read: ReadOptions = field(default_factory=ReadOptions)
    is_verbose: bool = False


@dataclass(slots=True)
class QueryAnswer:
    """An answer: its columns, and its rows, which are read once. Whoever stops early closes it."""

    schema: pa.Schema
    batches: Iterator[pa.RecordBatch]
    close: Callable[[], None]


class QuerySession:
    """Views over directories, and what was found while they were queried: `log`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, log: QueryLog) -> None:
        """Takes the database with its views; `open_session` makes both."""
        self.connection = connection
        self.log = log
        self._pool = ThreadPoolExecutor(1, "kseg-query")

    def statements(self, sql: str) -> list[str]:
        """The statements of a text. Raises UsageError where it is no SQL."""
        return [statement.query.strip() for statement in self._parsed(sql)]

    def _parsed(self, sql: str) -> list[duckdb.Statement]:
        try:
            sql.encode()
            return self.connection.extract_statements(sql)
        except UnicodeEncodeError as error:
            raise UsageError("the SQL isn't UTF-8: save it as such") from error
        except duckdb.Error as error:
            raise UsageError(one_line(error)) from error

    def words(self) -> list[str]:
        """What a prompt may offer: names of views, tables and columns as SQL takes them, then SQL's own words."""
        found = self.connection.execute(_WORDS).fetchall()
        return list(
            dict.fromkeys(
                identifier(word) if is_name and not _PLAIN.fullmatch(word) else word for word, is_name in found
            )
        )

    def answers(self, sql: str) -> Iterator[QueryAnswer]:
        """The answers to the statements of a text, each to be read before the next is asked for.

        Raises UsageError for what is no SQL, or for what it asks for in vain.
        """
        statements = self.statements(sql)
        if not statements:
            raise UsageError("there is no SQL in it")
        for statement in statements:
            yield self._answer(statement)

    def scans(self, sql: str) -> list[Scan]:
        """What a query would read. Raises UsageError for anything but a query: it would be carried out."""
        kinds = (
            {statement.type for statement in self.connection.extract_statements(sql)} if self.statements(sql) else ()
        )
        if any(kind != duckdb.StatementType.SELECT for kind in kinds):
            raise UsageError("--explain is for queries (SELECT …): others would change something")
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
        """The schema, then the rows; begins again where a partition must be read in another way."""
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
        """The result of some work of DuckDB's, done by a thread of its own: Ctrl-C would have to wait for it."""
        coming: Future[Any] | None = None
        try:
            with Uninterrupted():  # else work may have begun that nobody knows of
                coming = self._pool.submit(work)
            while wait([coming], _AGAIN).not_done:
                pass  # a signal that comes just before a wait without an end is seen only after it
            return coming.result()
        except KeyboardInterrupt:
            while coming is not None and wait([coming], _AGAIN).not_done:  # it may not have begun when interrupted
                self.connection.interrupt()
            raise

    @contextmanager
    def _reader(self, statement: str) -> Iterator[pa.RecordBatchReader]:
        """The answer as a stream, closed at the end; DuckDB's errors as ours."""
        try:
            made = self._interruptible(lambda: self.connection.sql(statement).to_arrow_reader(ROWS))
            with closing(made) as reader:
                yield reader
        except (duckdb.Error, pa.ArrowException, OSError, RuntimeError) as error:
            raise self._as_ours(error) from error

    def _as_ours(self, error: Exception) -> BaseException:
        failure = self.log.failure
        if isinstance(error, KsegError):
            return error
        if _INTERRUPTED in str(error):
            return KeyboardInterrupt()
        return failure if isinstance(failure, KsegError) else UsageError(one_line(failure or error))


@contextmanager
def open_session(queried: Queried, limits: QueryLimits, refuse: Refuse, zone: tzinfo = UTC) -> Iterator[QuerySession]:
    """A session that is closed at the end, and leaves no temporary files; arguments and errors as for `new_session`."""
    with scratch_directory() as scratch:
        session = new_session(queried, limits, scratch, QueryLog(refuse), zone)
        with closing(session.connection):
            yield session


def new_session(
    queried: Queried, limits: QueryLimits, scratch: Path, log: QueryLog, zone: tzinfo = UTC
) -> QuerySession:
    """The views over some directories, as these are listed now.

    Args:
        queried: what they are of.
        limits: what queries may take.
        scratch: a directory for temporary files.
        log: takes what is met.
        zone: of times in SQL.

    Raises:
        UsageError: a decoder is missing; nothing that is meant is there.
        OpenError: there is nothing to query.
    """
    session = QuerySession(new_database(limits, scratch, zone), log)
    create_views(session, queried)
    lock(session.connection, limits)
    return session


def create_views(session: QuerySession, queried: Queried) -> None:
    """Lists the directories, and creates the views over them. Raises what `open_session` does."""
    connection, log = session.connection, session.log
    views = _record_views(queried, log)
    _execute(connection, f"CREATE SCHEMA {SCHEMA}", f"USE {SCHEMA}")
    _create_record_view(session, views.all_records())
    tables = tables_of(QueriedDirectories(queried.paths, queried.choice, log))
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


def _record_views(queried: Queried, log: QueryLog) -> RecordViews:
    return RecordViews(_chosen_copies(queried, log), queried.selection, queried.read)


def _chosen_copies(queried: Queried, log: QueryLog) -> Copies:
    refused: list[OpenError] = []
    replicas = find_replicas([*map(as_given, queried.paths)], refused.append)
    copies = copies_of(replicas)
    if not copies and refused:
        raise refused[0]
    for error in refused:
        log.refuse_once(error)
    require_replicas(copies, [*map(as_given, queried.paths)])
    chosen = {key: known for key, known in copies.items() if queried.choice.takes(*key)}
    if not chosen:
        raise NoSuchPartitionError(queried.choice, (copy.place for known in copies.values() for copy in known))
    taken = taken_of(each for each in replicas if queried.choice.takes(each.topic, each.partition))
    for line in taken.sentences(verbose=queried.is_verbose):
        log.note(line)
    return chosen


def _create_record_view(session: QuerySession, table: RecordTable) -> None:
    log = session.log  # views keep what they need, so that nothing keeps the connection but who uses it

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
    """DuckDB's message in a line: without the text that it quotes, with what to do."""
    told = str(error).partition("\n\nLINE ")[0].partition("\n\nPossible solutions")[0]
    line = "; ".join(" ".join(part.split()) for part in told.splitlines() if part.strip())
    return next((f"{line}: {advice}" for words, advice in _ADVICE.items() if words in line), line)
