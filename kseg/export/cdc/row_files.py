"""New files with rows of a table, and rows of its earlier files."""

from contextlib import ExitStack
from types import TracebackType
from typing import Any
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from kseg.export.columns.column_types import text_columns
from kseg.export.columns.unwrapped import OFFSET, PARTITION, POSITION, TIME
from kseg.export.commit.table_log import CopiedRows
from kseg.export.destination import Destination
from kseg.export.settings import FileOptions

ROWS_PER_GROUP = 1 << 18


class RowFiles:
    """A context manager for new files of a table, each of about the target size.

    files: the complete ones. A file ends when it is large enough, so that rows of several small files share one.
    """

    def __init__(self, place: Destination, run_id: str, schema: pa.Schema, options: FileOptions) -> None:
        self.files: list[CopiedRows] = []
        self._place, self._run_id, self._schema, self._options = place, run_id, schema, options
        self._stack = ExitStack()
        self._name = ""
        self._sink: Any = None
        self._writer: Any = None
        self._metadata: list[pq.FileMetaData] = []

    def __enter__(self) -> "RowFiles":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end()
        else:
            self._stack.__exit__(kind, error, trace)

    def write(self, rows: pa.Table) -> None:
        """Add rows with some of the schema's columns; the others are null."""
        for start in range(0, rows.num_rows, ROWS_PER_GROUP):
            sink, writer = self._writer_of_rows()
            writer.write_table(conform(rows.slice(start, ROWS_PER_GROUP), self._schema))
            if sink.tell() >= self._options.target_size:
                self._end()

    def _writer_of_rows(self) -> tuple[Any, Any]:
        if self._writer is None:
            self._name = f"part-rows-{self._run_id}-{len(self.files)}-{uuid4().hex[:12]}-0.parquet"
            self._metadata = []
            self._sink = self._stack.enter_context(self._place.create(self._name))
            texts = [path for each in self._schema if each.name != POSITION.name for path in text_columns(each)]
            self._writer = pq.ParquetWriter(
                self._sink,
                self._schema,
                **self._options.codec,
                use_dictionary=[PARTITION.name, *texts],  # most others differ in each row
                column_encoding={each.name: "DELTA_BINARY_PACKED" for each in (OFFSET, TIME)},
                write_page_index=True,
                metadata_collector=self._metadata,
            )
        return self._sink, self._writer

    def _end(self) -> None:
        if self._writer is not None:
            self._writer.close()
            size = self._sink.tell()
            self._stack.close()
            self.files.append(CopiedRows(self._name, size, self._metadata[0]))
            self._writer = None


def conform(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Return rows with the columns of a schema: widened, and null where they have none."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(rows.num_rows, field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
