"""Codes and limits of Kafka's log formats, without construct: what the kernels and the grammars share."""

from enum import IntEnum, StrEnum

from kseg.formats.header_fields import ATTRIBUTES, BATCH_HEADER_FIELDS, BATCH_LENGTH, BATCH_MAGIC, LEAST_SIZES

LOG_OVERHEAD = BATCH_LENGTH.end
"""Bytes of offset and size in front of each v0/v1 message and v2 batch."""
MAGIC_POSITION = BATCH_MAGIC.position
"""Where the magic stands in an entry or batch of any format."""
MINIMUM_HEADER_SIZE = BATCH_MAGIC.end + 1
"""Bytes that must be left for Kafka to look for another batch: up to and including the magic, and one more."""
MINIMUM_SIZE_FIELD = {magic: size - LOG_OVERHEAD for magic, size in LEAST_SIZES.items()}
"""Magic to the least value of the size field (message size, batch length)."""
ENTRY_MINIMUM_SIZE = LEAST_SIZES[0]
"""Bytes of the smallest thing that a log can hold: a v0 entry whose key and value are null."""
BATCH_HEADER_SIZE = BATCH_HEADER_FIELDS.struct.size
MAXIMUM_RELATIVE_OFFSET = 2**31 - 1
"""The largest distance of an offset from its segment's base offset."""
NO_TIMESTAMP = -1

CODEC_MASK = ATTRIBUTES["codec"]
TIMESTAMP_TYPE_MASK = ATTRIBUTES["timestamp_type"]
TRANSACTIONAL_MASK = ATTRIBUTES["is_transactional"]
CONTROL_MASK = ATTRIBUTES["is_control"]
DELETE_HORIZON_MASK = ATTRIBUTES["has_delete_horizon"]
"""Bits of the attributes; a format without one of them has 0 there."""


class Codec(IntEnum):
    """Attributes bits 0-2. Source: CompressionType."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_name(codec: int) -> str | None:
    """A codec's name in small letters, as Kafka's configurations have it; None for 5 to 7, which Kafka doesn't know."""
    return CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else None


CODEC_NAMES = tuple(codec.name.lower() for codec in Codec)
"""The names of codecs 0, 1, 2 and so on."""


CODECS_SINCE = {Codec.ZSTD: "2.1"}
"""The releases that brought codecs to format 2 after its beginning."""


class TimestampType(IntEnum):
    """Attributes bit 3; v0 messages have none. Source: TimestampType."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlType(IntEnum):
    """Type in a control record's key. Source: ControlRecordType (4.3)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class DamageKind(StrEnum):
    """What can be wrong with bytes of a log that can't be read as Kafka defines them."""

    UNREADABLE = "unreadable"
    ZERO_TAIL = "zero-tail"
    TORN_TAIL = "torn-tail"
    BAD_LENGTH = "bad-length"
    BAD_MAGIC = "bad-magic"
    BAD_CRC = "bad-crc"
    BAD_CODEC = "bad-codec"
    BAD_BODY = "bad-body"
    BAD_RECORD = "bad-record"
    BAD_COUNT = "bad-count"


TAIL_KINDS = (DamageKind.ZERO_TAIL, DamageKind.TORN_TAIL)
"""The damage at a log's end that is normal while a broker writes it, or after one died."""
