"""Queries that need only offsets read headers of batches, and return the same offsets as those that read records."""

import random
from pathlib import Path

import pytest

from kseg.export.settings import Isolation, ReadOptions
from tests.kernel.made import BatchHeader, Record, batch
from tests.log_files import ABORT, COMMIT, NewBatch, NewRecord, batch_bytes, marker
from tests.query.disks import opened, rows, run_query
from tests.run import kseg, run_bounded

LOG = f"{0:020}.log"
ZSTD = 4
OFFSETS = 'SELECT topic, partition, "offset" FROM records'
RECORDS = 'SELECT topic, partition, "offset", key IS NULL FROM records'


def write(directory: Path, *batches: bytes) -> None:
    directory.mkdir()
    (directory / LOG).write_bytes(b"".join(batches))


def plain(first: int, count: int, size: int = 10) -> bytes:
    return batch_bytes(NewBatch([NewRecord(b"k", bytes(size))] * count, first))


def compacted(first: int, deltas: list[int], last_delta: int) -> bytes:
    records = [Record(b"k", b"v", offset_delta=delta) for delta in deltas]
    return batch(BatchHeader(first, last_offset_delta=last_delta), records)


def transaction(first: int, count: int, kind: int) -> bytes:
    data = NewBatch([NewRecord(b"t", b"x")] * count, first, 7, 0, is_transactional=True)
    return batch_bytes(data) + batch_bytes(marker(kind, data))


def write_random(directory: Path, seed: int) -> int:
    """Write a log of batches of all kinds; return the offset after the last."""
    made, offset, choose = [], 0, random.Random(seed)
    for _ in range(60):
        count = choose.randint(1, 6)
        match choose.choice(["plain", "large", "gap", "compacted", "commit", "abort"]):
            case "plain":
                made.append(plain(offset, count))
            case "large":
                made.append(plain(offset, 1, 200_000))
            case "gap":
                offset += 3
                made.append(plain(offset, count))
            case "compacted" if seed % 2:
                made.append(compacted(offset, [0, 2, 3], 5))
                count = 6
            case "abort":
                made.append(transaction(offset, count, ABORT))
                count += 1
            case _:
                made.append(transaction(offset, count, COMMIT))
                count += 1
        offset += count if b"\0" * 200_000 not in made[-1] else 1
    write(directory, *made)
    return offset


@pytest.mark.parametrize("seed", range(6))
def test_offsets_are_the_same_with_records_and_without(seed: int, tmp_path: Path) -> None:
    end = write_random(tmp_path / "a-0", seed)
    write_random(tmp_path / "a-1", seed + 1)
    bounds = [f' WHERE "offset" >= {first} AND "offset" < {first + 50}' for first in range(0, end, 17)]
    for isolation in Isolation:
        with opened(tmp_path, read=ReadOptions(isolation=isolation)) as session:
            for condition in ("", " WHERE partition = 1", *bounds):
                expected = [row[:3] for row in rows(session, RECORDS + condition)]
                assert sorted(rows(session, OFFSETS + condition)) == sorted(expected)


def test_query_for_offsets_may_end_between_two_pieces_of_a_log(tmp_path: Path) -> None:
    write(tmp_path / "a-0", *(plain(offset, 1, 200_000) for offset in range(16)))
    with opened(tmp_path) as session:
        for end in range(17):
            assert rows(session, f'SELECT count(*) FROM a WHERE "offset" < {end}') == [(end,)]


def test_wrong_numbers_of_records_do_not_cancel_out(tmp_path: Path) -> None:
    too_many = batch(BatchHeader(0, count=3, last_offset_delta=1), [Record(b"k"), Record(b"k", offset_delta=1)])
    write(tmp_path / "a-0", too_many, compacted(2, [0, 2], 2))
    ran = kseg(["query", 'SELECT "offset" FROM a', "-o", "csv"], tmp_path)
    assert (ran.status, ran.stdout) == (1, b"offset\n0\n1\n2\n4\n")


def test_bodies_that_a_query_does_not_need_are_not_read(tmp_path: Path) -> None:
    unreadable = batch(BatchHeader(2, attributes=ZSTD, count=3, last_offset_delta=2), body=b"not zstd")
    write(tmp_path / "a-0", plain(0, 2), unreadable, plain(5, 1))
    sql = 'SELECT count(*) n, min("offset") first, max("offset") last FROM a'
    assert run_query(tmp_path, sql) == [{"n": 6, "first": 0, "last": 5}]
    reading = kseg(["query", "SELECT count(key) n FROM a", "-o", "csv"], tmp_path)
    assert (reading.status, reading.stdout) == (1, b"n\n3\n")


def test_header_that_claims_billions_of_records_costs_little(tmp_path: Path) -> None:
    most = 2**31 - 1
    write(tmp_path / "a-0", plain(0, 2), batch(BatchHeader(2, count=most, last_offset_delta=most - 1), [Record(b"k")]))
    ran = run_bounded(["query", "SELECT count(*) n FROM a", "-o", "csv"], tmp_path, seconds=10, memory=None)
    assert (ran.status, ran.stdout) == (1, b"n\n3\n")


@pytest.mark.parametrize(
    ("sql", "options", "reads"),
    [
        ("SELECT count(*) FROM a", (), "headers"),
        ("SELECT count(*) FROM a", ("--quick",), "unchecked headers"),
        ('SELECT topic, partition, count(*), max("offset") FROM records GROUP BY ALL', (), "headers"),
        ("SELECT max(timestamp) FROM a", (), "records"),
        ("SELECT count(*) FROM a", ("--grep", "v"), "records"),
        ("SELECT count(*) FROM segments", (), None),
    ],
)
def test_plan_tells_whether_headers_suffice(
    sql: str, options: tuple[str, ...], reads: str | None, tmp_path: Path
) -> None:
    write(tmp_path / "a-0", plain(0, 2))
    (scan,) = run_query(tmp_path, "--dry-run", *options, sql)
    assert scan["reads"] == reads


# --- unchecked headers ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.usefixtures("kernel")
def test_quick_query_returns_the_offsets_of_an_intact_log(seed: int, tmp_path: Path) -> None:
    end = write_random(tmp_path / "a-0", seed)
    write_random(tmp_path / "a-1", seed + 1)
    bounds = [f' WHERE "offset" >= {first} AND "offset" < {first + 50}' for first in range(0, end, 17)]
    for isolation in Isolation:
        read = ReadOptions(isolation=isolation)
        with opened(tmp_path, read=read) as session, opened(tmp_path, read=read, is_quick=True) as quick:
            for condition in ("", " WHERE partition = 1", *bounds):
                assert sorted(rows(quick, OFFSETS + condition)) == sorted(rows(session, OFFSETS + condition))


def test_quick_query_counts_the_records_of_a_batch_with_a_wrong_crc(tmp_path: Path) -> None:
    damaged = bytearray(plain(2, 3, 10_000))
    damaged[-1] ^= 1
    write(tmp_path / "a-0", plain(0, 2), bytes(damaged), plain(5, 1))
    counted = kseg(["query", "SELECT count(*) n FROM a", "-o", "csv"], tmp_path)
    quick = kseg(["query", "--quick", "SELECT count(*) n FROM a", "-o", "csv"], tmp_path)
    assert (counted.status, counted.stdout) == (1, b"n\n3\n")
    assert (quick.status, quick.stdout, quick.stderr) == (0, b"n\n6\n", b"")


def test_quick_query_reports_bytes_that_are_no_batch(tmp_path: Path) -> None:
    write(tmp_path / "a-0", plain(0, 2, 10_000), bytes(5000), plain(5, 1, 10_000))
    quick = kseg(["query", "--quick", "SELECT count(*) n FROM a", "-o", "csv"], tmp_path)
    assert (quick.status, quick.stdout) == (1, b"n\n3\n")
    assert b"missing: offsets 2 to 4" in quick.stderr


@pytest.mark.parametrize(
    ("sql", "note"),
    [
        ("SELECT count(*) n FROM a WHERE key IS NOT NULL", b"--quick has no effect on a: the query needs key\n"),
        ("SELECT count(*) n FROM a", b"from position 0 on, kseg reads and checks records despite --quick"),
    ],
)
def test_quick_query_says_why_it_reads_records(sql: str, note: bytes, tmp_path: Path) -> None:
    write(tmp_path / "a-0", plain(0, 2), compacted(2, [0, 2], 2))
    quick = kseg(["query", "--quick", sql, "-o", "csv"], tmp_path)
    assert (quick.status, quick.stdout) == (0, b"n\n4\n")
    assert note in quick.stderr


def test_quick_query_of_batches_does_not_know_whether_they_are_valid(tmp_path: Path) -> None:
    write(tmp_path / "a-0", plain(0, 2), plain(2, 3, 10_000))
    sql = "SELECT sum(count) n, max(isValid) valid FROM batches"
    assert run_query(tmp_path, "--quick", sql) == [{"n": 5, "valid": None}]
    assert run_query(tmp_path, sql) == [{"n": 5, "valid": True}]
