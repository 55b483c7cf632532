"""Contents of records, by the kernel's columns: header names stay bytes, whatever they are."""

from itertools import pairwise

from kseg import kernel
from kseg.formats.codes import Codec
from kseg.kernel.contract import SIZE, VALID, new_rows
from kseg.reading.batch import Batch
from tests.kernel.runs import cut, nullable, numbers

Contents = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]
"""Timestamp, key, value, headers."""


def contents_of(batch: Batch) -> list[Contents]:
    """Return the contents of an intact batch's records."""
    rows = new_rows(1)
    rows[SIZE], rows[VALID] = batch.size, 1
    bodies = None if batch.codec == Codec.NONE else [batch.body.data]
    columns = kernel.load().columns(memoryview(batch.raw), rows, 0, 1, batch.position, bodies)
    names = cut(columns.header_key_offsets, columns.header_key_data)
    values = nullable(columns.header_value_offsets, columns.header_value_validity, columns.header_value_data)
    headers = list(zip(names, values, strict=True))
    return list(
        zip(
            numbers(columns.timestamps, "q"),
            nullable(columns.key_offsets, columns.key_validity, columns.key_data),
            nullable(columns.value_offsets, columns.value_validity, columns.value_data),
            [tuple(headers[first:last]) for first, last in pairwise(numbers(columns.header_offsets, "i"))],
            strict=True,
        )
    )
