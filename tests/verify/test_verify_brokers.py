"""Healthy brokers' files cause no finding, in any release and after any operation on the partition."""

import os
import shutil
from pathlib import Path

import pytest
from aiokafka.record.legacy_records import _LegacyRecordBatchBuilderPy  # type: ignore[import-untyped]
from aiokafka.record.util import calc_crc32c  # type: ignore[import-untyped]

from kseg.findings.findings import Finding
from kseg.log.partition import PartitionLog
from kseg.verify.verify import verify_partition
from tests.log import edits
from tests.verify.test_verify import write_leader_epochs

PLAIN = "3.6.2/plain-1"
TRANSACTIONAL = "2.3.1/txn-1"
EPOCHS = "leader-epoch-checkpoint"
LOG_START = "log-start-offset-checkpoint"


def found_in(partition: Path) -> list[Finding]:
    return [finding for finding in verify_partition(PartitionLog(partition)).findings if finding.counts]


def notes_in(partition: Path) -> dict[str, str]:
    return {finding.id: finding.sentence for finding in verify_partition(PartitionLog(partition)).findings}


# --- the log start offset ---------------------------------------------------------------------------------------------


def test_epochs_below_the_log_start_offset_are_not_missed(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    write_leader_epochs("2 150")(partition)
    edits.write_checkpoint(partition, LOG_START, 150)
    assert notes_in(partition) == {}


def test_epoch_at_the_log_start_offset_is_compared(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    write_leader_epochs("1 150")(partition)
    edits.write_checkpoint(partition, LOG_START, 150)
    assert [finding.id for finding in found_in(partition)] == ["leader-epoch-checkpoint"]


def test_epochs_cleared_above_the_log_start_offset_are_noted(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    write_leader_epochs("2 134")(partition)
    assert notes_in(partition) == {
        "leader-epochs-cleared": "epoch 0, from offset 0 on, is missing; the log start offset is 0"
    }


def test_partition_alone_says_that_the_log_start_offset_is_not_known(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    write_leader_epochs("2 134")(partition)
    (partition.parent / LOG_START).unlink()
    assert notes_in(partition)["leader-epochs-cleared"].endswith("the log start offset isn't known here")


def append_v1(partition: Path) -> None:
    """Append a message of format 1 to the log, like a broker after the topic's format is lowered."""
    end = PartitionLog(partition).read_log_end_offset()
    builder = _LegacyRecordBatchBuilderPy(magic=1, compression_type=0, batch_size=1000)
    builder.append(0, 1_700_000_000_000, b"k", b"v")
    with edits.logs(partition)[-1].open("ab") as log:
        log.write(end.to_bytes(8, "big") + bytes(builder.build())[8:])


@pytest.mark.parametrize("is_there", [False, True])
def test_epochs_that_a_lower_message_format_cleared_are_noted(is_there: bool, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    append_v1(partition)
    write_leader_epochs()(partition)
    if not is_there:
        (partition / EPOCHS).unlink()
    assert found_in(partition) == []
    assert "leader-epochs-cleared" in notes_in(partition)


@pytest.mark.parametrize("content", [None, b"", b"0\n0\n"])
def test_epochs_that_are_lost_are_found(content: bytes | None, tmp_path: Path) -> None:
    """Without them a replica truncates as before KIP-101."""
    partition = edits.copy_partition(tmp_path, PLAIN)
    (partition / EPOCHS).unlink()
    if content is not None:
        (partition / EPOCHS).write_bytes(content)
    (found,) = found_in(partition)
    what = "the file is missing" if content is None else "the file is empty"
    assert (found.id, found.sentence) == ("leader-epochs-missing", f"{what}, but the batches have epochs 0 to 2")


def test_segments_copied_without_what_stands_beside_them_miss_no_epochs(tmp_path: Path) -> None:
    source = edits.copy_partition(tmp_path, PLAIN)
    copied = tmp_path / "copied" / source.name
    copied.mkdir(parents=True)
    for path in source.glob("0*"):
        if path.suffix != ".snapshot":
            shutil.copy(path, copied)
    assert notes_in(copied) == {}


def test_log_of_which_all_records_are_deleted_needs_no_epochs(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    edits.write_checkpoint(partition, LOG_START, PartitionLog(partition).read_log_end_offset())
    write_leader_epochs()(partition)
    assert notes_in(partition) == {}


@pytest.mark.parametrize(("state", "is_found"), [("delete", False), ("stray", False), ("future", True)])
def test_directories_that_leave_need_no_epochs(state: str, is_found: bool, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    (partition / EPOCHS).unlink()
    moved = partition.rename(partition.with_name(f"{partition.name}.{'0' * 32}-{state}"))
    assert ("leader-epochs-missing" in notes_in(moved)) is is_found


def test_log_does_not_end_below_its_start(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    for log in edits.logs(partition)[:-1]:
        log.unlink()
    os.truncate(edits.logs(partition)[-1], 0)
    edits.write_checkpoint(partition, LOG_START, 130)
    assert PartitionLog(partition).read_log_end_offset() == 130


def test_transaction_below_the_log_start_offset_needs_no_entry(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    (partition / "00000000000000000006.txnindex").write_bytes(b"")
    assert {finding.id for finding in found_in(partition)} == {"transaction-unindexed"}
    edits.write_checkpoint(partition, LOG_START, 30)
    assert found_in(partition) == []


def test_transaction_that_reaches_above_the_log_start_offset_needs_one(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    (partition / "00000000000000000086.txnindex").write_bytes(b"")
    edits.write_checkpoint(partition, LOG_START, 60)
    sentences = [finding.sentence for finding in found_in(partition)]
    assert "producer 6: aborted at offset 88, but no entry has it" in sentences


PRODUCER, MARKER = 1000, 109
"""A producer of the transactional partition whose last transaction is over, and its marker's position."""
ENTRY_SIZE = 46
PLACES = {
    "last_sequence": (10, 4),
    "last_offset": (14, 8),
    "offset_delta": (22, 4),
    "current_txn_first_offset": (38, 8),
}
"""Fields of a snapshot's entry: position and width."""


def change_snapshot(partition: Path, producer: int = PRODUCER, **fields: int) -> None:
    """Change a producer's entry in the last snapshot."""
    snapshot = sorted(partition.glob("*.snapshot"))[-1]
    content = snapshot.read_bytes()
    starts = range(10, len(content), ENTRY_SIZE)
    (entry,) = [start for start in starts if int.from_bytes(content[start : start + 8], "big") == producer]
    for name, value in fields.items():
        start, width = PLACES[name]
        edits.edit_snapshot(snapshot, entry + start, value.to_bytes(width, "big", signed=True))


def test_producer_forgotten_with_the_records_below_the_log_start_offset(tmp_path: Path) -> None:
    """Before 2.4, and when a broker recovers its log, only a marker above it is known of the producer."""
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    change_snapshot(partition, last_sequence=-1, last_offset=-1, offset_delta=0)
    assert [finding.id for finding in found_in(partition)] == ["producer-state-wrong"]
    edits.write_checkpoint(partition, LOG_START, MARKER)
    assert found_in(partition) == []


def test_transaction_that_began_in_what_retention_took(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    change_snapshot(partition, 9, current_txn_first_offset=50)
    assert [finding.id for finding in found_in(partition)] == ["producer-state-wrong"]
    for path in [*partition.glob(f"{6:020}.*"), *partition.glob(f"{59:020}.*")]:
        path.unlink()
    assert found_in(partition) == []


# --- releases' own ways -----------------------------------------------------------------------------------------------


def test_marker_counted_in_a_producer_snapshot_is_how_0_11_did_it(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    change_snapshot(partition, last_offset=MARKER, offset_delta=0)
    assert found_in(partition) == []
    change_snapshot(partition, last_offset=MARKER - 3)
    assert [finding.id for finding in found_in(partition)] == ["producer-state-wrong"]


def test_aborted_transaction_without_records_is_indexed_by_releases_before_2_4(tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, TRANSACTIONAL)
    index = partition / "00000000000000000006.txnindex"
    index.write_bytes(edits.ABORTED_TRANSACTION.pack(0, 5, 6, 6, 7) + index.read_bytes()[34:])
    assert [finding.id for finding in found_in(partition)] == []


def emptied_batch(raw: bytes, base_offset: int, max_timestamp: int) -> bytes:
    """A batch that the cleaner left without records: only the header, with its former timestamp."""
    header = bytearray(raw[:61])
    header[:8] = base_offset.to_bytes(8, "big")
    header[8:12] = (49).to_bytes(4, "big")
    header[35:43] = max_timestamp.to_bytes(8, "big")
    header[57:61] = bytes(4)
    header[17:21] = calc_crc32c(bytes(header[21:])).to_bytes(4, "big")
    return bytes(header)


def test_time_of_a_batch_without_records_may_be_passed_over(tmp_path: Path) -> None:
    """The cleaner of 0.11 left it out: if all batches are empty, the time index has no entry."""
    partition = edits.copy_partition(tmp_path, PLAIN)
    first = edits.logs(partition)[0]
    raw = first.read_bytes()
    position, size = next(edits.v2_batches(first))
    first.write_bytes(emptied_batch(raw[position : position + size], 0, 1_800_000_000_000))
    first.with_suffix(".index").write_bytes(b"")
    first.with_suffix(".timeindex").write_bytes(b"")
    assert [finding.id for finding in found_in(partition) if finding.file.suffix == ".timeindex"] == []


@pytest.mark.parametrize(("largest", "is_well"), [(-1, True), (-5, True), (-7, False)])
def test_times_below_minus_1_make_minus_1_the_largest(largest: int, is_well: bool, tmp_path: Path) -> None:
    partition = edits.copy_partition(tmp_path, PLAIN)
    log = edits.logs(partition)[-1]
    data = bytearray(log.read_bytes())
    position, _ = list(edits.v2_batches(log))[-1]
    base = int.from_bytes(data[position + 27 : position + 35], "big")
    stored = int.from_bytes(data[position + 35 : position + 43], "big")
    edits.edit_batch(log, -1, base_timestamp=-stored - 5, max_timestamp=largest - stored)
    assert base <= stored
    assert ("max-timestamp" not in {finding.id for finding in found_in(partition)}) is is_well
