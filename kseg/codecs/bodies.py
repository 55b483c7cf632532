"""Bodies of batches, compressed and decompressed within limits; a codec is imported at its first use."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from io import BytesIO
from typing import NamedTuple

from kseg.codecs.limits import DEFAULT_LIMIT, LARGEST_RATIO_FREE, limit_for
from kseg.errors import RecordError
from kseg.formats.codes import Codec, codec_name
from kseg.kernel.entry_points import LibraryFunctions


class KernelLibrary(NamedTuple):
    """Functions of a codec's library that the kernel calls directly.

    package, module: the compiled library. functions: fields of LibraryFunctions to the library's names.
    """

    package: str
    module: str
    functions: Mapping[str, str]


class BodyCodec(NamedTuple):
    """A codec; its library is imported when one of its functions is called.

    decompress: a body to its content. Takes the most bytes of the result, raises one of `errors`.
    decompress_pieces: the same piece by piece, which returns the bytes before a damage.
    errors: the exceptions of both.
    compress: content to a body as Kafka's Java classes write it; takes one of `levels`, or None for Kafka's default.
    levels: Kafka's configurable ones; None if it has none. Source: CompressionType.
    least_magic: the oldest format that has the codec.
    v0: the differences in format 0, if there are any.
    library: the functions for the kernel, if the library exports C functions.
    """

    decompress: Callable[[memoryview, int], bytes]
    decompress_pieces: Callable[[memoryview, int], Iterator[bytes]]
    errors: Callable[[], tuple[type[Exception], ...]]
    compress: Callable[[bytes, int | None], bytes]
    levels: range | None = None
    least_magic: int = 0
    v0: "BodyCodec | None" = None
    library: KernelLibrary | None = None


class BodyError(Exception):
    """A body doesn't have its codec's form, or would become too large.

    readable: the bytes decompressed before, if known.
    """

    def __init__(self, message: str, readable: bytes | None = None) -> None:
        super().__init__(message)
        self.readable = readable


def join_pieces(pieces: Iterator[bytes], most: int, errors: tuple[type[Exception], ...]) -> bytes:
    """Join the pieces. If they fail or become too many, the BodyError has the bytes so far."""
    content = BytesIO()  # returns its bytes without another copy
    try:
        for piece in pieces:
            left = most - content.tell()
            content.write(piece[:left])
            if len(piece) > left:
                raise too_large(most)
    except errors as error:
        raise BodyError(str(error), content.getvalue()) from error
    return content.getvalue()


def too_large(most: int, readable: bytes | None = None) -> BodyError:
    """Return the error of a body that becomes larger than `most` bytes."""
    return BodyError(f"the decompressed size is more than {most} bytes; raise --max-decompressed to read it", readable)


def exported_addresses(path: str | None, names: Sequence[str]) -> tuple[int, ...]:
    """Return the addresses of functions that a compiled module, or its library, exports; zeros if one is missing."""
    if path is None:
        return (0,) * len(names)
    import ctypes

    try:
        library = ctypes.CDLL(path)
        return tuple(ctypes.cast(library[name], ctypes.c_void_p).value or 0 for name in names)
    except (OSError, AttributeError):
        return (0,) * len(names)


UNKNOWN_CODEC = "unknown codec"
"""The beginning of the reason if a body's codec is unknown."""


class Body(NamedTuple):
    """The content of a body; if it is incomplete, with the reason."""

    data: bytes
    failure: str | None = None


@cache
def body_codec(codec: int, magic: int) -> BodyCodec | None:
    """Return the codec of a body in a format, or None if that format doesn't have the codec."""
    if codec == Codec.NONE or codec not in set(Codec):
        return None
    found: BodyCodec = import_module(f"kseg.codecs.{codec_name(codec)}").CODEC
    if magic < found.least_magic:
        return None
    return found.v0 or found if magic == 0 else found


WITHOUT_REASON = "these bytes can't be decompressed"
"""The reason for a library's error without text."""


def decompress(
    codec: int, magic: int, body: memoryview, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE
) -> Body:
    """Decompress a batch's body; never raises for the contents of the body.

    Args:
        codec: bits 0-2 of the attributes; not 0.
        magic: the batch's.
        body: the compressed bytes.
        limit: the largest size to accept, in addition to `limit_for`'s ratio.
        free: bytes allowed in addition to the ratio, whatever the body's size.
    """
    known = body_codec(codec, magic)
    if known is None:
        return Body(b"", f"{UNKNOWN_CODEC} {codec} in format {magic}")
    most = limit_for(len(body), limit, free)
    try:
        if not body:
            raise BodyError("there are no bytes")
        return Body(known.decompress(body, most))
    except known.errors() as error:
        readable = error.readable if isinstance(error, BodyError) else None
        if readable is None:
            readable = _readable_start(known, body, most)
        return Body(readable, f"{codec_name(codec)}: {str(error) or WITHOUT_REASON}")
    except MemoryError:
        return Body(b"", f"{codec_name(codec)}: there isn't enough memory for the decompressed bytes")


def _readable_start(codec: BodyCodec, body: memoryview, most: int) -> bytes:
    """Return the bytes of a damaged body before the damage, up to the limit."""
    try:
        return join_pieces(codec.decompress_pieces(body, most), most, codec.errors())
    except BodyError as error:
        return error.readable or b""


def compress(codec: int, content: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """Compress a body of a batch, or the entries in a wrapper.

    Args:
        codec: bits 0-2 of the attributes; not 0.
        content: the records or entries.
        magic: the batch's; v0 has another lz4 header.
        level: one of the codec's levels; None for Kafka's default.

    Raises:
        RecordError: for a codec that the format doesn't have, or a level that the codec doesn't.
    """
    known = body_codec(codec, magic)
    if known is None:
        raise RecordError(f"format {magic} has no codec {codec}")
    check_level(codec, level)
    return known.compress(content, level)


def check_level(codec: int, level: int | None) -> None:
    """Raise RecordError if the codec has no such level."""
    known = body_codec(codec, 2)
    levels = None if known is None else known.levels
    if level is not None and (levels is None or level not in levels):
        can_be = f"specify one from {levels[0]} to {levels[-1]}" if levels else "leave the level out"
        raise RecordError(f"{codec_name(codec)}: level {level} isn't valid; {can_be}")


@cache
def library_functions(codecs: int) -> LibraryFunctions:
    """Return the functions that the kernel calls for small bodies, each of which would be costly to hand to Python.

    They come from the lz4 and the zstandard package's libraries. `codecs` has bit n set for each wanted codec.
    """
    functions: dict[str, int] = {}
    for codec in Codec:
        known = body_codec(codec, 2) if codecs >> codec & 1 else None
        if known is not None and known.library is not None:
            package, module, names = known.library
            functions |= zip(names, _addresses(package, module, tuple(names.values())), strict=True)
    return LibraryFunctions(**functions)


def _addresses(package: str, module: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """Return the addresses of functions that a package's compiled module exports; zeros if one is missing."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(f"{package}.{module}", import_module(package).__path__)
    return exported_addresses(None if spec is None else spec.origin, names)
