"""Source partitions: their offsets in the target, and places from which they can be read on."""

import random
from bisect import bisect_left
from pathlib import Path

import pytest

from kseg.errors import RecordError
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.kernel.record import Record
from kseg.log.writer import PartitionWriter
from kseg.reading.batch import Batch
from kseg.restore.batches import Producer, TargetBatches
from kseg.restore.plan import PlannedPartition
from kseg.restore.source import translate
from kseg.writer.batches import RecordsBuilder
from tests import golden
from tests.kernel.made import BatchHeader, batch
from tests.kernel.made import Record as Made
from tests.log_files import NewBatch, NewRecord, write_segment
from tests.restore.contents import Contents, contents_of
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


def records_of(partition: PlannedPartition) -> list[Record]:
    """Return the records that clients see, by another way."""
    from kseg import open as open_partition

    found = open_partition(partition.source.log.path).records(isolation="read_committed")
    return [record for record in found if record.offset >= partition.source.first_offset]


def offsets_of(partition: PlannedPartition) -> list[int]:
    """Return the offsets of these records."""
    return [record.offset for record in records_of(partition)]


def test_each_offset_is_translated(partition: PlannedPartition) -> None:
    offsets = offsets_of(partition)
    assert partition.survey.records == len(offsets)
    for offset in range(offsets[-1] + 3):
        assert translate(partition.source, partition.survey, offset) == bisect_left(offsets, offset), offset


def contents_from(partition: PlannedPartition, first: int, largest: int = 1 << 20) -> list[Contents]:
    """Return the contents of the target's records from an offset on."""
    batches = list(TargetBatches(partition.source, partition.survey, first, Producer(1, 0), largest))
    assert [each.first for each in batches] == [first, *(each.end for each in batches)][: len(batches)]
    assert all(len(each.content) <= largest for each in batches)
    return [
        contents for each in batches for contents in contents_of(Batch.parse(bytes(each.content), 0, is_valid=True))
    ]


def test_it_can_be_read_from_any_record_on(partition: PlannedPartition) -> None:
    everything = contents_from(partition, 0)
    assert [each[:3] for each in everything] == [
        (each.timestamp, each.key, each.value) for each in records_of(partition)
    ]
    for first in range(0, len(everything) + 1, max(len(everything) // 50, 1)):
        assert contents_from(partition, first) == everything[first:]


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4, Codec.ZSTD])
def test_a_merged_batch_that_becomes_too_large_is_split(codec: Codec, tmp_path: Path) -> None:
    chance = random.Random(1)
    (tmp_path / "t-0").mkdir()
    with PartitionWriter(tmp_path / "t-0") as writer:
        for first in range(0, 50, 5):
            builder = RecordsBuilder(first, codec=codec)
            builder.extend((3, b"k", chance.randbytes(100), [(b"h", None)]) for _ in range(5))
            writer.append(builder.build().raw)
    (partition,) = plan_of(tmp_path).partitions
    assert contents_from(partition, 0, 500) == contents_from(partition, 0)
    with pytest.raises(RecordError, match=r"bytes is larger than max\.message\.bytes, 150"):
        contents_from(partition, 0, 150)


def test_large_batches_are_sent_as_they_are_stored_and_small_ones_are_merged(tmp_path: Path) -> None:
    chance = random.Random(1)
    stored = []
    (tmp_path / "t-0").mkdir()
    with PartitionWriter(tmp_path / "t-0") as writer:
        for size in (9000, 100, 100, 9000):
            builder = RecordsBuilder(len(stored), codec=Codec.ZSTD)
            builder.append(3, b"k", chance.randbytes(size))
            stored.append(builder.build().raw)
            writer.append(stored[-1])
    (partition,) = plan_of(tmp_path).partitions
    first, merged, last = TargetBatches(partition.source, partition.survey, 0, Producer(1, 0), 1 << 20)
    bodies = [bytes(each.content[BATCH_HEADER_SIZE:]) for each in (first, last)]
    assert bodies == [stored[0][BATCH_HEADER_SIZE:], stored[3][BATCH_HEADER_SIZE:]]
    assert (first.record_count, merged.record_count, last.record_count) == (1, 2, 1)


def test_a_batch_of_an_unknown_codec_is_left_out(tmp_path: Path) -> None:
    for number, codecs in enumerate(((5, 0), (0, 5))):
        batches = (batch(BatchHeader(base_offset=each, attributes=codecs[each]), [Made(b"k")]) for each in (0, 1))
        (tmp_path / f"t-{number}").mkdir()
        (tmp_path / f"t-{number}" / f"{0:020}.log").write_bytes(b"".join(batches))
    for partition in plan_of(tmp_path).partitions:
        assert contents_from(partition, 0) == [(0, b"k", None, ())]
