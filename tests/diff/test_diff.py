"""The relation of copies made in different ways, by `kseg diff`."""

import json
import tarfile
import tracemalloc
from collections.abc import Callable
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from kseg.diff.comparison import CopyComparison
from kseg.diff.cursor import BatchCursor
from kseg.diff.heads import Superseded
from kseg.formats.codes import Codec, ControlType
from kseg.kernel.statistics_contract import ENTRY_SIZE
from kseg.log.partition import PartitionLog
from tests.log import edits
from tests.log.cleaner_logs import batch, marker, produce_batch
from tests.log.replicas import TOPIC, Part, copy_partition, replica, write_epochs, write_high_watermark
from tests.run import kseg

CLEANED = ["3.6.2/plain-1", "2.3.1/txn-1", "4.3.1/compacted-txn-0", "0.9.0.1/compacted-0"]


def compare_copies(directory: Path, *arguments: object) -> dict[str, Any]:
    """Return the only partition of a comparison."""
    ran = kseg(["diff", *map(str, arguments), "-o", "json"], directory)
    (partition, _) = (json.loads(line) for line in ran.stdout.splitlines())
    assert ran.status == int(partition["verdict"] != "identical"), ran.stderr
    return partition


def log_of(directory: Path, *batches: bytes, base_offset: int = 0) -> Path:
    """Write a segment of a partition."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{base_offset:020}.log").write_bytes(b"".join(batches))
    return directory


# --- copies that are the same ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_recompressed_copy_is_identical(tmp_path: Path, codec: str) -> None:
    pairs = [(f"key {number}", f"value {number}") for number in range(20)]
    log_of(tmp_path / "a", batch(0, *pairs))
    log_of(tmp_path / "b", batch(0, *pairs, codec=Codec[codec.upper()]))
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"


def test_batches_of_other_sizes_with_the_same_records_are_identical(tmp_path: Path) -> None:
    pairs = [(f"key {number}", f"value {number}") for number in range(20)]
    log_of(tmp_path / "a", *(batch(first, *pairs[first : first + 5]) for first in range(0, 20, 5)))
    log_of(tmp_path / "b", *(batch(first, *pairs[first : first + 4]) for first in range(0, 20, 4)))
    log_of(tmp_path / "c", batch(0, *pairs))
    assert compare_copies(tmp_path, "a", "b", "c")["verdict"] == "identical"


def test_other_segments_are_no_difference(tmp_path: Path) -> None:
    parts = [batch(first, *[("k", f"{number}") for number in range(5)]) for first in range(0, 50, 5)]
    log_of(tmp_path / "a", *parts)
    log_of(tmp_path / "b", *parts[:3])
    log_of(tmp_path / "b", *parts[3:7], base_offset=15)
    log_of(tmp_path / "b", *parts[7:], base_offset=35)
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"


@pytest.mark.parametrize(("old", "new"), [(1, 2), (0, 1), (0, 2)])
def test_converted_formats_with_the_same_records_are_identical(tmp_path: Path, old: int, new: int) -> None:
    pairs = [(f"key {number}", f"value {number}") for number in range(6)]
    log_of(tmp_path / "a", *(batch(number, pair, magic=old) for number, pair in enumerate(pairs)))
    log_of(tmp_path / "b", *(batch(number, pair, magic=new) for number, pair in enumerate(pairs)))
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"
    log_of(tmp_path / "c", *(batch(number, (pair[0], "other"), magic=new) for number, pair in enumerate(pairs)))
    partition = compare_copies(tmp_path, "a", "c")
    assert (partition["verdict"], partition["divergence"]["offset"]) == ("diverged", 0)


def test_preallocated_tail_is_no_difference(tmp_path: Path) -> None:
    parts = [batch(0, ("k", "v")), batch(1, ("k", "w"))]
    log_of(tmp_path / "a", *parts)
    log_of(tmp_path / "b", *parts, bytes(4096))
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"


def test_log_start_that_differs_is_told_and_no_difference(tmp_path: Path) -> None:
    parts = [batch(first, *[("k", f"{number}") for number in range(5)]) for first in range(0, 50, 5)]
    for first in (0, 15):
        log_of(tmp_path / "a", *parts[first // 5 : first // 5 + 3], base_offset=first)
    log_of(tmp_path / "b", *parts[3:6], base_offset=15)
    partition = compare_copies(tmp_path, "a", "b")
    assert partition["verdict"] == "identical"
    assert partition["comparedFrom"] == 15
    assert [copy["logStartOffset"] for copy in partition["copies"]] == [0, 15]


def test_log_that_begins_after_the_other_has_ended_has_nothing_in_common(tmp_path: Path) -> None:
    log_of(tmp_path / "a", batch(0, ("k", "v"), ("k", "w")))
    log_of(tmp_path / "b", base_offset=200)
    partition = compare_copies(tmp_path, "a", "b")
    assert (partition["verdict"], partition["comparedFrom"]) == ("ahead", 200)
    assert kseg(["diff", "a", "b"], tmp_path).stdout.startswith(
        b"a: ahead: nothing in common, because one copy begins at offset 200 and another ends there or earlier\n"
    )
    log_of(tmp_path / "c", base_offset=2)
    assert compare_copies(tmp_path, "a", "c")["verdict"] == "identical"  # all records are deleted


def test_batch_across_the_log_start_counts_from_there_on(tmp_path: Path) -> None:
    pairs = [("k", f"{number}") for number in range(10)]
    log_of(tmp_path / "a", batch(0, *pairs))
    log_of(tmp_path / "b", batch(4, *pairs[4:]), base_offset=4)
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"
    log_of(tmp_path / "c", batch(4, *pairs[4:8]), base_offset=4)
    assert compare_copies(tmp_path, "a", "c")["onlyIn"][0]["ranges"] == [{"from": 8, "to": 9}]


@pytest.mark.parametrize("name", ["3.6.2/plain-1", "4.3.1/zstd-0", "2.3.1/txn-1", "0.9.0.1/gzip-0"])
def test_salvaged_copy_is_identical(restored: Path, tmp_path: Path, name: str) -> None:
    source = restored / "logs" / name
    kseg(["salvage", str(source), "--to", "saved", "-q"], tmp_path)
    assert compare_copies(tmp_path, source, f"saved/{source.name}")["verdict"] == "identical"


def test_slice_is_identical_from_its_start_and_ends_earlier(restored: Path, tmp_path: Path) -> None:
    source = restored / "logs" / "4.3.1" / "zstd-0"
    kseg(["slice", str(source), "--from-offset", "400", "--to-offset", "500", "--to", "part"], tmp_path)
    partition = compare_copies(tmp_path, source, "part")
    assert partition["verdict"] == "ahead"
    first, end = (partition["copies"][1][name] for name in ("logStartOffset", "logEndOffset"))
    assert partition["comparedFrom"] == first <= 400
    assert partition["firstDifference"] == end > 500


# --- compaction ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", CLEANED)
def test_compacted_copy_is_identical_by_its_keys(restored: Path, tmp_path: Path, name: str) -> None:
    source = restored / "logs" / name
    kseg(["compact", str(source), "--to", "cleaned", "-q"], tmp_path)
    for sides in ((source, "cleaned"), ("cleaned", source)):
        assert compare_copies(tmp_path, *sides)["verdict"] == "identical"


def test_record_that_compaction_would_have_left_is_a_hole(tmp_path: Path) -> None:
    batches = [batch(number, (f"key {number % 3}", f"{number}")) for number in range(9)]
    log_of(tmp_path / "a" / "__consumer_offsets-0", *batches)
    log_of(tmp_path / "b" / "__consumer_offsets-0", *batches[6:])  # the last of each key
    log_of(tmp_path / "c" / "__consumer_offsets-0", batches[6], batches[8])
    cleaned = compare_copies(tmp_path, "a", "b")
    assert cleaned["verdict"] == "identical"
    assert [copy["superseded"] for copy in cleaned["copies"]] == [0, 6]
    broken = compare_copies(tmp_path, "a", "c")
    assert broken["verdict"] == "holes"
    assert broken["onlyIn"][0]["ranges"] == [{"from": 7, "to": 7}]


def test_aborted_records_and_markers_may_be_gone(tmp_path: Path) -> None:
    name = "__transaction_state-0"
    last = batch(5, ("c", "3"))
    aborted = [produce_batch(1, ("a", "1"), producer_id=7), marker(2, ControlType.ABORT, 7)]
    log_of(tmp_path / "a" / name, batch(0, ("b", "2")), *aborted, last)
    log_of(tmp_path / "b" / name, batch(0, ("b", "2")), last)
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "identical"


def test_superseded_records_are_holes_where_nothing_was_compacted(tmp_path: Path) -> None:
    batches = [batch(number, (f"key {number % 3}", f"{number}")) for number in range(9)]
    log_of(tmp_path / "a" / TOPIC, *batches)
    log_of(tmp_path / "b" / TOPIC, batches[0], *batches[6:])
    assert compare_copies(tmp_path, "a", "b")["verdict"] == "holes"


def test_records_with_more_keys_than_the_map_has_room_for_are_not_judged(tmp_path: Path) -> None:
    name = "__consumer_offsets-0"
    batches = [batch(number, (f"key {number}", "v")) for number in range(20)]
    places = log_of(tmp_path / "a" / name, *batches), log_of(tmp_path / "b" / name, batches[0], *batches[10:])
    partitions = [PartitionLog(place) for place in places]
    with ExitStack() as stack:
        cursors = [stack.enter_context(closing(BatchCursor(partition, 0))) for partition in partitions]
        comparison = CopyComparison(cursors, 0, Superseded(partitions, map_size=5 * ENTRY_SIZE))
        assert list(comparison.run()) == []
    assert not comparison.has_holes
    assert [tally.unjudged for tally in comparison.tallies] == [0, 9]


def test_records_of_wrappers_count_where_only_one_side_has_them(tmp_path: Path) -> None:
    pairs = [("k", f"{number}") for number in range(10)]
    log_of(tmp_path / "a" / TOPIC, batch(0, *pairs, magic=1, codec=Codec.GZIP))
    log_of(tmp_path / "b" / "orders-1", batch(0, *pairs))
    ran = kseg(["diff", "a", "b", "-o", "json"], tmp_path)
    assert [json.loads(line)["copies"][0]["records"] for line in ran.stdout.splitlines()[:2]] == [10, 10]


# --- copies under a leader -------------------------------------------------------------------------------------------


def test_checkpoint_that_contradicts_the_batches_is_not_believed(tmp_path: Path) -> None:
    a = replica(tmp_path / "a", [Part(0, 0, 10), Part(0, 10, 5, "lost")])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(2, 10, 3, "new")])
    for epochs in ([(0, 0)], [(0, 0), (1, 3)], []):
        write_epochs(a, epochs)
        (truncated,) = compare_copies(tmp_path, "a", "b", "--leader", "b")["truncations"]
        assert (truncated["toOffset"], truncated["lostRecords"]) == (10, 5)


def test_old_formats_truncate_to_the_high_watermark(tmp_path: Path) -> None:
    for side, count in (("a", 8), ("b", 5)):
        log_of(tmp_path / side / TOPIC, *(batch(number, ("k", f"{number}"), magic=1) for number in range(count)))
    (truncated,) = compare_copies(tmp_path, "a", "b", "--leader", "b")["truncations"]
    assert (truncated["rule"], truncated["toOffset"], truncated["lostRecords"]) == ("unknown", None, 0)
    write_high_watermark(tmp_path / "a", 4)
    (truncated,) = compare_copies(tmp_path, "a", "b", "--leader", "b")["truncations"]
    assert (truncated["rule"], truncated["toOffset"], truncated["lostRecords"]) == ("highWatermark", 4, 3)


def test_batch_across_the_offset_goes_as_a_whole(tmp_path: Path) -> None:
    pairs = [("k", f"{number}") for number in range(8)]
    log_of(tmp_path / "a" / TOPIC, batch(0, *pairs, magic=1, codec=Codec.GZIP))
    log_of(tmp_path / "b" / TOPIC, batch(0, *pairs[:3], magic=1, codec=Codec.GZIP))
    write_high_watermark(tmp_path / "a", 4)
    (truncated,) = compare_copies(tmp_path, "a", "b", "--leader", "b")["truncations"]
    assert (truncated["toOffset"], truncated["lostRecords"]) == (3, 5)


def test_same_record_of_two_leaders_is_diverged_and_nothing_is_lost(tmp_path: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10), Part(1, 10, 5)])
    replica(tmp_path / "b", [Part(0, 0, 10), Part(2, 10, 5)])
    partition = compare_copies(tmp_path, "a", "b", "--leader", "b")
    assert (partition["verdict"], partition["divergence"]["offset"]) == ("diverged", 10)
    assert (partition["epochsDifferFrom"], partition["onlyIn"], partition["lostRecords"]) == (10, [], 0)
    assert partition["truncations"][0]["toOffset"] == 10


# --- where copies are ------------------------------------------------------------------------------------------------


def test_archive_is_a_side(tmp_path: Path, unpacked_into: Path) -> None:
    replica(tmp_path / "a", [Part(0, 0, 10)])
    with tarfile.open(tmp_path / "b.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "a", "backup")
    partition = compare_copies(tmp_path, "a", "b.tar.gz", "--leader", "b.tar.gz")
    assert (partition["verdict"], partition["copies"][1]["path"]) == ("identical", "b.tar.gz/backup/orders-0")


def test_broker_of_several_disks_is_one_side(tmp_path: Path) -> None:
    for number in range(4):
        copy_partition(replica(tmp_path / "made", [Part(0, 0, 5 + number)]), tmp_path / "a")
        copy_partition(tmp_path / "made" / TOPIC, tmp_path / "b" / f"disk{number % 2}")
        for side in ("a", f"b/disk{number % 2}"):
            (tmp_path / side / TOPIC).rename(tmp_path / side / f"orders-{number + 1}")
    ran = kseg(["diff", "a", "b", "--partition", "2-4"], tmp_path)
    assert (ran.status, ran.stdout.splitlines()[-1]) == (0, b"3 partitions: 3 identical")


def test_topics_of_two_ids_are_told_and_not_compared(tmp_path: Path) -> None:
    for side, topic_id in (("a", "DTD7scUEQmCE86adKg4RVA"), ("b", "HAOKAX1NSjuVzUNvYvuOig")):
        directory = replica(tmp_path / side, [Part(0, 0, 10)])
        (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
    ran = kseg(["diff", "a", "b"], tmp_path)
    assert (ran.status, ran.stdout.splitlines()[-1]) == (1, b"2 partitions: 2 missing on a side")
    assert ran.stderr.startswith(b"kseg: orders-0: kseg doesn't compare topics with different ids: a/orders-0 DTD7scUE")
    assert kseg(["diff", "a/orders-0", "b/orders-0", "-q"], tmp_path).status == 0  # they were requested


def test_a_lost_topic_id_is_that_of_the_topics_other_partitions(tmp_path: Path) -> None:
    for side, topic_id in (("a", "DTD7scUEQmCE86adKg4RVA"), ("b", "HAOKAX1NSjuVzUNvYvuOig")):
        for number in (1, 0):
            directory = replica(tmp_path / side, [Part(0, 0, 10)])
            (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n", encoding="utf-8")
            directory.rename(tmp_path / side / f"orders-{number}")
    (tmp_path / "a" / "orders-0" / "partition.metadata").unlink()
    listed = json.loads(kseg(["ls", "a", "--partition", "0", "-o", "json"], tmp_path).stdout.splitlines()[0])
    assert listed["topicId"] == "DTD7scUEQmCE86adKg4RVA"
    ran = kseg(["diff", "a", "b"], tmp_path)
    assert (ran.status, ran.stdout.splitlines()[-1]) == (1, b"4 partitions: 4 missing on a side")
    assert b"kseg: orders-0: kseg doesn't compare topics with different ids: a/orders-0 DTD7scUE" in ran.stderr


# --- damage ----------------------------------------------------------------------------------------------------------


def test_file_that_cannot_be_read_is_told_and_the_rest_is_compared(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path / "a", "3.6.2/plain-1")
    copy = copy_partition(source, tmp_path / "b")
    log = edits.logs(copy)[0]
    log.write_bytes(log.read_bytes()[:-7])
    partition = compare_copies(tmp_path, source, copy)
    assert partition["verdict"] == "holes"
    assert partition["copies"][1]["damages"][0]["id"] == "cut-segment"


# --- size ------------------------------------------------------------------------------------------------------------


def long_log(directory: Path, size: int, change: Callable[[int, bytearray], bool]) -> Path:
    """Return a log of many batches; `change` may change one, and returns whether it stays."""
    raw = bytearray(batch(0, *[(f"key {number}", "v" * 100) for number in range(50)]))
    directory.mkdir(parents=True)
    written, offset = 0, 0
    with (directory / f"{0:020}.log").open("wb") as log:
        while written < size:
            raw[0:8] = offset.to_bytes(8, "big")
            if change(offset, copy := bytearray(raw)):
                log.write(copy)
            written, offset = written + len(raw), offset + 50
    return directory


def never(_: int, __: bytearray) -> bool:
    """Change nothing."""
    return True


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    def every_tenth_is_missing(offset: int, _: bytearray) -> bool:
        return offset % 500 != 250

    size, most = 40 << 20, 32 << 20
    long_log(tmp_path / "a", size, never)
    long_log(tmp_path / "b", size, never)
    long_log(tmp_path / "c", size, every_tenth_is_missing)
    assert peak(["diff", "a", "b", "-q", "-j", "1"], tmp_path) < most
    assert peak(["diff", "a", "c", "-q", "-j", "1"], tmp_path) < most


def peak(arguments: list[str], directory: Path) -> int:
    """Return the most bytes that a run takes."""
    tracemalloc.start()
    try:
        kseg(arguments, directory)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
