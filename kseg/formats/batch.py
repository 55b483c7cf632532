"""Batches, records and log entries of all magics, and the catalogue of binary formats."""

from collections.abc import Callable
from typing import Any, NamedTuple

from construct import (
    Array,
    Bytes,
    CheckError,
    Computed,
    Construct,
    Default,
    Error,
    FixedSized,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Padding,
    Peek,
    Rebuild,
    Struct,
    Switch,
    Tell,
    len_,
    stream_tell,
    this,
)

from kseg.formats import control
from kseg.formats import indexes as index
from kseg.formats import indexes as snapshot
from kseg.formats.codes import CODECS_SINCE, LOG_OVERHEAD, Codec, codec_name
from kseg.formats.file_names import FileKind
from kseg.formats.grammar import VARINT, VARLONG, grammar, grammars
from kseg.formats.header_fields import (
    BATCH_HEADER_FIELDS,
    LOG_OVERHEAD_FIELDS,
    MESSAGE_V0_FIELDS,
    MESSAGE_V1_FIELDS,
    VALUE_LENGTH,
    FixedFields,
)


def nullable_bytes(length_field: str) -> Any:
    """Return the grammar of as many bytes as the field `length_field` says, or None if that is negative.

    Kafka writes -1 for null, and reads every negative length as null.
    """
    return IfThenElse(this[length_field] < 0, Computed(None), Bytes(this[length_field]))


def length_or_null(field: str) -> Callable[[Any], int]:
    """Return the length of the nullable bytes `field` for building: -1 for None."""

    def length(context: Any) -> int:
        value = context[field]
        return -1 if value is None else len(value)

    return length


def _message(fields: FixedFields) -> Any:
    return Struct(
        *grammars(fields, key_length=length_or_null("key")),
        "key" / nullable_bytes("key_length") * "the key; null in a wrapper",
        grammar(VALUE_LENGTH, length_or_null("value")),
        "value" / nullable_bytes("value_length") * "the value; a wrapper's: the compressed log entries",
        "trailing" / Default(GreedyBytes, b"") * "bytes after the value; Kafka never writes any, and ignores them",
    )


MESSAGE_V0 = _message(MESSAGE_V0_FIELDS)
MESSAGE_V1 = _message(MESSAGE_V1_FIELDS)
ATTRIBUTES_V0, ATTRIBUTES_V1 = (message.attributes.subcon.subcon for message in (MESSAGE_V0, MESSAGE_V1))
MESSAGES = {0: MESSAGE_V0, 1: MESSAGE_V1}
"""The grammars of messages by magic."""


def _message_magic(context: Any) -> int | None:
    if context._building:
        magic: int | None = context.message["magic"]
        return magic
    return None if context._ahead is None else context._ahead.magic


def _message_size(context: Any) -> int:
    return len(MESSAGES.get(context.message["magic"], Error).build(context.message))


LOG_ENTRY = Struct(
    *grammars(LOG_OVERHEAD_FIELDS, message_size=_message_size),
    "_ahead" / Peek(Struct(Padding(4), "magic" / Int8sb)),
    "message" / FixedSized(this.message_size, Switch(_message_magic, MESSAGES, default=Error)) * "chosen by its magic",
)
"""An entry of a v0/v1 log: 12 bytes (LOG_OVERHEAD) and a message."""


class _EndsAt(Construct):  # type: ignore[misc]  # construct has no types
    """A check without bytes: raises CheckError if the stream isn't where the preceding lengths say."""

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
"""A record of an uncompressed or decompressed body; its end must match its length. Source: DefaultRecord."""

RECORD_BATCH = Struct(
    "_start" / Tell,
    "header" / BATCH_HEADER * "the batch's header",
    "records" / Array(this.header.records_count, RECORD) * "the records, one after another",
    _EndsAt(this._start + LOG_OVERHEAD + this.header.length),
)
"""A complete uncompressed batch. Length, count and CRC are built as given, so building returns the stored bytes."""

COMPRESSED_RECORD_BATCH = Struct(
    "header" / BATCH_HEADER * "the batch's header",
    "records"
    / Bytes(this.header.length + LOG_OVERHEAD - BATCH_HEADER.sizeof())
    * "the records, compressed as one piece",
)
"""A complete compressed batch, with its records as compressed bytes."""


class BinaryFormat(NamedTuple):
    """A format: its title, a sentence about it, and its grammar.

    kind: the kind of files that consist of entries of this format.
    """

    title: str
    about: str
    grammar: Any
    kind: FileKind | None = None


FORMATS: dict[str, BinaryFormat] = {
    "log-entry": BinaryFormat("Log entry, v0 and v1", "In a .log up to 0.10; its message follows.", LOG_ENTRY),
    "message-v0": BinaryFormat("Message, v0", "Up to 0.9.", MESSAGE_V0),
    "message-v1": BinaryFormat("Message, v1", "0.10.0 to 0.10.2.", MESSAGE_V1),
    "record-batch": BinaryFormat("Record batch, v2", "From 0.11; the records follow, compressed as one.", BATCH_HEADER),
    "record": BinaryFormat("Record, v2", "In a batch, one after another.", RECORD),
    "record-header": BinaryFormat("Header of a record", "In a v2 record.", RECORD_HEADER),
    "offset-index": BinaryFormat(
        "Entry of an .index",
        "8 bytes; a preallocated file ends in zeros.",
        index.OFFSET_INDEX_ENTRY,
        FileKind.OFFSET_INDEX,
    ),
    "time-index": BinaryFormat(
        "Entry of a .timeindex", "12 bytes; from 0.10.1.", index.TIME_INDEX_ENTRY, FileKind.TIME_INDEX
    ),
    "transaction-index": BinaryFormat(
        "Entry of a .txnindex", "34 bytes; from 0.11.", index.ABORTED_TRANSACTION, FileKind.TRANSACTION_INDEX
    ),
    "producer-snapshot": BinaryFormat("Producer snapshot", "A .snapshot; from 0.11.", snapshot.PRODUCER_SNAPSHOT),
    "producer-entry": BinaryFormat("Producer in a snapshot", "46 bytes.", snapshot.PRODUCER_ENTRY),
    "control-record-key": BinaryFormat("Key of a control record", "From 0.11.", control.CONTROL_RECORD_KEY),
    "end-txn-marker": BinaryFormat("Value of ABORT and COMMIT", "From 0.11.", control.END_TXN_MARKER),
    "leader-change": BinaryFormat("Value of LEADER_CHANGE", "KRaft.", control.LEADER_CHANGE),
    "snapshot-header": BinaryFormat("Value of SNAPSHOT_HEADER", "KRaft.", control.SNAPSHOT_HEADER),
    "snapshot-footer": BinaryFormat("Value of SNAPSHOT_FOOTER", "KRaft.", control.SNAPSHOT_FOOTER),
    "kraft-version": BinaryFormat("Value of KRAFT_VERSION", "KRaft, from 3.8.", control.KRAFT_VERSION),
    "kraft-voters": BinaryFormat("Value of KRAFT_VOTERS", "KRaft, from 3.8.", control.VOTERS),
}
"""The formats by their names for `kseg explain --grammar`."""
