"""A table's metadata isn't trusted either: foreign content is reported in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import golden, run
from tests.export import exports

Metadata = dict[str, Any]


def assert_refused(source: Path, out: Path, table_format: str) -> bytes:
    """Assert that an export exits with 2 and one line, and return that line."""
    ran = run.kseg(["export", str(source), str(out), "--format", table_format], golden.ROOT)
    assert (ran.status, ran.stdout, ran.stderr.count(b"\n")) == (2, b"", 1), ran.stderr
    return ran.stderr


def test_a_damaged_delta_log_is_told_without_the_librarys_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RUST_BACKTRACE", "1")
    exports.write_log(tmp_path / "orders-0", 0, 10)
    log = tmp_path / "out/_delta_log"
    log.mkdir(parents=True)
    (log / "00000000000000000000.json").write_bytes(b"null\n")
    line = assert_refused(tmp_path / "orders-0", tmp_path / "out", "delta")
    assert b"the Delta log can't be read" in line
    assert b" 0: " not in line


@pytest.mark.parametrize("number", [0, -1])
def test_a_delta_table_whose_number_was_changed_gets_no_rows_twice(tmp_path: Path, number: int) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 10)
    ran = run.kseg(["export", str(source), str(out), "--format", "delta"], golden.ROOT)
    assert ran.status == 0, ran.stderr
    first = out / "_delta_log/00000000000000000000.json"
    actions = list(map(json.loads, first.read_text(encoding="utf-8").splitlines()))
    (transaction,) = (action["txn"] for action in actions if "txn" in action)
    transaction["version"] = number
    first.write_text("".join(json.dumps(action) + "\n" for action in actions), encoding="utf-8")
    assert b"which kseg didn't write" in assert_refused(source, out, "delta")


def _huge_number(metadata: Metadata) -> None:
    metadata["properties"]["kseg.number"] = "9" * 6000


def _properties_that_are_a_list(metadata: Metadata) -> None:
    metadata["properties"] = []


def _no_schemas(metadata: Metadata) -> None:
    del metadata["schemas"]


@pytest.mark.parametrize("change", [_huge_number, _properties_that_are_a_list, _no_schemas])
def test_iceberg_metadata_of_others_is_a_line(tmp_path: Path, change: Callable[[Metadata], None]) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 10)
    ran = run.kseg(["export", str(source), str(out), "--format", "iceberg"], golden.ROOT)
    assert ran.status == 0, ran.stderr
    newest = max((out / "metadata").glob("*.metadata.json"))
    metadata = json.loads(newest.read_bytes())
    change(metadata)
    newest.write_text(json.dumps(metadata), encoding="utf-8")
    line = assert_refused(source, out, "iceberg")
    assert b"kafka.records" in line
    assert b"http" not in line
    assert b"[type=" not in line


def test_a_catalog_that_is_no_database_is_told_without_its_statement(tmp_path: Path) -> None:
    source, out = tmp_path / "orders-0", tmp_path / "out"
    exports.write_log(source, 0, 10)
    out.mkdir()
    (out / "catalog.db").write_bytes(b"no database" * 100)
    line = assert_refused(source, out, "iceberg")
    assert b"file is not a database" in line
    assert b"http" not in line
    assert b"SQL" not in line
