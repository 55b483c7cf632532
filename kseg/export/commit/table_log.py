"""The log of a table format: commits, rows of data files, and the export's progress."""

import base64
import binascii
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.errors import KsegError
from kseg.export.columns.flat_columns import with_all_columns
from kseg.export.commit.check import TableContents
from kseg.export.commit.manifest import MOST_BYTES, Manifest, manifest_name
from kseg.export.destination import Destination
from kseg.export.results import ExportedFile, Result
from kseg.export.settings import FileOptions, ReadOptions

APPLICATION = "kseg"
"""The name of the number and the progress in a table's log."""


class RowRange(NamedTuple):
    """The records of a partition with offsets from `first` to below `end`."""

    topic: str
    partition: int | None
    first: int
    end: int


@dataclass(frozen=True, slots=True)
class TableChange:
    """A commit: added files, removed rows, and the new progress.

    base: the number of the commit before it; replaces_all: whether all earlier rows are removed. removed: files that
    `added` replace; all of these must be valid.
    """

    base: int
    manifest: Manifest
    results: tuple[Result, ...]
    gone: tuple[RowRange, ...] = ()
    replaces_all: bool = False
    removed: tuple[str, ...] = ()
    added: "tuple[CopiedRows, ...]" = ()

    def files(self) -> list[tuple[Result, ExportedFile]]:
        """Return the added files."""
        return [(result, file) for result in self.results for file in result.files]


class TableLog(Protocol):
    """A table log. All methods raise KsegError if it can't be read or written."""

    needs_conditions: bool
    """Whether only conditional writes of the destination keep two commits of the same number apart."""

    @property
    def location(self) -> str:
        """The location that readers open: the path or URL of the table, or of its newest metadata."""

    def number(self) -> int | None:
        """Return the number of the last kseg commit, 0 if there is none, or None if there is no table.

        Raises UsageError if the table isn't kseg's.
        """

    def progress(self) -> Manifest:
        """Return the progress from kseg's last commit, which has the commit's number."""

    def version(self, number: int) -> str | None:
        """Return the version of the table after kseg's commit of that number, or None if the log no longer has it."""

    def is_buried(self) -> bool:
        """Return True if so many commits follow kseg's last one that the log may soon forget it."""

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """Return the options with the ids that the table has for its columns, or will have after the commit.

        Raises UsageError if the table can't have these columns.
        """

    def commit(self, change: TableChange) -> None:
        """Commit, all or nothing. Raises OvertakenError if kseg's last commit isn't the change's base."""

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """Return the contents of the table after a manifest was committed, or None if the commit has expired.

        names: the files whose rows are wanted.
        """

    def batches(self) -> Iterable[pa.RecordBatch]:
        """Return all rows and columns of the table."""

    def active_files(self) -> Iterable[str]:
        """Return the names of the valid files, as the export chose them."""

    def has_commit_of(self, run_id: str) -> bool:
        """Return True if a run has committed, as far as the log remembers."""

    def merge(self, target_size: int) -> dict[str, Any]:
        """Join small files, and return the numbers of files `removed` and `added`.

        Raises OvertakenError, with nothing changed, if others have committed meanwhile.
        """


LEVEL = 9
"""The level of zstd: paths and names of members repeat."""


def progress_text(manifest: Manifest) -> str:
    """Return the compressed manifest. Raises KsegError if it is too large to be read back."""
    import zstandard

    compressed = zstandard.ZstdCompressor(level=LEVEL).compress(manifest.to_bytes())
    return base64.b64encode(compressed).decode("ascii")


def parse_progress(text: object, number: int, where: str) -> Manifest:
    """Return the manifest of `progress_text`; number: the one that it must have.

    Raises KsegError if it is invalid.
    """
    import zstandard

    if not isinstance(text, str):
        raise KsegError(
            "the progress in the table's log isn't text, so kseg didn't write it; choose another destination", where
        )
    try:
        compressed = base64.b64decode(text, validate=True)
        content = zstandard.ZstdDecompressor().stream_reader(compressed).read(MOST_BYTES + 1)
    except (binascii.Error, ValueError, zstandard.ZstdError) as error:
        raise KsegError("the progress in the table's log was cut or damaged", where) from error
    try:
        found = Manifest.from_bytes(content, manifest_name(number))
    except KsegError as error:
        raise KsegError(f"the progress in the table's log is invalid: {error.message}", where) from error
    if not isinstance(found, Manifest):
        raise KsegError(
            "the progress in the table's log is a stub, so kseg didn't write it; choose another destination", where
        )
    return found


Wanted = Callable[[pa.Table], pa.Table]


def without(ranges: Sequence[RowRange], topic: str | None) -> Wanted:
    """Return a filter that removes the rows of some ranges; topic: of all rows, if the file has no column for it."""

    def keep_rows(rows: pa.Table) -> pa.Table:
        own = [part for part in ranges if topic is None or part.topic == topic]
        if not own:
            return rows
        return rows.filter(pc.invert(reduce(pc.or_, (_is_in(part, rows) for part in own))))

    return keep_rows


def _is_in(part: RowRange, rows: pa.Table) -> Any:
    offsets = rows.column("offset")
    mask = pc.and_(pc.greater_equal(offsets, part.first), pc.less(offsets, part.end))
    for name, value in (("topic", part.topic), ("partition", part.partition)):
        if name in rows.column_names:
            column = rows.column(name)
            is_its = pc.is_null(column) if value is None else pc.fill_null(pc.equal(column, value), False)
            mask = pc.and_(mask, is_its)
    return mask


class CopiedRows(NamedTuple):
    """A new file: its name, its bytes, and its footer."""

    name: str
    size: int
    metadata: pq.FileMetaData


def copy_rows(
    place: Destination,
    names: Iterable[str],
    target: str,
    writing: tuple[pa.Schema, FileOptions],
    wanted: Wanted | None = None,
) -> CopiedRows | None:
    """Copy rows of the destination's files to a new one; return None if no row remains.

    writing: schema and options of the new file. Raises KsegError if a file can't be read or written.
    """
    metadata: list[pq.FileMetaData] = []
    schema, options = writing
    with place.create(target) as sink:
        writer = pq.ParquetWriter(sink, schema, **options.codec, write_page_index=True, metadata_collector=metadata)
        with writer:
            for name in names:
                for rows in _row_groups(place, name):
                    left = rows if wanted is None else wanted(rows)
                    if left.num_rows:
                        writer.write_table(with_all_columns(left, schema))
        size = sink.tell()
    if metadata[0].num_rows:
        return CopiedRows(target, size, metadata[0])
    place.delete(target)
    return None


def _row_groups(place: Destination, name: str) -> Iterable[pa.Table]:
    try:
        with place.open(name) as source:
            file = pq.ParquetFile(source)
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
    except OSError as error:
        raise KsegError(f"can't be read: {error}", f"{place.url}/{name}") from error


def bounds_of(metadata: pq.FileMetaData, name: str) -> tuple[Any, Any] | None:
    """Return the lowest and the highest value of a column, from the footer, or None if unknown."""
    found = _statistics_of(metadata, name)
    if not found or not all(each.has_min_max for each in found):
        return None
    return min(each.min_raw for each in found), max(each.max_raw for each in found)


def nulls_of(metadata: pq.FileMetaData, names: Iterable[str]) -> dict[str, int]:
    """Return the number of nulls per column according to the footer."""
    known = {name: _statistics_of(metadata, name) for name in names}
    return {
        name: sum(each.null_count for each in found)
        for name, found in known.items()
        if found and all(each.has_null_count for each in found)
    }


def _statistics_of(metadata: pq.FileMetaData, name: str) -> list[pq.Statistics]:
    """Return the footer's statistics of a column by row group; nothing if any is missing or the column is absent."""
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name), None)
    if index is None:
        return []
    found = [metadata.row_group(group).column(index).statistics for group in range(metadata.num_row_groups)]
    return [] if any(each is None for each in found) else found
