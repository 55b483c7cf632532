"""Definitions of messages, and such messages: Avro, Protobuf, JSON Schema, a schema registry's topic."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import md5
from io import BytesIO
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import fastavro
from confluent_kafka.schema_registry import Schema, SchemaReference
from google.protobuf import json_format
from google.protobuf.descriptor_pb2 import FileDescriptorProto, FileDescriptorSet
from google.protobuf.message import DecodeError, Message
from google.protobuf.message_factory import GetMessages
from grpc_tools import protoc

from tests.decode.schemas_topic import schema_key, schema_value
from tests.fuzz.mutations import havoc, mutated_json_text, number
from tests.kernel.made import BatchHeader, Record, batch

FOLDER = "definitions"
LOG = f"{0:020}.log"
LINE = {"type": "record", "name": "shop.Line", "fields": [{"name": "n", "type": "int"}]}
ORDER: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "name", "type": ["null", "string"], "default": None, "aliases": ["title"]},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "placed", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "day", "type": {"type": "int", "logicalType": "date"}},
        {"name": "time", "type": {"type": "long", "logicalType": "time-micros"}},
        {"name": "uuid", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["NEW", "PAID"]}},
        {"name": "code", "type": {"type": "fixed", "name": "Code", "size": 4}},
        {"name": "lines", "type": {"type": "array", "items": "shop.Line"}},
        {"name": "more", "type": {"type": "map", "values": ["null", "double", "boolean"]}},
        {"name": "next", "type": ["null", "shop.Order"], "default": None},
    ],
}
WHOLE_ORDER = {**ORDER, "fields": [{"name": "first", "type": LINE}, *ORDER["fields"]]}
PRICE = """syntax = "proto3"; package shop; message Price { sint64 cents = 1; string currency = 2; }"""
ORDERS = """syntax = "proto3"; package shop;
import "price.proto";
import "google/protobuf/timestamp.proto";
import "google/protobuf/struct.proto";
message Order {
  enum State { NEW = 0; PAID = 1; }
  message Line { string article = 1; repeated fixed32 counts = 2; Order within = 3; }
  uint64 id = 1; Price price = 2; google.protobuf.Timestamp placed_at = 3; bytes raw = 4;
  repeated Line lines = 5; map<string, Line> named = 6; State state = 7; double ratio = 9;
  oneof either { string left = 10; sfixed64 right = 11; } optional bool flag = 12; google.protobuf.Value any = 13;
}
"""
OBJECT: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id"],
    "properties": {
        "id": {"type": "integer"},
        "name": {"oneOf": [{"type": "null"}, {"type": "string", "enum": ["a", "b"]}]},
        "placed": {"type": "string", "format": "date-time"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "more": {"type": "object", "additionalProperties": {"type": "number"}},
        "every": {"allOf": [{"$ref": "#/definitions/line"}]},
        "either": {"anyOf": [{"type": "boolean"}, {"type": ["integer", "null"]}], "const": 3},
    },
    "definitions": {"line": {"type": "object", "properties": {"n": {"type": "number"}, "next": {"$ref": "#"}}}},
}
AVRO_ID, PROTOBUF_ID, COMPILED_ID, JSON_ID, LONG_ID = 1, 3, 5, 6, 7


class Sent(NamedTuple):
    """A message with a serializer's prefix: its schema id, and for Protobuf the message's index in the file."""

    schema_id: int
    body: bytes
    indexes: bytes = b""


class Registered(NamedTuple):
    """A schema in a registry, and its subject."""

    subject: str
    schema_id: int
    schema: Schema


@cache
def descriptors() -> bytes:
    """Return the descriptor set of the Protobuf files."""
    with TemporaryDirectory(prefix="kseg-fuzz-") as folder:
        (Path(folder) / "price.proto").write_text(PRICE)
        (Path(folder) / "order.proto").write_text(ORDERS)
        own = Path(protoc.__file__).parent / "_proto"
        arguments = [f"-I{folder}", f"-I{own}", "--include_imports", f"--descriptor_set_out={folder}/set"]
        assert protoc.main(["protoc", *arguments, "order.proto"]) == 0
        return (Path(folder) / "set").read_bytes()


@cache
def _messages() -> list[Sent]:
    """Return messages as serializers write them."""
    order = {
        "id": 2**60,
        "name": "größe",
        "price": 12,
        "placed": 1_700_000_000_000,
        "day": 19000,
        "time": 5,
        "uuid": "u",
        "state": "PAID",
        "code": b"abcd",
        "lines": [{"n": n} for n in range(9)],
        "more": {"a": None, "b": 0.5},
    }
    plain = json.loads(json.dumps([LINE, ORDER]).replace('"logicalType"', '"noType"'))
    schema = fastavro.parse_schema(plain)
    values = [{**order, "price": b"\1\2", "next": each} for each in (None, {**order, "price": b"", "next": None})]
    avro = [_avro(schema, ("shop.Order", value)) for value in values]
    line = {"article": "pen", "counts": [1, 2], "within": {"id": "3"}}
    shown: dict[str, Any] = {
        "id": "18446744073709551615",
        "price": {"cents": "-5"},
        "placedAt": "2026-01-01T00:00:00Z",
        "raw": "/wA=",
        "lines": [line, line],
        "named": {"a": line},
        "state": "PAID",
        "ratio": 0.1,
        "left": "x",
        "any": [1, {"a": 2}],
    }
    made = [json_format.ParseDict(each, _order_class()()) for each in ({}, shown, {**shown, "any": None})]
    protobuf = [each.SerializeToString(deterministic=True) for each in made]
    objects = [{"id": 1, "name": "a", "lines": [{"n": 1}, {"n": 0.5, "next": {"id": 2}}], "more": {"x": 1}}, {"id": 5}]
    return [
        *(Sent(AVRO_ID, body) for body in avro),
        *(Sent(PROTOBUF_ID, body, b"\0") for body in protobuf),
        *(Sent(COMPILED_ID, body, b"\2\0") for body in protobuf),
        Sent(COMPILED_ID, b"\x0a\3pen\x12\4\0\0\0\1", b"\4\0\0"),
        *(Sent(JSON_ID, json.dumps(each).encode()) for each in objects),
        Sent(LONG_ID, b"\xfe\xff\xff\xff\x0f"),
    ]


def _avro(schema: Any, value: Any) -> bytes:
    stream = BytesIO()
    fastavro.schemaless_writer(stream, schema, value)
    return stream.getvalue()


def _order_class() -> type[Message]:
    return GetMessages(FileDescriptorSet.FromString(descriptors()).file)["shop.Order"]


@cache
def registered_schemas() -> list[Registered]:
    """Return a registry's schemas: Protobuf both as source and compiled."""
    order = FileDescriptorSet.FromString(descriptors()).file[-1].SerializeToString()
    to_line, to_price = SchemaReference("shop.Line", "line", 1), SchemaReference("price.proto", "price", 1)
    to_compiled = SchemaReference("price.proto", "price", 2)
    return [
        Registered("order", AVRO_ID, Schema(json.dumps(ORDER), "AVRO", [to_line])),
        Registered("line", 2, Schema(json.dumps(LINE), "AVRO")),
        Registered("proto", PROTOBUF_ID, Schema(ORDERS, "PROTOBUF", [to_price])),
        Registered("price", 4, Schema(PRICE, "PROTOBUF")),
        Registered("price", 8, Schema(b64encode(_price_file()).decode(), "PROTOBUF")),
        Registered("compiled", COMPILED_ID, Schema(b64encode(order).decode(), "PROTOBUF", [to_compiled])),
        Registered("json", JSON_ID, Schema(json.dumps(OBJECT), "JSON")),
        Registered("long", LONG_ID, Schema('"long"', "AVRO")),
    ]


def _price_file() -> bytes:
    files = FileDescriptorSet.FromString(descriptors()).file
    return next(each for each in files if each.name == "price.proto").SerializeToString()


def definition_files(random: Random) -> dict[str, bytes]:
    """Return definitions, a registry's topic, and a topic of such messages, by path, with changes."""
    files = {
        f"{FOLDER}/order.avsc": json.dumps(WHOLE_ORDER).encode(),
        f"{FOLDER}/{LONG_ID}.avsc": b'"long"',
        f"{FOLDER}/ids.json": json.dumps({AVRO_ID: "order.avsc", LONG_ID: f"{LONG_ID}.avsc"}).encode(),
        f"{FOLDER}/order.set": descriptors(),
        f"{FOLDER}/object.json": json.dumps(OBJECT).encode(),
    }
    schemas = registered_schemas()
    changed = random.randrange(4)
    if changed == 0:
        path = random.choice(list(files))
        old = files[path]
        is_set = path.endswith(".set")
        files[path] = _changed_descriptors(random, FileDescriptorSet(), old) if is_set else _change(random, old)
    elif changed == 1:
        at = random.randrange(len(schemas))
        schemas = [*schemas[:at], _changed_schema(random, schemas[at]), *schemas[at + 1 :]]
    topic = _topic(random, schemas, is_changed=changed == 2)
    return {**files, f"_schemas-0/{LOG}": topic, f"orders-0/{LOG}": _orders(random, is_changed=changed != 1)}


COLUMNS = "columns"
"""The folder of a definition whose columns are made without a command."""


def column_files(random: Random) -> dict[str, bytes]:
    """Return a definition, mostly changed, and a message for it."""
    kind = random.choice((AVRO_ID, PROTOBUF_ID, JSON_ID))
    body = random.choice([sent.body for sent in _messages() if sent.schema_id == kind])
    if random.random() < 0.5:
        body = havoc(random, body)
    match kind:
        case 1:
            name, text = "order.avsc", _change(random, json.dumps(WHOLE_ORDER).encode())
        case 3:
            name, text = "order.set", _changed_descriptors(random, FileDescriptorSet(), descriptors())
        case _:
            name, text = "object.json", _change(random, json.dumps(OBJECT).encode())
    return {f"{COLUMNS}/{name}": text, f"{COLUMNS}/message": body}


def _change(random: Random, text: bytes) -> bytes:
    for _ in range(random.choice((1, 1, 2, 4))):
        text = mutated_json_text(random, text) if random.random() < 0.9 else havoc(random, text)
    return text


def _topic(random: Random, schemas: Sequence[Registered], *, is_changed: bool) -> bytes:
    written = []
    for subject, schema_id, schema in schemas:
        version = 1 + sum(key == schema_key(subject, 1) for key, _ in written)
        guid = {"md5": b64encode(md5(schema.schema_str.encode(), usedforsecurity=False).digest()).decode()}
        value = schema_value(subject, version, schema_id, schema, **guid if schema_id % 2 else {})
        written.append((schema_key(subject, version), value))
    if is_changed:
        at = random.randrange(len(written))
        key, value = written[at]
        written[at] = (_change(random, key), value) if random.random() < 0.3 else (key, _change(random, value))
    records = [Record(key, value, offset_delta=place) for place, (key, value) in enumerate(written)]
    return batch(BatchHeader(last_offset_delta=len(records) - 1), records)


def _changed_schema(random: Random, old: Registered) -> Registered:
    """Return a schema with a changed text: as JSON, as words, or as a descriptor."""
    text = old.schema.schema_str
    if old.schema.schema_type != "PROTOBUF":
        new = _change(random, text.encode()).decode("utf-8", "replace")
    elif " " in text:
        new = _changed_words(random, text)
    else:
        kept = b64decode(text)
        new = b64encode(_changed_descriptors(random, FileDescriptorProto(), kept)).decode()
    return old._replace(schema=Schema(new, old.schema.schema_type, old.schema.references))


WORDS = (
    *("message", "repeated", "string", "Order", "map<int32, Order>", "reserved 1 to max;", "group", "extend"),
    *("=", "{", "}", ";", "é", "\0", '"\\xff"', '"é', "[default = inf]", "//", "import weak"),
)


def _changed_words(random: Random, text: str) -> str:
    words = text.split(" ")
    for _ in range(random.choice((1, 1, 2))):
        at = random.randrange(len(words))
        words[at] = random.choice((random.choice(WORDS), random.choice(words), str(number(random, 1, 4)), ""))
    return " ".join(words)


def _changed_descriptors(random: Random, found: Message, content: bytes) -> bytes:
    """Return descriptors, parsed by `found`, with a field changed, doubled or removed; or other bytes."""
    try:
        if random.random() < 0.1:
            return havoc(random, content)
        found.ParseFromString(content)
        for _ in range(random.choice((1, 1, 2, 4))):
            _change_part(random, random.choice(list(_parts(found))))
        return found.SerializeToString(deterministic=True)
    except (DecodeError, ValueError, TypeError):
        return havoc(random, content)


def _parts(message: Message) -> Iterator[Message]:
    """Yield a message and all messages within it."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for each in value if hasattr(value, "append") or hasattr(value, "add") else [value]:
                yield from _parts(each)


def _change_part(random: Random, part: Message) -> None:
    fields = part.ListFields()
    if not fields:
        return
    field, value = random.choice(fields)
    if hasattr(value, "add") or hasattr(value, "append"):
        at = random.randrange(len(value))
        if random.random() < 0.5:
            del value[at]
        else:
            value.append(value[at])
    elif isinstance(value, str):
        texts = [each for _, each in fields if isinstance(each, str)]
        texts += [".shop.Order", ".shop.Price", "", "é\0", "google/protobuf/any.proto"]
        setattr(part, field.name, random.choice(texts))
    elif isinstance(value, int) and not isinstance(value, bool):
        setattr(part, field.name, random.choice((number(random, value, 4), value + 1, random.randrange(19))))


def _orders(random: Random, *, is_changed: bool) -> bytes:
    """Return a log of messages with their ids before them, in a header, or missing; some are changed."""
    records = []
    for place in range(random.choice((8, 30, 90))):
        sent = random.choice(_messages())
        body = sent.body
        if is_changed and random.random() < 0.3:
            is_json = sent.schema_id == JSON_ID
            body = mutated_json_text(random, body) if is_json and random.random() < 0.8 else havoc(random, body)
        prefix = b"\0" + sent.schema_id.to_bytes(4, "big") + sent.indexes
        if is_changed and random.random() < 0.05:
            prefix = havoc(random, prefix)
        match random.randrange(8):
            case 0:
                record = Record(body, body, [])
            case 1:
                record = Record(b"k", body, [(b"__value_schema_id", prefix)])
            case _:
                record = Record(b"k", prefix + body, [])
        records.append(Record(record.key, record.value, record.headers, place))
    return batch(BatchHeader(last_offset_delta=len(records) - 1), records)
