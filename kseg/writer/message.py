"""Messages of magic 0 and 1 as values. Source: LegacyRecord, kafka.message.Message."""

from functools import cached_property
from typing import NamedTuple
from zlib import crc32

from kseg.errors import KsegError
from kseg.formats.codes import (
    CODEC_MASK,
    LOG_OVERHEAD,
    MINIMUM_SIZE_FIELD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    Codec,
    TimestampType,
)
from kseg.formats.header_fields import (
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V0_MAGIC,
    ENTRY_V0_OFFSET,
    ENTRY_V1_KEY_LENGTH,
    ENTRY_V1_TIMESTAMP,
    FixedField,
)
from kseg.formats.positions import LENGTH
from kseg.writer.legacy import attributes_of, encode_entry


def _in_message(field: FixedField) -> FixedField:
    """A field of a log entry where it stands in the entry's message."""
    return field._replace(position=field.position - LOG_OVERHEAD)


_CRC, _MAGIC = _in_message(ENTRY_V0_CRC), _in_message(ENTRY_V0_MAGIC)
_ATTRIBUTES, _TIMESTAMP = _in_message(ENTRY_V0_ATTRIBUTES), _in_message(ENTRY_V1_TIMESTAMP)
_KEY_LENGTH = {0: _in_message(ENTRY_V0_KEY_LENGTH), 1: _in_message(ENTRY_V1_KEY_LENGTH)}
"""By magic."""


class InvalidMessageError(KsegError):
    """A message whose checksum doesn't match its bytes."""


class Message:
    """A message: what follows offset and size in a v0 or v1 log entry.

    raw: its bytes. Null keys and values are None, empty ones b"". Raises InvalidMessageError if there are too few
    bytes for a message.
    """

    MINIMUM_SIZES = MINIMUM_SIZE_FIELD
    """Bytes of a message without key and value, by magic: 14 and 22."""

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        if len(raw) < MINIMUM_SIZE_FIELD[0] or len(raw) < MINIMUM_SIZE_FIELD.get(_MAGIC.read(raw), 0):
            raise InvalidMessageError(f"{len(raw)} bytes are too few for a message")

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
        """A message with these fields and the right checksum. Raises RecordError if it is too large."""
        attributes = attributes_of(magic, codec, timestamp_type)
        return cls(encode_entry(0, magic, attributes, key, value, timestamp)[LOG_OVERHEAD:])

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.raw)

    @property
    def checksum(self) -> int:
        """The stored CRC."""
        return _CRC.read(self.raw)

    def compute_checksum(self) -> int:
        """The CRC-32 of its bytes, from the magic on."""
        return crc32(self.raw[_CRC.end :])

    @property
    def is_valid(self) -> bool:
        """Whether both checksums are the same."""
        return self.checksum == self.compute_checksum()

    def ensure_valid(self) -> None:
        """Raises InvalidMessageError, with both checksums, if they differ."""
        if not self.is_valid:
            raise InvalidMessageError(
                f"the message's crc is 0x{self.checksum:08x}, computed 0x{self.compute_checksum():08x}"
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
        """Who set the timestamp; v0 has none."""
        if self.magic < 1:
            return TimestampType.NO_TIMESTAMP_TYPE
        return TimestampType(int(bool(self.attributes & TIMESTAMP_TYPE_MASK)))

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970; -1 for none."""
        return _TIMESTAMP.read(self.raw) if self.magic > 0 else NO_TIMESTAMP

    @cached_property
    def key(self) -> bytes | None:
        """The key; None for a null key."""
        return self._sized(_KEY_LENGTH[self.magic].position)

    @cached_property
    def value(self) -> bytes | None:
        """The value, of a wrapper its compressed entries; None for a null value."""
        return self._sized(self._value_position)

    def _sized(self, position: int) -> bytes | None:
        size = LENGTH.read(self.raw, position)
        start = position + LENGTH.size
        return None if size < 0 else self.raw[start : start + size]

    @property
    def _value_position(self) -> int:
        """Where the value's length stands."""
        return _KEY_LENGTH[self.magic].end + max(self.key_size, 0)

    @property
    def key_size(self) -> int:
        """Bytes of the key; -1 for a null key."""
        return _KEY_LENGTH[self.magic].read(self.raw)

    @property
    def value_size(self) -> int:
        """Bytes of the value; -1 for a null value."""
        return LENGTH.read(self.raw, self._value_position)

    @property
    def has_key(self) -> bool:
        """Whether the key isn't null."""
        return self.key_size >= 0

    @property
    def is_null(self) -> bool:
        """Whether the value is null."""
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
    """The message of a log entry's bytes."""
    return MessageAndOffset(ENTRY_V0_OFFSET.read(raw), Message(raw[LOG_OVERHEAD:]))
