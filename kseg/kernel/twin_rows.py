"""Takes rows of a table, and the bodies that belong to them, for the twin's readers."""

from collections.abc import Iterator, Sequence
from itertools import islice, repeat
from operator import add

from kseg.formats.codes import BATCH_HEADER_SIZE, MAGIC_POSITION
from kseg.kernel.contract import ROW, SIZE, START, VALID, Rows
from kseg.kernel.twin_values import ENTRY_MINIMUM_SIZE

TakenRow = tuple[int, int, int, "bytes | None"]
"""Where a batch begins in the buffer, its size, whether its CRC holds, its decompressed body."""


class Bodies(list["bytes | None"]):
    """Bodies of consecutive rows."""

    def __init__(self, count: int) -> None:
        super().__init__([None] * count)

    def unlz4(self, buffer: memoryview, rows: Rows, first: int, function: int) -> list[int]:
        """Gives the rows that are left to the library's own interface: all of them."""
        return list(range(first, first + len(self)))


def take_rows(
    buffer: memoryview, rows: Rows, first: int, last: int, bodies: Sequence[bytes | None] | None, first_body: int
) -> Iterator[TakenRow]:
    """Rows first … last - 1 with their bodies, the first of which is row `first_body`'s; `first`'s if that is negative.

    Raises IndexError for rows that don't lie in the buffer, and where bodies are missing.
    """
    if not 0 <= first <= last <= len(rows) // ROW:
        raise IndexError("rows that aren't there")
    starts, sizes, are_valid = (rows[first * ROW + column : last * ROW : ROW] for column in (START, SIZE, VALID))
    if first < last and (
        min(starts) < 0 or min(sizes) < ENTRY_MINIMUM_SIZE or max(map(add, starts, sizes)) > len(buffer)
    ):
        raise IndexError("a row outside the buffer")
    skipped = first - first_body if first_body >= 0 else 0
    if bodies is None:
        return zip(starts, sizes, are_valid, repeat(None))
    if not 0 <= skipped <= len(bodies) - (last - first):
        raise IndexError("fewer bodies than rows")
    return zip(starts, sizes, are_valid, islice(bodies, skipped, None), strict=False)


def has_batch_header(buffer: memoryview, at: int) -> bool:
    """Whether the row at `at` has the header of a v2 batch.

    A size of less than that header doesn't keep Kafka from reading one, if its bytes are there.
    """
    return 2 <= buffer[at + MAGIC_POSITION] < 128 and len(buffer) - at >= BATCH_HEADER_SIZE
