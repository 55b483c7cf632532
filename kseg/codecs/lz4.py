"""lz4 bodies: frames of independent blocks; in format 0 with the header checksum of Kafka up to 0.9."""

from collections.abc import Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from kseg.codecs.bodies import BodyCodec, BodyError, KernelLibrary, too_large

_MAGIC = b"\x04\x22\x4d\x18"
_HEADER = _MAGIC + bytes.fromhex("60 40 82")
"""Version 1, independent blocks of at most 64 KiB, no checksums, no content size; and the header's checksum."""
_HEADER_V0 = _MAGIC + bytes.fromhex("60 40 1a")
"""The same with the checksum of Kafka up to 0.9, whose hash begins at the frame's magic."""
_INDEPENDENT_BLOCKS, _CONTENT_SIZE = 0x20, 0x08
_BLOCK_SIZE = 64 << 10
_STORED = 1 << 31
_END_MARK = bytes(4)
_LARGEST_RATIO = 255
_PIECE = 1 << 16


@cache
def _library(name: str) -> Any:
    return import_module(name)


def _errors() -> tuple[type[Exception], ...]:
    return (BodyError, RuntimeError, ValueError, EOFError)


def _decompress(body: memoryview, most: int) -> bytes:
    if len(body) < 7 or body[:4] != _MAGIC:
        raise BodyError("no frame begins here")
    if not body[4] & _INDEPENDENT_BLOCKS:
        raise BodyError("its blocks depend on each other, which Kafka can't read")
    if not body[4] & _CONTENT_SIZE and _LARGEST_RATIO * len(body) <= most:
        whole: bytes = _library("lz4.frame").decompress(body)
        return whole
    frame = _library("lz4.frame").LZ4FrameDecompressor()
    data: bytes = _without_content_size(frame, body, most)
    if len(data) > most:
        raise too_large(most, data[:most])
    if not frame.eof:
        raise BodyError("the frame ends early")
    return data


def _without_content_size(frame: Any, body: memoryview, most: int) -> bytes:
    """Decompress piece by piece: the library would allocate the size that the frame header claims."""
    pieces, size = [], 0
    rest: bytes | memoryview = body
    while size <= most and not frame.eof:
        piece = frame.decompress(rest, max_length=min(_PIECE * 16, most + 1 - size))
        if not piece and frame.needs_input:
            break
        pieces.append(piece)
        size += len(piece)
        rest = b""
    return b"".join(pieces)


def _decompress_pieces(body: memoryview, _: int) -> Iterator[bytes]:
    frame = _library("lz4.frame").LZ4FrameDecompressor()
    for at in range(0, len(body), 256):
        if frame.eof:
            return
        yield frame.decompress(body[at : at + 256])


def right_checksum(body: bytes | memoryview) -> tuple[int, bytes] | None:
    """Return position and right value of the checksum in a body's frame header, or None if it has no such header.

    Kafka up to 0.9 hashed the frame's magic too, so that the checksum in v0's frame headers is wrong.
    """
    position = 6 + (8 if len(body) > 4 and body[4] & _CONTENT_SIZE else 0)
    descriptor = bytes(body[:position])
    if len(body) <= position or descriptor[:4] != _MAGIC:
        return None
    checksum = _header_checksum(descriptor)
    return None if checksum is None else (position, checksum)


def _with_right_checksum(body: memoryview) -> memoryview:
    found = right_checksum(body)
    if found is None:
        return body
    position, checksum = found
    return memoryview(b"".join((body[:position], checksum, body[position + 1 :])))


@lru_cache(maxsize=64)
def _header_checksum(descriptor: bytes) -> bytes | None:
    """Return the header checksum (one byte) that the library accepts for a frame, or None if it doesn't exist."""
    for value in range(256):
        checksum = bytes((value,))
        try:
            _library("lz4.frame").get_frame_info(descriptor + checksum)
        except _errors():
            continue
        return checksum
    return None


def _compress_frame(content: bytes, header: bytes, level: int | None) -> bytes:
    """Compress into a frame. At its default level, Kafka uses the fast compressor. Source: Lz4BlockOutputStream."""
    how = {} if level is None or level == 9 else {"mode": "high_compression", "compression": level}
    parts = [header]
    for at in range(0, len(content), _BLOCK_SIZE):
        block = content[at : at + _BLOCK_SIZE]
        packed: bytes = _library("lz4.block").compress(block, store_size=False, **how)
        is_stored = len(packed) >= len(block)
        size = len(block) | _STORED if is_stored else len(packed)
        parts += (size.to_bytes(4, "little"), block if is_stored else packed)
    parts.append(_END_MARK)
    return b"".join(parts)


def _compress(content: bytes, level: int | None) -> bytes:
    return _compress_frame(content, _HEADER, level)


def _decompress_v0(body: memoryview, most: int) -> bytes:
    return _decompress(_with_right_checksum(body), most)


def _decompress_pieces_v0(body: memoryview, most: int) -> Iterator[bytes]:
    return _decompress_pieces(_with_right_checksum(body), most)


def _compress_v0(content: bytes, level: int | None) -> bytes:
    return _compress_frame(content, _HEADER_V0, level)


_LEVELS = range(1, 18)

CODEC = BodyCodec(
    _decompress,
    _decompress_pieces,
    _errors,
    _compress,
    levels=_LEVELS,
    v0=BodyCodec(_decompress_v0, _decompress_pieces_v0, _errors, _compress_v0, levels=_LEVELS),
    library=KernelLibrary("lz4.block", "_block", {"lz4_decompress_safe": "LZ4_decompress_safe"}),
)
