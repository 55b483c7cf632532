"""`verify` checks only batches with an event; checking every batch finds the same."""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.findings.findings import Finding
from kseg.kernel.contract import LEAST
from kseg.kernel.fold_contract import HeaderFold
from kseg.log.partition import PartitionLog
from kseg.rewrite.reindex import reindex_partition
from kseg.verify import verify
from kseg.verify.verify import plan_verification
from tests import golden
from tests.log_files import NewBatch, NewRecord, marker, write_segment
from tests.loops import examples, for_each

DIRECTORIES = sorted((golden.ROOT / "logs").iterdir())
DAMAGED = [path for path in golden.damaged_files(".log") if path.stat().st_size < 1 << 20]
EDITED_LOGS = examples(150)


@pytest.fixture
def every_batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """Yield a patch that makes every batch checked."""
    with monkeypatch.context() as patch:
        yield patch


def look_at_all(_: object, fold: HeaderFold) -> None:
    fold.offset_bound = LEAST


def findings(partition: PartitionLog) -> list[Finding]:
    return sorted(verify.verify_partition(partition).findings, key=repr)


def assert_same(path: Path, patch: pytest.MonkeyPatch) -> int:
    """Compare a partition's findings both ways; return their number."""
    found = findings(PartitionLog(path))
    with patch.context() as looking_at_all:
        looking_at_all.setattr(verify._SegmentChecks, "watch", look_at_all)
        assert findings(PartitionLog(path)) == found, path
    return len(found)


@for_each("directory", DIRECTORIES, ids=lambda path: path.name)
def test_healthy_partitions(directory: Path, every_batch: pytest.MonkeyPatch) -> None:
    for order in plan_verification([directory], lambda _: None).orders:
        assert_same(order.path, every_batch)


def test_damaged_logs(tmp_path: Path, every_batch: pytest.MonkeyPatch) -> None:
    count = 0
    for path in DAMAGED:
        partition = tmp_path / f"{path.parent.name}-{path.stem}-0"
        partition.mkdir()
        (partition / f"{0:020}.log").write_bytes(path.read_bytes())
        count += assert_same(partition, every_batch)
    assert count > 100


def test_edited_logs(tmp_path: Path, every_batch: pytest.MonkeyPatch) -> None:
    """Hundreds of small batches, with irregularities here and there, in the log or its indexes."""
    draw = random.Random(5)
    ids = set()
    for number in range(EDITED_LOGS):
        topic = "__consumer_offsets" if number % 2 else "orders"  # the first may be compacted
        partition = tmp_path / f"{topic}-{number}"
        partition.mkdir()
        write_segment(partition, odd_batches(draw))
        for _ in reindex_partition(PartitionLog(partition), partition, interval=draw.choice([0, 100, 1000])):
            pass
        if number % 3 == 0:
            damage(partition / f"{0:020}{draw.choice(['.index', '.timeindex'])}", draw)
        if number % 5 == 0:
            damage(partition / f"{0:020}.log", draw)
        assert_same(partition, every_batch)
        ids |= {finding.id for finding in findings(PartitionLog(partition))}
    assert {"offsets-fall", "index-entry", "time-index-entry", "sequence-gap", "leader-epoch-falls"} <= ids


def odd_batches(draw: random.Random) -> Iterator[NewBatch]:
    """Yield consecutive batches, with a few exceptions."""
    offset, epoch, time, sequences = 0, 0, 1_700_000_000_000, dict.fromkeys(range(-1, 3), 0)
    oddity = draw.choice([0, 0.01, 0.05, 0.3])
    for _ in range(draw.randrange(50, 300)):
        count = draw.randrange(1, 4)
        producer = draw.choice(list(sequences))
        batch = NewBatch(
            [NewRecord(draw.choice([b"key", None]), b"value", time + number) for number in range(count)],
            offset,
            producer,
            producer_epoch=0 if producer >= 0 else -1,
            partition_leader_epoch=epoch,
            base_sequence=sequences[producer],
        )
        if draw.random() < oddity:
            batch = odd(batch, draw)
        yield batch
        sequences[producer] += count
        offset += count
        time += draw.choice([0, 1, 1000])
        offset += draw.random() < oddity / 3
        epoch += draw.random() < oddity / 3


def odd(batch: NewBatch, draw: random.Random) -> NewBatch:
    """Return the batch with a change."""
    return draw.choice(
        [
            batch._replace(base_offset=max(batch.base_offset - draw.randrange(9), 0)),
            batch._replace(partition_leader_epoch=draw.choice([-1, 0, 7])),
            batch._replace(producer_epoch=draw.choice([0, 1, 2])),
            batch._replace(base_sequence=draw.choice([0, 5, 2**31 - 1])),
            batch._replace(is_transactional=True),
            marker(draw.randrange(2), batch._replace(records=())),
            batch._replace(records=[record._replace(timestamp=1_600_000_000_000) for record in batch.records]),
        ]
    )


def damage(path: Path, draw: random.Random) -> None:
    """Change some bytes of a file."""
    content = bytearray(path.read_bytes())
    for _ in range(draw.randrange(1, 4)):
        if content:
            content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)
