"""Reading leaves the page cache as it was, where the system tells what is in it."""

import mmap
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.gentle import resident_pages
from kseg.log_file import LogFile
from tests.log import edits

SIZE = 12 << 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """A log of some MiB, on the disk, with none of it in memory but the second MiB."""
    path = edits.logs(edits.copy_partition(tmp_path, "3.6.2/plain-1"))[0]
    edits.repeat_log(path, SIZE)
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(descriptor, 1 << 20, 1 << 20)
    yield path
    os.close(descriptor)


def in_memory(path: Path) -> set[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        pages = resident_pages(descriptor, path.stat().st_size)
    finally:
        os.close(descriptor)
    assert pages is not None
    return {number for number, page in enumerate(pages) if page}


def read(path: Path, *, keep_cache: bool) -> None:
    with LogFile(path, keep_cache=keep_cache) as log_file:
        assert sum(1 for _ in log_file.runs()) > 1


def test_pages_that_were_not_in_memory_are_dropped(log: Path) -> None:
    before = in_memory(log)
    read(log, keep_cache=False)
    assert in_memory(log) == before
    assert set(range((1 << 20) // mmap.PAGESIZE, (2 << 20) // mmap.PAGESIZE)) <= before


def test_cache_is_kept_where_that_is_wanted(log: Path) -> None:
    read(log, keep_cache=True)
    assert len(in_memory(log)) == -(-log.stat().st_size // mmap.PAGESIZE)


def test_file_without_bytes_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    with LogFile(tmp_path / "empty.log", keep_cache=False) as log_file:
        assert list(log_file.runs()) == []


def test_giving_way_lowers_the_priorities() -> None:
    code = "import os; from kseg.gentle import give_way; give_way(); print(os.nice(0))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "19\n"
