"""One cause is one finding: its consequences elsewhere aren't reported."""

import json
import os
from pathlib import Path

import pytest

from tests import run
from tests.log import edits


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    return edits.copy_partition(tmp_path, "2.3.1/txn-1")


def errors(partition: Path) -> list[tuple[str, str]]:
    ran = run.kseg(["verify", partition.name, "-o", "json"], partition.parent)
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    return [(each["id"], Path(each["file"]).name) for each in found if each.get("severity") == "error"]


def test_cut_log_is_told_without_its_indexes_entries(partition: Path) -> None:
    log = edits.logs(partition)[0]
    start, _ = list(edits.v2_batches(log))[1]
    os.truncate(log, start + 5)
    assert errors(partition) == [("cut-segment", log.name)]


def test_missing_log_is_told_once_and_without_the_hole(partition: Path) -> None:
    log = edits.logs(partition)[1]
    log.unlink()
    assert errors(partition) == [("orphan-index", log.with_suffix(".index").name)]


def test_hole_before_the_cut_is_told_besides(partition: Path) -> None:
    log = edits.logs(partition)[0]
    data = log.read_bytes()
    batches = [data[start : start + size] for start, size in edits.v2_batches(log)]
    log.write_bytes(b"".join((batches[0], *batches[2:]))[:-5])
    assert {name for name, _ in errors(partition)} >= {"cut-segment", "offsets-lost"}
