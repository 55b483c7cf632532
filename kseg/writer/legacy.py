"""v0 and v1 messages and log entries to bytes. Source: LegacyRecord, AbstractLegacyRecordBatch."""

from struct import error as struct_error
from zlib import crc32

from kseg.codecs.body import compress
from kseg.errors import RecordError
from kseg.formats.codes import (
    CODEC_MASK,
    LOG_OVERHEAD,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_MASK,
    Codec,
    TimestampType,
    codec_name,
)
from kseg.formats.header_fields import ENTRY_V0_CRC, LOG_ENTRY_HEADER_V0_FIELDS, LOG_ENTRY_HEADER_V1_FIELDS
from kseg.formats.positions import LENGTH
from kseg.writer.record_encoding import LARGEST_SIZE

_HEADERS = {0: LOG_ENTRY_HEADER_V0_FIELDS.struct, 1: LOG_ENTRY_HEADER_V1_FIELDS.struct}


def attributes_of(magic: int, codec: int, timestamp_type: TimestampType) -> int:
    """A message's attributes. Source: LegacyRecord.computeAttributes."""
    is_append_time = magic > 0 and timestamp_type is TimestampType.LOG_APPEND_TIME
    return codec | (TIMESTAMP_TYPE_MASK if is_append_time else 0)


def entry_size(magic: int, key: bytes | None, value: bytes | None) -> int:
    """Bytes of a log entry, its offset and size included."""
    return _HEADERS[magic].size + len(key or b"") + LENGTH.size + len(value or b"")


def encode_entry(
    offset: int, magic: int, attributes: int, key: bytes | None, value: bytes | None, timestamp: int = NO_TIMESTAMP
) -> bytes:
    """A log entry. Raises RecordError if it is too large or a field doesn't fit; v0 has no timestamp."""
    size = entry_size(magic, key, value)
    if size > LARGEST_SIZE:
        raise RecordError(f"a message of {size} bytes is larger than {LARGEST_SIZE}")
    time = () if magic == 0 else (timestamp,)
    key_size = -1 if key is None else len(key)
    signed_attributes = (attributes + 0x80) % 0x100 - 0x80
    try:
        header = bytearray(
            _HEADERS[magic].pack(offset, size - LOG_OVERHEAD, 0, magic, signed_attributes, *time, key_size)
        )
    except struct_error as error:
        raise RecordError(f"a field of the message at offset {offset} is out of its range") from error
    content = b"".join((key or b"", LENGTH.packed(-1 if value is None else len(value)), value or b""))
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
    """A wrapper of entries, compressed by the attributes' codec."""
    codec = attributes & CODEC_MASK
    if codec in (Codec.NONE, Codec.ZSTD):
        raise RecordError(f"a wrapper of format {magic} can't have the codec {codec_name(codec)}")
    value = compress(codec, entries, magic=magic, level=level)
    return encode_entry(last_offset, magic, attributes, None, value, timestamp)
