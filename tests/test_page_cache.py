"""The share of a file in the page cache, by both of Linux's ways; and its display in `kseg ls`."""

import json
import mmap
import os
import sys
from pathlib import Path

import pytest

from kseg.log.partition import PartitionLog
from kseg.log.transactions import read_tail
from kseg.system.page_cache import cached_size, pages_by_cachestat, pages_by_mincore
from tests import run
from tests.log import edits

SIZE = 4 << 20
LS = ("ls", "--by", "segment", "--cache")


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Return a log of some MiB, on the disk, with only the second MiB and its surroundings in memory."""
    path = edits.logs(edits.copy_partition(tmp_path, "3.6.2/plain-1"))[0]
    edits.repeat_log(path, SIZE)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(descriptor, 1 << 20, 1 << 20)
    os.close(descriptor)
    return path


def test_both_ways_tell_the_same(log: Path) -> None:
    descriptor = os.open(log, os.O_RDONLY)
    try:
        by_mincore = pages_by_mincore(descriptor, log.stat().st_size)
        assert by_mincore is not None
        assert by_mincore * mmap.PAGESIZE >= 1 << 20
        assert pages_by_cachestat(descriptor) in (None, by_mincore)
    finally:
        os.close(descriptor)


def test_what_was_read_is_there(log: Path) -> None:
    log.read_bytes()
    assert cached_size(log) == log.stat().st_size


def test_a_file_without_bytes_has_nothing_there(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    assert cached_size(tmp_path / "empty") == 0


def test_a_file_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert cached_size(tmp_path / "gone") is None


def test_ls_tells_what_lay_there_before_it_read(log: Path) -> None:
    before = cached_size(log)
    ran = run.kseg([*LS, "-o", "json", "."], log.parent)
    segments = [json.loads(line) for line in ran.stdout.splitlines() if b'"type":"segment"' in line]
    assert segments[0]["cachedBytes"] == before
    assert "cachedBytes" not in run.kseg(["ls", "-o", "json", "."], log.parent).stdout.decode()


def test_judging_a_transaction_leaves_the_cache_as_it_was(log: Path) -> None:
    before = cached_size(log)
    read_tail(PartitionLog(log.parent), 0)
    assert cached_size(log) == before


@pytest.mark.parametrize("form", ["text", "table"])
def test_people_get_a_share_and_a_bar(form: str, log: Path) -> None:
    log.read_bytes()
    shown = run.kseg([*LS, "-o", form, "."], log.parent).stdout.decode()
    assert "CACHED" in shown
    assert "".join(shown.split("100%")[1].split())[:6].lstrip("│┃").startswith("█████")


def test_csv_has_the_bytes(log: Path) -> None:
    log.read_bytes()
    names, first, *_ = run.kseg([*LS, "-o", "csv", "."], log.parent).stdout.decode().splitlines()
    assert (names.split(",")[-1], int(first.split(",")[-1])) == ("cachedBytes", log.stat().st_size)


def test_other_systems_say_that_they_do_not_tell(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    ran = run.kseg([*LS, "."], log.parent)
    assert (ran.status, b"CACHED" in ran.stdout) == (0, False)
    assert ran.stderr.startswith(b"kseg: --cache: only Linux tells the contents of the page cache\n")
