import struct
from pathlib import Path

from tests.run import Run, kseg

NAME = "00000000000000000100.txnindex"


def dump(directory: Path, content: bytes, *options: str) -> Run:
    (directory / NAME).write_bytes(content)
    return kseg(["dump", *options, NAME], directory)


def entry(producer_id: int, first_offset: int, last_offset: int, version: int = 0) -> bytes:
    return struct.pack(">hqqqq", version, producer_id, first_offset, last_offset, last_offset + 1)


def test_aborted_transactions_are_printed_one_a_line(tmp_path: Path) -> None:
    ran = dump(tmp_path, entry(7, 100, 103) + entry(8, 101, 110))
    assert ran.stdout.decode().splitlines() == [
        f"Dumping {NAME}",
        "version: 0 producerId: 7 firstOffset: 100 lastOffset: 103 lastStableOffset: 104",
        "version: 0 producerId: 8 firstOffset: 101 lastOffset: 110 lastStableOffset: 111",
    ]
    assert (ran.status, ran.stderr) == (0, b"")


def test_version_is_shown_from_its_first_byte_as_kafka_reads_it(tmp_path: Path) -> None:
    ran = dump(tmp_path, entry(7, 100, 103, version=0x0201))
    assert ran.stdout.decode().splitlines()[1].startswith("version: 2 producerId: 7 ")
    assert b"entries whose version isn't 0: 1" in ran.stderr
    assert ran.status == 1


def test_last_offsets_that_fall_are_reported_in_one_line(tmp_path: Path) -> None:
    ran = dump(tmp_path, entry(7, 100, 110) + entry(8, 100, 109) + entry(9, 100, 108))
    assert ran.stderr.decode().splitlines() == [
        f"kseg: {NAME}: entries whose last offset isn't above the preceding entry's: 2"
    ]
    assert ran.status == 1


def test_tail_that_is_no_whole_entry_is_reported_and_not_printed(tmp_path: Path) -> None:
    ran = dump(tmp_path, entry(7, 100, 103) + bytes(33))
    assert len(ran.stdout.splitlines()) == 2
    assert b"the last 33 of its 67 bytes are not a complete entry" in ran.stderr
    assert ran.status == 1


def test_release_without_transaction_indexes_passes_over_them(tmp_path: Path) -> None:
    ran = dump(tmp_path, entry(7, 100, 103), "--like", "0.10.2")
    assert (ran.status, ran.stdout, ran.stderr) == (0, b"", b"")
