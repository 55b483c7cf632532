"""Takes rows of a table, and the bodies that belong to them, for the twin's readers."""

from collections.abc import Iterable, Iterator, Sequence
from operator import add

from kseg.formats.body import compressed_body
from kseg.formats.codes import BATCH_HEADER_SIZE, ENTRY_MINIMUM_SIZE, MAGIC_POSITION, Codec
from kseg.kernel.contract import ROW, SIZE, START, VALID, LibraryFunctions, Rows
from kseg.kernel.twin_messages import entry_pieces, read_entry
from kseg.kernel.twin_records import batch_pieces, read_batch
from kseg.kernel.twin_values import BatchValues, Piece

TakenRow = tuple[int, int, int, "bytes | None"]
"""Where a batch begins in the buffer, its size, whether its CRC holds, its decompressed body."""


class Bodies(list["bytes | None"]):
    """Bodies of consecutive rows."""

    def __init__(self, count: int) -> None:
        super().__init__([None] * count)

    def decompress(
        self, buffer: memoryview, rows: Rows, first: int, functions: LibraryFunctions, limit: int, enough: int
    ) -> tuple[int, list[tuple[int, int, int, int, int]]]:
        """Gives the rows that are left to the libraries' Python interfaces: all that are compressed."""
        last = first + len(self)
        taken = enumerate(take_rows(buffer, rows, first, last, None, -1), first)
        found = ((row, *compressed_body(buffer, start, start + size)) for row, (start, size, _, _) in taken)
        return last, [left for left in found if left[1] != Codec.NONE]


def take_rows(
    buffer: memoryview, rows: Rows, first: int, last: int, bodies: Sequence[bytes | None] | None, first_body: int
) -> Iterator[TakenRow]:
    """Rows first … last - 1 with their bodies, the first of which is row `first_body`'s; `first`'s if that is negative.

    Raises IndexError for rows that don't lie in the buffer, and where bodies are missing.
    """
    first_body = first_body if first_body >= 0 else first
    if not 0 <= first <= last <= len(rows) // ROW:
        raise IndexError("rows that aren't there")
    if bodies is not None and not first_body <= first <= last <= first_body + len(bodies):
        raise IndexError("fewer bodies than rows")
    for row in range(first, last, _ROWS_AT_ONCE):
        stop = min(row + _ROWS_AT_ONCE, last)
        starts, sizes, are_valid = (rows[row * ROW + column : stop * ROW : ROW] for column in (START, SIZE, VALID))
        if min(starts) < 0 or min(sizes) < ENTRY_MINIMUM_SIZE or max(map(add, starts, sizes)) > len(buffer):
            raise IndexError("a row outside the buffer")
        taken = _NO_BODIES if bodies is None else bodies[row - first_body : stop - first_body]
        yield from zip(starts, sizes, are_valid, taken, strict=False)


_ROWS_AT_ONCE = 64
"""Rows checked at once: a caller may come again for the next row, wherever a batch has a problem."""
_NO_BODIES = (None,) * _ROWS_AT_ONCE


def take_pieces(
    buffer: memoryview,
    rows: Rows,
    first: int,
    last: int,
    position: int,
    bodies: Sequence[bytes | None] | None,
    first_body: int,
) -> Iterator[tuple[BatchValues, Iterable[Piece]]]:
    """Rows first … last - 1 as batches with their records; `position` is the buffer's in the file."""
    for at, size, is_valid, body in take_rows(buffer, rows, first, last, bodies, first_body):
        if has_batch_header(buffer, at):
            batch = read_batch(buffer, at, size, is_valid, position + at)
            yield batch, batch_pieces(buffer, at, batch, body)
        else:
            entry, message, is_readable = read_entry(buffer[at : at + size], is_valid, position + at)
            yield entry_pieces(entry, message, is_readable, body)


def has_batch_header(buffer: memoryview, at: int) -> bool:
    """Whether the row at `at` has the header of a v2 batch.

    A size of less than that header doesn't keep Kafka from reading one, if its bytes are there.
    """
    return 2 <= buffer[at + MAGIC_POSITION] < 128 and len(buffer) - at >= BATCH_HEADER_SIZE
