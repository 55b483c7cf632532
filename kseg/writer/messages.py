"""Encoders of messages and records. Sources: LegacyRecord, AbstractLegacyRecordBatch, DefaultRecord."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from struct import error as struct_error
from typing import NamedTuple
from zlib import crc32

from kseg.codecs.bodies import compress
from kseg.errors import KsegError, RecordError, plural
from kseg.formats.codes import (
    CODEC_MASK,
    LENGTH,
    LOG_OVERHEAD,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    Codec,
    TimestampType,
    codec_name,
)
from kseg.formats.header_fields import (
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V0_MAGIC,
    ENTRY_V0_OFFSET,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
    LOG_ENTRY_HEADER_V0_FIELDS,
    LOG_ENTRY_HEADER_V1_FIELDS,
    FixedField,
)
from kseg.formats.varint_bytes import varint, varint_size

LARGEST_SIZE = 2**31 - 1
"""The largest size of a record or a batch, in bytes."""
_NULL, _NO_HEADERS = b"\x01", b"\x00"

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
    """Encode a record as in a batch, after its length. Raises RecordError if it is too large.

    A timestamp delta beyond int64 wraps around, like the sum in the reader.
    """
    body = b"".join(
        (
            (attributes & 0xFF).to_bytes(1, "big"),
            varint((timestamp_delta + 2**63) % 2**64 - 2**63),
            varint(offset_delta),
            *_encode_sized(key),
            *_encode_sized(value),
            encode_headers(headers),
        )
    )
    if len(body) > LARGEST_SIZE:
        raise RecordError(f"a record of {plural(len(body), 'byte')} is larger than {LARGEST_SIZE}")
    return varint(len(body)) + body


def _encode_sized(content: bytes | None) -> tuple[bytes, bytes]:
    return (_NULL, b"") if content is None else (varint(len(content)), content)


def encode_headers(headers: Sequence[HeaderPair]) -> bytes:
    """Encode the headers' count and the headers. Raises RecordError for a key that isn't text."""
    if not headers:
        return _NO_HEADERS
    parts = [varint(len(headers))]
    for key, value in headers:
        parts += _encode_sized(header_key(key))
        parts += _encode_sized(value)
    return b"".join(parts)


def header_key(key: str | bytes) -> bytes:
    """Encode a header's key as UTF-8. Raises RecordError for half a surrogate pair."""
    if isinstance(key, bytes):
        return key
    try:
        return key.encode()
    except UnicodeEncodeError as error:
        raise RecordError(f"the header name {key!r} can't be written as UTF-8") from error


def record_size(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[HeaderPair] = (),
) -> int:
    """Return the size of the record in a batch, including its length. Source: DefaultRecord.sizeInBytes."""
    headers = tuple(headers)
    body = 1 + varint_size(timestamp_delta) + varint_size(offset_delta) + varint_size(len(headers))
    body += _sized_size(key) + _sized_size(value)
    body += sum(_sized_size(header_key(name)) + _sized_size(content) for name, content in headers)
    return varint_size(body) + body


def _sized_size(content: bytes | None) -> int:
    return 1 if content is None else varint_size(len(content)) + len(content)


_HEADERS = {0: LOG_ENTRY_HEADER_V0_FIELDS.struct, 1: LOG_ENTRY_HEADER_V1_FIELDS.struct}


def attributes_of(magic: int, codec: int, timestamp_type: TimestampType) -> int:
    """Return the attributes of a message. Source: LegacyRecord.computeAttributes."""
    is_append_time = magic > 0 and timestamp_type is TimestampType.LOG_APPEND_TIME
    return codec | (TIMESTAMP_TYPE_MASK if is_append_time else 0)


def entry_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Return the size of a log entry, including its offset and size."""
    return _HEADERS[magic].size + len(key or b"") + LENGTH.size + len(value or b"")


def encode_entry(
    offset: int, magic: int, attributes: int, key: bytes | None, value: bytes | None, timestamp: int = NO_TIMESTAMP
) -> bytes:
    """Encode a log entry. Raises RecordError if it is too large or a field doesn't fit; v0 has no timestamp."""
    size = entry_size(magic, key, value)
    if size > LARGEST_SIZE:
        raise RecordError(f"a message of {plural(size, 'byte')} is larger than {LARGEST_SIZE}")
    time = () if magic == 0 else (timestamp,)
    key_size = -1 if key is None else len(key)
    signed_attributes = (attributes + 0x80) % 0x100 - 0x80
    try:
        header = bytearray(
            _HEADERS[magic].pack(offset, size - LOG_OVERHEAD, 0, magic, signed_attributes, *time, key_size)
        )
    except struct_error as error:
        raise RecordError(f"a field of the message at offset {offset} is out of range") from error
    content = b"".join((key or b"", LENGTH.pack(-1 if value is None else len(value)), value or b""))
    ENTRY_V0_CRC.write(header, crc32(content, crc32(header[ENTRY_V0_CRC.end :])))
    return b"".join((header, content))


def encode_wrapper(
    last_offset: int,
    magic: int,
    attributes: int,
    entries: bytes,
    *,
    timestamp: int = NO_TIMESTAMP,
    level: int | None = None,
) -> bytes:
    """Encode a wrapper of entries, compressed with the attributes' codec."""
    codec = attributes & CODEC_MASK
    if codec in (Codec.NONE, Codec.ZSTD):
        raise RecordError(f"a wrapper of format {magic} can't have the codec {codec_name(codec)}")
    value = compress(codec, entries, magic=magic, level=level)
    return encode_entry(last_offset, magic, attributes, None, value, timestamp)


def _in_message(field: FixedField) -> FixedField:
    """Return a field of a log entry, relative to the entry's message."""
    return field._replace(position=field.position - LOG_OVERHEAD)


_CRC, _MAGIC = _in_message(ENTRY_V0_CRC), _in_message(ENTRY_V0_MAGIC)
_ATTRIBUTES, _TIMESTAMP = _in_message(ENTRY_V0_ATTRIBUTES), _in_message(ENTRY_V1_TIMESTAMP)
_KEY_LENGTH = {0: _in_message(ENTRY_V0_KEY_LENGTH), 1: _in_message(ENTRY_V1_KEY_LENGTH)}
"""The keys' lengths by magic."""


class InvalidMessageError(KsegError):
    """A message's checksum doesn't match its bytes."""


class Message:
    """A message: the bytes after offset and size in a v0 or v1 log entry.

    raw: its bytes. Null keys and values are None, empty ones b"". Raises InvalidMessageError if there are too few
    bytes for a message.
    """

    MINIMUM_SIZES = MINIMUM_SIZE_FIELD
    """The size of a message without key and value, by magic: 14 and 22."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        if len(raw) < MINIMUM_SIZE_FIELD[0] or len(raw) < MINIMUM_SIZE_FIELD.get(_MAGIC.read(raw), 0):
            raise InvalidMessageError(f"{plural(len(raw), 'byte is', 'bytes are')} too few for a message")

    @classmethod
    def build(
        cls,
        value: bytes | None,
        key: bytes | None = None,
        *,
        magic: int = 1,
        codec: Codec = Codec.NONE,
        timestamp: int = NO_TIMESTAMP,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    ) -> "Message":
        """Build a message with these fields and the right checksum. Raises RecordError if it is too large."""
        attributes = attributes_of(magic, codec, timestamp_type)
        return cls(encode_entry(0, magic, attributes, key, value, timestamp)[LOG_OVERHEAD:])

    @property
    def size(self) -> int:
        """The number of its bytes."""
        return len(self.raw)

    @property
    def checksum(self) -> int:
        """The stored CRC."""
        return _CRC.read(self.raw)

    def compute_checksum(self) -> int:
        """Compute the CRC-32 of its bytes, from the magic on."""
        return crc32(self.raw[_CRC.end :])

    @property
    def is_valid(self) -> bool:
        """True if both checksums are the same."""
        return self.checksum == self.compute_checksum()

    def ensure_valid(self) -> None:
        """Raise InvalidMessageError, with both checksums, if they differ."""
        if not self.is_valid:
            raise InvalidMessageError(
                f"the message's CRC is 0x{self.checksum:08x}, expected 0x{self.compute_checksum():08x}"
            )

    @property
    def magic(self) -> int:
        """Its format: 0 or 1."""
        return self.raw[_MAGIC.position]

    @property
    def attributes(self) -> int:
        """Codec and timestamp type, as one byte."""
        return self.raw[_ATTRIBUTES.position]

    @property
    def codec(self) -> int:
        """Bits 0-2 of the attributes, see Codec; not 0 for a wrapper."""
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        """The origin of the timestamp; v0 has none."""
        if self.magic < 1:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(int(bool(self.attributes & TIMESTAMP_TYPE_MASK)))

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970, or -1 for none."""
        return _TIMESTAMP.read(self.raw) if self.magic > 0 else NO_TIMESTAMP

    @cached_property
    def key(self) -> bytes | None:
        """The key, or None for a null key."""
        return self._read_sized(_KEY_LENGTH[self.magic].position)

    @cached_property
    def value(self) -> bytes | None:
        """The value; a wrapper's is its compressed entries, or None for a null value."""
        return self._read_sized(self._value_position)

    def _read_sized(self, position: int) -> bytes | None:
        size = LENGTH.read(self.raw, position)
        start = position + LENGTH.size
        return None if size < 0 else self.raw[start : start + size]

    @property
    def _value_position(self) -> int:
        """The position of the value's length."""
        return _KEY_LENGTH[self.magic].end + max(self.key_size, 0)

    @property
    def key_size(self) -> int:
        """The size of the key, or -1 for a null key."""
        return _KEY_LENGTH[self.magic].read(self.raw)

    @property
    def value_size(self) -> int:
        """The size of the value, or -1 for a null value."""
        return LENGTH.read(self.raw, self._value_position)

    @property
    def has_key(self) -> bool:
        """True if the key isn't null."""
        return self.key_size >= 0

    @property
    def is_null(self) -> bool:
        """True if the value is null."""
        return self.value_size < 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)


class MessageAndOffset(NamedTuple):
    """A message and its offset in the partition."""

    offset: int
    message: Message

    @property
    def next_offset(self) -> int:
        """The offset after it."""
        return self.offset + 1


def parse_entry(raw: bytes) -> MessageAndOffset:
    """Parse the message of a log entry's bytes."""
    return MessageAndOffset(ENTRY_V0_OFFSET.read(raw), Message(raw[LOG_OVERHEAD:]))
