"""Producer snapshots (.snapshot): the state of idempotent and transactional producers up to an offset."""

from construct import (
    Array,
    Default,
    GreedyBytes,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Rebuild,
    Struct,
    len_,
    this,
)

PRODUCER_ENTRY = Struct(
    "producer_id" / Int64sb * "the producer's id",
    "epoch" / Int16sb * "the producer's epoch",
    "last_sequence" / Int32sb * "last sequence of its last data batch; -1 none",
    "last_offset" / Int64sb * "last offset of that batch; -1 none",
    "offset_delta" / Int32sb * "last offset minus first offset of that batch",
    "timestamp" / Int64sb * "max timestamp of that batch, in milliseconds",
    "coordinator_epoch" / Int32sb * "coordinator epoch of its last marker; -1 none",
    "current_txn_first_offset" / Int64sb * "first offset of its open transaction; -1 none",
)
"""46 bytes."""

PRODUCER_SNAPSHOT = Struct(
    "version" / Int16sb * "version of the file: 1",
    "crc" / Int32ub * "CRC-32C of all bytes after it",
    "entries_count" / Rebuild(Int32sb, len_(this.entries)) * "producers in the file",
    "entries" / Array(this.entries_count, PRODUCER_ENTRY) * "one per producer",
    "trailing" / Default(GreedyBytes, b"") * "bytes after the last entry; Kafka never writes any, and ignores them",
)
"""The whole file; the CRC is built as given. Source: ProducerStateManager."""
