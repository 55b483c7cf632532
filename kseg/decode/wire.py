"""The schema id with a message: before it (magic and id), or in a header. Source: Confluent's wire format, SchemaId."""

from typing import NamedTuple
from uuid import UUID

from kseg.decode.decoded import Headers, NotDecodable, Part
from kseg.formats.varint_bytes import LONGEST_VARINT, from_zigzag, read_uvarint

MAGIC_ID = b"\0"
"""An int32 id follows it."""
MAGIC_GUID = b"\1"
"""The 16 bytes of a GUID follow it."""
ID_PREFIX_SIZE = 5
GUID_PREFIX_SIZE = 17
SCHEMA_ID_HEADER: dict[Part, str] = {"key": "__key_schema_id", "value": "__value_schema_id"}

SchemaId = int | UUID


class WireMessage(NamedTuple):
    """A message with its schema's id.

    `after_id` is what follows the id: the payload, or, if the id is in a header, the rest of that header. `payload` is
    None unless the id is in a header.
    """

    schema_id: SchemaId
    after_id: bytes
    payload: bytes | None = None

    @property
    def body(self) -> bytes:
        """The message itself, for formats that have nothing between id and message."""
        return self.after_id if self.payload is None else self.payload


class Indexed(NamedTuple):
    """A Protobuf message: which message of its file it is, outermost first, and its bytes."""

    indexes: tuple[int, ...]
    body: bytes


def parse_wire(data: bytes, headers: Headers, part: Part) -> WireMessage | None:
    """The message with its schema id; None if there is none."""
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


def parse_indexed(message: WireMessage) -> Indexed:
    """The Protobuf message after its list of message indexes. Raises NotDecodable if that list is invalid."""
    count, position = _zigzag(message.after_id, 0)
    if not 0 <= count <= len(message.after_id):
        raise NotDecodable(f"the message names {count} indexes, more than its bytes can hold")
    indexes = []
    for _ in range(count):
        index, position = _zigzag(message.after_id, position)
        indexes.append(index)
    body = message.after_id[position:] if message.payload is None else message.payload
    # A single 0 is what an empty list stands for: the first message.
    return Indexed(tuple(indexes) or (0,), body)


def _zigzag(data: bytes, position: int) -> tuple[int, int]:
    try:
        number, position = read_uvarint(data, position, LONGEST_VARINT)
    except EOFError as error:
        raise NotDecodable("the message indexes can't be read") from error
    return from_zigzag(number), position


def schema_name(schema_id: SchemaId) -> str:
    """The id as messages show it."""
    return f"schema {schema_id}"
