"""Rows of a table's Parquet files, copied to a new one a row group at a time: without some, or of several files."""

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from kseg.errors import KsegError
from kseg.export import remote
from kseg.export.destination import Destination
from kseg.export.table_log import RowRange

Wanted = Callable[[pa.Table], pa.Table]


def without(ranges: Sequence[RowRange], topic: str | None) -> Wanted:
    """Leaves out the rows of some ranges; topic: of all the file's rows, if it has no column for it."""

    def wanted(rows: pa.Table) -> pa.Table:
        own = [part for part in ranges if topic is None or part.topic == topic]
        if not own:
            return rows
        return rows.filter(pc.invert(reduce(pc.or_, (_is_in(part, rows) for part in own))))

    return wanted


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
    place: Destination, names: Iterable[str], target: str, writing: tuple[pa.Schema, str], wanted: Wanted | None = None
) -> CopiedRows | None:
    """Copies rows of the destination's files to a new one of a schema and compression; None if no row was left.

    Raises KsegError if a file can't be read or written.
    """
    metadata: list[pq.FileMetaData] = []
    schema, compression = writing
    with place.create(target) as sink:
        writer = pq.ParquetWriter(
            sink, schema, compression=compression, write_page_index=True, metadata_collector=metadata
        )
        with writer:
            for name in names:
                for rows in _row_groups(place, name):
                    left = rows if wanted is None else wanted(rows)
                    if left.num_rows:
                        writer.write_table(left.select(schema.names).cast(schema))
        size = sink.tell()
    if metadata[0].num_rows:
        return CopiedRows(target, size, metadata[0])
    place.delete(target)
    return None


def _row_groups(place: Destination, name: str) -> Iterable[pa.Table]:
    try:
        with _opened(place, name) as file:
            for number in range(file.num_row_groups):
                yield file.read_row_group(number)
    except OSError as error:
        raise KsegError(f"can't be read: {error}", f"{place.url}/{name}") from error


def _opened(place: Destination, name: str) -> pq.ParquetFile:
    if not remote.is_remote(place.url):
        return pq.ParquetFile(f"{place.url}/{name}")
    system, root = remote.locate(place.url)
    return pq.ParquetFile(f"{root}/{name}", filesystem=system)


def bounds_of(metadata: pq.FileMetaData, name: str) -> tuple[Any, Any] | None:
    """The lowest and the highest value of a column, by the footer; None if it doesn't say."""
    lowest, highest = [], []
    index = next((i for i in range(metadata.num_columns) if metadata.schema.column(i).path == name), None)
    if index is None:
        return None
    for group in range(metadata.num_row_groups):
        statistics = metadata.row_group(group).column(index).statistics
        if statistics is None or not statistics.has_min_max:
            return None
        lowest.append(statistics.min_raw)
        highest.append(statistics.max_raw)
    return (min(lowest), max(highest)) if lowest else None
