"""The database of queries: DuckDB in memory, its libraries, its log, and its data source."""

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds

from kseg.cluster.directories import Refuse
from kseg.errors import KsegError, UsageError
from kseg.query.filter_bounds import Condition

if TYPE_CHECKING:
    from kseg.text.query import Scan

MOST_TEMPORARY = 10 << 30
"""The most bytes of temporary files, for queries that need more than their memory."""
_SHARE_OF_MEMORY = 2
"""The share of the machine's memory for a query, as a divisor: a broker's machine has other processes."""
_LEAST_MEMORY = 256 << 20
_HOUR = 3600
_EXTENSIONS = ("json", "parquet")
"""Extensions in DuckDB's package, which would be loaded on first use; loaded early, so that nothing is loaded later."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """Limits of queries: bytes, and directories where they may read and write files; None allows no files.

    memory: None for half of the machine's.
    """

    memory: int | None = None
    temporary: int = MOST_TEMPORARY
    files: Path | None = None

    @property
    def memory_size(self) -> int:
        """Bytes of memory."""
        return _default_memory() if self.memory is None else self.memory


def new_database(limits: QueryLimits, scratch: Path, zone: tzinfo = UTC) -> duckdb.DuckDBPyConnection:
    """Return a connection to a new, empty database whose temporary files are in an existing directory.

    Call `lock` after creating the views. Raises UsageError for a time zone that SQL doesn't have.
    """
    connection = duckdb.connect(":memory:")
    for name, value in _settings(limits, scratch, zone).items():
        connection.execute(f"SET {name} = {_literal(value)}")
    for name in _EXTENSIONS:
        connection.execute(f"LOAD {name}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
    """Prevent SQL from reaching the network or files outside of the allowed directory, and from undoing this."""
    if limits.files is not None:
        connection.execute(f"SET allowed_directories = [{_literal(os.path.realpath(limits.files))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")


def _settings(limits: QueryLimits, scratch: Path, zone: tzinfo) -> dict[str, str]:
    return {
        "memory_limit": f"{limits.memory_size}B",
        "temp_directory": str(scratch),
        "max_temp_directory_size": f"{limits.temporary}B",
        "autoinstall_known_extensions": "false",
        "autoload_known_extensions": "false",
        "allow_community_extensions": "false",
        "python_enable_replacements": "false",
        "TimeZone": _zone_name(zone),
        "enable_progress_bar": "false",
    }


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def identifier(name: str) -> str:
    """Return a name as an SQL identifier, whatever characters it has."""
    return '"' + name.replace('"', '""') + '"'


def _default_memory() -> int:
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return _LEAST_MEMORY
    return max(whole // _SHARE_OF_MEMORY, _LEAST_MEMORY)


def _zone_name(zone: tzinfo) -> str:
    """Return DuckDB's name of a time zone: a name, or whole hours from UTC, whose sign is inverted in such names."""
    key = getattr(zone, "key", None)
    if isinstance(key, str):
        return key
    distance = zone.utcoffset(datetime.now(UTC))
    hours, rest = divmod(0 if distance is None else int(distance.total_seconds()), _HOUR)
    if rest:
        raise UsageError("--tz: SQL needs a zone name, such as Asia/Kolkata, or a full number of hours from UTC")
    return "UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}"


Key = tuple[str, int | None]
"""A partition: topic and number."""


class QueryLog:
    """The events of a session's queries.

    is_dry: whether queries are only planned. scans: the requested tables, in order. damages: lines about missing data
    in answers; notes: other lines for users; each is printed once. failure: the error that ended a scan, of which
    DuckDB passes only the text. disordered: partitions whose offsets turned out not to rise.
    """

    def __init__(self, refuse: Refuse, say: Callable[[str], None] | None = None) -> None:
        """Take a function that reports unreadable files, and one that prints damages and notes at once."""
        self._refuse = refuse
        self._say = say
        self.is_dry = False
        self.scans: list[Scan] = []
        self.damages: dict[str, None] = {}
        self.notes: dict[str, None] = {}
        self.failure: BaseException | None = None
        self.disordered: set[Key] = set()
        self._refused: set[str] = set()

    def note(self, text: str) -> None:
        """Add a note for users."""
        self._take(self.notes, text)

    def damage(self, text: str) -> None:
        """Add a line about missing data in the answer."""
        self._take(self.damages, text)

    def _take(self, known: dict[str, None], text: str) -> None:
        if text not in known:
            known[text] = None
            if self._say is not None:
                self._say(text)

    def refuse_once(self, error: KsegError) -> None:
        """Report an unreadable file once, however many scans meet it."""
        if str(error) not in self._refused:
            self._refused.add(str(error))
            self._refuse(error)  # type: ignore[arg-type]


class DisorderedError(KsegError):
    """The error of a partition whose offsets don't rise: partly read already, it must be read in another way."""

    status = 1

    def __init__(self, key: Key, path: str) -> None:
        super().__init__(
            "offsets don't increase, so the query may return rows twice; use ORDER BY to get each row once", path
        )
        self.key = key


def condition_text(condition: object) -> str | None:
    """Return a condition as Arrow shows it, in one line, or None if there is no condition."""
    return None if condition is None else " ".join(str(condition).split())


OpenScan = Callable[[Sequence[str], Condition | None], Iterator[pa.RecordBatch]]
"""A function that begins to read columns by name, and rows by a condition that exactly the wanted rows fulfil."""


class DuckdbSource(ds.Dataset):
    """A table. DuckDB doesn't filter its rows again: the source must apply the condition."""

    def __init__(self, schema: pa.Schema, open_scan: OpenScan, log: QueryLog) -> None:
        """Initialize with the columns, the function that reads them, and the error log."""
        self._schema = schema
        self._open_scan = open_scan
        self._log = log

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Condition | None = None, **_: Any) -> "_Scanner":  # noqa: A002  pyarrow's name
        """Return the rows that a query requests; called once for each mention of the table in the query."""
        names = self._schema.names if columns is None else list(columns)
        return _Scanner(pa.schema([self._schema.field(name) for name in names]), self._batches(names, filter))

    def _batches(self, names: Sequence[str], condition: Condition | None) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._open_scan(names, condition)
        except Exception as error:  # DuckDB passes only the text: the session raises the error itself
            self._log.failure = error
            raise


class _Scanner:
    """The part of a pyarrow Scanner that DuckDB uses."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, self._batches)
