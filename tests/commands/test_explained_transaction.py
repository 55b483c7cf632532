"""`kseg txns --explain`."""

from pathlib import Path

import pytest

from tests.commands.made_transactions import LOGS, objects, write_two
from tests.export.exports import write_indexes
from tests.log.edits import v2_batches
from tests.log_files import ABORT, NewBatch, NewRecord, marker, write_segment
from tests.run import kseg


def clues(directory: Path, *arguments: str) -> list[tuple[str, int | None, str]]:
    """Return the clues of one partition, each by its kind, its offset and its text."""
    return [(row["kind"], row["offset"], row["told"]) for row in objects([*arguments], directory)]


def test_a_transaction_is_explained_batch_by_batch(tmp_path: Path) -> None:
    first = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)
    more = NewBatch([NewRecord(b"k", b"v", 2000)] * 2, 1, 7, 0, True, base_sequence=1)
    other = NewBatch([NewRecord(b"k", b"v", 2000)], 3, 8, 0, True)
    following = NewBatch([NewRecord(b"k", b"v", 3000)], 5, 7, 0, True, base_sequence=3)
    write_segment(
        tmp_path / "orders-4", [first, more, other, marker(ABORT, more, 2500)._replace(base_offset=4), following]
    )
    assert clues(tmp_path, "orders-4", "--explain", "7@2") == [
        ("batch", 0, "begins: 1 record up to offset 0, epoch 0, 1970-01-01T00:00:01.000Z"),
        ("batch", 1, "continues: 2 records up to offset 2, epoch 0, 1970-01-01T00:00:02.000Z"),
        ("marker", 4, "ABORT, epoch 0, coordinator epoch 7, 1970-01-01T00:00:02.500Z"),
        ("outcome", None, "aborted: its marker says so"),
    ]
    *_, (kind, _, latest) = clues(tmp_path, "orders-4", "--explain", "7")
    assert (kind, latest) == ("outcome", "open: no marker ends it; __transaction_state isn't here")


def test_what_tells_of_a_transaction_whose_marker_is_lost_is_explained(tmp_path: Path) -> None:
    aborted = NewBatch([NewRecord(b"k", b"v", 1000)], 0, 7, 0, True)
    log = write_segment(tmp_path / "orders-4", [aborted, marker(ABORT, aborted), NewBatch([NewRecord(b"k", b"v")], 2)])
    write_indexes(log)
    at, size = list(v2_batches(log))[1]
    content = log.read_bytes()
    log.write_bytes(content[:at] + b"\xff" * size + content[at + size :])
    told = clues(tmp_path, "orders-4", "--explain", "7")
    assert [(kind, offset) for kind, offset, _ in told] == [
        ("batch", 0),
        ("damage", None),
        ("index", 1),
        ("outcome", None),
    ]
    assert told[2][2] == "aborted, from offset 0 on; the last stable offset then was 2"
    assert told[3][2] == "aborted: the marker is lost to damage, but a transaction index has the outcome"
    log.with_suffix(".txnindex").unlink()
    told = clues(tmp_path, "orders-4", "--explain", "7")
    assert ("index", None, "isn't there") in told
    assert told[-1][2].startswith("unknown: its marker may be in a damaged part of the log; specify another copy")


def test_a_transaction_is_found_by_its_transactional_id_with_its_coordinators_states() -> None:
    told = clues(LOGS, "2.3.1", "--topic", "txn", "--partition", "1", "--explain", "tx-open-2")
    assert [kind for kind, _, _ in told] == ["batch", "snapshot", "coordinator", "coordinator", "outcome"]
    assert told[2][2] == "tx-open-2 is Ongoing at 2026-11-21T10:04:47.356Z, producer 1001, epoch 0, in txn-1"


@pytest.mark.parametrize(
    ("wanted", "problem"),
    [
        ("12", "no such transaction"),
        ("8@1", "no such transaction"),
        ("billing", "this isn't a known transactional id or a producer id"),
        ("9" * 5000, "this isn't a known transactional id or a producer id"),
        (f"8@{'9' * 5000}", "this isn't a known transactional id or a producer id"),
    ],
)
def test_a_transaction_that_is_not_there_is_not_explained(wanted: str, problem: str, tmp_path: Path) -> None:
    write_two(tmp_path)
    ran = kseg(["txns", "orders-4", "--explain", wanted], tmp_path)
    assert (ran.status, ran.stdout) == (2, b"")
    assert f"--explain {wanted}: {problem}" in ran.stderr.decode()
