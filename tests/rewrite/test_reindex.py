"""Rebuilt indexes, compared with those that brokers wrote."""

from pathlib import Path

from kseg.index.entries import OffsetIndex
from kseg.log.partition import PartitionLog
from kseg.rewrite.reindex import Comparison, reindex_partition
from tests import golden
from tests.log import edits

LOGS = golden.ROOT / "logs"


def reindex(partition: Path, directory: Path, interval: int = 4096) -> None:
    directory.mkdir()
    for _ in reindex_partition(PartitionLog(partition), directory, interval=interval):
        pass


def test_broker_of_4_1_on_wrote_the_same(tmp_path: Path) -> None:
    """From 4.1 on an entry names its batch, so that it follows from the log."""
    source = LOGS / "4.3.1" / "__cluster_metadata-0"
    reindex(source, tmp_path / "new")
    for path in (tmp_path / "new").iterdir():
        assert path.read_bytes() == (source / path.name).read_bytes()


def test_missing_and_differing_indexes_are_reported_apart(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "4.3.1/__cluster_metadata-0")
    (log,) = edits.logs(source)
    log.with_suffix(".index").unlink()
    log.with_suffix(".timeindex").write_bytes(bytes(range(12)))
    (each,) = reindex_partition(PartitionLog(source))
    assert each.compared == {".index": Comparison.MISSING, ".timeindex": Comparison.WRONG}


def test_transaction_goes_on_from_one_segment_to_the_next(tmp_path: Path) -> None:
    """The last segment's aborted transactions began in the preceding segment."""
    source = LOGS / "2.3.1" / "txn-1"
    reindex(source, tmp_path / "new")
    name = "00000000000000000086.txnindex"
    assert (tmp_path / "new" / name).read_bytes() == (source / name).read_bytes()


def test_indexes_end_at_the_damage(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    log = edits.logs(source)[0]
    position, size = list(edits.v2_batches(log))[4]
    data = bytearray(log.read_bytes())
    data[position + size - 1] ^= 1
    log.write_bytes(data)
    first, last = reindex_partition(PartitionLog(source), interval=100)
    assert first.damage is not None
    assert (first.damage.kind, first.indexes.valid_size) == ("bad-crc", position)
    assert last.damage is None


def test_preallocated_tail_is_no_damage(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    log = edits.logs(source)[-1]
    size = log.stat().st_size
    log.write_bytes(log.read_bytes() + bytes(1000))
    *_, last = reindex_partition(PartitionLog(source))
    assert (last.damage, last.indexes.valid_size) == (None, size)


def test_smaller_interval_gives_more_entries(tmp_path: Path) -> None:
    counts = []
    for interval in (100, 4096):
        reindex(LOGS / "3.6.2" / "plain-1", tmp_path / str(interval), interval)
        with OffsetIndex(tmp_path / str(interval) / "00000000000000000000.index") as index:
            counts.append(index.count)
    assert counts[0] > counts[1] > 0
