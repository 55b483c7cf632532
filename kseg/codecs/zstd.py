"""zstd bodies: frames in a row; written as a stream, whose frame doesn't have the content's size."""

import threading
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from threading import get_ident
from typing import Any

from kseg.codecs.bodies import BodyCodec, BodyError, KernelLibrary, join_pieces, too_large

_MAGIC = b"\x28\xb5\x2f\xfd"
_USUAL_RATIO = 8
_SMALL = 4096
_PIECE = 1024
_BLOCK, _SMALLEST_BLOCK = 1 << 17, 4

_of_thread = threading.local()


@cache
def _library() -> Any:
    return import_module("zstandard")


def _decompressor() -> Any:
    """Return the thread's own decompressor, which is costly to make and can't be shared."""
    if not hasattr(_of_thread, "zstd"):
        _of_thread.zstd = _library().ZstdDecompressor()
    return _of_thread.zstd


def _errors() -> tuple[type[Exception], ...]:
    return (BodyError, _library().ZstdError)


def _decompress(body: memoryview, most: int) -> bytes:
    if _frame_size(body) != len(body):
        return _decompress_by_pieces(body, most)
    if _library().frame_content_size(body) > most:
        raise too_large(most)  # the library would allocate the size that the header claims
    try:
        whole: bytes = _decompressor().decompress(body, max_output_size=min(most, _USUAL_RATIO * len(body) + _SMALL))
    except _errors():  # an unusual ratio, or damage
        return _decompress_by_pieces(body, most)
    return whole


def _frame_size(body: memoryview) -> int | None:
    """Return the size of the first frame from its headers, or None if it is incomplete. Source: RFC 8878, 3.1.1."""
    if len(body) < 6 or body[:4] != _MAGIC:
        return None
    descriptor = body[4]
    is_single_segment = descriptor >> 5 & 1
    at = 5 + (1 - is_single_segment) + (0, 1, 2, 4)[descriptor & 3]
    at += (is_single_segment, 2, 4, 8)[descriptor >> 6]
    is_last = 0
    while not is_last:
        if at + 3 > len(body):
            return None
        header = int.from_bytes(body[at : at + 3], "little")
        is_last, is_repeated = header & 1, header >> 1 & 3 == 1
        at += 3 + (1 if is_repeated else header >> 3)
    return at + (4 if descriptor & 4 else 0)


def _decompress_by_pieces(body: memoryview, most: int) -> bytes:
    return join_pieces(_decompress_pieces(body, most), most, _errors())


def _decompress_pieces(body: memoryview, most: int) -> Iterator[bytes]:
    """Yield the contents of frames in a row. The input is fed in bits, since a block of 4 bytes can become 128 KiB."""
    at = 0
    step = min(max(most // _BLOCK, _SMALLEST_BLOCK), _PIECE)
    while at < len(body):
        frame = _decompressor().decompressobj()
        while not frame.eof and at < len(body):
            yield frame.decompress(body[at : at + step])
            at = min(at + step, len(body)) - len(frame.unused_data)
        if not frame.eof:
            raise BodyError("the last frame ends early")


def _compress(content: bytes, level: int | None) -> bytes:
    """Compress as a stream, whose frame doesn't have the content's size. Source: ZstdCompression."""
    packed: bytes = _compressor(3 if level is None else level, get_ident()).compress(content)
    return packed


@cache
def _compressor(level: int, _thread: int) -> Any:
    """Return the thread's own compressor, which is costly to make and can't be shared."""
    return _library().ZstdCompressor(level=level, write_content_size=False)


CODEC = BodyCodec(
    _decompress,
    _decompress_pieces,
    _errors,
    _compress,
    levels=range(-131072, 23),
    least_magic=2,
    library=KernelLibrary(
        "zstandard",
        "_cffi",
        {
            "zstd_create_context": "ZSTD_createDCtx",
            "zstd_free_context": "ZSTD_freeDCtx",
            "zstd_decompress": "ZSTD_decompressDCtx",
            "zstd_decompress_bound": "ZSTD_decompressBound",
        },
    ),
)
