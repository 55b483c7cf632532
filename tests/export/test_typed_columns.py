"""Typed columns of Avro as readers see them: values of confluent-kafka's serializers, and changed schemas."""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

from kseg.export.write.typed_plan import schemas_of_file
from kseg.kernel.record import Header
from tests import run
from tests.decode.test_avro import ORDER, VALUE, bare
from tests.export.typed_logs import TypedLogs, report, values
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.loops import for_each


@pytest.fixture
def logs(tmp_path: Path) -> TypedLogs:
    return TypedLogs(tmp_path / "logs")


@pytest.fixture
def out(tmp_path: Path) -> Path:
    return tmp_path / "out"


def record(*fields: dict[str, Any], name: str = "Order") -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def field(name: str, kind: object, **more: object) -> dict[str, Any]:
    return {"name": name, "type": kind, **more}


def optional(name: str, kind: object) -> dict[str, Any]:
    return field(name, ["null", kind], default=None)


RICH = record(
    field("id", "long"),
    field("small", "int"),
    field("day", {"type": "int", "logicalType": "date"}),
    field("at", {"type": "long", "logicalType": "timestamp-millis"}),
    field("exactly", {"type": "long", "logicalType": "timestamp-micros"}),
    field("there", {"type": "long", "logicalType": "local-timestamp-millis"}),
    field("clock", {"type": "int", "logicalType": "time-millis"}),
    field("price", {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}),
    field("fee", {"type": "fixed", "name": "Fee", "size": 4, "logicalType": "decimal", "precision": 6, "scale": 3}),
    field("huge", {"type": "bytes", "logicalType": "decimal", "precision": 50, "scale": 1}),
    field("token", {"type": "string", "logicalType": "uuid"}),
    field("digest", {"type": "fixed", "name": "Digest", "size": 3}),
    field("kind", {"type": "enum", "name": "Kind", "symbols": ["NEW", "OLD"]}),
    field("note", ["null", "string"]),
    field("either", ["null", "int", "string", "Kind"]),
    field("lines", {"type": "array", "items": record(field("n", "int"), field("share", "float"), name="Line")}),
    field("tags", {"type": "map", "values": ["null", "long"]}),
    field("is_paid", "boolean"),
)
GIVEN = {
    "id": 2**53 + 1,
    "small": -7,
    "day": date(2026, 11, 1),
    "at": datetime(2026, 11, 1, 3, 0, 0, 5000, tzinfo=UTC),
    "exactly": datetime(2026, 11, 1, 3, 0, 0, 7, tzinfo=UTC),
    "there": datetime(2026, 11, 1, 3),  # noqa: DTZ001  in no zone
    "clock": 45_296_007,
    "price": Decimal("12.30"),
    "fee": Decimal("-0.125"),
    "huge": Decimal("1234567890123456789012345678901234567890.5"),
    "token": UUID("6b156641-9a3c-42cd-bb94-d06e58be2445"),
    "digest": b"\0\xff1",
    "kind": "OLD",
    "note": None,
    "either": "text",
    "lines": [{"n": 1, "share": 0.5}, {"n": 2, "share": 0.25}],
    "tags": {"a": 1, "b": None},
    "is_paid": True,
}
READ = {
    **GIVEN,
    "clock": "12:34:56.007",
    "huge": "1234567890123456789012345678901234567890.5",
    "token": "6b156641-9a3c-42cd-bb94-d06e58be2445",
    "either": {"int": None, "string": "text", "Kind": None},
}


def test_every_kind_of_avro_has_its_column(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", RICH, [GIVEN, {**GIVEN, "note": "x", "either": 5, "lines": [], "tags": {}}])
    assert report(logs.export(out))["undecoded"] == 0
    first, second = values(out)
    assert {**first, "at": first["at"].astimezone(UTC), "exactly": first["exactly"].astimezone(UTC)} == READ
    assert (second["note"], second["either"]["int"], second["lines"], second["tags"]) == ("x", 5, [], {})
    schema = pq.read_table(out).schema.field("valueDecoded").type
    assert {own.name: str(own.type) for own in schema} == {
        "id": "int64",
        "small": "int64",
        "day": "date32[day]",
        "at": "timestamp[us, tz=UTC]",
        "exactly": "timestamp[us, tz=UTC]",
        "there": "timestamp[us]",
        "clock": "string",
        "price": "decimal128(9, 2)",
        "fee": "decimal128(6, 3)",
        "huge": "string",
        "token": "string",
        "digest": "binary",
        "kind": "string",
        "note": "string",
        "either": "struct<int: int64, string: string, Kind: string>",
        "lines": "list<element: struct<n: int64, share: float>>",
        "tags": "map<string, int64 ('tags')>",
        "is_paid": "bool",
    }


def test_all_readers_count_the_same(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", RICH, [{**GIVEN, "id": number} for number in range(500)])
    logs.export(out)
    files = sorted(map(str, out.glob("topic=*/*.parquet")))
    assert sum(value["id"] for value in values(out)) == 124750
    assert pl.read_parquet(files)["valueDecoded"].struct.field("id").sum() == 124750
    assert sum(value["id"] for value in pd.read_parquet(files)["valueDecoded"]) == 124750


def test_a_type_within_itself_is_text_there(logs: TypedLogs, out: Path) -> None:
    node = record(field("value", "int"), optional("next", "Order"))
    logs.avro("orders", node, [{"value": 1, "next": {"value": 2, "next": {"value": 3, "next": None}}}])
    logs.export(out)
    assert values(out) == [{"value": 1, "next": '{"value":2,"next":{"value":3,"next":null}}'}]


def test_a_schema_file_serves_bare_values_and_serializers_ones(tmp_path: Path, logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", ORDER, [VALUE])
    logs.raw("orders", [bare(ORDER, {**VALUE, "id": 7}), b"", None])
    (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
    command = ["export", str(logs.directory), str(out), "--topic", "orders", "--schema", str(tmp_path / "order.avsc")]
    ran = run.kseg([*command, "--value-decoder", "avro", "-o", "json"], tmp_path)
    assert report(ran)["undecoded"] == 1
    assert [value and value["id"] for value in values(out)] == [VALUE["id"], 7, None, None]


def test_an_id_in_a_header_is_found(logs: TypedLogs, out: Path) -> None:
    own = logs.register("orders-value", ORDER)
    logs.raw("orders", [bare(ORDER, VALUE)], [Header("__value_schema_id", b"\0" + own.to_bytes(4, "big"))])
    assert report(logs.export(out))["undecoded"] == 0
    assert [value["id"] for value in values(out)] == [VALUE["id"]]


def test_keys_have_columns_too(logs: TypedLogs, out: Path) -> None:
    key = record(field("customer", "long"), name="Key")
    own = logs.register("orders-key", key)
    logs.avro("orders", ORDER, [VALUE])
    body = b"\0" + own.to_bytes(4, "big") + bare(key, {"customer": 5})
    write_segment(logs.directory / "orders-0", [NewBatch([NewRecord(body, None)], 1)], 1)
    ran = logs.export(out, "--key-decoder", "avro")
    assert report(ran)["undecoded"] == 1  # the first record's key isn't Avro
    assert values(out, "keyDecoded") == [None, {"customer": 5}]


# --- changing schemas -------------------------------------------------------------------------------------------------

OLD = record(field("id", "int"), field("note", "string"), optional("gone", "string"))


def change_schema(kind: object) -> dict[str, Any]:
    return record(field("id", kind), field("note", "string"))


@pytest.mark.parametrize(
    ("before", "given", "after", "then", "wanted"),
    [
        ("int", 1, "long", 2**40, [1, 2**40]),
        ("int", 1, "float", 0.5, [1.0, 0.5]),
        ("long", 1, "double", 0.5, [1.0, 0.5]),
        ("float", 0.5, "double", 0.25, [0.5, 0.25]),
        ("string", "a", "bytes", b"\xff", [b"a", b"\xff"]),
        ("bytes", b"a", "string", "b", [b"a", b"b"]),
        ("int", 1, ["null", "long"], None, [1, None]),
        ("int", 1, ["int", "string"], "x", [{"int": 1, "string": None}, {"int": None, "string": "x"}]),
        (
            ["null", "int"],
            1,
            ["null", "int", "string"],
            "x",
            [{"int": 1, "string": None}, {"int": None, "string": "x"}],
        ),
        ({"type": "array", "items": "int"}, [1], {"type": "array", "items": "double"}, [0.5], [[1.0], [0.5]]),
        ({"type": "map", "values": "int"}, {"a": 1}, {"type": "map", "values": "long"}, {}, [{"a": 1}, {}]),
        (
            {"type": "enum", "name": "E", "symbols": ["A"]},
            "A",
            {"type": "enum", "name": "E", "symbols": ["A", "B"]},
            "B",
            ["A", "B"],
        ),
        (
            {"type": "bytes", "logicalType": "decimal", "precision": 4, "scale": 1},
            Decimal("1.5"),
            {"type": "bytes", "logicalType": "decimal", "precision": 8, "scale": 1},
            Decimal("123456.5"),
            [Decimal("1.5"), Decimal("123456.5")],
        ),
        (
            record(field("a", "int"), name="Inner"),
            {"a": 1},
            record(field("b", "string"), name="Inner"),
            {"b": "x"},
            [{"a": 1, "b": None}, {"a": None, "b": "x"}],
        ),
    ],
    ids=str,
)
def test_one_column_has_room_for_both(
    before: object, given: object, after: object, then: object, wanted: object, logs: TypedLogs, out: Path
) -> None:
    logs.avro("orders", record(field("v", before)), [{"v": given}])
    logs.avro("orders", record(field("v", after)), [{"v": then}])
    assert report(logs.export(out))["undecoded"] == 0
    assert [value["v"] for value in values(out)] == wanted


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("int", "string", "field v is string, not long"),
        ("string", "boolean", "field v is boolean, not string"),
        ("long", {"type": "long", "logicalType": "timestamp-millis"}, "field v is timestamp, not long"),
        ({"type": "array", "items": "int"}, "int", "field v is long, not list"),
        (record(field("a", "int"), name="A"), record(field("a", "int"), name="B"), "field v is record B, not record A"),
        (
            record(field("a", "int"), name="A"),
            record(field("a", "string"), name="A"),
            "field v.a is string, not long",
        ),
    ],
    ids=str,
)
def test_what_has_no_column_is_refused_before_anything_is_written(
    before: object, after: object, said: str, logs: TypedLogs, out: Path
) -> None:
    first, second = (logs.register("orders-value", record(field("v", kind))) for kind in (before, after))
    logs.raw("orders", [b"\0" + own.to_bytes(4, "big") for own in (first, second)])
    ran = logs.export(out)
    assert ran.status == 2
    assert not out.exists()
    message = ran.stderr.decode()
    assert message.count("\n") == 1
    assert f"schema {second} (orders-value version 2) of topic orders: {said}" in message
    assert f"as in schema {first} (orders-value version 1)" in message
    assert "--on-mismatch raw" in message


@for_each(
    "schema, said",
    [
        *(
            (record({"name": name, "type": "int"}), f"the field name {json.dumps(name)} isn't text")
            for name in (None, 5, True, 0.5, ["x"], {"a": 1}, "\ud800")
        ),
        (record(field("a", "int"), field("a", "int")), "record Order has two fields a"),
        (record(field("a", ["null", "string", "string"])), "a union contains string twice"),
        (record(field("a", ["null", ["int"], "string"])), "a union directly contains a union"),
    ],
)
def test_a_schema_against_avros_rules_is_refused_in_a_line(schema: object, said: str, tmp_path: Path) -> None:
    """fastavro accepts them all."""
    (tmp_path / "s.avsc").write_text(json.dumps(schema))
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"k", b"\2\2")])])
    ran = run.kseg(["export", "orders-0", "out", "--value-decoder", "avro", "--schema", "s.avsc"], tmp_path)
    assert (ran.status, (tmp_path / "out").exists(), ran.stderr.count(b"\n")) == (2, False, 1)
    assert said in ran.stderr.decode()


@for_each("precision, scale", [(10**9, 10**9), (1001, 0), (None, 0), (10**30, 10**25)])
def test_decimals_without_bounds_are_bytes(precision: int | None, scale: int, tmp_path: Path) -> None:
    """As text, one byte would have a billion digits."""
    schema = {"type": "bytes", "logicalType": "decimal", "scale": scale} | (
        {"precision": precision} if precision else {}
    )
    (tmp_path / "own.avsc").write_text(json.dumps(schema | {"name": "r"}))
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"\2\1")])])
    ran = run.kseg(["export", "orders-0", "out", "--value-decoder", "avro", "--schema", "own.avsc"], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert [bytes(value) for value in values(tmp_path / "out")] == [b"\1"]


def test_aliases_that_are_no_names_do_not_count(tmp_path: Path) -> None:
    for number, aliases in enumerate((5, True, None, [5], [[]], ["\ud800"])):
        schema = {"type": "record", "name": "r", "aliases": aliases, "fields": [{"name": "a", "type": "int"}]}
        (tmp_path / "own.avsc").write_text(json.dumps(schema))
        write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(None, b"\2")])])
        ran = run.kseg(["export", "orders-0", f"{number}", "--value-decoder", "avro", "--schema", "own.avsc"], tmp_path)
        assert (ran.status, ran.stderr) == (0, b"")
        assert values(tmp_path / f"{number}") == [{"a": 1}]


def test_what_has_no_column_stays_raw_where_that_is_asked_for(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", change_schema("int"), [{"id": 1, "note": "a"}])
    logs.avro("orders", change_schema("string"), [{"id": "x", "note": "b"}] * 3)
    ran = logs.export(out, "--on-mismatch", "raw", "--keep-raw", "undecoded")
    found = report(ran)
    assert (found["undecoded"], found["recordsOut"]) == (3, 4)
    assert any("(orders-value version 2) stay raw: field id is string, not long" in note for note in found["remarks"])
    assert values(out) == [{"id": 1, "note": "a"}, None, None, None]
    raw = values(out, "value")
    assert raw[0] is None
    assert [bytes(each)[-1:] for each in raw[1:]] == [b"b"] * 3


def test_a_version_that_no_record_has_does_not_matter(logs: TypedLogs, out: Path) -> None:
    logs.register("orders-value", change_schema("string"))
    logs.avro("orders", change_schema("int"), [{"id": 1, "note": "a"}])
    assert report(logs.export(out))["undecoded"] == 0
    assert values(out) == [{"id": 1, "note": "a"}]


def test_schemas_of_other_subjects_are_found_by_the_ids_of_records(logs: TypedLogs, out: Path) -> None:
    own = logs.register("shop.Order", ORDER)
    logs.raw("orders", [b"\0" + own.to_bytes(4, "big") + bare(ORDER, VALUE), b"\0\0\0\0\x63x", b"no id"])
    found = report(logs.export(out))
    assert found["undecoded"] == 2
    assert any("schema 99" in note for note in found["remarks"])
    assert [value and value["id"] for value in values(out)] == [VALUE["id"], None, None]


def test_a_renamed_field_keeps_its_column(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", record(field("id", "int")), [{"id": 1}])
    logs.avro("orders", record(field("number", "int", aliases=["id"])), [{"number": 2}])
    logs.export(out)
    assert values(out) == [{"id": 1}, {"id": 2}]


# --- the same destination again --------------------------------------------------------------------------------------


def test_a_later_run_adds_fields_and_readers_read_both(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", OLD, [{"id": 1, "note": "a", "gone": "g"}])
    logs.export(out)
    wider = record(field("id", "long"), field("note", "string"), optional("more", "double"))
    logs.avro("orders", wider, [{"id": 2**40, "note": "b", "more": 0.5}])
    ran = logs.export(out)
    assert duckdb.sql(json.loads(ran.stdout.splitlines()[-1])["duckdb"]).fetchall()[0][-2]["more"] is None
    assert values(out) == [
        {"id": 1, "note": "a", "gone": "g", "more": None},
        {"id": 2**40, "note": "b", "gone": None, "more": 0.5},
    ]
    files = sorted(map(str, out.glob("topic=*/*.parquet")))
    casts = pl.ScanCastOptions(missing_struct_fields="insert")
    read = pl.scan_parquet(files[::-1], cast_options=casts).sort("offset").collect()  # the newest has the columns
    assert read["valueDecoded"].struct.field("more").to_list() == [None, 0.5]


def test_a_later_run_that_would_change_a_column_is_refused(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", change_schema("int"), [{"id": 1, "note": "a"}])
    logs.export(out)
    before = sorted(out.rglob("*"))
    logs.avro("orders", change_schema("double"), [{"id": 0.5, "note": "b"}])
    ran = logs.export(out)
    assert ran.status == 2
    assert b"field id is double, not long as in the destination" in ran.stderr
    assert sorted(out.rglob("*")) == before
    assert report(logs.export(out, "--overwrite"))["undecoded"] == 0
    assert [value["id"] for value in values(out)] == [1.0, 0.5]


def test_topics_share_a_column_or_are_refused(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", record(field("id", "int")), [{"id": 1}])
    logs.avro("returns", record(field("id", "long"), optional("why", "string")), [{"id": 2, "why": "x"}])
    logs.avro("visits", record(field("id", "int"), name="Visit"), [{"id": 3}])
    assert logs.export(out, "--topic", "returns").status == 0
    assert sorted(value["id"] for value in values(out)) == [1, 2]
    ran = logs.export(out.parent / "other", "--topic", "visits")
    assert ran.status == 2
    assert b"of topic visits: the value is record Visit, not record Order as in schema" in ran.stderr
    assert (
        b"of topic orders, so one column can't have both; export each topic with --topic into its own DEST"
        in ran.stderr
    )


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_a_table_may_leave_the_values_of_a_later_schema_raw(logs: TypedLogs, out: Path, table_format: str) -> None:
    logs.avro("orders", record(field("id", "int")), [{"id": 1}])
    options = ("--format", table_format, "--partition-by", "none")
    assert logs.export(out, *options).status == 0
    logs.avro("orders", record(field("id", "string")), [{"id": "two"}])
    refused = logs.export(out, *options)
    assert refused.status == 2
    assert b"leave the values raw with --on-mismatch raw" in refused.stderr
    assert report(logs.export(out, *options, "--on-mismatch", "raw"))["undecoded"] == 1
    assert values(out) == [{"id": 1}, None]


def test_schemas_may_move_between_runs(logs: TypedLogs, out: Path, tmp_path: Path) -> None:
    logs.avro("orders", record(field("id", "int")), [{"id": 1}])
    logs.export(out)
    logs.avro("orders", record(field("id", "int"), optional("note", "string")), [{"id": 2, "note": "new"}])
    moved = tmp_path / "registry" / "_schemas-0"
    moved.parent.mkdir()
    logs.registry().rename(moved)
    command = ["export", str(logs.directory), str(out), "--topic", "orders", "--value-decoder", "avro"]
    ran = run.kseg([*command, "--schema-registry", str(moved)], tmp_path)
    assert (ran.status, ran.stderr) == (0, b"")
    assert values(out) == [{"id": 1, "note": None}, {"id": 2, "note": "new"}]


# --- other options ----------------------------------------------------------------------------------------------------


def test_text_stays_if_it_is_asked_for(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", record(field("id", "int")), [{"id": 1}])
    logs.export(out, "--decoded", "text")
    assert values(out) == ['{"id":1}']


def test_nothing_redacted_comes_through_a_typed_column(logs: TypedLogs, out: Path) -> None:
    logs.avro("orders", record(field("name", "string")), [{"name": "a secret"}, {"name": "another secret"}])
    assert report(logs.export(out, "--redact", "values"))["recordsOut"] == 2
    for file in out.rglob("*"):
        assert not file.is_file() or b"secret" not in file.read_bytes()
    assert "secret" not in str(values(out)) + str(values(out, "value"))


def test_values_that_do_not_fit_are_null_alone(logs: TypedLogs, out: Path) -> None:
    far = record(field("at", {"type": "long", "logicalType": "timestamp-millis"}))
    plain = record(field("at", "long"))
    own = logs.register("orders-value", far)
    head = b"\0" + own.to_bytes(4, "big")
    logs.raw("orders", [head + bare(plain, {"at": at}) for at in (1, 2**62, 3)] + [head + b"\xff"])
    assert report(logs.export(out))["undecoded"] == 2
    assert [value and value["at"].timestamp() for value in values(out)] == [0.001, None, 0.003, None]


def test_processes_write_typed_columns(logs: TypedLogs, out: Path) -> None:
    for _ in range(3):
        logs.avro("orders", record(field("text", "string")), [{"text": "x" * 12_000}] * 1000)
    assert report(logs.export(out, "-j", "2", "--target-file-size", "10MB"))["recordsOut"] == 3000
    assert [len(value["text"]) for value in values(out)] == [12_000] * 3000


def test_a_union_of_records_is_sent_along_without_what_the_library_adds(tmp_path: Path) -> None:
    """The library adds all records to each of them: 78 KB of schema took a GiB."""
    schema = [record(field("a", "int"), name=f"Kind{number}") for number in range(200)]
    path = tmp_path / "union.avsc"
    path.write_text(json.dumps(schema))
    [known] = schemas_of_file("avro", path, None)
    assert json.loads(known.schema.texts[0]) == schema


def nested_lists(levels: int) -> object:
    kind: object = "int"
    for _ in range(levels):
        kind = {"type": "array", "items": kind}
    return kind


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_lists_are_as_deep_as_readers_of_parquet_go(table_format: str, tmp_path: Path, out: Path) -> None:
    """Each list has two levels in Parquet: Arrow reads 100."""
    segment = write_segment(tmp_path / "deep-0", [NewBatch([NewRecord(None, b"\2" * 49 + b"\2" + b"\0" * 49)])])
    for levels, status in ((50, 2), (49, 0)):
        schema = tmp_path / f"{levels}.avsc"
        schema.write_text(json.dumps(nested_lists(levels)))
        decoding = ["--value-decoder", "avro", "--schema", str(schema), "--format", table_format]
        result = run.kseg(["export", str(segment.parent), str(out), *decoding], tmp_path)
        assert (result.status, out.exists()) == (status, status == 0), result.stderr
        assert (b"levels deep in Parquet" in result.stderr) is (status == 2)
