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
        """Other bytes in the place of the same number, made once for each content however often it comes."""
        contents = column.dictionary_encode()
        replaced = list(map(self._redactor.replace, contents.dictionary.to_pylist()))
        return pa.array(replaced, column.type).take(contents.indices)

    def _headers(self, column: pa.Array) -> pa.Array:
        """As pairs: header names stay."""
        pairs = column.values
        values = self._binary(pairs.field("value"))
        changed = pa.StructArray.from_arrays([pairs.field("key"), values], fields=list(HEADERS.value_type))
        buffers = column.buffers()[:2]
        return pa.Array.from_buffers(HEADERS, len(column), buffers, offset=column.offset, children=[changed])
