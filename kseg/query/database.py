"""The database: DuckDB in memory, which reads and writes no files and no network unless a directory is allowed."""

import os
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from pathlib import Path

import duckdb

from kseg.errors import UsageError

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
