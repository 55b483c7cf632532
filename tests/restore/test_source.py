"""Source partitions: their offsets in the target, and places from which they can be read on."""

import random
from bisect import bisect_left
from pathlib import Path

import pytest

from kseg.restore.batches import parts_of, records_of
from kseg.restore.plan import PlannedPartition
from kseg.restore.source import translate
from tests import golden
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.restore.test_sender import plan_of, write_partition


@pytest.fixture(params=["gaps", "compacted", "begins later", "v0", "v1"])
def partition(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PlannedPartition:
    """A partition with several checkpoints, as far as it is large enough."""
    monkeypatch.setattr("kseg.restore.source.CHECKPOINT_SIZE", 1500)
    if request.param == "gaps":
        write_partition(tmp_path / "t-0", 15, random.Random(3))
    elif request.param == "compacted":
        return plan_of(golden.ROOT / "logs/4.3.1/compacted-txn-0").partitions[0]
    elif request.param == "begins later":
        records = [NewRecord(b"k", b"%d" % number) for number in range(20)]
        write_segment(tmp_path / "t-0", [NewBatch(records, 100), NewBatch(records, 120), NewBatch(records, 150)], 100)
        (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 107\n")
    else:
        found = {"v0": "0.8.2.2", "v1": "0.10.2.2"}
        plan = plan_of(golden.ROOT / "logs" / found[request.param])
        return max(plan.partitions, key=lambda each: each.survey.records)
    return plan_of(tmp_path).partitions[0]


def offsets_of(partition: PlannedPartition) -> list[int]:
    """Return the offsets that clients see, by another way."""
    from kseg import open as open_partition

    log = open_partition(partition.source.log.path)
    found = [record.offset for record in log.records(isolation="read_committed")]
    return [offset for offset in found if offset >= partition.source.first_offset]


def test_each_offset_is_translated(partition: PlannedPartition) -> None:
    offsets = offsets_of(partition)
    assert partition.survey.records == len(offsets)
    for offset in range(offsets[-1] + 3):
        assert translate(partition.source, partition.survey, offset) == bisect_left(offsets, offset), offset


def test_it_can_be_read_from_any_record_on(partition: PlannedPartition) -> None:
    source, survey = partition.source, partition.survey
    everything = [each for part in parts_of(source, survey, 0) for each in records_of(part)]
    assert len(everything) == survey.records
    for first in range(0, survey.records + 1, max(survey.records // 50, 1)):
        assert [each for part in parts_of(source, survey, first) for each in records_of(part)] == everything[first:]
