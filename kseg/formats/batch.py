"""Batches and records of magic 2: what a .log holds from 0.11 on."""

from collections.abc import Callable
from typing import Any

from construct import (
    Array,
    Bytes,
    CheckError,
    Construct,
    Int8sb,
    Rebuild,
    Struct,
    Tell,
    len_,
    stream_tell,
    this,
)

from kseg.formats.codes import CODECS_SINCE, LOG_OVERHEAD, Codec, codec_name
from kseg.formats.grammar import grammars
from kseg.formats.header_fields import BATCH_HEADER_FIELDS
from kseg.formats.legacy import length_or_null, nullable_bytes
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
_CODECS += f"; {len(Codec)}-7 unknown"


BATCH_HEADER = Struct(*grammars(BATCH_HEADER_FIELDS, meanings={"codec": _CODECS}))
"""The 61 bytes before the records. Source: DefaultRecordBatch."""
ATTRIBUTES = BATCH_HEADER.attributes.subcon.subcon

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
