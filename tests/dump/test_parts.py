"""Processes that share a dump print what one prints: parts of logs in order, and damages in their places."""

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from kseg.dump.log_parts import SplitLogs
from tests import golden
from tests.log_files import NewBatch, NewRecord, batch_bytes
from tests.process_groups import interruptible, wait_for_end
from tests.run import kseg

COMMANDS = [
    "logs damaged",
    "-o json logs damaged",
    "-o json --only records damaged",
    "-o csv logs damaged",
    "-o table damaged",
    "--fields offset,key damaged",
    "--shallow logs damaged",
    "--print-data-log logs logs",
    "--max-bytes 700 logs",
    "--from-offset 3 logs",
    "--value-decoder json -o json logs damaged",
    "--offsets-decoder --print-data-log logs",
    "-o json --redact values --redact headers --redact-key secret logs damaged",
]
NAME = f"{0:020}.log"
KSEG = Path(sys.executable).with_name("kseg")


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return logs of several formats, and a part of the damaged ones."""
    root = tmp_path_factory.mktemp("sources")
    for release in ("0.8.2.2", "0.11.0.3", "4.3.1"):
        shutil.copytree(golden.ROOT / "logs" / release, root / "logs" / release)
    for partition in sorted((golden.ROOT / "damaged").iterdir())[::3]:
        shutil.copytree(partition, root / "damaged" / partition.name)
    return root


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut logs into parts that are smaller than many batches."""
    monkeypatch.setattr("kseg.dump.log_parts.PART_SIZE", 300)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("line", COMMANDS)
def test_processes_print_what_one_prints(line: str, sources: Path) -> None:
    command = ["dump", "--all-replicas", *line.split()]
    alone = kseg([*command, "-j", "1"], sources)
    assert alone.stdout
    assert kseg([*command, "-j", "2"], sources) == alone


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("release", ["0.10", "1.0", "2.8", "4.3"])
def test_processes_print_the_lines_of_a_release_as_one_does(release: str, sources: Path) -> None:
    files = ",".join(str(path.relative_to(sources)) for path in sorted(sources.rglob("*.log")))
    command = ["dump", "--like", release, "--deep-iteration", "--print-data-log", "--files", files]
    assert kseg([*command, "-j", "2"], sources) == kseg([*command, "-j", "1"], sources)


def log_of(offsets: list[int]) -> bytes:
    """Return a log whose batches have one record each."""
    return b"".join(batch_bytes(NewBatch([NewRecord(b"key", bytes(200))], offset)) for offset in offsets)


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("like", [(), ("--like", "2.8", "--deep-iteration"), ("--like", "4.3", "--deep-iteration")])
def test_gaps_between_two_parts_are_reported_once(like: tuple[str, ...], tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(log_of([0, 1, 2, 9, 10, 4, 5, 5, 6, 20]))
    command = ["dump", *like, *(("--files",) if like else ()), NAME]
    alone = kseg([*command, "-j", "1"], tmp_path)
    assert alone.stderr
    assert kseg([*command, "-j", "2"], tmp_path) == alone


@pytest.mark.usefixtures("small_parts")
def test_processes_render_an_intact_log_completely(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / NAME).write_bytes(log_of([*range(20)]))
    alone = kseg(["dump", NAME, "-j", "1"], tmp_path)
    monkeypatch.setattr("kseg.dump.log_parts.RenderedLog", None)
    assert kseg(["dump", NAME, "-j", "2"], tmp_path) == alone


@pytest.mark.usefixtures("small_parts")
def test_parts_after_damage_are_not_awaited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    intact = log_of([*range(40)])
    (tmp_path / NAME).write_bytes(intact[:300] + bytes(40) + intact[340:])
    alone = kseg(["dump", NAME, "-j", "1"], tmp_path)
    results, taken = SplitLogs.results, []

    def noted_results(logs: SplitLogs, number: int) -> Iterator[object]:
        for each in results(logs, number):
            taken.append(each)
            yield each

    monkeypatch.setattr(SplitLogs, "results", noted_results)
    assert kseg(["dump", NAME, "-j", "2"], tmp_path) == alone
    assert 0 < len(taken) < 10


@pytest.mark.usefixtures("small_parts")
def test_batches_in_a_value_begin_no_part(tmp_path: Path) -> None:
    inner = log_of([1000, 1001, 1002])
    batches = [batch_bytes(NewBatch([NewRecord(None, inner)], offset)) for offset in range(5)]
    (tmp_path / NAME).write_bytes(b"".join(batches))
    alone = kseg(["dump", NAME, "-j", "1"], tmp_path)
    assert alone.stdout.count(b"\noffset: ") == len(batches)
    assert kseg(["dump", NAME, "-j", "2"], tmp_path) == alone


@pytest.mark.usefixtures("small_parts")
def test_a_decoder_of_the_user_sees_all_records_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counting = "from itertools import count\nnumbers = count()\ndef decode(*_): return next(numbers)\n"
    (tmp_path / "own_counter.py").write_text(counting)
    (tmp_path / NAME).write_bytes(log_of([*range(20)]))
    monkeypatch.syspath_prepend(tmp_path)
    ran = kseg(["dump", NAME, "--value-decoder", "own_counter:decode", "--fields", "value", "-j", "2"], tmp_path)
    assert ran.stdout.decode().splitlines() == [f"value: {number}" for number in range(20)]


@pytest.fixture(scope="module")
def large_log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a log whose text is larger than what a process holds."""
    path = tmp_path_factory.mktemp("large") / NAME
    value = b"x" * 10_000
    path.write_bytes(
        b"".join(batch_bytes(NewBatch([NewRecord(b"key", value)] * 20, 20 * number)) for number in range(200))
    )
    return path


def test_text_beyond_what_a_process_holds_comes_in_order(large_log: Path) -> None:
    command = ["dump", "--print-data-log", str(large_log)]
    assert kseg([*command, "-j", "3"], large_log.parent) == kseg([*command, "-j", "1"], large_log.parent)


@pytest.mark.parametrize(("end", "status"), [("closed pipe", 141), ("interrupt", 130)])
def test_a_dump_that_ends_early_leaves_no_process(end: str, status: int, large_log: Path) -> None:
    command = [KSEG, "dump", "--print-data-log", "-j", "2", str(large_log)]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=interruptible, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.read(8) == b"Dumping "
        if end == "interrupt":
            os.killpg(process.pid, signal.SIGINT)
            _, stderr = process.communicate()
        else:
            assert process.stderr is not None
            process.stdout.close()
            stderr = process.stderr.read()
        assert (process.wait(), stderr.strip()) == (status, b"")
    wait_for_end(process.pid)
