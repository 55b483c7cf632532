"""An export as a Delta table, through deltalake. Delta's log decides which files count, and has the export's progress.

kseg's commits have the application transaction "kseg", whose version is the commit's number; the member "kseg" of their
metadata has the progress. Other writers may commit in between; the library never resolves a conflict.
"""

import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import Any
from urllib.parse import unquote
from uuid import uuid4

import pyarrow as pa
import pyarrow.compute as pc

from kseg.errors import KsegError, SwappedError, UsageError
from kseg.export.columns.unwrapped import OFFSET
from kseg.export.commit.check import TableContents, check_reopening, have_columns, read_footers
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.protocol import TableName
from kseg.export.commit.runs import OvertakenError
from kseg.export.commit.table_commits import TableCommits
from kseg.export.commit.table_log import (
    APPLICATION,
    CopiedRows,
    RowRange,
    TableChange,
    bounds_of,
    copy_rows,
    nulls_of,
    parse_progress,
    progress_text,
    without,
)
from kseg.export.destination import Destination
from kseg.export.results import ExportedFile, Result
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.folders import folder_columns, plain_text, texts_in
from kseg.export.write.parquet import schema_of_files
from kseg.store.location import is_remote, parse_url
from kseg.store.settings import settings_of
from kseg.system.held_directory import LinkError
from kseg.system.new_directory import Processes

LOG = "_delta_log"
COMMITS_AFTER = 20
DAYS_AFTER = 7
"""The most days, or commits of others, since kseg's last commit, after which kseg commits again.

Delta's log forgets commits after 30 days.
"""
_MOST_REOPENED = 100
"""The most attempts to read the log while others commit."""
_LOOKED_BACK = (1, 32, 1024, None)
_SCHEME = re.compile("[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_STACK = re.compile(r"^\s*0: ", re.MULTILINE)
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def open_commits(place: Destination, files: FileOptions, _: TableName, processes: Processes) -> TableCommits:
    """Return the commits of the table at a destination."""
    return TableCommits(place, DeltaLog(place, files), processes)


class DeltaLog:
    """The transaction log of a Delta table."""

    needs_conditions = True

    def __init__(self, place: Destination, files: FileOptions) -> None:
        self._place, self._files = place, files
        self._deltalake = import_module("deltalake")

    @property
    def location(self) -> str:
        """The destination."""
        return self._place.url

    @property
    def _options(self) -> dict[str, str]:
        """The storage options, with the current keys."""
        if not is_remote(self.location):
            return {}
        settings = settings_of(parse_url(self.location))
        if settings.authorities is not None:  # deltalake has no option for certificate authorities
            os.environ.setdefault("SSL_CERT_FILE", settings.authorities)
        return settings.of_delta()

    def _open(self) -> Any:
        """Return the table as it is now, or None if it doesn't exist."""
        self._place.require_in_place()
        self._place.require_plain(LOG)
        with self._errors("read"):
            if not self._deltalake.DeltaTable.is_deltatable(self.location, self._options):
                return None
            return self._deltalake.DeltaTable(self.location, storage_options=self._options)

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        from deltalake.exceptions import DeltaError

        try:
            yield
        except (DeltaError, OSError) as error:
            raise KsegError(f"the Delta log can't be {what}: {_line(error)}", self.location) from error

    def number(self) -> int | None:
        """Return the version of kseg's application transaction."""
        table = self._open()
        return None if table is None else self._number_in(table)

    def _number_in(self, table: Any) -> int:
        with self._errors("read"):
            found: int | None = table.transaction_version(APPLICATION)
        if found is None:
            raise UsageError("the Delta table isn't an export; choose another destination", self.location)
        if found < 1:
            raise KsegError(
                f"the Delta table's last export has the number {found}, which kseg didn't write;"
                " choose another destination",
                self.location,
            )
        return found

    def progress(self) -> Manifest:
        """Return the progress from kseg's last commit, searching from the newest commit on."""
        _, number, entries = self._open_with_entries(None)
        for entry in entries:
            if APPLICATION in entry:
                return parse_progress(_own_metadata(entry, self.location).get("progress"), number, self.location)
            if entry.get("operation") == "RESTORE":
                why = "the Delta table was restored to an older version, so its contents are unknown"
                raise KsegError(
                    f"{why}; export with --overwrite, or restore its version {entry['version'] - 1}", self.location
                )
        why = "the Delta log no longer has the export's last commit, so the table's contents are unknown"
        raise KsegError(f"{why}; export with --overwrite, or choose another destination", self.location)

    def _open_with_entries(self, number: int | None) -> tuple[Any, int, list[dict[str, Any]]]:
        """Return the table, the number of a commit, and the newest commits down to it.

        number: None for kseg's last commit. deltalake reads commits that are newer than the opened version too, and
        takes their versions from it, so the table is opened until no other writer commits meanwhile. Raises KsegError
        if they never pause.
        """
        for _ in range(_MOST_REOPENED):
            table = self._open()
            found = number if number is not None else 0 if table is None else self._number_in(table)
            entries = self._entries(table, found)
            again = self._open()
            if (table and table.version()) == (again and again.version()):
                return table, found, entries
        raise KsegError("other writers keep committing; run the command again", self.location)

    def _entries(self, table: Any, number: int) -> list[dict[str, Any]]:
        """Return the newest commits down to kseg's of that number; if it is missing, only those of others."""
        entries: list[dict[str, Any]] = []
        for limit in _LOOKED_BACK:
            with self._errors("read"):
                entries = [] if table is None else table.history(limit)
            for place, entry in enumerate(entries):
                if APPLICATION in entry and _own_metadata(entry, self.location).get("number") == number:
                    return entries[: place + 1]
        return [entry for entry in entries if APPLICATION not in entry]

    def version(self, number: int) -> str | None:
        """Return Delta's version."""
        entries = self._entries(self._open(), number)
        return str(entries[-1]["version"]) if entries and APPLICATION in entries[-1] else None

    def is_buried(self) -> bool:
        """Return True if kseg's last commit is old, or many commits of others follow it."""
        _, _, entries = self._open_with_entries(None)
        if len(entries) < 2:
            return False
        age = datetime.now(UTC) - (_EPOCH + timedelta(milliseconds=entries[-1].get("timestamp", 0)))
        return len(entries) > COMMITS_AFTER or age > timedelta(days=DAYS_AFTER)

    def has_commit_of(self, run_id: str) -> bool:
        """Return True if the log still contains a commit of the run."""
        table = self._open()
        with self._errors("read"):
            entries = [] if table is None else table.history()
        return any(
            APPLICATION in entry and _own_metadata(entry, self.location).get("run") == run_id for entry in entries
        )

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """Return the contents of the commit's version according to the log; for new files, also to their footers."""
        with check_reopening(self.location):
            table, _, entries = self._open_with_entries(manifest.number)
            if not entries or APPLICATION not in entries[-1]:
                return None
            with self._errors("read"):
                if len(entries) > 1:
                    table.load_as_version(entries[-1]["version"])
                actions = pa.table(table.get_add_actions(flatten=True))
                columns = self._evolved_schema(table, manifest.read) == table.schema()
        there = set(map(unquote, actions["path"].to_pylist()))
        footers = read_footers(self._place, [name for name in names if name in there])
        has_columns = columns and have_columns(footers.values(), schema_of_files(manifest.read, self._files))
        rows = {name: footer.num_rows for name, footer in footers.items()}
        return TableContents(has_columns, rows, pc.sum(actions["num_records"]).as_py() or 0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows with pyarrow datasets, which deltalake provides."""
        table = self._open()
        with self._errors("read"):
            yield from () if table is None else table.to_pyarrow_dataset().to_batches()

    def active_files(self) -> Iterator[str]:
        """Return the files of the newest version."""
        table = self._open()
        return iter(()) if table is None else (row["name"] for row in self._rows_of_files(table))

    def _rows_of_files(self, table: Any) -> list[dict[str, Any]]:
        """Return names, sizes, folders, and bounds of identifying columns; other bounds may have no Python value."""
        with self._errors("read"):
            actions = pa.table(table.get_add_actions(flatten=True))
        bounds = {f"{bound}.{name}" for bound in ("min", "max") for name in ("topic", "partition", "offset")}
        wanted = {"path", "size_bytes", *bounds, *(f"partition.{name}" for name in self._files.folder_columns)}
        found = actions.select([each for each in actions.column_names if each in wanted]).to_pylist()
        return [{**row, "name": self._name_of(row["path"])} for row in found]

    def _name_of(self, path: str) -> str:
        """Return the name of a data file. Raises KsegError if the file isn't in the destination."""
        name = unquote(path)
        if _SCHEME.match(path) or any(part in ("", ".", "..") for part in name.split("/")):
            why = f"the Delta log names {name}, which isn't in the table; choose another destination"
            raise KsegError(why, self.location)
        return name

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """Return the options unchanged: Delta finds columns by name."""
        return read

    # --- commits -----------------------------------------------------------------------------------------------------

    def commit(self, change: TableChange) -> None:
        """Commit on top of the version that contains the last kseg commit."""
        from deltalake.exceptions import DeltaError

        table = self._open()
        now = 0 if table is None else self._number_in(table)
        if now != change.base:
            raise OvertakenError(self.location)
        try:
            self._write(table, change)
        except (DeltaError, OSError) as error:
            if self.number() == change.manifest.number and self.has_commit_of(change.manifest.run):
                return  # the response was lost, but the commit succeeded
            if self._is_conflict(error, table):
                raise OvertakenError(self.location) from error
            raise KsegError(f"the Delta log can't be written: {_line(error)}", self.location) from error
        self._require_committed_here(change.manifest.run)

    def _require_committed_here(self, run_id: str | None) -> None:
        """Raise SwappedError if the library's files aren't in the destination: it follows links.

        run_id: the run that has committed; None after a merge, which has written data files too.
        """
        if self._place.identity is None:
            return
        self._place.require_in_place()
        try:
            table = self._open()
            names = [] if table is None else [f"{LOG}/{table.version():020}.json"]
            if run_id is None:
                names += self.active_files()
            is_here = bool(names) and all(self._place.size(name) is not None for name in names)
        except LinkError:
            is_here = False
        if not is_here or not (run_id is None or self.has_commit_of(run_id)):
            raise SwappedError(f"{self.location}/{LOG}")

    def _is_conflict(self, error: Exception, before: Any) -> bool:
        """Return True if another writer has committed since."""
        after = self._open()
        return after is not None and (before is None or after.version() != before.version())

    def _write(self, table: Any, change: TableChange) -> None:
        from deltalake.transaction import create_table_with_add_actions

        adds = [self._add_action(result, file) for result, file in change.files()]
        adds += map(_add_rows, change.added)
        folders = list(self._files.folder_columns)
        said = self._commit_properties(change.manifest)
        if table is None or change.replaces_all:
            mode: Any = "error" if table is None else "overwrite"
            options = {"partition_by": folders, "storage_options": self._options, "commit_properties": said}
            create_table_with_add_actions(self.location, self._schema(change.manifest.read), adds, mode, **options)
            return
        read = change.manifest.read
        columns = self._evolved_schema(table, read)
        # a filter that matches no file: only an overwriting commit changes the table's columns
        no_files: Any = [("offset" if read.unwrap is None else OFFSET.name, "in", [])]
        if columns == table.schema():
            actions = [*self._removals(table, change), *adds]
            table.create_write_transaction(actions, "append", columns, folders, commit_properties=said)
        elif not change.gone and not change.removed:
            table.create_write_transaction(adds, "overwrite", columns, folders, no_files, commit_properties=said)
        else:  # a commit can't both change columns and remove files
            before = self._commit_properties(self.progress()) if change.base else None
            table.create_write_transaction([], "overwrite", columns, folders, no_files, commit_properties=before)
            self.commit(change)

    def _evolved_schema(self, table: Any, read: ReadOptions) -> Any:
        """Return the table's columns and the export's current ones; other writers may have added more."""
        own = {field.name: field for field in self._schema(read).fields}
        there = [own.pop(field.name, field) for field in table.schema().fields]
        return self._deltalake.Schema([*there, *own.values()])

    def _schema(self, read: ReadOptions) -> Any:
        columns = read.schema()
        folders = [pa.field(each.name, each.kind) for each in folder_columns(read, self._files)]
        return self._deltalake.Schema.from_arrow(
            pa.schema([*columns, *(field for field in folders if field.name not in columns.names)])
        )

    def _commit_properties(self, manifest: Manifest) -> Any:
        """Return the properties of a commit, which is tried once: only the run can judge a conflict."""
        own = {"number": manifest.number, "run": manifest.run, "progress": progress_text(manifest)}
        return self._deltalake.CommitProperties(
            custom_metadata={APPLICATION: own},
            max_commit_retries=0,
            app_transactions=[self._deltalake.Transaction(APPLICATION, manifest.number)],
        )

    def _removals(self, table: Any, change: TableChange) -> Iterator[Any]:
        """Yield actions that remove rows: of files, and of new files for the remaining rows."""
        from deltalake.transaction import RemoveAction

        yield from self._removed_files(table, change.removed)
        if not change.gone:
            return
        by_topic: dict[str, list[RowRange]] = {}
        for part in change.gone:
            by_topic.setdefault(part.topic, []).append(part)
        for row in self._rows_of_files(table):
            topic = row.get("partition.topic")
            parts = change.gone if topic is None else by_topic.get(topic, ())
            parts = [part for part in parts if _may_hold(row, part)]
            if not parts:
                continue
            folders = {name: row.get(f"partition.{name}") for name in self._files.folder_columns}
            values = {name: plain_text(value) for name, value in folders.items()}
            yield RemoveAction(row["name"], True, _now_ms(), row["size_bytes"], values)
            if not any(_holds_only(row, part) for part in parts):
                kept = self._rewrite(row["name"], parts, topic, values, change.manifest)
                if kept is not None:
                    yield kept

    def _removed_files(self, table: Any, names: Collection[str]) -> Iterator[Any]:
        """Yield actions that remove files. Raises OvertakenError if another writer has replaced one of them."""
        from deltalake.transaction import RemoveAction

        sizes = {row["name"]: row["size_bytes"] for row in self._rows_of_files(table)} if names else {}
        if not sizes.keys() >= set(names):
            raise OvertakenError(self.location)
        yield from (RemoveAction(name, True, _now_ms(), sizes[name], {}) for name in names)

    def _rewrite(
        self, name: str, parts: list[RowRange], topic: str | None, values: Mapping[str, str | None], manifest: Manifest
    ) -> Any:
        """Rewrite a file without the removed rows, and return the action, or None if no rows remain."""
        folder = name.rpartition("/")[0]
        target = f"{folder}/part-kept-{manifest.run}-0-{uuid4().hex[:12]}-0.parquet".removeprefix("/")
        writing = schema_of_files(manifest.read, self._files), self._files
        kept = copy_rows(self._place, [name], target, writing, without(parts, topic))
        if kept is None:
            return None
        from deltalake.transaction import AddAction

        lowest, highest = {}, {}
        for column in ("offset", "partition"):
            bounds = bounds_of(kept.metadata, column)
            if bounds is not None:
                lowest[column], highest[column] = bounds
        nulls = nulls_of(kept.metadata, (*lowest, "timestamp"))
        times = bounds_of(kept.metadata, "timestamp")
        statistics = _statistics(kept.metadata.num_rows, lowest, highest, nulls, times)
        return AddAction(target, kept.size, dict(values), _now_ms(), True, statistics)

    def _add_action(self, result: Result, file: ExportedFile) -> Any:
        from deltalake.transaction import AddAction

        values = dict(zip(self._files.folder_columns, texts_in(file.folder), strict=True))
        lowest: dict[str, Any] = {"offset": file.first_offset}
        highest: dict[str, Any] = {"offset": file.last_offset}
        for name, value in (("topic", result.topic), ("partition", result.partition)):
            if name not in self._files.folder_columns and value is not None:
                lowest[name] = highest[name] = value
        times = None if file.first_time is None else (file.first_time, file.last_time)
        nulls = dict.fromkeys([*lowest, *([] if result.tally.without_time else ["timestamp"])], 0)
        statistics = _statistics(file.rows, lowest, highest, nulls, times)
        return AddAction(file.attempt, file.size, values, _now_ms(), True, statistics)

    def merge(self, target_size: int) -> dict[str, Any]:
        """Run OPTIMIZE on the Delta table. The commit repeats the previous progress."""
        from deltalake.exceptions import DeltaError

        table = self._open()
        if table is None:
            raise UsageError(
                "the directory isn't a Delta table; specify the directory that has _delta_log", self.location
            )
        number = self._number_in(table)
        said = self._commit_properties(self.progress()) if number else None
        self._place.require_plain()
        self._rows_of_files(table)
        try:
            found = table.optimize.compact(target_size=target_size, commit_properties=said)
        except (DeltaError, OSError) as error:
            if self._is_conflict(error, table):
                raise OvertakenError(self.location) from error
            raise KsegError(f"the Delta log can't be written: {_line(error)}", self.location) from error
        self._require_committed_here(None)
        return {"removed": found["numFilesRemoved"], "added": found["numFilesAdded"]}


def _add_rows(file: CopiedRows) -> Any:
    """Return the action for a file without topics and offsets, with the bounds of its whole numbers."""
    from deltalake.transaction import AddAction

    schema = file.metadata.schema.to_arrow_schema()
    names = [field.name for field in schema if pa.types.is_int64(field.type) or pa.types.is_int32(field.type)]
    bounds = {name: found for name in names if (found := bounds_of(file.metadata, name)) is not None}
    lowest, highest = ({name: pair[side] for name, pair in bounds.items()} for side in (0, 1))
    nulls = nulls_of(file.metadata, [field.name for field in schema])
    statistics = _statistics(file.metadata.num_rows, lowest, highest, nulls, None)
    return AddAction(file.name, file.size, {}, _now_ms(), True, statistics)


def _line(error: Exception) -> str:
    """Format an error from deltalake on one line, without colours and stack trace."""
    return " ".join(_COLOR.sub("", _STACK.split(str(error), maxsplit=1)[0]).split())


def _own_metadata(entry: Mapping[str, Any], where: str) -> dict[str, Any]:
    """Return the kseg metadata of a commit. The commit may have been made by any program."""
    found = entry[APPLICATION]
    if not isinstance(found, dict):
        raise KsegError(
            f"version {entry.get('version')} has export metadata that kseg didn't write; choose another destination",
            where,
        )
    return found


def _may_hold(row: Mapping[str, Any], part: RowRange) -> bool:
    """Return True if a file may have rows of a range, according to its folder and statistics."""
    if not _is_within(row, "partition", part.partition):
        return False
    topic = row.get("partition.topic", row.get("min.topic"))
    if topic is not None and row.get("partition.topic") is not None and topic != part.topic:
        return False
    lowest, highest = row.get("min.offset"), row.get("max.offset")
    return lowest is None or highest is None or (lowest < part.end and highest >= part.first)


def _is_within(row: Mapping[str, Any], name: str, value: Any) -> bool:
    folder = f"partition.{name}"
    if folder in row:
        return bool(row[folder] == value)
    lowest, highest = row.get(f"min.{name}"), row.get(f"max.{name}")
    return value is None or lowest is None or highest is None or lowest <= value <= highest


def _holds_only(row: Mapping[str, Any], part: RowRange) -> bool:
    """Return True if all rows of a file are known to be in a range."""
    for name, value in (("topic", part.topic), ("partition", part.partition)):
        if f"partition.{name}" not in row and not row.get(f"min.{name}") == row.get(f"max.{name}") == value:
            return False
    if part.partition is None and "partition.partition" not in row:
        return False
    lowest, highest = row.get("min.offset"), row.get("max.offset")
    return lowest is not None and highest is not None and part.first <= lowest and highest < part.end


def _statistics(
    rows: int,
    lowest: dict[str, Any],
    highest: dict[str, Any],
    nulls: Mapping[str, int],
    times: tuple[Any, Any] | None,
) -> str:
    """Return a file's statistics as JSON in Delta's form, without timestamps that Delta's text can't represent.

    nulls: the number of nulls in columns, as far as known; without it, Spark's connector ignores the bounds.
    """
    if times is not None:
        try:
            first, last = (_EPOCH + timedelta(microseconds=time) for time in times)
        except OverflowError:
            pass
        else:
            lowest["timestamp"], highest["timestamp"] = (
                first.isoformat(timespec="milliseconds"),
                last.isoformat(timespec="milliseconds"),
            )
    return json.dumps({"numRecords": rows, "minValues": lowest, "maxValues": highest, "nullCount": nulls})


def _now_ms() -> int:
    return int((datetime.now(UTC) - _EPOCH) / timedelta(milliseconds=1))
