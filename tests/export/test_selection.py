"""Ranges of offsets and times, isolation, the latest record of each key, folders: exports match the selection."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import assume, given, settings

from kseg.cluster.copies import copies_of, find_replicas
from kseg.export.plan import Splitting, plan_orders
from kseg.export.settings import Isolation, LogSelection, OffsetRange, Tombstones
from kseg.log.partition import PartitionLog
from tests import golden, run
from tests.export import exports
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.loops import TAKES_ALL
from tests.selections import OPTIONS, Chosen, control, selections, text_of


@pytest.mark.parametrize(
    ("first", "end"), [(None, 37), (42, None), (42, 43), (0, 100), (95, 105), (17, 183), (199, 300), (250, 300)]
)
@pytest.mark.parametrize("target_size", [1 << 28, 900])
def test_offsets(first: int | None, end: int | None, target_size: int, tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 100)
    exports.write_log(tmp_path / "orders-0", 100, 100)
    report = exports.export(
        [tmp_path / "orders-0"], tmp_path / "out", offsets=OffsetRange(first, end), target_size=target_size
    )
    wanted = list(range(first or 0, min(200 if end is None else end, 200)))
    assert exports.offsets(tmp_path / "out", "orders") == wanted
    assert [part.unexplained for part in report.partitions if part.unexplained] == []


@pytest.mark.parametrize("shift", [-40, 13, 5000])
def test_a_wrong_index_neither_loses_nor_doubles_records(shift: int, tmp_path: Path) -> None:
    log = exports.write_log(tmp_path / "orders-0", 0, 200)
    index = log.with_suffix(".index").read_bytes()
    entries = [(index[at : at + 4], int.from_bytes(index[at + 4 : at + 8], "big")) for at in range(0, len(index), 8)]
    log.with_suffix(".index").write_bytes(b"".join(key + (place + shift).to_bytes(4, "big") for key, place in entries))
    for number, (first, end) in enumerate([(None, None), (50, 60), (120, None), (None, 33)]):
        exports.export([log.parent], tmp_path / f"out{number}", offsets=OffsetRange(first, end), target_size=1500)
        assert exports.offsets(tmp_path / f"out{number}", "orders") == list(range(first or 0, end or 200))


def test_a_narrow_range_reads_little_of_a_large_partition(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 20_000, value=bytes(500))
    copies = copies_of(find_replicas([str(tmp_path / "orders-0")]))
    (order,) = plan_orders(copies, LogSelection(offsets=OffsetRange(10_000, 10_010)), Splitting(1 << 28))
    assert order.size < 12_000


def test_times_are_those_of_kafkas_consumers(tmp_path: Path) -> None:
    batches = [NewBatch([NewRecord(b"k", b"v", time)], offset) for offset, time in enumerate([10, 30, 20, 40, 50])]
    write_segment(tmp_path / "orders-0", batches)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", first_time=20, end_time=45)
    assert exports.offsets(tmp_path / "out", "orders") == [1, 2, 3]


def transactions(directory: Path, *, with_indexes: bool) -> None:
    """Write offsets 0-1 committed (2), 3-4 aborted (5), 6 plain, 7 open, 8 plain."""
    committed = NewBatch([NewRecord(b"a", b"1"), NewRecord(b"b", b"2")], 0, 1, 0, True)
    aborted = NewBatch([NewRecord(b"c", b"3"), NewRecord(b"d", b"4")], 3, 1, 0, True)
    batches = [
        committed,
        marker(COMMIT, committed),
        aborted,
        marker(ABORT, aborted),
        NewBatch([NewRecord(b"e", b"5")], 6),
    ]
    batches += [NewBatch([NewRecord(b"f", b"6")], 7, 2, 0, True), NewBatch([NewRecord(b"g", b"7")], 8)]
    log = write_segment(directory, batches)
    if with_indexes:
        exports.write_indexes(log)


@pytest.mark.parametrize("with_indexes", [True, False])
def test_read_committed_leaves_out_aborted_and_undecided_records(with_indexes: bool, tmp_path: Path) -> None:
    transactions(tmp_path / "orders-0", with_indexes=with_indexes)
    report = exports.export([tmp_path / "orders-0"], tmp_path / "out", isolation=Isolation.READ_COMMITTED)
    assert exports.offsets(tmp_path / "out", "orders") == [0, 1, 6]
    part = exports.of_partition(report, "orders")
    assert (part.control_records, part.aborted, part.open_from, part.unexplained) == (2, 2, 7, 0)


def test_read_uncommitted_leaves_out_control_records_only(tmp_path: Path) -> None:
    transactions(tmp_path / "orders-0", with_indexes=True)
    exports.export([tmp_path / "orders-0"], tmp_path / "out")
    assert exports.offsets(tmp_path / "out", "orders") == [0, 1, 3, 4, 6, 7, 8]


def test_an_open_transaction_is_exported_once_it_is_committed(tmp_path: Path) -> None:
    opened = NewBatch([NewRecord(b"f", b"6")], 0, 2, 0, True)
    write_segment(tmp_path / "orders-0", [opened])
    exports.export([tmp_path / "orders-0"], tmp_path / "out", isolation=Isolation.READ_COMMITTED)
    write_segment(tmp_path / "orders-0", [opened, marker(COMMIT, opened)])
    exports.export([tmp_path / "orders-0"], tmp_path / "out", isolation=Isolation.READ_COMMITTED)
    assert exports.offsets(tmp_path / "out", "orders") == [0]


@pytest.mark.parametrize(
    ("tombstones", "wanted"), [(Tombstones.DROP, [2, 4, 5]), (Tombstones.KEEP, [2, 3, 4, 5])], ids=["drop", "keep"]
)
def test_latest_record_of_each_key(tombstones: Tombstones, wanted: list[int], tmp_path: Path) -> None:
    records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", None), (None, b"5"), (b"long" * 9, b"6")]
    write_segment(tmp_path / "orders-0", [NewBatch([NewRecord(key, value) for key, value in records])])
    report = exports.export([tmp_path / "orders-0"], tmp_path / "out", latest_per_key=tombstones)
    assert exports.offsets(tmp_path / "out", "orders") == wanted
    assert exports.of_partition(report, "orders").superseded == 6 - len(wanted)


def test_folders_by_topic_partition_and_utc_date(tmp_path: Path) -> None:
    day = 86_400_000
    batches = [NewBatch([NewRecord(b"k", b"v", time)], offset) for offset, time in enumerate([day - 1, day, 2 * day])]
    write_segment(tmp_path / "orders-3", batches)
    exports.export([tmp_path / "orders-3"], tmp_path / "out", partition_by=("topic", "partition", "date"))
    folders = sorted(path.parent.name for path in (tmp_path / "out").rglob("part-*.parquet"))
    assert folders == ["date=1970-01-01", "date=1970-01-02", "date=1970-01-03"]
    assert pq.read_table(tmp_path / "out").num_rows == 3


def test_files_are_sorted_by_offset(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 1000)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", target_size=4000)
    found = [table.column("offset").to_pylist() for _, _, table in exports.tables(tmp_path / "out")]
    assert len(found) > 3
    assert [offset for table in found for offset in table] == list(range(1000))


def test_offsets_and_timestamps_are_written_as_differences(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 1000)
    exports.export([tmp_path / "orders-0"], tmp_path / "out", batch_columns=True)
    (path,) = (tmp_path / "out").rglob("part-*.parquet")
    group = pq.ParquetFile(path).metadata.row_group(0)
    columns = {group.column(number).path_in_schema: group.column(number) for number in range(group.num_columns)}
    assert "DELTA_BINARY_PACKED" in columns["offset"].encodings
    assert columns["offset"].statistics.max == 999
    assert columns["value"].compression == "ZSTD"


# --- the selection of `kseg dump` ------------------------------------------------------------------------------------


@settings(max_examples=60 if TAKES_ALL else 25)
@given(selections((*OPTIONS, control)))
def test_exported_are_the_records_that_a_filter_over_the_dump_takes(
    tmp_path_factory: pytest.TempPathFactory, chosen: Chosen
) -> None:
    directory = golden.ROOT / chosen.partition
    names = {segment.path.name for segment in PartitionLog(directory).segments}
    assume(names)
    out = tmp_path_factory.mktemp("out") / "exported"
    ran = run.kseg(["export", str(directory), str(out), "-o", "json", *chosen.arguments], golden.ROOT)
    is_control = "--control" in chosen.arguments
    taken = [
        one for one in chosen.records() if Path(one["file"]).name in names and bool(one["isControl"]) is is_control
    ]
    wanted = [(record["offset"], text_of(record, "key"), text_of(record, "value")) for record in taken]
    found = [(row[0], row[3], row[4]) for *_, table in exports.tables(out) for row in exports.rows_of(table)]
    assert sorted(found) == sorted(wanted), run.command(chosen.arguments)
    assert b'"unexplained":0' in ran.stdout or b'"partitions":0' in ran.stdout


def test_selected_records_of_a_damaged_log_come_out_and_the_rest_is_counted(tmp_path: Path) -> None:
    arguments = [str(golden.ROOT / "damaged/210-wiped-batch"), str(tmp_path / "out"), "--sample", "30%", "-o", "json"]
    partition, _, summary = map(json.loads, run.kseg(["export", *arguments], tmp_path).stdout.splitlines())
    assert (partition["recordsIn"], partition["lost"], partition["unexplained"]) == (35, 1, 0)
    assert 0 < partition["unselected"] < 35
    assert summary["recordsOut"] == 35 - partition["unselected"]


def test_partitions_are_chosen_by_topic_and_number(tmp_path: Path) -> None:
    for name in ("orders-0", "orders-1", "orders-2", "order.log-1", "payments-1"):
        exports.write_log(tmp_path / "logs" / name, 0, 10)
    command = ["export", "logs", "out", "--topic", "order*", "--partition", "1-2", "-o", "json"]
    for _ in range(2):
        *partitions, summary = map(json.loads, run.kseg(command, tmp_path).stdout.splitlines())
        assert [(each["topic"], each["partition"]) for each in partitions] == [
            ("order.log", 1),
            ("orders", 1),
            ("orders", 2),
        ]
    assert summary["newFiles"] == 0
    ran = run.kseg(["export", "logs", "none", "--partition", "7"], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    there = "order.log (1), orders (0-2), payments (1)"
    assert ran.stderr.decode() == f"kseg: --partition 7: no such partition here; there are {there}\n"


def test_times_are_compared_record_by_record(tmp_path: Path) -> None:
    batches = [NewBatch([NewRecord(b"k", b"v", time)], offset) for offset, time in enumerate([10, 30, 20, 40, 50])]
    write_segment(tmp_path / "orders-0", batches)
    for number, (arguments, wanted) in enumerate(
        [
            (["--from-time", "25", "--to-time", "45"], [1, 3]),
            (["--from-time", "1970-01-01 01:00:00.025", "--tz", "+01:00"], [1, 3, 4]),
            (["--from-offset", "2", "--to-offset", "4"], [2, 3]),
        ]
    ):
        run.kseg(["export", "orders-0", f"out{number}", *arguments], tmp_path)
        assert exports.offsets(tmp_path / f"out{number}", "orders") == wanted


def test_control_records_are_exported_alone_or_not_at_all(tmp_path: Path) -> None:
    transactions(tmp_path / "orders-0", with_indexes=True)
    wanted = {"--control": [2, 5], "--no-control": [0, 1, 3, 4, 6, 7, 8]}
    for option, offsets in wanted.items():
        ran = run.kseg(["export", "orders-0", f"out{option}", option, "-o", "json"], tmp_path)
        assert exports.offsets(tmp_path / f"out{option}", "orders") == offsets
        assert b'"unexplained":0' in ran.stdout
    assert run.kseg(["export", "orders-0", "out--no-control"], tmp_path).status == 0, "it is the default"


def test_a_later_run_goes_on_with_the_same_selection_and_refuses_another(tmp_path: Path) -> None:
    def export(*arguments: str) -> int:
        return run.kseg(["export", "orders-0", "out", "--key", "hex:6b65792d3030", *arguments], tmp_path).status

    batches = [NewBatch([NewRecord(b"key-00", b"v"), NewRecord(b"other", b"v")], offset) for offset in (0, 2, 4)]
    write_segment(tmp_path / "orders-0", batches[:2])
    assert export() == 0
    write_segment(tmp_path / "orders-0", batches)
    assert export("--header", "trace") == 2
    assert export() == 0
    assert exports.offsets(tmp_path / "out", "orders") == [0, 2, 4]


def test_latest_record_of_each_key_among_those_selected(tmp_path: Path) -> None:
    records = [(b"a", b"1"), (b"b", b"2"), (b"a", b"3"), (b"b", b"4")]
    batches = [NewBatch([NewRecord(*record, offset)], offset) for offset, record in enumerate(records)]
    write_segment(tmp_path / "orders-0", batches)
    run.kseg(["export", "orders-0", "out", "--latest-per-key", "--to-time", "3"], tmp_path)
    assert exports.offsets(tmp_path / "out", "orders") == [1, 2]


def test_report_names_what_was_not_selected(tmp_path: Path) -> None:
    exports.write_log(tmp_path / "orders-0", 0, 100)
    first, second, *_ = run.kseg(["export", "orders-0", "out", "--key-regex", "-7$"], tmp_path).stdout.splitlines()
    assert dict(zip(first.split(), second.replace(b" KiB", b"KiB").split(), strict=True))[b"unselected"] == b"99"
    assert b"unselected" not in run.kseg(["export", "orders-0", "whole"], tmp_path).stdout
