"""Decompression of batch bodies, bounded: whatever a body claims, no more comes out than the limit.

Each codec's library is imported when a body of its kind is met.
"""

import threading
import zlib
from collections.abc import Callable, Iterator
from functools import cache, lru_cache
from importlib import import_module
from typing import Any, NamedTuple

from kseg.formats.codes import Codec
from kseg.kernel.contract import LibraryFunctions

DEFAULT_LIMIT = 1 << 30
"""Bytes that one body may become at most (`--max-decompressed`)."""
LARGEST_RATIO = 1000
"""A body may become this many times as large, and LARGEST_RATIO_FREE bytes more."""
LARGEST_RATIO_FREE = 1 << 20

UNKNOWN_CODEC = "unknown codec"
"""How the failure of a body of an unknown codec begins."""

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER_SIZE = 16
_LZ4_MAGIC = b"\x04\x22\x4d\x18"
_LZ4_INDEPENDENT_BLOCKS, _LZ4_CONTENT_SIZE = 0x20, 0x08
_LZ4_LARGEST_RATIO = 255
_SNAPPY_LARGEST_RATIO = 64
_PIECE = 1 << 16
_JOINED_AT_ONCE = 1 << 12
_GZIP_PIECES = (256, 16, 1)
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_WINDOW = 1 << 16
_GZIP_USUAL_RATIO = 16


class Body(NamedTuple):
    """What came out of a body: all of it, or what could be had and the reason why there isn't more."""

    data: bytes
    failure: str | None = None


class _BodyError(Exception):
    """A body that isn't what its codec writes, or that would become too large.

    readable: what it gave before, if that is known already.
    """

    def __init__(self, message: str, readable: bytes | None = None) -> None:
        super().__init__(message)
        self.readable = readable


def limit_for(size: int, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE) -> int:
    """Bytes that a body of `size` compressed bytes may become."""
    return min(limit, LARGEST_RATIO * size + free)


def decompress(
    codec: int, magic: int, body: memoryview, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE
) -> Body:
    """Decompresses a batch's body; never raises for what the body holds.

    Args:
        codec: bits 0-2 of the attributes; not 0.
        magic: the batch's; v0 writes lz4 frames with a wrong header checksum, and v0 and v1 know no zstd.
        body: the compressed bytes.
        limit: the largest size to accept, beside `limit_for`'s ratio.
        free: bytes that it may become whatever its size, more than the ratio allows.
    """
    if codec not in _CODECS or (codec == Codec.ZSTD and magic < 2):
        return Body(b"", f"{UNKNOWN_CODEC} {codec} in format {magic}")
    if codec == Codec.LZ4 and magic == 0:
        body = _with_right_checksum(body)
    most = limit_for(len(body), limit, free)
    whole, pieces, errors = _CODECS[codec]
    try:
        if not body:
            raise _BodyError("there are no bytes")
        return Body(whole(body, most))
    except errors() as error:
        readable = error.readable if isinstance(error, _BodyError) else None
        if readable is None:
            readable = _readable_start(pieces, errors(), body, most)
        return Body(readable, f"{Codec(codec).name.lower()}: {error}")
    except MemoryError:
        return Body(b"", f"{Codec(codec).name.lower()}: there's no memory for what comes out")


@cache
def library_functions(codecs: int) -> LibraryFunctions:
    """The functions that the kernel calls for a run of small bodies, each of which would cost much to hand to Python.

    They are those that the lz4 package's and the zstandard package's libraries export. `codecs` has bit n set for the
    codecs that are wanted.
    """
    functions: dict[str, int] = {}
    for codec, (package, module, names) in _LIBRARIES.items():
        if codecs >> codec & 1:
            functions |= zip(names, _addresses(package, module, tuple(names.values())), strict=True)
    return LibraryFunctions(**functions)


_LIBRARIES = {
    Codec.LZ4: ("lz4.block", "_block", {"lz4_decompress_safe": "LZ4_decompress_safe"}),
    Codec.ZSTD: (
        "zstandard",
        "_cffi",
        {
            "zstd_create_context": "ZSTD_createDCtx",
            "zstd_free_context": "ZSTD_freeDCtx",
            "zstd_decompress": "ZSTD_decompressDCtx",
            "zstd_decompress_bound": "ZSTD_decompressBound",
        },
    ),
}
"""Package, its module that holds the library, and the names of its functions."""


def _addresses(package: str, module: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """Where functions lie that a package's compiled module exports; zeros if it doesn't export all of them."""
    import ctypes
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(f"{package}.{module}", import_module(package).__path__)
    if spec is None or spec.origin is None:
        return (0,) * len(names)
    try:
        library = ctypes.CDLL(spec.origin)
        return tuple(ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names)
    except (OSError, AttributeError):
        return (0,) * len(names)


def _readable_start(
    pieces: Callable[[memoryview, int], Iterator[bytes]],
    errors: tuple[type[Exception], ...],
    body: memoryview,
    most: int,
) -> bytes:
    """What a damaged body gives before it fails, up to the limit."""
    try:
        return _joined(pieces(body, most), most, errors)
    except _BodyError as error:
        return error.readable or b""


def _joined(pieces: Iterator[bytes], most: int, errors: tuple[type[Exception], ...]) -> bytes:
    """All pieces; where they fail or become too many, what was had stands in the error.

    Small ones are joined by and by: as Python's objects they would take many times their size.
    """
    found: list[bytes] = []
    small: list[bytes] = []
    size = 0
    try:
        for piece in pieces:
            small.append(piece[: most - size])
            size += len(piece)
            if size > most:
                raise _too_large(most)
            if len(small) == _JOINED_AT_ONCE:
                found.append(b"".join(small))
                small.clear()
    except errors as error:
        raise _BodyError(str(error), b"".join(found + small)) from error
    return b"".join(found + small)


def _too_large(most: int, readable: bytes | None = None) -> _BodyError:
    return _BodyError(f"more than {most} bytes come out; --max-decompressed sets the limit", readable)


# --- gzip ------------------------------------------------------------------------------------------------------------


@cache
def _zlib() -> Any:
    """The inflate of isal where it is installed: two to three times zlib's speed."""
    try:
        return import_module("isal.isal_zlib")
    except ImportError:
        return zlib


def _gzip_errors() -> tuple[type[Exception], ...]:
    return (_BodyError, _zlib().error, zlib.error)


def _gunzip(body: memoryview, most: int) -> bytes:
    """Members in a row; Java takes anything else behind a member for the end."""
    usual = _GZIP_USUAL_RATIO * _GZIP_WINDOW
    at_once = min(int.from_bytes(body[-4:], "little") + 8, usual)  # what a trailer tells: memory as it is needed
    pieces: list[bytes] = []
    size = at = 0
    while at == 0 or body[at : at + 2] == _GZIP_MAGIC:
        inflate = _zlib().decompressobj(wbits=31)
        while not inflate.eof:
            window: bytes | memoryview = body[at : at + _GZIP_WINDOW]
            if not window:
                raise _BodyError("the stream ends early")
            at += len(window)
            while window and not inflate.eof and size <= most:  # at the end zlib may call what follows unconsumed too
                pieces.append(inflate.decompress(window, min(most + 1 - size, at_once)))
                size += len(pieces[-1])
                window, at_once = inflate.unconsumed_tail, usual
            if size > most:
                raise _too_large(most, b"".join(pieces)[:most])
            at -= len(inflate.unused_data)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _gunzip_pieces(body: memoryview, _: int) -> Iterator[bytes]:
    """Up to the very byte where it fails: zlib gives nothing of a piece that it can't finish."""
    yield from _inflated(zlib.decompressobj(wbits=31), body, _GZIP_PIECES)


def _inflated(inflate: Any, body: memoryview, sizes: tuple[int, ...]) -> Iterator[bytes]:
    """Pieces of the first size; the one that fails in pieces of the next, down to the last."""
    size, *smaller = sizes
    for at in range(0, len(body), size):
        piece = body[at : at + size]
        before = inflate.copy() if smaller else None
        try:
            yield inflate.decompress(piece)
        except zlib.error:
            if before is None:
                raise
            yield from _inflated(before, piece, tuple(smaller))
            return


# --- snappy ----------------------------------------------------------------------------------------------------------


@cache
def _snappy() -> Any:
    return import_module("snappy")


def _snappy_errors() -> tuple[type[Exception], ...]:
    return (_BodyError, _snappy().UncompressError, ValueError)


def _unsnap(body: memoryview, most: int) -> bytes:
    only_block = _XERIAL_HEADER_SIZE + 4
    if body[:8] == _XERIAL_MAGIC and int.from_bytes(body[only_block - 4 : only_block], "big") == len(body) - only_block:
        return _snappy_block(body[only_block:], most)
    return _joined(_unsnap_pieces(body, most), most, _snappy_errors())


def _unsnap_pieces(body: memoryview, most: int) -> Iterator[bytes]:
    """Blocks of a xerial stream, whose header may come again in the middle; or the one raw block."""
    if body[:8] != _XERIAL_MAGIC:
        yield _snappy_block(body, most)
        return
    if len(body) < _XERIAL_HEADER_SIZE:
        raise _BodyError("the header is cut")
    at = _XERIAL_HEADER_SIZE
    while at < len(body):
        if body[at : at + 8] == _XERIAL_MAGIC:
            at += _XERIAL_HEADER_SIZE
            continue
        size = int.from_bytes(body[at : at + 4], "big")
        at += 4
        if size > len(body) - at:
            raise _BodyError("the last block is cut")
        yield _snappy_block(body[at : at + size], most)
        at += size


def _snappy_block(block: memoryview, most: int) -> bytes:
    """Believes the size that stands in front of a block only as far as snappy can compress."""
    claimed = shift = 0
    for byte in block[:5]:
        claimed |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            break
    if claimed > most:
        raise _too_large(most)
    if claimed > _SNAPPY_LARGEST_RATIO * len(block):
        raise _BodyError(f"{len(block)} bytes claim to be {claimed}")
    data: bytes = _snappy().uncompress(block)
    return data


# --- lz4 -------------------------------------------------------------------------------------------------------------


@cache
def _lz4() -> Any:
    return import_module("lz4.frame")


def _lz4_errors() -> tuple[type[Exception], ...]:
    return (_BodyError, RuntimeError, ValueError, EOFError)


def _unlz4(body: memoryview, most: int) -> bytes:
    if len(body) < 7 or body[:4] != _LZ4_MAGIC:
        raise _BodyError("no frame begins here")
    if not body[4] & _LZ4_INDEPENDENT_BLOCKS:
        raise _BodyError("blocks depend on each other, which Kafka doesn't read")
    if not body[4] & _LZ4_CONTENT_SIZE and _LZ4_LARGEST_RATIO * len(body) <= most:
        whole: bytes = _lz4().decompress(body)
        return whole
    frame = _lz4().LZ4FrameDecompressor()
    data: bytes = _without_content_size(frame, body, most)
    if len(data) > most:
        raise _too_large(most, data[:most])
    if not frame.eof:
        raise _BodyError("the frame ends early")
    return data


def _without_content_size(frame: Any, body: memoryview, most: int) -> bytes:
    """Decompresses piece by piece: the library would allocate what the frame's header claims."""
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


def _unlz4_pieces(body: memoryview, _: int) -> Iterator[bytes]:
    frame = _lz4().LZ4FrameDecompressor()
    for at in range(0, len(body), 256):
        if frame.eof:
            return
        yield frame.decompress(body[at : at + 256])


def _with_right_checksum(body: memoryview) -> memoryview:
    """Kafka up to 0.9 hashed the frame's magic too, so that the checksum in v0's frame headers is wrong."""
    size = 7 + (8 if len(body) > 4 and body[4] & _LZ4_CONTENT_SIZE else 0)
    descriptor = bytes(body[: size - 1])
    if len(body) < size or descriptor[:4] != _LZ4_MAGIC:
        return body
    checksum = _header_checksum(descriptor)
    return body if checksum is None else memoryview(b"".join((descriptor, checksum, body[size:])))


@lru_cache(maxsize=64)
def _header_checksum(descriptor: bytes) -> bytes | None:
    """The one byte that the library takes for the checksum of a frame's header; None if there's none."""
    for value in range(256):
        checksum = bytes((value,))
        try:
            _lz4().get_frame_info(descriptor + checksum)
        except _lz4_errors():
            continue
        return checksum
    return None


# --- zstd ------------------------------------------------------------------------------------------------------------

_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_ZSTD_USUAL_RATIO = 8
_ZSTD_SMALL = 4096
_ZSTD_PIECE = 1024
_ZSTD_BLOCK, _ZSTD_SMALLEST_BLOCK = 1 << 17, 4

_of_thread = threading.local()


def _zstd() -> Any:
    """A thread's own decompressor: they are costly to make, and not to be shared."""
    if not hasattr(_of_thread, "zstd"):
        _of_thread.zstd = import_module("zstandard").ZstdDecompressor()
    return _of_thread.zstd


def _zstd_errors() -> tuple[type[Exception], ...]:
    return (_BodyError, import_module("zstandard").ZstdError)


def _unzstd(body: memoryview, most: int) -> bytes:
    if _zstd_frame_size(body) != len(body):
        return _unzstd_by_pieces(body, most)
    if import_module("zstandard").frame_content_size(body) > most:
        raise _too_large(most)  # the library would allocate what the header claims
    try:
        whole: bytes = _zstd().decompress(body, max_output_size=min(most, _ZSTD_USUAL_RATIO * len(body) + _ZSTD_SMALL))
    except _zstd_errors():  # an unusual ratio, or damage
        return _unzstd_by_pieces(body, most)
    return whole


def _zstd_frame_size(body: memoryview) -> int | None:
    """Bytes of the frame at the start, from its headers; None if there is no whole one. Source: RFC 8878, 3.1.1."""
    if len(body) < 6 or body[:4] != _ZSTD_MAGIC:
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


def _unzstd_by_pieces(body: memoryview, most: int) -> bytes:
    return _joined(_unzstd_pieces(body, most), most, _zstd_errors())


def _unzstd_pieces(body: memoryview, most: int) -> Iterator[bytes]:
    """Frames in a row. The input goes in bit by bit, since one block of 4 bytes can become 128 KiB."""
    at = 0
    step = min(max(most // _ZSTD_BLOCK, _ZSTD_SMALLEST_BLOCK), _ZSTD_PIECE)
    while at < len(body):
        frame = _zstd().decompressobj()
        while not frame.eof and at < len(body):
            yield frame.decompress(body[at : at + step])
            at = min(at + step, len(body)) - len(frame.unused_data)
        if not frame.eof:
            raise _BodyError("the last frame ends early")


class _Library(NamedTuple):
    whole: Callable[[memoryview, int], bytes]
    pieces: Callable[[memoryview, int], Iterator[bytes]]
    errors: Callable[[], tuple[type[Exception], ...]]


_CODECS: dict[int, _Library] = {
    Codec.GZIP: _Library(_gunzip, _gunzip_pieces, _gzip_errors),
    Codec.SNAPPY: _Library(_unsnap, _unsnap_pieces, _snappy_errors),
    Codec.LZ4: _Library(_unlz4, _unlz4_pieces, _lz4_errors),
    Codec.ZSTD: _Library(_unzstd, _unzstd_pieces, _zstd_errors),
}
