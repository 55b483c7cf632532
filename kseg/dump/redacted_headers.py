"""Slices with the values of their records' headers redacted, in copies: what was read stays as it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, MAGIC_POSITION, Codec
from kseg.formats.positions import FLAGS_POSITION, RECORDS_COUNT_POSITION
from kseg.kernel.contract import ROW, SIZE, START
from kseg.reading.bodies import Slice
from kseg.reading.damage import Damage

if TYPE_CHECKING:
    from kseg.redaction import Redactor


def with_redacted_headers(pieces: Iterator[Slice | Damage], redactor: "Redactor") -> Iterator[Slice | Damage]:
    """The slices with other values in the headers of v2 records; v0 and v1 have no headers."""
    for piece in pieces:
        yield piece if isinstance(piece, Damage) else _redacted(piece, redactor)


def _redacted(piece: Slice, redactor: "Redactor") -> Slice:
    rows, buffer = piece.run.rows, bytearray(piece.run.buffer)
    replace_header_values = kernel.load().replace_header_values
    bodies: list[bytes | None] = []
    for row in range(piece.first, piece.last):
        start = rows[row * ROW + START]
        end = start + rows[row * ROW + SIZE]
        body = None if piece.bodies is None else piece.bodies[row - piece.first]
        if buffer[start + MAGIC_POSITION] >= 2 and end - start >= BATCH_HEADER_SIZE:
            count = buffer[start + RECORDS_COUNT_POSITION : start + BATCH_HEADER_SIZE]
            records = int.from_bytes(count, "big", signed=True)
            if buffer[start + FLAGS_POSITION] & CODEC_MASK == Codec.NONE:
                replace_header_values(buffer, start + BATCH_HEADER_SIZE, end, records, redactor.replace_bytes)
            elif body is not None:
                changed = bytearray(body)
                replace_header_values(changed, 0, len(changed), records, redactor.replace_bytes)
                body = bytes(changed)
        bodies.append(body)
    run = piece.run._replace(buffer=memoryview(buffer))
    if piece.bodies is None:
        return piece._replace(run=run)
    return piece._replace(run=run, bodies=bodies)  # type: ignore[arg-type]  # a list does as well
