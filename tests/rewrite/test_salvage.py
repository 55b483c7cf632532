"""Salvage compared with an independent brute-force search; and its output has no problems."""

import os
import shutil
from itertools import chain, groupby, pairwise
from operator import itemgetter
from pathlib import Path

import pytest
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg.cluster.cluster import Cluster
from kseg.cluster.replicas import alone
from kseg.errors import UsageError
from kseg.formats.codes import Codec, ControlType
from kseg.kernel.contract import MOST
from kseg.log.partition import PartitionLog
from kseg.reading.batch import Batch, parse_header
from kseg.rewrite.salvage import write_salvage
from kseg.rewrite.salvage_extents import Extent, ExtentBatches
from kseg.rewrite.salvage_plan import Hole, plan_salvage
from kseg.rewrite.salvage_reader import Replica
from kseg.store.target import new_directory
from kseg.verify.verify import verify_partition
from kseg.writer.batches import RecordsBuilder
from tests import golden
from tests.kernel.made import BatchHeader, Record, batch
from tests.log import edits
from tests.log.cleaner_logs import marker
from tests.rewrite.salvaged import GAPS, INNER, intact_batches, may_remain, salvage

DAMAGED = golden.damaged_files(".log")
HEALTHY = [
    "2.3.1/txn-1",
    "3.6.2/plain-1",
    "0.8.2.2/plain-1",
    "1.1.1/v1-gzip-0",
    "2.0.1/compacted-0",
    "4.3.1/zstd-0",
    "4.3.1/meta.9-0",
]


def test_damaged_corpus_has_so_many_intact_batches() -> None:
    assert (len(DAMAGED), sum(len(intact_batches(log.read_bytes())) for log in DAMAGED)) == (295, 2395)


def test_all_that_may_remain_is_documented() -> None:
    opened = {"hanging-transaction", "long-transaction"}
    assert may_remain() == GAPS | INNER | opened | {"max-timestamp", "checkpoint-beyond-end"}


def test_dropped_batches_are_lost(restored: Path, tmp_path: Path) -> None:
    kept = salvage([restored / "damaged" / "066-codec-5"], tmp_path / "kept")
    dropped = salvage([restored / "damaged" / "066-codec-5"], tmp_path / "dropped", drop_unreadable=True)
    assert [problem.id for _, problem in kept.inner_problems] == ["bad-codec"]
    assert dropped.inner_problems == ()
    assert [found.loss.reason for found in dropped.losses] == ["bad-codec"]
    assert dropped.batch_count == kept.batch_count - 1
    assert not dropped.is_whole


def spoil_codec(log: Path, number: int) -> tuple[int, int]:
    """Mark a batch as gzip, which its records aren't; return its position and size."""
    position, size = list(edits.v2_batches(log))[number]
    data = bytearray(log.read_bytes())
    data[position + 22] |= 1
    data[position + 17 : position + 21] = calc_crc32c(bytes(data[position + 21 : position + size])).to_bytes(4, "big")
    log.write_bytes(data)
    return position, size


def test_problem_inside_a_batch_is_reported_of_the_one_that_is_kept(tmp_path: Path) -> None:
    """It is in the log twice, and in another replica; one is kept."""
    sources = [edits.copy_partition(tmp_path / name, "3.6.2/plain-1") for name in ("a", "b")]
    logs = [edits.logs(source)[0] for source in sources]
    for log in logs:
        position, size = spoil_codec(log, 2)
    data = logs[0].read_bytes()
    end = position + size
    logs[0].write_bytes(data[:end] + data[position:end] + data[end:])
    plan = salvage(sources, tmp_path / "saved")
    assert plan.duplicates
    assert [problem.id for _, problem in plan.inner_problems] == ["bad-body"]


def test_replica_fills_what_is_dropped(tmp_path: Path) -> None:
    sources = [edits.copy_partition(tmp_path / name, "3.6.2/plain-1") for name in ("a", "b")]
    log = edits.logs(sources[0])[0]
    spoil_codec(log, 2)
    plan = salvage(sources, tmp_path / "saved", drop_unreadable=True)
    assert plan.holes == ()
    for path in edits.logs(sources[1]):
        assert (tmp_path / "saved" / "plain-1" / path.name).read_bytes() == path.read_bytes()


def test_hole_without_damage_is_reported(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "2.8.2/idem-0")
    log = edits.logs(source)[0]
    data, batches = log.read_bytes(), list(edits.v2_batches(log))
    position, size = batches[2]
    log.write_bytes(data[:position] + data[position + size :])
    (hole,) = plan_salvage(alone(PartitionLog(source))).holes
    assert (hole.reason, hole.next_good) == ("missing", (hole.last or 0) + 1)


@pytest.mark.parametrize("name", HEALTHY)
def test_healthy_partition_comes_back_byte_for_byte(name: str, tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, name)
    plan = salvage([source], tmp_path / "saved")
    saved = tmp_path / "saved" / source.name
    assert plan.is_whole
    assert {path.name: path.read_bytes() for path in edits.logs(saved)} == {
        path.name: path.read_bytes() for path in edits.logs(source)
    }
    assert [finding.id for finding in verify_partition(PartitionLog(saved)).findings if finding.counts] == []


def test_transactions_and_producers_are_indexed_again(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "2.3.1/txn-1")
    salvage([source], tmp_path / "saved")
    saved = tmp_path / "saved" / source.name
    # The first segment begins with a transaction whose start retention deleted; the last segment's are complete.
    name = "00000000000000000086.txnindex"
    assert (saved / name).read_bytes() == (source / name).read_bytes()
    assert (saved / "leader-epoch-checkpoint").read_bytes() == (source / "leader-epoch-checkpoint").read_bytes()
    assert len(list(saved.glob("*.snapshot"))) == 2


def test_log_end_offset_of_an_empty_active_segment_is_kept(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    (source / "00000000000000000160.log").write_bytes(b"")
    for path in edits.logs(source)[:2]:
        path.unlink()
    plan = salvage([source], tmp_path / "saved")
    assert plan.is_whole
    assert PartitionLog(tmp_path / "saved" / "plain-1").read_log_end_offset() == 160


def test_metadata_log_keeps_its_snapshots(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/__cluster_metadata-0")
    salvage([source], tmp_path / "saved")
    kept = {path.name: path.read_bytes() for path in (tmp_path / "saved" / source.name).glob("*.checkpoint")}
    assert kept
    assert kept == {path.name: path.read_bytes() for path in source.glob("*.checkpoint")}


def test_topic_id_is_copied(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    salvage([source], tmp_path / "saved")
    copied = tmp_path / "saved" / "plain-1" / "partition.metadata"
    assert copied.read_bytes() == (source / "partition.metadata").read_bytes()


def test_hole_says_what_is_lost_and_where_good_offsets_go_on(restored: Path) -> None:
    plan = plan_salvage(alone(PartitionLog(restored / "damaged" / "210-wiped-batch")))
    assert plan.holes == (Hole(21938, 21938, 21939, "damage"),)
    assert [(found.loss.position, found.loss.size, found.loss.reason) for found in plan.losses] == [
        (237, 107, "bad-length")
    ]


def test_end_that_a_checkpoint_knows_of_is_lost(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    os.truncate(edits.logs(source)[-1], edits.logs(source)[-1].stat().st_size - 1)
    edits.write_checkpoint(source, "replication-offset-checkpoint", 160)
    (hole,) = plan_salvage(alone(PartitionLog(source))).holes
    assert (hole.last, hole.next_good) == (159, None)


def damaged_copy(directory: Path, number: int) -> Path:
    """Return the same partition, with batch `number` of its first log broken."""
    partition = edits.copy_partition(directory, "3.6.2/plain-1")
    log = edits.logs(partition)[0]
    data = bytearray(log.read_bytes())
    position, size = list(edits.v2_batches(log))[number]
    data[position + size - 1] ^= 1
    log.write_bytes(data)
    return partition


def test_replicas_fill_each_others_holes(tmp_path: Path) -> None:
    sources = [damaged_copy(tmp_path / str(number), number) for number in (1, 4, 7)]
    plan = salvage(sources, tmp_path / "saved")
    whole = golden.ROOT / "logs" / "3.6.2" / "plain-1"
    assert plan.holes == ()
    for path in edits.logs(whole):
        assert (tmp_path / "saved" / "plain-1" / path.name).read_bytes() == path.read_bytes()


def test_segment_that_one_replica_lacks_comes_from_the_other(tmp_path: Path) -> None:
    sources = [edits.copy_partition(tmp_path / name, "3.6.2/plain-1") for name in ("a", "b")]
    edits.logs(sources[0])[0].unlink()
    edits.logs(sources[1])[-1].unlink()
    salvage(sources, tmp_path / "saved")
    for path in edits.logs(golden.ROOT / "logs" / "3.6.2" / "plain-1"):
        assert (tmp_path / "saved" / "plain-1" / path.name).read_bytes() == path.read_bytes()


def test_batches_out_of_order_are_put_in_order(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    log = edits.logs(source)[0]
    data = log.read_bytes()
    (second, second_size), (third, third_size) = list(edits.v2_batches(log))[2:4]
    end = third + third_size
    log.write_bytes(data[:second] + data[third:end] + data[second : second + second_size] + data[end:])
    plan = salvage([source], tmp_path / "saved")
    assert (plan.unplaced, plan.duplicates) == ((), 0)
    assert (tmp_path / "saved" / "plain-1" / log.name).read_bytes() == data


def test_batch_whose_offset_was_raised_costs_no_other(tmp_path: Path) -> None:
    """No CRC covers a v2 batch's base offset: a wrong one must not make all following ones look too low."""
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    log = edits.logs(source)[0]
    count = sum(len(list(edits.v2_batches(each))) for each in edits.logs(source))
    edits.edit_batch(log, 1, base_offset=1 << 20)
    plan = salvage([source], tmp_path / "saved")
    assert plan.batch_count == count - 1
    assert [extent.batch_count for extent in plan.unplaced] == [1]
    assert len(list((tmp_path / "saved" / "lost+found" / "plain-1").iterdir())) == 1


def test_impossible_leader_epoch_is_left_out_of_the_checkpoint(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    whole = (source / "leader-epoch-checkpoint").read_bytes()
    edits.edit_batch(edits.logs(source)[0], 1, partition_leader_epoch=1 << 20)
    salvage([source], tmp_path / "saved")
    assert (tmp_path / "saved" / "plain-1" / "leader-epoch-checkpoint").read_bytes() == whole


def test_nothing_is_left_of_a_salvage_that_fails(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path / "source", "3.6.2/plain-1")
    (found,) = Cluster([source]).partitions()
    plan = plan_salvage(found)
    edits.logs(source)[-1].unlink()
    out = tmp_path / "out"
    out.mkdir()
    with pytest.raises(Exception, match="No such file"), new_directory(out / "saved") as target:
        write_salvage(plan, target)
    assert list(out.iterdir()) == []


def test_directory_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError, match="already exists"), new_directory(tmp_path):
        pass


def test_empty_directory_is_taken(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "saved", ignore_errors=True)
    (tmp_path / "saved").mkdir()
    plan = salvage([golden.ROOT / "logs" / "3.6.2" / "plain-1"], tmp_path / "saved")
    assert plan.is_whole
    assert (tmp_path / "saved" / "plain-1").is_dir()


# --- extents ------------------------------------------------------------------------------------------------------

STEPS = st.sampled_from([0] * 12 + [1, 1, -3, 2**31, -(2**40), MOST])
"""Distances between the last offset of a batch and the next one."""
SHAPES = st.sampled_from(["usual"] * 12 + ["control", "empty", "sparse", "falling", "cut", "gzip", "message", "spoilt"])
LOGS = st.lists(st.tuples(STEPS, SHAPES, st.sampled_from([3, 3, 3, 3, 4, -1])), min_size=1, max_size=30)


def entry(offset: int, shape: str, epoch: int) -> bytes:
    """Return a batch or message of two records, or of none, with the problem of its shape."""
    if shape == "control":
        return marker(offset, ControlType.COMMIT, 1)
    if shape in ("gzip", "message"):
        builder = RecordsBuilder(
            offset, magic=1 if shape == "message" else 2, codec=Codec.NONE if shape == "message" else Codec.GZIP
        )
        builder.append(1, b"k", b"v")
        return builder.build().raw
    deltas = {"sparse": (0, 3), "falling": (1, 0), "empty": ()}.get(shape, (0, 1))
    header = BatchHeader(
        offset, epoch, last_offset_delta=3 if shape == "sparse" else 1, count=3 if shape == "cut" else None
    )
    raw = batch(header, [Record(b"k", b"v", offset_delta=delta) for delta in deltas])
    return raw[:-1] + bytes([raw[-1] ^ 1]) if shape == "spoilt" else raw


def made_log(drawn: list[tuple[int, str, int]]) -> bytes:
    """Return the log of such batches; an offset beyond 64 bits wraps to near 0."""
    entries, following = [], 5
    for step, shape, epoch in drawn:
        offset = following + step if -(2**63) <= following + step <= MOST - 4 else 7
        entries.append(entry(offset, shape, epoch))
        following = parse_header(entries[-1], 0, 0).last_offset + 1
    return b"".join(entries)


def epochs_of(batches: list[Extent]) -> list[tuple[int, int, int]]:
    """Return runs of epochs: epoch, first offset, and count of batches."""
    known = [run for each in batches for run in each.epochs]
    groups = (list(group) for _, group in groupby(known, key=itemgetter(0)))
    return [(group[0].epoch, group[0].first_offset, len(group)) for group in groups]


@settings(max_examples=150, deadline=None)
@given(drawn=LOGS, name=st.sampled_from(["fast", "twin"]), drop=st.booleans())
def test_extents_are_what_their_batches_are(
    drawn: list[tuple[int, str, int]], name: str, drop: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    directory = tmp_path_factory.mktemp("any") / "t-0"
    directory.mkdir()
    log = directory / f"{5:020}.log"
    log.write_bytes(made_log(drawn))
    expected = intact_batches(log.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSEG_KERNEL", name)
        replica = Replica(PartitionLog(directory), drop_unreadable=drop)
        with ExtentBatches() as reading:
            by_extent = [list(reading.of(extent)) for extent in replica.extents]
    batches = sorted(chain(replica.misplaced, *by_extent), key=lambda each: each.position)
    data = log.read_bytes()
    good = [raw for raw in expected if not is_bad_inside(raw)]
    assert len(replica.inner_problems) == (0 if drop else len(expected) - len(good))
    assert [data[each.position : each.end] for each in batches] == (good if drop else expected)
    assert sum(each.size for each in batches) + sum(replica.lost_bytes().values()) == len(data)
    assert all(not 5 <= each.first_offset <= each.last_offset < 5 + 2**31 for each in replica.misplaced)
    for extent, found in zip(replica.extents, by_extent, strict=True):
        assert list(extent.epochs) == epochs_of(found)
        assert (extent.batch_count, extent.end) == (len(found), found[-1].end)
        assert (extent.first_offset, extent.last_offset) == (found[0].first_offset, found[-1].last_offset)
        assert all(a.last_offset + 1 == b.first_offset and a.end == b.position for a, b in pairwise(found))
    for before, extent in pairwise(replica.extents):
        assert extent.follows_loss or before.last_offset + 1 != extent.first_offset


def is_bad_inside(raw: bytes) -> bool:
    """Return True if some records are unreadable, or don't increase within the header's offsets."""
    read = Batch.parse(raw, 0, is_valid=True)
    if read.problem() is not None:
        return True
    offsets = [record.offset for record in read.records()]
    return offsets != sorted(set(offsets)) or any(not read.base_offset <= each <= read.last_offset for each in offsets)
