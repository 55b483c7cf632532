"""An export as an Iceberg table, through pyiceberg. The table's metadata decides which files count.

Properties of the table have the number and the progress of kseg's last commit, set in the transaction that adds the
files. Each commit makes a snapshot whose summary has the number too, so that a rollback is detected. The library tries
a commit once: only the run can judge a conflict.
"""

import logging
import re
import sys
import warnings
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import Any
from uuid import uuid4

import pyarrow as pa

from kseg.arrow import MILLISECONDS
from kseg.errors import KsegError, SwappedError, UsageError, plural
from kseg.export.columns.flat_columns import is_decoded
from kseg.export.commit.check import TableContents, check_reopening
from kseg.export.commit.iceberg_entries import (
    data_files,
    filter_of,
    holds_only,
    may_hold,
    partition_of,
    small_files,
    values_of,
)
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.protocol import TableName
from kseg.export.commit.runs import OvertakenError
from kseg.export.commit.table_commits import TableCommits
from kseg.export.commit.table_log import (
    RowRange,
    TableChange,
    copy_rows,
    parse_progress,
    progress_text,
    without,
)
from kseg.export.destination import Destination
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.field_ids import field_ids, with_field_ids
from kseg.export.write.folders import folder_columns
from kseg.export.write.parquet import schema_of_files
from kseg.store.location import is_remote, parse_url
from kseg.system.held_directory import LinkError
from kseg.system.new_directory import Processes

NUMBER, RUN, PROGRESS = "kseg.number", "kseg.run", "kseg.progress"
CATALOG_FILE = "catalog.db"
"""The SQLite catalog, in the destination, of a table without another catalog."""
LARGEST_CATALOG = 256 << 20
"""The most bytes of the catalog and of SQLite's files next to it: kseg's own have a few KB."""
_JOURNAL, _WRITE_AHEAD_LOG = f"{CATALOG_FILE}-journal", f"{CATALOG_FILE}-wal"
_END_OF_NAME = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another file, which SQLite removes when it restores the catalog.

SQLite's own journals never end so. Source: SQLite's file format, "The Rollback Journal".
"""
_NAMES_CODE = ("py-io-impl", "write.py-location-provider.impl")
"""Properties of a table that name a module, which pyiceberg would import."""
PROPERTIES = {
    NUMBER: "0",
    "commit.manifest-merge.enabled": "true",
    "write.metadata.delete-after-commit.enabled": "true",
    "write.metadata.previous-versions-max": "10",
}
"""Properties of a new table. Each metadata file has the progress, so only a few files are kept."""
_ONCE = {"commit.retry.num-retries": "0"}
_METADATA = "metadata"
_SECOND_METADATA = f"{_METADATA}/00001-"
"""The beginning of the metadata of a table's first commit. Creating a table writes only the metadata before it."""
_FIRST_PARTITION_FIELD = 1000
_MOST_OVERTAKEN = 3
"""The number of commits by others for which kseg checks whether its own commit succeeded."""
_MOST_DIGITS = 18
"""The most digits of a commit's number, which may be anybody's: Python rejects thousands of digits."""
_CLIENT_ERRORS = (
    ("sqlalchemy.exc", "SQLAlchemyError"),
    ("thrift.Thrift", "TException"),
    ("botocore.exceptions", "BotoCoreError"),
    ("botocore.exceptions", "ClientError"),
)
"""Errors of the libraries by which pyiceberg reaches catalogs: their modules and names. REST's are OSErrors."""
_CLIENT_LOGS = ("pyiceberg", "thrift")
"""Loggers that would print lines of their own next to kseg's."""
_NOWHERE = logging.NullHandler()
_ASIDE = re.compile(r"\s*\[type=.*\]$")
_LINKS = ("For further information", "(Background on this error")


def open_commits(place: Destination, files: FileOptions, table: TableName, processes: Processes) -> TableCommits:
    """Return the commits of the table whose files are at a destination."""
    return TableCommits(place, IcebergLog(place, files, table), processes)


class IcebergLog:
    """The metadata of an Iceberg table at an export destination."""

    needs_conditions = False  # the catalog decides

    def __init__(self, place: Destination, files: FileOptions, table: TableName) -> None:
        self._place, self._files, self._table = place, files, table
        is_local = "://" not in place.url
        self._url = f"file://{place.url}" if is_local else place.url
        if table.catalog is None and not is_local:
            raise UsageError(
                "an Iceberg table in an object store needs a catalog that isn't a file; specify --catalog NAME",
                place.url,
            )
        if "." not in table.name:
            raise UsageError(f"--table {table.name} has no namespace; specify NAMESPACE.NAME")

    @contextmanager
    def _errors(self, what: str) -> Iterator[None]:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # warnings about deletions that match nothing
                yield
        except _library_errors() as error:
            raise KsegError(
                f"the Iceberg table {self._table.name} can't be {what}: {_line(error)}", self._url
            ) from error

    @cached_property
    def _catalog(self) -> Any:
        """The catalog, or None if it is the destination's and doesn't exist yet."""
        from pyiceberg.catalog import load_catalog

        from kseg.export.commit.iceberg_files import catalog_in, with_files_of

        with self._errors("found"):
            if self._table.catalog is not None:
                for name in _CLIENT_LOGS:
                    logging.getLogger(name).addHandler(_NOWHERE)
                catalog = load_catalog(self._table.catalog)
                is_stored = is_remote(self._place.url) and parse_url(self._place.url).has_buckets
                return with_files_of(self._place, self._url, catalog) if is_stored else _without_code(catalog)
            self._check_catalog_file()
            path = f"{self._place.url}/{CATALOG_FILE}"
            return catalog_in(path, self._table.file_catalog, self._url, self._place)

    def _check_catalog_file(self) -> None:
        """Raise KsegError if SQLite would change other files: it follows links, and names in a journal."""
        self._place.require_in_place()
        self._place.require_plain()
        for name in (CATALOG_FILE, _JOURNAL, _WRITE_AHEAD_LOG):
            self._place.require_alone(name)
            if (size := self._place.size(name) or 0) > LARGEST_CATALOG:
                why = (
                    f"the catalog has {plural(size, 'byte')}, more than kseg's limit of {LARGEST_CATALOG} bytes;"
                    " choose another destination"
                )
                raise KsegError(why, f"{self._place.url}/{name}")
        if (self._place.read(_JOURNAL, LARGEST_CATALOG) or b"").endswith(_END_OF_NAME):
            why = "the journal, which kseg didn't write, would make SQLite remove another file; remove the journal"
            raise KsegError(why, f"{self._place.url}/{_JOURNAL}")

    def _open(self) -> Any:
        """Return the current state of the table, or None if it doesn't exist."""
        from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError

        if self._table.catalog is None and self._place.size(CATALOG_FILE) is None:
            return None
        with self._errors("read"):
            try:
                table = self._catalog.load_table(self._table.name)
            except (NoSuchTableError, NoSuchNamespaceError):
                return None
            self._check_names(table)
        return table

    def _check_names(self, table: Any) -> None:
        """Raise KsegError if the table metadata refers to code, or to files outside of the destination."""
        from kseg.export.commit.iceberg_files import name_in

        for name in _NAMES_CODE:
            if name in table.properties:
                why = f"the table {self._table.name} has the property {name}, which names code; remove the property"
                raise KsegError(why, self._url)
        if self._table.catalog is None:
            logged = [entry.metadata_file for entry in table.metadata.metadata_log]
            for location in (*logged, *(snapshot.manifest_list for snapshot in table.snapshots())):
                name_in(location, self._url)

    def _name_of(self, file: Any) -> str:
        """Return the name of a data file. Raises KsegError if the file isn't in the destination."""
        from kseg.export.commit.iceberg_files import name_in

        return name_in(file.file_path, self._url)

    @property
    def location(self) -> str:
        """Return the newest metadata file, because a table name is meaningless without its catalog."""
        table = self._open()
        return "" if table is None else str(table.metadata_location).removeprefix("file://")

    def number(self) -> int | None:
        """Return the number in the table's property. Raises UsageError if the files are those of another table."""
        table = self._open()
        if table is None and any(name.startswith(_SECOND_METADATA) for name in self._place.names(_METADATA)):
            table = self._open()  # another run may just have created it
            if table is None:
                why = f"the destination has another table than {self._table.name}, or it is in another catalog"
                raise UsageError(f"{why}; correct --table or --catalog, or choose another destination", self._url)
        return None if table is None else self._number_in(table)

    def _number_in(self, table: Any) -> int:
        found = table.properties.get(NUMBER, "")
        if not found.isdecimal() or len(found) > _MOST_DIGITS:
            raise UsageError(
                f"the table {self._table.name} isn't an export; choose another table with --table", self._url
            )
        if table.location().rstrip("/") != self._url.rstrip("/"):
            raise UsageError(
                f"the table {self._table.name} is at {table.location()}, not here; choose another table with --table",
                self._url,
            )
        return int(found)

    def progress(self) -> Manifest:
        """Return the progress stored in the table, unless the table has been rolled back."""
        table = self._open()
        if table is None:
            raise KsegError(f"the table {self._table.name} no longer exists; run the command again", self._url)
        number = self._number_in(table)
        numbers = (_own_entry(snapshot, NUMBER) for snapshot in self._ancestors(table))
        if next((found for found in numbers if found is not None), str(number)) != str(number):
            why = f"the table {self._table.name} was rolled back, so its contents are unknown"
            raise KsegError(f"{why}; export with --overwrite, or roll the table forward", self._url)
        return parse_progress(table.properties.get(PROGRESS), number, self._url)

    def _ancestors(self, table: Any) -> Iterator[Any]:
        snapshot = table.current_snapshot()
        while snapshot is not None:
            yield snapshot
            parent = snapshot.parent_snapshot_id
            snapshot = None if parent is None else table.snapshot_by_id(parent)

    def version(self, number: int) -> str | None:
        """Return the snapshot's id."""
        table = self._open()
        with self._errors("read"):
            found = (
                [] if table is None else [each for each in table.snapshots() if _own_entry(each, NUMBER) == str(number)]
            )
        return str(found[-1].snapshot_id) if found else None

    def is_buried(self) -> bool:
        """Return False: properties stay."""
        return False

    def has_commit_of(self, run_id: str) -> bool:
        """Return True if the run made the last commit or one of the existing snapshots."""
        table = self._open()
        if table is None:
            return False
        said = (_own_entry(snapshot, RUN) for snapshot in table.snapshots())
        return table.properties.get(RUN) == run_id or run_id in said

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """Return the contents of the commit's snapshot; pyiceberg has read the footers of the files that it added."""
        number = str(manifest.number)
        with check_reopening(self._url), self._errors("read"):
            table = self._open()
            snapshots = (
                [] if table is None else [each for each in table.snapshots() if _own_entry(each, NUMBER) == number]
            )
            if not snapshots:
                return None
            own = snapshots[-1]
            new = [each for each in own.manifests(table.io) if each.added_snapshot_id == own.snapshot_id]
            entries = [entry for each in new for entry in each.fetch_manifest_entry(table.io, discard_deleted=True)]
            has_columns = self._evolve(table.transaction(), manifest.read)._apply() == table.schema()
            total = int(own.summary["total-records"])
        files = {entry.data_file.file_path.removeprefix(f"{self._url}/"): entry.data_file for entry in entries}
        rows = {name: files[name].record_count for name in names if name in files}
        return TableContents(has_columns, rows, total)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Read the rows with pyiceberg."""
        table = self._open()
        with self._errors("read"):
            yield from () if table is None else table.scan().to_arrow_batch_reader()

    def active_files(self) -> Iterator[str]:
        """Return the files of the current snapshot."""
        table = self._open()
        if table is None:
            return iter(())
        with self._errors("read"):
            tasks = list(table.scan().plan_files())
        return (self._name_of(task.file) for task in tasks)

    # --- commits -----------------------------------------------------------------------------------------------------

    def commit(self, change: TableChange) -> None:
        """Commit on top of the metadata in which kseg's last commit was found."""
        read = change.manifest.read
        table = self._open() or self._create(read)
        if self._number_in(table) != change.base:
            raise OvertakenError(self._url)
        summary = {NUMBER: str(change.manifest.number), RUN: change.manifest.run}
        columns = folder_columns(read, self._files)
        added = [(f"{self._url}/{file.attempt}", partition_of(columns, file.folder)) for _, file in change.files()]
        added += [(f"{self._url}/{file.name}", partition_of((), "")) for file in change.added]
        removed, kept = self._removals(table, change)

        def stage(transaction: Any) -> None:
            transaction.set_properties({**summary, PROGRESS: progress_text(change.manifest)})
            self._evolve(transaction, read).commit()
            if self._field_ids(transaction.table_metadata.schema(), read) != tuple(read.decode.field_ids):
                why = f"another program added columns to the table {self._table.name}"
                raise KsegError(f"{why}; run the command again", self._url)
            update = transaction.update_snapshot(snapshot_properties=summary)
            with update.overwrite() if removed else update.merge_append() as producer:
                for file in removed:
                    producer.delete_data_file(file)
                for file in data_files(table.io, transaction.table_metadata, [*kept, *added]):
                    producer.append_data_file(file)

        self._commit_once(table, stage, change.manifest.run)

    def _removals(self, table: Any, change: TableChange) -> tuple[list[Any], list[tuple[str, Any]]]:
        """Return the files to remove, and new files that contain their remaining rows."""
        if change.removed:
            return self._files_named(table, change.removed), []
        if not change.gone and not change.replaces_all:
            return [], []
        with self._errors("read"):
            tasks = list(table.scan(filter_of(change)).plan_files())
        kept = []
        for task in tasks:
            parts = [part for part in change.gone if may_hold(task.file, part, table.schema())]
            topic = dict(zip(self._files.folder_columns, values_of(task.file.partition), strict=False)).get("topic")
            is_whole = any(holds_only(task.file, part, topic, table.schema()) for part in parts)
            if change.replaces_all or is_whole:
                continue
            self._refuse_deletes(task)
            path = self._copy_rows([task.file], f"kept-{change.manifest.run}", parts, change.manifest.read)
            kept += [] if path is None else [(path, task.file.partition)]
        return [task.file for task in tasks], kept

    def _files_named(self, table: Any, names: Collection[str]) -> list[Any]:
        """Return valid files by name. Raises OvertakenError if another writer has replaced one of them."""
        with self._errors("read"):
            tasks = {self._name_of(task.file): task for task in table.scan().plan_files()}
        if not tasks.keys() >= set(names):
            raise OvertakenError(self._url)
        for name in names:
            self._refuse_deletes(tasks[name])
        return [tasks[name].file for name in names]

    def _refuse_deletes(self, task: Any) -> None:
        if task.delete_files:
            why = "has files in which another program deleted rows; let that program rewrite them"
            raise KsegError(f"the table {self._table.name} {why}", task.file.file_path)

    def _commit_once(self, table: Any, stage: Callable[[Any], None], run_id: str) -> None:
        """Commit the changes that `stage` adds to a transaction. Raises OvertakenError if others have committed."""
        if self._table.catalog is None:
            self._check_catalog_file()
        before = table.metadata_location
        table.metadata = table.metadata.model_copy(update={"properties": {**table.metadata.properties, **_ONCE}})
        try:
            with self._errors("written"):
                transaction = table.transaction()
                stage(transaction)
                transaction.commit_transaction()
            self._require_committed_here()
        except SwappedError:
            raise
        except KsegError as error:
            after = self._open()
            if self.has_commit_of(run_id):
                return  # the response was lost, but the commit succeeded
            if after is not None and after.metadata_location != before:
                raise OvertakenError(self._url) from error
            raise

    def _require_committed_here(self) -> None:
        """Raise SwappedError if SQLite has written to another catalog than the destination's."""
        if self._table.catalog is not None:
            return
        self._place.require_in_place()
        for _ in range(_MOST_OVERTAKEN):  # the catalog also has the previous location
            table = self._open()
            location = "" if table is None else str(table.metadata_location)
            with suppress(LinkError):
                files = (self._place.read(name, LARGEST_CATALOG) for name in (CATALOG_FILE, _WRITE_AHEAD_LOG))
                content = b"".join(found for found in files if found is not None)
                if location and location.encode() in content:
                    return
        raise SwappedError(f"{self._place.url}/{CATALOG_FILE}")

    def _create(self, read: ReadOptions) -> Any:
        """Create an empty table, or return the table that another run has just created."""
        from pyiceberg.exceptions import TableAlreadyExistsError
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        with self._errors("created"):
            self._catalog.create_namespace_if_not_exists(self._table.name.rpartition(".")[0])
            schema = pyarrow_to_schema(with_field_ids(read.schema()))
            try:
                return self._catalog.create_table(
                    self._table.name,
                    schema,
                    self._url,
                    partition_spec=self._partitions(schema, read),
                    sort_order=self._sort_order(schema),
                    properties=PROPERTIES,
                )
            except TableAlreadyExistsError:
                return self._catalog.load_table(self._table.name)

    def _sort_order(self, schema: Any) -> Any:
        from pyiceberg.table.sorting import UNSORTED_SORT_ORDER, NullOrder, SortField, SortOrder

        sources = [schema.find_field(name).field_id for name in self._files.sort_by]
        fields = [SortField(source, null_order=NullOrder.NULLS_LAST) for source in sources]
        return SortOrder(*fields) if fields else UNSORTED_SORT_ORDER

    def _partitions(self, schema: Any, read: ReadOptions) -> Any:
        """Return the folders as Iceberg partitions: transforms of columns, without a column of their own."""
        from pyiceberg.partitioning import PartitionField, PartitionSpec
        from pyiceberg.transforms import parse_transform

        fields = []
        for number, each in enumerate(folder_columns(read, self._files), _FIRST_PARTITION_FIELD):
            source = schema.find_field(".".join((each.source, *each.path))).field_id
            fields.append(PartitionField(source, number, parse_transform(each.iceberg_transform), each.name))
        return PartitionSpec(*fields)

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """Return the options with the table's ids, after its schema has been extended for typed columns.

        The table may have more columns. Raises UsageError if they don't fit, or if its partitions differ.
        """
        table = self._open()
        if table is None:
            return read
        refusal = UsageError(
            f"the table {self._table.name} has other columns or partitions; choose another table with --table, and"
            " another destination",
            self._url,
        )
        folders = [(field.source_id, field.transform) for field in table.spec().fields]
        names = {field.name for field in table.schema().fields}
        read = replace(read, has_milliseconds=MILLISECONDS.name in names)  # the columns stay even with --overwrite
        wanted = (name for name in read.schema().names if not (read.decode.is_flat and is_decoded(name)))
        if read.unwrap is None and not names.issuperset(wanted):
            raise refusal
        try:
            with self._errors("changed"):
                evolved = self._evolve(table.transaction(), read)._apply()
                own = self._partitions(evolved, read).fields
        except KsegError as error:
            raise refusal from error
        if folders != [(field.source_id, field.transform) for field in own]:
            raise refusal
        return replace(read, decode=replace(read.decode, field_ids=self._field_ids(evolved, read)))

    def _evolve(self, transaction: Any, read: ReadOptions) -> Any:
        """Return an update of the table schema that adds the export's new columns, by name."""
        from pyiceberg.io.pyarrow import pyarrow_to_schema

        return transaction.update_schema().union_by_name(pyarrow_to_schema(with_field_ids(read.schema())))

    def _field_ids(self, schema: Any, read: ReadOptions) -> tuple[int, ...]:
        from pyiceberg.io.pyarrow import schema_to_pyarrow

        return field_ids(read.schema(), schema_to_pyarrow(schema))

    # --- upkeep ------------------------------------------------------------------------------------------------------

    def merge(self, target_size: int) -> dict[str, Any]:
        """Merge the small files of each partition in a single commit."""
        table = self._open()
        if table is None:
            raise UsageError(
                f"the table {self._table.name} doesn't exist; specify the --table of the export", self._url
            )
        read = self.progress().read
        with self._errors("read"):
            groups = list(small_files(table.scan().plan_files(), target_size))
        run_id = uuid4().hex[:8]
        copied = ((self._copy_rows(group, f"merged-{run_id}", (), read), group[0].partition) for group in groups)
        added = [(path, partition) for path, partition in copied if path is not None]
        removed = [file for group in groups for file in group]

        def stage(transaction: Any) -> None:
            with transaction.update_snapshot(snapshot_properties={RUN: run_id}).overwrite() as overwrite:
                for file in removed:
                    overwrite.delete_data_file(file)
                for file in data_files(table.io, table.metadata, added):
                    overwrite.append_data_file(file)

        if added:
            try:
                self._commit_once(table, stage, run_id)
            except KsegError:
                for path, _ in added:
                    self._place.delete(path.removeprefix(f"{self._url}/"))
                raise
        return {"removed": len(removed), "added": len(added)}

    def _copy_rows(self, files: list[Any], stem: str, gone: Sequence[RowRange], read: ReadOptions) -> str | None:
        """Copy rows of some files to a new one, except the removed rows; return its name, or None if no row remains."""
        names = [self._name_of(file) for file in files]
        folder = names[0].rpartition("/")[0]
        target = f"{folder}/part-{stem}-0-{uuid4().hex[:12]}-0.parquet".removeprefix("/")
        writing = schema_of_files(read, self._files), self._files
        copied = copy_rows(self._place, names, target, writing, without(gone, None))
        return None if copied is None else f"{self._url}/{target}"


def _library_errors() -> tuple[type[Exception], ...]:
    """Return the errors of pyiceberg and of the libraries that it has imported for a catalog."""
    from pyiceberg import exceptions

    known = [kind for kind in vars(exceptions).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    clients = [getattr(sys.modules[module], name) for module, name in _CLIENT_ERRORS if module in sys.modules]
    # pyiceberg raises the last three for metadata of unexpected types
    return (*known, *clients, OSError, ValueError, AttributeError, LookupError, TypeError)


def _line(error: Exception) -> str:
    """Format an error from pyiceberg on one line, without SQL statements and links."""
    lines = str(getattr(error, "orig", None) or error).splitlines()
    return " ".join(_ASIDE.sub("", line).strip() for line in lines if not line.strip().startswith(_LINKS)).strip()


def _own_entry(snapshot: Any, name: str) -> str | None:
    """Return the kseg entry in a snapshot summary, or None if another program created the snapshot."""
    found: str | None = None if snapshot.summary is None else snapshot.summary.additional_properties.get(name)
    return found


def _without_code(catalog: Any) -> Any:
    """Return the catalog, changed to ignore modules that a table's properties name: anybody may have written these."""
    load = catalog._load_file_io
    catalog._load_file_io = lambda properties=(), location=None: load(
        {name: value for name, value in dict(properties).items() if name not in _NAMES_CODE}, location
    )
    return catalog
