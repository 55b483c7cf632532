"""Slices with the values of their records' headers redacted, in copies: what was read stays as it is."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kseg.bodies import Slice
from kseg.codecs import decompress
from kseg.formats.body import wrapper_value
from kseg.formats.codes import BATCH_HEADER_SIZE, CODEC_MASK, MAGIC_POSITION, Codec
from kseg.kernel.contract import ROW, SIZE, START
from kseg.log_file import Damage

if TYPE_CHECKING:
    from kseg.redaction import Redactor

_ATTRIBUTES_POSITION = 22
"""The low byte of a v2 batch's attributes."""
_LONGEST_VARINT = 10


def with_redacted_headers(
    pieces: Iterator[Slice | Damage], redactor: "Redactor", limit: int
) -> Iterator[Slice | Damage]:
    """The slices with other values in the headers of v2 records; v0 and v1 have no headers.

    limit: bytes that a body may become at most, as it was for the slices.
    """
    for piece in pieces:
        yield piece if isinstance(piece, Damage) else _redacted(piece, redactor, limit)


def _redacted(piece: Slice, redactor: "Redactor", limit: int) -> Slice:
    rows, buffer = piece.run.rows, bytearray(piece.run.buffer)
    bodies: list[bytes | None] = []
    for row in range(piece.first, piece.last):
        start = rows[row * ROW + START]
        end = start + rows[row * ROW + SIZE]
        magic = buffer[start + MAGIC_POSITION]
        codec = buffer[start + (_ATTRIBUTES_POSITION if magic >= 2 else MAGIC_POSITION + 1)] & CODEC_MASK
        if codec == Codec.NONE:
            bodies.append(None)
            if magic >= 2:
                _redact(buffer, start + BATCH_HEADER_SIZE, end, redactor)
            continue
        raw = memoryview(buffer)[start:end]
        compressed = raw[BATCH_HEADER_SIZE:] if magic >= 2 else wrapper_value(raw)
        body = bytearray(b"" if compressed is None else decompress(codec, magic, compressed, limit).data)
        del raw, compressed
        if magic >= 2:
            _redact(body, 0, len(body), redactor)
        bodies.append(bytes(body))
    run = piece.run._replace(buffer=memoryview(buffer))
    if piece.bodies is None:
        return piece._replace(run=run)
    return piece._replace(run=run, bodies=bodies)  # type: ignore[arg-type]  # a list does as well


def _redact(records: bytearray, at: int, end: int, redactor: "Redactor") -> None:
    """Replaces header values from a record on, as far as records can be read."""
    try:
        while at < end:
            length, at = _varint(records, at, end)
            following = at + length
            at = _varint_end(records, _varint_end(records, at + 1, end), end)  # behind the time and the offset
            at = _past(records, _past(records, at, end), end)
            count, at = _varint(records, at, end)
            for _ in range(count):
                at = _past(records, at, end)
                size, at = _varint(records, at, end)
                if size > 0:
                    if at + size > end:
                        return
                    records[at : at + size] = redactor.replace_bytes(bytes(records[at : at + size]))
                    at += size
            if length < 0:
                return
            at = following
    except IndexError:
        return


def _varint(records: bytearray, at: int, end: int) -> tuple[int, int]:
    """A varint and the position behind it. Raises IndexError if it goes on beyond the end."""
    stop = _varint_end(records, at, end)
    number = 0
    for place in range(stop - 1, at - 1, -1):
        number = number << 7 | records[place] & 0x7F
    return number >> 1 ^ -(number & 1), stop


def _varint_end(records: bytearray, at: int, end: int) -> int:
    for place in range(at, min(at + _LONGEST_VARINT, end)):
        if records[place] < 0x80:
            return place + 1
    raise IndexError


def _past(records: bytearray, at: int, end: int) -> int:
    """The position behind a length and as many bytes; a negative length is null."""
    size, at = _varint(records, at, end)
    return at + max(size, 0)
