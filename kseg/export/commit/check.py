"""The check of a commit: whether the table, as its own library opens it, holds what the report says."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError, counted
from kseg.export.commit.manifest import Key
from kseg.export.destination import Destination
from kseg.export.read.order_reader import has_gone
from kseg.export.report import PartitionReport
from kseg.export.results import Result, row_counts
from kseg.export.write.parquet import ATTEMPT, is_written_alike
from kseg.store.location import is_remote
from kseg.system.run_usage import in_threads

_ADVICE = "don't use it: export again with --overwrite, or to another place"


class TableDiffersError(KsegError):
    """A table that was just written doesn't hold what the report says, or can't be read."""

    status = 3

    def __init__(self, message: str, table: str) -> None:
        in_one_line = message.replace("\n", " ")
        super().__init__(f"{in_one_line}; {_ADVICE}", table)


@contextmanager
def opened_again(table: str) -> Iterator[None]:
    """Turns what a library says of a table that was just written into TableDiffersError."""
    try:
        yield
    except KsegError as error:
        raise TableDiffersError(f"can't be read after it was written: {error.message}", table) from error


class TableContents(NamedTuple):
    """What metadata say of a table, and footers of new files.

    has_columns: whether its columns, and those of the new files, are the export's. rows: of each new file, by its name.
    total: all rows.
    """

    has_columns: bool
    rows: Mapping[str, int]
    total: int


def read_footers(place: Destination, names: Collection[str]) -> dict[str, pq.FileMetaData]:
    """The footers of files. Raises TableDiffersError if one has gone or is none, OpenError if it can't be read."""

    def footer(name: str) -> pq.FileMetaData:
        try:
            with place.open(name) as source:
                return pq.read_metadata(source)
        except (pa.ArrowException, OSError) as error:
            raise TableDiffersError(f"{name} can't be read: {error}", place.url) from error
        except OpenError as error:
            if has_gone(error):
                raise TableDiffersError(f"{name} has gone", place.url) from error
            raise

    if is_remote(place.url):
        return dict(zip(names, in_threads(footer, names), strict=True))
    return {name: footer(name) for name in names}


def have_columns(footers: Iterable[pq.FileMetaData], schema: pa.Schema) -> bool:
    """Whether all files have the columns of an export's files. Most are alike, and looked at once."""
    kinds: list[pq.ParquetSchema] = []
    for footer in footers:
        if not any(footer.schema.equals(kind) for kind in kinds):
            kinds.append(footer.schema)
    return all(is_written_alike(schema, kind.to_arrow_schema()) for kind in kinds)


def rows_of_run(results: Iterable[Result], run_id: str) -> dict[str, int]:
    """How many rows results have in the files that a run wrote, by the names under which it wrote them."""
    return {
        name: rows
        for name, rows in row_counts(results).items()
        if (match := ATTEMPT.fullmatch(name)) and match[1] == run_id
    }


def check_contents(found: TableContents, written: Mapping[str, int], total: int | None, table: str) -> None:
    """Compares a table with what a run has written, and with all rows of the report; None: others may have added some.

    Raises TableDiffersError.
    """
    if not found.has_columns:
        raise TableDiffersError("the columns aren't those of the export", table)
    for name, rows in written.items():
        if found.rows.get(name) != rows:
            raise TableDiffersError(
                f"{name} has {found.rows.get(name, 'no')} rows, not {rows} as the report says", table
            )
    if total is not None and found.total != total:
        raise TableDiffersError(f"the table has {counted(found.total, 'row')}, not {total} as the report says", table)


def check_rows(read: Callable[[], Counter[Key]], partitions: Iterable[PartitionReport], table: str) -> None:
    """Reads all rows, and compares those of each partition with the report. Raises TableDiffersError."""
    try:
        found = read()
    except (KsegError, OSError, pa.ArrowException) as error:
        raise TableDiffersError(f"not all rows can be read: {error}", table) from error
    said: Counter[Key] = Counter()
    for part in partitions:
        said[part.topic, part.partition] += part.records_out
    for topic, partition in sorted({*found, *said}, key=lambda key: (key[0], -1 if key[1] is None else key[1])):
        rows, own = found[topic, partition], said[topic, partition]
        if rows != own:
            name = topic if partition is None else f"{topic}-{partition}"
            raise TableDiffersError(
                f"the table has {counted(rows, 'row')} of {name}, not {own} as the report says", table
            )


def count_rows(batch: pa.RecordBatch) -> Counter[Key]:
    """How many rows of each partition a batch has."""
    groups = pa.Table.from_batches([batch]).select(["topic", "partition"]).group_by(["topic", "partition"])
    counts = groups.aggregate([([], "count_all")]).to_pydict()
    keys = zip(map(str, counts["topic"]), counts["partition"], strict=True)
    return Counter(dict(zip(keys, counts["count_all"], strict=True)))
