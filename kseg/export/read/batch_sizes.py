"""Record batches of useful sizes: small ones are joined, large ones cut."""

from collections.abc import Iterator

import pyarrow as pa


def coalesce_batches(batches: Iterator[pa.RecordBatch], max_bytes: int, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the records in batches of a useful size: small ones are joined, large ones cut, by bytes and rows.

    A batch with a quarter of the bytes or rows stays unchanged, since joining copies it.
    """
    waiting: list[pa.RecordBatch] = []
    size = rows = 0
    for batch in batches:
        for piece in cut(batch, max_bytes, max_rows):
            if not waiting and (piece.num_rows * 4 >= max_rows or piece.nbytes * 4 >= max_bytes):
                yield piece
                continue
            if waiting and (size + piece.nbytes > max_bytes or rows + piece.num_rows > max_rows):
                yield _join(waiting)
                waiting, size, rows = [], 0, 0
            waiting.append(piece)
            size += piece.nbytes
            rows += piece.num_rows
    if waiting:
        yield _join(waiting)


def cut(batch: pa.RecordBatch, max_bytes: int, max_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield halves of a batch, recursively, until each fits; a single record may be larger."""
    if batch.num_rows <= 1 or (batch.nbytes <= max_bytes and batch.num_rows <= max_rows):
        yield batch
        return
    half = batch.num_rows // 2
    yield from cut(batch.slice(0, half), max_bytes, max_rows)
    yield from cut(batch.slice(half), max_bytes, max_rows)


def _join(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return batches[0] if len(batches) == 1 else pa.concat_batches(batches)
