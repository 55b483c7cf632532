"""The check of a commit: its format's library opens the table, whose rows must match the report."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError, plural
from kseg.export.commit.manifest import Key
from kseg.export.destination import Destination
from kseg.export.read.ranges import has_gone
from kseg.export.report import PartitionReport
from kseg.export.results import Result, row_counts
from kseg.export.write.exported_rows import is_written_alike
from kseg.export.write.parquet import ATTEMPT
from kseg.store.location import is_remote
from kseg.system.run_usage import in_threads

_ADVICE = "don't use the table; export again with --overwrite, or to another destination"


class TableDiffersError(KsegError):
    """The error of a newly written table that differs from the report or can't be read."""

    status = 3

    def __init__(self, message: str, table: str) -> None:
        in_one_line = message.replace("\n", " ")
        super().__init__(f"{in_one_line}; {_ADVICE}", table)


@contextmanager
def check_reopening(table: str) -> Iterator[None]:
    """Turn a library's errors about a newly written table into TableDiffersError."""
    try:
        yield
    except KsegError as error:
        raise TableDiffersError(f"the table can't be read after it was written: {error.message}", table) from error


class TableContents(NamedTuple):
    """The contents of a table according to its metadata, and to the footers of new files.

    has_columns: whether the columns of the table and of the new files match the export's. rows: of each new file, by
    name. total: all rows.
    """

    has_columns: bool
    rows: Mapping[str, int]
    total: int


def read_footers(place: Destination, names: Collection[str]) -> dict[str, pq.FileMetaData]:
    """Return the footers of files.

    Raises TableDiffersError if a file is missing or isn't Parquet, OpenError if it can't be read.
    """

    def footer(name: str) -> pq.FileMetaData:
        try:
            with place.open(name) as source:
                return pq.read_metadata(source)
        except (pa.ArrowException, OSError) as error:
            raise TableDiffersError(f"{name} can't be read: {error}", place.url) from error
        except OpenError as error:
            if has_gone(error):
                raise TableDiffersError(f"{name} is missing", place.url) from error
            raise

    if is_remote(place.url):
        return dict(zip(names, in_threads(footer, names), strict=True))
    return {name: footer(name) for name in names}


def have_columns(footers: Iterable[pq.FileMetaData], schema: pa.Schema) -> bool:
    """Return True if all files have an export's columns. Equal schemas are compared once."""
    kinds: list[pq.ParquetSchema] = []
    for footer in footers:
        if not any(footer.schema.equals(kind) for kind in kinds):
            kinds.append(footer.schema)
    return all(is_written_alike(schema, own := kind.to_arrow_schema()) and own.names == schema.names for kind in kinds)


def rows_of_run(results: Iterable[Result], run_id: str) -> dict[str, int]:
    """Return the number of rows in every file that a run has written."""
    return {
        name: rows
        for name, rows in row_counts(results).items()
        if (match := ATTEMPT.fullmatch(name)) and match[1] == run_id
    }


def check_contents(found: TableContents, written: Mapping[str, int], total: int | None, table: str) -> None:
    """Compare a table with the files of a run, and with the report's total, or None if others may have added rows.

    Raises TableDiffersError.
    """
    if not found.has_columns:
        raise TableDiffersError("the table has other columns than the export", table)
    for name, rows in written.items():
        if found.rows.get(name) != rows:
            raise TableDiffersError(f"{name} has {found.rows.get(name, 'no')} rows, but the report says {rows}", table)
    if total is not None and found.total != total:
        raise TableDiffersError(f"the table has {plural(found.total, 'row')}, but the report says {total}", table)


def check_rows(read: Callable[[], Counter[Key]], partitions: Iterable[PartitionReport], table: str) -> None:
    """Read all rows and compare the number of rows per partition with the report. Raises TableDiffersError."""
    try:
        found = read()
    except (KsegError, OSError, pa.ArrowException) as error:
        raise TableDiffersError(f"some rows can't be read: {error}", table) from error
    said: Counter[Key] = Counter()
    for part in partitions:
        said[part.topic, part.partition] += part.records_out
    for topic, partition in sorted({*found, *said}, key=lambda key: (key[0], -1 if key[1] is None else key[1])):
        rows, own = found[topic, partition], said[topic, partition]
        if rows != own:
            name = topic if partition is None else f"{topic}-{partition}"
            raise TableDiffersError(f"the table has {plural(rows, 'row')} of {name}, but the report says {own}", table)


def count_rows(batch: pa.RecordBatch) -> Counter[Key]:
    """Count the rows of each partition in a batch."""
    groups = pa.Table.from_batches([batch]).select(["topic", "partition"]).group_by(["topic", "partition"])
    counts = groups.aggregate([([], "count_all")]).to_pydict()
    keys = zip(map(str, counts["topic"]), counts["partition"], strict=True)
    return Counter(dict(zip(keys, counts["count_all"], strict=True)))
