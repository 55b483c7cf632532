"""Arrow batches with keys, values or headers redacted."""

import pyarrow as pa
import pyarrow.compute as pc

from kseg.arrow import HEADERS
from kseg.redaction import Redaction

_AT_ONCE = 1 << 16
"""Contents whose places are looked up at once."""


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
        """Other bytes in the place of the same number; nothing is made of those that are empty or null."""
        validity, offsets, content = column.buffers()
        if content is None:
            return column
        changed, ends = bytearray(content), memoryview(offsets).cast("i")
        filled = pc.indices_nonzero(pc.fill_null(pc.binary_length(column), 0))
        for at in range(0, len(filled), _AT_ONCE):
            for place in filled.slice(at, _AT_ONCE).to_pylist():
                start, end = ends[column.offset + place], ends[column.offset + place + 1]
                changed[start:end] = self._redactor.replace_bytes(bytes(changed[start:end]))
        buffers = [validity, offsets, pa.py_buffer(changed)]
        return pa.Array.from_buffers(column.type, len(column), buffers, offset=column.offset)

    def _headers(self, column: pa.Array) -> pa.Array:
        """As pairs: header names stay."""
        pairs = column.values
        values = self._binary(pairs.field("value"))
        changed = pa.StructArray.from_arrays([pairs.field("key"), values], fields=list(HEADERS.value_type))
        buffers = column.buffers()[:2]
        return pa.Array.from_buffers(HEADERS, len(column), buffers, offset=column.offset, children=[changed])
