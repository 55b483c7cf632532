"""Damaged markers, indexes and snapshots: every command takes transactions from the same walk."""

import json
import re
from pathlib import Path
from random import Random

import pytest

import kseg
from kseg.export.settings import Isolation
from kseg.formats.codes import BATCH_HEADER_SIZE, CONTROL_MASK, TRANSACTIONAL_MASK
from kseg.log.committed import read_committed, read_last_stable_offset
from kseg.log.partition import PartitionLog
from kseg.log.transactions import Outcome, PartitionTransactions, Transaction
from tests.coordinators.coordinators import commit
from tests.export import exports
from tests.log.edits import copy_partition, v2_batches
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, marker, write_segment
from tests.loops import for_each
from tests.run import kseg as run
from tests.transactional import TRANSACTIONAL, mutate_partition, snapshot

CASES = 300
ASKED = 12
"""Number of cases in which commands run too."""
_MARKER_TYPE = 69
"""Position of the lower byte of a marker's type."""
_ATTRIBUTES = 22
"""Position of the lower byte of a batch's attributes."""


def _is_marker(batch: bytes) -> bool:
    return len(batch) > BATCH_HEADER_SIZE and bool(batch[_ATTRIBUTES] & CONTROL_MASK)


def damaged_partition(seed: int, tmp_path: Path) -> Path:
    """Return a partition with destroyed, doubled or swapped markers.

    In every third one the files next to its logs are damaged too.
    """
    random = Random(seed)
    if seed % 3 == 0:
        partition, _, _ = mutate_partition(seed, tmp_path)
    else:
        partition = copy_partition(tmp_path, random.choice(TRANSACTIONAL))
    for path in random.sample(sorted(partition.glob("*.txnindex")), seed % 2):
        path.unlink()
    for _ in range(random.choice((1, 1, 2))):
        log = random.choice(sorted(partition.glob("*.log")))
        content = bytearray(log.read_bytes())
        found = [(at, size) for at, size in v2_batches(log) if _is_marker(content[at : at + size])]
        markers = [(at, size) for at, size in found if at + size <= len(content)]
        if not markers:
            continue
        at, size = random.choice(markers)
        match random.randrange(5):
            case 0:
                content[at : at + size] = b"\xff" * size
            case 1:
                content[at + random.randrange(17, size)] ^= 1 << random.randrange(8)
            case 2:
                first, end = max(at - random.randrange(300), 0), at + size + random.randrange(300)
                content[first:end] = bytes(len(content[first:end]))
            case 3:
                content[at:at] = content[at : at + size]
            case 4:
                (other, same) = random.choice([each for each in markers if each[1] == size])
                content[at : at + size], content[other : other + same] = (
                    content[other : other + same],
                    content[at : at + size],
                )
        log.write_bytes(content)
    return partition


def list_transactions(partition: Path) -> tuple[list[Transaction], int | None]:
    """Return the list of `txns`, and the first offset of the oldest transaction that isn't known to have ended."""
    found = list(PartitionTransactions(PartitionLog(partition)).transactions())
    return found, min((each.first_offset or 0 for each in found if each.is_open), default=None)


def _last(ended: Transaction) -> int:
    """Return the offset of a transaction's marker, or of its last record if that is unknown."""
    return ended.end_offset or ended.last_offset or 0


def committed_offsets(partition: Path, found: list[Transaction], stable: int | None) -> list[int]:
    """Return offsets of records outside aborted transactions, up to the first that may be open.

    The list of transactions decides.
    """
    left_out = [each for each in found if not each.is_open and each.outcome is not Outcome.COMMITTED]
    aborted = [(each.producer_id, each.first_offset, _last(each)) for each in left_out]
    offsets = []
    for log in sorted(partition.glob("*.log")):
        with kseg.open_segment(log) as segment:
            for batch in segment.scan():
                if not isinstance(batch, kseg.Batch) or batch.is_control or not batch.is_valid:
                    continue
                first = batch.base_offset or 0
                is_aborted = batch.is_transactional and any(
                    producer_id == batch.producer_id and begun is not None and begun <= first <= last
                    for producer_id, begun, last in aborted
                )
                if not is_aborted:
                    offsets += [record.offset for record in batch.records(on_damage="skip")]
    return sorted(offset for offset in offsets if stable is None or offset < stable)


@for_each("seed", range(CASES))
def test_the_list_and_what_is_committed_agree(seed: int, tmp_path: Path) -> None:
    partition = damaged_partition(seed, tmp_path)
    found, stable = list_transactions(partition)
    listed = PartitionLog(partition)
    read = read_committed(listed.segments, listed)
    left_out = [each for each in found if not each.is_open and each.outcome is not Outcome.COMMITTED]
    ended = sorted((each.producer_id, each.first_offset) for each in left_out if each.first_offset is not None)
    spans = {(producer, first): last for producer, spans in read.aborted.items() for first, last in spans}
    assert sorted(spans) == ended
    for each in left_out:
        if each.outcome is Outcome.ABORTED and each.first_offset is not None:
            assert spans[each.producer_id, each.first_offset] == each.end_offset
    assert read.last_stable_offset == stable == read_last_stable_offset(listed)


@for_each("seed", range(0, CASES, CASES // ASKED))
def test_commands_give_what_the_list_says_is_committed(seed: int, tmp_path: Path) -> None:
    partition = damaged_partition(seed, tmp_path)
    found, stable = list_transactions(partition)
    truth = committed_offsets(partition, found, stable)
    isolation = ["--isolation", "read_committed"]
    dumped = run(["dump", ".", *isolation, "--template", "{offset}"], partition)
    assert sorted(map(int, dumped.stdout.split())) == truth
    queried = run(["query", 'SELECT "offset" FROM records', ".", *isolation, "-o", "json"], partition)
    assert sorted(json.loads(line)["offset"] for line in queried.stdout.splitlines()) == truth
    report = exports.export([partition], tmp_path / "out", isolation=Isolation.READ_COMMITTED)
    (part,) = report.partitions
    assert sorted(exports.offsets(tmp_path / "out", part.topic, part.partition)) == truth
    said = [re.findall(rb"(\d+) records? from offset (\d+) on", ran.stderr) for ran in (dumped, queried)]
    withheld = [] if stable is None else [(str(part.withheld_records).encode(), str(part.open_from).encode())]
    assert said == [withheld, withheld]
    rows = map(json.loads, run(["txns", ".", "-o", "json"], partition).stdout.splitlines())
    (end,) = {row["lastStableOffset"] for row in rows if row["type"] == "partition"}
    assert stable in (None, end)
    listed = list(
        map(json.loads, run(["ls", ".", "--by", "segment", "--deep", "-o", "json"], partition).stdout.splitlines())
    )
    counts = [row["openTransactions"] for row in listed if row["type"] == "segment"]
    assert counts[-1] == sum(each.is_open for each in found)


def without_marker(directory: Path, aborted: NewBatch, *following: NewBatch) -> Path:
    """Return a log that begins with a transaction whose abort is destroyed, and only in the index."""
    log = write_segment(directory, [aborted, marker(ABORT, aborted), *following])
    exports.write_indexes(log)
    at, size = list(v2_batches(log))[1]
    content = log.read_bytes()
    log.write_bytes(content[:at] + b"\xff" * size + content[at + size :])
    return log.parent


def _states(partition: Path) -> list[tuple[int, str, str | None]]:
    rows = map(json.loads, run(["txns", ".", "-o", "json"], partition).stdout.splitlines())
    return [(row["producerId"], row["state"], row["evidence"]) for row in rows if row["type"] == "transaction"]


def _with_abort_bit(directory: Path, *following: NewBatch) -> Path:
    """Return a log that begins with a committed transaction.

    One bit turns its marker into an abort, with a wrong CRC.
    """
    committed = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    log = write_segment(directory, [committed, marker(COMMIT, committed), *following])
    exports.write_indexes(log)
    at, _ = list(v2_batches(log))[1]
    content = bytearray(log.read_bytes())
    content[at + _MARKER_TYPE] ^= COMMIT ^ ABORT
    log.write_bytes(content)
    return log.parent


def test_a_damaged_marker_is_no_abort_if_the_index_goes_on_without_it(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v")], 2, 6, 0, is_transactional=True)
    partition = _with_abort_bit(tmp_path / "orders-0", aborted, marker(ABORT, aborted))
    assert _states(partition) == [(5, "committed", "index"), (6, "aborted", "marker")]
    ran = run(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], partition)
    assert ran.stdout.split() == [b"0"]


_MAGIC, _LAST_DELTA, _PRODUCER_ID = 16, 26, 50
"""Positions of the lowest bytes of a batch's fields."""


@pytest.mark.parametrize(
    ("at", "bit"),
    [(_MAGIC, 2), (_ATTRIBUTES, CONTROL_MASK), (_ATTRIBUTES, TRANSACTIONAL_MASK), (_LAST_DELTA, 1), (_PRODUCER_ID, 2)],
)
def test_the_index_tells_of_an_abort_whose_marker_no_longer_looks_like_one(at: int, bit: int, tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    committed = NewBatch([NewRecord(b"k", b"v")], 2, 5, 0, is_transactional=True, base_sequence=1)
    log = write_segment(tmp_path / "orders-0", [aborted, marker(ABORT, aborted), committed, marker(COMMIT, committed)])
    exports.write_indexes(log)
    position, _ = list(v2_batches(log))[1]
    content = bytearray(log.read_bytes())
    content[position + at] ^= bit
    log.write_bytes(content)
    assert _states(log.parent) == [(5, "aborted", "index"), (5, "committed", "marker")]
    ran = run(["dump", ".", "--isolation", "read_committed", "--template", "{offset}"], log.parent)
    assert ran.stdout.split() == [b"2"]


@pytest.mark.parametrize(
    ("bit", "evidence"), [(TRANSACTIONAL_MASK, ("marker", "marker")), (CONTROL_MASK, ("snapshot", "index"))]
)
@pytest.mark.parametrize("is_followed", [False, True])
def test_a_commit_whose_marker_has_a_wrong_flag_is_no_open_transaction(
    bit: int, evidence: tuple[str, str], is_followed: bool, tmp_path: Path
) -> None:
    """The producer epoch rises with each transaction (KIP-890)."""
    first = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    second = NewBatch([NewRecord(b"k", b"v")], 2, 5, 1, is_transactional=True)
    ended = [marker(COMMIT, first)._replace(producer_epoch=1), marker(ABORT, second)._replace(producer_epoch=2)]
    following = [second, ended[1]] if is_followed else [NewBatch([NewRecord(b"k", b"v")] * 2, 2)]
    log = write_segment(tmp_path / "orders-0", [first, ended[0], *following])
    exports.write_indexes(log)
    write_segment(log.parent, [NewBatch([NewRecord(b"k", b"v")], 4)], 4)
    (log.parent / "00000000000000000004.snapshot").write_bytes(snapshot())
    position, _ = list(v2_batches(log))[1]
    content = bytearray(log.read_bytes())
    content[position + _ATTRIBUTES] ^= bit
    log.write_bytes(content)
    wanted = [(5, "committed", evidence[is_followed]), (5, "aborted", "marker")]
    assert _states(log.parent) == wanted[: 1 + is_followed]


def test_a_damaged_marker_at_the_end_of_an_index_is_believed(tmp_path: Path) -> None:
    """A power cut can destroy the entry together with a part of the marker."""
    assert _states(_with_abort_bit(tmp_path / "orders-0")) == [(5, "aborted", "marker")]


def test_a_damaged_marker_in_a_closed_segment_is_no_abort_that_its_index_lacks(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v")], 0, 6, 0, is_transactional=True)
    committed = NewBatch([NewRecord(b"k", b"v")], 2, 5, 0, is_transactional=True)
    log = write_segment(tmp_path / "orders-0", [aborted, marker(ABORT, aborted), committed, marker(COMMIT, committed)])
    write_segment(log.parent, [NewBatch([NewRecord(b"k", b"v")], 4)], 4)
    exports.write_indexes(log)
    at, _ = list(v2_batches(log))[3]
    content = bytearray(log.read_bytes())
    content[at + _MARKER_TYPE] ^= COMMIT ^ ABORT
    log.write_bytes(content)
    assert _states(log.parent) == [(6, "aborted", "marker"), (5, "committed", "index")]


@pytest.mark.parametrize("base_offset", [0, 4])
def test_an_index_that_went_missing_proves_no_commit(base_offset: int, tmp_path: Path) -> None:
    """The log has another abort, before it or in the same segment, that no index has."""
    known = NewBatch([NewRecord(b"k", b"v")], 0, 6, 0, is_transactional=True)
    aborted = NewBatch([NewRecord(b"k", b"v")], 4, 5, 0, is_transactional=True)
    before = [known, marker(ABORT, known), NewBatch([NewRecord(b"k", b"v")] * 2, 2)]
    lost = [aborted, marker(ABORT, aborted)]
    log = write_segment(tmp_path / "orders-0", lost if base_offset else before + lost, base_offset)
    if base_offset:
        write_segment(log.parent, before)
    content = log.read_bytes()
    at, size = list(v2_batches(log))[-1]
    log.write_bytes(content[:at] + b"\xff" * size + content[at + size :])
    write_segment(log.parent, [NewBatch([NewRecord(b"k", b"v")], 6)], 6)
    (log.parent / "00000000000000000006.snapshot").write_bytes(snapshot())
    assert _states(log.parent) == [(6, "aborted", "marker"), (5, "unknown", "snapshot")]
    whole, later = (
        run(["dump", ".", "--isolation", "read_committed", "--template", "{offset}", *begins_at], log.parent)
        for begins_at in ((), ("--from-offset", "6"))
    )
    assert (whole.stdout.split(), later.stdout.split()) == ([b"2", b"3", b"6"], [b"6"])
    assert (
        b"1 record from offset 4 on is not yet readable: the outcome of a transaction of producer 5 isn't known"
        in whole.stderr
    )


def test_groups_show_no_commit_of_an_aborted_transaction_whose_marker_is_lost(tmp_path: Path) -> None:
    aborted = NewBatch([commit("orders", 10)], 0, 5, 0, is_transactional=True)
    committed = NewBatch([commit("orders", 7, partition=1)], 2, 5, 0, is_transactional=True, base_sequence=1)
    without_marker(tmp_path / "__consumer_offsets-0", aborted, committed, marker(COMMIT, committed))
    rows = map(json.loads, run(["groups", ".", "-o", "json"], tmp_path).stdout.splitlines())
    assert [(row["partition"], row["offset"]) for row in rows if row["type"] == "commit"] == [(1, 7)]


def test_reindex_writes_a_snapshot_without_a_transaction_of_which_the_index_tells_the_abort(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    without_marker(tmp_path / "orders-0", aborted, NewBatch([NewRecord(b"k", b"v")], 2))
    run(["reindex", "orders-0", "--to", "new"], tmp_path)
    (snapshot,) = (tmp_path / "new").glob("*.snapshot")
    dumped = run(["dump", "--files", str(snapshot)], tmp_path).stdout.decode()
    assert "producerId: 5 " in dumped
    assert "currentTxnFirstOffset: OptionalLong.empty " in dumped


@pytest.mark.parametrize("is_told_by", ["index", "snapshot"])
def test_salvage_writes_a_lost_marker_anew(is_told_by: str, tmp_path: Path) -> None:
    """Without it, the transaction would be open in the new partition, and could only be aborted."""
    state = "aborted" if is_told_by == "index" else "committed"
    first = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    other = NewBatch([NewRecord(b"k", b"v")], 2, 6, 0, is_transactional=True)
    ends = [marker(ABORT if is_told_by == "index" else COMMIT, first), other, marker(ABORT, other)]
    log = write_segment(tmp_path / "orders-0", [first, *ends])
    exports.write_indexes(log)
    if is_told_by == "snapshot":
        (log.parent / f"{4:020}.snapshot").write_bytes(snapshot((5, 0, 0, 0, 0, -1, 0, -1)))
    at, size = list(v2_batches(log))[1]
    content = log.read_bytes()
    log.write_bytes(content[:at] + b"\xff" * size + content[at + size :])
    said = map(json.loads, run(["salvage", "orders-0", "--to", "new", "-o", "json"], tmp_path).stdout.splitlines())
    (saved,) = (row for row in said if row["type"] == "salvage")
    new = {"producerId": 5, "firstOffset": 0, "offset": 1, "state": state, "evidence": is_told_by}
    assert (saved["lostMarkers"], saved["unfinishedTransactions"]) == ([new], [])
    rows = map(json.loads, run(["txns", "new/orders-0", "-o", "json"], tmp_path).stdout.splitlines())
    told = [(row["firstOffset"], row["endOffset"], row["state"], row["evidence"]) for row in rows if "evidence" in row]
    assert told == [(0, 1, state, "marker"), (2, 3, "aborted", "marker")]
    assert run(["verify", "new/orders-0"], tmp_path).status == 0


def test_verify_finds_no_open_transaction_where_the_index_tells_of_its_abort(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v")], 0, 5, 0, is_transactional=True)
    partition = without_marker(tmp_path / "orders-0", aborted, NewBatch([NewRecord(b"k", b"v")], 2))
    rows = list(map(json.loads, run(["txns", ".", "-o", "json"], partition).stdout.splitlines()))
    assert [(row["state"], row["evidence"]) for row in rows if row["type"] == "transaction"] == [("aborted", "index")]
    found = map(json.loads, run(["verify", ".", "-o", "json"], partition).stdout.splitlines())
    ids = {row["id"] for row in found if row["type"] == "finding"}
    assert ids
    assert not {each for each in ids if "open" in each}
