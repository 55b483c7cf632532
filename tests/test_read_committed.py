"""Committed records follow from the log's markers, whatever the files next to it say: dump, lookup and export agree."""

import json
from pathlib import Path

import pytest

from kseg.export.settings import Isolation
from kseg.formats.codes import BATCH_HEADER_SIZE
from tests.export import exports
from tests.log.edits import ABORTED_TRANSACTION, copy_partition, v2_batches
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.loops import for_each, some
from tests.run import kseg as run_kseg
from tests.transactional import TRANSACTIONAL, committed_offsets, mutate_partition, snapshot

MUTATIONS = 204


def dump_offsets(partition: Path) -> list[int]:
    """Return the offsets that `dump` prints."""
    ran = run_kseg(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], partition)
    return list(map(int, ran.stdout.split()))


def look_up(partition: Path, wanted: int) -> int | None:
    """Return the first offset from an offset on that `lookup` finds."""
    ran = run_kseg(
        ["lookup", ".", "--offset", str(wanted), "--isolation", "read_committed", "-o", "json", "-q"], partition
    )
    answer = json.loads(ran.stdout)
    return None if answer["record"] is None else int(answer["record"]["offset"])


def export_offsets(partition: Path, target: Path, size: int) -> list[int]:
    """Return the offsets that `export` writes, with files of about this size."""
    report = exports.export([partition], target, isolation=Isolation.READ_COMMITTED, target_size=size)
    (part,) = report.partitions
    assert part.unexplained == 0
    return exports.offsets(target, part.topic, part.partition)


@for_each("seed", some(range(MUTATIONS), 4))  # not a multiple of the three partitions that seeds choose from
def test_no_index_snapshot_or_checkpoint_changes_what_is_committed(seed: int, tmp_path: Path) -> None:
    partition, changes, random = mutate_partition(seed, tmp_path)
    truth = committed_offsets(partition)
    assert dump_offsets(partition) == truth, changes
    assert export_offsets(partition, tmp_path / "out", random.choice((900, 1 << 28))) == truth, changes
    for wanted in random.sample(range(truth[0] - 2, truth[-1] + 3), 3):
        first = next((offset for offset in truth if offset >= wanted), None)
        assert look_up(partition, wanted) == first, (wanted, changes)


# --- messages --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_healthy_partitions_have_no_notes_but_the_open_transaction(name: str, tmp_path: Path) -> None:
    partition = copy_partition(tmp_path, name)
    ran = run_kseg(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], partition)
    assert list(map(int, ran.stdout.split())) == committed_offsets(partition)
    assert all(b"not yet readable: a transaction of producer" in line for line in ran.stderr.splitlines())


def stale_entry(tmp_path: Path) -> Path:
    """Return 2.3.1's txn-1, with an index entry that has other offsets than the abort."""
    partition = copy_partition(tmp_path, "2.3.1/txn-1")
    path = sorted(partition.glob("*.txnindex"))[0]
    entries = list(ABORTED_TRANSACTION.iter_unpack(path.read_bytes()))
    version, producer_id, first, last, stable = entries[1]
    entries[1] = (version, producer_id, first - 9, last - 9, stable)
    path.write_bytes(b"".join(ABORTED_TRANSACTION.pack(*entry) for entry in entries))
    return partition


def test_stale_transaction_index_is_not_believed_and_every_report_says_so(tmp_path: Path) -> None:
    partition = stale_entry(tmp_path)
    note = b"00000000000000000006.txnindex: no abort of producer"
    arguments = ["--isolation", "read_committed"]
    dump = run_kseg(["dump", ".", *arguments, "--template", "{offset}"], partition)
    assert list(map(int, dump.stdout.split())) == committed_offsets(partition)
    assert note in dump.stderr
    assert note in run_kseg(["lookup", ".", "--offset", "31", *arguments], partition).stderr
    target = str(tmp_path / "out")
    assert note in run_kseg(["export", ".", target, *arguments], partition).stdout
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_text())
    assert [part["unexplained"] for part in report["partitions"]] == [0]
    assert note.decode() in "".join(report["partitions"][0]["remarks"])


def spoil(log: Path, position: int, size: int) -> None:
    """Overwrite bytes of a log."""
    data = bytearray(log.read_bytes())
    data[position : position + size] = b"\xff" * size
    log.write_bytes(data)


def test_transaction_index_tells_of_an_abort_whose_marker_says_commit_with_a_wrong_crc(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(None, b"a"), NewRecord(None, b"b")], 0, 5, 0, is_transactional=True)
    log = write_segment(tmp_path / "orders-0", [aborted, marker(ABORT, aborted), NewBatch([NewRecord(None, b"c")], 3)])
    exports.write_indexes(log)
    (_, (position, size), _) = v2_batches(log)
    content = bytearray(log.read_bytes())
    kind = content.index(b"\0\0\0\0", position + BATCH_HEADER_SIZE) + 3
    assert kind < position + size
    content[kind] = COMMIT
    log.write_bytes(content)
    assert dump_offsets(log.parent) == [3]
    log.with_suffix(".txnindex").unlink()
    assert dump_offsets(log.parent) == [0, 1, 3]


def test_transaction_index_tells_of_an_abort_whose_marker_is_lost(tmp_path: Path) -> None:
    """Offsets 0-1 belong to a transaction aborted at 2, where the log is damaged now; 3 belongs to none."""
    aborted = NewBatch([NewRecord(None, b"a"), NewRecord(None, b"b")], 0, 5, 0, is_transactional=True)
    log = write_segment(
        tmp_path / "orders-0", [aborted, marker(ABORT, aborted), NewBatch([NewRecord(None, b"plain")], 3)]
    )
    exports.write_indexes(log)
    (_, (position, size), _) = v2_batches(log)
    spoil(log, position, size)
    assert dump_offsets(log.parent) == [3]
    log.with_suffix(".txnindex").unlink()
    assert dump_offsets(log.parent) == []


def transaction_whose_commit_is_lost(directory: Path) -> Path:
    """Return segments 0, 4 and 6: offsets 0-1 were committed at 2, where the log is damaged now.

    The others belong to no transaction.
    """
    first = NewBatch([NewRecord(None, b"a"), NewRecord(None, b"b")], 0, 5, 0, is_transactional=True)
    partition = directory / "orders-0"
    plain = [NewBatch([NewRecord(None, b"plain")], offset) for offset in range(8)]
    log = write_segment(partition, [first, marker(COMMIT, first), plain[3]])
    write_segment(partition, plain[4:6], 4)
    write_segment(partition, plain[6:], 6)
    (_, (position, size), _) = v2_batches(log)
    spoil(log, position, size)
    return partition


NOTHING_OPEN = (5, 0, 1, 1, 1, -1, 0, -1)
ENDED_IN_DAMAGE = b"the transaction of producer 5 from offset 0 on ended in a damaged part of the log"


def test_snapshot_after_damage_tells_that_a_transaction_ended_there(tmp_path: Path) -> None:
    partition = transaction_whose_commit_is_lost(tmp_path)
    for offset in (4, 6, 8):
        (partition / f"{offset:020}.snapshot").write_bytes(snapshot(NOTHING_OPEN))
    assert dump_offsets(partition) == [0, 1, 3, 4, 5, 6, 7]
    assert [look_up(partition, offset) for offset in (0, 4, 7)] == [0, 4, 7]
    ran = run_kseg(["dump", ".", "--isolation", "read_committed"], partition)
    assert ENDED_IN_DAMAGE in ran.stderr
    assert b"a transaction is open" not in ran.stderr


@pytest.mark.parametrize("offset", [4, 6, 8])
def test_any_later_snapshot_tells_it(offset: int, tmp_path: Path) -> None:
    partition = transaction_whose_commit_is_lost(tmp_path)
    (partition / f"{offset:020}.snapshot").write_bytes(snapshot(NOTHING_OPEN))
    assert dump_offsets(partition) == [0, 1, 3, 4, 5, 6, 7]


def test_transaction_that_the_snapshot_after_damage_has_open_stays_so(tmp_path: Path) -> None:
    """The snapshot at offset 8 adds nothing: an end would need a marker between both, and there is none."""
    partition = transaction_whose_commit_is_lost(tmp_path)
    (partition / f"{4:020}.snapshot").write_bytes(snapshot((5, 0, 1, 1, 1, -1, 0, 0)))
    (partition / f"{8:020}.snapshot").write_bytes(snapshot(NOTHING_OPEN))
    assert dump_offsets(partition) == []


def test_snapshot_tells_of_a_lost_end_of_the_log_too(tmp_path: Path) -> None:
    first = NewBatch([NewRecord(None, b"a")], 0, 5, 0, is_transactional=True)
    log = write_segment(tmp_path / "orders-0", [first, marker(COMMIT, first)])
    _, (position, size) = v2_batches(log)
    spoil(log, position, size)
    assert dump_offsets(log.parent) == []
    (log.parent / f"{2:020}.snapshot").write_bytes(snapshot((5, 0, 0, 0, 0, -1, 0, -1)))
    assert dump_offsets(log.parent) == [0]


def test_only_records_of_a_transaction_that_may_have_been_aborted_are_left_out(
    tmp_path: Path,
) -> None:
    """The snapshot shows its end; the index that could show an abort is unreadable."""
    partition = transaction_whose_commit_is_lost(tmp_path)
    (partition / f"{4:020}.snapshot").write_bytes(snapshot(NOTHING_OPEN))
    (partition / f"{0:020}.txnindex").write_bytes(b"\0" * 33)
    assert dump_offsets(partition) == [3, 4, 5, 6, 7]


def test_snapshot_tells_where_the_next_transaction_of_the_producer_began(tmp_path: Path) -> None:
    """0 was committed at 1, where the log is damaged now; 2 is in an open transaction."""
    first = NewBatch([NewRecord(None, b"a")], 0, 5, 0, is_transactional=True)
    second = first._replace(base_offset=2)
    log = write_segment(tmp_path / "orders-0", [first, marker(COMMIT, first), second])
    _, (position, size), _ = v2_batches(log)
    spoil(log, position, size)
    write_segment(log.parent, [NewBatch([NewRecord(None, b"plain")], 3)], 3)
    (log.parent / f"{3:020}.snapshot").write_bytes(snapshot((5, 0, 1, 2, 0, -1, 0, 2)))
    assert dump_offsets(log.parent) == [0]


def commit_lost_before_an_abort(directory: Path) -> Path:
    """Return 0-1 committed at 2, 3-5 aborted at 6 according to the index, 7 of no transaction.

    Nothing is damaged yet.
    """
    records = [NewRecord(None, b"a"), NewRecord(None, b"b"), NewRecord(None, b"c")]
    first = NewBatch(records[:2], 0, 5, 0, is_transactional=True)
    second = NewBatch(records, 3, 5, 0, is_transactional=True)
    plain = NewBatch([NewRecord(None, b"plain")], 7)
    log = write_segment(directory / "orders-0", [first, marker(COMMIT, first), second, marker(ABORT, second), plain])
    exports.write_indexes(log)
    return log


def test_index_tells_where_an_abort_begins_if_the_commit_before_is_lost(tmp_path: Path) -> None:
    log = commit_lost_before_an_abort(tmp_path)
    (_, (position, size), *_) = v2_batches(log)
    spoil(log, position, size)
    ran = run_kseg(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], log.parent)
    assert list(map(int, ran.stdout.split())) == [0, 1, 7]
    assert ENDED_IN_DAMAGE in ran.stderr
    assert b"the abort at offset 6 has first offset 3" in ran.stderr
    log.with_suffix(".txnindex").unlink()
    assert dump_offsets(log.parent) == [7]


@pytest.mark.parametrize("first", [0, 2, 4, 6])
def test_entry_that_begins_elsewhere_is_not_believed_and_reported(first: int, tmp_path: Path) -> None:
    log = commit_lost_before_an_abort(tmp_path)
    log.with_suffix(".txnindex").write_bytes(ABORTED_TRANSACTION.pack(0, 5, first, 6, 7))
    ran = run_kseg(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], log.parent)
    assert list(map(int, ran.stdout.split())) == [0, 1, 7]
    assert (
        f"aborted at offset 6 begins at 3, but the entry has {first}: kseg uses the log instead".encode() in ran.stderr
    )
    ran = run_kseg(["verify", "."], log.parent)
    assert ran.status == 1
    assert (b"transaction-unfounded" if first < 3 else b"transaction-unindexed") in ran.stdout
    assert f"producer 5: begins at offset 3, the entry says {first}".encode() in ran.stdout


def test_marker_whose_crc_is_wrong_may_have_ended_a_transaction(tmp_path: Path) -> None:
    """Its key no longer says commit or abort."""
    log = commit_lost_before_an_abort(tmp_path)
    (_, (position, size), *_) = v2_batches(log)
    spoil(log, position + size - 13, 4)
    assert dump_offsets(log.parent) == [0, 1, 7]


@pytest.mark.parametrize(("number", "first", "wanted"), [(4, 4, [0, 1]), (1, 1, [7])])
def test_index_is_not_believed_where_no_damage_lies_between(
    number: int, first: int, wanted: list[int], tmp_path: Path
) -> None:
    """An entry that begins too late for the log, or before the damage, would show aborted records."""
    log = commit_lost_before_an_abort(tmp_path)
    spoil(log, *list(v2_batches(log))[number])
    log.with_suffix(".txnindex").write_bytes(ABORTED_TRANSACTION.pack(0, 5, first, 6, 7))
    assert dump_offsets(log.parent) == wanted


def test_damaged_batch_opens_no_transaction(tmp_path: Path) -> None:
    """A damaged producer id would hold back all following records."""
    plain = NewBatch([NewRecord(None, b"plain")], 1)
    spoilt = NewBatch([NewRecord(None, b"a")], 0, 5, 0, is_transactional=True)
    log = write_segment(tmp_path / "orders-0", [spoilt, plain])
    spoil(log, 50, 1)
    ran = run_kseg(["dump", ".", "--isolation", "read_committed", "--only", "records", "-o", "json"], log.parent)
    assert [json.loads(line)["offset"] for line in ran.stdout.splitlines() if b'"offset":1' in line] == [1]
    assert b"a transaction is open" not in ran.stderr
    ran = run_kseg(["txns", "."], log.parent)
    assert (
        b"orders-0: offset 0: the CRC of its batch is wrong, so kseg ignores this start of a transaction" in ran.stderr
    )
    assert ran.stdout == b""


def test_transaction_that_began_below_the_log_start_is_open_if_both_snapshots_have_it(tmp_path: Path) -> None:
    """Producer 9 began at offset 3, whose segment is gone; producer 5's transaction at 10 is committed."""
    committed_batch = NewBatch([NewRecord(None, b"a")], 10, 5, 0, is_transactional=True)
    log = write_segment(tmp_path / "orders-0", [committed_batch, marker(COMMIT, committed_batch)], 10)
    assert dump_offsets(log.parent) == [10]
    for offset, wanted in ((10, [10]), (12, [])):
        (log.parent / f"{offset:020}.snapshot").write_bytes(snapshot((9, 0, 0, 3, 0, -1, 0, 3)))
        assert dump_offsets(log.parent) == wanted
    (log.parent / f"{12:020}.snapshot").write_bytes(snapshot((9, 0, 0, 3, 0, -1, 0, -1)))
    assert dump_offsets(log.parent) == [10]


def test_export_of_which_all_is_held_back_says_why(tmp_path: Path) -> None:
    opened = NewBatch([NewRecord(None, b"a")], 0, 5, 0, is_transactional=True)
    write_segment(tmp_path / "orders-0", [opened])
    ran = run_kseg(["export", "orders-0", "out", "--isolation", "read_committed"], tmp_path)
    assert ran.status == 0
    assert b"1 offset from 0 on, 1 record, held back: a transaction of producer 5 is open since" in ran.stdout
    report = json.loads((tmp_path / "out" / "_kseg" / "report.json").read_text())
    assert [(part["recordsOut"], part["openFrom"], part["withheldRecords"]) for part in report["partitions"]] == [
        (0, 0, 1)
    ]


def test_lookup_finds_what_is_still_in_the_log_below_its_start_and_says_so(tmp_path: Path) -> None:
    partition = copy_partition(tmp_path, "4.3.1/compacted-txn-0")
    first = committed_offsets(partition)[0]
    (partition.parent / "log-start-offset-checkpoint").write_text(f"0\n1\ncompacted-txn 0 {first + 9}\n")
    ran = run_kseg(["lookup", ".", "--offset", str(first), "--isolation", "read_committed"], partition)
    assert ran.status == 0
    assert f"offset {first} is below the log start offset {first + 9}".encode() in ran.stderr
