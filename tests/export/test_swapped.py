"""A log cleaner that died while renaming a segment: records in `N.log.swap` are exported, each offset once."""

import shutil
from pathlib import Path

import pytest

from kseg.log.partition import PartitionLog
from kseg.verify.verify import verify_partition
from tests import run
from tests.export import exports
from tests.log_files import NewBatch, NewRecord, write_segment

KEPT = (0, 5, 55, 60)
"""Offsets below 100 that the cleaner has kept."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log of three segments; the first two were cleaned into one."""
    log = tmp_path / "disk" / "orders-0"
    for base in (0, 50, 100):
        exports.write_log(log, base, 50)
    return log


def die_in_swap(log: Path, *deleted: int) -> None:
    """Leave a log as a broker does that dies after renaming some of the old segments."""
    (log.parent / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    cleaned = write_segment(log.parent.parent / "cleaned" / "orders-0", [one(offset) for offset in KEPT])
    exports.write_indexes(cleaned)
    for path in cleaned.parent.iterdir():
        shutil.copy(path, log / f"{path.name}.swap")
    for base in deleted:
        for path in list(log.glob(f"{base:020}.*")):
            if path.suffix != ".swap":
                path.rename(path.with_name(f"{path.name}.deleted"))


def one(offset: int) -> NewBatch:
    return NewBatch([NewRecord(b"key", b"cleaned")], offset)


@pytest.mark.parametrize("deleted", [(), (0,), (0, 50)], ids=["none", "one", "all"])
def test_a_swap_is_taken_for_the_segments_that_it_replaces(deleted: tuple[int, ...], log: Path, tmp_path: Path) -> None:
    die_in_swap(log, *deleted)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders") == [*KEPT, *range(100, 150)]
    part = exports.of_partition(report, "orders")
    assert (part.lost, part.missed, part.disordered, part.unexplained, report.status) == (0, 0, 0, 0, 0)
    run.kseg(["salvage", "disk", "--to", "saved"], tmp_path)
    saved = exports.export([tmp_path / "saved"], tmp_path / "again")
    assert exports.of_partition(saved, "orders").records_out == part.records_out
    assert verify_partition(PartitionLog(log)).is_well


def test_when_the_broker_has_completed_the_swap_nothing_is_exported_again(log: Path, tmp_path: Path) -> None:
    die_in_swap(log, 0, 50)
    exports.export([tmp_path / "disk"], tmp_path / "out")
    for path in list(log.glob("*.deleted")):
        path.unlink()
    for path in list(log.glob("*.swap")):
        path.rename(path.with_suffix(""))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert (report.new_files, report.is_whole) == (0, True)
    assert exports.offsets(tmp_path / "out", "orders") == [*KEPT, *range(100, 150)]


def test_a_swap_after_an_export_takes_nothing_from_it(log: Path, tmp_path: Path) -> None:
    exports.export([tmp_path / "disk"], tmp_path / "out")
    die_in_swap(log, 0, 50)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert (report.new_files, report.status) == (0, 0)
    assert exports.offsets(tmp_path / "out", "orders") == [*range(150)]


def test_a_swap_of_a_split_that_was_not_finished_is_left(log: Path, tmp_path: Path) -> None:
    die_in_swap(log)
    (log / f"{0:020}.log.cleaned").write_bytes(b"")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders") == [*range(150)]


def test_a_swap_without_records_takes_no_log_away(log: Path, tmp_path: Path) -> None:
    (log / f"{0:020}.log.swap").write_bytes(bytes(100))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders") == [*range(150)]
