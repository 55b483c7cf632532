"""Decoders of simple values: text, bytes, numbers, uuids, JSON, MessagePack."""

import json
import math
import struct
from base64 import b64encode
from collections.abc import Callable
from typing import NoReturn
from uuid import UUID

from kseg.decode.decoded import (
    Json,
    NotDecodable,
    ValueDecoder,
    json_able,
    library,
    named_once,
    one_line,
    without_headers,
)
from kseg.decode.wire import GUID_PREFIX_SIZE, ID_PREFIX_SIZE

UUID_TEXT_SIZE = 36


def read_string(data: bytes) -> str:
    """UTF-8."""
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise NotDecodable(f"not UTF-8: byte 0x{data[error.start]:02x} at {error.start}") from error


def read_bytes(data: bytes) -> bytes:
    """The bytes, unchanged."""
    return data


def read_hex(data: bytes) -> str:
    """Two lower-case hex digits for each byte."""
    return data.hex()


def read_base64(data: bytes) -> str:
    """Base64 with padding."""
    return b64encode(data).decode()


def number(form: str) -> Callable[[bytes], Json]:
    """A reader of big-endian numbers, as Kafka's serializers write them; `form` is struct's."""
    size = struct.calcsize(form)

    def read(data: bytes) -> Json:
        if len(data) != size:
            raise NotDecodable(f"{len(data)} bytes, not {size}")
        return json_able(struct.unpack(form, data)[0])

    return read


def read_uuid(data: bytes) -> str:
    """A uuid as text (36 characters, as Kafka's UUIDSerializer writes it) or in 16 bytes."""
    if len(data) == UUID_TEXT_SIZE:
        try:
            return str(UUID(read_string(data)))
        except ValueError as error:
            raise NotDecodable(f"not a uuid: {one_line(error)}") from error
    if len(data) != 16:
        raise NotDecodable(f"{len(data)} bytes: a uuid has 16, or {UUID_TEXT_SIZE} as text")
    return str(UUID(bytes=data))


def read_json(data: bytes) -> Json:
    """JSON text, also after the schema id that Confluent's JSON Schema serializer writes.

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
    """JSON text, as `read_json` has it, but with halves of surrogate pairs, for those who find them by themselves."""
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


_DECODER = json.JSONDecoder(parse_constant=_refuse, parse_float=_float, object_pairs_hook=named_once)
_ENCODER = json.JSONEncoder(ensure_ascii=False)
"""Made once: to make them takes longer than to use them."""


def messagepack_decoder() -> ValueDecoder:
    """MessagePack; an extension type is shown as its number and its bytes. Raises UsageError without the library."""
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
