"""Reading leaves the page cache as it was, if the system reports its contents."""

import mmap
import os
import shutil
from collections.abc import Iterator
from itertools import accumulate
from pathlib import Path

import pytest

from kseg.output.progress import ProgressBar
from kseg.reading.log_file import LogFile
from kseg.system.page_cache import resident_pages
from tests.log import edits
from tests.run import kseg, process

SIZE = 12 << 20


@pytest.fixture
def log(tmp_path: Path) -> Iterator[Path]:
    """Yield a log of some MiB, on the disk, with only the second MiB in memory."""
    path, *others = edits.logs(edits.copy_partition(tmp_path, "3.6.2/plain-1"))
    for other in (*others, *path.parent.glob("*index")):  # these don't belong to the new log
        other.unlink()
    edits.repeat_log(path, SIZE)
    shutil.copytree(path.parent, copy_of(path.parent))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_RANDOM)
    os.pread(descriptor, 1 << 20, 1 << 20)
    yield path
    os.close(descriptor)


def copy_of(partition: Path) -> Path:
    return partition.with_name("copy")


def in_memory(path: Path) -> set[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        bounds = resident_pages(descriptor, path.stat().st_size)
    finally:
        os.close(descriptor)
    assert bounds is not None
    return {number for first, end in zip(bounds[::2], bounds[1::2], strict=True) for number in range(first, end)}


def is_as_it_was(path: Path, before: set[int]) -> bool:
    """Return True if the number of cached pages hardly changed.

    Exact counts would be wrong: a busy system reads ahead, and evicts pages.
    """
    after = in_memory(path)
    return len(after - before) < pages_of(path) / 4 and len(before - after) < len(before) / 2


def is_kept(path: Path) -> bool:
    """Return True if most of the file is in memory."""
    return len(in_memory(path)) > pages_of(path) * 3 / 4


def pages_of(path: Path) -> int:
    return -(-path.stat().st_size // mmap.PAGESIZE)


def read(path: Path, *, keep_cache: bool) -> None:
    with LogFile(path, keep_cache=keep_cache) as log_file:
        assert sum(1 for _ in log_file.runs()) > 1


def test_pages_that_were_not_in_memory_are_dropped(log: Path) -> None:
    before = in_memory(log)
    read(log, keep_cache=False)
    assert is_as_it_was(log, before)
    assert before


def test_cache_is_kept_where_that_is_wanted(log: Path) -> None:
    read(log, keep_cache=True)
    assert is_kept(log)


READING = [
    "verify PARTITION",
    "salvage PARTITION --to ../new",
    "reindex PARTITION --to ../new",
    "redact PARTITION --to ../new",
    "ls PARTITION --deep",
    "diff PARTITION COPY",
]
"""Commands that read all of a partition."""


def arguments_of(line: str, log: Path) -> list[str]:
    return line.replace("PARTITION", str(log.parent)).replace("COPY", str(copy_of(log.parent))).split()


def run_reading(line: str, log: Path, *options: str) -> None:
    assert kseg([*arguments_of(line, log), *options], log.parent.parent).status < 2


@pytest.mark.parametrize("line", READING)
def test_commands_leave_the_page_cache_as_it_was(line: str, log: Path) -> None:
    before = in_memory(log)
    run_reading(line, log)
    assert is_as_it_was(log, before)


@pytest.mark.parametrize("line", READING)
def test_commands_keep_what_they_read_where_that_is_wanted(line: str, log: Path) -> None:
    run_reading(line, log, "--keep-cache")
    assert is_kept(log)


@pytest.mark.parametrize("line", READING)
def test_gentle_commands_give_way(line: str, log: Path) -> None:
    arguments = [*arguments_of(line, log), "--gentle"]
    program = "import os; from kseg.cli import main; status = main(); print(status, os.nice(0))"
    ran = process(arguments, log.parent.parent, program=program)
    status, priority = ran.stdout.splitlines()[-1].split()
    assert (int(status) < 2, priority) == (True, b"19")


@pytest.mark.parametrize("line", READING)
def test_bar_shows_how_much_is_read(line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    partition = edits.copy_partition(tmp_path, "3.6.2/plain-1")
    shutil.copytree(partition, copy_of(partition))
    logs = edits.logs(partition)
    shown: list[tuple[str, int, int]] = []
    monkeypatch.setattr(ProgressBar, "show", lambda _, *told: shown.append(told))
    run_reading(line, logs[0])
    sizes = [log.stat().st_size for log in logs for _ in range(1 + ("COPY" in line))]
    assert [done for _, done, _ in shown] == list(accumulate(sizes))
    assert {total for *_, total in shown} == {sum(sizes)}


def test_file_without_bytes_has_no_pages(tmp_path: Path) -> None:
    (tmp_path / "empty.log").write_bytes(b"")
    with LogFile(tmp_path / "empty.log", keep_cache=False) as log_file:
        assert list(log_file.runs()) == []


def test_giving_way_lowers_the_priorities() -> None:
    program = "import os; from kseg.system.page_cache import give_way; give_way(); print(os.nice(0))"
    assert process([], Path.cwd(), program=program).stdout == b"19\n"
