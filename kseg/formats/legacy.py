"""Log entries with messages of magic 0 and 1: what a .log held up to 0.10."""

from collections.abc import Callable
from typing import Any

from construct import (
    Bytes,
    Computed,
    Default,
    Error,
    FixedSized,
    GreedyBytes,
    IfThenElse,
    Int8sb,
    Padding,
    Peek,
    Struct,
    Switch,
    this,
)

from kseg.formats.grammar import grammar, grammars
from kseg.formats.header_fields import (
    LOG_OVERHEAD_FIELDS,
    MESSAGE_V0_FIELDS,
    MESSAGE_V1_FIELDS,
    VALUE_LENGTH,
    FixedFields,
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
"""Magic to the message's grammar."""


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
