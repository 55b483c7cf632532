"""Batches and records of magic 2: what a .log holds from 0.11 on."""

from collections.abc import Callable
from typing import Any

from construct import (
    Array,
    BitsInteger,
    BitStruct,
    Bytes,
    CheckError,
    Construct,
    Flag,
    Int8sb,
    Int16sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Rebuild,
    Struct,
    Tell,
    len_,
    stream_tell,
    this,
)

from kseg.formats.codes import CODECS_SINCE, Codec, codec_name
from kseg.formats.legacy import LOG_OVERHEAD, length_or_null, nullable_bytes
from kseg.formats.varint import VARINT, VARLONG


class _EndsAt(Construct):  # type: ignore[misc]  # construct has no types
    """Takes no bytes; raises CheckError if the stream isn't where the lengths before say that it should be."""

    def __init__(self, position: Callable[[Any], int]) -> None:
        super().__init__()
        self.position = position
        self.flagbuildnone = True

    def _parse(self, stream: Any, context: Any, path: str) -> None:
        self._check(stream, context, path)

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> None:
        self._check(stream, context, path)

    def _check(self, stream: Any, context: Any, path: str) -> None:
        here, end = stream_tell(stream, path), self.position(context)
        if here != end:
            raise CheckError(f"ends at byte {here}, its length says {end}", path=path)


_CODECS = ", ".join(
    f"{codec} {codec_name(codec)}" + (f" ({CODECS_SINCE[codec]} on)" if codec in CODECS_SINCE else "")
    for codec in Codec
)

ATTRIBUTES = BitStruct(
    "unused" / BitsInteger(9) * "0; Kafka reads the low byte only",
    "has_delete_horizon" / Flag * "base_timestamp is the time from which tombstones and markers may go (3.1 on)",
    "is_control" / Flag * "control batch: its records are the broker's (markers, KRaft's state)",
    "is_transactional" / Flag * "part of a transaction",
    "timestamp_type" / BitsInteger(1) * "0 CreateTime, 1 LogAppendTime",
    "codec" / BitsInteger(3) * f"{_CODECS}; {len(Codec)}-7 unknown",
)

BATCH_HEADER = Struct(
    "base_offset" / Int64sb * "offset of the first record as written; kept by compaction",
    "length" / Int32sb * "bytes from partition_leader_epoch to the batch's end",
    "partition_leader_epoch" / Int32sb * "epoch of the leader that appended it, set by the broker; -1 none",
    "magic" / Int8sb * "format of the batch: 2",
    "crc" / Int32ub * "CRC-32C of all bytes from the attributes to the batch's end",
    "attributes" / ATTRIBUTES * "codec, timestamp type, flags",
    "last_offset_delta" / Int32sb * "last offset minus base_offset; kept by compaction",
    "base_timestamp"
    / Int64sb
    * "base of the records' time deltas in milliseconds; the delete horizon if that bit is set",
    "max_timestamp" / Int64sb * "largest record time (CreateTime) or append time (LogAppendTime), in milliseconds",
    "producer_id" / Int64sb * "id of an idempotent or transactional producer; -1 none",
    "producer_epoch" / Int16sb * "epoch of that producer; -1 none",
    "base_sequence" / Int32sb * "sequence of the first record as written; -1 none",
    "records_count" / Int32sb * "records that are there now; 0 in a batch that compaction emptied",
)
"""The 61 bytes before the records. Source: DefaultRecordBatch."""

RECORD_HEADER = Struct(
    "key_length" / Rebuild(VARINT, len_(this.key)) * "bytes of the key; never negative",
    "key" / Bytes(this.key_length) * "the header's key, UTF-8; never null",
    "value_length" / Rebuild(VARINT, length_or_null("value")) * "bytes of the value; -1: null",
    "value" / nullable_bytes("value_length") * "the header's value",
)

_RECORD_BODY = Struct(
    "attributes" / Int8sb * "0; unused",
    "timestamp_delta" / VARLONG * "time minus the batch's base_timestamp, in milliseconds",
    "offset_delta" / VARINT * "offset minus the batch's base_offset",
    "key_length" / Rebuild(VARINT, length_or_null("key")) * "bytes of the key; -1: null",
    "key" / nullable_bytes("key_length") * "the key",
    "value_length" / Rebuild(VARINT, length_or_null("value")) * "bytes of the value; -1: null (tombstone)",
    "value" / nullable_bytes("value_length") * "the value",
    "headers_count" / Rebuild(VARINT, len_(this.headers)) * "headers that follow; never negative",
    "headers" / Array(this.headers_count, RECORD_HEADER) * "the headers, in the producer's order",
)

RECORD = Struct(
    "length" / Rebuild(VARINT, lambda context: len(_RECORD_BODY.build(context))) * "bytes of the record that follow",
    "_body" / Tell,
    *_RECORD_BODY.subcons,
    _EndsAt(this._body + this.length),
)
"""A record of an uncompressed or decompressed body; its end must be where its length says. Source: DefaultRecord."""

RECORD_BATCH = Struct(
    "_start" / Tell,
    "header" / BATCH_HEADER * "the batch's header",
    "records" / Array(this.header.records_count, RECORD) * "the records, one after another",
    _EndsAt(this._start + LOG_OVERHEAD + this.header.length),
)
"""A whole uncompressed batch. Length, count and CRC are built as given, so building returns the stored bytes."""

COMPRESSED_RECORD_BATCH = Struct(
    "header" / BATCH_HEADER * "the batch's header",
    "records"
    / Bytes(this.header.length + LOG_OVERHEAD - BATCH_HEADER.sizeof())
    * "the records, compressed as one piece",
)
"""A whole compressed batch, with its records as compressed bytes."""
