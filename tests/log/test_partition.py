"""Partition and log directories: their contents, checkpoints, several disks."""

import shutil
from pathlib import Path

import pytest

from kseg import Segment
from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import LogDir
from kseg.errors import OpenError
from kseg.formats.file_names import DirectoryState
from kseg.log.partition import PartitionLog
from tests import golden

LOGS = golden.ROOT / "logs"
BROKER = LOGS / "3.6.2"


def touch(folder: Path, *names: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(b"")
    return folder


def test_segments_lie_in_order_of_their_base_offsets_with_floor_lookup(tmp_path: Path) -> None:
    folder = touch(tmp_path / "t-0", *(f"{offset:020}.log" for offset in (500, 7, 120)))
    partition = PartitionLog(folder)
    assert partition.base_offsets == [7, 120, 500]
    assert [partition.floor_slot(offset) for offset in (6, 7, 119, 120, 10**9)] == [None, 0, 0, 1, 2]
    assert partition.active_segment is not None
    assert partition.active_segment.base_offset == 500


def test_leftovers_and_orphans_are_no_segments(tmp_path: Path) -> None:
    stem = f"{7:020}"
    folder = touch(tmp_path / "t-0", f"{stem}.log.cleaned", f"{stem}.log.deleted", f"{stem}.index", f"{9:020}.snapshot")
    partition = PartitionLog(folder)
    assert partition.segments == ()
    assert [segment.base_offset for segment in partition.orphans] == [7]
    assert sorted(file.name for file in partition.leftovers) == [f"{stem}.log.cleaned", f"{stem}.log.deleted"]
    assert list(partition.snapshots) == [9]


def test_log_start_offset_is_the_checkpoints_where_that_is_above_the_first_segment(tmp_path: Path) -> None:
    touch(tmp_path / "t-0", f"{7:020}.log")
    touch(tmp_path / "t-1", f"{7:020}.log")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n2\nt 0 3\nt 1 70\n")
    log_dir = LogDir(tmp_path)
    assert [partition.log_start_offset() for partition in log_dir.partitions()] == [7, 70]
    assert PartitionLog(tmp_path / "t-1").log_start_offset() == 70


def test_broken_checkpoint_is_reported_and_the_rest_is_read(tmp_path: Path) -> None:
    touch(tmp_path / "t-0", f"{7:020}.log")
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n9\nt 0 30\n")
    log_dir = LogDir(tmp_path)
    assert [str(problem).partition(": line 2")[0] for problem in log_dir.problems] == [
        str(tmp_path / "log-start-offset-checkpoint")
    ]
    assert [partition.log_start_offset() for partition in log_dir.partitions()] == [7]


@pytest.mark.parametrize("root", [golden.ROOT / "docs", BROKER, LOGS / "0.8.2.2", LOGS / "4.3.1-live"], ids=str)
def test_log_end_offset_is_behind_the_last_record_or_batch(root: Path) -> None:
    for partition in Cluster([root]).directories():
        end = partition.base_offsets[-1]
        for segment in partition.segments:
            with Segment(segment.path) as opened:
                end = max([end, *(batch.next_offset for batch in opened.batches())])
        assert partition.read_log_end_offset() == end, partition.path


def test_zero_tail_of_a_preallocated_log_is_behind_the_end(tmp_path: Path) -> None:
    source = golden.ROOT / "docs/test-1-0/00000000000000203000.log"
    folder = touch(tmp_path / "test-1-0")
    (folder / source.name).write_bytes(source.read_bytes() + bytes(5000))
    assert PartitionLog(folder).read_log_end_offset() == 209300


def test_small_files_of_a_partition() -> None:
    partition = PartitionLog(BROKER / "plain-1")
    topic_id = partition.read_topic_id()
    assert topic_id is not None
    assert f"topic_id: {topic_id}" in (BROKER / "plain-1/partition.metadata").read_text()
    epochs = partition.read_leader_epochs()
    assert epochs is not None
    assert epochs[0] == (0, 0)
    assert partition.checkpoints().recovery_point == partition.read_log_end_offset()


def test_same_topic_on_several_disks(tmp_path: Path) -> None:
    for disk, name in (("a", "t-0"), ("b", "t-1"), ("b", f"t-0.{'0' * 32}-future")):
        touch(tmp_path / disk / name, f"{0:020}.log")
    found = [(place.topic, place.partition, place.state) for place in Cluster([tmp_path]).directories()]
    assert found == [("t", 0, None), ("t", 0, DirectoryState.FUTURE), ("t", 1, None)]


def test_partition_that_goes_while_a_disk_is_read_is_left_out(tmp_path: Path) -> None:
    touch(tmp_path / "t-0", f"{0:020}.log")
    touch(tmp_path / "t-1", f"{0:020}.log")
    log_dir = LogDir(tmp_path)
    shutil.rmtree(tmp_path / "t-0")
    assert [place.partition for place in log_dir.partitions()] == [1]


def test_missing_directory_cannot_be_listed(tmp_path: Path) -> None:
    with pytest.raises(OpenError, match="no such file or directory"):
        list(Cluster([tmp_path / "nowhere"]).directories())
