"""Sparse files: holes cost neither time nor memory, however large the file claims to be."""

import itertools
import json
import resource
import struct
from pathlib import Path

import pytest

from kseg.reading.log_file import LogFile
from tests.kernel.made import BatchHeader, Record, batch
from tests.loops import TAKES_ALL, for_each
from tests.run import Run, process, run_bounded

TEBIBYTE = 1 << 40
NAME = f"{0:020}"
LOG = f"{NAME}.log"
FIRST = batch(BatchHeader(0), [Record(value=b"first")])
SECOND = batch(BatchHeader(1), [Record(value=b"second")])


def write(directory: Path, name: str, pieces: dict[int, bytes], size: int) -> Path:
    """Write a file with some bytes at positions, and holes between; return its path."""
    directory.mkdir(exist_ok=True)
    path = directory / name
    with path.open("wb") as file:
        for position, content in pieces.items():
            file.seek(position)
            file.write(content)
        file.truncate(size)
    assert path.stat().st_blocks * 512 < 1 << 20, "the file system has no holes"
    return path


@pytest.fixture
def zeros(tmp_path: Path) -> Path:
    """Return a directory with a partition whose log is a batch and a hole of a TiB."""
    (tmp_path / "zeros").mkdir()
    write(tmp_path / "zeros" / "orders-0", LOG, {0: FIRST}, TEBIBYTE)
    return tmp_path / "zeros"


READING = {
    "ls orders-0": 0,
    f"dump orders-0/{LOG}": 0,
    f"dump -o json orders-0/{LOG}": 0,
    f"dump --like 4.3 orders-0/{LOG}": 0,
    "dump --redact values --tail 1 orders-0": 0,
    "verify orders-0": 0,
    "salvage --dry-run orders-0": 0,
    "salvage --to saved orders-0": 0,
    "lookup --offset 0 orders-0": 0,
    "lookup --offset 5 orders-0": 1,
    "lookup --timestamp latest orders-0": 0,
    f"explain orders-0/{LOG}": 1,
    "txns orders-0": 0,
    "reindex --to new orders-0": 0,
    "retain --retention-ms 1 orders-0": 0,
}


@for_each("line", READING)
def test_log_of_a_tebibyte_that_is_a_hole_is_read_in_no_time(line: str, zeros: Path) -> None:
    ran = run_bounded(line.split(), zeros)
    assert ran.status == READING[line], ran.stderr
    assert b"memory" not in ran.stderr


def test_export_of_a_tebibyte_that_is_a_hole_gives_its_records(zeros: Path) -> None:
    out = zeros.with_name(f"{zeros.name}-out")
    ran = process(["export", ".", str(out)], zeros, limits={resource.RLIMIT_CPU: 20}, with_arrow=True)
    assert ran.status == 0, ran.stderr
    assert list(out.rglob("*.parquet"))


def records(ran: Run) -> list[str]:
    return [row["value"] for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "record"]


@pytest.mark.parametrize("position", [TEBIBYTE // 2, TEBIBYTE // 2 + 4096 - 7, TEBIBYTE - len(SECOND)])
def test_batch_behind_a_hole_is_found(position: int, tmp_path: Path) -> None:
    write(tmp_path, LOG, {0: FIRST, position: SECOND}, TEBIBYTE)
    ran = run_bounded(["dump", "-o", "json", LOG], tmp_path)
    assert records(ran) == ["first", "second"]
    damages = [row for row in map(json.loads, ran.stdout.splitlines()) if row["type"] == "damage"]
    assert (damages[0]["position"], damages[0]["size"]) == (len(FIRST), position - len(FIRST))


def test_batch_whose_offset_stands_in_a_hole_is_found(tmp_path: Path) -> None:
    made = batch(BatchHeader(0, leader_epoch=0), [Record(value=b"first")])
    assert made[:8] == bytes(8)
    position = (1 << 30) - 8  # its length begins a block
    write(tmp_path, LOG, {position + 8: made[8:]}, 2 << 30)
    assert records(run_bounded(["dump", "-o", "json", LOG], tmp_path)) == ["first"]


def test_batch_with_a_hole_in_its_value_is_whole(tmp_path: Path) -> None:
    made = batch(BatchHeader(0), [Record(value=bytes(8 << 20))])
    write(tmp_path, LOG, {0: made[:4096], len(made) - 4096: made[-4096:]}, len(made))
    ran = run_bounded(["verify", "."], tmp_path)
    assert b"bad-crc" not in ran.stdout
    with LogFile(tmp_path / LOG) as log_file:
        assert log_file.stored_size < 1 << 20


COPYING = [
    "compact orders-0 --to new",
    "retain orders-0 --retention-ms -1 --to new",
    "slice orders-0 --to-offset 2 --to new",
    "salvage orders-0 --to new",
]


@for_each("line", COPYING)
def test_holes_of_what_is_copied_stay_holes(line: str, tmp_path: Path) -> None:
    """Otherwise a file of a few bytes would fill the disk."""
    made = batch(BatchHeader(1), [Record(value=bytes(64 << 20))])
    pieces = {0: FIRST, len(FIRST): made[:4096], len(FIRST) + len(made) - 4096: made[-4096:]}
    size = len(FIRST) + len(made)
    source = write(tmp_path / "orders-0", LOG, pieces, size + (64 << 20))
    ran = run_bounded(line.split(), tmp_path)
    assert ran.status == 0, ran
    (copied,) = (tmp_path / "new").rglob(LOG)
    found = copied.stat()
    assert found.st_blocks * 512 < 1 << 20
    assert found.st_size in (size, source.stat().st_size)
    with copied.open("rb") as copy:
        assert copy.read(size) == FIRST + made


def test_islands_in_a_hole_cost_no_more_than_they_hold(tmp_path: Path) -> None:
    island = b"\xff" * 64
    path = tmp_path / LOG
    with path.open("wb") as file:
        file.write(FIRST)
        for number in range(1, 1000):
            file.seek(number << 30)
            file.write(island)
    ran = run_bounded(["salvage", "--dry-run", "."], tmp_path)
    assert ran.status == 1
    assert b"memory" not in ran.stderr


FIFTY_GB = 50_000_000_000
INDEXES = {
    f"{NAME}.index": struct.pack(">ii", 0, 0),
    f"{NAME}.timeindex": struct.pack(">qi", 0, 0),
    f"{NAME}.txnindex": b"",
    f"{NAME}.snapshot": b"\0\1",
    "leader-epoch-checkpoint": b"0\n1\n0 0\n",
    "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAKg\n",
}


LOOKING = [
    "ls .",
    "ls --deep .",
    "verify .",
    "dump NAME",
    "explain --batch 0 NAME",
    "reindex --dry-run .",
    f"dump --isolation read_committed {LOG}",
    "txns .",
]


PAIRS = list(itertools.product(LOOKING, INDEXES))
SOME_PAIRS = [
    (line, name)
    for (row, line), (column, name) in itertools.product(enumerate(LOOKING), enumerate(INDEXES))
    if (row + column) % 2 == 0
]
"""Each command of half of the files, each file for half of the commands."""


@for_each("line, name", PAIRS if TAKES_ALL else SOME_PAIRS, ids=" of ".join, shards=2)
def test_file_beside_a_log_that_is_a_hole_of_50_gb_costs_little(line: str, name: str, tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(FIRST)
    write(tmp_path, name, {0: INDEXES[name]}, FIFTY_GB // 34 * 34)
    ran = run_bounded(line.replace("NAME", name).split(), tmp_path)
    assert ran.status in (0, 1), ran.stderr
    assert b"memory" not in ran.stderr


def test_entries_behind_a_hole_of_a_transaction_index_are_read(tmp_path: Path) -> None:
    (tmp_path / LOG).write_bytes(FIRST)
    entry = struct.pack(">hqqqq", 7, 1, 2, 3, 4)
    write(tmp_path, f"{NAME}.txnindex", {34 * 10_000_000: entry}, 34 * 10_000_001)
    ran = run_bounded(["verify", "."], tmp_path)
    assert b"producer 1: no transaction from 2 is aborted at 3" in ran.stdout


def test_page_cache_of_a_sparse_file_is_left_as_it_was(tmp_path: Path) -> None:
    path = write(tmp_path, LOG, {0: FIRST, TEBIBYTE // 2: SECOND}, TEBIBYTE)
    with LogFile(path, keep_cache=False) as log_file:
        assert sum(1 for _ in log_file.runs()) == 4
