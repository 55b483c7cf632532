"""Compresses and decompresses bodies of batches. The module of a codec is imported when one of its bodies is met."""

from functools import cache
from importlib import import_module
from typing import NamedTuple

from kseg.codecs.body_codec import BodyCodec
from kseg.codecs.bounds import DEFAULT_LIMIT, LARGEST_RATIO_FREE, BodyError, joined, limit_for
from kseg.errors import RecordError
from kseg.formats.codes import Codec, codec_name
from kseg.kernel.contract import LibraryFunctions
from kseg.system.exported_functions import exported_addresses

UNKNOWN_CODEC = "unknown codec"
"""How the failure of a body of an unknown codec begins."""


class Body(NamedTuple):
    """What came out of a body: all of it, or what could be had and the reason why there isn't more."""

    data: bytes
    failure: str | None = None


@cache
def body_codec(codec: int, magic: int) -> BodyCodec | None:
    """The codec of a body in a format; None if that format has no such codec."""
    if codec == Codec.NONE or codec not in set(Codec):
        return None
    found: BodyCodec = import_module(f"kseg.codecs.{codec_name(codec)}").CODEC
    if magic < found.least_magic:
        return None
    return found.v0 or found if magic == 0 else found


WITHOUT_REASON = "these bytes can't be decompressed"
"""For a library's error that says nothing."""


def decompress(
    codec: int, magic: int, body: memoryview, limit: int = DEFAULT_LIMIT, free: int = LARGEST_RATIO_FREE
) -> Body:
    """Decompresses a batch's body; never raises for what the body holds.

    Args:
        codec: bits 0-2 of the attributes; not 0.
        magic: the batch's.
        body: the compressed bytes.
        limit: the largest size to accept, beside `limit_for`'s ratio.
        free: bytes that it may become whatever its size, more than the ratio allows.
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
        return Body(b"", f"{codec_name(codec)}: there's no memory for what comes out")


def _readable_start(codec: BodyCodec, body: memoryview, most: int) -> bytes:
    """What a damaged body gives before it fails, up to the limit."""
    try:
        return joined(codec.decompress_pieces(body, most), most, codec.errors())
    except BodyError as error:
        return error.readable or b""


def compress(codec: int, content: bytes, *, magic: int = 2, level: int | None = None) -> bytes:
    """Compresses a body of a batch, or the entries in a wrapper.

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
    """Raises RecordError if the codec has no such level."""
    known = body_codec(codec, 2)
    levels = None if known is None else known.levels
    if level is not None and (levels is None or level not in levels):
        can_be = f"from {levels[0]} to {levels[-1]}" if levels else "not to be chosen"
        raise RecordError(f"{codec_name(codec)}: the level is {can_be}, not {level}")


@cache
def library_functions(codecs: int) -> LibraryFunctions:
    """The functions that the kernel calls for a run of small bodies, each of which would cost much to hand to Python.

    They are those that the lz4 package's and the zstandard package's libraries export. `codecs` has bit n set for the
    codecs that are wanted.
    """
    functions: dict[str, int] = {}
    for codec in Codec:
        known = body_codec(codec, 2) if codecs >> codec & 1 else None
        if known is not None and known.library is not None:
            package, module, names = known.library
            functions |= zip(names, _addresses(package, module, tuple(names.values())), strict=True)
    return LibraryFunctions(**functions)


def _addresses(package: str, module: str, names: tuple[str, ...]) -> tuple[int, ...]:
    """Where functions lie that a package's compiled module exports; zeros if it doesn't export all of them."""
    from importlib.machinery import PathFinder

    spec = PathFinder.find_spec(f"{package}.{module}", import_module(package).__path__)
    return exported_addresses(None if spec is None else spec.origin, names)
