"""The header of Redpanda's batches, which distinguishes them from Kafka's. Source: model::record_batch_header."""

from construct import Int8sl, Int16sl, Int32sl, Int32ul, Int64sl, Struct

REDPANDA_HEADER = Struct(
    "header_crc" / Int32ul,
    "size_bytes" / Int32sl,
    "base_offset" / Int64sl,
    "type" / Int8sl,
    "crc" / Int32ul,
    "attributes" / Int16sl,
    "last_offset_delta" / Int32sl,
    "first_timestamp" / Int64sl,
    "max_timestamp" / Int64sl,
    "producer_id" / Int64sl,
    "producer_epoch" / Int16sl,
    "base_sequence" / Int32sl,
    "record_count" / Int32sl,
)
"""header_crc: the CRC-32C of the header's other fields. size_bytes: the size of the batch with its header."""
