"""Log entries with messages of magic 0 and 1: what a .log held up to 0.10."""

from collections.abc import Callable
from typing import Any

from construct import (
    BitsInteger,
    BitStruct,
    Bytes,
    Computed,
    Default,
    Error,
    FixedSized,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Int32sb,
    Int32ub,
    Int64sb,
    Padding,
    Peek,
    Rebuild,
    Struct,
    Switch,
    this,
)


def nullable_bytes(length_field: str) -> Any:
    """As many bytes as the field `length_field` says; None if that is negative.

    Kafka writes -1 for null, and reads every negative length as null.
    """
    return IfThenElse(this[length_field] < 0, Computed(None), Bytes(this[length_field]))


def length_or_null(field: str) -> Callable[[Any], int]:
    """Builds the length of the nullable bytes `field`: -1 for None."""

    def length(context: Any) -> int:
        value = context[field]
        return -1 if value is None else len(value)

    return length


ATTRIBUTES_V0 = BitStruct(
    "unused" / BitsInteger(5) * "0",
    "codec" / BitsInteger(3) * "0 none, 1 gzip, 2 snappy, 3 lz4; not 0: a wrapper",
)

ATTRIBUTES_V1 = BitStruct(
    "unused" / BitsInteger(4) * "0",
    "timestamp_type" / BitsInteger(1) * "0 CreateTime, 1 LogAppendTime",
    "codec" / BitsInteger(3) * "0 none, 1 gzip, 2 snappy, 3 lz4; not 0: a wrapper",
)

_KEY_AND_VALUE = (
    "key_length" / Rebuild(Int32sb, length_or_null("key")) * "bytes of the key; -1: null key, no key bytes",
    "key" / nullable_bytes("key_length") * "the key; null in a wrapper",
    "value_length" / Rebuild(Int32sb, length_or_null("value")) * "bytes of the value; -1: null value (tombstone)",
    "value" / nullable_bytes("value_length") * "the value; a wrapper's: the compressed log entries",
    "trailing" / Default(GreedyBytes, b"") * "bytes after the value; Kafka never writes any, and ignores them",
)

MESSAGE_V0 = Struct(
    "crc" / Int32ub * "CRC-32 of all bytes from the magic to the message's end",
    "magic" / Int8sb * "format of the message: 0",
    "attributes" / ATTRIBUTES_V0 * "codec",
    *_KEY_AND_VALUE,
)

MESSAGE_V1 = Struct(
    "crc" / Int32ub * "CRC-32 of all bytes from the magic to the message's end",
    "magic" / Int8sb * "format of the message: 1",
    "attributes" / ATTRIBUTES_V1 * "codec and timestamp type",
    "timestamp" / Int64sb * "milliseconds since 1970, -1 none; a wrapper's: largest inner one, or the append time",
    *_KEY_AND_VALUE,
)

MESSAGES = {0: MESSAGE_V0, 1: MESSAGE_V1}
"""Magic to the message's grammar."""


def _message_magic(context: Any) -> int | None:
    if context._building:
        magic: int | None = context.message["magic"]
        return magic
    return None if context._ahead is None else context._ahead.magic


def _message_size(context: Any) -> int:
    return len(MESSAGES.get(context.message["magic"], Error).build(context.message))


LOG_ENTRY = Struct(
    "offset" / Int64sb * "offset of the message; a wrapper's: of its last inner message",
    "message_size" / Rebuild(Int32sb, _message_size) * "bytes of the message that follows",
    "_ahead" / Peek(Struct(Padding(4), "magic" / Int8sb)),
    "message" / FixedSized(this.message_size, Switch(_message_magic, MESSAGES, default=Error)) * "chosen by its magic",
)
"""An entry of a v0/v1 log: 12 bytes (LOG_OVERHEAD) and a message."""
LOG_OVERHEAD = sum(field.sizeof() for field in LOG_ENTRY.subcons[:2])
