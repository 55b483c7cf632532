"""Shared work has the same results as one process: in the same order, with errors in their places."""

import errno
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from multiprocessing import active_children
from pathlib import Path

import pytest

from kseg.errors import KsegError, OpenError
from kseg.system.shared_work import WORTH_PROCESSES, OnRead, shared_work, shared_writing
from tests import golden
from tests.run import kseg

COMMANDS = [
    "verify logs",
    "verify -o json damaged",
    "verify --from-offset 3 -o json logs/4.3.1 damaged",
    "ls logs damaged",
    "ls --deep -o json logs damaged nowhere",
    "ls --sort size -o csv logs",
    "ls -o table logs/4.3.1",
    "ls --key a --limit 3 logs",
    "salvage --dry-run damaged logs/4.3.1",
    "salvage --dry-run -o json damaged logs/0.8.2.2",
    "reindex --dry-run damaged",
    "reindex --dry-run logs/4.3.1",
]


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the newest logs, the oldest and some between, and every fifth of the damaged partitions."""
    root = tmp_path_factory.mktemp("sources")
    for release in ("0.8.2.2", "0.11.0.3", "2.8.2", "4.3.1", "4.3.1-live"):
        shutil.copytree(golden.ROOT / "logs" / release, root / "logs" / release)
    for partition in sorted((golden.ROOT / "damaged").iterdir())[::5]:
        shutil.copytree(partition, root / "damaged" / partition.name)
    return root


@pytest.mark.parametrize("line", COMMANDS)
def test_processes_print_what_one_prints(line: str, sources: Path) -> None:
    alone = kseg([*line.split(), "-j", "1"], sources)
    assert alone.stdout
    assert kseg([*line.split(), "-j", "2"], sources) == alone


@pytest.mark.parametrize("line", ["salvage damaged logs/4.3.1", "reindex damaged", "reindex logs/4.3.1"])
def test_processes_write_what_one_writes(line: str, sources: Path, tmp_path: Path) -> None:
    written = []
    for count in ("1", "2"):
        ran = kseg([*line.split(), "-j", count, "--to", str(tmp_path / count)], sources)
        assert ran.status in (0, 1), ran.stderr
        paths = (path for path in (tmp_path / count).rglob("*") if path.is_file())
        written.append({str(path.relative_to(tmp_path / count)): path.read_bytes() for path in paths})
    assert written[0]
    assert written[1] == written[0]


def test_refusals_come_in_order(tmp_path: Path) -> None:
    """Missing paths are reported first, then partitions with binary text files, each in its place."""
    for number in range(40):
        shutil.copytree(golden.ROOT / "logs/4.3.1/zstd-0", tmp_path / f"orders-{number}")
        (tmp_path / f"orders-{number}" / "partition.metadata").write_text("nothing\n")
    paths = [f"orders-{number}" if number % 4 else f"missing-{number}" for number in range(40)]
    alone = kseg(["ls", "--now", "now", "-j", "1", *paths], tmp_path)
    *lines, settings = alone.stderr.decode().splitlines()
    assert settings.startswith("kseg: settings: ")
    refused = [line.split(":")[1].split("/")[0].strip() for line in lines]
    assert refused == sorted(paths, key=lambda path: path.startswith("orders"))
    assert kseg(["ls", "--now", "now", "-j", "2", *paths], tmp_path) == alone


# --- the piece itself ------------------------------------------------------------------------------------------------


def costly(_: int) -> int:
    """Return the cost of an item that is worth a process of its own."""
    return WORTH_PROCESSES


def process_ids(item: int, on_read: OnRead) -> Iterator[tuple[int, int]]:
    on_read(1)
    for number in range(item % 3):
        yield number, os.getpid()


@pytest.mark.parametrize("processes", [1, 2, 3, None])
def test_results_come_in_order_whoever_works(processes: int | None) -> None:
    read: list[int] = []
    with shared_work(process_ids, range(60), costly, processes=processes, on_read=read.append) as results:
        found = list(results)
    assert [(item, number) for item, (number, _) in found] == [(item, n) for item in range(60) for n in range(item % 3)]
    assert sum(read) == 60
    workers = {process for _, (_, process) in found}
    is_alone = (processes or len(os.sched_getaffinity(0))) == 1
    assert (workers == {os.getpid()}) if is_alone else (os.getpid() not in workers)


def test_little_work_stays_in_this_process() -> None:
    with shared_work(process_ids, range(60), lambda _: 1) as results:
        assert {process for _, (_, process) in results} == {os.getpid()}


def fails_at_30(item: int, _: OnRead) -> Iterator[int]:
    yield item
    if item == 30:
        raise OpenError("can't be opened", f"orders-{item}")
    yield -item


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_comes_after_the_results_before_it(processes: int) -> None:
    found: list[int] = []

    def take_all() -> None:
        with shared_work(fails_at_30, range(60), costly, processes=processes) as results:
            found.extend(result for _, result in results)

    with pytest.raises(OpenError, match="orders-30: can't be opened"):
        take_all()
    assert found == [*(sign * item for item in range(30) for sign in (1, -1)), 30]


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_of_who_brings_the_things_comes_after_the_results_before_it(processes: int) -> None:
    def items() -> Iterator[int]:
        yield from range(20)
        raise OpenError("can't be listed", "orders")

    found: list[int] = []

    def take_all() -> None:
        with shared_work(fails_at_30, items(), costly, processes=processes) as results:
            found.extend(item for item, _ in results)

    with pytest.raises(OpenError, match="orders: can't be listed"):
        take_all()
    assert found == [item for item in range(20) for _ in range(2)]


LARGE = 1 << 20


def runs_ahead(directory: Path) -> Callable[[int, OnRead], Iterator[bytes]]:
    """Return a function whose first item waits until the others can't continue without it.

    It then reports their progress.
    """

    def work(item: int, _: OnRead) -> Iterator[bytes]:
        (directory / str(item)).touch()
        yield bytes(LARGE) if item else b"%d" % begun()

    def begun() -> int:
        count, same = 0, 0
        while count < 200 and same < 10_000:
            found = len([*directory.iterdir()])
            same = same + 1 if found == count else 0
            count = found
        return count

    return work


def test_few_results_wait_for_an_earlier_one(tmp_path: Path) -> None:
    with shared_work(runs_ahead(tmp_path), range(200), costly, processes=2) as results:
        _, first = next(results)
        assert 1 < int(first) < 50
        assert sum(len(result) for _, result in results) == 199 * LARGE


def dies_at_30(item: int, _: OnRead) -> Iterator[int]:
    if item == 30:
        os.kill(os.getpid(), signal.SIGKILL)
    yield item


def test_a_killed_process_ends_the_run() -> None:
    with (
        shared_work(dies_at_30, range(60), costly, processes=2) as results,
        pytest.raises(KsegError, match="a worker process was killed"),
    ):
        list(results)


@pytest.mark.parametrize("most", [0, 1])
def test_a_run_ends_where_no_more_processes_can_be_started(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Containers limit the number. Processes that have started share the work, or end with the run."""
    forks = [os.fork] * most

    def fork() -> int:
        if not forks:
            raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return forks.pop()()

    monkeypatch.setattr(os, "fork", fork)
    with shared_work(process_ids, range(60), costly, processes=3) as results:
        if most:
            assert {item for item, _ in results} == {item for item in range(60) if item % 3}
        else:
            with pytest.raises(
                KsegError,
                match=(
                    r"no worker process can be started.*unavailable; run the"
                    r" command with -j 1"
                ),
            ):
                next(results)
    assert not active_children()


# --- written bytes ---------------------------------------------------------------------------------------------------


def writes_lines(item: int, _: OnRead, write: Callable[[memoryview], None]) -> Iterator[int]:
    write(memoryview(b"first\n"))
    yield item
    write(memoryview(b"%d\n" % item * 100_000))


@pytest.mark.parametrize("count", [1, 3])
def test_written_bytes_come_in_order_among_the_results(count: int) -> None:
    with shared_writing(writes_lines, range(40), costly, count) as results:
        found = [(item, bytes(each) if isinstance(each, memoryview) else each) for item, each in results]
    for item in range(40):
        own = [each for number, each in found if number == item]
        assert own[:2] == [b"first\n", item]
        assert b"".join(each for each in own[2:] if isinstance(each, bytes)) == b"%d\n" % item * 100_000
    assert [item for item, _ in found] == sorted(item for item, _ in found)


def test_a_run_can_be_left_while_processes_wait_for_space() -> None:
    with shared_writing(writes_without_end, range(2), costly, 2) as results:
        assert next(results)[0] == 0
    assert not active_children()


def writes_without_end(_: int, __: OnRead, write: Callable[[memoryview], None]) -> Iterator[int]:
    while True:
        write(memoryview(bytes(1 << 20)))
        yield 0
