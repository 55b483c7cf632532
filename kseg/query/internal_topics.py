"""Records of internal topics as structs: their keys and values by Kafka's schemas.

A topic's messages share one struct with all their fields, and `type` tells which message it is: so a query says
`decodedValue.leader`, whatever the message.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import pyarrow as pa

from kseg.decode.framed import parse_framed
from kseg.export.decoding import COLUMNS
from kseg.export.typed.arrow_types import list_of
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES_TO_4_0,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    Field,
    MessageSchema,
    message_schema,
)

Messages = Mapping[int, MessageSchema]
_PREFIX_SIZE = 2
"""Bytes of the number before a coordinator's message: a key's type, a value's version."""
MOST_ELEMENTS = 1 << 20
"""The most elements of one record's lists: each becomes an object of hundreds of bytes."""
_SCALARS: dict[str, pa.DataType] = {
    "bool": pa.bool_(),
    "string": pa.string(),
    "uuid": pa.string(),
    "bytes": pa.binary(),
    "records": pa.binary(),
    "float64": pa.float64(),
}
"""Kafka's types in Arrow; those that aren't here are whole numbers."""
_EMBEDDED = {"subscription": "ConsumerProtocolSubscription", "assignment": "ConsumerProtocolAssignment"}
"""Fields of classic groups' members that hold a message of the consumers' own."""
_CONSUMERS = "consumer"


class _Read(NamedTuple):
    """A message: its type's name, its version, its fields."""

    type: str
    version: int
    fields: Fields


@dataclass(frozen=True, slots=True)
class InternalTopic:
    """How a topic's keys and values are read; keys None where there are none."""

    values: Messages
    keys: Messages | None = None

    def fields(self) -> tuple[pa.Field, ...]:
        """The columns that it adds."""
        key = [] if self.keys is None else [pa.field(COLUMNS["key"], _shape(tuple(self.keys.values())).type)]
        return (*key, pa.field(COLUMNS["value"], self._value_shape.type))

    @property
    def _value_shape(self) -> "_Shape":
        return _shape(tuple(self.values.values()))

    def added(self, batch: pa.RecordBatch, names: Sequence[str]) -> pa.RecordBatch:
        """The batch with some of these columns; null where a record can't be read so."""
        keys, values = batch.column("key").to_pylist(), batch.column("value").to_pylist()
        readers: dict[str, Callable[[bytes | None, bytes | None], _Read | None]] = {
            COLUMNS["key"]: lambda key, _: self._key(key),
            COLUMNS["value"]: self._value,
        }
        for field in self.fields():
            if field.name in names:
                found = map(readers[field.name], keys, values)
                renamed = self._value_shape.renamed if field.name == COLUMNS["value"] else {}
                rows = [None if read is None else _row(read, renamed) for read in found]
                batch = batch.append_column(field, pa.array(rows, field.type))
        return batch

    def _key(self, key: bytes | None) -> _Read | None:
        if key is None or len(key) < _PREFIX_SIZE or self.keys is None:
            return None
        message = self.keys.get(VERSION.read(key))
        return None if message is None else _message(message, key, message.name.removesuffix("Key"))

    def _value(self, key: bytes | None, value: bytes | None) -> _Read | None:
        if value is None:
            return None
        if self.keys is None:
            with suppress(MessageError):
                framed = parse_framed(self.values, value)
                return _Read(framed.message.name, framed.version, framed.fields)
            return None
        if key is None or min(len(key), len(value)) < _PREFIX_SIZE:
            return None
        message = self.values.get(VERSION.read(key))
        return None if message is None else _message(message, value, message.name.removesuffix("Value"))


def _message(message: MessageSchema, data: bytes, name: str) -> _Read | None:
    version = VERSION.read(data)
    with suppress(MessageError):
        parsed = parse_message(message, version, data, _PREFIX_SIZE, most_elements=MOST_ELEMENTS)
        return _Read(name, version, parsed.value)
    return None


def _row(read: _Read, renamed: Mapping[tuple[str, str], str]) -> Fields:
    fields = {renamed.get((read.type, name), name): value for name, value in read.fields.items()}
    if read.type == "GroupMetadata" and "members" in fields:
        is_consumers = fields["protocolType"] == _CONSUMERS
        members = [_with_embedded(member, is_read=is_consumers) for member in fields["members"]]
        fields = {**fields, "members": members}
    return {**_plain(fields), "type": read.type, "version": read.version}


def _with_embedded(member: Fields, *, is_read: bool) -> Fields:
    return {**member, **{name: _embedded(name, member[name]) if is_read else None for name in _EMBEDDED}}


def _embedded(name: str, data: bytes) -> Fields | None:
    read = None if len(data) < _PREFIX_SIZE else _message(message_schema(_EMBEDDED[name]), data, name)
    return None if read is None else {"version": read.version, **_plain(read.fields)}


def _plain(value: Any) -> Any:
    """Text that isn't Unicode escaped: tables have no other."""
    match value:
        case str() if not value.isascii():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list():
            return [_plain(inner) for inner in value]
    return value


# --- types ------------------------------------------------------------------------------------------------------------


class _Shape(NamedTuple):
    """The struct of some messages; and its names for fields whose type is another than that of an earlier message."""

    type: pa.DataType
    renamed: Mapping[tuple[str, str], str]


@lru_cache
def _shape(messages: tuple[MessageSchema, ...]) -> _Shape:
    merged: dict[str, pa.DataType] = {"type": pa.string(), "version": pa.int64()}
    renamed: dict[tuple[str, str], str] = {}
    for message in messages:
        kind = message.name.removesuffix("Value")
        for field in message.fields:
            try:
                _merge(merged, field.name, _type(field))
            except _UnlikeError:
                renamed[kind, field.name] = f"{field.name}Of{kind}"
                _merge(merged, renamed[kind, field.name], _type(field))
    return _Shape(pa.struct(list(merged.items())), renamed)


class _UnlikeError(Exception):
    """No type has room for the values of both."""


def _merge(merged: dict[str, pa.DataType], name: str, kind: pa.DataType) -> None:
    merged[name] = kind if name not in merged else _both(merged[name], kind)


def _both(one: pa.DataType, other: pa.DataType) -> pa.DataType:
    """A type that has room for the values of two messages' fields of the same name."""
    if one == other:
        return one
    if pa.types.is_list(one) and pa.types.is_list(other):
        return list_of(_both(one.value_type, other.value_type))
    if pa.types.is_struct(one) and pa.types.is_struct(other):
        merged: dict[str, pa.DataType] = {}
        for field in (*one, *other):
            _merge(merged, field.name, field.type)
        return pa.struct(list(merged.items()))
    raise _UnlikeError


def _type(field: Field) -> pa.DataType:
    if field.type.startswith("[]"):
        return list_of(_type(field._replace(type=field.type[2:])))
    if field.fields:
        return pa.struct([pa.field(inner.name, _type(inner)) for inner in field.fields])
    if field.name in _EMBEDDED and field.type == "bytes":
        own = [pa.field(inner.name, _type(inner)) for inner in message_schema(_EMBEDDED[field.name]).fields]
        return pa.struct([pa.field("version", pa.int64()), *own])
    return _SCALARS.get(field.type, pa.int64())


INTERNAL_TOPICS: dict[str, InternalTopic] = {
    "__consumer_offsets": InternalTopic(OFFSETS_VALUES_TO_4_0, OFFSETS_KEYS),
    "__transaction_state": InternalTopic(TRANSACTION_VALUES, TRANSACTION_KEYS),
    "__share_group_state": InternalTopic(SHARE_STATE_VALUES, SHARE_STATE_KEYS),
    "__cluster_metadata": InternalTopic(METADATA_RECORDS),
    "__remote_log_metadata": InternalTopic(REMOTE_LOG_RECORDS),
}
