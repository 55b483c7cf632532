"""Typed columns of Protobuf: messages of confluent-kafka's serializer, from a descriptor set and a registry."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from google.protobuf.message import Message
from grpc_tools import protoc

from tests import run
from tests.decode.test_protobuf import CONTEXT, OLD_FORMAT, message_class
from tests.export.typed_logs import TypedLogs, report, values

HEAD = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
"""
RICH = f"""{HEAD}
message Order {{
  int32 small = 1;
  uint64 huge = 2;
  optional string note = 3;
  Price price = 4;
  repeated Line lines = 5;
  map<string, Price> prices = 6;
  map<int32, bool> flags = 7;
  oneof paid {{ string card = 8; int64 cash = 9; }}
  Kind kind = 10;
  google.protobuf.Timestamp at = 11;
  google.protobuf.Duration took = 12;
  google.protobuf.Int64Value maybe = 13;
  google.protobuf.Struct anything = 14;
  Order parent = 15;
  bytes raw = 16;
  repeated double shares = 17;
  Nothing nothing = 18;
  float part = 19;
}}
message Price {{ int64 cents = 1; }}
message Line {{ string article = 1; repeated string words = 2; }}
message Nothing {{ }}
enum Kind {{ NEW = 0; OLD = 1; }}
"""
GIVEN = {
    "small": -3,
    "huge": 2**64 - 1,
    "price": {"cents": 5},
    "lines": [{"article": "pen", "words": ["a", "b"]}, {"article": "ink"}],
    "prices": {"eu": {"cents": 7}},
    "flags": {3: True},
    "cash": 0,
    "kind": 1,
    "at": {"seconds": 5, "nanos": 7999},
    "took": {"seconds": 2, "nanos": 1},
    "maybe": {"value": 9},
    "anything": {"a": [1, None]},
    "parent": {"small": 4},
    "raw": b"\xff\0",
    "shares": [0.5],
    "nothing": {},
    "part": 0.25,
}
READ = {
    **GIVEN,
    "huge": Decimal(2**64 - 1),
    "note": None,
    "lines": [{"article": "pen", "words": ["a", "b"]}, {"article": "ink", "words": []}],
    "card": None,
    "kind": "OLD",
    "at": datetime(1970, 1, 1, 0, 0, 5, 7, tzinfo=UTC),
    "maybe": 9,
    "anything": '{"a":[1.0,null]}',
    "nothing": "{}",
}


def compile_schema(folder: Path, text: str, name: str = "order") -> Path:
    (folder / f"{name}.proto").write_text(text)
    well_known = Path(protoc.__file__).parent / "_proto"
    arguments = [f"-I{folder}", f"-I{well_known}", "--include_imports", f"--descriptor_set_out={folder}/{name}.set"]
    assert protoc.main(["protoc", *arguments, f"{name}.proto"]) == 0
    return folder / f"{name}.set"


@pytest.fixture
def logs(tmp_path: Path) -> TypedLogs:
    return TypedLogs(tmp_path / "logs")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def serialize(logs: TypedLogs, message: Message) -> bytes:
    made: bytes = ProtobufSerializer(type(message), logs.client, OLD_FORMAT)(message, CONTEXT)
    return made


def by_set(logs: TypedLogs, out: Path, descriptors: Path, *more: str) -> run.Run:
    command = [
        "export",
        str(logs.directory),
        str(out),
        "--topic",
        "orders",
        "-o",
        "json",
        "--value-decoder",
        "protobuf",
    ]
    return run.kseg([*command, "--schema", str(descriptors), "--message", "shop.Order", *more], logs.directory)


def check_row(value: dict[str, Any]) -> dict[str, Any]:
    parent = value.pop("parent")
    assert parent is None or '"small":4' in parent
    return {**value, "at": value["at"] and value["at"].astimezone(UTC)}


def expected_row() -> dict[str, Any]:
    return {name: value for name, value in READ.items() if name != "parent"}


def test_every_kind_of_protobuf_has_its_column(tmp_path: Path, logs: TypedLogs, out: Path) -> None:
    descriptors = compile_schema(tmp_path, RICH)
    made = message_class(descriptors, "shop.Order")
    logs.raw("orders", [made(**GIVEN).SerializeToString(), serialize(logs, made(note="")), None, b"\xff"])
    assert report(by_set(logs, out, descriptors))["undecoded"] == 1
    full, empty, *none = values(out)
    assert check_row(full) == expected_row()
    assert (empty["small"], empty["note"], empty["cash"], empty["price"], empty["lines"]) == (0, "", None, None, [])
    assert none == [None, None]


def test_a_registrys_messages_have_columns_and_may_grow(tmp_path: Path, logs: TypedLogs, out: Path) -> None:
    old = compile_schema(tmp_path, f"{HEAD} message Order {{ int32 id = 1; }}", "old")
    new = compile_schema(tmp_path, f"{HEAD} message Order {{ int64 id = 1; repeated string tags = 2; }}", "new")
    first, second = (message_class(each, "shop.Order") for each in (old, new))
    logs.raw("orders", [serialize(logs, first(id=1)), serialize(logs, second(id=2**40, tags=["a"]))])
    assert report(logs.export(out))["undecoded"] == 0
    assert values(out) == [{"id": 1, "tags": None}, {"id": 2**40, "tags": ["a"]}]


def test_records_tell_which_message_of_a_file_they_are(tmp_path: Path, logs: TypedLogs, out: Path) -> None:
    descriptors = compile_schema(tmp_path, f"{HEAD} message Other {{ int32 a = 1; }} message Order {{ int32 id = 1; }}")
    made = message_class(descriptors, "shop.Order")
    logs.raw("orders", [serialize(logs, made(id=number)) for number in range(3)])
    assert report(logs.export(out))["undecoded"] == 0
    assert values(out) == [{"id": 0}, {"id": 1}, {"id": 2}]


def test_an_unknown_number_of_an_enum_and_a_far_time(tmp_path: Path, logs: TypedLogs, out: Path) -> None:
    descriptors = compile_schema(tmp_path, RICH)
    made = message_class(descriptors, "shop.Order")
    logs.raw("orders", [made(kind=7).SerializeToString(), made(at={"seconds": 2**60}).SerializeToString()])
    assert report(by_set(logs, out, descriptors))["undecoded"] == 1
    assert [value and value["kind"] for value in values(out)] == ["7", None]
