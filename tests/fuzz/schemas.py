"""Records with Avro, Protobuf and JSON schemas, of files and of a registry's topic; mutants of schemas and values."""

import io
import json
from decimal import Decimal
from functools import cache
from random import Random
from typing import Any

import fastavro
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from tests.fuzz.mutations import EDGES, havoc
from tests.log_files import NewBatch, NewRecord, batch_bytes

REGISTRY, RECORDS = "_schemas-0", "orders-0"
AVRO, DESCRIPTORS, JSON = "order.avsc", "order.set", "order.json"
"""Files of a schema each."""
LOG = f"{0:020}.log"

AVRO_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": "shop.Order",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-micros"}], "default": None},
        {"name": "tags", "type": {"type": "map", "values": ["null", "string", {"type": "array", "items": "int"}]}},
        {"name": "state", "type": {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}},
        {"name": "key", "type": {"type": "fixed", "name": "Key", "size": 4}},
        {"name": "next", "type": ["null", "shop.Order"], "default": None},
    ],
}
JSON_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "price": {"type": ["number", "null"]},
        "at": {"type": "string", "format": "date-time"},
        "lines": {"type": "array", "items": {"$ref": "#/definitions/line"}},
        "state": {"enum": ["OPEN", "PAID"]},
        "more": {"oneOf": [{"type": "string"}, {"type": "object", "additionalProperties": True}]},
    },
    "definitions": {"line": {"type": "object", "properties": {"article": {"type": "string"}}}},
    "required": ["id"],
}
PROTO = """syntax = "proto3";
package shop;
message Order {
  int64 id = 1;
  map<string, Line> lines = 2;
  oneof how { string card = 3; bytes cash = 4; }
  repeated double amounts = 5 [packed = true];
  enum State { OPEN = 0; PAID = 1; }
  State state = 6;
  Order next = 7;
  message Line { string article = 1; sint32 count = 2; reserved 3 to 5; }
}
"""
VALUE: dict[str, Any] = {
    "id": 7, "price": 1.5, "at": "2026-11-26T00:00Z", "lines": [{"article": "pen"}], "state": "OPEN", "more": {"a": 1}
}  # fmt: skip
WORDS = (
    "null",
    "long",
    "string",
    "record",
    "object",
    "array",
    "$ref",
    "#",
    "#/definitions/line",
    "shop.Order",
    "é\0<",
    "id",
)


def schema_case(random: Random) -> dict[str, bytes]:
    """The files of a case: some of its schemas and values are changed."""
    avro, json_schema = _changed(random, AVRO_SCHEMA), _changed(random, JSON_SCHEMA)
    proto = havoc(random, PROTO.encode()) if random.random() < 0.6 else PROTO.encode()
    descriptors = havoc(random, _descriptors()) if random.random() < 0.6 else _descriptors()
    registered = ((avro, ""), (proto.decode(errors="replace"), "PROTOBUF"), (json_schema, "JSON"))
    schemas = [_registered(random, number, text, kind) for number, (text, kind) in enumerate(registered, 1)]
    return {
        f"{REGISTRY}/{LOG}": _log(schemas),
        f"{RECORDS}/{LOG}": _log([_record(random) for _ in range(random.choice((3, 30)))]),
        AVRO: avro.encode(),
        DESCRIPTORS: descriptors,
        JSON: json_schema.encode(),
    }


def _log(records: list[NewRecord]) -> bytes:
    return b"".join(batch_bytes(NewBatch([record], offset)) for offset, record in enumerate(records))


def _registered(random: Random, number: int, text: str, kind: str) -> NewRecord:
    subject = random.choice(("orders-value", "orders-key", "orders-0-value"))
    value: dict[str, Any] = {"subject": subject, "version": 1, "id": number, "schema": text, "deleted": False}
    if kind:
        value["schemaType"] = kind
    if random.random() < 0.2:
        value["references"] = [{"name": "order.proto", "subject": subject, "version": 1}]
    key = {"keytype": "SCHEMA", "subject": subject, "version": 1, "magic": 1}
    written = json.dumps(value).encode()
    return NewRecord(json.dumps(key).encode(), havoc(random, written) if random.random() < 0.2 else written)


def _record(random: Random) -> NewRecord:
    """A value of one of the schemas, framed or not, as it was or changed."""
    number, content = random.choice(_values())
    content = havoc(random, content) if random.random() < 0.7 else content
    frame = b"\0" + number.to_bytes(4, "big") + (b"\0" if number == 2 else b"")
    value = frame + content if random.random() < 0.6 else content
    return NewRecord(b"k", value if random.random() < 0.95 else None)


@cache
def _values() -> list[tuple[int, bytes]]:
    """Values by the ids of their schemas."""
    order: dict[str, Any] = {
        "id": 7, "price": Decimal("1.25"), "at": 1, "tags": {"a": "b", "c": [1]}, "state": "PAID", "key": b"abcd"
    }  # fmt: skip
    written = io.BytesIO()
    fastavro.schemaless_writer(written, AVRO_SCHEMA, {**order, "next": order})
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(_descriptors()).file:
        pool.AddSerializedFile(file.SerializeToString())
    message = message_factory.GetMessageClass(pool.FindMessageTypeByName("shop.Order"))
    value = message(id=-1, lines={"a": {"article": "pen", "count": -2}}, cash=b"\xff", amounts=[1, 2.5], state=1)
    return [(1, written.getvalue()), (2, value.SerializeToString()), (3, json.dumps(VALUE).encode())]


@cache
def _descriptors() -> bytes:
    """The schema of `PROTO` as a set of descriptors, as protoc makes it."""
    file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
    order = file.message_type.add(name="Order")
    kinds = descriptor_pb2.FieldDescriptorProto
    order.field.add(name="id", number=1, type=kinds.TYPE_INT64, label=kinds.LABEL_OPTIONAL)
    entry = order.nested_type.add(name="LinesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    line = ".shop.Order.Line"
    entry.field.add(name="value", number=2, type=kinds.TYPE_MESSAGE, type_name=line, label=kinds.LABEL_OPTIONAL)
    lines = ".shop.Order.LinesEntry"
    order.field.add(name="lines", number=2, type=kinds.TYPE_MESSAGE, type_name=lines, label=kinds.LABEL_REPEATED)
    order.oneof_decl.add(name="how")
    for name, number, kind in (("card", 3, kinds.TYPE_STRING), ("cash", 4, kinds.TYPE_BYTES)):
        order.field.add(name=name, number=number, type=kind, label=kinds.LABEL_OPTIONAL, oneof_index=0)
    order.field.add(name="amounts", number=5, type=kinds.TYPE_DOUBLE, label=kinds.LABEL_REPEATED)
    state = order.enum_type.add(name="State")
    state.value.add(name="OPEN", number=0)
    state.value.add(name="PAID", number=1)
    kind = ".shop.Order.State"
    order.field.add(name="state", number=6, type=kinds.TYPE_ENUM, type_name=kind, label=kinds.LABEL_OPTIONAL)
    own = ".shop.Order"
    order.field.add(name="next", number=7, type=kinds.TYPE_MESSAGE, type_name=own, label=kinds.LABEL_OPTIONAL)
    nested = order.nested_type.add(name="Line")
    nested.field.add(name="article", number=1, type=kinds.TYPE_STRING, label=kinds.LABEL_OPTIONAL)
    nested.field.add(name="count", number=2, type=kinds.TYPE_SINT32, label=kinds.LABEL_OPTIONAL)
    return descriptor_pb2.FileDescriptorSet(file=[file]).SerializeToString()


def _changed(random: Random, schema: dict[str, Any]) -> str:
    """A schema's text with some of its nodes changed, or some of its bytes."""
    whole = json.dumps(schema)
    node: Any = json.loads(whole)
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        node = _edited(random, node, json.loads(whole))
    text = json.dumps(node)
    return havoc(random, text.encode()).decode(errors="replace") if random.random() < 0.15 else text


def _edited(random: Random, node: Any, whole: Any) -> Any:
    """A node, or one below it, exchanged for another one, for a word or a number, or taken out."""
    if isinstance(node, dict | list) and node and random.random() < 0.8:
        at = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if random.random() < 0.1:
            del node[at]
        else:
            node[at] = _edited(random, node[at], whole)
        return node
    return random.choice((None, True, {}, [], whole, [node], [node, node], random.choice(WORDS), random.choice(EDGES)))
