"""`retain` as a library: decisions, times, and the remaining copy."""

from pathlib import Path

import pytest

from kseg.log.partition import PartitionLog
from kseg.log.segments import Retention, RetentionSettings, RollSettings
from kseg.log.writer import PartitionSettings
from kseg.rewrite.build import build_partition
from kseg.rewrite.compact import copy_retained, retain_partition
from kseg.writer.batches import BatchSettings
from kseg.writer.text_source import SourceRecord
from tests.log.cleaner_logs import NOW, batch, make

DAY = 86_400_000


def build(directory: Path, days: tuple[int, ...] = (1, 2, 3, 4)) -> PartitionLog:
    """Write a segment per day, each of one batch."""
    directory.mkdir()
    records = [SourceRecord(1, None, day * DAY, None, bytes(100)) for day in days]
    settings = PartitionSettings(RollSettings(segment_bytes=1))
    build_partition(records, directory, batches=BatchSettings(0, batch_records=1), partition=settings)
    return PartitionLog(directory)


def decisions(partition: PartitionLog, **settings: int) -> list[Retention | None]:
    return [each.segment.retention for each in retain_partition(partition, RetentionSettings(**settings))]


def test_segments_go_by_their_age(tmp_path: Path) -> None:
    partition = build(tmp_path / "t-0")
    found = decisions(partition, now_ms=4 * DAY + 1, retention_ms=2 * DAY)
    assert found == [Retention.DELETE_TIME, Retention.DELETE_TIME, Retention.KEEP, Retention.KEEP]


@pytest.mark.parametrize(
    ("written_ms", "retention"), [(NOW - 2 * DAY, Retention.DELETE_TIME), (NOW - DAY // 2, Retention.KEEP)]
)
def test_segments_without_times_are_as_old_as_their_files(
    written_ms: int, retention: Retention, tmp_path: Path
) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), magic=0)], modified_ms=written_ms)
    (first, _) = retain_partition(partition, RetentionSettings(NOW, retention_ms=DAY))
    assert (first.segment.retention, first.expires_ms) == (retention, written_ms + DAY + 1)


def test_segments_go_by_the_size_of_all(tmp_path: Path) -> None:
    partition = build(tmp_path / "t-0")
    size = partition.segments[0].size
    found = decisions(partition, now_ms=0, retention_ms=-1, retention_bytes=3 * size)
    assert found == [Retention.DELETE_SIZE, Retention.KEEP, Retention.KEEP, Retention.KEEP]


def test_segments_go_below_the_log_start_offset(tmp_path: Path) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    found = decisions(build(tmp_path / "t-0"), now_ms=0, retention_ms=-1)
    assert found == [Retention.DELETE_LOG_START, Retention.DELETE_LOG_START, Retention.KEEP, Retention.KEEP]


def test_a_segment_expires_when_those_before_it_do(tmp_path: Path) -> None:
    partition = build(tmp_path / "t-0", days=(5, 2))
    retained = retain_partition(partition, RetentionSettings(0, retention_ms=DAY))
    assert [each.expires_ms for each in retained] == [6 * DAY + 1, 6 * DAY + 1]
    unlimited = retain_partition(partition, RetentionSettings(0, retention_ms=-1))
    assert [each.expires_ms for each in unlimited] == [None, None]


def test_at_the_time_it_expires_a_segment_goes_and_not_before(tmp_path: Path) -> None:
    partition = build(tmp_path / "t-0")
    first, *_ = retain_partition(partition, RetentionSettings(0, retention_ms=DAY))
    assert first.expires_ms is not None
    for now_ms, is_kept in ((first.expires_ms - 1, True), (first.expires_ms, False)):
        assert retain_partition(partition, RetentionSettings(now_ms, retention_ms=DAY))[0].is_kept is is_kept


def test_the_copy_has_what_is_kept_as_it_was(tmp_path: Path) -> None:
    partition = build(tmp_path / "t-0")
    retained = retain_partition(partition, RetentionSettings(4 * DAY, retention_ms=DAY + 1))
    copy_retained(partition, retained, tmp_path / "copy")
    copied = {path.name: path.read_bytes() for path in (tmp_path / "copy").iterdir()}
    before = {path.name: path.read_bytes() for path in (tmp_path / "t-0").iterdir()}
    assert copied.items() <= before.items()
    assert sorted(name for name in copied if name.endswith(".log")) == [f"{2:020}.log", f"{3:020}.log"]
    assert sorted(name for name in copied if name.endswith(".snapshot")) == [
        f"{offset:020}.snapshot" for offset in (2, 3, 4)
    ]
    for name in copied:
        assert (tmp_path / "copy" / name).stat().st_mtime_ns == (tmp_path / "t-0" / name).stat().st_mtime_ns
