"""Arrow batches with keys, values or headers redacted."""

import pyarrow as pa

from kseg.arrow import HEADERS
from kseg.redaction import Redaction


class BatchRedactor:
    """Replaces the contents of record batches; control records, where they are wanted, too."""

    def __init__(self, redaction: Redaction) -> None:
        self._parts = redaction.parts
        self._redactor = redaction.redactor()

    def redact(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The same batch with other contents of the same length; of headers the values."""
        for part, name in (("keys", "key"), ("values", "value"), ("headers", "headers")):
            place = batch.schema.get_field_index(name)
            if part in self._parts and place >= 0:
                column = self._headers(batch.column(place)) if part == "headers" else self._binary(batch.column(place))
                batch = batch.set_column(place, batch.schema.field(place), column)
        return batch

    def _binary(self, column: pa.Array) -> pa.Array:
        return pa.array(map(self._redactor.replace, column.to_pylist()), pa.binary())

    def _headers(self, column: pa.Array) -> pa.Array:
        """As pairs: header names stay."""
        return pa.array(
            [
                [{"key": header["key"], "value": self._redactor.replace(header["value"])} for header in headers]
                for headers in column.to_pylist()
            ],
            HEADERS,
        )
