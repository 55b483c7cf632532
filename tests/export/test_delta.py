"""Exports as Delta tables, read by deltalake."""

import itertools
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests import golden, run
from tests.export import exports
from tests.export.object_store import CREDENTIALS
from tests.export.typed_logs import TypedLogs
from tests.log_files import NewBatch, NewRecord, write_segment


def export(sources: list[Path], out: Path, **options: object) -> None:
    exports.export(sources, out, table_format="delta", **options)


def offsets(out: Path) -> list[int]:
    from deltalake import DeltaTable

    return sorted(DeltaTable(str(out)).to_pyarrow_table(columns=["offset"]).column("offset").to_pylist())


def version(out: Path) -> int:
    from deltalake import DeltaTable

    return int(DeltaTable(str(out)).version())


def test_locks_in_dynamodb_which_deltalake_lacks_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 10)
    for name, value in {**CREDENTIALS, "AWS_REGION": "us-east-1", "AWS_S3_LOCKING_PROVIDER": "dynamodb"}.items():
        monkeypatch.setenv(name, value)
    ran = run.kseg(["export", "orders-0", "s3://lake/orders", "--format", "delta"], tmp_path)
    assert (ran.status, ran.stderr.count(b"\n")) == (2, 1)
    assert b"AWS_S3_LOCKING_PROVIDER is 'dynamodb', and deltalake has no such locks; unset it" in ran.stderr


@pytest.mark.parametrize("place", range(3))
def test_a_commit_while_the_log_is_read_disturbs_no_run(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """deltalake's history has commits that are newer than the opened version, and numbers them wrong."""
    from deltalake import DeltaTable

    paths = [tmp_path / f"orders-{number}" for number in range(3)]
    for path in paths:
        exports.write_log(path, 0, 10)
    export(paths[:1], tmp_path / "out")
    history, calls = DeltaTable.history, itertools.count()

    def met(table: DeltaTable, limit: int | None = None) -> list[dict[str, Any]]:
        if next(calls) == place:
            export(paths[1:2], tmp_path / "out")
        return history(table, limit)

    monkeypatch.setattr(DeltaTable, "history", met)
    export(paths[2:], tmp_path / "out")
    assert next(calls) > place
    assert offsets(tmp_path / "out") == sorted([*range(10)] * 3)


def test_delta_table_has_the_exports_rows(tmp_path: Path) -> None:
    from deltalake import DeltaTable

    export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "out", partition_by=("topic", "date"))
    table = DeltaTable(str(tmp_path / "out"))
    rows = table.to_pyarrow_table().num_rows
    exports.export([golden.ROOT / "logs" / "4.3.1"], tmp_path / "plain")
    assert rows == sum(table.num_rows for _, _, table in exports.tables(tmp_path / "plain")) > 0
    assert table.metadata().partition_columns == ["topic", "date"]


def null_counts(out: Path, *names: str) -> list[list[int | None]]:
    """Return the log's counts of nulls by file, the files by their lowest partition."""
    from deltalake import DeltaTable

    found = pa.table(DeltaTable(str(out)).get_add_actions(flatten=True)).sort_by("min.partition")
    return list(map(list, zip(*(found.column(f"null_count.{name}").to_pylist() for name in names), strict=True)))


def test_the_log_has_what_spark_needs_to_pass_over_files(tmp_path: Path) -> None:
    """Its connector ignores bounds without counts of nulls. Timestamps have bounds if none is null."""
    disk, out = tmp_path / "disk", tmp_path / "out"
    exports.write_log(disk / "orders-0", 0, 10)
    write_segment(disk / "orders-1", [NewBatch([NewRecord(b"k", b"v", time) for time in (0, 1 << 62)])])
    exports.write_log(disk / "orders-2", 0, 10)
    export([disk], out, partition_by=())
    columns = ("topic", "partition", "offset")
    assert null_counts(out, *columns) == [[0, 0, 0]] * 3
    assert null_counts(out, "timestamp") == [[0], [None], [0]]
    export([disk], out, partition_by=(), merge_files=True)
    exports.write_log(disk / "orders-2", 0, 10, value=b"another")
    export([disk], out, partition_by=())
    assert null_counts(out, "partition", "offset", "timestamp") == [[0, 0, 1], [0, 0, 0]]


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
    rows = DeltaTable(str(out)).to_pyarrow_table(columns=["offset", "valueDecoded"]).sort_by("offset")
    assert rows.column("valueDecoded").to_pylist() == [{"id": 1, "note": None}, {"id": 2, "note": "x"}]
