"""Logs that change while they are read: no crash, no duplicate row, and missed offsets are reported."""

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from pathlib import Path
from random import Random

import pytest

from kseg.errors import OpenError
from kseg.export.commit.manifest import Manifest, manifest_name
from kseg.export.commit.order import Job, execute_order
from kseg.export.destination import LocalDestination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.report import Report
from kseg.export.results import Result
from kseg.export.run import run_export
from kseg.export.settings import FileOptions, Isolation, ReadOptions, Tombstones
from tests.export.changing_log import ChangingLog, Row
from tests.export.stepped import Exporter, Store
from tests.export.test_cleaned import rows
from tests.loops import for_each, some


def changing_log(tmp_path: Path, seed: int = 7) -> ChangingLog:
    """Return a topic of three segments, the last one active."""
    log = ChangingLog(tmp_path / "disk" / "orders-0", Random(seed))
    for _ in range(3):
        log.append(20)
        log.roll()
    log.append(20)
    return log


def export(tmp_path: Path, change: Callable[[], object], **read: object) -> Report:
    """Export while the log changes before each order."""

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        for order in sorted(orders, key=lambda order: order.number):
            change()
            yield execute_order(order, job, LocalDestination(job.destination))

    wanted = Export(
        (str(tmp_path / "disk"),),
        str(tmp_path / "out"),
        files=FileOptions(target_size=700),
        order_size=700,
        read=ReadOptions(**read),
    )
    return run_export(wanted, execute)


def at_order(number: int, step: Callable[[], object]) -> Callable[[], None]:
    """Return a change before the order of a number, counted from 0."""
    count = iter(range(10**6))
    return lambda: step() if next(count) == number else None


@pytest.mark.parametrize("number", range(6))
def test_a_log_that_is_cleaned_while_it_is_read(number: int, tmp_path: Path) -> None:
    log = changing_log(tmp_path)
    before = log.rows()
    report = export(tmp_path, at_order(number, log.clean))
    (part,) = report.partitions
    assert log.rows() <= set(rows(tmp_path / "out")) <= before | log.rows()
    assert (part.unexplained, part.missed, part.lost, part.disordered, report.status) == (0, 0, 0, 0, 0)
    export(tmp_path, lambda: None)
    assert log.rows() <= set(rows(tmp_path / "out"))


@for_each("seed, number", some(product(range(6), range(3)), 4))
def test_what_earlier_runs_wrote_stays_where_a_log_is_cleaned_while_it_is_read(
    seed: int, number: int, tmp_path: Path
) -> None:
    log = ChangingLog(tmp_path / "disk" / "orders-0", Random(seed), keys=90)
    log.append(20)
    before = set[Row]()
    for _ in range(3):
        before |= log.rows()
        export(tmp_path, lambda: None)
        log.append(20)
        log.clean()
    before |= log.rows()
    export(tmp_path, lambda: None)
    log.append(20)
    export(tmp_path, at_order(number, log.clean))
    assert before <= set(rows(tmp_path / "out"))


@pytest.mark.parametrize("number", range(6))
def test_what_retention_deletes_while_a_log_is_read_is_missed(number: int, tmp_path: Path) -> None:
    log = changing_log(tmp_path)
    before = {row[1] for row in log.rows()}
    first = log.bases()[-1]

    def retain() -> None:
        for path in log.path.glob("*"):
            if path.stem.isdigit() and int(path.stem) < first:
                path.rename(path.with_name(f"{path.name}.deleted"))

    report = export(tmp_path, at_order(number, retain))
    (part,) = report.partitions
    written = {row[1] for row in rows(tmp_path / "out")}
    told = {offset for start, end in part.missed_offsets for offset in range(start, end)}
    assert written | told == before
    assert not written & told
    assert (part.unexplained, part.lost, bool(told)) == (0, 0, report.status == 1)
    assert told or number


def test_a_topic_that_is_deleted_while_it_is_read(tmp_path: Path) -> None:
    log = changing_log(tmp_path)
    last = log.bases()[-1]
    other = ChangingLog(tmp_path / "disk" / "other-0", Random(8))
    other.append(5)
    report = export(tmp_path, at_order(2, lambda: log.path.rename(log.path.with_name(f"orders-0.{0:032x}-delete"))))
    part = next(part for part in report.partitions if part.topic == "orders")
    written = {row[1] for row in rows(tmp_path / "out") if row[0] == log.topic_id}
    told = {offset for start, end in part.missed_offsets for offset in range(start, end)}
    assert written
    assert written | told == set(range(last))
    assert "was removed while kseg was reading it" in part.remarks[0]
    assert (part.unexplained, report.status) == (0, 1)


def test_a_topic_that_is_recreated_while_it_is_read(tmp_path: Path) -> None:
    log = changing_log(tmp_path)

    def make() -> None:
        log.make()
        log.append(10)

    report = export(tmp_path, at_order(2, make))
    earlier, later = report.partitions
    assert log.rows() <= set(rows(tmp_path / "out"))
    assert (later.topic_id, later.records_out, later.missed) == (log.topic_id, len(log.rows()), 0)
    assert earlier.records_out > 0
    assert earlier.missed > 0
    assert earlier.unexplained == later.unexplained == 0


@for_each(
    "seed, read",
    some(product(range(6), [{}, {"isolation": Isolation.READ_COMMITTED}, {"latest_per_key": Tombstones.KEEP}]), 2),
)
def test_logs_that_change_at_random_while_they_are_read(seed: int, read: dict[str, object], tmp_path: Path) -> None:
    log, random = changing_log(tmp_path, seed), Random(seed)
    there = set(log.rows())

    def change() -> None:
        if random.random() < 0.3:
            step = random.choice(("append", "roll", "clean", "retain", "make"))
            log.append(random.randint(1, 9)) if step == "append" else getattr(log, step)()
            there.update(log.rows())

    for _ in range(4):
        report = export(tmp_path, change, **read)
        for part in report.partitions:
            assert (part.unexplained, part.lost, part.disordered, part.passed_over) == (0, 0, 0, 0)
        assert set(rows(tmp_path / "out")) <= there
    report = export(tmp_path, lambda: None, **read)
    if not read.get("latest_per_key"):
        assert log.rows() <= set(rows(tmp_path / "out"))
    assert sum(part.records_out for part in report.partitions) == len(rows(tmp_path / "out"))


@for_each("steps, is_first", list(product(range(1, 16), [True, False])))
def test_what_another_run_commits_stays_though_the_log_is_cleaned_since(
    steps: int, is_first: bool, tmp_path: Path
) -> None:
    log = ChangingLog(tmp_path / "disk" / "orders-0", Random(7))
    log.append(20)
    store = Store(renames=True, claims_safely=True)
    wanted = Export((str(tmp_path / "disk"),), "memory")
    if not is_first:
        assert Exporter(store, wanted).finish() == "done"
        log.append(10)
    late = Exporter(store, wanted)
    late.go(steps)
    log.append(10)
    before = log.rows()
    assert Exporter(store, wanted).finish() == "done"
    log.clean()
    assert late.finish() == "done" or "another export" in (late.outcome or "")
    log.append(1)
    assert Exporter(store, wanted).finish() == "done"
    name = manifest_name(len(store.claims))
    manifest = Manifest.from_bytes(store.files[name], name)
    assert isinstance(manifest, Manifest)
    written = [row for result in manifest.results for file in result.files for row in store.rows(file)]
    assert len(set(written)) == len(written)
    assert {(offset, value) for _, offset, value in before} <= set(written)


def test_a_log_that_only_its_readers_lack_ends_the_run(tmp_path: Path) -> None:
    log = changing_log(tmp_path)
    hidden = tmp_path / "hidden"

    def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
        log.path.rename(hidden)
        try:
            yield from [execute_order(order, job, LocalDestination(job.destination)) for order in orders]
        finally:
            hidden.rename(log.path)

    with pytest.raises(OpenError, match="exists here, but not on the machine that reads it"):
        run_export(Export((str(tmp_path / "disk"),), str(tmp_path / "out")), execute)
