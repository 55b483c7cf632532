"""Topics that were deleted, recreated, or moved between two runs: their records stay, each once, distinguished."""

import json
import shutil
from pathlib import Path

import pytest

from kseg.export.settings import Tombstones
from kseg.text.export import report_lines
from tests.export import exports
from tests.export.test_accounts import assert_adds_up

FIRST, SECOND, THIRD = "AAAAAAAAAAAAAAAAAAAAAQ", "AAAAAAAAAAAAAAAAAAAAAg", "AAAAAAAAAAAAAAAAAAAAAw"


def topic(log: Path, topic_id: str | None, count: int, value: bytes, first: int = 0) -> Path:
    """Write the partition directory as a broker makes it for a new topic."""
    shutil.rmtree(log, ignore_errors=True)
    exports.write_log(log, first, count, value=value)
    if topic_id is not None:
        (log / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
    return log


def rows(destination: Path) -> list[tuple[bytes, int]]:
    """Return value and offset of each row."""
    found = [
        row
        for _, _, table in exports.tables(destination)
        for row in zip(table["value"].to_pylist(), table["offset"].to_pylist(), strict=True)
    ]
    assert len(set(found)) == len(found)
    return sorted(found)


def of(value: bytes, count: int, first: int = 0) -> list[tuple[bytes, int]]:
    return [(value, offset) for offset in range(first, first + count)]


@pytest.mark.parametrize("count", [5, 50, 80], ids=["shorter", "as long", "longer"])
def test_records_of_a_topic_recreated_are_added(count: int, tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    topic(log, SECOND, count, b"b")
    for _ in range(2):
        report = exports.export([tmp_path / "disk"], tmp_path / "out")
        assert rows(tmp_path / "out") == of(b"a", 50) + of(b"b", count)
        assert [(part.topic_id, part.records_in, part.to_offset, part.is_gone) for part in report.partitions] == [
            (FIRST, 50, 50, True),
            (SECOND, count, count, False),
        ]
        assert (report.is_whole, report.status) == (True, 0)
    assert report.new_files == 0
    line = f"orders-0: the topic was recreated: topic id {FIRST} until offset 50, then {SECOND} from offset 0 on"
    assert f"{line}; both are exported" in list(report_lines(report))


def test_accounts_of_each_topic_add_up(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    topic(log, SECOND, 20, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    topic(log, SECOND, 20, b"b", first=60)
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    first, second = report.partitions
    assert (first.missed, first.unexplained, second.missed_offsets, second.unexplained) == (0, 0, [(20, 60)], 0)
    assert report.status == 1
    topic(log, THIRD, 10, b"c")
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert [part.topic_id for part in report.partitions] == [FIRST, SECOND, THIRD]
    assert rows(tmp_path / "out") == of(b"a", 50) + of(b"b", 20) + of(b"b", 20, 60) + of(b"c", 10)


def test_a_new_topic_that_is_empty_takes_nothing_away(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    for topic_id in (None, SECOND):  # a broker writes the id before the first record
        topic(log, topic_id, 0, b"b")
        report = exports.export([tmp_path / "disk"], tmp_path / "out")
        assert rows(tmp_path / "out") == of(b"a", 50)
        assert [(part.topic_id, part.is_gone) for part in report.partitions] == [(FIRST, True)]
    topic(log, SECOND, 10, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"a", 50) + of(b"b", 10)


def test_without_ids_what_changed_is_replaced(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", None, 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    topic(log, None, 20, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"b", 20)


def test_an_id_that_the_best_copy_lost_is_that_of_the_others(tmp_path: Path) -> None:
    topic(tmp_path / "b1" / "orders-0", None, 50, b"a")
    topic(tmp_path / "b2" / "orders-0", FIRST, 40, b"a")
    report = exports.export([tmp_path / "b1", tmp_path / "b2"], tmp_path / "out")
    assert [(part.topic_id, part.records_in) for part in report.partitions] == [(FIRST, 50)]
    assert {
        json.loads(table.schema.metadata[b"kseg"])["topicId"] for _, _, table in exports.tables(tmp_path / "out")
    } == {FIRST}


@pytest.mark.parametrize("ids", [(None, FIRST), (FIRST, None)])
def test_an_id_that_comes_or_goes_changes_nothing(ids: tuple[str | None, str | None], tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", ids[0], 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    topic(log, ids[1], 60, b"a")
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"a", 60)
    assert len(report.partitions) == 1
    topic(log, FIRST, 60, b"a")
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert (len(report.partitions), report.partitions[0].topic_id) == (1, FIRST)


def test_a_topic_that_was_deleted_is_gone_and_its_rows_stay(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    topic(tmp_path / "disk" / "other-0", SECOND, 10, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out")
    log.rename(log.with_name(f"orders-0.{0:032x}-delete"))
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"a", 50) + of(b"b", 10)
    assert [(part.topic, part.is_gone) for part in report.partitions] == [("orders", True), ("other", False)]
    assert (report.is_whole, report.status) == (True, 0)
    assert "orders-0: the partition no longer exists; its 50 exported records stay" in list(report_lines(report))


def test_a_partition_that_is_not_among_the_sources_is_not_gone(tmp_path: Path) -> None:
    topic(tmp_path / "disk1" / "orders-0", FIRST, 50, b"a")
    topic(tmp_path / "disk2" / "other-0", SECOND, 10, b"b")
    exports.export([tmp_path / "disk1"], tmp_path / "out")
    report = exports.export([tmp_path / "disk2"], tmp_path / "out")
    assert [part.is_gone for part in report.partitions] == [False, False]


def test_a_partition_moved_to_another_disk_is_no_loss(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk1" / "orders-0", FIRST, 50, b"a")
    topic(tmp_path / "disk2" / "other-0", SECOND, 10, b"b")
    disks = [tmp_path / "disk1", tmp_path / "disk2"]
    exports.export(disks, tmp_path / "out")
    topic(tmp_path / "disk2" / "orders-0", FIRST, 80, b"a")
    shutil.rmtree(log)
    topic(tmp_path / "disk1" / "more-0", THIRD, 10, b"c")
    report = exports.export(disks, tmp_path / "out")
    assert_adds_up(report, tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"a", 80) + of(b"b", 10) + of(b"c", 10)
    assert (report.is_whole, report.status, [part.is_gone for part in report.partitions]) == (True, 0, [False] * 3)


@pytest.mark.parametrize("state", ["delete", "stray"])
def test_directories_put_aside_are_not_copies(state: str, tmp_path: Path) -> None:
    topic(tmp_path / "disk" / "orders-0", SECOND, 10, b"b")
    topic(tmp_path / "disk" / f"orders-0.{0:032x}-{state}", FIRST, 50, b"a")
    report = exports.export([tmp_path / "disk"], tmp_path / "out")
    assert rows(tmp_path / "out") == of(b"b", 10)
    assert exports.of_partition(report, "orders").topic_id == SECOND


def test_directories_of_two_topics_of_one_name_are_not_copies(tmp_path: Path) -> None:
    """The newer one is the topic's, in any order."""
    topic(tmp_path / "disk1" / "orders-0", FIRST, 50, b"a")
    topic(tmp_path / "disk2" / "orders-0", SECOND, 60, b"b")
    for sides in (("disk1", "disk2"), ("disk2", "disk1")):
        report = exports.export([tmp_path / side for side in sides], tmp_path / "-".join(sides))
        assert rows(tmp_path / "-".join(sides)) == of(b"b", 60)
        assert [(each.path, str(each.status)) for each in report.taken.left_out] == [
            (str(tmp_path / "disk1" / "orders-0"), "stale")
        ]


def test_files_and_their_rows_say_which_topic_they_are_of(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    exports.export([tmp_path / "disk"], tmp_path / "out", batch_columns=True)
    topic(log, SECOND, 20, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out", batch_columns=True)
    tables = [table for _, _, table in exports.tables(tmp_path / "out")]
    assert [set(table["topicId"].to_pylist()) for table in tables] == [{FIRST}, {SECOND}]
    origins = [json.loads(table.schema.metadata[b"kseg"]) for table in tables]
    assert [origin["topicId"] for origin in origins] == [FIRST, SECOND]


def test_latest_records_of_a_topic_recreated_are_its_own(tmp_path: Path) -> None:
    log = topic(tmp_path / "disk" / "orders-0", FIRST, 50, b"a")
    options = {"latest_per_key": Tombstones.DROP}
    exports.export([tmp_path / "disk"], tmp_path / "out", **options)
    topic(log, SECOND, 20, b"b")
    exports.export([tmp_path / "disk"], tmp_path / "out", **options)
    assert rows(tmp_path / "out") == of(b"a", 50) + of(b"b", 20)
