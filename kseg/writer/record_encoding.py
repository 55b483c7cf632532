"""Records of v2 batches to bytes. Source: DefaultRecord."""

from collections.abc import Iterable, Sequence

from kseg.errors import RecordError
from kseg.formats.varint_writing import varint, varint_size

LARGEST_SIZE = 2**31 - 1
"""The largest size of a record or a batch, in bytes."""
_NULL = varint(-1)
_NO_HEADERS = varint(0)

HeaderPair = tuple[str | bytes, bytes | None]
"""Key and value of a header; kseg's `Header` is one too."""


def encode_record(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Sequence[HeaderPair] = (),
    *,
    attributes: int = 0,
) -> bytes:
    """A record as in a batch, after its length. Raises RecordError if it is too large.

    A time delta beyond int64 wraps around, like the sum in the reader.
    """
    body = b"".join(
        (
            (attributes & 0xFF).to_bytes(1, "big"),
            varint((timestamp_delta + 2**63) % 2**64 - 2**63),
            varint(offset_delta),
            *_sized(key),
            *_sized(value),
            encode_headers(headers),
        )
    )
    if len(body) > LARGEST_SIZE:
        raise RecordError(f"a record of {len(body)} bytes is larger than {LARGEST_SIZE}")
    return varint(len(body)) + body


def _sized(content: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if content is None else (varint(len(content)), content)


def encode_headers(headers: Sequence[HeaderPair]) -> bytes:
    """The headers' count and the headers. Raises RecordError for a key that isn't text."""
    if not headers:
        return _NO_HEADERS
    parts = [varint(len(headers))]
    for key, value in headers:
        parts += _sized(header_key(key))
        parts += _sized(value)
    return b"".join(parts)


def header_key(key: str | bytes) -> bytes:
    """A header's key as UTF-8. Raises RecordError for half a surrogate pair."""
    if isinstance(key, bytes):
        return key
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"the header {key!r} can't be UTF-8") from error


def record_size(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[HeaderPair] = (),
) -> int:
    """Bytes of the record in a batch, including its length. Source: DefaultRecord.sizeInBytes."""
    headers = tuple(headers)
    body = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(len(headers))
    body += _sized_size(key) + _sized_size(value)
    body += sum(_sized_size(header_key(name)) + _sized_size(content) for name, content in headers)
    return varint_size(body) + body


def _sized_size(content: bytes | None) -> int:
    return 1 if content is None else varint_size(len(content)) + len(content)
