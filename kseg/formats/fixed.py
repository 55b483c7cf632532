"""Fields at fixed positions, without construct. Made by tools/generate.py from the grammars: edit those."""

from struct import Struct

from kseg.formats.fixed_fields import FixedField, FixedFields
from kseg.formats.names import FileKind

LOG_ENTRY_HEADER_V0_FIELDS = FixedFields(
    Struct(">qiIbbi"), ("offset", "message_size", "crc", "magic", "attributes", "key_length")
)
"""A v0 log entry up to the key. 22 bytes."""
ENTRY_V0_OFFSET = FixedField(0, 8, "q")
"""Offset of the message; a wrapper's: of its last inner message."""
ENTRY_V0_MESSAGE_SIZE = FixedField(8, 4, "i")
"""Bytes of the message that follows."""
ENTRY_V0_CRC = FixedField(12, 4, "I")
"""CRC-32 of all bytes from the magic to the message's end."""
ENTRY_V0_MAGIC = FixedField(16, 1, "b")
"""Format of the message: 0."""
ENTRY_V0_ATTRIBUTES = FixedField(17, 1, "b")
"""Codec."""
ENTRY_V0_KEY_LENGTH = FixedField(18, 4, "i")
"""Bytes of the key; -1: null key, no key bytes."""
LOG_ENTRY_HEADER_V1_FIELDS = FixedFields(
    Struct(">qiIbbqi"), ("offset", "message_size", "crc", "magic", "attributes", "timestamp", "key_length")
)
"""A v1 log entry up to the key. 30 bytes."""
ENTRY_V1_TIMESTAMP = FixedField(18, 8, "q")
"""Milliseconds since 1970, -1 none; a wrapper's: largest inner one, or the append time."""
ENTRY_V1_KEY_LENGTH = FixedField(26, 4, "i")
"""Bytes of the key; -1: null key, no key bytes."""
BATCH_HEADER_FIELDS = FixedFields(
    Struct(">qiibIhiqqqhii"),
    (
        "base_offset",
        "length",
        "partition_leader_epoch",
        "magic",
        "crc",
        "attributes",
        "last_offset_delta",
        "base_timestamp",
        "max_timestamp",
        "producer_id",
        "producer_epoch",
        "base_sequence",
        "records_count",
    ),
)
"""A v2 batch up to its records. 61 bytes."""
BATCH_BASE_OFFSET = FixedField(0, 8, "q")
"""Offset of the first record as written; kept by compaction."""
BATCH_LENGTH = FixedField(8, 4, "i")
"""Bytes from partition_leader_epoch to the batch's end."""
BATCH_MAGIC = FixedField(16, 1, "b")
"""Format of the batch: 2."""
BATCH_CRC = FixedField(17, 4, "I")
"""CRC-32C of all bytes from the attributes to the batch's end."""
BATCH_ATTRIBUTES = FixedField(21, 2, "h")
"""Codec, timestamp type, flags."""
BATCH_RECORDS_COUNT = FixedField(57, 4, "i")
"""Records that are there now; 0 in a batch that compaction emptied."""
CONTROL_RECORD_KEY_FIELDS = FixedFields(Struct(">hh"), ("version", "type"))
"""The key of a control record. 4 bytes."""
CONTROL_KEY_VERSION = FixedField(0, 2, "h")
"""Version of the key: 0."""
CONTROL_KEY_TYPE = FixedField(2, 2, "h")
"""Kind of control record, see ControlType."""
END_TXN_MARKER_FIELDS = FixedFields(Struct(">hi"), ("version", "coordinator_epoch"))
"""The value of a control record that ends a transaction. 6 bytes."""
MARKER_VERSION = FixedField(0, 2, "h")
"""Version of the value: 0."""
MARKER_COORDINATOR_EPOCH = FixedField(2, 4, "i")
"""Epoch of the transaction coordinator that ended the transaction."""
OFFSET_INDEX_ENTRY_FIELDS = FixedFields(Struct(">ii"), ("relative_offset", "position"))
"""Entry of an .index. 8 bytes."""
TIME_INDEX_ENTRY_FIELDS = FixedFields(Struct(">qi"), ("timestamp", "relative_offset"))
"""Entry of a .timeindex. 12 bytes."""
TRANSACTION_INDEX_ENTRY_FIELDS = FixedFields(
    Struct(">hqqqq"), ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
)
"""Entry of a .txnindex. 34 bytes."""
PRODUCER_SNAPSHOT_HEADER_FIELDS = FixedFields(Struct(">hIi"), ("version", "crc", "entries_count"))
"""A .snapshot up to its entries. 10 bytes."""
SNAPSHOT_CRC = FixedField(2, 4, "I")
"""CRC-32C of all bytes after it."""
PRODUCER_ENTRY_FIELDS = FixedFields(
    Struct(">qhiqiqiq"),
    (
        "producer_id",
        "epoch",
        "last_sequence",
        "last_offset",
        "offset_delta",
        "timestamp",
        "coordinator_epoch",
        "current_txn_first_offset",
    ),
)
"""A producer of a .snapshot. 46 bytes."""
ENTRY_FIELDS = {
    FileKind.OFFSET_INDEX: OFFSET_INDEX_ENTRY_FIELDS,
    FileKind.TIME_INDEX: TIME_INDEX_ENTRY_FIELDS,
    FileKind.TRANSACTION_INDEX: TRANSACTION_INDEX_ENTRY_FIELDS,
}
"""Fields of entries, by the kind of file that holds nothing else."""

ATTRIBUTES = {
    "codec": 0x07,
    "timestamp_type": 0x08,
    "is_transactional": 0x10,
    "is_control": 0x20,
    "has_delete_horizon": 0x40,
}
"""Masks of the attributes' bits: what a format has of them stands at the same bits in all."""

KNOWN_ATTRIBUTES = {0: 0x07, 1: 0x0F, 2: 0x7F}
"""Magic to the bits that have a meaning; all others are 0."""
LEAST_SIZES = {0: 26, 1: 34, 2: 61}
"""Magic to the bytes of the least batch or entry: without records; with null for key and value."""
