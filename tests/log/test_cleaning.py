"""Verdicts of `ls` on whether the log cleaner would clean a partition, by Kafka's rules, for logs made by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from kseg.formats.codes import ControlType
from kseg.index.producers import build_producer_snapshot
from kseg.log.cleaner import CleaningSettings
from kseg.log.partition import PartitionLog
from kseg.log.side_files import states_at
from tests import run
from tests.log.cleaner_logs import NOW, batch, make, marker, produce_batch

NAME = "__consumer_offsets-0"
"""A topic that is compacted in any cluster."""
HOUR = 3_600_000


def four_segments(directory: Path) -> PartitionLog:
    """Write three closed segments of one size, of the offsets 0-1, 2-3, 4-5, and an active one from 6 on."""
    return make(directory / NAME, *([batch(base, ("a", "1"), ("b", "2"))] for base in (0, 2, 4)))


def write_checkpoint(directory: Path, name: str, offset: int) -> None:
    (directory / f"{name}-offset-checkpoint").write_text(f"0\n1\n__consumer_offsets 0 {offset}\n")


NOTHING = "clean"


def list_partition(directory: Path, *arguments: str) -> dict[str, Any]:
    """Return the partition's object; the text output has the same verdict, unless there is none."""
    options = ("--now", f"{NOW}ms", *arguments)
    ran = run.kseg(["ls", NAME, "-o", "json", *options], directory)
    (partition,) = (each for each in map(json.loads, ran.stdout.splitlines()) if each["type"] == "partition")
    shown = run.kseg(["ls", NAME, *options], directory).stdout.decode().splitlines()[1]
    assert (partition["cleanableReason"] in shown) is (partition["cleanableReason"] != NOTHING)
    return partition


def write_snapshot(partition: PartitionLog, offset: int) -> None:
    (partition.path / f"{offset:020}.snapshot").write_bytes(build_producer_snapshot(states_at(partition, offset)))


def test_ratio_is_that_of_cleanable_bytes_to_these_and_clean_ones(tmp_path: Path) -> None:
    partition = four_segments(tmp_path)
    size = partition.segments[0].size
    write_checkpoint(tmp_path, "cleaner", 2)
    found = list_partition(tmp_path)
    assert (found["cleanBytes"], found["cleanableBytes"]) == (size, 2 * size)
    assert found["dirtyRatio"] == pytest.approx(2 / 3, abs=1e-4)
    assert (found["firstDirtyOffset"], found["firstUncleanableOffset"]) == (2, 6)
    assert (found["cleanable"], found["cleanableReason"]) == (True, "cleanable")


def test_segment_of_the_first_dirty_offset_counts_as_clean_and_as_dirty(tmp_path: Path) -> None:
    partition = four_segments(tmp_path)
    write_checkpoint(tmp_path, "cleaner", 3)
    size = partition.segments[0].size
    found = list_partition(tmp_path)
    assert (found["cleanBytes"], found["cleanableBytes"]) == (2 * size, 2 * size)
    assert found["cleanable"] is False  # the ratio is 0.5, not above it


NOT_DIRTY = "not cleanable: its dirty ratio isn't above 0.5"
LAG = "not cleanable: min.compaction.lag.ms hasn't passed for the segment at offset 0"
OVERDUE = "cleanable, because max.compaction.lag.ms has passed"


@pytest.mark.parametrize(
    ("clean", "setting", "later_ms", "cleanable", "reason"),
    [
        (4, "", 0, False, NOT_DIRTY),
        (4, "--min-cleanable-dirty-ratio 0.3", 0, True, "cleanable"),
        (4, "--max-compaction-lag-ms 1", 2, True, OVERDUE),
        (4, "--max-compaction-lag-ms 1", 1, False, NOT_DIRTY),
        (6, "", 0, False, NOTHING),
        (99, "", 0, True, "cleanable"),  # a checkpoint beyond the log doesn't count
        (0, "--min-compaction-lag-ms 1", 0, False, LAG),
        (0, "--min-compaction-lag-ms 1", 1, True, "cleanable"),
    ],
)
def test_verdict_follows_checkpoint_and_settings(
    clean: int, setting: str, later_ms: int, cleanable: bool, reason: str, tmp_path: Path
) -> None:
    four_segments(tmp_path)
    write_checkpoint(tmp_path, "cleaner", clean)
    found = list_partition(tmp_path, *setting.split(), "--now", f"{NOW + later_ms}ms")
    assert (found["cleanable"], found["cleanableReason"]) == (cleanable, reason)


def test_high_watermark_stops_the_cleaner(tmp_path: Path) -> None:
    four_segments(tmp_path)
    write_checkpoint(tmp_path, "replication", 1)
    assert list_partition(tmp_path)["cleanableReason"] == "not cleanable: the high watermark is 1"
    write_checkpoint(tmp_path, "replication", 3)
    reason = "cleanable, up to offset 1: the high watermark is 3"
    assert list_partition(tmp_path)["cleanableReason"] == reason


# --- open transactions ------------------------------------------------------------------------------------------------

OPEN_AT_1 = "not cleanable: an open transaction stops the cleaner at offset 1"
UNKNOWN = "cleanable unless a transaction is open at offset {}; run with --deep to check"


def with_transaction(directory: Path, *, is_ended: bool) -> PartitionLog:
    """Write a transaction from offset 1 on; its marker, if any, is in the last closed segment; no snapshots."""
    last = [marker(2, ControlType.COMMIT, 7)] if is_ended else [batch(2, ("c", "1"))]
    partition = make(directory / NAME, [batch(0, ("a", "1")), produce_batch(1, ("b", "1"), producer_id=7)], last)
    for snapshot in partition.snapshots.values():
        snapshot.path.unlink()
    return PartitionLog(partition.path)


@pytest.mark.parametrize("deep", [(), ("--deep",)])
def test_open_transaction_stops_the_cleaner_where_the_newest_snapshot_is_at_the_end(
    deep: tuple[str, ...], tmp_path: Path
) -> None:
    partition = with_transaction(tmp_path, is_ended=False)
    write_snapshot(partition, partition.read_log_end_offset())
    found = list_partition(tmp_path, *deep)
    assert (found["cleanable"], found["cleanableReason"]) == (False, OPEN_AT_1)
    assert (found["cleanerStop"], found["cleanerStopOffset"], found["dirtyRatio"]) == ("open transaction", 1, None)


@pytest.mark.parametrize("is_ended", [False, True])
def test_whether_a_transaction_is_open_is_not_known_without_a_snapshot(is_ended: bool, tmp_path: Path) -> None:
    with_transaction(tmp_path, is_ended=is_ended)
    found = list_partition(tmp_path)
    assert (found["cleanable"], found["cleanableReason"]) == (None, UNKNOWN.format(0))
    assert (found["dirtyRatio"], found["cleanableBytes"]) == (None, 0)
    deep = list_partition(tmp_path, "--deep")
    assert deep["cleanableReason"] == ("cleanable" if is_ended else OPEN_AT_1)


@pytest.mark.parametrize("deep", [(), ("--deep",)])
@pytest.mark.parametrize("is_ended", [False, True])
def test_whether_a_transaction_ended_in_the_active_segment_is_looked_up(
    is_ended: bool, deep: tuple[str, ...], tmp_path: Path
) -> None:
    partition = with_transaction(tmp_path, is_ended=is_ended)
    write_snapshot(partition, partition.base_offsets[-1])
    assert list_partition(tmp_path, *deep)["cleanableReason"] == ("cleanable" if is_ended else OPEN_AT_1)


# --- other cases
# ------------------------------------------------------------------------------------------------------


def test_damage_before_the_active_segment_makes_it_uncleanable(tmp_path: Path) -> None:
    partition = four_segments(tmp_path)
    with partition.segments[1].path.open("r+b") as log:
        log.seek(16)
        log.write(b"\x09")  # an invalid magic
    reason = f"uncleanable: the cleaner would fail at the damage at position 0 of {2:020}.log"
    assert list_partition(tmp_path, "--deep")["cleanableReason"] == reason


def test_more_keys_than_the_cleaner_takes_at_once_are_told(tmp_path: Path) -> None:
    four_segments(tmp_path)
    found = list_partition(tmp_path, "--log-cleaner-dedupe-buffer-size", "72")
    assert (found["keysToCleanAtMost"], found["keysAtOnce"]) == (6, 2)
    shown = run.kseg(["ls", NAME, "--log-cleaner-dedupe-buffer-size", "72"], tmp_path).stdout.decode()
    assert "up to 6 keys to clean, but the cleaner takes 2 at once" in shown
    assert "keys to clean" not in run.kseg(["ls", NAME], tmp_path).stdout.decode()


def test_cleaner_takes_so_many_keys_at_once_by_default() -> None:
    assert CleaningSettings(0).most_keys == 5_033_164  # 0.9 of 128 MiB in 24 bytes each


def test_last_cleaning_is_told_as_far_as_it_is_known(tmp_path: Path) -> None:
    four_segments(tmp_path)
    assert list_partition(tmp_path)["cleanedByTimestamp"] is None
    write_checkpoint(tmp_path, "cleaner", 2)
    modified_ms = (tmp_path / "cleaner-offset-checkpoint").stat().st_mtime_ns // 1_000_000
    assert list_partition(tmp_path)["cleanedByTimestamp"] == modified_ms
    shown = run.kseg(["ls", NAME, "--by", "segment"], tmp_path).stdout.decode()
    assert "cleaned before offset 2, not after 20" in shown


@pytest.mark.parametrize(("topic", "cleanable"), [("compacted-lz4", None), ("v1-gzip", None)])
def test_policy_that_is_not_known_leaves_the_verdict_open(topic: str, cleanable: None, restored: Path) -> None:
    """The brokers' settings were in ZooKeeper; the cleaner has cleaned one of these topics."""
    ran = run.kseg(["ls", "logs/2.3.1", "--topic", topic, "-o", "json"], restored)
    partition = json.loads(ran.stdout.splitlines()[0])
    reason = "cleanable if cleanup.policy is still compact, which is unknown here"
    assert (partition["cleanable"], partition["cleanableReason"]) == (
        cleanable,
        reason if topic == "compacted-lz4" else None,
    )
