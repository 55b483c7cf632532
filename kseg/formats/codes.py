"""Codes, limits, defaults and positions in Kafka's formats, shared with the kernels, so without construct."""

from collections.abc import Callable
from enum import IntEnum, StrEnum

from kseg.formats.header_fields import (
    ATTRIBUTES,
    BATCH_ATTRIBUTES,
    BATCH_BASE_OFFSET,
    BATCH_CRC,
    BATCH_HEADER_FIELDS,
    BATCH_LENGTH,
    BATCH_MAGIC,
    CONTROL_KEY_VERSION,
    ENTRY_V0_ATTRIBUTES,
    ENTRY_V0_CRC,
    ENTRY_V0_KEY_LENGTH,
    ENTRY_V1_KEY_LENGTH,
    KNOWN_ATTRIBUTES,
    LEAST_SIZES,
    Bytes,
    FixedField,
)
from kseg.named_tuple import NamedTuple

LOG_OVERHEAD = BATCH_LENGTH.end
"""Bytes of offset and size before each v0/v1 message and v2 batch."""
MAGIC_POSITION = BATCH_MAGIC.position
"""The position of the magic in an entry or batch of any format."""
MINIMUM_HEADER_SIZE = BATCH_MAGIC.end + 1
"""The least bytes in which Kafka looks for another batch: up to and including the magic, and one more."""
MINIMUM_SIZE_FIELD = {magic: size - LOG_OVERHEAD for magic, size in LEAST_SIZES.items()}
"""Magic to the least value of the size field (message size, batch length)."""
ENTRY_MINIMUM_SIZE = LEAST_SIZES[0]
"""The size of the smallest item of a log: a v0 entry with null key and value."""
BATCH_HEADER_SIZE = BATCH_HEADER_FIELDS.struct.size
MAXIMUM_RELATIVE_OFFSET = 2**31 - 1
"""The largest distance of an offset from its segment's base offset."""
NO_TIMESTAMP = -1

CODEC_MASK = ATTRIBUTES["codec"]
TIMESTAMP_TYPE_MASK = ATTRIBUTES["timestamp_type"]
TRANSACTIONAL_MASK = ATTRIBUTES["is_transactional"]
CONTROL_MASK = ATTRIBUTES["is_control"]
DELETE_HORIZON_MASK = ATTRIBUTES["has_delete_horizon"]
"""Masks of the attributes' bits; a format without one of them has 0 there."""


class Codec(IntEnum):
    """Attributes bits 0-2. Source: CompressionType."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def codec_name(codec: int) -> str | None:
    """Return a codec's name in small letters, as in Kafka's configurations, or None for the unknown codecs 5 to 7."""
    return CODEC_NAMES[codec] if 0 <= codec < len(CODEC_NAMES) else None


CODEC_NAMES = tuple(codec.name.lower() for codec in Codec)
"""The names of codecs 0, 1, 2 and so on."""


CODECS_SINCE = {Codec.ZSTD: "2.1"}
"""The releases that added codecs to format 2 later."""


class TimestampType(IntEnum):
    """Attributes bit 3; v0 messages have none. Source: TimestampType."""

    NO_TIMESTAMP_TYPE = -1
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class ControlType(IntEnum):
    """Type in a control record key. Source: ControlRecordType (4.4)."""

    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class DamageKind(StrEnum):
    """Problems of the bytes of a log that can't be read as Kafka defines them."""

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
    CHANGED_AS_TEXT = "changed-as-text"
    FOREIGN_CONTENT = "foreign-content"


LIKENESSES = (DamageKind.CHANGED_AS_TEXT, DamageKind.FOREIGN_CONTENT)
"""Kinds recognized by the bytes' appearance; nothing need be lost."""
TAIL_KINDS = (DamageKind.ZERO_TAIL, DamageKind.TORN_TAIL)
"""Damage that is normal at a log's end while a broker writes it, or after a crash."""


BOOTSTRAP_SERVER = "localhost:9092"
"""A broker's address on its own machine: `listeners`."""
SEGMENT_BYTES = 1 << 30
"""`log.segment.bytes` / `segment.bytes`."""
SEGMENT_MS = 604_800_000
"""`log.roll.ms`, `log.roll.hours` / `segment.ms`."""
SEGMENT_INDEX_BYTES = 10 << 20
"""`log.index.size.max.bytes` / `segment.index.bytes`."""
INDEX_INTERVAL_BYTES = 4096
"""`log.index.interval.bytes` / `index.interval.bytes`."""
RETENTION_MS = 604_800_000
"""`log.retention.ms`, `.minutes`, `.hours` / `retention.ms`."""
UNLIMITED = -1
"""The value for no retention. Default of `log.retention.bytes` / `retention.bytes`."""
DELETE_RETENTION_MS = 86_400_000
"""`log.cleaner.delete.retention.ms` / `delete.retention.ms`."""
PRODUCER_EXPIRATION_MS = 86_400_000
"""`producer.id.expiration.ms`."""
DEDUPE_BUFFER_SIZE = 134_217_728
"""`log.cleaner.dedupe.buffer.size`, for all threads of the cleaner together."""
LOAD_FACTOR = 0.9
"""`log.cleaner.io.buffer.load.factor`: the most load of the cleaner's table of keys."""
MIN_CLEANABLE_DIRTY_RATIO = 0.5
"""`log.cleaner.min.cleanable.ratio` / `min.cleanable.dirty.ratio`."""
MAX_COMPACTION_LAG_MS = 2**63 - 1
"""`log.cleaner.max.compaction.lag.ms` / `max.compaction.lag.ms`."""
MAXIMUM_TRANSACTION_MS = 900_000
"""The longest duration of a transaction: `transaction.max.timeout.ms`."""
INTERNAL_TOPICS = frozenset(
    {"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata", "__remote_log_metadata"}
)
"""Topics that brokers create themselves, and that pattern subscriptions leave out."""


SIZE_POSITION = BATCH_LENGTH.position
"""The position of the size in all formats; the size doesn't count the bytes up to its own end."""
BATCH_FLAGS = FixedField(BATCH_ATTRIBUTES.end - 1, 1, "B")
FLAGS_POSITION = BATCH_FLAGS.position
"""The lower byte of a batch's attributes: codec, timestamp type, and all flags."""
LEGACY_FLAGS_POSITION = ENTRY_V0_ATTRIBUTES.position
LENGTH = ENTRY_V0_KEY_LENGTH._replace(position=0)
"""The length of a v0 or v1 message's key or value, at any position; negative for null."""
KEY_LENGTH_POSITION = {0: ENTRY_V0_KEY_LENGTH.position, 1: ENTRY_V1_KEY_LENGTH.position}
PLAUSIBLE_ATTRIBUTES = {magic: rb"[\0-\x%02x]" % bits for magic, bits in KNOWN_ATTRIBUTES.items()}
"""Magic to a pattern of the byte that holds the attributes' known bits, from the lowest on."""
VERSION = CONTROL_KEY_VERSION
"""The version at the beginning of keys and values of control records and internal topics."""


class Checksum(NamedTuple):
    """Positions of a checksum and of the first byte that it covers; it covers all bytes from there to the end."""

    field: FixedField
    covers_from: int

    def read_stored(self, header: Bytes) -> int:
        """Return the checksum in a header."""
        return self.field.read(header)


_BATCH_CHECKSUM = Checksum(BATCH_CRC, BATCH_CRC.end)
_LEGACY_CHECKSUM = Checksum(ENTRY_V0_CRC, ENTRY_V0_CRC.end)


def checksum_of(magic: int) -> Checksum:
    """Return the place of a v2 batch CRC-32C, or of a v0 or v1 message's CRC-32."""
    return _BATCH_CHECKSUM if magic == 2 else _LEGACY_CHECKSUM


def crc_function(magic: int) -> Callable[[bytes | memoryview, int], int]:
    """Return the checksum function for a magic byte. It can continue from a previous checksum."""
    if magic == 2:
        from crc32c import crc32c

        return crc32c
    from zlib import crc32

    return crc32


def stored_offset(header: Bytes) -> int:
    """Return the base offset of a batch; a log entry's offset."""
    return BATCH_BASE_OFFSET.read(header)


def size_field(header: Bytes, at: int = 0) -> int:
    """Return the size field of a batch header without checking it. LOG_OVERHEAD isn't included."""
    return BATCH_LENGTH.read(header, at)


def signed_magic(header: Bytes) -> int:
    """Return the magic as a signed byte, as in Java."""
    return BATCH_MAGIC.read(header)


def claimed_size(buffer: Bytes, at: int = 0) -> int | None:
    """Return the size of the batch or entry at `at`, by its size field, or None if that is impossible for its magic."""
    if len(buffer) - at <= MAGIC_POSITION:
        return None
    size = size_field(buffer, at)
    least = MINIMUM_SIZE_FIELD.get(buffer[at + MAGIC_POSITION])
    return None if least is None or size < least else size + LOG_OVERHEAD


def compressed_body(buffer: memoryview, start: int, end: int) -> tuple[int, int, int, int]:
    """Return codec, magic, and start and end of the body of the batch between start and end of the buffer.

    The codec is 0 for an uncompressed batch; if a wrapper has no value, start and end of the body are -1.
    """
    magic = buffer[start + MAGIC_POSITION]
    is_legacy = magic < 2 or magic > 127 or end - start < BATCH_HEADER_SIZE
    codec = buffer[start + (LEGACY_FLAGS_POSITION if is_legacy else FLAGS_POSITION)] & CODEC_MASK
    if not is_legacy:
        return codec, magic, start + BATCH_HEADER_SIZE, end
    at, value_end = _wrapper_value(buffer, start, end)
    return codec, magic, at, value_end


def wrapper_value(entry: memoryview) -> memoryview | None:
    """Return the value of a v0 or v1 log entry, or None if it is null or exceeds the entry."""
    at, end = _wrapper_value(entry, 0, len(entry))
    return entry[at:end] if at >= 0 else None


def _wrapper_value(buffer: memoryview, start: int, end: int) -> tuple[int, int]:
    at = start + KEY_LENGTH_POSITION[1 if buffer[start + MAGIC_POSITION] == 1 else 0]
    at += LENGTH.size + max(LENGTH.read(buffer, at), 0)
    if at + LENGTH.size > end:
        return -1, -1
    value_size = LENGTH.read(buffer, at)
    at += LENGTH.size
    return (at, at + value_size) if 0 <= value_size <= end - at else (-1, -1)
