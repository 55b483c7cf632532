"""Headers of an export as a map."""

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests import run
from tests.export.test_tables import catalog
from tests.log_files import NewBatch, NewRecord, write_segment

HEADERS: list[list[tuple[str, bytes | None]]] = [
    [("trace", b"1"), ("empty", None), ("trace", b"2")],
    [],
    [("trace", b"3"), ("ü", b"")],
]
LAST = [[("empty", None), ("trace", b"2")], [], [("trace", b"3"), ("ü", b"")]]


def read(out: Path, table_format: str) -> list[Any]:
    """Return the headers of all rows as the format's library reads them."""
    if table_format == "parquet":
        found = pq.read_table(out, partitioning=None)
    elif table_format == "delta":
        from deltalake import DeltaTable

        found = DeltaTable(str(out)).to_pyarrow_table()
    else:
        found = catalog(out).load_table("kafka.records").scan().to_arrow()
    cells: list[Any] = found.sort_by("offset").column("headers").to_pylist()
    return cells


@pytest.mark.parametrize("table_format", ["parquet", "delta", "iceberg"])
def test_the_last_header_of_a_name_counts_in_a_map(table_format: str, tmp_path: Path) -> None:
    options = ["--headers", "map", "--format", table_format, "--merge-files", "--redact", "keys"]
    for first in (0, 3):
        records = [NewRecord(b"key", b"value", headers=headers) for headers in HEADERS]
        write_segment(tmp_path / "orders-0", [NewBatch(records, first)], first)
        ran = run.kseg(["export", "orders-0", "out", *options, "--redact-key", "k" * 32], tmp_path)
        assert ran.status == 0, ran.stderr
    assert read(tmp_path / "out", table_format) == LAST * 2


def test_headers_of_another_form_need_another_place(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"key", b"value", headers=HEADERS[0])], 0)])
    for form, status in (("list", 0), ("map", 2), ("list", 0)):
        assert run.kseg(["export", "orders-0", "out", "--headers", form], tmp_path).status == status


def test_no_headers_leaves_the_column_out(tmp_path: Path) -> None:
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(b"key", b"value")], 0)])
    assert run.kseg(["export", "orders-0", "out", "--no-headers", "--headers", "map"], tmp_path).status == 0
    assert "headers" not in pq.read_table(tmp_path / "out").column_names
