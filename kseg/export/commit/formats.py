"""Table formats of exports, one row each: the module that commits, its library, and how readers open the table.

This module imports none of them: options and settings use it before an export begins.
"""

import re
from collections.abc import Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, NamedTuple

from kseg.errors import UsageError, missing_library, quote


class Library(NamedTuple):
    """A library required by a format, with its distribution, the kseg extra and a module to import."""

    name: str
    extra: str
    module: str


class Scan(NamedTuple):
    """The functions of DuckDB and Polars that open a table."""

    duckdb: str
    polars: str


class TableFormat(NamedTuple):
    """A table format.

    name: for `--format`, reports and manifests. title: for messages. module: has `open_commits`, which returns the
    format's kseg.export.commit.protocol.Commits. has_log: whether the table's own log names the data files, which keep
    the names they are written under; otherwise the manifest names them. own_names: prefixes of the log's file names.
    options: the command's options for this format. has_field_ids: whether columns have ids and all of them are in the
    files, so that folders mean nothing. unreadable: characters that readers can't find in file names. refused_urls:
    URLs that the library would look for elsewhere, or nowhere. library and scan: None for plain Parquet files.
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
        """Import the module of the format. Raises UsageError if the library isn't installed."""
        if self.library is not None:
            try:
                import_module(self.library.module)
            except ImportError as error:
                raise UsageError(f"{missing_library(self.library.name, self.library.extra)} ({error})") from error
        return import_module(self.module)

    def require_address(self, url: str) -> None:
        """Raise UsageError for destinations that the library of the format can't handle."""
        if self.refused_urls is not None and (found := re.search(self.refused_urls, url)) is not None:
            raise UsageError(
                f"{self.title} tables don't support {quote(found[0])} in their path; choose another destination", url
            )


PARQUET = "parquet"
"""The default format."""
_ROWS = (
    TableFormat(PARQUET, "Parquet", "kseg.export.commit.parquet", has_log=False),
    TableFormat(
        "delta",
        "Delta",
        "kseg.export.commit.delta",
        own_names=("_delta_log/",),
        # deltalake decodes paths once too often, and takes the rest for a query or for separators
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
"""The formats by name, in the order of `--format`."""
