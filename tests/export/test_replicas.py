"""Copies of a partition on several disks: each offset once, from the best copy that has it intact."""

from pathlib import Path

import pytest

from kseg.text.export import report_lines
from tests import golden
from tests.export import exports
from tests.run import kseg


def copies(tmp_path: Path) -> tuple[Path, Path]:
    """Return two disks with the same partition; the first has the higher leader epoch."""
    first, second = tmp_path / "disk1" / "orders-0", tmp_path / "disk2" / "orders-0"
    for disk, epoch, value in ((first, 7, b"first"), (second, 3, b"second")):
        exports.write_log(disk, 0, 100, value=value)
        (disk / "leader-epoch-checkpoint").write_text(f"0\n1\n{epoch} 0\n", encoding="utf-8")
    return first, second


def values(destination: Path) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    for _, _, table in exports.tables(destination):
        pairs = zip(table.column("offset").to_pylist(), table.column("value").to_pylist(), strict=True)
        for offset, value in pairs:
            assert offset not in found
            found[offset] = value
    return found


def test_each_offset_comes_once_from_the_highest_leader_epoch(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    report = exports.export([second.parent, first.parent], tmp_path / "out")
    assert values(tmp_path / "out") == dict.fromkeys(range(100), b"first")
    assert report.is_whole


def test_what_the_best_copy_lost_comes_from_another(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    log = first / f"{0:020}.log"
    content = bytearray(log.read_bytes())
    content[len(content) // 2 : len(content) // 2 + 200] = bytes(200)
    log.write_bytes(content)
    report = exports.export([first.parent, second.parent], tmp_path / "out")
    found = values(tmp_path / "out")
    assert sorted(found) == list(range(100))
    assert set(found.values()) == {b"first", b"second"}
    part = exports.of_partition(report, "orders")
    assert (part.lost, part.recovered, part.unexplained) == (0, sum(value == b"second" for value in found.values()), 0)
    (line,) = (line for line in report_lines(report) if line.startswith(str(log)))
    assert line.endswith(", recovered from another copy")
    (line,) = (line for line in report_lines(exports.export([first], tmp_path / "alone")) if line.startswith(str(log)))
    assert not line.endswith(", recovered from another copy")


def test_torn_end_of_the_best_copy_comes_from_another(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    log = first / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-20])
    report = exports.export([first.parent, second.parent], tmp_path / "out")
    assert values(tmp_path / "out") == {
        **dict.fromkeys(range(95), b"first"),
        **dict.fromkeys(range(95, 100), b"second"),
    }
    assert report.is_whole


def test_offsets_that_only_another_copy_has_are_exported_too(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    exports.write_log(second, 100, 20, value=b"second")
    exports.export([first.parent, second.parent], tmp_path / "out")
    found = values(tmp_path / "out")
    assert [found[99], found[100], len(found)] == [b"first", b"second", 120]


def test_a_second_run_over_copies_writes_nothing(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    log = first / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-20])
    exports.export([first.parent, second.parent], tmp_path / "out")
    assert exports.export([first.parent, second.parent], tmp_path / "out").new_files == 0


def test_gaps_that_compaction_left_are_not_filled_from_an_older_copy(tmp_path: Path) -> None:
    first, second = copies(tmp_path)
    for path in first.glob(f"{0:020}.*"):
        path.unlink()
    exports.write_log(first, 0, 40, value=b"first")
    exports.write_log(first, 60, 40, value=b"first")
    exports.export([first.parent, second.parent], tmp_path / "out")
    assert sorted(values(tmp_path / "out")) == [*range(40), *range(60, 100)]


@pytest.mark.parametrize("command", ["export {} new --dry-run", "salvage {} --dry-run", "groups {}"])
def test_partitions_of_different_clusters_are_no_copies(command: str) -> None:
    run = kseg(command.format("3.6.2 4.1.0").split(), golden.ROOT / "logs")
    assert (run.status, run.stdout) == (2, b"")
    assert b" belong to different clusters, AbE5hHSmpchnHLE4KcYOHA and AUBsrBtXSnmrPsYD-x__QA; specify " in run.stderr
