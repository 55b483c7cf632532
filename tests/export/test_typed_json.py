"""Typed columns of JSON, from a given JSON Schema or a registry's."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import run
from tests.export.typed_logs import TypedLogs, report, values
from tests.loops import for_each

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer"},
        "name": {"type": ["null", "string"]},
        "total": {"type": "number"},
        "paid": {"type": "boolean"},
        "kind": {"enum": ["new", "old"]},
        "either": {"type": ["integer", "string"]},
        "lines": {"type": "array", "items": {"$ref": "#/$defs/line"}},
        "extra": {"type": "object", "additionalProperties": {"type": "integer"}},
        "free": {},
        "tree": {"$ref": "#/$defs/tree"},
    },
    "$defs": {
        "line": {"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": False},
        "tree": {
            "type": "object",
            "properties": {"left": {"oneOf": [{"type": "null"}, {"$ref": "#/$defs/tree"}]}},
            "additionalProperties": False,
        },
    },
}
LISTS = ("oneOf", "anyOf", "allOf", "enum")
GIVEN = {
    "id": 1.0,
    "name": None,
    "total": 2**60,
    "paid": True,
    "kind": "old",
    "either": "x",
    "lines": [{"n": 1}, {}],
    "extra": {"a": 1},
    "free": [1, "x"],
    "tree": {"left": {"left": None}},
    "more": {"b": 2},
}
READ = {
    **{name: value for name, value in GIVEN.items() if name != "more"},
    "id": 1,
    "total": float(2**60),
    "either": {"integer": None, "string": "x"},
    "lines": [{"n": 1}, {"n": None}],
    "free": '[1,"x"]',
    "tree": {"left": '{"left":null}'},
    "additionalProperties": '{"more":{"b":2}}',
}


@pytest.fixture
def logs(tmp_path: Path) -> TypedLogs:
    return TypedLogs(tmp_path / "logs")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def by_file(logs: TypedLogs, out: Path, schema: object, *more: str) -> run.Run:
    (logs.directory / "order.json").write_text(json.dumps(schema))
    command = ["export", str(logs.directory), str(out), "--topic", "orders", "-o", "json", "--value-decoder", "json"]
    return run.kseg([*command, "--schema", "order.json", *more], logs.directory)


def encode(value: object) -> bytes:
    return json.dumps(value).encode()


def test_what_a_schema_says_has_columns_and_the_rest_is_text(logs: TypedLogs, out: Path) -> None:
    wrong: list[dict[str, Any]] = [{"id": "1"}, {"paid": 1}, {"lines": [{"m": 1}]}, {"id": 1.5}, {"id": True}]
    logs.raw("orders", [encode(GIVEN), *map(encode, wrong), b"{", b"[]", encode({})])
    assert report(by_file(logs, out, SCHEMA, "--keep-raw", "undecoded"))["undecoded"] == 7
    first, *others, last = values(out)
    assert first == READ
    assert others == [None] * 7
    assert set(last.values()) == {None}
    assert [None if each is None else bytes(each) for each in values(out, "value")][:3] == [
        None,
        encode(wrong[0]),
        encode(wrong[1]),
    ]


def test_a_registrys_schemas_grow(logs: TypedLogs, out: Path) -> None:
    old = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
    new = {**old, "properties": {**old["properties"], "why": {"type": "string"}}}  # type: ignore[dict-item]
    heads = [b"\0" + logs.register("orders-value", each, "JSON").to_bytes(4, "big") for each in (old, new)]
    logs.raw("orders", [heads[0] + b'{"id": 1}', heads[1] + b'{"id": 2, "why": "x"}'])
    assert report(logs.export(out))["undecoded"] == 0
    assert values(out) == [{"id": 1, "why": None}, {"id": 2, "why": "x"}]


def test_without_a_schema_text_stays(logs: TypedLogs, out: Path) -> None:
    logs.raw("orders", [b'{"b": 1}'])
    run.kseg(["export", str(logs.directory), str(out), "--value-decoder", "json"], logs.directory)
    assert values(out) == ['{"b":1}']


@for_each(
    "schema, said",
    [
        ({"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}}, "has no target"),
        ({"type": "text"}, "the type text"),
        ("{", "the schema isn't JSON"),
        ({"type": "object", "properties": ["a"]}, "properties in the schema isn't an object"),
        ({"properties": {"a": {"properties": "b"}}}, "properties in the schema isn't an object"),
        *(({word: wrong}, f"{word} in the schema isn't a list") for word in LISTS for wrong in (3, None, {}, "text")),
    ],
)
def test_a_wrong_schema_is_refused_before_anything_is_written(schema: object, said: str, tmp_path: Path) -> None:
    logs, out = TypedLogs(tmp_path / "logs"), tmp_path / "out"
    logs.raw("orders", [b"{}"])
    if isinstance(schema, str):
        (logs.directory / "order.json").write_text(schema)
        command = ["export", str(logs.directory), str(out), "--topic", "orders", "--schema", "order.json"]
        ran = run.kseg([*command, "--value-decoder", "json"], logs.directory)
    else:
        ran = by_file(logs, out, schema)
    assert (ran.status, out.exists()) == (2, False)
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.parametrize(
    "fields",
    [
        [{"name": {}, "type": "long"}],
        [{"name": 7, "type": "long"}],
        [{"name": "a", "type": ["null", ["int", "int"]]}],
        [{"name": "a", "type": ["int", "string", ["null"]]}],
    ],
)
def test_an_avro_schema_with_parts_that_none_has_is_refused_in_a_line(
    fields: object, logs: TypedLogs, out: Path
) -> None:
    logs.raw("orders", [b"\2"])
    (logs.directory / "order.avsc").write_text(json.dumps({"type": "record", "name": "Order", "fields": fields}))
    command = ["export", str(logs.directory), str(out), "--topic", "orders", "--schema", "order.avsc"]
    ran = run.kseg([*command, "--value-decoder", "avro"], logs.directory)
    assert (ran.status, out.exists(), ran.stderr.count(b"\n")) == (2, False, 1)
    assert b"schema" in ran.stderr
