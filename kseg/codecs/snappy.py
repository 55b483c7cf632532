"""snappy bodies: raw blocks, or streams of blocks as the xerial library writes them."""

from collections.abc import Iterator
from functools import cache
from importlib import import_module
from typing import Any

from kseg.codecs.bodies import BodyCodec, BodyError, join_pieces, too_large
from kseg.errors import plural

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
"""Magic, version and least compatible version of a xerial stream."""
_BLOCK_SIZE = 32 << 10
_LARGEST_RATIO = 64


@cache
def _snappy() -> Any:
    return import_module("snappy")


def _errors() -> tuple[type[Exception], ...]:
    return (BodyError, _snappy().UncompressError, ValueError)


def _decompress(body: memoryview, most: int) -> bytes:
    only_block = len(_XERIAL_HEADER) + 4
    if (
        body[: len(_XERIAL_MAGIC)] == _XERIAL_MAGIC
        and int.from_bytes(body[only_block - 4 : only_block], "big") == len(body) - only_block
    ):
        return _block(body[only_block:], most)
    return join_pieces(_decompress_pieces(body, most), most, _errors())


def _decompress_pieces(body: memoryview, most: int) -> Iterator[bytes]:
    """Yield blocks of a xerial stream, whose header may come again in the middle; or the one raw block."""
    if body[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        yield _block(body, most)
        return
    if len(body) < len(_XERIAL_HEADER):
        raise BodyError("the header is cut")
    at = len(_XERIAL_HEADER)
    while at < len(body):
        if body[at : at + len(_XERIAL_MAGIC)] == _XERIAL_MAGIC:
            at += len(_XERIAL_HEADER)
            continue
        size = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if size > len(body) - at:
            raise BodyError("the last block is cut")
        yield _block(body[at : at + size], most)
        at += size


def _block(block: memoryview, most: int) -> bytes:
    """Decompress a block; its claimed size is limited to what snappy can compress."""
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed > most:
        raise too_large(most)
    if claimed > _LARGEST_RATIO * len(block):
        raise BodyError(f"{plural(len(block), 'byte claims', 'bytes claim')} to decompress to {claimed}")
    data: bytes = _snappy().uncompress(block)
    return data


def _compress(content: bytes, _: int | None) -> bytes:
    parts = [_XERIAL_HEADER]
    for at in range(0, len(content), _BLOCK_SIZE):
        block = _snappy().compress(content[at : at + _BLOCK_SIZE])
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


CODEC = BodyCodec(_decompress, _decompress_pieces, _errors, _compress)
