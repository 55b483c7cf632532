"""gzip bodies: inflated by isal or zlib, deflated with Java's header."""

import zlib
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import Any

from kseg.codecs.bodies import BodyCodec, BodyError, too_large

_MAGIC = b"\x1f\x8b"
_HEADER = _MAGIC + bytes.fromhex("08 00 00000000 00 ff")
"""Deflate, no flags, no time, unknown system: java.util.zip.GZIPOutputStream since Java 16."""
_PIECES = (256, 16, 1)
_WINDOW = 1 << 16
_USUAL_RATIO = 16


@cache
def _zlib() -> Any:
    """Return isal's inflate if it is installed: two to three times as fast as zlib's."""
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _errors() -> tuple[type[Exception], ...]:
    return (BodyError, _zlib().error, zlib.error)


def _decompress(body: memoryview, most: int) -> bytes:
    """Decompress consecutive members; as in Java, anything else after a member is the end."""
    usual = _USUAL_RATIO * _WINDOW
    at_once = min(int.from_bytes(body[-4:], "little") + 8, usual)  # by the trailer: memory as needed
    content = BytesIO()  # returns its bytes without another copy
    at = 0
    while at == 0 or body[at : at + 2] == _MAGIC:
        inflate = _zlib().decompressobj(wbits=31)
        while not inflate.eof:
            window: bytes | memoryview = body[at : at + _WINDOW]
            if not window:
                raise BodyError("the stream ends early")
            at += len(window)
            # At the end, zlib may also count the following bytes as unconsumed.
            while window and not inflate.eof and content.tell() <= most:
                content.write(inflate.decompress(window, min(most + 1 - content.tell(), at_once)))
                window, at_once = inflate.unconsumed_tail, usual
            if content.tell() > most:
                content.truncate(most)
                raise too_large(most, content.getvalue())
            at -= len(inflate.unused_data)
    return content.getvalue()


def _decompress_pieces(body: memoryview, _: int) -> Iterator[bytes]:
    """Decompress up to the exact byte of the failure: zlib returns nothing of a piece that it can't finish."""
    yield from _inflate(zlib.decompressobj(wbits=31), body, _PIECES)


def _inflate(inflate: Any, body: memoryview, sizes: tuple[int, ...]) -> Iterator[bytes]:
    """Inflate in pieces of the first size; repeat a failing piece with the next size, down to the last."""
    size, *smaller = sizes
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        before = inflate.copy() if smaller else None
        try:
            yield inflate.decompress(piece)
        except zlib.error:
            if before is None:
                raise
            yield from _inflate(before, piece, tuple(smaller))
            return


def _compress(content: bytes, level: int | None) -> bytes:
    deflate = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(content) + deflate.flush()
    size = len(content) & 0xFFFFFFFF
    return b"".join((_HEADER, body, zlib.crc32(content).to_bytes(4, "little"), size.to_bytes(4, "little")))


CODEC = BodyCodec(_decompress, _decompress_pieces, _errors, _compress, levels=range(1, 10))
