"""Contents of records, taken from the kernel's columns: header names stay bytes, whatever they are."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise, repeat

from kseg import kernel
from kseg.formats.codes import Codec
from kseg.kernel.contract import VALID, Appended, Buffer, Columns, RecordFilter, new_rows
from kseg.reading.batch import Batch
from kseg.reading.bodies import Slice

ALL_VALID = 0xFF


def contents_of_slice(piece: Slice, wanted: RecordFilter | None, size: int) -> Iterator[list[Appended]]:
    """Yield the contents of a slice's wanted records in lists of at most about a size in bytes."""
    run = piece.run
    columns = kernel.load().columns(
        run.buffer, run.rows, piece.first, piece.last, run.position, piece.bodies, wanted, piece.first
    )
    if not columns.count:
        return
    records = _contents(columns)
    keys, values = _int32(columns.key_offsets), _int32(columns.value_offsets)
    if keys[-1] + values[-1] <= size:
        yield records
        return
    ends = [*map(int.__add__, keys, values)]
    first = 0
    while first < columns.count:
        last = max(bisect_left(ends, ends[first] + size, first), first + 1)
        yield records[first:last]
        first = last


def contents_of_batch(batch: Batch) -> Sequence[Appended]:
    """Return the contents of an intact batch's records."""
    rows = new_rows(1)
    rows[1], rows[VALID] = batch.size, 1
    bodies = None if batch.codec == Codec.NONE else [batch.body.data]
    return _contents(kernel.load().columns(memoryview(batch.raw), rows, 0, 1, batch.position, bodies))


def _contents(columns: Columns) -> list[Appended]:
    timestamps = memoryview(columns.timestamps).cast("B").cast("q").tolist()
    keys = _texts(columns.key_offsets, columns.key_data, columns.key_validity)
    values = _texts(columns.value_offsets, columns.value_data, columns.value_validity)
    headers = _headers(columns) if columns.header_count else repeat(())
    return list(zip(timestamps, keys, values, headers, strict=False))


def _headers(columns: Columns) -> Iterator[Sequence[tuple[bytes, bytes | None]]]:
    """Yield each record's headers."""
    names = _texts(columns.header_key_offsets, columns.header_key_data, None)
    values = _texts(columns.header_value_offsets, columns.header_value_data, columns.header_value_validity)
    pairs = tuple(zip(names, values, strict=True))  # a slice equals the () of a batch without headers
    starts = _int32(columns.header_offsets)
    return map(pairs.__getitem__, map(slice, starts, starts[1:]))  # type: ignore[arg-type]


def _texts(offsets: Buffer, data: Buffer, validity: Buffer | None) -> list[bytes | None]:
    """Return the items of a column of bytes."""
    ends, content = _int32(offsets), bytes(memoryview(data))
    found: list[bytes | None] = [content[first:last] for first, last in pairwise(ends)]
    for at, bits in enumerate(() if validity is None else memoryview(validity).cast("B")):
        if bits != ALL_VALID:
            first = 8 * at
            for bit in range(min(8, len(found) - first)):
                if not bits >> bit & 1:
                    found[first + bit] = None
    return found


def _int32(buffer: Buffer) -> list[int]:
    return memoryview(buffer).cast("B").cast("i").tolist()
