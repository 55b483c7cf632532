"""Protobuf messages that confluent-kafka's serializer and the protobuf library wrote."""

import re
from pathlib import Path

import pytest
from confluent_kafka.schema_registry import Schema, SchemaReference, header_schema_id_serializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
from google.protobuf.message import Message
from grpc_tools import protoc

from kseg.cluster.schemas_topic import SchemasTopic
from kseg.decode.decoded import Decoded
from kseg.decode.values import DecoderOptions, value_decoder
from kseg.errors import KsegError, UsageError
from kseg.kernel.record import Header
from tests.decode.schemas_topic import new_client, schema_key, schema_records, schema_value, write_topic
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each
from tests.run import kseg

PRICE = 'syntax = "proto3"; package shop; message Price { int64 cents = 1; string currency = 2; }'
ORDER = """
syntax = "proto3";
package shop;
import "price.proto";
import "google/protobuf/timestamp.proto";
message Other { string text = 1; }
message Order {
  int64 id = 1;
  Price price = 2;
  google.protobuf.Timestamp placed_at = 3;
  bytes raw = 4;
  repeated Line lines = 5;
  message Line { string article = 1; message Deep { int32 n = 1; } }
}
"""
CONTEXT = SerializationContext("orders", MessageField.VALUE)
OLD_FORMAT = {"use.deprecated.format": False}
SHOWN = {
    "id": "9007199254740993",
    "price": {"cents": "1230", "currency": "EUR"},
    "placed_at": "1970-01-01T00:00:05Z",
    "raw": "/wA=",
    "lines": [{"article": "pen"}],
}


@pytest.fixture(scope="module")
def descriptor_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("proto")
    (folder / "price.proto").write_text(PRICE)
    (folder / "order.proto").write_text(ORDER)
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = [f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={folder}/set"]
    assert protoc.main(["protoc", *arguments, "order.proto"]) == 0
    return folder / "set"


def message_class(descriptor_set: Path, name: str) -> type[Message]:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptor_set.read_bytes()).file:
        pool.Add(file) if hasattr(pool, "Add") else pool.AddSerializedFile(file.SerializeToString())
    found: type[Message] = message_factory.GetMessageClass(pool.FindMessageTypeByName(name))
    return found


def order(descriptor_set: Path) -> Message:
    return message_class(descriptor_set, "shop.Order")(
        id=2**53 + 1,
        price={"cents": 1230, "currency": "EUR"},
        placed_at={"seconds": 5},
        raw=b"\xff\0",
        lines=[{"article": "pen"}],
    )


def options(descriptor_set: Path, message: str = "shop.Order") -> DecoderOptions:
    return DecoderOptions(schema=descriptor_set, message=message)


def test_a_bare_message_by_a_descriptor_set(descriptor_set: Path) -> None:
    decode = value_decoder("protobuf", options(descriptor_set), "value")
    assert decode(order(descriptor_set).SerializeToString(), ()) == Decoded(SHOWN)


def test_a_serializers_message_by_a_descriptor_set(descriptor_set: Path) -> None:
    value = order(descriptor_set)
    message = ProtobufSerializer(type(value), new_client(), OLD_FORMAT)(value, CONTEXT)
    assert message[:1] == b"\0"
    assert value_decoder("protobuf", options(descriptor_set), "value")(message, ()) == Decoded(SHOWN)


def test_fields_that_are_not_set_are_shown_with_their_defaults(descriptor_set: Path) -> None:
    decode = value_decoder("protobuf", options(descriptor_set, "shop.Price"), "value")
    assert decode(b"", ()) == Decoded({"cents": "0", "currency": ""})


@pytest.mark.parametrize("name", ["protobuf", "auto", "KafkaProtobufDeserializer"])
def test_messages_by_a_registry_of_descriptors(descriptor_set: Path, tmp_path: Path, name: str) -> None:
    client = new_client()
    value = order(descriptor_set)
    message = ProtobufSerializer(type(value), client, OLD_FORMAT)(value, CONTEXT)
    registry = write_topic(tmp_path, schema_records(client))
    assert value_decoder(name, DecoderOptions(registry=SchemasTopic(registry)), "value")(message, ()) == Decoded(SHOWN)


@pytest.mark.parametrize(
    ("name", "fields", "shown"),
    [
        ("shop.Other", {"text": "x"}, {"text": "x"}),
        ("shop.Order.Line", {"article": "pen"}, {"article": "pen"}),
        ("shop.Order.Line.Deep", {"n": 7}, {"n": 7}),
    ],
)
def test_message_indexes_pick_the_message(
    descriptor_set: Path, tmp_path: Path, name: str, fields: dict[str, object], shown: dict[str, object]
) -> None:
    client = new_client()
    made = message_class(descriptor_set, name)
    message = ProtobufSerializer(made, client, OLD_FORMAT)(made(**fields), CONTEXT)
    registry = write_topic(tmp_path, schema_records(client))
    assert value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(registry)), "value")(message, ()) == Decoded(
        shown
    )


def test_the_schema_id_and_the_indexes_in_a_header(descriptor_set: Path, tmp_path: Path) -> None:
    client = new_client()
    value = order(descriptor_set)
    conf = {**OLD_FORMAT, "schema.id.serializer": header_schema_id_serializer}
    headers: list[tuple[str, bytes]] = []
    message = ProtobufSerializer(type(value), client, conf)(
        value, SerializationContext("orders", MessageField.VALUE, headers)
    )
    of_record = [Header(*header) for header in headers]
    registry = write_topic(tmp_path, schema_records(client))
    assert message == value.SerializeToString()
    assert value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(registry)), "value")(
        message, of_record
    ) == Decoded(SHOWN)


def source_topic(tmp_path: Path, text: str = ORDER, price: str = PRICE, name: str = "price.proto") -> Path:
    """A registry that holds source files, as Confluent's does."""
    schemas = {
        ("price", 1): Schema(price, "PROTOBUF"),
        ("order", 2): Schema(text, "PROTOBUF", [SchemaReference(name, "price", 1)]),
    }
    records = [
        NewRecord(schema_key(subject, 1), schema_value(subject, 1, number, schema))
        for (subject, number), schema in schemas.items()
    ]
    return write_topic(tmp_path, records)


def test_messages_by_a_registry_of_source_files(descriptor_set: Path, tmp_path: Path) -> None:
    # id 2, one index: 1, zigzag
    message = b"\0\0\0\0\2" + b"\2\2" + order(descriptor_set).SerializeToString()
    decode = value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(source_topic(tmp_path))), "value")
    assert decode(message, ()) == Decoded(SHOWN)


def test_a_source_file_that_does_not_compile_is_the_reason(tmp_path: Path) -> None:
    registry = source_topic(tmp_path, "syntax = nonsense")
    found = value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(registry)), "value")(b"\0\0\0\0\2\0", ())
    assert found.value == b"\0\0\0\0\2\0"
    assert found.reason is not None
    assert re.match(
        "schema 2: the schema doesn't compile: [a-z-]+.proto:1:10: ", found.reason
    )  # no temporary directory


def test_a_source_file_that_becomes_too_large_is_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kseg.decode.protobuf.LARGEST_DESCRIPTORS", 100)
    registry = source_topic(tmp_path)
    found = value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(registry)), "value")(b"\0\0\0\0\2\0", ())
    assert found.reason == "schema 2: the schema compiles to more than 100 bytes"


def test_the_reason_is_the_compilers_and_the_same_each_time(tmp_path: Path) -> None:
    """protoc also logs a warning, with the time, for a file without `syntax`; the reason leaves it out."""
    registry = SchemasTopic(source_topic(tmp_path, "message Order { nonsense }"))
    found = value_decoder("protobuf", DecoderOptions(registry=registry), "value")(b"\0\0\0\0\2\0", ())
    assert found.reason == (
        "schema 2: the schema doesn't compile: "
        'registered-schema.proto:1:17: Expected "required", "optional", or "repeated". '
        "registered-schema.proto:1:26: Expected field name."
    )


@pytest.mark.parametrize(
    "name", ["../outside.proto", "/outside.proto", "a/../../outside.proto", "a/" * 1500 + "price.proto"]
)
def test_names_in_a_registry_lead_nowhere_else(tmp_path: Path, name: str) -> None:
    registry = source_topic(tmp_path, ORDER.replace("price.proto", name), name=name)
    found = value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(registry)), "value")(b"\0\0\0\0\2\0", ())
    assert "isn't a relative path of at most 64 parts" in (found.reason or "")


@pytest.mark.parametrize(
    ("message", "words"),
    [
        (b"", "no schema id"),
        (b"\0\0\0\0\2", "indexes"),
        (b"\0\0\0\0\2\x0e\0", "indexes"),
        (b"\0\0\0\0\2\2\x10", "index 8"),
        (b"\0\0\0\0\2\2\1", "index -1"),
        (b"\0\0\0\0\2\0\xff\xff", "the value isn't a shop.Other"),
        (b"\0\0\0\0\x63\0", "isn't in the registry"),
    ],
    ids=repr,
)
def test_bytes_of_another_shape_are_kept_with_a_reason(tmp_path: Path, message: bytes, words: str) -> None:
    found = value_decoder("protobuf", DecoderOptions(registry=SchemasTopic(source_topic(tmp_path))), "value")(
        message, ()
    )
    assert found.value == message
    assert words in (found.reason or "")


def test_a_message_that_is_not_in_the_descriptor_set_is_refused(descriptor_set: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no message shop\.None; specify one of .*shop\.Price.*shop\.Order"):
        value_decoder("protobuf", options(descriptor_set, "shop.None"), "value")


def test_a_message_name_is_asked_for(descriptor_set: Path) -> None:
    with pytest.raises(UsageError, match=r"no message is given; specify one of .*shop\.Order"):
        value_decoder("protobuf", DecoderOptions(schema=descriptor_set), "value")


@for_each("name", ["seconds", "nanos"])
def test_an_own_timestamp_with_other_fields_is_no_time(name: str, descriptor_set: Path, tmp_path: Path) -> None:
    """Protobuf's library shows a google.protobuf.Timestamp as a time by the names of its fields."""
    files = descriptor_pb2.FileDescriptorSet.FromString(descriptor_set.read_bytes())
    own = next(file for file in files.file if file.name == "google/protobuf/timestamp.proto")
    next(field for field in own.message_type[0].field if field.name == name).name = "other"
    (tmp_path / "set").write_bytes(files.SerializeToString())
    message = order(descriptor_set).SerializeToString()
    found = value_decoder("protobuf", options(tmp_path / "set"), "value")(message, ())
    assert (found.value, found.reason) == (message, f"the value isn't a shop.Order: {name}")
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", message)])])
    line = ["--value-decoder", "protobuf", "--schema", "set", "--message", "shop.Order"]
    assert kseg(["export", "orders-0", "out", "-q", *line], tmp_path).status == 0


@pytest.mark.parametrize("content", [b"\xff\xff", b"", None], ids=["no set", "empty", "not there"])
def test_a_file_that_is_no_descriptor_set_is_refused(tmp_path: Path, content: bytes | None) -> None:
    if content is not None:
        (tmp_path / "set").write_bytes(content)
    with pytest.raises(KsegError, match="set"):
        value_decoder("protobuf", options(tmp_path / "set"), "value")
