"""A real broker deletes the segments that `retain` lists. Needs Java and Maven."""

import shutil
import time
from pathlib import Path

import pytest

from kseg.log.partition import PartitionLog
from kseg.log.segments import RetentionSettings
from kseg.rewrite.compact import retain_partition
from tests import golden
from tests.log.cleaner_logs import batch, make
from tests.log.real_broker import PATIENCE, make_topics, new_broker, put_in_place

pytestmark = pytest.mark.kafka

DAY = 86_400_000
NO_AGE = -1


def days(directory: Path, now: int, *ages: int, magic: int = 2) -> PartitionLog:
    """Write a segment of each age in days; the active one has the last one's age."""
    segments = [[batch(number, ("k", "v"), timestamp=now - age * DAY, magic=magic)] for number, age in enumerate(ages)]
    return make(directory, *segments, modified_ms=now - ages[-1] * DAY)


def sizes_of(partition: PartitionLog) -> list[int]:
    """Return the total sizes of the last n segments, plus and minus a byte."""
    sizes = [segment.size for segment in partition.segments]
    whole = [sum(sizes[slot:]) for slot in range(len(sizes))]
    return sorted({size + change for size in whole for change in (-1, 0, 1) if size + change >= 0})


def log_start_offsets(partition: PartitionLog) -> list[int]:
    end = partition.read_log_end_offset()
    bases = partition.base_offsets
    return sorted({offset for base in bases for offset in (base, base + 1) if bases[0] <= offset <= end})


def test_broker_deletes_what_retain_says(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    now = time.time_ns() // 1_000_000
    wanted: list[tuple[PartitionLog, RetentionSettings, int | None]] = []
    half_days = [days_kept * DAY + DAY // 2 for days_kept in range(9)]
    aged = [
        days(tmp_path / "rising" / "t-0", now, 7, 5, 3, 2, 1),
        days(tmp_path / "mixed" / "t-0", now, 7, 2, 5, 6, 1),
        days(tmp_path / "future" / "t-0", now, 7, 5, -3, 4, 2),
        days(tmp_path / "timeless" / "t-0", now, 5, 4, 3, magic=0),
        days(tmp_path / "old" / "t-0", now, 6, 4, 2, magic=1),
    ]
    wanted += [(log, RetentionSettings(now, age), None) for log in aged for age in half_days]
    found = sorted({path.parent for path in golden.files(".log")})
    copied = []
    for path in found:
        is_left = not path.parent.name.endswith(("-live", "-killed", "-remote"))
        if is_left and len(PartitionLog(path).segments) > 2 and "_" not in path.name[:2]:
            copied.append(PartitionLog(shutil.copytree(path, tmp_path / "golden" / str(len(copied)) / path.name)))
    for log in copied:
        wanted += [(log, RetentionSettings(now, NO_AGE, size), None) for size in sizes_of(log)[::3]]
    for log in copied[:12]:
        wanted += [(log, RetentionSettings(now, NO_AGE), offset) for offset in log_start_offsets(log)]
    topics = {f"topic-{number}": each for number, each in enumerate(wanted)}
    broker = new_broker(tmp_path_factory, {"log.retention.check.interval.ms": 1000, "offsets.topic.num.partitions": 1})
    with broker.running("first"):
        settings = {
            topic: {
                "cleanup.policy": "delete",
                "retention.ms": str(each.retention_ms),
                "retention.bytes": str(each.retention_bytes),
            }
            for topic, (_, each, _) in topics.items()
        }
        make_topics(broker.port, topics, settings)
    expected: dict[str, list[int]] = {}
    starts = {topic: offset for topic, (_, _, offset) in topics.items() if offset is not None}
    for topic, (log, each, offset) in topics.items():
        put_in_place(log.path, broker.logs / f"{topic}-0")
        (log.path.parent / "log-start-offset-checkpoint").write_text(
            f"0\n1\n{log.topic} {log.partition} {offset or 0}\n"
        )
        retained = retain_partition(PartitionLog(log.path), each)
        expected[topic] = [segment.segment.base_offset for segment in retained if segment.is_kept]
    lines = "".join(f"{topic} 0 {offset}\n" for topic, offset in starts.items())
    (broker.logs / "log-start-offset-checkpoint").write_text(f"0\n{len(starts)}\n{lines}")
    gone = [topic for topic, (log, *_) in topics.items() if expected[topic] != log.base_offsets]
    with broker.running("second"):
        broker.tools.wait_until(
            lambda: all(
                left_of(broker.logs / f"{topic}-0", topics[topic][0]) != topics[topic][0].base_offsets for topic in gone
            ),
            PATIENCE,
            "not all was deleted",
        )
    there = {topic: left_of(broker.logs / f"{topic}-0", log) for topic, (log, *_) in topics.items()}
    assert there == expected
    assert len(gone) > len(topics) // 4


def left_of(place: Path, source: PartitionLog) -> list[int]:
    """Return base offsets of the source's remaining segments; a broker that deletes all rolls another before."""
    there = PartitionLog(place).base_offsets
    return [base for base in there if base in source.base_offsets]
