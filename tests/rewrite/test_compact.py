"""`compact` as a library: the result of the log cleaner, rule by rule, on logs made by hand."""

import os
import tracemalloc
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kseg import Segment
from kseg.errors import KsegError
from kseg.formats.codes import Codec, ControlType
from kseg.kernel.record import Record
from kseg.kernel.statistics_contract import ENTRY_SIZE
from kseg.log.committed import read_committed
from kseg.log.compaction_plan import (
    Aborted,
    BatchCleaner,
    CleanedTransactions,
    CompactSettings,
    OffsetMap,
    RemovalReason,
    TombstoneRetention,
    plan_compaction,
)
from kseg.log.partition import PartitionLog
from kseg.reading.batch import parse_header
from kseg.rewrite.compact import Compacted, compact_partition
from kseg.writer.batches import RecordsBuilder
from tests import golden, run
from tests.log.cleaner_logs import NOW, Pair, batch, batches, make, marker, produce_batch, records
from tests.loops import examples, for_each

DAY = 86_400_000
SMALL_MAP = 4 * ENTRY_SIZE
"""Room for three keys."""


def kept_fields(record: Record) -> tuple[object, ...]:
    """Return values that cleaning doesn't change: all but the sequence, the batch's place and its checksum."""
    return astuple(record)[:6]


def clean(partition: PartitionLog, **fields: int) -> Compacted:
    """Clean into `cleaned`, next to the partition; by default its idle producers are forgotten."""
    target = partition.path.parent / "cleaned" / partition.path.name
    target.mkdir(parents=True)
    (target.parent / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 1\n")  # the broker's note about its cleaner
    return compact_partition(partition, CompactSettings(**{"now_ms": NOW + 2 * DAY, **fields}), target)


def cleaned_of(partition: PartitionLog) -> Path:
    return partition.path.parent / "cleaned" / partition.path.name


def offsets(partition: PartitionLog) -> list[int]:
    """Return offsets of the remaining records, without the active segment's."""
    return [each.offset for each in records(cleaned_of(partition)) if each.key != b"active"]


def is_well(partition: PartitionLog) -> bool:
    """Return True if verify finds no error and no warning; gaps from compaction are notes."""
    return run.kseg(["verify", str(cleaned_of(partition))], golden.ROOT).status == 0


# --- keys ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", list(Codec))
def test_the_last_record_of_each_key_stays_at_its_offset(codec: Codec, tmp_path: Path) -> None:
    first = batch(0, ("a", "1"), ("b", "1"), ("a", "2"), codec=codec)
    partition = make(tmp_path / "t-0", [first], [batch(3, ("b", "2"), ("c", "1"), codec=codec)])
    done = clean(partition)
    assert offsets(partition) == [2, 3, 4]
    assert (done.kept, done.gone) == (3, {RemovalReason.SUPERSEDED: 2})
    assert is_well(partition)


@pytest.mark.parametrize(("magic", "codec"), [(0, Codec.GZIP), (1, Codec.GZIP), (1, Codec.LZ4), (0, Codec.NONE)])
def test_wrappers_keep_their_format_and_gaps_inside(magic: int, codec: Codec, tmp_path: Path) -> None:
    raw = batch(10, ("a", "1"), ("b", "1"), ("a", "2"), ("c", "1"), ("b", "2"), magic=magic, codec=codec)
    partition = make(tmp_path / "t-0", [raw])
    clean(partition)
    assert offsets(partition) == [12, 13, 14]
    kept = batches(cleaned_of(partition))[:-1]
    assert {each.magic for each in kept} == {magic}
    assert len(kept) == (1 if codec else 3)


def test_headers_times_and_sequences_stay(tmp_path: Path) -> None:
    builder = RecordsBuilder(0, producer_id=7, producer_epoch=2, base_sequence=5, partition_leader_epoch=3)
    for number, key in enumerate((b"a", b"b", b"a", b"c")):
        builder.append(NOW + number * 1000, key, b"v", (("h", None), (b"\xff", b"x")))
    before = list(builder.build().deep())
    partition = make(tmp_path / "t-0", [builder.build().raw], [batch(4, ("c", "w"))])
    clean(partition)
    first = batches(cleaned_of(partition))[0]
    assert [astuple(each)[:7] for each in first.records()] == [astuple(each)[:7] for each in before[1:3]]
    assert (first.base_offset, first.last_offset, first.base_sequence, first.count) == (0, 3, 5, 2)
    assert (first.base_timestamp, first.max_timestamp) == (NOW + 1000, NOW + 2000)
    assert b"\xff" in first.raw


def test_batches_that_lose_nothing_stay_byte_for_byte(tmp_path: Path) -> None:
    whole = batch(0, ("a", "1"), ("b", "1"), codec=Codec.ZSTD)
    partition = make(tmp_path / "t-0", [whole, batch(2, ("c", "1")), batch(3, ("c", "2"))])
    clean(partition)
    assert batches(cleaned_of(partition))[0].raw == whole


def test_records_without_a_key_go_and_are_counted(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, (None, "1"), ("a", "1"), (None, "2"))])
    assert clean(partition).gone == {RemovalReason.NO_KEY: 2}
    assert offsets(partition) == [1]


def test_keys_of_the_active_segment_supersede_nothing(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("active", "old"), ("a", "1"))])
    clean(partition)
    assert [each.offset for each in records(cleaned_of(partition))] == [0, 1, 2, 3]


# --- cleaned ranges ---------------------------------------------------------------------------------------------------


def test_the_active_segment_is_left_alone(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", "2"))])
    before = {path.name: path.read_bytes() for path in partition.path.glob(f"{2:020}.*")}
    clean(partition)
    assert {path.name: path.read_bytes() for path in cleaned_of(partition).glob(f"{2:020}.*")} == before


def test_what_lies_behind_an_open_transaction_is_left_alone(tmp_path: Path) -> None:
    opened = produce_batch(2, ("a", "2"), producer_id=1)
    partition = make(tmp_path / "t-0", [batch(0, ("a", "0"), ("a", "1"))], [opened], [batch(3, ("a", "3"))])
    done = clean(partition)
    assert (done.plan.end_offset, done.plan.why_ends) == (2, "an open transaction")
    assert offsets(partition) == [1, 2, 3]


def test_nothing_beyond_the_high_watermark_is_cleaned(tmp_path: Path) -> None:
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    partition = make(tmp_path / "t-0", [batch(0, ("a", "0"), ("a", "1"))], [batch(2, ("a", "2"), ("a", "3"))])
    assert clean(partition).plan.why_ends == "the high watermark"
    assert offsets(partition) == [1, 2, 3]


def test_segments_younger_than_the_lag_are_left_alone(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "0"), ("a", "1"))])
    done = clean(partition, now_ms=NOW + 100, min_compaction_lag_ms=101)
    assert (done.passes, done.plan.why_ends) == (0, "min.compaction.lag.ms")
    assert offsets(partition) == [0, 1]


@pytest.mark.parametrize(("age_ms", "passes"), [(100, 0), (102, 1)])
def test_segments_without_times_are_as_old_as_their_files(age_ms: int, passes: int, tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "0"), ("a", "1"), magic=0)], modified_ms=NOW - age_ms)
    assert clean(partition, now_ms=NOW, min_compaction_lag_ms=101).passes == passes


def test_cleaning_goes_on_where_the_cleaners_checkpoint_says(tmp_path: Path) -> None:
    (tmp_path / "cleaner-offset-checkpoint").write_text("0\n1\nt 0 2\n")
    partition = make(tmp_path / "t-0", [batch(0, ("a", "0"), ("a", "1"))], [batch(2, ("b", "2"), ("b", "3"))])
    assert clean(partition).plan.first_dirty == 2
    assert offsets(partition) == [0, 1, 3]


def test_a_clean_log_is_copied_as_it_is(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0")
    assert clean(partition).passes == 0
    assert {path.name: path.read_bytes() for path in cleaned_of(partition).iterdir()} == {
        path.name: path.read_bytes() for path in partition.path.iterdir()
    }


# --- tombstones ---------------------------------------------------------------------------------------------------


def test_tombstones_stay_until_their_horizon(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", None))], [batch(2, ("b", "1"))])
    clean(partition, delete_retention_ms=500)
    assert offsets(partition) == [1, 2]
    first = batches(cleaned_of(partition))[0]
    assert (first.delete_horizon_ms, [each.timestamp for each in first.records()]) == (NOW + 2 * DAY + 500, [NOW])
    again = PartitionLog(cleaned_of(partition))
    clean(again, now_ms=NOW + 2 * DAY + 499)
    assert offsets(again) == [1, 2]
    third = PartitionLog(cleaned_of(again))
    clean(third, now_ms=NOW + 2 * DAY + 500)
    assert offsets(third) == [2]


def test_a_horizon_that_is_set_stays(tmp_path: Path) -> None:
    horizon = NOW + 3 * DAY
    raw = batch(0, ("a", None), ("b", "1"), delete_horizon_ms=horizon)
    partition = make(tmp_path / "t-0", [raw, batch(2, ("b", "2"))])
    clean(partition)
    assert [each.delete_horizon_ms for each in batches(cleaned_of(partition))] == [horizon, None, None]
    assert [each.timestamp for each in records(cleaned_of(partition))] == [NOW] * 4


@pytest.mark.parametrize(("age_ms", "stay"), [(1001, [0, 2, 3]), (1000, [0, 2, 3]), (999, [0, 1, 2, 3])])
def test_old_formats_drop_tombstones_by_the_age_of_their_segment(age_ms: int, stay: list[int], tmp_path: Path) -> None:
    first = batch(0, ("z", "1"), ("a", None), magic=1, codec=Codec.GZIP)
    partition = make(tmp_path / "t-0", [first], [batch(2, ("b", "1"), magic=1)], [batch(3, ("c", "1"), magic=1)])
    for base_offset, modified_ms in ((0, NOW), (2, NOW + age_ms)):
        os.utime(partition.path / f"{base_offset:020}.log", ns=(modified_ms * 1_000_000,) * 2)
    clean(PartitionLog(partition.path), first_dirty_offset=3, delete_retention_ms=1000)
    assert offsets(partition) == stay


def test_old_formats_keep_tombstones_of_a_log_never_cleaned(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", None), magic=1, codec=Codec.GZIP)])
    clean(partition, delete_retention_ms=0)
    assert offsets(partition) == [1]


# --- transactions -------------------------------------------------------------------------------------------------


def test_aborted_records_go_and_supersede_nothing(tmp_path: Path) -> None:
    log = [
        batch(0, ("a", "1")),
        produce_batch(1, ("a", "2"), ("b", "1"), producer_id=1),
        marker(3, ControlType.ABORT, 1),
    ]
    partition = make(tmp_path / "t-0", log, [batch(4, ("c", "1"))])
    done = clean(partition)
    assert offsets(partition) == [0, 3, 4]
    assert done.gone == {RemovalReason.ABORTED: 2}
    assert is_well(partition)


def test_an_aborted_transaction_over_several_segments_goes(tmp_path: Path) -> None:
    first = [batch(0, ("a", "1")), produce_batch(1, ("a", "2"), producer_id=1)]
    second = [produce_batch(2, ("a", "3"), producer_id=1), batch(3, ("b", "1")), marker(4, ControlType.ABORT, 1)]
    partition = make(tmp_path / "t-0", first, second, [batch(5, ("c", "1"))])
    clean(partition, segment_bytes=1)
    assert offsets(partition) == [0, 3, 4, 5]
    assert is_well(partition)


@pytest.mark.parametrize("kind", [ControlType.ABORT, ControlType.COMMIT])
def test_markers_stay_until_nothing_is_left_of_their_transaction_and_then_until_their_horizon(
    kind: ControlType, tmp_path: Path
) -> None:
    log = [produce_batch(0, ("a", "1"), producer_id=1), marker(1, kind, 1)]
    partition = make(tmp_path / "t-0", log, [batch(2, ("a", "2"))])
    clean(partition, delete_retention_ms=500)
    assert offsets(partition) == [1, 2]
    assert batches(cleaned_of(partition))[0].delete_horizon_ms is None
    again = PartitionLog(cleaned_of(partition))
    clean(again, delete_retention_ms=500)
    assert batches(cleaned_of(again))[0].delete_horizon_ms == NOW + 2 * DAY + 500
    third = PartitionLog(cleaned_of(again))
    assert clean(third, now_ms=NOW + 2 * DAY + 500).gone == {RemovalReason.MARKER: 1}
    assert offsets(third) == [2]


def test_committed_records_are_like_others(tmp_path: Path) -> None:
    log = [produce_batch(0, ("a", "1"), ("b", "1"), producer_id=1), marker(2, ControlType.COMMIT, 1)]
    partition = make(tmp_path / "t-0", log, [batch(3, ("a", "2"))])
    clean(partition)
    assert offsets(partition) == [1, 2, 3]


# --- empty batches ------------------------------------------------------------------------------------------------


def test_the_last_batch_of_an_active_producer_stays_empty(tmp_path: Path) -> None:
    def log(producer_id: int, base: int) -> list[bytes]:
        return [produce_batch(base + n, ("a", "1"), producer_id=producer_id, is_transactional=False) for n in (0, 1)]

    partition = make(tmp_path / "t-0", [*log(1, 0), *log(2, 2)], [batch(4, ("a", "2"))])
    done = clean(partition, now_ms=NOW + DAY - 1)
    kept = batches(cleaned_of(partition))
    assert [(each.base_offset, each.count, each.producer_id, each.size) for each in kept[:2]] == [
        (1, 0, 1, 61),
        (3, 0, 2, 61),
    ]
    assert (kept[0].base_sequence, kept[0].max_timestamp, kept[0].base_timestamp) == (1, NOW, -1)
    assert done.emptied == 2
    assert is_well(partition)
    again = PartitionLog(cleaned_of(partition))
    assert clean(again, now_ms=NOW + DAY).emptied == 0
    assert offsets(again) == [4]


def test_an_aborted_batch_stays_empty_for_its_producer(tmp_path: Path) -> None:
    log = [produce_batch(0, ("a", "1"), producer_id=1), marker(1, ControlType.ABORT, 1), batch(2, ("b", "1"))]
    partition = make(tmp_path / "t-0", log)
    clean(partition, now_ms=NOW)
    first = batches(cleaned_of(partition))[0]
    assert (first.base_offset, first.count, first.is_transactional, first.codec) == (0, 0, True, 0)


def test_the_last_marker_stays_for_the_epoch_of_a_producer_without_records(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [marker(0, ControlType.COMMIT, 1, NOW - 1), batch(1, ("b", "1"))])
    clean(partition, now_ms=NOW)
    first = batches(cleaned_of(partition))[0]
    assert (first.base_offset, first.count, first.is_control, first.delete_horizon_ms) == (0, 0, True, None)


def test_the_last_offset_stays_in_an_empty_batch(tmp_path: Path) -> None:
    log = [batch(0, ("a", "1")), produce_batch(1, ("a", "2"), producer_id=1), marker(2, ControlType.ABORT, 1)]
    last = batch(3, (None, "1"), (None, "2"))
    partition = make(tmp_path / "t-0", [*log, last])
    clean(partition)
    kept = batches(cleaned_of(partition))[-2]
    assert (kept.base_offset, kept.last_offset, kept.count) == (3, 4, 0)


# --- segments -----------------------------------------------------------------------------------------------------


def test_small_segments_are_joined_as_far_as_sizes_allow(tmp_path: Path) -> None:
    segments = [[batch(number, (f"k{number}", "v" * 20))] for number in range(6)]
    partition = make(tmp_path / "t-0", *segments)
    size = partition.segments[0].size
    done = clean(partition, segment_bytes=4 * size)
    assert [(each.base_offset, each.sources) for each in done.segments] == [(0, (0, 1, 2, 3)), (4, (4, 5))]
    left = PartitionLog(cleaned_of(partition))
    assert left.base_offsets == [0, 4, 6]
    assert list(left.snapshots) == [4, 6, 8]
    assert is_well(partition)


def test_segments_are_not_joined_beyond_31_bits_of_offsets(tmp_path: Path) -> None:
    far = 2**31
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"))], [batch(far, ("b", "1"))])
    assert len(clean(partition).segments) == 2
    assert is_well(partition)


def test_segments_are_not_joined_beyond_the_size_of_indexes(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", *([batch(number, (f"k{number}", "v"))] for number in range(3)))
    assert len(clean(partition, segment_index_bytes=24).segments) == 2


def test_a_segment_that_loses_all_stays_empty_so_that_the_log_begins_where_it_did(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"))], [batch(1, ("a", "2"))])
    clean(partition, segment_bytes=1)
    left = PartitionLog(cleaned_of(partition))
    assert [(each.base_offset, each.size > 0) for each in left.segments] == [(0, False), (1, True), (2, True)]


def test_a_cleaned_segment_has_the_time_of_its_last_source(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"))], [batch(1, ("a", "2"))], modified_ms=NOW - DAY)
    clean(partition)
    assert (cleaned_of(partition) / f"{0:020}.log").stat().st_mtime_ns == (NOW - DAY) * 1_000_000


def test_other_files_of_the_partition_stay(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", "2"))])
    (partition.path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ")
    clean(PartitionLog(partition.path))
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        assert (cleaned_of(partition) / name).read_bytes() == (partition.path / name).read_bytes()


def test_damage_is_left_to_salvage(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", "2"))])
    log = partition.segments[0].path
    log.write_bytes(log.read_bytes()[:-1] + b"?")
    with pytest.raises(KsegError, match="run `kseg salvage` to keep the intact batches"):
        clean(PartitionLog(partition.path))


# --- the offset map -----------------------------------------------------------------------------------------------


def test_the_map_has_the_last_offset_of_each_key() -> None:
    offset_map = OffsetMap(100 * ENTRY_SIZE)
    table = offset_map.table
    for offset in range(180):
        table.put(b"%d" % (offset % 90), offset)
    assert table.is_full
    assert [table.get(b"%d" % key) for key in range(90)] == list(range(90, 180))
    assert table.get(b"other") == -1
    del table
    offset_map.clear()
    table = offset_map.table
    assert (table.get(b"1"), table.is_full, table.latest_offset) == (-1, False, -1)


def test_a_small_partition_doesnt_fill_the_memory_of_a_whole_map(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"), ("a", "2"))], [batch(2, ("b", "1"))])
    compact_partition(partition, CompactSettings(NOW))  # imports and compilation aren't the map's memory
    tracemalloc.start()
    try:
        assert compact_partition(partition, CompactSettings(NOW)).gone == {RemovalReason.SUPERSEDED: 1}
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()


def test_a_map_that_is_too_small_takes_more_passes_to_the_same_end(tmp_path: Path) -> None:
    segments = [[batch(10 * n, *((f"k{(n * m) % 17}", "v") for m in range(10)))] for n in range(10)]
    one, many = (make(tmp_path / name / "t-0", *segments) for name in ("one", "many"))
    whole = clean(one, segment_bytes=400)
    done = clean(many, segment_bytes=400, dedupe_buffer_size=SMALL_MAP)
    assert (whole.passes, done.passes > 20) == (1, True)
    assert records(cleaned_of(one)) != []
    assert [kept_fields(each) for each in records(cleaned_of(many))] == [
        kept_fields(each) for each in records(cleaned_of(one))
    ]
    assert (done.kept, done.gone, done.record_count) == (whole.kept, whole.gone, 100)
    assert is_well(many)
    assert not list(cleaned_of(many).glob(".*"))


@pytest.mark.parametrize("size", [SMALL_MAP, 1 << 16])
def test_counting_alone_counts_the_same_and_writes_nothing(size: int, tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", *([batch(2 * n, (f"k{n}", "v"), ("a", "v"))] for n in range(6)))
    before = sorted(tmp_path.rglob("*"))
    counted = compact_partition(partition, CompactSettings(NOW, dedupe_buffer_size=size))
    assert sorted(tmp_path.rglob("*")) == before
    done = clean(partition, now_ms=NOW, dedupe_buffer_size=size)
    assert (counted.kept, counted.gone, counted.segments) == (done.kept, done.gone, done.segments)
    assert counted.bytes_before > counted.bytes_after > 0


def test_a_map_without_room_for_a_key_is_refused(tmp_path: Path) -> None:
    partition = make(tmp_path / "t-0", [batch(0, ("a", "1"))])
    with pytest.raises(KsegError, match="has no room for a key"):
        clean(partition, dedupe_buffer_size=ENTRY_SIZE)


# --- any log ------------------------------------------------------------------------------------------------------

KEYS = st.sampled_from("abcdefgh")
SOME_BATCHES = st.lists(
    st.tuples(st.lists(st.tuples(KEYS, st.sampled_from(["v", None])), min_size=1, max_size=4), st.booleans()),
    min_size=1,
    max_size=12,
)


def log_of(drawn: Iterable[tuple[list[Pair], bool]]) -> list[list[bytes]]:
    """Return segments of batches; a marked batch ends its segment."""
    segments: list[list[bytes]] = [[]]
    offset = 0
    for pairs, is_end in drawn:
        segments[-1].append(batch(offset, *pairs))
        offset += len(pairs)
        if is_end:
            segments.append([])
    return [each for each in segments if each]


@settings(max_examples=25, deadline=None)
@given(drawn=SOME_BATCHES, map_size=st.sampled_from([SMALL_MAP, 1 << 16]))
def test_what_stays_of_any_log_is_the_last_of_its_key(
    drawn: list[tuple[list[Pair], bool]], map_size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    partition = make(tmp_path_factory.mktemp("any") / "t-0", *log_of(drawn))
    before = [each for each in records(partition.path) if each.key != b"active"]
    clean(partition, dedupe_buffer_size=map_size, segment_bytes=300)
    last = {each.key: each.offset for each in before}
    after = [each for each in records(cleaned_of(partition)) if each.key != b"active"]
    assert [kept_fields(each) for each in after] == [
        kept_fields(each) for each in before if last[each.key] == each.offset
    ]
    assert is_well(partition)


PAIRS = st.tuples(st.sampled_from([*"aabbcd", None]), st.sampled_from([*"vvvvv", "w" * 40, None]))
KINDS = [*["usual"] * 2, *["produced"] * 4, "lz4", "transaction", "abort", "commit", "horizon", "old", "wrapper"]
SHAPES = st.tuples(st.lists(PAIRS, min_size=1, max_size=3), st.sampled_from(KINDS), st.sampled_from([1, 1, 2]))


def entry(offset: int, pairs: list[Pair], shape: str, producer_id: int) -> bytes:
    """Return a batch of a shape, at an offset."""
    timestamp = NOW + offset % 3
    match shape:
        case "abort" | "commit":
            return marker(offset, ControlType[shape.upper()], producer_id)
        case "produced" | "transaction":
            return produce_batch(offset, *pairs, producer_id=producer_id, is_transactional=shape == "transaction")
        case "horizon":
            return batch(offset, *pairs, delete_horizon_ms=NOW + DAY * producer_id)
        case "old" | "wrapper":
            codec = Codec.GZIP if shape == "wrapper" else Codec.NONE
            return batch(offset, *pairs[: None if codec else 1], magic=1, codec=codec, timestamp=timestamp)
    return batch(offset, *pairs, codec=Codec.LZ4 if shape == "lz4" else Codec.NONE, timestamp=timestamp)


def one_by_one(partition: PartitionLog, settings: CompactSettings) -> tuple[bytes, Compacted]:
    """Return the first segment after a cleaning that considers each record and each batch alone."""
    plan, log = plan_compaction(partition, settings), partition.segments[0].path
    isolation = read_committed(partition.segments, partition)
    aborted = [Aborted(*span, each) for each, spans in isolation.aborted.items() for span in spans]
    with Segment(log) as segment:
        before = list(segment.batches())
    offset_map, transactions = OffsetMap(1 << 16), CleanedTransactions(aborted)
    for each in before:
        if not transactions.can_discard(each) and not each.is_control:
            for record in each.records():
                if record.key is not None:
                    offset_map.table.put(record.key, record.offset)
    offset_map.table.latest_offset = plan.end_offset - 1
    retention = TombstoneRetention(settings.now_ms, settings.delete_retention_ms, plan.producers, plan.end_offset)
    cleaner = BatchCleaner(offset_map, CleanedTransactions(aborted), retention)
    left = b"".join(map(cleaner.clean, before))
    return left, Compacted(plan, kept=cleaner.remaining_count, gone=cleaner.removed_counts, emptied=cleaner.emptied)


@pytest.mark.parametrize("name", ["fast", "twin"])
@settings(max_examples=examples(100), deadline=None)
@given(
    drawn=st.lists(SHAPES, min_size=2, max_size=12),
    now_ms=st.sampled_from([NOW + 10, NOW + 2 * DAY]),
)
def test_batches_are_cleaned_together_as_one_by_one(
    drawn: list[tuple[list[Pair], str, int]], now_ms: int, name: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    entries, offset = [], 0
    for pairs, shape, producer_id in drawn:
        entries.append(entry(offset, pairs, shape, producer_id))
        offset = parse_header(entries[-1], 0, 0).last_offset + 1
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KSEG_KERNEL", name)
        partition = make(tmp_path_factory.mktemp("any") / "t-0", entries)
        options = CompactSettings(now_ms=now_ms, segment_bytes=1 << 20)
        expected, counted = one_by_one(partition, options)
        done = clean(partition, now_ms=now_ms)
    if done.passes:
        assert (cleaned_of(partition) / f"{0:020}.log").read_bytes() == expected
        assert (done.kept, done.gone, done.emptied) == (counted.kept, counted.gone, counted.emptied)


def rolled_partitions() -> list[Path]:
    """Return golden partitions of at least two segments without transactions, of all formats."""
    found = []
    for path in sorted({path.parent for path in golden.files(".log")}):
        is_whole = all(batch.is_valid and not batch.is_transactional for batch in batches(path))
        if is_whole and len(PartitionLog(path).segments) > 1 and "damaged" not in str(path):
            found.append(path)
    return found


@for_each("source", rolled_partitions(), ids=lambda path: str(path.relative_to(golden.ROOT)))
def test_golden_partitions_keep_the_last_of_each_key(source: Path, tmp_path: Path) -> None:
    (tmp_path / source.name).mkdir()
    partition = PartitionLog(source)
    done = compact_partition(partition, CompactSettings(NOW, first_dirty_offset=0), tmp_path / source.name)
    alone = done.plan.end_offset
    before = [each for each in records(source) if each.offset < alone]
    last = {each.key: each.offset for each in before if each.key is not None}
    after = [each for each in records(tmp_path / source.name) if each.offset < alone]
    assert [kept_fields(each) for each in after] == [
        kept_fields(each) for each in before if last.get(each.key) == each.offset
    ]
