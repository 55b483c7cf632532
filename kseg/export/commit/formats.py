"""Table formats of exports, a row each: the module that commits, the library it needs, and how readers open the table.

This module imports none of theirs: options and settings ask it before anything is exported.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.errors import UsageError, missing_library, quoted


class Library(NamedTuple):
    """A library that a format needs: its distribution, kseg's extra that installs it, and a module of it."""

    name: str
    extra: str
    module: str


class Scan(NamedTuple):
    """The functions that open a table: of DuckDB, in its extension for the format, and of Polars, imported as `pl`."""

    duckdb: str
    polars: str


class TableFormat(NamedTuple):
    """A table format.

    name: for `--format`, reports and manifests. title: for messages. module: has `open_commits`, which gives the
    format's kseg.export.commit.protocol.Commits. has_log: the table's own log names the data files, and they are
    written under the names they keep; else the manifest does. own_names: what the names of the log's files begin with.
    options: those of the commands that are for this format. has_field_ids: columns have ids, and all are in the files:
    folders mean nothing. unreadable: characters in the names of files that readers don't find. refused_urls: what the
    library would look for elsewhere, or nowhere. library and scan: None for plain Parquet files.
    """

    name: str
    title: str
    module: str
    has_log: bool = True
    own_names: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    has_field_ids: bool = False
    unreadable: str = ""
    refused_urls: str | None = None
    library: Library | None = None
    scan: Scan | None = None

    def load(self) -> Any:
        """The format's module. Raises UsageError if its library isn't installed."""
        if self.library is not None:
            try:
                import_module(self.library.module)
            except ImportError as error:
                raise UsageError(f"{missing_library(self.library.name, self.library.extra)} ({error})") from error
        return import_module(self.module)

    def require_address(self, url: str) -> None:
        """Raises UsageError for a destination that the table's library would look for elsewhere, or nowhere."""
        if self.refused_urls is not None and (found := re.search(self.refused_urls, url)) is not None:
            raise UsageError(
                f"no {self.title} table can lie at a path with {quoted(found[0])}: choose another place", url
            )


PARQUET = "parquet"
"""The format by default."""
_ROWS = (
    TableFormat(PARQUET, "Parquet", "kseg.export.commit.parquet", has_log=False),
    TableFormat(
        "delta",
        "Delta",
        "kseg.export.commit.delta",
        own_names=("_delta_log/",),
        # deltalake decodes paths once more than it encodes them, and takes the rest for a query or for separators
        refused_urls=r"%[0-9A-Fa-f]{2}|[?#\\\x00-\x1f\x7f\ud800-\udfff]",
        library=Library("deltalake", "delta", "deltalake"),
        scan=Scan("delta_scan", "pl.scan_delta"),
    ),
    TableFormat(
        "iceberg",
        "Iceberg",
        "kseg.export.commit.iceberg",
        own_names=("metadata/", "data/", "catalog.db"),
        options=("catalog", "table"),
        has_field_ids=True,
        unreadable="?#",
        refused_urls=r"[?#\ud800-\udfff]",
        library=Library("pyiceberg", "iceberg", "pyiceberg.catalog"),
        scan=Scan("iceberg_scan", "pl.scan_iceberg"),
    ),
)
FORMATS: Mapping[str, TableFormat] = MappingProxyType({row.name: row for row in _ROWS})
"""The formats by their names, in the order of `--format`."""
