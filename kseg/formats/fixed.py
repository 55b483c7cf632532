"""Struct formats and field names of entries of fixed size, and index entries as values, without construct.

The grammars define these fields; tests compare both.
"""

from struct import Struct, calcsize
from typing import NamedTuple


class FixedFields(NamedTuple):
    """Fields of fixed size: `struct` unpacks them in the order of `names`."""

    struct: Struct
    names: tuple[str, ...]

    def position(self, name: str) -> int:
        """Bytes before a field."""
        return calcsize(self.struct.format[: 1 + self.names.index(name)])


class OffsetIndexEntry(NamedTuple):
    """Entry of an .index: absolute offset, byte position in the .log."""

    offset: int
    position: int


class TimeIndexEntry(NamedTuple):
    """Entry of a .timeindex: milliseconds, absolute offset."""

    timestamp: int
    offset: int


class AbortedTransaction(NamedTuple):
    """Entry of a .txnindex: a transaction of this partition that ended with an abort marker at `last_offset`."""

    version: int
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


LOG_ENTRY_HEADER_V0_FIELDS = FixedFields(
    Struct(">qiIbbi"), ("offset", "message_size", "crc", "magic", "attributes", "key_length")
)
"""A v0 log entry up to the key."""

LOG_ENTRY_HEADER_V1_FIELDS = FixedFields(
    Struct(">qiIbbqi"), ("offset", "message_size", "crc", "magic", "attributes", "timestamp", "key_length")
)
"""A v1 log entry up to the key."""

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

OFFSET_INDEX_ENTRY_FIELDS = FixedFields(Struct(">ii"), ("relative_offset", "position"))
TIME_INDEX_ENTRY_FIELDS = FixedFields(Struct(">qi"), ("timestamp", "relative_offset"))
ABORTED_TRANSACTION_FIELDS = FixedFields(
    Struct(">hqqqq"), ("version", "producer_id", "first_offset", "last_offset", "last_stable_offset")
)
TRANSACTION_INDEX_VERSION = 0
"""The version that Kafka writes into each entry, and the newest that it reads."""

PRODUCER_SNAPSHOT_HEADER_FIELDS = FixedFields(Struct(">hIi"), ("version", "crc", "entries_count"))
PRODUCER_SNAPSHOT_CRC_COVERS_FROM = PRODUCER_SNAPSHOT_HEADER_FIELDS.position("entries_count")
"""Position of the first byte that the CRC-32C covers; it covers all from there to the file's end."""
PRODUCER_SNAPSHOT_VERSION = 1
"""The version that Kafka writes, and the only one that it reads."""
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
