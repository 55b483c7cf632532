"""Rows of exported Parquet files, which later runs read again."""

from collections import OrderedDict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError, plural
from kseg.export.columns.flat_columns import is_decoded, with_all_columns
from kseg.export.destination import Destination
from kseg.export.results import ExportedFile
from kseg.export.settings import MIB

_OPEN_FILES = 16
"""The most files that stay open for further rows."""
_MOST_BYTES = 8 * MIB
"""Bytes of records in one read, estimated from a row group's metadata."""
_MOST_ROWS = 1 << 16
"""The most records in one read."""


class ExportedFiles:
    """A context manager for the files to read. It keeps few open, and continues reading where it stopped."""

    def __init__(self, place: Destination, schema: pa.Schema) -> None:
        self._place, self._schema = place, schema
        self._open: OrderedDict[str, _ExportedRows] = OrderedDict()

    def __enter__(self) -> "ExportedFiles":
        return self

    def __exit__(self, *_: object) -> None:
        while self._open:
            self._open.popitem()[1].close()

    def rows(self, part: ExportedFile) -> Iterator[pa.RecordBatch]:
        """Yield the rows of a part of a file. Raises KsegError if they can't be read."""
        name = part.path or part.attempt
        reader = self._open.pop(name, None) or _ExportedRows(name, self._place, self._schema)
        self._open[name] = reader
        yield from reader.rows(part.first_row, part.rows)
        if reader.is_at_end:
            self._open.pop(name).close()
        elif len(self._open) > _OPEN_FILES:
            self._open.popitem(last=False)[1].close()


class _ExportedRows:
    """A forward reader of the rows of a file."""

    def __init__(self, name: str, place: Destination, schema: pa.Schema) -> None:
        self._where = f"{place.url}/{name}"
        self._schema = schema
        self._next = 0
        self._left: pa.RecordBatch | None = None
        with ExitStack() as stack:
            source = stack.enter_context(place.open(name))
            with self._convert_errors():
                self._file = pq.ParquetFile(source, buffer_size=MIB)
            if not is_written_alike(schema, self._file.schema_arrow):
                raise KsegError(
                    "the file has other columns than this kseg writes; export again with --overwrite", self._where
                )
            self._stack = stack.pop_all()
        self._batches = self._rows_from(0)

    @contextmanager
    def _convert_errors(self) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException) as error:
            raise OpenError(f"can't be read: {error}", self._where) from error

    @property
    def is_at_end(self) -> bool:
        """True if all rows were read."""
        return bool(self._next >= self._file.metadata.num_rows)

    def close(self) -> None:
        self._stack.close()

    def rows(self, first: int, count: int) -> Iterator[pa.RecordBatch]:
        """Yield `count` rows, starting at row `first`."""
        if first != self._next:
            self._batches, self._next, self._left = self._rows_from(first), first, None
        end = first + count
        while self._next < end:
            batch = self._left
            if batch is None:
                with self._convert_errors():
                    batch = next(self._batches, None)
            if batch is None:
                raise KsegError(
                    f"the file has {plural(self._next, 'row')}, but the manifest says {end};"
                    " export again with --overwrite",
                    self._where,
                )
            taken = min(end - self._next, batch.num_rows)
            self._left = batch.slice(taken) if taken < batch.num_rows else None
            self._next += taken
            yield with_all_columns(batch.slice(0, taken), self._schema)

    def _rows_from(self, first: int) -> Iterator[pa.RecordBatch]:
        """Yield the rows from one on, to the end of the file."""
        for number in range(self._file.num_row_groups):
            group = self._file.metadata.row_group(number)
            if first >= group.num_rows:
                first -= group.num_rows
                continue
            rows = _MOST_BYTES * group.num_rows // max(group.total_byte_size, 1)
            for batch in self._file.iter_batches(min(max(rows, 1), _MOST_ROWS), row_groups=[number]):
                if first < batch.num_rows:
                    yield batch.slice(first)
                first = max(first - batch.num_rows, 0)


def is_written_alike(schema: pa.Schema, written: pa.Schema) -> bool:
    """Return True if a file's schema matches, or differs only in decoded columns, which are planned to allow this."""
    own, there = ([field for field in each if not is_decoded(field.name)] for each in (schema, written))
    return own == there and set(written.names) <= set(schema.names)
