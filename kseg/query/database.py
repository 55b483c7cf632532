"""The database of queries: DuckDB in memory, its libraries, its log, and its source of data."""

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
from kseg.export.plan import Condition

if TYPE_CHECKING:
    from kseg.text.query import Scan

MOST_TEMPORARY = 10 << 30
"""Bytes of temporary files, where a query needs more than the memory that it may take."""
_SHARE_OF_MEMORY = 2
"""A query takes half of the machine's memory at most: on a broker's machine there are others."""
_LEAST_MEMORY = 256 << 20
_HOUR = 3600
_EXTENSIONS = ("json", "parquet")
"""Parts of DuckDB that its package has, but which it would load only when they are needed: then nothing is loaded."""


@dataclass(frozen=True, slots=True)
class QueryLimits:
    """What queries may take, in bytes, and where they may read and write files; None: nowhere.

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
    """A connection to an empty database of its own, whose temporary files are in a directory that is there.

    `lock` must be called when the views are there. Raises UsageError for a zone that SQL doesn't have.
    """
    connection = duckdb.connect(":memory:")
    for name, value in _settings(limits, scratch, zone).items():
        connection.execute(f"SET {name} = {_literal(value)}")
    for name in _EXTENSIONS:
        connection.execute(f"LOAD {name}")
    return connection


def lock(connection: duckdb.DuckDBPyConnection, limits: QueryLimits) -> None:
    """From now on no SQL reaches files (but those of the allowed directory) or the network, or can change that."""
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
    """A name as SQL takes it whatever is in it."""
    return '"' + name.replace('"', '""') + '"'


def _default_memory() -> int:
    try:
        whole = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return _LEAST_MEMORY
    return max(whole // _SHARE_OF_MEMORY, _LEAST_MEMORY)


def _zone_name(zone: tzinfo) -> str:
    """A time zone as DuckDB knows it: by name, or as whole hours from UTC, whose sign is turned in these names."""
    key = getattr(zone, "key", None)
    if isinstance(key, str):
        return key
    distance = zone.utcoffset(datetime.now(UTC))
    hours, rest = divmod(0 if distance is None else int(distance.total_seconds()), _HOUR)
    if rest:
        raise UsageError("--tz: SQL knows zones by name, such as Asia/Kolkata, or as whole hours from UTC")
    return "UTC" if not hours else f"Etc/GMT{'-' if hours > 0 else '+'}{abs(hours)}"


Key = tuple[str, int | None]
"""A partition: topic and number."""


class QueryLog:
    """What the queries of a session have met.

    is_dry: nothing is read, only planned. scans: the tables that were asked for, in order. damages: lines on what is
    missing in the answers; notes: on what else a user should know; both are said once. failure: what ended a scan, for
    DuckDB tells only its text. disordered: partitions whose offsets don't rise, found out while they were read.
    """

    def __init__(self, refuse: Refuse, say: Callable[[str], None] | None = None) -> None:
        """Takes what reports files that can't be read while others can; and what says damages and notes at once."""
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
        """Takes what a user should know."""
        self._take(self.notes, text)

    def damage(self, text: str) -> None:
        """Takes what is missing in the answer."""
        self._take(self.damages, text)

    def _take(self, known: dict[str, None], text: str) -> None:
        if text not in known:
            known[text] = None
            if self._say is not None:
                self._say(text)

    def refuse_once(self, error: KsegError) -> None:
        """Reports a file that can't be read, however many scans meet it."""
        if str(error) not in self._refused:
            self._refused.add(str(error))
            self._refuse(error)  # type: ignore[arg-type]


class DisorderedError(KsegError):
    """A partition's offsets don't rise, so that it must be read in another way; some of it has been read already."""

    status = 1

    def __init__(self, key: Key, path: str) -> None:
        super().__init__(
            "offsets don't rise, so that rows may have come twice: with ORDER BY a query gets each once", path
        )
        self.key = key


def condition_text(condition: object) -> str | None:
    """A condition as Arrow shows it, in a line; None for none."""
    return None if condition is None else " ".join(str(condition).split())


OpenScan = Callable[[Sequence[str], Condition | None], Iterator[pa.RecordBatch]]
"""Begins to read: the names of columns, and a condition that exactly the wanted rows fulfil."""


class DuckdbSource(ds.Dataset):
    """A table. DuckDB doesn't look at its rows once more: the condition is ours to apply."""

    def __init__(self, schema: pa.Schema, open_scan: OpenScan, log: QueryLog) -> None:
        """Takes the columns, what reads them, and where errors are kept."""
        self._schema = schema
        self._open_scan = open_scan
        self._log = log

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Condition | None = None, **_: Any) -> "_Scanner":  # noqa: A002  pyarrow's name
        """The rows that a query asks for; called once for each place of the query that names the table."""
        names = self._schema.names if columns is None else list(columns)
        return _Scanner(pa.schema([self._schema.field(name) for name in names]), self._batches(names, filter))

    def _batches(self, names: Sequence[str], condition: Condition | None) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._open_scan(names, condition)
        except Exception as error:  # DuckDB gives only its text: the session raises it itself
            self._log.failure = error
            raise


class _Scanner:
    """All that DuckDB wants of a pyarrow Scanner."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches)
