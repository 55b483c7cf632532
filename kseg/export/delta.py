"""An export as a Delta table: Delta's log names the export's own Parquet files, and follows its manifest."""

import json
import os
from importlib import import_module
from types import ModuleType
from typing import Any

import pyarrow as pa

from kseg.errors import KsegError, UsageError, missing_library
from kseg.export.manifest import Manifest
from kseg.export.result import ExportedFile

DATE = pa.field("date", pa.date32())
"""The only folder that isn't a column of the records."""
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def library() -> ModuleType:
    """The package deltalake. Raises UsageError if it isn't installed."""
    try:
        return import_module("deltalake")
    except ImportError as error:
        raise UsageError(f"{missing_library('deltalake', 'delta')} ({error})") from error


def publish(manifest: Manifest, url: str) -> None:
    """Makes the Delta table at the export's place hold the manifest's files; nothing is written if it does.

    New files are appended; where files were replaced or left out, a version with all files takes the table's place.
    Raises UsageError if deltalake isn't installed, KsegError if the log can't be written.
    """
    deltalake = library()
    from deltalake.exceptions import DeltaError

    wanted = {file.path: file for result in manifest.results for file in result.files}
    folders = list(manifest.files.partition_by)
    dates = [DATE] if DATE.name in folders else []
    schema = deltalake.Schema.from_arrow(pa.schema([*manifest.read.schema(), *dates]))
    options = _storage_options(url)
    try:
        if not deltalake.DeltaTable.is_deltatable(url, options):
            from deltalake.transaction import create_table_with_add_actions

            adds = [_added(file) for file in wanted.values()]
            create_table_with_add_actions(url, schema, adds, partition_by=folders, storage_options=options)
            return
        table = deltalake.DeltaTable(url, storage_options=options)
        there = pa.table(table.get_add_actions())
        known = dict(zip(there["path"].to_pylist(), there["size_bytes"].to_pylist(), strict=True))
        is_same = table.schema() == schema  # else its columns have more fields than the files before
        is_grown = is_same and all(path in wanted and wanted[path].size == size for path, size in known.items())
        adds = [_added(file) for path, file in wanted.items() if not is_grown or path not in known]
        if adds or not is_grown:
            mode = "append" if is_grown else "overwrite"
            table.create_write_transaction(adds, mode, schema, folders)
    except (DeltaError, OSError) as error:
        raise KsegError(f"the Delta log can't be written: {error}", url) from error


def _added(file: ExportedFile) -> Any:
    from deltalake.transaction import AddAction

    assert file.path is not None  # it counts
    pairs = (part.split("=", 1) for part in file.folder.split("/") if part)
    values = {name: None if value == NO_VALUE else value for name, value in pairs}
    statistics = {
        "numRecords": file.rows,
        "minValues": {"offset": file.first_offset},
        "maxValues": {"offset": file.last_offset},
    }
    return AddAction(file.path, file.size, values, 0, True, json.dumps(statistics))


def _storage_options(url: str) -> dict[str, str]:
    """What deltalake doesn't take from the environment by itself: an object store without TLS must be allowed."""
    is_plain = url.startswith("s3://") and os.environ.get("AWS_ENDPOINT_URL", "").startswith("http://")
    return {"AWS_ALLOW_HTTP": "true"} if is_plain else {}
