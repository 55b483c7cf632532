"""Rows of files that an export has written, read again to be written into other files."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError
from kseg.export.decoding import COLUMNS
from kseg.export.destination import Destination
from kseg.export.parquet import OPEN_FILES
from kseg.export.result import ExportedFile
from kseg.export.settings import MIB

MOST_BYTES = 8 * MIB
"""Bytes of records that are read at once, by what a row group says of its rows."""
MOST_ROWS = 1 << 16
"""Records that are read at once."""


class ExportedFiles:
    """The files that are read; a context manager. Few are open at once, and a file is read on where it was left."""

    def __init__(self, place: Destination, schema: pa.Schema) -> None:
        self._place, self._schema = place, schema
        self._open: OrderedDict[str, _ExportedRows] = OrderedDict()

    def __enter__(self) -> "ExportedFiles":
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def rows(self, part: ExportedFile) -> Iterator[pa.RecordBatch]:
        """The rows of a part of a file. Raises KsegError if they can't be had."""
        name = part.path or part.attempt
        reader = self._open.pop(name, None) or _ExportedRows(name, self._place, self._schema)
        self._open[name] = reader
        yield from reader.rows(part.first_row, part.rows)
        if reader.is_at_end:
            self._open.pop(name).close()
        elif len(self._open) > OPEN_FILES:
            self._open.popitem(last=False)[1].close()


class _ExportedRows:
    """A file's rows, forwards."""

    def __init__(self, name: str, place: Destination, schema: pa.Schema) -> None:
        self._where = f"{place.url}/{name}"
        self._schema = schema
        self._next = 0
        self._left: pa.RecordBatch | None = None
        with ExitStack() as stack:
            source = stack.enter_context(place.open(name))
            with self._told():
                self._file = pq.ParquetFile(source, buffer_size=MIB)
            if not _has_room(schema, self._file.schema_arrow):
                raise KsegError("has other columns than this kseg writes: export again with --overwrite", self._where)
            self._stack = stack.pop_all()
        self._batches = self._from(0)

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise OpenError(f"can't be read: {error}", self._where) from error

    @property
    def is_at_end(self) -> bool:
        """Whether all rows were read."""
        return bool(self._next >= self._file.metadata.num_rows)

    def close(self) -> None:
        """Closes the file."""
        self._stack.close()

    def rows(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """So many rows from the row `first` on."""
        if first != self._next:
            self._batches, self._next, self._left = self._from(first), first, None
        end = first + count
        while self._next < end:
            batch = self._left
            if batch is None:
                with self._told():
                    batch = next(self._batches, None)
            if batch is None:
                raise KsegError(f"has {self._next} rows, not {end} as the manifest says", self._where)
            taken = min(end - self._next, batch.num_rows)
            self._left = batch.slice(taken) if taken < batch.num_rows else None
            self._next += taken
            yield batch.slice(0, taken).cast(self._schema)

    def _from(self, first: int) -> Iterator[pa.RecordBatch]:
        """The rows from one on, to the file's end."""
        for number in range(self._file.num_row_groups):
            group = self._file.metadata.row_group(number)
            if first >= group.num_rows:
                first -= group.num_rows
                continue
            rows = MOST_BYTES * group.num_rows // max(group.total_byte_size, 1)
            for batch in self._file.iter_batches(min(max(rows, 1), MOST_ROWS), row_groups=[number]):
                if first < batch.num_rows:
                    yield batch.slice(first)
                first = max(first - batch.num_rows, 0)


def _has_room(schema: pa.Schema, written: pa.Schema) -> bool:
    """Whether it is the schema of a file, or differs in decoded columns alone: they are planned with room for those."""
    pairs = zip(schema, written, strict=False)
    return schema.names == written.names and all(
        own.equals(other) or own.name in COLUMNS.values() for own, other in pairs
    )
