"""What each codec offers: both directions, and what Kafka's configuration and the kernel need to know of it."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple


class KernelLibrary(NamedTuple):
    """Functions of a codec's library that the kernel calls itself.

    package, module: where the compiled library lies. functions: fields of LibraryFunctions to the library's names.
    """

    package: str
    module: str
    functions: Mapping[str, str]


class BodyCodec(NamedTuple):
    """A codec; its library is imported when one of these is called.

    decompress: a body to its content. Takes the most bytes that may come out, raises one of `errors`.
    decompress_pieces: the same piece by piece, so that a damaged body gives what it holds before the damage.
    errors: what the two may raise.
    compress: content to a body as Kafka's Java classes write it; takes one of `levels`, or None for Kafka's default.
    levels: those of Kafka's configuration; None if it has none. Source: CompressionType.
    least_magic: the oldest format that knows the codec.
    v0: what is different in format 0, if something is.
    library: what the kernel calls, if the library exports C functions.
    """

    decompress: Callable[[memoryview, int], bytes]
    decompress_pieces: Callable[[memoryview, int], Iterator[bytes]]
    errors: Callable[[], tuple[type[Exception], ...]]
    compress: Callable[[bytes, int | None], bytes]
    levels: range | None = None
    least_magic: int = 0
    v0: "BodyCodec | None" = None
    library: KernelLibrary | None = None
