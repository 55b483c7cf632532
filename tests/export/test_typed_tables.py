"""Typed columns in Delta and Iceberg tables, whose schemas grow from run to run."""

import json
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from kseg.export.commit.order import Job, execute_here
from kseg.export.commit.protocol import NO_TABLE
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import ColumnDecoding, DecodedAs, FileOptions, ReadOptions
from tests.export.test_tables import catalog
from tests.export.typed_logs import TypedLogs, report

FORMATS = pytest.mark.parametrize("table_format", ["delta", "iceberg"])
FIRST_LINE = {"type": "record", "name": "Line", "fields": [{"name": "n", "type": "int"}]}
LINE = {**FIRST_LINE, "fields": [*FIRST_LINE["fields"], {"name": "what", "type": ["null", "string"], "default": None}]}


def decimal(precision: int) -> dict[str, object]:
    return {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": 2}


def order(share: str, precision: int, line: object, *more: object) -> dict[str, Any]:
    kinds = {"id": "long", "share": share, "price": decimal(precision), "lines": {"type": "array", "items": line}}
    kinds["tags"] = {"type": "map", "values": "long"}
    return {"type": "record", "name": "Order", "fields": [*({"name": n, "type": k} for n, k in kinds.items()), *more]}


NOTE = {"name": "note", "type": ["null", "string"], "default": None}
OLD = order("float", 5, FIRST_LINE)
NEW = order("double", 12, LINE, NOTE)
TIME = {"name": "id", "type": {"type": "long", "logicalType": "timestamp-micros"}}
OTHER = {**OLD, "fields": [TIME, *OLD["fields"][1:]]}
OLD_VALUE: dict[str, Any] = {"id": 1, "share": 0.5, "price": Decimal("1.25"), "lines": [{"n": 1}], "tags": {"a": 1}}
NEW_VALUE: dict[str, Any] = {
    "id": 2, "share": 0.1, "price": Decimal("12345678.50"), "lines": [{"n": 2, "what": "w"}], "tags": {}, "note": "x"
}  # fmt: skip
OLD_ROW = {**OLD_VALUE, "lines": [{"n": 1, "what": None}], "tags": [("a", 1)], "note": None}
NEW_ROW = {**NEW_VALUE, "tags": []}


@pytest.fixture
def logs(tmp_path: Path) -> TypedLogs:
    return TypedLogs(tmp_path / "logs")


def rows_of(out: Path, table_format: str) -> pa.Table:
    columns = ("topic", "offset", "valueDecoded")
    if table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(out)).to_pyarrow_table(columns=list(columns))
    else:
        found = catalog(out).load_table(NO_TABLE.name).scan(selected_fields=columns).to_arrow()
    return found.sort_by([("topic", "ascending"), ("offset", "ascending")])


def values(out: Path, table_format: str) -> list[Any]:
    return rows_of(out, table_format).column("valueDecoded").to_pylist()


def export(logs: TypedLogs, out: Path, table_format: str, *options: str) -> dict[str, Any]:
    return report(logs.export(out, "--format", table_format, *options))


def typed_export(logs: TypedLogs, out: Path, files: FileOptions, *topics: str) -> Export:
    decode = ColumnDecoding(value="avro", registry=str(logs.registry()), decoded_as=DecodedAs.TYPED)
    directories = tuple(str(logs.directory / f"{topic}-0") for topic in topics or ("orders",))
    return Export(directories, str(out), read=ReadOptions(decode=decode), files=files)


@FORMATS
def test_columns_grow_in_the_commit_that_needs_them(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    logs.avro("orders", OLD, [OLD_VALUE])
    export(logs, out, table_format)
    logs.avro("orders", NEW, [NEW_VALUE])
    assert export(logs, out, table_format)["recordsOut"] == 2
    assert values(out, table_format) == [OLD_ROW, NEW_ROW]
    logs.avro("orders", NEW, [NEW_VALUE])
    export(logs, out, table_format)
    assert values(out, table_format) == [OLD_ROW, NEW_ROW, NEW_ROW]


@FORMATS
def test_other_programs_read_what_has_grown(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    import polars as pl

    out = tmp_path / "out"
    for schema, value in ((OLD, OLD_VALUE), (NEW, NEW_VALUE)):
        logs.avro("orders", schema, [value])
        export(logs, out, table_format)
    table = catalog(out).load_table(NO_TABLE.name) if table_format == "iceberg" else None
    read = pl.read_delta(str(out)) if table is None else pl.scan_iceberg(table).collect()
    fields = read.sort("offset")["valueDecoded"].struct
    assert [fields.field(name).to_list() for name in ("id", "note")] == [[1, 2], [None, "x"]]


@pytest.mark.parametrize("options", [(), ("--flatten",)], ids=str)
def test_the_line_for_polars_reads_files_whose_columns_have_grown(
    options: tuple[str, ...], logs: TypedLogs, tmp_path: Path
) -> None:
    import polars as pl

    out = tmp_path / "out"
    for schema, value in ((OLD, OLD_VALUE), (NEW, NEW_VALUE)):
        logs.avro("orders", schema, [value])
        ran = logs.export(out, *options)
    read = eval(json.loads(ran.stdout.splitlines()[-1])["polars"], {"pl": pl}).sort("offset").collect()
    rows = read.select("share", "price", "note") if options else read["valueDecoded"].struct.unnest()
    assert rows["price"].to_list() == [OLD_VALUE["price"], NEW_VALUE["price"]]
    assert rows["share"].to_list() == [0.5, 0.1]
    assert rows["note"].to_list() == [None, "x"]
    assert read["topic"].to_list() == ["orders", "orders"]


@FORMATS
def test_rows_are_replaced_in_a_table_whose_columns_grow(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    """Two topics share a file: one loses some rows and gets new ones with more fields."""
    out, options = tmp_path / "out", ("--topic", "returns", "--partition-by", "none")
    logs.avro("orders", OLD, [OLD_VALUE] * 2)
    logs.avro("returns", OLD, [OLD_VALUE] * 2)
    export(logs, out, table_format, *options)
    export(logs, out, table_format, "--merge-files", *options)
    again = TypedLogs(logs.directory)
    again.client = logs.client
    again.avro("orders", NEW, [NEW_VALUE] * 3)
    export(logs, out, table_format, *options)
    assert values(out, table_format) == [NEW_ROW] * 3 + [OLD_ROW] * 2


@FORMATS
def test_what_would_change_a_column_is_refused_before_anything_is_written(
    table_format: str, logs: TypedLogs, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    logs.avro("orders", OLD, [OLD_VALUE])
    export(logs, out, table_format)
    before = sorted(out.rglob("*"))
    logs.avro("orders", {**OLD, "fields": [{"name": "id", "type": "string"}]}, [{"id": "x"}])
    ran = logs.export(out, "--format", table_format)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"field id is string, not long as in the destination" in ran.stderr
    assert sorted(out.rglob("*")) == before


@FORMATS
def test_files_are_joined_whose_columns_have_grown(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for schema, value in ((OLD, OLD_VALUE), (OLD, OLD_VALUE), (NEW, NEW_VALUE)):
        logs.avro("orders", schema, [value])
        ran = logs.export(out, "--format", table_format, *(["--merge-files"] if schema is NEW else []))
    summary = json.loads(ran.stdout.splitlines()[-1])
    assert (summary["filesBefore"], summary["filesAfter"]) == (3, 1)
    assert values(out, table_format) == [OLD_ROW, OLD_ROW, NEW_ROW]
    logs.avro("orders", NEW, [NEW_VALUE])
    assert export(logs, out, table_format)["recordsOut"] == 4
    assert values(out, table_format) == [OLD_ROW, OLD_ROW, NEW_ROW, NEW_ROW]


@FORMATS
def test_columns_that_grow_while_a_run_is_under_way_end_it(table_format: str, logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    logs.avro("orders", OLD, [OLD_VALUE])
    wanted = typed_export(logs, out, FileOptions(table_format=table_format))

    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        logs.avro("orders", NEW, [NEW_VALUE])
        logs.registry()
        run_export(wanted, execute_here)
        return results

    with pytest.raises(KsegError, match="has changed the table's columns; run the command again"):
        run_export(wanted, overtaken)
    assert values(out, table_format) == [OLD_ROW, NEW_ROW]
    assert run_export(wanted, execute_here).new_files == 0


# --- plain files -----------------------------------------------------------------------------------------------------


def test_plain_files_are_joined_whose_columns_have_grown(logs: TypedLogs, tmp_path: Path) -> None:
    out = tmp_path / "out"
    for schema, value in ((OLD, OLD_VALUE), (OLD, OLD_VALUE), (NEW, NEW_VALUE), (NEW, NEW_VALUE)):
        logs.avro("orders", schema, [value])
        ran = logs.export(out, "--merge-files")
        assert ran.status == 0, ran.stderr
    assert len(list(out.rglob("*.parquet"))) == 1
    found = pq.read_table(out).sort_by("offset")
    assert found.column("valueDecoded").to_pylist() == [OLD_ROW, OLD_ROW, NEW_ROW, NEW_ROW]


@pytest.mark.parametrize(("later", "taken_up"), [(NEW, 1), (OTHER, 0)], ids=["more", "other"])
def test_what_a_run_had_finished_is_taken_up_if_the_columns_have_room(
    later: dict[str, Any], taken_up: int, logs: TypedLogs, tmp_path: Path
) -> None:
    out, topics = tmp_path / "out", ("orders", "returns")
    for topic in topics:
        logs.avro(topic, OLD, [OLD_VALUE])
    wanted = typed_export(logs, out, FileOptions(), *topics)

    def broken_off(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        yield next(iter(execute_here(orders, job)))
        raise KsegError("broken off")

    with pytest.raises(KsegError, match="broken off"):
        run_export(wanted, broken_off)
    changed = logs if later is NEW else TypedLogs(logs.directory)  # in a new registry, the same id is another schema
    for topic in topics:
        changed.register(f"{topic}-value", later)
    changed.registry()
    report = run_export(wanted, execute_here)
    assert (report.taken_up, sum(part.records_out for part in report.partitions)) == (taken_up, 2)
    found = pq.read_table(out, columns=["valueDecoded"]).column(0).to_pylist()
    assert len({value["id"] for value in found}) == 1
