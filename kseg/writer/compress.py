"""Bodies compressed as Kafka's Java classes do it; each codec's library is imported when it is used."""

import zlib
from collections.abc import Callable
from functools import cache
from importlib import import_module
from threading import get_ident
from typing import Any

from kseg.formats.codes import Codec
from kseg.writer.errors import RecordError

XERIAL_HEADER = b"\x82SNAPPY\x00" + (1).to_bytes(4, "big") + (1).to_bytes(4, "big")
"""Magic, version and least compatible version of a xerial stream."""
SNAPPY_BLOCK_SIZE = 32 << 10
LZ4_BLOCK_SIZE = 64 << 10

_GZIP_HEADER = bytes.fromhex("1f8b 08 00 00000000 00 ff")
"""Deflate, no flags, no time, unknown system: java.util.zip.GZIPOutputStream since Java 16."""
_LZ4_HEADER = bytes.fromhex("04224d18 60 40 82")
"""Version 1, independent blocks of at most 64 KiB, no checksums, no content size; and the header's checksum."""
_LZ4_HEADER_V0 = bytes.fromhex("04224d18 60 40 1a")
"""The same with the checksum that Kafka up to 0.9 needs: its hash begins at the frame's magic."""
_LZ4_STORED = 1 << 31
_LZ4_END_MARK = bytes(4)

LEVELS = {Codec.GZIP: range(1, 10), Codec.LZ4: range(1, 18), Codec.ZSTD: range(-131072, 23)}
"""Levels that Kafka's configuration accepts. Snappy has none. Source: CompressionType."""


def compress(codec: int, content: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """Compresses a body of a batch, or the entries in a wrapper.

    Args:
        codec: bits 0-2 of the attributes; not 0.
        content: the records or entries.
        magic: the batch's; v0 has another lz4 header.
        level: one of LEVELS; None for Kafka's default.

    Raises:
        RecordError: for a codec that the format doesn't have, or a level that the codec doesn't.
    """
    if codec not in _CODECS or (codec == Codec.ZSTD and magic < 2):
        raise RecordError(f"format {magic} has no codec {codec}")
    check_level(Codec(codec), level)
    if codec == Codec.LZ4:
        return _lz4(content, _LZ4_HEADER if magic else _LZ4_HEADER_V0, level)
    return _CODECS[codec](content, level)


def check_level(codec: Codec, level: int | None) -> None:
    """Raises RecordError if the codec has no such level."""
    if level is not None and level not in LEVELS.get(codec, ()):
        levels = LEVELS.get(codec)
        can_be = f"from {levels[0]} to {levels[-1]}" if levels else "not to be chosen"
        raise RecordError(f"{codec.name.lower()}: the level is {can_be}, not {level}")


def _gzip(content: bytes, level: int | None) -> bytes:
    deflate = zlib.compressobj(zlib.Z_DEFAULT_COMPRESSION if level is None else level, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(content) + deflate.flush()
    size = len(content) & 0xFFFFFFFF
    return b"".join((_GZIP_HEADER, body, zlib.crc32(content).to_bytes(4, "little"), size.to_bytes(4, "little")))


def _snappy(content: bytes, _: int | None) -> bytes:
    parts = [XERIAL_HEADER]
    for at in range(0, len(content), SNAPPY_BLOCK_SIZE):
        block = _module("snappy").compress(content[at : at + SNAPPY_BLOCK_SIZE])
        parts += (len(block).to_bytes(4, "big"), block)
    return b"".join(parts)


def _lz4(content: bytes, header: bytes, level: int | None) -> bytes:
    """Kafka's default level means the fast compressor. Source: Lz4BlockOutputStream."""
    how = {} if level is None or level == 9 else {"mode": "high_compression", "compression": level}
    parts = [header]
    for at in range(0, len(content), LZ4_BLOCK_SIZE):
        block = content[at : at + LZ4_BLOCK_SIZE]
        packed: bytes = _module("lz4.block").compress(block, store_size=False, **how)
        is_stored = len(packed) >= len(block)
        size = len(block) | _LZ4_STORED if is_stored else len(packed)
        parts += (size.to_bytes(4, "little"), block if is_stored else packed)
    parts.append(_LZ4_END_MARK)
    return b"".join(parts)


def _zstd(content: bytes, level: int | None) -> bytes:
    """As a stream, whose frame doesn't have the content's size. Source: ZstdCompression."""
    packed: bytes = _zstd_compressor(3 if level is None else level, get_ident()).compress(content)
    return packed


@cache
def _zstd_compressor(level: int, _thread: int) -> Any:
    """One per thread: they are expensive to create, and can't be shared."""
    return _module("zstandard").ZstdCompressor(level=level, write_content_size=False)


@cache
def _module(name: str) -> Any:
    return import_module(name)


_CODECS: dict[int, Callable[[bytes, int | None], bytes]] = {
    Codec.GZIP: _gzip,
    Codec.SNAPPY: _snappy,
    Codec.LZ4: lambda content, level: _lz4(content, _LZ4_HEADER, level),
    Codec.ZSTD: _zstd,
}
