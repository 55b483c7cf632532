"""Each check has its finding in a golden file, or in one with a small edit, and none in healthy partitions."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from kseg.findings.finding_kind import Severity
from kseg.findings.findings import Finding
from kseg.findings.kinds import FINDINGS
from kseg.log.partition import PartitionLog
from kseg.verify.verify import plan_verification, verify_partition, verify_paths
from tests import golden
from tests.broker_start.test_verdicts import OF_ROWS
from tests.log import edits
from tests.log.advice import CASES, ELSEWHERE, NOT_FOLLOWED
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, batch_bytes, marker, write_segment
from tests.loops import for_each
from tests.run import kseg

ROOT = golden.ROOT.parent
HEALTHY = sorted(
    path
    for path in (golden.ROOT / "logs").iterdir()
    if not path.name.startswith("classes-") and "-remote" not in path.name
)

# Findings in unchanged files of golden/damaged.
DAMAGED = {
    "bad-length": "027-length-0",
    "bad-magic": "054-magic-3",
    "bad-crc": "021-flip-records",
    "bad-codec": "066-codec-5",
    "bad-body": "184-body-random",
    "bad-record": "119-record-length-overrun",
    "bad-count": "104-count-plus-one",
    "torn-tail": "003-torn-records",
    "zero-tail": "012-zero-tail",
    "offsets-fall": "217-reordered",
    "duplicate-batch": "214-duplicated",
    "offset-below-base": "221-offset-lower",
    "offset-too-far": "078-flip-baseOffset",
    "record-offsets": "116-last-offset-delta-negative",
    "max-timestamp": "198-bomb-record",
    "index-cut": "270-index-cut",
    "index-inexact": "272-index-swapped",
    "index-entry": "275-index-wrong-position",
    "time-index-entry": "290-time-too-high",
    "snapshot-unreadable": "297-snapshot-crc",
    "orphan-index": "281-index-alone",
    "unreadable-text": "311-checkpoint-garbage",
}

Edit = Callable[[Path], None]


def keep_whole_batches(log: Path, left_out: int) -> None:
    """Remove one batch from a log."""
    data = log.read_bytes()
    batches = list(edits.v2_batches(log))
    position, size = batches[left_out]
    log.write_bytes(data[:position] + data[position + size :])


def cut_first_log(partition: Path) -> None:
    log = edits.logs(partition)[0]
    os.truncate(log, log.stat().st_size - 5)


def rename_last_log(partition: Path) -> None:
    log = edits.logs(partition)[-1]
    log.rename(log.with_name(f"{int(log.stem) - 1:020}.log"))


def raise_first_epoch(partition: Path) -> None:
    edits.edit_batch(edits.logs(partition)[0], 0, partition_leader_epoch=5)


def write_leader_epochs(*entries: str) -> Edit:
    def write(partition: Path) -> None:
        lines = ["0", str(len(entries)), *entries]
        (partition / "leader-epoch-checkpoint").write_text("".join(f"{line}\n" for line in lines))

    return write


def change_sequence(change: int) -> Edit:
    return lambda partition: edits.edit_batch(edits.logs(partition)[0], 3, base_sequence=change)


def raise_producer_epoch(partition: Path) -> None:
    edits.edit_batch(edits.logs(partition)[0], 2, producer_epoch=1)


def lengthen_log(partition: Path) -> None:
    log = edits.logs(partition)[-1]
    edits.repeat_log(log, 5 << 20)
    os.truncate(log.with_suffix(".index"), 8)


def lengthen_first_index(partition: Path) -> None:
    index = edits.logs(partition)[0].with_suffix(".index")
    os.truncate(index, index.stat().st_size + 800)


def cut_first_time_index(partition: Path) -> None:
    index = edits.logs(partition)[0].with_suffix(".timeindex")
    os.truncate(index, index.stat().st_size - 12)


def leave_old_entries(partition: Path) -> None:
    """Leave old entries after a running broker's own ones, and before zeros."""
    for suffix, size, entry in (".index", 8, (5000, 1 << 20)), (".timeindex", 12, (1 << 42, 5000)):
        path = edits.logs(partition)[-1].with_suffix(suffix)
        old = b"".join(number.to_bytes(width, "big") for number, width in zip(entry, (size - 4, 4), strict=True))
        path.write_bytes(path.read_bytes() + old + bytes(10 * size))


def empty_transaction_index(partition: Path) -> None:
    os.truncate(sorted(partition.glob("*.txnindex"))[0], 0)


def add_transaction(partition: Path) -> None:
    index = sorted(partition.glob("*.txnindex"))[0]
    base = int(index.stem)
    index.write_bytes(index.read_bytes() + edits.ABORTED_TRANSACTION.pack(0, 4711, base + 1, base + 2, base + 3))


def change_snapshot(partition: Path) -> None:
    edits.edit_snapshot(sorted(partition.glob("*.snapshot"))[-1], 20, (3).to_bytes(4, "big"))


def change_earlier_snapshot(partition: Path) -> None:
    edits.edit_snapshot(sorted(partition.glob("*.snapshot"))[-2], 20, (3).to_bytes(4, "big"))


def reverse_positions(partition: Path) -> None:
    index = edits.logs(partition)[0].with_suffix(".index")
    content = index.read_bytes()
    entries = [content[start : start + 8] for start in range(0, len(content), 8)]
    index.write_bytes(b"".join(one[:4] + other[4:] for one, other in zip(entries, reversed(entries), strict=True)))


def stop_cleanly_without_snapshots(partition: Path) -> None:
    for snapshot in partition.glob("*.snapshot"):
        snapshot.unlink()
    (partition.parent / ".kafka_cleanshutdown").touch()


def lose_offsets_unknown_to_the_cleaner(partition: Path) -> None:
    keep_whole_batches(edits.logs(partition)[0], 2)
    (partition.parent / "cleaner-offset-checkpoint").unlink(missing_ok=True)


def add_snapshot(partition: Path) -> None:
    last = sorted(partition.glob("*.snapshot"))[-1]
    shutil.copy(last, last.with_name(f"{int(last.stem) + 1000:020}.snapshot"))


def shorten_name(partition: Path) -> None:
    last = edits.logs(partition)[-1]
    last.rename(last.with_name(f"{int(last.stem)}.log"))


def add_leftover(partition: Path) -> None:
    (partition / "00000000000000000000.log.cleaned").write_bytes(b"")


def checkpoint(name: str, offset: int) -> Edit:
    return lambda partition: edits.write_checkpoint(partition, name, offset)


# Findings of a golden partition after a small edit; without it there are none.
EDITED: dict[str, tuple[str, Edit]] = {
    "cut-segment": ("3.6.2/plain-1", cut_first_log),
    "segment-overlap": ("3.6.2/plain-1", rename_last_log),
    "offsets-lost": ("2.8.2/idem-0", lambda partition: keep_whole_batches(edits.logs(partition)[0], 2)),
    "offsets-missing": ("3.6.2/plain-1", lose_offsets_unknown_to_the_cleaner),
    "leader-epoch-falls": ("3.6.2/plain-1", raise_first_epoch),
    "leader-epoch-checkpoint": ("3.6.2/plain-1", write_leader_epochs("99 0")),
    "leader-epoch-unsorted": ("3.6.2/plain-1", write_leader_epochs("0 0", "2 9", "1 20")),
    "leader-epochs-missing": ("3.6.2/plain-1", write_leader_epochs()),
    "leader-epochs-cleared": ("3.6.2/plain-1", write_leader_epochs("2 134")),
    "leader-epoch-beyond-end": ("3.6.2/plain-1", write_leader_epochs("0 0", "2 9000")),
    "sequence-gap": ("2.8.2/idem-0", change_sequence(7)),
    "sequence-repeated": ("2.8.2/idem-0", change_sequence(-3)),
    "producer-epoch-falls": ("2.8.2/idem-0", raise_producer_epoch),
    "index-missing": ("3.6.2/plain-1", lambda partition: edits.logs(partition)[0].with_suffix(".index").unlink()),
    "index-sparse": ("3.6.2/plain-1", lengthen_log),
    "index-preallocated": ("3.6.2/plain-1", lengthen_first_index),
    "index-old-entries": ("3.6.2/plain-1", leave_old_entries),
    "time-index-ends-early": ("3.6.2/plain-1", cut_first_time_index),
    "transaction-unindexed": ("2.3.1/txn-1", empty_transaction_index),
    "transaction-unfounded": ("2.3.1/txn-1", add_transaction),
    "snapshot-content": ("2.8.2/idem-0", change_earlier_snapshot),
    "producer-state-wrong": ("2.8.2/idem-0", change_snapshot),
    "producer-state-missing": ("2.3.1/txn-1", stop_cleanly_without_snapshots),
    "index-unsorted": ("3.6.2/plain-1", reverse_positions),
    "snapshot-beyond-end": ("2.8.2/idem-0", add_snapshot),
    "leftover-file": ("3.6.2/plain-1", add_leftover),
    "unpadded-name": ("3.6.2/plain-1", shorten_name),
    "checkpoint-beyond-end": ("3.6.2/plain-1", checkpoint("recovery-point-offset-checkpoint", 5000)),
    "checkpoint-stale": ("3.6.2/plain-1", checkpoint("cleaner-offset-checkpoint", 5000)),
    "log-start-beyond-end": ("3.6.2/plain-1", checkpoint("log-start-offset-checkpoint", 5000)),
}

# Findings of unchanged golden partitions: notes.
NOTED = {
    "offsets-compacted": "2.0.1/compacted-0",
    "open-transaction": "2.3.1/txn-1",
}
WITHOUT_ANY = "3.6.2/plain-1"


def found_in(partition: Path) -> list[Finding]:
    verified = verify_partition(PartitionLog(partition))
    assert verified.problems == ()
    return list(verified.findings)


def ids(partition: Path) -> set[str]:
    return {finding.id for finding in found_in(partition)}


@pytest.mark.parametrize("is_clean", [True, False])
def test_logs_alone_have_no_errors_as_a_start_makes_the_rest(is_clean: bool, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "2.3.1/txn-1")
    (partition.parent / "meta.properties").write_text("version=0\nbroker.id=1\n")
    (partition.parent / ".kafka_cleanshutdown").touch()
    for path in partition.iterdir():
        if path.suffix != ".log":
            path.unlink()
    if not is_clean:
        (partition.parent / ".kafka_cleanshutdown").unlink()
    assert verify_partition(PartitionLog(partition)).is_well


@for_each("finding_id, damage", DAMAGED.items())
def test_damaged_file_trips_its_check(finding_id: str, damage: str, restored: Path) -> None:
    assert finding_id in ids(restored / "damaged" / damage)


@for_each("finding_id", EDITED)
def test_small_edit_trips_its_check(finding_id: str, tmp_path: Path) -> None:
    name, edit = EDITED[finding_id]
    partition = edits.copy_partition(tmp_path, name)
    assert finding_id not in ids(partition)
    edit(partition)
    assert finding_id in ids(partition)


def test_old_entries_in_the_indexes_of_an_active_segment_are_a_note_for_each(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    leave_old_entries(partition)
    verified = verify_partition(PartitionLog(partition))
    assert verified.is_well
    assert [finding.file.suffix for finding in verified.findings] == [".index", ".timeindex"]


def test_epoch_of_a_producer_that_falls_is_reported_with_the_one_before(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "2.8.2/idem-0")
    raise_producer_epoch(partition)
    sentences = [finding.sentence for finding in found_in(partition) if finding.id == "producer-epoch-falls"]
    assert sentences
    assert all(sentence.endswith("epoch 0 after 1") for sentence in sentences)


@pytest.mark.parametrize(("finding_id", "name"), NOTED.items())
def test_golden_partition_has_its_note(finding_id: str, name: str, restored: Path) -> None:
    assert finding_id in ids(restored / "logs" / name)


def test_healthy_partition_has_no_findings_at_all(restored: Path) -> None:
    assert found_in(restored / "logs" / WITHOUT_ANY) == []


def test_partition_to_be_deleted_is_noted(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    renamed = partition.rename(partition.with_name(f"{partition.name}.{'0' * 32}-delete"))
    assert ids(renamed) == {"leftover-directory"}


def two_disks(directory: Path, *nodes: int) -> list[Path]:
    """Return log directories with the same partition in each, of brokers with these ids."""
    disks = []
    for number, node in enumerate(nodes):
        disk = edits.copy_partition(directory / str(number), WITHOUT_ANY).parent
        (disk / "meta.properties").write_text(f"version=1\ncluster.id=one\nnode.id={node}\n")
        disks.append(disk)
    return disks


@pytest.mark.parametrize("name", ["old.cleaned", "old.log.swap", "leader-epoch-checkpoint.swap"])
def test_leftover_that_is_not_named_after_an_offset_is_a_misnamed_file(name: str, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    (partition / name).write_bytes(b"")
    assert ids(partition) == {"misnamed-file"}


@pytest.mark.parametrize("name", [f"{1 << 63:020}.log", f"{1 << 63:020}.index", f"{10**24}.log"])
def test_file_named_after_a_number_beyond_all_offsets_is_a_misnamed_file(name: str, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    (partition / name).write_bytes(b"")
    assert ids(partition) == {"misnamed-file"}


def found_on(disks: list[Path]) -> list[tuple[str, Path]]:
    verified = verify_paths(plan_verification(disks))
    return [(finding.id, finding.file) for each in verified for finding in each.findings]


def test_partition_on_two_disks_of_a_broker_is_found(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, 1, 1)
    assert found_on(disks) == [("partition-twice", disks[1] / "plain-1")]


def test_disk_that_names_no_cluster_is_of_the_only_one(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, 1, 1)
    (disks[1] / "meta.properties").write_text("version=0\nbroker.id=1\n")
    assert found_on(disks) == [("partition-twice", disks[1] / "plain-1")]


def test_directory_of_another_topic_of_the_same_name_is_not_the_partition_twice(tmp_path: Path) -> None:
    """A topic was deleted and created again while its broker was down."""
    disks = two_disks(tmp_path, 1, 1)
    for disk, topic_id in zip(disks, ("AAAAAAAAAAAAAAAAAAAABQ", "AAAAAAAAAAAAAAAAAAAABg"), strict=True):
        (disk / "plain-1" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}\n")
    assert found_on(disks) == []


def test_of_a_partition_on_two_disks_of_a_broker_the_directory_that_ends_first_is_named(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, 1, 1)
    log = max((disks[0] / "plain-1").glob("*.log"))
    with log.open("ab") as file:
        file.write(batch_bytes(NewBatch([NewRecord(b"k", b"v")], 10_000)))
    twice = [file for finding, file in found_on(disks) if finding == "partition-twice"]
    assert twice == [disks[1] / "plain-1"]
    assert [file for finding, file in found_on(disks[::-1]) if finding == "partition-twice"] == twice


def test_directories_whose_broker_ids_are_none_are_not_those_of_one_broker(tmp_path: Path) -> None:
    disks = two_disks(tmp_path, 1, 1)
    for disk in disks:
        (disk / "meta.properties").write_text(f"version=0\ncluster.id=one\nbroker.id={'9' * 5000}\n")
    assert found_on(disks) == []


@pytest.mark.parametrize("content", [b"\0" * 40, b"", b"\xff\xfe"])
def test_properties_of_a_log_directory_that_say_nothing_are_found(content: bytes, tmp_path: Path) -> None:
    (disk,) = two_disks(tmp_path, 1)
    (disk / "meta.properties").write_bytes(content)
    assert found_on([disk]) == [("unreadable-text", disk / "meta.properties")]


def test_replicas_of_different_brokers_are_well(tmp_path: Path) -> None:
    assert found_on(two_disks(tmp_path, 1, 2)) == []


def test_transaction_open_for_long_by_the_brokers_clock_is_reported_with_its_age(tmp_path: Path) -> None:
    """The broker limits its duration, and only the coordinator knows whether it hangs: a warning."""
    partition = edits.copy_partition(tmp_path, "2.3.1/txn-1")
    log, hour = edits.logs(partition)[-1], 3_600_000
    edits.edit_batch(log, edits.markers(log)[-1], base_timestamp=hour, max_timestamp=hour)
    found = [finding for finding in found_in(partition) if re.search(r", for at least \d+ ms$", finding.sentence)]
    assert [(finding.id, finding.severity) for finding in found] == [("long-transaction", Severity.WARNING)]


def test_transaction_whose_marker_may_be_damaged_is_none_of_long(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "2.3.1/txn-1")
    log, hour = edits.logs(partition)[-1], 3_600_000
    edits.edit_batch(log, edits.markers(log)[-1], base_timestamp=hour, max_timestamp=hour)
    with log.open("ab") as end:
        end.write(b"\x07" * 70)
    doubt = r", for at least \d+ ms; the log is damaged after it, so its marker may be lost$"
    assert [finding.id for finding in found_in(partition) if re.search(doubt, finding.sentence)] == ["open-transaction"]


def test_directory_with_nothing_but_what_a_deletion_left_is_well(tmp_path: Path) -> None:
    for suffix in (".log", ".index", ".timeindex"):
        (tmp_path / f"{0:020}{suffix}.deleted").touch()
    assert ids(tmp_path) == {"leftover-file"}


@pytest.mark.parametrize("was_stopped", [True, False])
def test_damage_in_a_nodes_log_directory_is_judged_to_the_end(
    was_stopped: bool, restored: Path, tmp_path: Path
) -> None:
    damaged = sorted(path for path in (restored / "damaged").iterdir() if path.is_dir())
    for damage in damaged[int(was_stopped) :: 2]:
        disk = tmp_path / damage.name
        shutil.copytree(damage, disk / "orders-0")
        (disk / "meta.properties").write_text("version=0\nbroker.id=1\n")
        if was_stopped:
            (disk / ".kafka_cleanshutdown").touch()
        plan = plan_verification([disk], lambda _: None)
        assert {finding.id for verified in verify_paths(plan) for finding in verified.findings} <= set(FINDINGS)


def test_each_finding_has_a_test() -> None:
    elsewhere = {
        "leftover-directory",
        "partition-twice",
        "unreadable",
        "index-unreadable",
        "partial-disk",
        "group-unloadable",
        "copies-diverged",
        *("changed-as-text", "foreign-content", "emptied-files"),
    }
    judged = {"hanging-transaction", "long-transaction"}
    assert set(FINDINGS) == {*DAMAGED, *EDITED, *NOTED, *OF_ROWS, *elsewhere, *judged}


def test_the_advice_of_each_finding_is_tried_on_a_broker_or_has_a_reason() -> None:
    assert {case.finding_id for case in CASES} | ELSEWHERE | set(NOT_FOLLOWED) == set(FINDINGS)


@for_each("name", [path.name for path in HEALTHY])
def test_healthy_log_directory_is_well(name: str, restored: Path) -> None:
    plan = plan_verification([restored / "logs" / name])
    assert plan.orders
    found = [finding for verified in verify_paths(plan) for finding in verified.findings]
    assert [finding for finding in found if finding.severity is not Severity.NOTE] == []


def test_partitions_of_all_releases_are_among_the_healthy_ones(restored: Path) -> None:
    assert sum(len(plan_verification([restored / "logs" / path.name]).orders) for path in HEALTHY) == 252


def test_documentation_sample_is_well(restored: Path) -> None:
    assert found_in(restored / "docs" / "test-1-0") == []


def test_processes_find_the_same_as_one(tmp_path: Path) -> None:
    for name in ("3.6.2/plain-1", "3.6.2/snappy-0"):
        shutil.copytree(golden.ROOT / "logs" / name, tmp_path / Path(name).name)
    cut_first_log(tmp_path / "plain-1")
    plan = plan_verification([tmp_path])
    alone = list(verify_paths(plan, processes=1))
    assert [verified.is_well for verified in alone] == [True, False, True]
    assert list(verify_paths(plan, processes=2)) == alone


def test_many_findings_alike_are_counted(restored: Path) -> None:
    """All entries of an index point after an empty log: more than are reported one by one."""
    found = found_in(restored / "damaged" / "282-index-of-empty-log")
    assert 0 < len(found) <= 20


def test_gap_behind_damage_is_reported_as_the_damage(restored: Path) -> None:
    (damage,) = [finding for finding in found_in(restored / "damaged" / "210-wiped-batch") if finding.position]
    assert (damage.id, damage.first_offset, damage.last_offset) == ("bad-length", 21938, 21938)


def test_log_that_cannot_be_read_is_no_finding_but_a_problem(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    log = edits.logs(partition)[-1]
    listed = PartitionLog(partition)
    log.unlink()
    log.mkdir()
    verified = verify_partition(listed)
    assert verified.findings == ()
    assert [problem.path for problem in verified.problems] == [str(log)]


def test_segment_that_a_broker_deletes_meanwhile_is_left_out(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, WITHOUT_ANY)
    listed = PartitionLog(partition)
    for path in partition.glob("00000000000000000000.*"):
        path.unlink()
    verified = verify_partition(listed)
    assert (verified.findings, verified.problems) == ((), ())


@pytest.mark.parametrize("is_listed", [False, True])
def test_snapshot_that_a_broker_deletes_meanwhile_is_left_out(is_listed: bool, tmp_path: Path) -> None:
    """It is deleted before it is opened, or after the first segment was read."""
    partition = edits.copy_partition(tmp_path, "2.8.2/idem-0")
    change_sequence(7)(partition)
    expected = ids(partition)
    assert "sequence-gap" in expected
    listed = PartitionLog(partition)
    assert listed.snapshots

    def delete(_: int) -> None:
        for path in partition.glob("*.snapshot"):
            path.unlink()

    if is_listed:
        delete(0)
    verified = verify_partition(listed, on_read=delete)
    assert ({finding.id for finding in verified.findings}, verified.problems) == (expected, ())


@pytest.mark.parametrize("is_written", [False, True])
def test_transaction_aborted_while_its_log_is_read_is_not_unfounded(is_written: bool, tmp_path: Path) -> None:
    """Its entry is read after the log, and is wrong only if the log still lacks the transaction."""
    began = NewBatch([NewRecord(b"k", b"v")], 0, 7, 0, True)
    later = NewBatch([NewRecord(b"k", b"v")], 2, 8, 0, True)
    log = write_segment(tmp_path / "paid-0", [began, marker(COMMIT, began)])
    log.with_suffix(".txnindex").write_bytes(b"")

    def abort(*_: object) -> None:
        if is_written:
            with log.open("ab") as file:
                file.write(batch_bytes(later) + batch_bytes(marker(ABORT, later)))
        log.with_suffix(".txnindex").write_bytes(edits.ABORTED_TRANSACTION.pack(0, 8, 2, 3, 4))

    found = verify_partition(PartitionLog(tmp_path / "paid-0"), on_slice=abort).findings
    assert [finding.id for finding in found] == ([] if is_written else ["transaction-unfounded"])


def test_metadata_snapshot_that_a_controller_deletes_meanwhile_is_left_out(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "4.3.1/__cluster_metadata-0")
    listed = PartitionLog(partition)
    assert listed.metadata_snapshots
    for path in partition.glob("*.checkpoint"):
        path.unlink()
    assert verify_partition(listed).problems == ()


def test_metadata_log_whose_beginning_no_checkpoint_covers_is_an_error(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, "4.3.1/__cluster_metadata-0")
    assert kseg(["verify", str(partition)], tmp_path).status == 0
    for checkpoint in partition.glob("*.checkpoint"):
        checkpoint.unlink()
    ran = kseg(["verify", str(partition)], tmp_path)
    sentence = "error metadata-checkpoint: it begins at offset 510, but no checkpoint has the metadata from before"
    assert (ran.status, sentence in ran.stdout.decode()) == (1, True)
    (partition.parent / "meta.properties").write_text("version=1\nnode.id=1\ncluster.id=c\n", encoding="utf-8")
    told = kseg(["doctor", str(partition.parent)], tmp_path).stdout.decode()
    assert told.startswith("A broker doesn't start: Inconsistent snapshot state: there must be a snapshot")
