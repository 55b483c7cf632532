"""The manifest commits: after any interruption each record is there once, and a second run writes new records."""

import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError, UsageError
from kseg.export.commit.manifest import read_manifest
from kseg.export.commit.order import Job, execute_here, execute_order
from kseg.export.destination import LocalDestination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import run_export
from tests.export import exports


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a partition of two segments: offsets 0 to 99, and 100 to 149."""
    exports.write_log(tmp_path / "orders-0", 0, 100)
    exports.write_log(tmp_path / "orders-0", 100, 50)
    return tmp_path / "orders-0"


def parquet_files(destination: Path) -> list[str]:
    """Return the files that a reader without the manifest sees."""
    return sorted(path.name for path in destination.rglob("*.parquet"))


def test_second_run_writes_nothing(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out")
    times = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("part-*.parquet")}
    assert exports.export([source], tmp_path / "out").new_files == 0
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("part-*.parquet")} == times


def test_second_run_takes_only_what_was_appended(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out")
    exports.write_log(source, 100, 80)
    exports.write_log(source, 180, 20)
    report = exports.export([source], tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders") == list(range(200))
    assert parquet_files(tmp_path / "out") == [f"part-orders-0-{0:020}.parquet", f"part-orders-0-{150:020}.parquet"]
    assert report.new_files == 1


def test_what_retention_deleted_stays_exported(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out", target_size=3000)
    for path in source.glob(f"{0:020}.*"):
        path.unlink()
    exports.export([source], tmp_path / "out", target_size=3000)
    assert exports.offsets(tmp_path / "out", "orders") == list(range(150))


def test_what_changed_is_exported_again(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out", target_size=3000)
    exports.write_log(source, 0, 100, value=b"other")
    exports.export([source], tmp_path / "out", target_size=3000)
    values = [value for _, _, table in exports.tables(tmp_path / "out") for value in table.column("value").to_pylist()]
    assert values == [b"other"] * 100 + [b"value"] * 50


def test_a_touched_file_is_recognised_by_its_crc(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out")
    for path in source.glob("*.log"):
        os.utime(path, (1, 1))
    assert exports.export([source], tmp_path / "out").new_files == 0


def test_failing_order_leaves_nothing_that_a_reader_sees(source: Path, tmp_path: Path) -> None:
    def fail(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        yield from list(execute_here(orders, job))[:-1]
        raise KsegError("killed")

    out = tmp_path / "out"
    with pytest.raises(KsegError, match="killed"):
        run_export(Export((str(source),), str(out)), fail)
    assert parquet_files(out) == []
    exports.export([source], out)
    assert exports.offsets(out, "orders") == list(range(150))
    assert list((out / "_kseg" / "attempts").iterdir()) == []


def test_attempts_that_nobody_took_are_not_in_the_export(source: Path, tmp_path: Path) -> None:
    def twice(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        place = LocalDestination(job.destination)
        for order in orders:
            execute_order(order, job, place)
            yield execute_order(order, job, place)

    run_export(Export((str(source),), str(tmp_path / "out")), twice)
    assert pq.read_table(tmp_path / "out").num_rows == 150


def test_commit_broken_off_before_files_were_moved_is_finished(source: Path, tmp_path: Path) -> None:
    class Broken(LocalDestination):
        def rename(self, name: str, target: str) -> None:
            raise OSError("power failed")

    out = tmp_path / "out"
    results: list[Result] = []

    def remember(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results.extend(execute_here(orders, job))
        return results

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kseg.export.planning.open_destination", Broken)
        with pytest.raises(OSError, match="power failed"):
            run_export(Export((str(source),), str(out)), remember)
    assert exports.export([source], out).new_files == 0
    assert pq.read_table(out).num_rows == 150


def test_two_exports_at_the_same_time_do_not_mix(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        exports.export([source], out)
        return results

    with pytest.raises(KsegError, match="same time"):
        run_export(Export((str(source),), str(out)), overtaken)
    exports.export([source], out)
    assert pq.read_table(out).num_rows == 150


def test_overwrite_replaces_the_export(source: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([source], out)
    with pytest.raises(UsageError, match="--overwrite"):
        exports.export([source], out, headers=False)
    exports.export([source], out, headers=False, overwrite=True)
    assert pq.read_table(out).num_rows == 150
    assert "headers" not in pq.read_table(out).column_names


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_directory_that_is_no_export_is_left_alone(source: Path, tmp_path: Path, overwrite: bool) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.parquet").write_bytes(b"mine")
    with pytest.raises(UsageError, match="isn't empty"):
        exports.export([source], tmp_path / "out", overwrite=overwrite)
    assert (tmp_path / "out" / "mine.parquet").read_bytes() == b"mine"


def test_manifest_says_what_went_into_which_file(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out")
    manifest = read_manifest(LocalDestination(str(tmp_path / "out")))
    assert manifest is not None
    (result,) = manifest.results
    assert [source_file.end for source_file in result.sources] == [
        path.stat().st_size for path in sorted(source.glob("*.log"))
    ]
    assert [(file.first_offset, file.last_offset, file.rows) for file in result.files] == [(0, 149, 150)]


def test_report_is_in_the_destination(source: Path, tmp_path: Path) -> None:
    exports.export([source], tmp_path / "out")
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_bytes())
    assert (report["isWhole"], report["partitions"][0]["recordsOut"]) == (True, 150)
