"""Decoders of simple values (text, numbers, UUIDs, JSON, MessagePack) and of schema ids in messages."""

import json
import math
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import NamedTuple, NoReturn
from uuid import UUID

from kseg.decode.decoded import (
    Headers,
    Json,
    NotDecodable,
    Part,
    ValueDecoder,
    json_able,
    library,
    one_line,
    unique_members,
    without_headers,
)
from kseg.errors import plural
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint

MAGIC_ID = b"\0"
"""The first byte of a message with an int32 id."""
MAGIC_GUID = b"\1"
"""The first byte of a message with a GUID of 16 bytes."""
ID_PREFIX_SIZE = 5
GUID_PREFIX_SIZE = 17
SCHEMA_ID_HEADER: dict[Part, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}

SchemaId = int | UUID


class WireMessage(NamedTuple):
    """A message with its schema id.

    `after_id`: the bytes after the id: the payload or, if the id is in a header, the rest of that header. `payload`:
    None unless the id is in a header.
    """

    schema_id: SchemaId
    after_id: bytes
    payload: bytes | None = None

    @property
    def body(self) -> bytes:
        """The message itself, for formats without bytes between id and message."""
        return self.after_id if self.payload is None else self.payload


class Indexed(NamedTuple):
    """A Protobuf message: the indexes of its type in its file, outermost first, and its bytes."""

    indexes: tuple[int, ...]
    body: bytes


def parse_wire(data: bytes, headers: Headers, part: Part) -> WireMessage | None:
    """Return the message with its schema id, or None if it doesn't exist."""
    last: bytes | None = None
    for header in headers:
        if header.key == SCHEMA_ID_HEADER[part] and header.value is not None:
            last = header.value
    if last is not None:
        found = _schema_id(last)
        return None if found is None else found._replace(payload=data)
    return _schema_id(data)


def _schema_id(data: bytes) -> WireMessage | None:
    if data[:1] == MAGIC_ID and len(data) >= ID_PREFIX_SIZE:
        return WireMessage(int.from_bytes(data[1:ID_PREFIX_SIZE], "big"), data[ID_PREFIX_SIZE:])
    if data[:1] == MAGIC_GUID and len(data) >= GUID_PREFIX_SIZE:
        return WireMessage(UUID(bytes=data[1:GUID_PREFIX_SIZE]), data[GUID_PREFIX_SIZE:])
    return None


def without_id(data: bytes) -> NotDecodable:
    """Return the error of a message without a schema id."""
    first = f"byte 0 is 0x{data[:1].hex()}" if data else "the message is empty"
    return NotDecodable(f"no schema id before the message or in a header: {first}")


def parse_indexed(message: WireMessage) -> Indexed:
    """Return the Protobuf message after its list of message indexes. Raises NotDecodable if that list is invalid."""
    count, position = _zigzag(message.after_id, 0)
    if not 0 <= count <= len(message.after_id):
        raise NotDecodable(f"the message has {plural(count, 'index', 'indexes')}, more than its bytes can hold")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(message.after_id, position)
        indexes.append(index)
    body = message.after_id[position:] if message.payload is None else message.payload
    # A single 0 abbreviates the list of the first message.
    return Indexed(tuple(indexes) or (0,), body)


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    try:
        number, position = read_uvarint(data, position, LONGEST_VARINT)
    except EOFError as error:
        raise NotDecodable("the message indexes can't be read") from error
    return from_zigzag(number), position


def schema_name(schema_id: SchemaId) -> str:
    """Return the id as messages show it."""
    return f"schema {schema_id}"


UUID_TEXT_SIZE = 36


def read_string(data: bytes) -> str:
    """Return UTF-8 text."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotDecodable(f"not UTF-8: byte 0x{data[error.start]:02x} at {error.start}") from error


def read_bytes(data: bytes) -> bytes:
    """Return the bytes, unchanged."""
    return data


def read_hex(data: bytes) -> str:
    """Return two lower-case hex digits for each byte."""
    return data.hex()


def read_base64(data: bytes) -> str:
    """Return base64 with padding."""
    return b64encode(data).decode()


def number(form: str) -> Callable[[bytes], Json]:
    """Return a reader of big-endian numbers, as written by Kafka's serializers; `form` is struct's."""
    size = struct.calcsize(form)

    def read(data: bytes) -> Json:
        if len(data) != size:
            raise NotDecodable(f"it has {plural(len(data), 'byte')}, expected {size}")
        return json_able(struct.unpack(form, data)[0])

    return read


def read_uuid(data: bytes) -> str:
    """Return a UUID from text (36 characters, as written by Kafka's UUIDSerializer) or from 16 bytes."""
    if len(data) == UUID_TEXT_SIZE:
        try:
            return str(UUID(read_string(data)))
        except ValueError as error:
            raise NotDecodable(f"not a uuid: {one_line(error)}") from error
    if len(data) != 16:
        raise NotDecodable(f"it has {plural(len(data), 'byte')}; a uuid has 16, or {UUID_TEXT_SIZE} as text")
    return str(UUID(bytes=data))


def read_json(data: bytes) -> Json:
    """Return the value of JSON text, which may follow the schema id of Confluent's JSON Schema serializer.

    Refuses numbers that don't fit into a float, repeated names, and halves of surrogate pairs: showing the bytes
    unchanged loses less.
    """
    value = parse_json(data)
    try:
        _ENCODER.encode(value).encode()
    except RecursionError as error:
        raise NotDecodable("JSON is nested too deeply") from error
    except ValueError as error:
        raise NotDecodable(f"not JSON: {one_line(error)}") from error
    return value


def parse_json(data: bytes) -> Json:
    """Return the value of JSON text like `read_json`, but accept halves of surrogate pairs, which callers handle."""
    if data[:1] in (b"\0", b"\1"):
        data = data[ID_PREFIX_SIZE if data[0] == 0 else GUID_PREFIX_SIZE :]
    text = read_string(data)
    try:
        value: Json = _DECODER.decode(text)
    except RecursionError as error:
        raise NotDecodable("JSON is nested too deeply") from error
    except ValueError as error:
        raise NotDecodable(f"not JSON: {one_line(error)}") from error
    return value


def _refuse(constant: str) -> NoReturn:
    raise NotDecodable(f"not JSON: {constant}")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise NotDecodable(f"the number {one_line(text)} is too large")
    return value


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_float, object_pairs_hook=unique_members)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""A shared encoder: constructing it takes longer than using it."""


def messagepack_decoder() -> ValueDecoder:
    """Return a decoder of MessagePack; extension types become number and bytes.

    Raises UsageError without the library.
    """
    msgpack = library("msgpack", "msgpack")
    errors = (ValueError, TypeError, OverflowError, RecursionError, msgpack.exceptions.UnpackException)

    def extension(code: int, data: bytes) -> dict[str, Json]:
        return {"extensionType": code, "dataBase64": b64encode(data).decode()}

    def read(data: bytes) -> Json:
        try:
            value = msgpack.unpackb(data, ext_hook=extension, timestamp=3, strict_map_key=False)
            return json_able(value)
        except errors as error:
            raise NotDecodable(f"not MessagePack: {one_line(error) or type(error).__name__}") from error

    return without_headers(read)
