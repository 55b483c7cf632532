"""What DuckDB takes for a pyarrow data set: it asks for the columns that it needs, and for the rows that it wants."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds

from kseg.export.filter_bounds import Condition
from kseg.query.query_log import QueryLog

OpenScan = Callable[[Sequence[str], Condition | None], Iterator[pa.RecordBatch]]
"""Begins to read: the names of columns, and a condition that exactly the wanted rows fulfil."""


class DuckdbSource(ds.Dataset):
    """A table. DuckDB doesn't look at its rows once more: the condition is ours to apply."""

    def __init__(self, schema: pa.Schema, open_scan: OpenScan, log: QueryLog) -> None:
        """Takes the columns, what reads them, and where errors are kept."""
        self._schema = schema
        self._open_scan = open_scan
        self._log = log

    @property
    def schema(self) -> pa.Schema:
        """The columns."""
        return self._schema

    def scanner(self, columns: Sequence[str] | None = None, filter: Condition | None = None, **_: Any) -> "_Scanner":  # noqa: A002  pyarrow's name
        """The rows that a query asks for; called once for each place of the query that names the table."""
        names = self._schema.names if columns is None else list(columns)
        return _Scanner(pa.schema([self._schema.field(name) for name in names]), self._batches(names, filter))

    def _batches(self, names: Sequence[str], condition: Condition | None) -> Iterator[pa.RecordBatch]:
        try:
            yield from self._open_scan(names, condition)
        except Exception as error:  # DuckDB gives only its text: the session raises it itself
            self._log.failure = error
            raise


class _Scanner:
    """All that DuckDB wants of a pyarrow Scanner."""

    def __init__(self, schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> None:
        self._schema = schema
        self._batches = batches

    def to_reader(self) -> pa.RecordBatchReader:
        """The rows as a stream."""
        return pa.RecordBatchReader.from_batches(self._schema, self._batches)
