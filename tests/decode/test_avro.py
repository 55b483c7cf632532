"""Avro messages that confluent-kafka's serializers and fastavro wrote."""

import io
import json
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import fastavro
import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, header_schema_id_serializer
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from kseg.cluster.schemas_topic import SchemasTopic
from kseg.decode.decoded import Decoded
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.errors import KsegError, UsageError
from kseg.kernel.record import Header
from tests.decode.schemas_topic import new_client, schema_key, schema_records, schema_value, write_topic
from tests.log_files import NewRecord

ORDER = {
    "type": "record",
    "name": "Order",
    "namespace": "shop",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
        {"name": "token", "type": {"type": "string", "logicalType": "uuid"}},
        {"name": "raw", "type": "bytes"},
        {"name": "tags", "type": {"type": "map", "values": "int"}},
        {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}},
    ],
}
TOKEN = UUID("6b156641-9a3c-42cd-bb94-d06e58be2445")
VALUE = {
    "id": 2**53 + 1,
    "note": None,
    "at": datetime(2026, 11, 1, 3, tzinfo=UTC),
    "price": Decimal("12.30"),
    "token": TOKEN,
    "raw": b"\xff\0",
    "tags": {"a": 1},
    "kind": "OLD",
}
SHOWN = {
    "id": 2**53 + 1,
    "note": None,
    "at": "2026-11-01T03:00:00+00:00",
    "price": "12.30",
    "token": str(TOKEN),
    "raw": "/wA=",
    "tags": {"a": 1},
    "kind": "OLD",
}
CONTEXT = SerializationContext("orders", MessageField.VALUE)


def bare(schema: object, value: object) -> bytes:
    stream = io.BytesIO()
    fastavro.schemaless_writer(stream, fastavro.parse_schema(schema), value)
    return stream.getvalue()


@pytest.fixture
def order_file(tmp_path: Path) -> Path:
    path = tmp_path / "order.avsc"
    path.write_text(json.dumps(ORDER))
    return path


def test_a_bare_value_by_a_schema_file(order_file: Path) -> None:
    decode = value_decoder("avro", DecoderOptions(schema=order_file), "value")
    assert decode(bare(ORDER, VALUE), ()) == Decoded(SHOWN)


def test_a_serializers_message_by_a_schema_file(order_file: Path) -> None:
    message = AvroSerializer(new_client(), json.dumps(ORDER))(VALUE, CONTEXT)
    decode = value_decoder("avro", DecoderOptions(schema=order_file), "value")
    assert decode(message, ()) == Decoded(SHOWN)


def test_a_bare_value_that_begins_like_a_schema_id_is_read_too(tmp_path: Path) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": name, "type": "int"} for name in "abcdef"]}
    (tmp_path / "r.avsc").write_text(json.dumps(schema))
    value = dict.fromkeys("abcdef", 0)
    decode = value_decoder("avro", DecoderOptions(schema=tmp_path / "r.avsc"), "value")
    assert decode(bare(schema, value), ()) == Decoded(value)


def test_named_types_come_from_files_beside_the_schema(tmp_path: Path) -> None:
    inner = {"type": "record", "name": "shop.Inner", "fields": [{"name": "n", "type": "int"}]}
    outer = {"type": "record", "name": "shop.Outer", "fields": [{"name": "inner", "type": "shop.Inner"}]}
    (tmp_path / "shop.Inner.avsc").write_text(json.dumps(inner))
    (tmp_path / "shop.Outer.avsc").write_text(json.dumps(outer))
    whole = {**outer, "fields": [{"name": "inner", "type": inner}]}
    decode = value_decoder("avro", DecoderOptions(schema=tmp_path / "shop.Outer.avsc"), "value")
    assert decode(bare(whole, {"inner": {"n": 3}}), ()) == Decoded({"inner": {"n": 3}})


@pytest.mark.parametrize("shape", ["directory", "map"])
def test_schemas_by_id_from_files(tmp_path: Path, shape: str) -> None:
    client = new_client()
    message = AvroSerializer(client, json.dumps(ORDER))(VALUE, CONTEXT)
    schema_id = client.get_latest_version("orders-value").schema_id
    (tmp_path / f"{schema_id}.avsc").write_text(json.dumps(ORDER))
    (tmp_path / "map.json").write_text(json.dumps({str(schema_id): f"{schema_id}.avsc"}))
    path = tmp_path if shape == "directory" else tmp_path / "map.json"
    decode = value_decoder("avro", DecoderOptions(schema=path), "value")
    assert decode(message, ()) == Decoded(SHOWN)
    assert decode(b"\0\0\0\0\x63rest", ()) == Decoded(b"\0\0\0\0\x63rest", "schema 99 isn't among the given schemas")
    assert decode(b"x", ()).reason == "no schema id before the message or in a header: byte 0 is 0x78"


def test_messages_by_the_dead_clusters_registry(tmp_path: Path) -> None:
    client = new_client()
    message = AvroSerializer(client, json.dumps(ORDER))(VALUE, CONTEXT)
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, schema_records(client))))
    for name in ("avro", "auto", "io.confluent.kafka.serializers.KafkaAvroDeserializer"):
        assert value_decoder(name, options, "value")(message, ()) == Decoded(SHOWN)


@pytest.mark.parametrize("with_guid", [True, False], ids=["stored", "computed"])
def test_the_guid_behind_magic_1(tmp_path: Path, with_guid: bool) -> None:
    client = new_client()
    client.register_schema("orders-value", Schema('"string"', "AVRO"))
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, schema_records(client, with_guid))))
    guid = UUID(client.get_latest_version("orders-value").guid)
    if not with_guid:
        guid = UUID("095d71cf-1255-6b9d-5e33-0ad575b3df5d")  # echo -n '"string"' | md5sum
    message = b"\1" + guid.bytes + bare("string", "zoë")
    assert value_decoder("avro", options, "value")(message, ()) == Decoded("zoë")


@pytest.mark.parametrize("field", [MessageField.KEY, MessageField.VALUE])
def test_the_schema_id_in_a_header(tmp_path: Path, field: MessageField) -> None:
    client = new_client()
    serialize = AvroSerializer(client, json.dumps(ORDER), conf={"schema.id.serializer": header_schema_id_serializer})
    headers: list[tuple[str, bytes]] = []
    message = serialize(VALUE, SerializationContext("orders", field, headers))
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, schema_records(client))))
    part = "key" if field == MessageField.KEY else "value"
    other = "value" if part == "key" else "key"
    of_record = [Header(*header) for header in headers]
    assert value_decoder("avro", options, part)(message, of_record) == Decoded(SHOWN)
    assert value_decoder("avro", options, other)(message, of_record).reason is not None


def test_a_schema_with_references(tmp_path: Path) -> None:
    client = new_client()
    currency = {"type": "enum", "name": "shop.Currency", "symbols": ["EUR", "USD"]}
    price = {"type": "record", "name": "shop.Price", "fields": [{"name": "currency", "type": "shop.Currency"}]}
    item = {"type": "record", "name": "shop.Item", "fields": [{"name": "price", "type": "shop.Price"}]}
    client.register_schema("currency", Schema(json.dumps(currency), "AVRO"))
    needs_currency = [SchemaReference("shop.Currency", "currency", 1)]
    client.register_schema("price", Schema(json.dumps(price), "AVRO", needs_currency))
    needs_price = [SchemaReference("shop.Price", "price", 1)]
    serialize = AvroSerializer(client, Schema(json.dumps(item), "AVRO", needs_price))
    value = {"price": {"currency": "USD"}}
    message = serialize(value, CONTEXT)
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, schema_records(client))))
    assert value_decoder("avro", options, "value")(message, ()) == Decoded(value)


def test_a_reference_that_is_gone_is_the_reason(tmp_path: Path) -> None:
    needing = Schema('"shop.Price"', "AVRO", [SchemaReference("shop.Price", "price", 1)])
    topic = write_topic(tmp_path, [NewRecord(schema_key("a", 1), schema_value("a", 1, 5, needing))])
    found = value_decoder("avro", DecoderOptions(registry=SchemasTopic(topic)), "value")(b"\0\0\0\0\5x", ())
    assert found.reason == "schema 5: it needs price version 1, which is missing"


def test_references_in_a_circle_end(tmp_path: Path) -> None:
    records = []
    for number, (name, other) in enumerate((("a", "b"), ("b", "a")), 1):
        schema = Schema(f'"{other}"', "AVRO", [SchemaReference(other, other, 1)])
        records.append(NewRecord(schema_key(name, 1), schema_value(name, 1, number, schema)))
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, records)))
    found = value_decoder("avro", options, "value")(b"\0\0\0\0\1x", ())
    assert found.reason == "schema 1: its references form a cycle"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\0",
        b"\0\0\0\0\1",
        b"\0\0\0\0\1" + bare("long", 3),
        b"\0\0\0\0\1" + b"\xff" * 40,
        b"\0\0\0\0\1" + bare("long", 2**40),
        b"\0\0\0\0\1" + bare(ORDER, VALUE) + b"\0",
        b"\0\0\0\0\2" + bare(ORDER, VALUE),
    ],
    ids=lambda message: message[:20].hex() or "empty",
)
def test_bytes_of_another_shape_are_kept_with_a_reason(tmp_path: Path, message: bytes) -> None:
    client = new_client()
    client.register_schema("orders-value", Schema(json.dumps(ORDER), "AVRO"))
    options = DecoderOptions(registry=SchemasTopic(write_topic(tmp_path, schema_records(client))))
    found = value_decoder("avro", options, "value")(message, ())
    assert found.value == message
    assert found.reason
    assert found.reason.isprintable()


def test_every_cut_and_flipped_message_is_shown_or_has_a_reason(order_file: Path) -> None:
    whole = bare(ORDER, VALUE)
    decode = value_decoder("avro", DecoderOptions(schema=order_file), "value")
    for place in range(len(whole)):
        assert decode(whole[:place], ()).reason
        for bit in range(8):
            flipped = bytearray(whole)
            flipped[place] ^= 1 << bit
            found = decode(bytes(flipped), ())
            assert found.reason is None or found.value == bytes(flipped)


def test_two_fields_of_one_name_lose_no_value(tmp_path: Path) -> None:
    """A record has each name once: of two such fields only one would be shown."""
    fields = [{"name": "a", "type": "long"}] * 2
    (tmp_path / "s.avsc").write_text(json.dumps({"type": "record", "name": "R", "fields": fields}))
    with pytest.raises(UsageError, match="record R has two fields a"):
        value_decoder("avro", DecoderOptions(schema=tmp_path / "s.avsc"), "value")


NO_FILE = "a" * 300
"""A type whose name no file can have."""


@pytest.mark.parametrize("text", ["{", '{"type": "nonsense"}', "[]x", '{"type": "fixed"}', f'["{NO_FILE}"]'])
def test_a_file_that_is_no_schema_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "s.avsc").write_text(text)
    with pytest.raises(UsageError, match=r"s\.avsc"):
        value_decoder("avro", DecoderOptions(schema=tmp_path / "s.avsc"), "value")


def test_a_schema_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(KsegError, match="none"):
        value_decoder("avro", DecoderOptions(schema=tmp_path / "none"), "value")


def test_a_directory_without_schemas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"ID\.avsc"):
        value_decoder("avro", DecoderOptions(schema=tmp_path), "value")


@pytest.mark.parametrize(
    "items",
    ["null", {"type": "record", "name": "E", "fields": []}, {"type": "fixed", "name": "F", "size": 0}],
    ids=["null", "empty record", "fixed of 0"],
)
def test_lists_that_could_be_endless_are_refused(tmp_path: Path, items: object) -> None:
    schema = {"type": "record", "name": "R", "fields": [{"name": "x", "type": {"type": "array", "items": items}}]}
    (tmp_path / "s.avsc").write_text(json.dumps(schema))
    with pytest.raises(UsageError, match="take no bytes"):
        value_decoder("avro", DecoderOptions(schema=tmp_path / "s.avsc"), "value")


def test_a_schema_that_holds_itself_is_read(tmp_path: Path) -> None:
    node = {"type": "record", "name": "N", "fields": [{"name": "next", "type": {"type": "array", "items": "N"}}]}
    (tmp_path / "s.avsc").write_text(json.dumps(node))
    decode = value_decoder("avro", DecoderOptions(schema=tmp_path / "s.avsc"), "value")
    assert decode(bare(node, {"next": [{"next": []}]}), ()) == Decoded({"next": [{"next": []}]})
