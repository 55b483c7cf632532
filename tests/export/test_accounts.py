"""Accounts that never lie: each offset is a row, a gap, or reported as lost, missed, withheld or unasked."""

import json
import os
import shutil
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

import kseg
from kseg.export.commit.formats import FORMATS
from kseg.export.report import PartitionReport, Report
from kseg.export.settings import Isolation, OffsetRange, Tombstones
from kseg.log.selection import PartitionChoice
from kseg.text.export import report_lines
from tests.commands.test_remote_tier import write_metadata
from tests.export import exports
from tests.export.conftest import Exported
from tests.log_files import COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.transactional import snapshot

Key = tuple[str, int | None]


def assert_adds_up(report: Report, destination: Path) -> None:
    """Assert that each offset is counted once, and is in at most one row."""
    written = offsets_of_all(destination)
    for part in report.partitions:
        span = 0 if part.from_offset is None or part.to_offset is None else part.to_offset - part.from_offset
        assert span == part.records_in + part.gaps + part.lost + part.missed + part.withheld + part.unasked
        left_out = part.control_records + part.aborted + part.superseded + part.unselected
        assert part.records_in == part.records_out + left_out
        assert part.unexplained == 0
        assert min(part.gaps, part.lost, part.missed, part.withheld, part.unasked, part.passed_over) >= 0
        found = written.get((part.topic, part.partition), [])
        assert len(set(found)) == len(found) == part.records_out


def counts(part: PartitionReport) -> PartitionReport:
    """Return accounts without their origins."""
    costs = sorted((Path(loss.segment).name, loss.position, loss.kind) for loss in part.damages)
    return replace(part, bytes=0, file_count=0, seconds=0, holes=[], copies=[], damages=[], remarks=[str(costs)])


def rows_of_all(destination: Path) -> dict[Key, list[tuple[object, ...]]]:
    """Return the rows of each partition, in a fixed order."""
    found: dict[Key, list[tuple[object, ...]]] = defaultdict(list)
    for topic, partition, table in exports.tables(destination):
        found[topic, partition] += exports.rows_of(table)
    return {key: sorted(rows, key=str) for key, rows in found.items()}


def offsets_of_all(destination: Path) -> dict[Key, list[int]]:
    found: dict[Key, list[int]] = defaultdict(list)
    for topic, partition, table in exports.tables(destination):
        found[topic, partition] += table["offset"].to_pylist()
    return {key: sorted(offsets) for key, offsets in found.items()}


@pytest.mark.parametrize("kind", ["damaged_logs", "damaged_logs_in_small_orders", "damaged_logs_without_control"])
def test_accounts_of_damaged_logs_add_up(kind: str, request: pytest.FixtureRequest) -> None:
    report, out = request.getfixturevalue(kind)
    assert_adds_up(report, out)
    assert [part for part in report.partitions if part.missed or part.withheld or part.unasked] == []


def test_accounts_of_damaged_logs_are_the_same_when_they_are_cut_into_orders(
    damaged_logs: Exported, damaged_logs_in_small_orders: Exported
) -> None:
    cut, whole = damaged_logs_in_small_orders, damaged_logs
    assert [*map(counts, cut.report.partitions)] == [*map(counts, whole.report.partitions)]
    assert rows_of_all(cut.out) == rows_of_all(whole.out)


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_ranges_of_damaged_logs_are_what_the_whole_logs_have_there(
    size: int, damaged_logs: Exported, damaged_disk: Path, tmp_path: Path
) -> None:
    every = offsets_of_all(damaged_logs.out)
    bounds = {key: (found[len(found) // 3], found[2 * len(found) // 3]) for key, found in every.items()}
    wanted = {key: OffsetRange(*pair) for key, pair in bounds.items()}
    report = exports.export([damaged_disk], tmp_path / "out", control=True, offsets_of=wanted, target_size=size)
    assert_adds_up(report, tmp_path / "out")
    inside = {
        key: [offset for offset in found if bounds[key][0] <= offset < bounds[key][1]] for key, found in every.items()
    }
    assert offsets_of_all(tmp_path / "out") == {key: found for key, found in inside.items() if found}


def test_two_runs_over_damaged_logs_that_grow_make_what_one_does(
    damaged_logs: Exported, damaged_disk: Path, tmp_path: Path
) -> None:
    logs = tmp_path / "damaged"
    shutil.copytree(damaged_disk, logs)
    cut = sorted(logs.rglob("*.log"))
    assert len(cut) > 150
    for log in cut:
        cut_in_the_middle(log)
    first = exports.export([logs], tmp_path / "out", control=True)
    assert_adds_up(first, tmp_path / "out")
    shutil.copytree(damaged_disk, logs, dirs_exist_ok=True)
    second = exports.export([logs], tmp_path / "out", control=True)
    assert_adds_up(second, tmp_path / "out")
    assert rows_of_all(tmp_path / "out") == rows_of_all(damaged_logs.out)


def cut_in_the_middle(log: Path) -> None:
    """Keep the first half of the batches of a log."""
    with kseg.open_segment(log) as segment:
        starts = [item.position for item in segment.scan()] or [0]
    os.truncate(log, starts[len(starts) // 2])


def test_accounts_of_damaged_copies_add_up(damaged_logs: Exported, damaged_disk: Path, tmp_path: Path) -> None:
    for disk in ("disk1", "disk2"):
        shutil.copytree(damaged_disk, tmp_path / disk)
    for log in (tmp_path / "disk2").rglob("*.log"):
        os.truncate(log, min(log.stat().st_size, 100))
    report = exports.export([tmp_path / "disk1", tmp_path / "disk2"], tmp_path / "out", control=True)
    assert_adds_up(report, tmp_path / "out")
    both, one = rows_of_all(tmp_path / "out"), rows_of_all(damaged_logs.out)
    assert all(set(rows) <= set(both[key]) for key, rows in one.items())


def test_accounts_of_the_latest_records_of_damaged_logs_add_up(damaged_disk: Path, tmp_path: Path) -> None:
    report = exports.export([damaged_disk], tmp_path / "out", latest_per_key=Tombstones.KEEP)
    assert_adds_up(report, tmp_path / "out")


# --- records with the same offset -------------------------------------------------------------------------------------


def batch(base: int, count: int = 5, epoch: int = 0, value: bytes = b"value") -> NewBatch:
    records = [NewRecord(b"key-%d" % (base + place), value) for place in range(count)]
    return NewBatch(records, base, partition_leader_epoch=epoch)


def values(destination: Path) -> dict[int, bytes]:
    found = {}
    for _, _, table in exports.tables(destination):
        for offset, value in zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True):
            assert offset not in found
            found[offset] = value
    return found


@pytest.mark.parametrize("size", [300, 1 << 20])
@pytest.mark.parametrize(
    ("epochs", "values_in_order"), [((1, 1), b"a"), ((2, 1), b"a"), ((1, 2), b"b")], ids=["equal", "first", "second"]
)
def test_of_two_records_with_an_offset_the_higher_epochs_is_taken_then_the_first(
    epochs: tuple[int, int], values_in_order: bytes, size: int, tmp_path: Path
) -> None:
    log = tmp_path / "disk" / "orders-0"
    first = [batch(base, epoch=epochs[0], value=b"a") for base in range(0, 50, 5)]
    again = [batch(base, epoch=epochs[1], value=b"b") for base in range(30, 80, 5)]
    exports.write_indexes(write_segment(log, [*first, *again]))
    report = exports.export([tmp_path / "disk"], tmp_path / "out", target_size=size)
    assert_adds_up(report, tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.records_in, part.passed_over, part.gaps, report.status) == (80, 20, 0, 1)
    lines = list(report_lines(report))
    assert "orders-0: 20 records follow higher offsets: the log is out of order" in lines
    assert "orders-0: kseg skipped 20 records: other records have the same offsets" in lines
    expected = {offset: b"a" if offset < 30 else values_in_order if offset < 50 else b"b" for offset in range(80)}
    assert values(tmp_path / "out") == expected


@pytest.mark.parametrize("size", [300, 1 << 20])
def test_segments_that_overlap_give_each_offset_once(size: int, tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    exports.write_indexes(write_segment(log, [batch(base, value=b"a") for base in range(0, 50, 5)]))
    exports.write_indexes(write_segment(log, [batch(base, value=b"b") for base in range(40, 80, 5)], 40))
    report = exports.export([tmp_path / "disk"], tmp_path / "out", target_size=size)
    assert_adds_up(report, tmp_path / "out")
    assert exports.of_partition(report, "orders").passed_over == 10
    assert values(tmp_path / "out") == {offset: b"a" if offset < 50 else b"b" for offset in range(80)}


def test_a_batch_that_comes_again_later_is_found_by_the_run_that_meets_it(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    before = [batch(base) for base in range(0, 50, 5)]
    exports.write_indexes(write_segment(log, before))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    exports.write_indexes(write_segment(log, [*before, batch(20), *(batch(base) for base in range(50, 80, 5))]))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.records_in, part.passed_over) == (80, 5)


@pytest.mark.parametrize("is_rolled", [False, True], ids=["same segment", "new segment"])
def test_what_follows_an_offset_that_is_too_high_is_not_missed_by_the_next_run(is_rolled: bool, tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    before = [*(batch(base) for base in range(0, 50, 5)), batch(1_000_000)]
    after = [batch(base) for base in range(55, 80, 5)]
    exports.write_indexes(write_segment(log, before))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    if is_rolled:
        exports.write_indexes(write_segment(log, after, 55))
    else:
        exports.write_indexes(write_segment(log, [*before, *after]))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert sorted(values(tmp_path / "out")) == [*range(50), *range(55, 80), *range(1_000_000, 1_000_005)]
    assert report.status == 1


def test_a_log_out_of_order_is_not_read_again_if_it_has_not_changed(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    exports.write_indexes(write_segment(log, [batch(0), batch(1_000_000), batch(10)]))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    before = sorted(tmp_path.joinpath("out", "_kseg").glob("manifest-*"))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert exports.of_partition(report, "orders").holes == [(5, 10), (15, 1_000_000)]
    assert sorted(tmp_path.joinpath("out", "_kseg").glob("manifest-*")) == before


def test_an_offset_that_is_too_high_keeps_no_copys_records_out(tmp_path: Path) -> None:
    sound = [batch(base, value=b"sound") for base in range(0, 100, 5)]
    wrong = [*sound[:5], batch(1_000_000), *sound[6:15]]
    for disk, batches, epoch in (("disk1", wrong, 7), ("disk2", sound, 3)):
        log = tmp_path / "disk" / disk / "orders-0"
        exports.write_indexes(write_segment(log, batches))
        (log / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert sorted(values(tmp_path / "out")) == [*range(100), *range(1_000_000, 1_000_005)]
    before = sorted((tmp_path / "out" / "_kseg").glob("manifest-*"))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    assert sorted((tmp_path / "out" / "_kseg").glob("manifest-*")) == before


def test_low_offsets_after_a_high_one_are_read_though_retention_took_the_log_s_start(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    exports.write_indexes(write_segment(log, [batch(base) for base in range(0, 50, 5)]))
    wrong = [batch(base) for base in (50, 1_000_000, 60)]
    exports.write_indexes(write_segment(log, wrong, 50))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    for path in log.glob(f"{0:020}.*"):
        path.unlink()
    exports.write_indexes(write_segment(log, [*wrong, batch(65), batch(70)], 50))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert sorted(values(tmp_path / "out")) == [*range(55), *range(60, 75), *range(1_000_000, 1_000_005)]


def test_a_log_out_of_order_that_grows_in_order_is_not_read_again(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    before = [batch(0), batch(10), batch(5), batch(15)]
    exports.write_indexes(write_segment(log, before))
    exports.export([tmp_path / "disk"], tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").rglob("*.parquet")}
    exports.write_indexes(write_segment(log, [*before, batch(20)]))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert names < {path.name for path in (tmp_path / "out").rglob("*.parquet")}
    assert report.new_files == 1


def test_the_latest_record_of_a_key_is_that_of_the_highest_offset(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    late = NewBatch([NewRecord(b"key", b"new")], 5)
    early = NewBatch([NewRecord(b"key", b"old")], 4)
    write_segment(log, [batch(0, 4), late, early, NewBatch([NewRecord(b"key", b"again")], 5)])
    report = exports.export([tmp_path / "disk"], tmp_path / "out", latest_per_key=Tombstones.KEEP)
    assert_adds_up(report, tmp_path / "out")
    assert values(tmp_path / "out")[5] == b"new"
    assert exports.of_partition(report, "orders").superseded == 1


# --- earlier runs -----------------------------------------------------------------------------------------------------


def with_segments(log: Path, *bases: int, count: int = 50) -> None:
    shutil.rmtree(log, ignore_errors=True)
    for base in bases:
        exports.write_log(log, base, count)


def test_what_retention_took_between_two_runs_is_missed(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    with_segments(log, 0, 50)
    exports.export([tmp_path / "disk"], tmp_path / "out")
    with_segments(log, 200, 250)
    for new in (100, 0):  # the account covers the complete export, the status the run
        report = exports.export([tmp_path / "disk"], tmp_path / "out")
        assert_adds_up(report, tmp_path / "out")
        part = exports.of_partition(report, "orders")
        assert (part.missed, part.missed_offsets, part.gaps, part.lost) == (100, [(100, 200)], 0, 0)
        assert (report.is_whole, part.new_missed, report.status) == (False, new, int(new > 0))
        assert ("before this run: 0 offsets lost, 100 missed" in report_lines(report)) == (not new)
    with_segments(log, 400)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.missed, part.new_missed, report.status) == (200, 100, 1)
    assert "before this run: 0 offsets lost, 100 missed" in report_lines(report)


@pytest.mark.parametrize("form", FORMATS)
def test_damage_ends_the_run_that_finds_it_with_1_and_no_later_one(form: str, restored: Path, tmp_path: Path) -> None:
    disk, out = tmp_path / "disk", tmp_path / "out"
    shutil.copytree(restored / "damaged" / "210-wiped-batch", disk)
    first = exports.export([disk], out, table_format=form)
    again = exports.export([disk], out, table_format=form)
    assert (first.status, again.status) == (1, 0)
    lost = [part.lost for part in first.partitions]
    assert sum(lost) == 1
    assert [part.lost for part in again.partitions] == [part.new_lost for part in first.partitions] == lost
    assert [part.new_lost for part in again.partitions] == [0] * len(lost)
    assert "before this run: 1 offset lost, 0 missed" in report_lines(again)
    summary = json.loads((out / "_kseg" / "report.json").read_bytes())
    assert {part["newLost"] for part in summary["partitions"]} == {0}
    exports.write_log(disk / "new-0", 0, 50)
    assert exports.export([disk], out, table_format=form).status == 0
    again = exports.export([disk], out, table_format=form, overwrite=True)
    assert (again.status, sum(part.new_lost for part in again.partitions)) == (1, sum(lost))


def test_disorder_ends_the_run_that_finds_it_with_1_and_no_later_one(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    exports.write_indexes(write_segment(log, [batch(0), batch(10), batch(5)]))
    assert exports.export([tmp_path / "disk"], tmp_path / "out").status == 1
    again = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert again.status == 0
    assert "before this run: the problems in the lines above, except for new ones" in report_lines(again)
    exports.write_indexes(write_segment(log, [batch(0), batch(10), batch(5), batch(15), batch(7)]))
    assert exports.export([tmp_path / "disk"], tmp_path / "out").status == 1


@pytest.mark.parametrize("content", [b"", bytes(100)], ids=["empty", "zeros"])
def test_what_retention_took_is_missed_if_nothing_follows_too(content: bytes, tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    with_segments(log, 0)
    exports.export([tmp_path / "disk"], tmp_path / "out")
    shutil.rmtree(log)
    write_segment(log, [], 70).write_bytes(content)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert exports.of_partition(report, "orders").missed_offsets == [(50, 70)]


def test_offsets_that_were_exported_before_retention_took_them_are_not_missed(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    with_segments(log, 0, 50)
    exports.export([tmp_path / "disk"], tmp_path / "out")
    with_segments(log, 100, 150)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert (exports.of_partition(report, "orders").missed, report.is_whole, report.status) == (0, True, 0)


def test_a_first_run_misses_nothing(tmp_path: Path) -> None:
    with_segments(tmp_path / "disk" / "orders-0", 200)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.from_offset, part.missed, report.status) == (200, 0, 0)


def test_what_one_copy_no_longer_has_comes_from_another(tmp_path: Path) -> None:
    with_segments(tmp_path / "disk1" / "orders-0", 0)
    exports.export([tmp_path / "disk1"], tmp_path / "out")
    with_segments(tmp_path / "disk1" / "orders-0", 150)
    (tmp_path / "disk1" / "orders-0" / "leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    with_segments(tmp_path / "disk2" / "orders-0", 0, 50, 150)
    report = exports.export([tmp_path / "disk1", tmp_path / "disk2"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.missed, part.missed_offsets, part.recovered) == (50, [(100, 150)], 50)


def test_offsets_between_two_selections_are_unasked(tmp_path: Path) -> None:
    with_segments(tmp_path / "disk" / "orders-0", 0, 50)
    exports.export([tmp_path / "disk"], tmp_path / "out", offsets=OffsetRange(0, 20))
    report = exports.export([tmp_path / "disk"], tmp_path / "out", offsets=OffsetRange(70, 90))
    assert_adds_up(report, tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.unasked, part.gaps, part.missed) == (50, 0, 0)


# --- withheld by read_committed ---------------------------------------------------------------------------------------

OPENED = 1_700_000_000_000


def transactional(base: int, count: int = 5, producer: int = 9) -> NewBatch:
    records = [NewRecord(b"key", b"value", OPENED + base) for _ in range(count)]
    return NewBatch(records, base, producer, 0, is_transactional=True)


def export_committed(tmp_path: Path, **options: object) -> Report:
    report = exports.export([tmp_path / "disk"], tmp_path / "out", isolation=Isolation.READ_COMMITTED, **options)
    assert_adds_up(report, tmp_path / "out")
    return report


@pytest.mark.parametrize("size", [300, 1 << 20])
@pytest.mark.parametrize("plain", [0, 40])
def test_what_an_open_transaction_withholds_is_told(plain: int, size: int, tmp_path: Path) -> None:
    batches = [batch(base) for base in range(0, plain, 5)]
    after = [batch(base) for base in range(plain + 5, plain + 95, 5)]
    exports.write_indexes(write_segment(tmp_path / "disk" / "orders-0", [*batches, transactional(plain), *after]))
    report = export_committed(tmp_path, target_size=size)
    part = exports.of_partition(report, "orders")
    assert (part.records_in, part.open_from, part.withheld, part.withheld_records) == (plain, plain, 95, 95)
    assert (part.from_offset, part.to_offset) == (0, plain + 95)
    since = f"2023-11-14T22:13:20.{plain:03}Z"
    assert (part.open_producer_id, part.open_since) == (9, since)
    assert (report.is_whole, report.status) == (False, 0)
    line = f"orders-0: 95 offsets from {plain} on, 95 records, held back: a transaction of producer 9 is open since"
    assert f"{line} {since}" in list(report_lines(report))


def test_what_is_withheld_is_of_the_offsets_wanted(tmp_path: Path) -> None:
    batches = [batch(0), transactional(5), *(batch(base) for base in range(10, 50, 5))]
    exports.write_indexes(write_segment(tmp_path / "disk" / "orders-0", batches))
    part = exports.of_partition(export_committed(tmp_path, offsets=OffsetRange(0, 20)), "orders")
    assert (part.from_offset, part.to_offset, part.withheld, part.withheld_records) == (0, 20, 15, 15)


def test_what_one_copy_withholds_and_another_does_not_is_exported(tmp_path: Path) -> None:
    opened = [batch(0), transactional(5), batch(10)]
    ended = [*opened, marker(COMMIT, transactional(10))]
    for disk, batches, epoch in (("disk1", opened, 7), ("disk2", ended, 3)):
        log = tmp_path / "disk" / disk / "orders-0"
        exports.write_indexes(write_segment(log, batches))
        (log / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n")
    part = exports.of_partition(export_committed(tmp_path), "orders")
    assert (part.records_in, part.withheld, part.open_from) == (16, 0, None)


def test_what_was_withheld_is_told_of_this_run_only(tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    opened = [batch(0), transactional(5), batch(10)]
    exports.write_indexes(write_segment(log, opened))
    export_committed(tmp_path)
    again = exports.of_partition(export_committed(tmp_path), "orders")
    assert (again.open_from, again.withheld) == (5, 10)
    ended = [*opened, marker(COMMIT, transactional(10))]
    exports.write_indexes(write_segment(log, ended))
    report = export_committed(tmp_path)
    part = exports.of_partition(report, "orders")
    assert (part.open_from, part.withheld, part.records_in, part.control_records) == (None, 0, 16, 1)
    assert (report.is_whole, report.status) == (True, 0)


def test_an_old_run_s_open_transaction_is_not_told_by_one_that_reads_something_else(tmp_path: Path) -> None:
    exports.write_indexes(write_segment(tmp_path / "disk" / "orders-0", [batch(0), transactional(5)]))
    exports.write_indexes(write_segment(tmp_path / "disk" / "other-0", [batch(0)]))
    assert exports.of_partition(export_committed(tmp_path), "orders").open_from == 5
    part = exports.of_partition(export_committed(tmp_path, partitions=PartitionChoice(("other",))), "orders")
    assert (part.open_from, part.withheld, part.records_in) == (None, 0, 5)


@pytest.mark.parametrize("has_run_before", [True, False])
def test_offsets_that_went_while_they_were_withheld_are_counted_once(has_run_before: bool, tmp_path: Path) -> None:
    log = tmp_path / "disk" / "orders-0"
    exports.write_indexes(write_segment(log, [batch(0), transactional(5), batch(10)]))
    if has_run_before:
        export_committed(tmp_path)
    shutil.rmtree(log)
    exports.write_indexes(write_segment(log, [batch(20), transactional(25), batch(30)], 20))
    for end in (20, 35):
        (log / f"{end:020}.snapshot").write_bytes(snapshot((9, 0, 4, 9, 4, OPENED, -1, 5)))
    part = exports.of_partition(export_committed(tmp_path), "orders")
    assert (part.open_from, part.withheld, part.withheld_records) == (20, 15, 15)
    assert part.missed_offsets == ([(5, 20)] if has_run_before else [])


# --- the remote tier --------------------------------------------------------------------------------------------------


def tiered_partition(tmp_path: Path) -> Path:
    """Return a partition whose offsets 100 to 200 are only in the remote tier."""
    log = tmp_path / "disk" / "orders-0"
    exports.write_log(log, 200, 50)
    (log / "leader-epoch-checkpoint").write_text("0\n1\n0 100\n")
    (log.parent / "log-start-offset-checkpoint").write_text("0\n1\norders 0 100\n")
    return log


def test_offsets_in_the_remote_tier_alone_are_told(tmp_path: Path) -> None:
    tiered_partition(tmp_path)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    part = exports.of_partition(report, "orders")
    assert (part.remote, part.from_offset, part.records_in, part.missed) == ([(100, 200)], 200, 50, 0)
    assert (report.is_whole, report.status) == (False, 0)
    assert "orders-0: offsets 100 to 199 are only in the remote tier: not exported" in list(report_lines(report))


def test_metadata_tell_of_a_tier_that_no_checkpoint_tells_of(tmp_path: Path) -> None:
    log = tiered_partition(tmp_path)
    (log.parent / "log-start-offset-checkpoint").unlink()
    write_metadata(tmp_path / "controller", remote_storage_enable="true")
    report = exports.export([tmp_path / "disk", tmp_path / "controller"], tmp_path / "out")
    assert exports.of_partition(report, "orders").remote == [(100, 200)]


def test_metadata_on_another_disk_say_that_there_is_no_tier(tmp_path: Path) -> None:
    tiered_partition(tmp_path)
    write_metadata(tmp_path / "controller")
    report = exports.export([tmp_path / "disk", tmp_path / "controller"], tmp_path / "out")
    assert exports.of_partition(report, "orders").remote == []


def test_offsets_exported_before_they_went_to_the_remote_tier_are_not_told(tmp_path: Path) -> None:
    with_segments(tmp_path / "disk" / "orders-0", 100, 150)
    exports.export([tmp_path / "disk"], tmp_path / "out")
    shutil.rmtree(tmp_path / "disk")
    tiered_partition(tmp_path)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert (exports.of_partition(report, "orders").remote, report.is_whole) == ([], True)


def test_the_remote_tier_of_a_partition_without_local_records_is_told(tmp_path: Path) -> None:
    log = tiered_partition(tmp_path)
    (log / f"{200:020}.log").write_bytes(b"")
    (log / f"{200:020}.index").unlink()
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert exports.of_partition(report, "orders").remote == [(100, 200)]
