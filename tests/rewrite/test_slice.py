"""`slice` as a library: kept, copied and rebuilt batches."""

import os
from dataclasses import astuple
from pathlib import Path

import pytest

from kseg import Segment
from kseg.errors import KsegError
from kseg.formats.codes import BATCH_HEADER_SIZE, Codec
from kseg.log.partition import PartitionLog
from kseg.log.segments import RollSettings
from kseg.log.writer import PartitionSettings
from kseg.reading.blocks import Damage
from kseg.rewrite.build import build_partition
from kseg.rewrite.reindex import Comparison, reindex_partition
from kseg.rewrite.slice import Sliced, SliceSettings, slice_partition
from kseg.writer.batches import BatchSettings
from kseg.writer.text_source import SourceRecord
from tests import golden, run
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.loops import for_each

PARTITION = golden.ROOT / "docs" / "test-1-0"
WHOLE = [
    path
    for path in sorted({path.parent for path in golden.files(".log") if "/logs/" in str(path)})
    if PartitionLog(path).segments
]


def cut(source: Path, target: Path, **settings: object) -> Sliced:
    target.mkdir()
    return slice_partition(PartitionLog(source), target, SliceSettings(**settings))  # type: ignore[arg-type]


def offsets(directory: Path) -> list[int]:
    found = []
    for path in sorted(directory.glob("*.log")):
        with Segment(path) as segment:
            found += [record.offset for record in segment.records(control=None)]
    return found


def is_damaged(directory: Path) -> bool:
    for path in directory.glob("*.log"):
        with Segment(path) as segment:
            if any(isinstance(item, Damage) and item.kind != "zero-tail" for item in segment.scan()):
                return True
    return False


@for_each("source", WHOLE, ids=lambda path: str(path.relative_to(golden.ROOT)))
def test_a_slice_without_bounds_is_the_whole(source: Path, tmp_path: Path) -> None:
    assert not is_damaged(source)
    cut(source, tmp_path / "t-0")
    logs = {path.name: path for path in source.glob("*.log") if path.stat().st_size}
    content = b"".join(logs[name].read_bytes() for name in sorted(logs))
    copied = b"".join(path.read_bytes() for path in sorted((tmp_path / "t-0").glob("*.log")))
    assert copied == content


def test_offsets_that_fall_are_left_to_salvage(tmp_path: Path) -> None:
    (tmp_path / "s-0").mkdir()
    batch = (PARTITION / "00000000000000203000.log").read_bytes()[:2987]
    (tmp_path / "s-0" / "00000000000000203000.log").write_bytes(batch * 2)
    with pytest.raises(KsegError, match="at position 2987: offset 203000 doesn't increase"):
        cut(tmp_path / "s-0", tmp_path / "t-0")


def test_whole_batches_around_the_offsets_are_kept(tmp_path: Path) -> None:
    cut(PARTITION, tmp_path / "t-0", from_offset=203150, to_offset=203300)
    kept = offsets(tmp_path / "t-0")
    assert (kept[0], kept[-1]) == (203100, 203299)
    assert (tmp_path / "t-0" / "00000000000000203100.log").exists()
    assert run.kseg(["verify", "t-0"], tmp_path).stdout == b"ok\n"


def test_markers_stay_with_their_transactions_whatever_their_times(tmp_path: Path) -> None:
    source = golden.ROOT / "logs" / "2.3.1" / "txn-1"
    records = {record.offset: record for path in source.glob("*.log") for record in Segment(path).records(control=None)}
    ends = {106: 103, 109: 107}
    latest = max(
        record.timestamp for record in records.values() if 103 <= record.offset < 109 and record.offset not in ends
    )
    assert all(records[offset].timestamp > latest for offset in ends)  # a broker's clock, later than the producers'
    sliced = cut(source, tmp_path / "t-0", to_ms=latest + 1)
    assert {106, 109} <= set(offsets(tmp_path / "t-0"))
    assert not {1000, 5} & sliced.open_transactions.keys()
    assert cut(source, tmp_path / "u-0", to_offset=106).open_transactions == {9: 98, 1000: 103}


def test_batches_are_kept_by_their_times(tmp_path: Path) -> None:
    with Segment(PARTITION / "00000000000000203000.log") as segment:
        batches = list(segment.batches())
    cut(PARTITION, tmp_path / "t-0", from_ms=batches[2].max_timestamp, to_ms=batches[4].base_timestamp)
    assert offsets(tmp_path / "t-0") == list(range(batches[2].base_offset, batches[3].last_offset + 1))


def test_indexes_of_a_slice_are_a_brokers(tmp_path: Path) -> None:
    source = golden.ROOT / "logs/4.3.1-tiered/__transaction_state-1"
    cut(source, tmp_path / "t-0")
    assert {path.name: path.read_bytes() for path in (tmp_path / "t-0").iterdir()} == {
        path.name: path.read_bytes() for path in source.iterdir()
    }


def build(directory: Path, **settings: object) -> None:
    directory.mkdir()
    records = [SourceRecord(1, None, 1000 + n, b"k%d" % (n % 10), b"v" * 100, (("h", b"x"),)) for n in range(100)]
    if settings.get("magic") in (0, 1):
        records = [record._replace(headers=()) for record in records]
    batches = BatchSettings(0, batch_records=20, **settings)  # type: ignore[arg-type]
    build_partition(records, directory, batches=batches, partition=PartitionSettings(RollSettings(segment_bytes=6000)))


@pytest.mark.parametrize("codec", [Codec.NONE, Codec.GZIP, Codec.LZ4])
@pytest.mark.parametrize("magic", [0, 1, 2])
def test_single_records_are_left_out(magic: int, codec: Codec, tmp_path: Path) -> None:
    build(tmp_path / "s-0", magic=magic, codec=codec)
    sliced = cut(tmp_path / "s-0", tmp_path / "t-0", drop_offsets=frozenset({1, 39, 55}))
    assert offsets(tmp_path / "t-0") == [n for n in range(100) if n not in (1, 39, 55)]
    assert sliced.dropped == 3
    if magic == 2:
        assert (sliced.rebuilt, sliced.copied) == (3, 2)
        assert run.kseg(["verify", "t-0"], tmp_path).status == 0


def test_records_of_a_key_are_left_out(tmp_path: Path) -> None:
    build(tmp_path / "s-0")
    sliced = cut(tmp_path / "s-0", tmp_path / "t-0", drop_keys=frozenset({b"k3"}))
    assert offsets(tmp_path / "t-0") == [n for n in range(100) if n % 10 != 3]
    assert sliced.dropped == 10


def test_what_is_left_of_a_batch_stays_as_it_is(tmp_path: Path) -> None:
    build(tmp_path / "s-0", codec=Codec.ZSTD, producer_id=5, producer_epoch=1, sequence=7)
    cut(tmp_path / "s-0", tmp_path / "t-0", drop_offsets=frozenset({19}))
    with Segment(tmp_path / "s-0" / f"{0:020}.log") as before, Segment(tmp_path / "t-0" / f"{0:020}.log") as after:
        one, other = next(before.batches()), next(after.batches())
    assert [astuple(record)[:7] for record in other.records()] == [astuple(record)[:7] for record in one.records()][:-1]
    assert (other.last_offset, other.base_sequence, other.count, other.max_timestamp) == (19, 7, 19, 1018)


def test_a_batch_that_loses_all_stays_empty(tmp_path: Path) -> None:
    build(tmp_path / "s-0", codec=Codec.GZIP)
    cut(tmp_path / "s-0", tmp_path / "t-0", drop_offsets=frozenset(range(20)))
    with Segment(tmp_path / "t-0" / f"{0:020}.log") as segment:
        batch = next(segment.batches())
    assert (batch.size, batch.count, batch.codec, batch.last_offset, batch.is_valid) == (61, 0, 0, 19, True)


def test_data_never_enters_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "s-0").mkdir()
    large = [SourceRecord(1, None, n, None, bytes(200_000)) for n in range(50)]
    build_partition(large, tmp_path / "s-0", batches=BatchSettings(0))
    read = 0
    own_pread = os.pread

    def pread(descriptor: int, size: int, position: int) -> bytes:
        nonlocal read
        content = own_pread(descriptor, size, position)
        read += len(content)
        return content

    monkeypatch.setattr(os, "pread", pread)
    cut(tmp_path / "s-0", tmp_path / "t-0")
    assert (tmp_path / "t-0" / f"{0:020}.log").stat().st_size > 10_000_000
    assert 0 < read < 30_000


def test_a_piece_that_is_copied_in_several_stretches_is_the_same(tmp_path: Path) -> None:
    """The first batch is omitted, one in the middle is emptied, and the others are more than is copied at once."""
    batches = [NewBatch([NewRecord(b"key", bytes([number]) * (4 << 20))], number) for number in range(22)]
    log = write_segment(tmp_path / "orders-0", batches)
    sliced = cut(log.parent, tmp_path / "new-0", from_offset=1, drop_offsets=frozenset({6}))
    sizes = [len(batch_bytes(batch)) for batch in batches]
    content = log.read_bytes()
    before, after = content[sizes[0] : sum(sizes[:6])], content[sum(sizes[:7]) :]
    written = (tmp_path / "new-0" / f"{1:020}.log").read_bytes()
    assert (written[: len(before)], written[len(before) + BATCH_HEADER_SIZE :]) == (before, after)
    assert (sliced.copied, sliced.rebuilt) == (20, 1)
    (again,) = reindex_partition(PartitionLog(tmp_path / "new-0"))
    assert set(again.compared.values()) == {Comparison.SAME}
