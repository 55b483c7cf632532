"""The finished work of an interrupted run is resumed by the next one: it isn't read again, and is there once."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from kseg.errors import KsegError
from kseg.export.commit.order import Job, execute_order
from kseg.export.commit.runs import MOST_ORDER_BYTES
from kseg.export.destination import LocalDestination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, ReadOptions
from kseg.text.export import report_lines
from tests.export import exports
from tests.export.test_accounts import assert_adds_up
from tests.loops import for_each, some

AS_USUAL = ReadOptions()
KILLED = """
import os, signal, sys
from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.run import run_export
from kseg.export.settings import FileOptions

def execute(orders, job):
    for number, each in enumerate(orders):
        if number == int(sys.argv[3]):
            os.kill(os.getpid(), signal.SIGKILL)
        yield from execute_here([each], job)

run_export(Export((sys.argv[1],), sys.argv[2], files=FileOptions(target_size=700), order_size=700), execute)
"""


@pytest.fixture
def disk(tmp_path: Path) -> Path:
    """Return two partitions of 800 records in two segments each: some forty orders."""
    for partition in range(2):
        for first in (0, 400):
            exports.write_log(tmp_path / "disk" / f"orders-{partition}", first, 400)
    return tmp_path / "disk"


class Executed:
    """An executor that records its orders; `fails_at`: the order at which it fails."""

    def __init__(self, fails_at: int | None = None) -> None:
        self.orders: list[WorkOrder] = []
        self.results: list[Result] = []
        self._fails_at = fails_at

    def __call__(self, orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        for order in orders:
            if len(self.orders) == self._fails_at:
                raise KsegError("broken off")
            self.orders.append(order)
            self.results.append(execute_order(order, job, LocalDestination(job.destination)))
            yield self.results[-1]

    @property
    def size(self) -> int:
        """Bytes that the orders were to read."""
        return sum(order.size for order in self.orders)

    @property
    def records(self) -> int:
        """The number of records read."""
        return sum(result.tally.read for result in self.results)


RECORDS = 1600
INDEX_INTERVAL = 1300
"""Bytes that an order reads in addition at its start or end, since only the index leads there."""


def export(disk: Path, out: Path, executed: Executed, *, read: ReadOptions = AS_USUAL) -> Report:
    return run_export(
        Export((str(disk),), str(out), read=read, files=FileOptions(target_size=700), order_size=700), executed
    )


def assert_whole(out: Path) -> None:
    for partition in range(2):
        assert exports.offsets(out, "orders", partition) == list(range(800))
    beside = {path.name for path in (out / "_kseg").rglob("*") if path.is_file()}
    assert {name for name in beside if not name.startswith("manifest-")} == {"report.json", "damages.csv"}


def read_before_gaps(finished: int) -> int:
    """Return the most bytes read before the gaps between finished orders: an index doesn't have each batch."""
    return (finished + 2) * INDEX_INTERVAL


def broken_off(disk: Path, out: Path, after: int = 8) -> Executed:
    executed = Executed(after)
    with pytest.raises(KsegError, match="broken off"):
        export(disk, out, executed)
    return executed


@pytest.fixture
def whole(disk: Path, tmp_path: Path) -> Executed:
    """Return the orders of an uninterrupted run."""
    executed = Executed()
    export(disk, tmp_path / "whole", executed)
    return executed


def test_what_was_finished_is_not_read_again(disk: Path, whole: Executed, tmp_path: Path) -> None:
    first, second, out = broken_off(disk, tmp_path / "out"), Executed(), tmp_path / "out"
    report = export(disk, out, second)
    assert_adds_up(report, out)
    assert_whole(out)
    assert first.records + second.records == RECORDS
    assert 0 < second.size < whole.size - first.size + read_before_gaps(len(first.orders))
    assert report.taken_up == sum(len(result.files) for result in first.results)
    assert f"{report.taken_up} of the new files come from interrupted runs" in list(report_lines(report))
    assert json.loads((out / "_kseg" / "report.json").read_bytes())["takenUp"] == report.taken_up
    assert export(disk, out, Executed()).new_files == 0


def test_a_run_that_takes_up_may_be_broken_off_too(disk: Path, tmp_path: Path) -> None:
    first, out = broken_off(disk, tmp_path / "out", 5), tmp_path / "out"
    second = broken_off(disk, out, 5)
    third = Executed()
    report = export(disk, out, third)
    assert_adds_up(report, out)
    assert_whole(out)
    assert min(first.records, second.records, third.records) > 0
    assert first.records + second.records + third.records == RECORDS


@for_each("after", some([1, 5, 11, 18, 29, 24], 2), ids="after {} orders".format)
def test_what_a_killed_run_had_finished_is_taken_up(after: int, disk: Path, whole: Executed, tmp_path: Path) -> None:
    out = tmp_path / "out"
    killed = subprocess.run([sys.executable, "-c", KILLED, str(disk), str(out), str(after)], check=False)
    assert killed.returncode == -signal.SIGKILL
    again = Executed()
    report = export(disk, out, again)
    assert_adds_up(report, out)
    assert_whole(out)
    finished = sum(result.tally.read for result in whole.results[:after])
    assert again.records == RECORDS - finished
    assert report.taken_up == sum(len(result.files) for result in whole.results[:after])
    assert again.size < whole.size - sum(order.size for order in whole.orders[:after]) + read_before_gaps(after)


def test_what_grew_since_is_taken_up_and_read_on(disk: Path, tmp_path: Path) -> None:
    broken_off(disk, tmp_path / "out")
    exports.write_log(disk / "orders-0", 400, 450)
    report = export(disk, tmp_path / "out", Executed())
    assert_adds_up(report, tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders", 0) == list(range(850))
    assert report.taken_up > 0


def _other_options(disk: Path, out: Path) -> ReadOptions:
    return ReadOptions(headers=False)


def _changed_source(disk: Path, out: Path) -> ReadOptions:
    for partition in range(2):
        for first in (0, 400):
            exports.write_log(disk / f"orders-{partition}", first, 400, value=b"other")
    return ReadOptions()


def _cut_files(disk: Path, out: Path) -> ReadOptions:
    for path in (out / "_kseg" / "attempts").iterdir():
        os.truncate(path, path.stat().st_size - 1)
    return ReadOptions()


def _cut_results(disk: Path, out: Path) -> ReadOptions:
    for path in (out / "_kseg" / "jobs").rglob("done-*"):
        os.truncate(path, path.stat().st_size - 3)
    return ReadOptions()


def _larger_results(disk: Path, out: Path) -> ReadOptions:
    """Enlarge one order's result beyond the limit, and remove the others."""
    first, *others = (out / "_kseg" / "jobs").rglob("done-*")
    for path in others:
        path.unlink()
    first.write_bytes(first.read_bytes().ljust(MOST_ORDER_BYTES + 1))
    return ReadOptions()


def _results_elsewhere(disk: Path, out: Path) -> ReadOptions:
    """Change the results to name their files by a path that leaves the destination and returns."""
    for path in (out / "_kseg" / "jobs").rglob("done-*"):
        path.write_text(path.read_text().replace('"_kseg/attempts/', '"../out/_kseg/attempts/'))
        assert "../out/" in path.read_text()
    return ReadOptions()


CHANGES = [_other_options, _changed_source, _cut_files, _cut_results, _larger_results, _results_elsewhere]


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_not_the_same_any_more_is_not_taken_up(change: object, disk: Path, tmp_path: Path) -> None:
    broken_off(disk, tmp_path / "out")
    read = change(disk, tmp_path / "out")  # type: ignore[operator]
    report = export(disk, tmp_path / "out", Executed(), read=read)
    assert_adds_up(report, tmp_path / "out")
    assert_whole(tmp_path / "out")
    assert report.taken_up == 0


def test_a_run_that_lost_leaves_nothing_to_take_up(disk: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(Executed()(orders, job))
        export(disk, out, Executed())
        return results

    with pytest.raises(KsegError, match="same time"):
        run_export(Export((str(disk),), str(out), files=FileOptions(target_size=700), order_size=700), overtaken)
    assert_whole(out)
