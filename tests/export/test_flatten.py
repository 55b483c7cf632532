"""Columns of the fields of decoded keys and values."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests import run
from tests.export.test_tables import catalog
from tests.export.typed_logs import TypedLogs
from tests.log_files import NewBatch, NewRecord, write_segment

FORMATS = pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
FLAT = ("--flatten", "--drop", "raw")


def record(*fields: str) -> dict[str, Any]:
    return {
        "type": "record",
        "name": "V",
        "fields": [{"name": name, "type": ["null", "long"], "default": None} for name in fields],
    }


@pytest.fixture
def logs(tmp_path: Path) -> TypedLogs:
    return TypedLogs(tmp_path / "logs")


def rows(out: Path, table_format: str) -> pa.Table:
    """Return all rows as the format's library reads them, by offset."""
    if table_format == "parquet":
        found = pa.concat_tables(
            [pq.read_table(path, partitioning=None) for path in out.rglob("*.parquet")], promote_options="default"
        )
    elif table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(out)).to_pyarrow_table()
    else:
        found = catalog(out).load_table("kafka.records").scan().to_arrow()
    return found.sort_by("offset")


@FORMATS
def test_fields_are_columns_that_grow_with_the_schema(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    options = (*FLAT, "--format", table_format)
    logs.avro("orders", record("id", "Offset"), [{"id": 1, "Offset": 7}])
    ran = logs.export(out, *options)
    assert ran.status == 0, ran.stderr
    logs.avro("orders", record("id", "Offset", "added"), [{"id": 2, "Offset": 8, "added": 3}])
    ran = logs.export(out, *options)
    assert ran.status == 0, ran.stderr
    found = rows(out, table_format)
    assert not {"value", "valueDecoded"} & set(found.column_names)
    assert "key" in found.column_names
    assert found.column("id").to_pylist() == [1, 2]
    assert found.column("value_Offset").to_pylist() == [7, 8]
    assert found.column("added").to_pylist() == [None, 3]
    assert found.column("offset").to_pylist() == [0, 1]


@FORMATS
def test_files_of_both_schemas_are_joined(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for fields in (("id",), ("id", "added")):
        logs.avro("orders", record(*fields), [dict.fromkeys(fields, 1)])
        ran = logs.export(out, *FLAT, "--format", table_format, "--merge-files")
        assert ran.status == 0, ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["filesAfter"] == 1
    assert rows(out, table_format).column("added").to_pylist() == [None, 1]


def test_undecoded_values_are_null_and_keep_their_bytes_unless_dropped(logs: TypedLogs, tmp_path: Path) -> None:
    logs.avro("orders", record("id"), [{"id": 1}])
    logs.raw("orders", [b"other"])
    for name, options in (("kept", FLAT[:1]), ("dropped", FLAT)):
        assert logs.export(tmp_path / name, *options, "--max-undecoded", "1").status == 0
        found = rows(tmp_path / name, "parquet")
        assert found.column("id").to_pylist() == [1, None]
        assert ("value" in found.column_names) == (name == "kept")


def test_fields_of_keys_have_a_prefix(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"id": {"type": "integer"}}, "additionalProperties": False}
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b'{"id": 1}', b'{"id": 2}')], 0)])
    decoders = ["--key-decoder", "json", "--value-decoder", "json", "--schema", "schema.json"]
    ran = run.kseg(["export", "orders-0", "out", *decoders, *FLAT], tmp_path)
    assert ran.status == 0, ran.stderr
    (row,) = rows(tmp_path / "out", "parquet").to_pylist()
    assert (row["key_id"], row["id"], "key" in row, "value" in row) == (1, 2, False, False)


def test_two_fields_of_one_column_are_refused(logs: TypedLogs, tmp_path: Path) -> None:
    logs.avro("orders", record("offset", "value_offset"), [{"offset": 1}])
    ran = logs.export(tmp_path / "out", "--flatten")
    assert (ran.status, (tmp_path / "out").exists()) == (2, False)
    assert b"the fields offset of values and value_offset of values" in ran.stderr


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--value-decoder", "json", "--flatten"], b"--flatten needs a decoder and its schema"),
        (["--flatten"], b"--flatten needs a decoder and its schema"),
        (["--drop", "raw"], b"--drop raw needs a decoder"),
        (["--key-decoder", "string", "--drop", "raw", "--bloom-filter", "key"], b"--bloom-filter key needs the bytes"),
    ],
)
def test_options_that_lack_a_schema_say_so(options: list[str], problem: bytes, logs: TypedLogs, tmp_path: Path) -> None:
    logs.raw("orders", [b"{}"])
    ran = run.kseg(["export", str(logs.directory), str(tmp_path / "out"), *options], tmp_path)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1)
    assert problem in ran.stderr
