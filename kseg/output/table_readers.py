"""The lines that read an export in DuckDB and in Polars, with its folders as columns."""

from collections.abc import Sequence
from glob import escape
from typing import NamedTuple


class _FolderType(NamedTuple):
    duckdb: str
    polars: str


_FOLDER_TYPES = {
    "topic": _FolderType("VARCHAR", "pl.String"),
    "partition": _FolderType("INTEGER", "pl.Int32"),
    "date": _FolderType("DATE", "pl.Date"),
}
"""Named, since both would take a topic whose name has only digits for a number."""


_SCANS = {"delta": ("delta_scan", "pl.scan_delta"), "iceberg": ("iceberg_scan", "pl.scan_iceberg")}
"""What reads tables, by their format: in DuckDB, whose extension of that name is needed, and in Polars."""


def duckdb_query(url: str, folders: Sequence[str], table_format: str, *, is_typed: bool) -> str:
    """The SQL with which DuckDB reads the export at a path or URL; `folders` are the columns of its folders' names.

    is_typed: later files may have more fields in their decoded columns.
    """
    if table_format in _SCANS:
        return f"FROM {_SCANS[table_format][0]}({_sql_text(url)})"
    types = ", ".join(f"{_sql_text(name)}: {_FOLDER_TYPES[name].duckdb}" for name in folders)
    hive = f", hive_partitioning = true, hive_types = {{{types}}}" if folders else ""
    union = ", union_by_name = true" if is_typed else ""
    return f"FROM read_parquet({_sql_text(_files(url))}{hive}{union})"


def polars_expression(url: str, folders: Sequence[str], table_format: str) -> str:
    """The Python expression with which Polars, imported as `pl`, does."""
    if table_format in _SCANS:
        return f"{_SCANS[table_format][1]}({url!r})"
    types = ", ".join(f"{name!r}: {_FOLDER_TYPES[name].polars}" for name in folders)
    hive = f", hive_schema={{{types}}}" if folders else ""
    return f"pl.scan_parquet({_files(url)!r}{hive})"


def _files(url: str) -> str:
    """A pattern of the export's files; what would be a pattern in the place's own name is escaped."""
    return f"{escape(url.rstrip('/'))}/**/*.parquet"


def _sql_text(text: str) -> str:
    doubled = text.replace("'", "''")
    return f"'{doubled}'"
