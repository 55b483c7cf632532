"""Slices with the values of their records' headers redacted, in copies: what was read stays as it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kseg import kernel
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.kernel.contract import ROW, SIZE, START
from kseg.reading.bodies import Slice
from kseg.reading.damage import Damage
from kseg.reading.header import parse_header

if TYPE_CHECKING:
    from kseg.redaction import Redaction, Redactor


def redacted_slices(pieces: Iterator[Slice | Damage], redaction: "Redaction | None") -> Iterator[Slice | Damage]:
    """The slices with other values in the headers of v2 records, if that is asked for; v0 and v1 have no headers.

    Keys and values are replaced while records are shown, by `RedactingDecoder`: messages of v0 and v1 have CRCs of
    their own, which are shown as they stand in the log.
    """
    if redaction is None or "headers" not in redaction.parts:
        yield from pieces
        return
    redactor = redaction.redactor()
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
        header = parse_header(buffer, start, 0) if end - start >= BATCH_HEADER_SIZE else None
        if header is not None and not header.is_legacy:
            records = header.records_count or 0
            if header.codec == Codec.NONE:
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
