"""Many small partitions of a topic share Parquet files: few files, the same rows and accounts, exact continuation."""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from kseg.export.commit.order import Job, execute_here, in_processes
from kseg.export.destination import LocalDestination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.write import shared_files
from kseg.system import shared_work
from tests.export import exports
from tests.export.test_accounts import assert_adds_up
from tests.export.test_merge import accounts, parquet_files, rows
from tests.log_files import NewBatch, NewRecord, write_segment

COUNT = 120
RECORDS = 5
KILLED = """
import os, signal, sys
from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.export.write import shared_files

shared_files.BUNDLE_SIZE = 4000

def execute(orders, job):
    for number, result in enumerate(execute_here(orders, job)):
        if number == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield result

run_export(Export((sys.argv[1],), sys.argv[2]), execute)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return a log directory with many small partitions of a topic."""
    for partition in range(COUNT):
        exports.write_log(tmp_path / "disk" / f"orders-{partition}", 0, RECORDS, value=b"of %d" % partition)
    return tmp_path / "disk"


@pytest.fixture
def small_bundles(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let two dozen of these partitions share a file."""
    monkeypatch.setattr(shared_files, "BUNDLE_SIZE", 4000)


def every_row(disk: Path) -> list[tuple[str, int, int, bytes]]:
    """Return topic, partition, offset and value of all records of the partitions."""
    return sorted(
        ("orders", int(directory.name.rpartition("-")[2]), record.offset, record.value or b"")
        for directory in disk.iterdir()
        for record in exports.records_of(directory)
    )


def export(disk: Path, out: Path, **options: object) -> Report:
    report = exports.export([disk], out, **options)
    assert_adds_up(report, out)
    return report


def test_many_small_partitions_share_files_with_rising_rows(
    disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small_bundles: None
) -> None:
    report = export(disk, tmp_path / "out")
    files = parquet_files(tmp_path / "out")
    assert len(files) == 5
    assert rows(tmp_path / "out") == every_row(disk)
    assert report.new_files == len(files)
    for file in files:
        parquet = pq.ParquetFile(file)
        order = [each.column_index for each in parquet.metadata.row_group(0).sorting_columns]
        assert [parquet.schema_arrow.names[index] for index in order] == ["partition", "offset"]
        table = parquet.read(["partition", "offset"])
        pairs = list(zip(*(column.to_pylist() for column in table), strict=True))
        assert pairs == sorted(pairs)
    monkeypatch.setattr(shared_files, "FEWEST", COUNT + 1)
    apart = export(disk, tmp_path / "apart")
    assert accounts(report) == accounts(apart)
    assert len(parquet_files(tmp_path / "apart")) == COUNT


def test_processes_share_files_too(disk: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_files, "BUNDLE_SIZE", 4000)
    monkeypatch.setattr(shared_work, "WORTH_PROCESSES", 1)
    run_export(Export((str(disk),), str(tmp_path / "out")), in_processes(2))
    assert len(parquet_files(tmp_path / "out")) == 5
    assert rows(tmp_path / "out") == every_row(disk)


@pytest.mark.parametrize("options", [{"partition_by": ("topic", "bucket(3)")}, {"sort_by": ("key",)}], ids=str)
def test_shared_files_are_divided_and_sorted_as_others(disk: Path, tmp_path: Path, options: dict[str, object]) -> None:
    export(disk, tmp_path / "out", **options)
    assert rows(tmp_path / "out") == every_row(disk)
    assert len(parquet_files(tmp_path / "out")) == (2 if "partition_by" in options else 1)
    for partition in (0, COUNT - 1):
        assert sorted(exports.offsets(tmp_path / "out", "orders", partition)) == list(range(RECORDS))


def test_folders_of_partitions_are_not_shared(disk: Path, tmp_path: Path) -> None:
    export(disk, tmp_path / "out", partition_by=("topic", "partition"))
    assert len(parquet_files(tmp_path / "out")) == COUNT


def test_a_changed_log_is_replaced_within_its_file(disk: Path, tmp_path: Path) -> None:
    export(disk, tmp_path / "out")
    exports.write_log(disk / "orders-7", 0, RECORDS, value=b"other")
    export(disk, tmp_path / "out")
    assert rows(tmp_path / "out") == every_row(disk)


def test_new_records_of_all_partitions_are_added_once(disk: Path, tmp_path: Path) -> None:
    export(disk, tmp_path / "out")
    for partition in range(COUNT):
        exports.write_log(disk / f"orders-{partition}", RECORDS, RECORDS, value=b"later")
    report = export(disk, tmp_path / "out")
    assert (report.new_files, len(parquet_files(tmp_path / "out"))) == (1, 2)
    assert rows(tmp_path / "out") == every_row(disk)
    assert export(disk, tmp_path / "out").new_files == 0


def test_a_partition_whose_offsets_fall_gets_its_own_file(disk: Path, tmp_path: Path) -> None:
    batches = [NewBatch([NewRecord(None, b"%d" % offset)], offset) for offset in (3, 1, 2)]
    write_segment(disk / "orders-7", batches)
    report = exports.export([disk], tmp_path / "out")
    assert exports.of_partition(report, "orders", 7).records_out == 3
    assert len(parquet_files(tmp_path / "out")) == 2
    assert sorted(row[2] for row in rows(tmp_path / "out") if row[1] == 7) == [1, 2, 3]
    assert len(rows(tmp_path / "out")) == (COUNT - 1) * RECORDS + 3


def test_offsets_that_fall_from_one_order_to_the_next_leave_no_row_twice(disk: Path, tmp_path: Path) -> None:
    exports.write_log(disk / "orders-7", 50, RECORDS, value=b"later")
    first = sorted((disk / "orders-7").glob("*.log"))[0]
    first.write_bytes(
        first.read_bytes() + write_segment(tmp_path / "aside", [NewBatch([NewRecord(None, b"x")], 52)]).read_bytes()
    )
    exports.export([disk], tmp_path / "out", order_size=400)
    assert sorted(row[2] for row in rows(tmp_path / "out") if row[1] == 7) == [0, 1, 2, 3, 4, 50, 51, 52, 53, 54]
    assert len(rows(tmp_path / "out")) == COUNT * RECORDS + RECORDS


def test_a_log_that_disappears_meanwhile_loses_no_row_of_others(disk: Path, tmp_path: Path) -> None:
    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        for log in (disk / "orders-7").glob("*.log"):
            log.unlink()
        return execute_here(orders, job)

    run_export(Export((str(disk),), str(tmp_path / "out")), execute)
    assert rows(tmp_path / "out") == every_row(disk)


def test_orders_of_a_killed_run_are_resumed_by_the_file(disk: Path, tmp_path: Path, small_bundles: None) -> None:
    for kill_at in (0, 30, 70, COUNT - 1):
        out = tmp_path / f"out{kill_at}"
        arguments = [sys.executable, "-c", KILLED, str(disk), str(out), str(kill_at)]
        subprocess.run(arguments, env=os.environ, capture_output=True, check=False)
        finished = len(list((out / "_kseg/jobs").rglob("done-*")))
        executed: list[WorkOrder] = []

        def execute(orders: Sequence[WorkOrder], job: Job, executed: list[WorkOrder] = executed) -> Iterator[Result]:
            executed += orders
            return execute_here(orders, job)

        report = run_export(Export((str(disk),), str(out)), execute)
        assert (report.taken_up > 0, len(executed) < COUNT) == (finished > 0, finished > 0)
        assert rows(out) == every_row(disk)
        assert_adds_up(report, out)


def test_a_file_is_resumed_only_if_all_its_logs_are_unchanged(disk: Path, tmp_path: Path) -> None:
    def fail(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        yield from execute_here(orders, job)
        raise KsegError("broken off")

    out = tmp_path / "out"
    with pytest.raises(KsegError, match="broken off"):
        run_export(Export((str(disk),), str(out)), fail)
    exports.write_log(disk / "orders-7", 0, RECORDS, value=b"other")
    report = run_export(Export((str(disk),), str(out)), execute_here)
    assert (report.taken_up, len(parquet_files(out))) == (0, 1)
    assert rows(out) == every_row(disk)
    assert not list(LocalDestination(str(out)).names("_kseg/jobs"))


def test_few_partitions_or_large_ones_have_their_own_files(tmp_path: Path) -> None:
    for partition in range(20):
        exports.write_log(tmp_path / "few" / f"orders-{partition}", 0, RECORDS)
    export(tmp_path / "few", tmp_path / "out")
    assert len(parquet_files(tmp_path / "out")) == 20
