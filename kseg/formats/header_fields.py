"""Fields of headers and entries, each declared once, and the structs, positions and values made from them."""

from collections.abc import Iterator
from struct import Struct, calcsize

from kseg.formats.file_names import FileKind
from kseg.named_tuple import NamedTuple

Bytes = bytes | bytearray | memoryview
INT8, INT16, INT32, UINT32, INT64 = "b", "h", "i", "I", "q"
"""Types of fields, as struct names them; all are big-endian."""


# These are plain classes: making a NamedTuple takes 0.2 ms at every start of kseg.


class Bits:
    """Neighbouring bits of a field. A flag is one bit, and its grammar gives True or False."""

    __slots__ = ("is_flag", "meaning", "name", "width")

    def __init__(self, name: str, width: int, meaning: str, *, is_flag: bool = False) -> None:
        self.name, self.width, self.meaning, self.is_flag = name, width, meaning, is_flag


class Field:
    """A field of a structure. bits: its parts, from the highest on."""

    __slots__ = ("bits", "meaning", "name", "type")

    def __init__(self, name: str, type: str, meaning: str, bits: tuple[Bits, ...] = ()) -> None:  # noqa: A002
        self.name, self.type, self.meaning, self.bits = name, type, meaning, bits


class FixedField(NamedTuple):
    """An integer at a fixed position: the bytes of its structure before it, its size, and its type in struct."""

    position: int
    size: int
    code: str

    @property
    def end(self) -> int:
        """The position after its last byte."""
        return self.position + self.size

    @property
    def limits(self) -> range:
        """The values that fit."""
        bits = 8 * self.size
        return range(-(1 << bits - 1), 1 << bits - 1) if self.code.islower() else range(1 << bits)

    def read(self, content: Bytes, at: int = 0) -> int:
        """Return its value in the structure at byte `at`. If bytes are missing, the value means nothing."""
        start = at + self.position
        return int.from_bytes(content[start : start + self.size], "big", signed=self.code.islower())

    def pack(self, value: int) -> bytes:
        """Encode a value. Raises OverflowError if it doesn't fit in the field."""
        return value.to_bytes(self.size, "big", signed=self.code.islower())

    def write(self, content: bytearray, value: int, at: int = 0) -> None:
        """Put a value into the structure at byte `at`. Raises OverflowError if it doesn't fit."""
        start = at + self.position
        content[start : start + self.size] = self.pack(value)


class FixedFields:
    """A structure of fields with fixed sizes; `struct` unpacks the fields of `names`, in order."""

    __slots__ = ("fields", "names", "struct")

    def __init__(self, *fields: Field) -> None:
        self.fields = fields
        self.names = tuple([field.name for field in fields])
        self.struct = Struct(">" + "".join([field.type for field in fields]))

    def position(self, name: str) -> int:
        """Return the number of bytes before a field."""
        return calcsize(self.struct.format[: 1 + self.names.index(name)])

    def field(self, name: str) -> FixedField:
        """Return a field by its name."""
        code = self.fields[self.names.index(name)].type
        return FixedField(self.position(name), calcsize(">" + code), code)

    def bits(self, name: str) -> Iterator[tuple[Bits, int, int]]:
        """Yield the parts of a field from the lowest on, each with its lowest bit and its mask."""
        shift = 0
        for bits in reversed(self.fields[self.names.index(name)].bits):
            yield bits, shift, (1 << bits.width) - 1 << shift
            shift += bits.width


def camel_case(name: str) -> str:
    """Return a value's name as Kafka writes it in lines and JSON: `baseOffset` for base_offset."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def struct_of(*fields: FixedField) -> Struct:
    """Return a struct that unpacks some fields with increasing positions, and skips the bytes between them."""
    form, position = ">", 0
    for field in fields:
        form += "x" * (field.position - position) + field.code
        position = field.end
    return Struct(form)


# --- batches and log entries -----------------------------------------------------------------------------------------

_TIMESTAMP_TYPE = Bits("timestamp_type", 1, "0 CreateTime, 1 LogAppendTime")
_WRAPPER_CODEC = Bits("codec", 3, "0 none, 1 gzip, 2 snappy, 3 lz4; not 0: a wrapper")
_MESSAGE_CRC = Field("crc", UINT32, "CRC-32 of all bytes from the magic to the message's end")
_KEY_LENGTH = Field("key_length", INT32, "bytes of the key; -1: null key, no key bytes")
VALUE_LENGTH = Field("value_length", INT32, "bytes of the value; -1: null value (tombstone)")
"""The field after the key of a v0 or v1 message."""

LOG_OVERHEAD_FIELDS = FixedFields(
    Field("offset", INT64, "offset of the message; a wrapper's: of its last inner message"),
    Field("message_size", INT32, "bytes of the message that follows"),
)
"""The fields of a v0 or v1 log entry before its message."""

MESSAGE_V0_FIELDS = FixedFields(
    _MESSAGE_CRC,
    Field("magic", INT8, "format of the message: 0"),
    Field("attributes", INT8, "codec", (Bits("unused", 5, "0"), _WRAPPER_CODEC)),
    _KEY_LENGTH,
)
"""A v0 message up to its key."""

MESSAGE_V1_FIELDS = FixedFields(
    _MESSAGE_CRC,
    Field("magic", INT8, "format of the message: 1"),
    Field("attributes", INT8, "codec and timestamp type", (Bits("unused", 4, "0"), _TIMESTAMP_TYPE, _WRAPPER_CODEC)),
    Field("timestamp", INT64, "milliseconds since 1970, -1 none; a wrapper's: largest inner one, or the append time"),
    _KEY_LENGTH,
)
"""A v1 message up to its key."""

LOG_ENTRY_HEADER_V0_FIELDS = FixedFields(*LOG_OVERHEAD_FIELDS.fields, *MESSAGE_V0_FIELDS.fields)
LOG_ENTRY_HEADER_V1_FIELDS = FixedFields(*LOG_OVERHEAD_FIELDS.fields, *MESSAGE_V1_FIELDS.fields)
"""Log entries up to the key."""

BATCH_HEADER_FIELDS = FixedFields(
    Field("base_offset", INT64, "offset of the first record as written; kept by compaction"),
    Field("length", INT32, "bytes from partition_leader_epoch to the batch's end"),
    Field("partition_leader_epoch", INT32, "epoch of the leader that appended it, set by the broker; -1 none"),
    Field("magic", INT8, "format of the batch: 2"),
    Field("crc", UINT32, "CRC-32C of all bytes from the attributes to the batch's end"),
    Field(
        "attributes",
        INT16,
        "codec, timestamp type, flags",
        (
            Bits("unused", 9, "0; Kafka reads the low byte only"),
            Bits(
                "has_delete_horizon",
                1,
                "base_timestamp is the time from which tombstones and markers may go (3.1 on)",
                is_flag=True,
            ),
            Bits("is_control", 1, "control batch: its records are the broker's (markers, KRaft's state)", is_flag=True),
            Bits("is_transactional", 1, "part of a transaction", is_flag=True),
            _TIMESTAMP_TYPE,
            Bits("codec", 3, "see Codec, which the grammar lists"),
        ),
    ),
    Field("last_offset_delta", INT32, "last offset minus base_offset; kept by compaction"),
    Field(
        "base_timestamp",
        INT64,
        "base of the records' time deltas in milliseconds; the delete horizon if that bit is set",
    ),
    Field("max_timestamp", INT64, "largest record time (CreateTime) or append time (LogAppendTime), in milliseconds"),
    Field("producer_id", INT64, "id of an idempotent or transactional producer; -1 none"),
    Field("producer_epoch", INT16, "epoch of that producer; -1 none"),
    Field("base_sequence", INT32, "sequence of the first record as written; -1 none"),
    Field("records_count", INT32, "records that the batch has now; 0 in a batch that compaction emptied"),
)
"""The 61 bytes of a v2 batch before its records. Source: DefaultRecordBatch."""

_NAMES_OF_VALUES = {"length": "size", "last_offset_delta": "last_offset"}
HEADER_NAMES = ("position", *(_NAMES_OF_VALUES.get(name, name) for name in BATCH_HEADER_FIELDS.names), "is_valid")
"""Values of a header in readers' order: its position, its fields, and whether its CRC is right.

The size includes the bytes that the length doesn't count, and the last offset replaces its delta.
"""
PRODUCER_NAMES = ("producer_id", "producer_epoch", "base_sequence")
"""Values of a batch's producer; -1 for each if there is none."""

ENTRY_V0_OFFSET = LOG_ENTRY_HEADER_V0_FIELDS.field("offset")
ENTRY_V0_MESSAGE_SIZE = LOG_ENTRY_HEADER_V0_FIELDS.field("message_size")
ENTRY_V0_CRC = LOG_ENTRY_HEADER_V0_FIELDS.field("crc")
ENTRY_V0_MAGIC = LOG_ENTRY_HEADER_V0_FIELDS.field("magic")
ENTRY_V0_ATTRIBUTES = LOG_ENTRY_HEADER_V0_FIELDS.field("attributes")
ENTRY_V0_KEY_LENGTH = LOG_ENTRY_HEADER_V0_FIELDS.field("key_length")
ENTRY_V1_TIMESTAMP = LOG_ENTRY_HEADER_V1_FIELDS.field("timestamp")
ENTRY_V1_KEY_LENGTH = LOG_ENTRY_HEADER_V1_FIELDS.field("key_length")
BATCH_BASE_OFFSET = BATCH_HEADER_FIELDS.field("base_offset")
BATCH_LENGTH = BATCH_HEADER_FIELDS.field("length")
BATCH_MAGIC = BATCH_HEADER_FIELDS.field("magic")
BATCH_CRC = BATCH_HEADER_FIELDS.field("crc")
BATCH_ATTRIBUTES = BATCH_HEADER_FIELDS.field("attributes")
BATCH_RECORDS_COUNT = BATCH_HEADER_FIELDS.field("records_count")
"""Fields that are read alone."""

_MASKS = {
    magic: {bits.name: mask for bits, _, mask in fields.bits("attributes") if bits.name != "unused"}
    for magic, fields in enumerate((LOG_ENTRY_HEADER_V0_FIELDS, LOG_ENTRY_HEADER_V1_FIELDS, BATCH_HEADER_FIELDS))
}
ATTRIBUTES = _MASKS[2]
"""Masks of the attributes' bits: all formats have a flag at the same bits."""
KNOWN_ATTRIBUTES = {magic: sum(masks.values()) for magic, masks in _MASKS.items()}
"""Magic to the bits that have a meaning; all others are 0."""
LEAST_SIZES = {
    0: LOG_ENTRY_HEADER_V0_FIELDS.struct.size + calcsize(VALUE_LENGTH.type),
    1: LOG_ENTRY_HEADER_V1_FIELDS.struct.size + calcsize(VALUE_LENGTH.type),
    2: BATCH_HEADER_FIELDS.struct.size,
}
"""The size of the smallest batch or entry by magic: without records; with null for key and value."""

# --- control records -------------------------------------------------------------------------------------------------

CONTROL_RECORD_KEY_FIELDS = FixedFields(
    Field("version", INT16, "version of the key: 0"),
    Field("type", INT16, "kind of control record, see ControlType"),
)
"""The key of a control record; newer versions may append more."""

END_TXN_MARKER_FIELDS = FixedFields(
    Field("version", INT16, "version of the value: 0"),
    Field("coordinator_epoch", INT32, "epoch of the transaction coordinator that ended the transaction"),
)
"""The value of a control record that ends a transaction; newer versions may append more."""

CONTROL_KEY_VERSION = CONTROL_RECORD_KEY_FIELDS.field("version")
CONTROL_KEY_TYPE = CONTROL_RECORD_KEY_FIELDS.field("type")
MARKER_VERSION = END_TXN_MARKER_FIELDS.field("version")
MARKER_COORDINATOR_EPOCH = END_TXN_MARKER_FIELDS.field("coordinator_epoch")

# --- files next to the log -------------------------------------------------------------------------------------------

_RELATIVE_OFFSET = Field("relative_offset", INT32, "offset minus the segment's base offset")

OFFSET_INDEX_ENTRY_FIELDS = FixedFields(
    _RELATIVE_OFFSET,
    Field("position", INT32, "byte position in the .log of the batch to scan from"),
)
"""Entry of an .index: 8 bytes."""

TIME_INDEX_ENTRY_FIELDS = FixedFields(
    Field("timestamp", INT64, "milliseconds; no record up to the offset has a later time"),
    _RELATIVE_OFFSET,
)
"""Entry of a .timeindex: 12 bytes."""

TRANSACTION_INDEX_ENTRY_FIELDS = FixedFields(
    Field("version", INT16, "version of the entry: 0"),
    Field("producer_id", INT64, "producer whose transaction was aborted"),
    Field("first_offset", INT64, "first offset of the transaction in this partition"),
    Field("last_offset", INT64, "offset of the abort marker"),
    Field("last_stable_offset", INT64, "last stable offset when the entry was written"),
)
"""Entry of a .txnindex: 34 bytes."""

ENTRY_FIELDS = {
    FileKind.OFFSET_INDEX: OFFSET_INDEX_ENTRY_FIELDS,
    FileKind.TIME_INDEX: TIME_INDEX_ENTRY_FIELDS,
    FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX_ENTRY_FIELDS,
}
"""Fields of entries, by the kind of file that holds nothing else."""

PRODUCER_SNAPSHOT_HEADER_FIELDS = FixedFields(
    Field("version", INT16, "version of the file: 1"),
    Field("crc", UINT32, "CRC-32C of all bytes after it"),
    Field("entries_count", INT32, "producers in the file"),
)
"""A .snapshot up to its entries: 10 bytes."""
SNAPSHOT_CRC = PRODUCER_SNAPSHOT_HEADER_FIELDS.field("crc")

PRODUCER_ENTRY_FIELDS = FixedFields(
    Field("producer_id", INT64, "the producer's id"),
    Field("epoch", INT16, "the producer's epoch"),
    Field("last_sequence", INT32, "last sequence of its last data batch; -1 none"),
    Field("last_offset", INT64, "last offset of that batch; -1 none"),
    Field("offset_delta", INT32, "last offset minus first offset of that batch"),
    Field("timestamp", INT64, "max timestamp of that batch, in milliseconds"),
    Field("coordinator_epoch", INT32, "coordinator epoch of its last marker; -1 none"),
    Field("current_txn_first_offset", INT64, "first offset of its open transaction; -1 none"),
)
"""A producer of a .snapshot: 46 bytes."""


class OffsetIndexEntry(NamedTuple):
    """Entry of an .index: absolute offset, byte position in the .log."""

    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """Entry of a .timeindex: milliseconds, absolute offset."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """An entry of a .txnindex: a transaction of this partition that ended with an abort marker at `last_offset`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


TRANSACTION_INDEX_VERSION = 0
"""The version in each entry of a .txnindex, and the newest that Kafka reads."""
PRODUCER_SNAPSHOT_VERSION = 1
"""The version of a .snapshot, the only one that Kafka reads."""
