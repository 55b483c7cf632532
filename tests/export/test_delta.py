"""Exports as Delta tables, read by deltalake."""

from pathlib import Path

from kseg.export.settings import TableFormat
from tests import golden
from tests.export import exports
from tests.export.typed_logs import TypedLogs


def export(sources: list[Path], out: Path, **options: object) -> None:
    exports.export(sources, out, table_format=TableFormat.DELTA, **options)


def offsets(out: Path) -> list[int]:
    from deltalake import DeltaTable

    return sorted(DeltaTable(str(out)).to_pyarrow_table(columns=["offset"]).column("offset").to_pylist())


def version(out: Path) -> int:
    from deltalake import DeltaTable

    return int(DeltaTable(str(out)).version())


def test_delta_table_has_the_exports_rows(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "out", partition_by=("topic", "date"))
    table = DeltaTable(str(tmp_path / "out"))
    rows = table.to_pyarrow_table().num_rows
    exports.export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "plain")
    assert rows == sum(table.num_rows for _, _, table in exports.tables(tmp_path / "plain")) > 0
    assert table.metadata().partition_columns == ["topic", "date"]


def test_a_later_run_appends_and_one_without_news_writes_nothing(tmp_path: Path) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 100)
    export([source], out)
    export([source], out)
    assert version(out) == 0
    exports.write_log(source, 100, 50)
    export([source], out)
    assert (version(out), offsets(out)) == (1, list(range(150)))


def test_what_was_replaced_leaves_the_table(tmp_path: Path) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 100)
    export([source], out)
    exports.write_log(source, 0, 40, value=b"another")
    export([source], out)
    assert offsets(out) == list(range(40))


def test_fields_that_a_later_run_adds_are_in_the_table(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    logs, out = TypedLogs(tmp_path / "logs"), tmp_path / "out"
    fields = [{"name": "id", "type": "int"}, {"name": "note", "type": ["null", "string"], "default": None}]
    for count in (1, 2):
        schema = {"type": "record", "name": "Order", "fields": fields[:count]}
        logs.avro("orders", schema, [{"id": count, "note": "x"}])
        assert logs.export(out, "--format", "delta").status == 0
    rows = DeltaTable(str(out)).to_pyarrow_table(columns=["offset", "decodedValue"]).sort_by("offset")
    assert rows.column("decodedValue").to_pylist() == [{"id": 1, "note": None}, {"id": 2, "note": "x"}]
