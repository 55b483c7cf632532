"""The side table of an export: a row for each damage, beside the records that are intact."""

from collections.abc import Iterable

import pyarrow as pa
from pyarrow import csv

from kseg.export.tally import LostOffsets
from kseg.formats.names import plain_text

NAME = "_kseg/damages.csv"
"""No Parquet: whoever reads `**/*.parquet` wants the records only."""
SCHEMA = pa.schema(
    [
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("segment", pa.string()),
        pa.field("position", pa.int64()),
        pa.field("size", pa.int64()),
        pa.field("kind", pa.string()),
        pa.field("detail", pa.string()),
        pa.field("firstOffset", pa.int64()),
        pa.field("endOffset", pa.int64()),
    ]
)
"""Where a damage is, what it is, and the offsets lost to it: from the first to before the end, null if not known."""


def damage_rows(topic: str, partition: int | None, losses: Iterable[LostOffsets]) -> pa.RecordBatch:
    """A partition's damages."""
    rows = [
        (
            *(plain_text(topic), partition, plain_text(loss.segment), loss.position, loss.size),
            *(plain_text(str(loss.kind)), plain_text(loss.detail), _offset(loss.first), _offset(loss.end)),
        )
        for loss in losses
    ]
    columns = zip(*rows, strict=True) if rows else ([] for _ in SCHEMA)
    arrays = [pa.array(values, field.type) for values, field in zip(columns, SCHEMA, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)


def _offset(offset: int | None) -> int | None:
    """An offset as Kafka can have it; sums out of damaged headers may be larger."""
    return offset if offset is not None and -1 << 63 <= offset < 1 << 63 else None


def to_csv(batches: Iterable[pa.RecordBatch]) -> bytes:
    """The table as a file: a line with the columns' names, then texts in quotes, nulls empty."""
    sink = pa.BufferOutputStream()
    csv.write_csv(pa.Table.from_batches(batches, SCHEMA), sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content
