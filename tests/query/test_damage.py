"""Queries of damaged disks return intact records, and report the rest."""

import shutil
from pathlib import Path

from tests.export.exports import damaged_directories, export, offsets
from tests.log_files import NewBatch, NewRecord, batch_bytes, write_segment
from tests.query.disks import opened, rows, run_query
from tests.run import kseg


def batches(first: int, end: int, epoch: int = 0) -> list[NewBatch]:
    return [
        NewBatch(
            [NewRecord(b"%d" % offset, b"v" * 50) for offset in range(at, at + 10)], at, partition_leader_epoch=epoch
        )
        for at in range(first, end, 10)
    ]


def flip(log: Path, position: int) -> None:
    data = bytearray(log.read_bytes())
    data[position] ^= 0xFF
    log.write_bytes(data)


def test_intact_records_are_given_and_the_rest_is_said(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "a-0", batches(0, 100))
    write_segment(tmp_path / "b-0", batches(0, 20))
    position = sum(len(batch_bytes(batch)) for batch in batches(0, 30))
    flip(log, position + 100)
    ran = kseg(["query", "SELECT topic, count(*) n FROM records GROUP BY 1 ORDER BY 1", "-o", "csv"], tmp_path)
    assert (ran.status, ran.stdout) == (1, b"topic,n\na,90\nb,20\n")
    (line,) = ran.stderr.decode().splitlines()
    assert f"a-0/00000000000000000000.log: at position {position}: bad-crc" in line
    assert line.endswith("missing: offsets 30 to 39")


def test_damage_that_a_query_does_not_need_is_not_met(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "a-0", batches(0, 100))
    write_segment(tmp_path / "b-0", batches(0, 20))
    flip(log, 100)
    assert run_query(tmp_path, "SELECT count(*) n FROM b") == [{"n": 20}]


def test_a_torn_end_is_no_damage_of_the_answer_but_said_by_status(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "a-0", batches(0, 100))
    log.write_bytes(log.read_bytes()[:-7])
    ran = kseg(["query", "SELECT count(*) n FROM a", "-o", "csv"], tmp_path)
    assert ran.stdout == b"n\n90\n"
    assert ran.status == 1
    assert b"torn" in ran.stderr or b"ends" in ran.stderr


def test_zeros_of_a_preallocated_log_are_no_damage(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "a-0", batches(0, 100))
    log.write_bytes(log.read_bytes() + bytes(1000))
    assert run_query(tmp_path, "SELECT count(*) n FROM a") == [{"n": 100}]


def test_another_copy_gives_what_the_best_one_lacks(tmp_path: Path) -> None:
    best = write_segment(tmp_path / "disk1/a-0", batches(0, 100, epoch=2))
    write_segment(tmp_path / "disk2/a-0", batches(0, 90, epoch=2))
    flip(best, 300)
    ran = kseg(
        ["query", 'SELECT count(*) n, count(DISTINCT "offset") d FROM a', "-o", "csv", "disk1", "disk2"], tmp_path
    )
    assert ran.stdout == b"n,d\n100,100\n"
    assert ran.status == 1
    assert b"another copy has these offsets" in ran.stderr


def test_a_copy_that_is_whole_is_said_nothing_of(tmp_path: Path) -> None:
    write_segment(tmp_path / "disk1/a-0", batches(0, 100, epoch=2))
    write_segment(tmp_path / "disk2/a-0", batches(0, 90, epoch=2))
    told = b"kseg: 1 partition in 2 copies\n"
    assert run_query(tmp_path, "SELECT count(*) n FROM a", "disk1", "disk2", told=told) == [{"n": 100}]


def test_offsets_that_do_not_rise_come_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "a-0", [*batches(0, 50), *batches(30, 80, epoch=1)])
    with opened(tmp_path) as session:
        assert rows(session, 'SELECT count(*), count(DISTINCT "offset"), max("offset") FROM a') == [(80, 80, 79)]


def test_offsets_that_fall_when_rows_are_given_already_end_the_answer(tmp_path: Path) -> None:
    large = [NewBatch([NewRecord(b"k", b"v" * 1000)] * 100, first) for first in range(0, 50_000, 100)]
    write_segment(tmp_path / "a-0", [*large, *batches(30, 80, epoch=1)])
    ran = kseg(["query", "SELECT * FROM a", "-o", "csv"], tmp_path)
    assert ran.status == 1
    assert b"ORDER BY" in ran.stderr
    ran = kseg(["query", 'SELECT "offset" FROM a ORDER BY 1 LIMIT 2 OFFSET 30', "-o", "csv"], tmp_path)
    assert (ran.status, ran.stdout) == (0, b"offset\n30\n31\n")


def test_a_log_that_cannot_be_opened_is_refused_and_the_others_are_read(tmp_path: Path) -> None:
    write_segment(tmp_path / "a-0", batches(0, 100))
    log = write_segment(tmp_path / "b-0", batches(0, 20))
    log.unlink()
    log.mkdir()
    ran = kseg(["query", "SELECT topic, count(*) n FROM records GROUP BY 1", "-o", "csv"], tmp_path)
    assert b"a,100" in ran.stdout
    assert b"Traceback" not in ran.stderr


def test_tables_say_what_is_damaged_too(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "a-0", batches(0, 100))
    flip(log, 300)
    (row,) = run_query(tmp_path, "SELECT count(*) n, count_if(NOT isValid) wrong FROM batches")
    assert row == {"n": 10, "wrong": 1}
    (finding,) = run_query(tmp_path, "SELECT id, topic, partition, severity FROM findings WHERE severity = 'error'")
    assert (finding["id"], finding["topic"], finding["partition"]) == ("bad-crc", "a", 0)


def test_all_damaged_golden_logs_are_queried_without_a_traceback(restored: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    for number, directory in enumerate(damaged_directories(restored)):
        if any(directory.glob("*.log")):
            shutil.copytree(directory, disk / f"damaged{number % 7}-{number}")
    for sql in (
        "SELECT topic, partition, count(*), count(key), max(timestamp) FROM records GROUP BY ALL",
        "SELECT count(*), max(baseOffset) FROM batches",
        "SELECT * FROM segments",
        "SELECT * FROM partitions",
        "SELECT * FROM topics",
        "SELECT id, count(*) FROM findings GROUP BY 1",
        "SELECT * FROM transactions",
        "SELECT * FROM damaged3 LIMIT 50",
    ):
        ran = kseg(["query", sql, "disk", "-o", "json"], tmp_path)
        assert ran.status in (0, 1), (sql, ran.stderr[-500:])
        assert b"Traceback" not in ran.stderr


def test_damaged_disk_gives_what_its_export_gives(restored: Path, tmp_path: Path) -> None:
    first = [directory for directory in damaged_directories(restored) if directory.name < "060"]
    assert len(first) >= 20
    for number, directory in enumerate(first):
        if any(directory.glob("*.log")):
            shutil.copytree(directory, tmp_path / "disk" / f"damaged-{number}")
    export([tmp_path / "disk"], tmp_path / "out")
    partitions = sorted(int(path.name.partition("-")[2]) for path in (tmp_path / "disk").iterdir())
    with opened(tmp_path / "disk") as session:
        for number in partitions:
            found = rows(session, f'SELECT "offset" FROM damaged WHERE partition = {number} ORDER BY 1')
            assert [row[0] for row in found] == sorted(offsets(tmp_path / "out", "damaged", number))


def test_a_partition_without_segments_has_no_rows(tmp_path: Path) -> None:
    write_segment(tmp_path / "a-0", batches(0, 20))
    (tmp_path / "b-0").mkdir()
    (tmp_path / "b-0" / "partition.metadata").write_text(
        "version: 0\ntopic_id: cJFU-m2vQ6uCEEqPGgnDXw\n", encoding="utf-8"
    )
    for table, expected in (("batches", 1), ("segments", 1), ("records", 1), ("partitions", 2)):
        (row,) = run_query(tmp_path, f"SELECT count(DISTINCT topic) n FROM {table}")
        assert row == {"n": expected}
