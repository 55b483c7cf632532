"""Several exports into one place: no run's work is lost, losers report it, and remains of dead runs are removed."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

import pyarrow.parquet as pq
import pytest

from kseg.errors import KsegError
from kseg.export.commit.order import Job, execute_here
from kseg.export.commit.parquet import ParquetCommits
from kseg.export.commit.runs import LostError, mark, new_run
from kseg.export.destination import LocalDestination
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import Result
from kseg.export.run import export_into, run_export
from kseg.system.new_directory import HERE, Processes
from tests import golden, run
from tests.export import exports

SLOW = """
import sys
from kseg.export.commit.order import execute_here
from kseg.export.planning import Export
from kseg.export.run import export_into, run_export

def slowly(orders, job):
    yield from execute_here(orders, job)
    print("written", flush=True)
    sys.stdin.readline()

run_export(Export((sys.argv[1],), sys.argv[2]), slowly)
"""


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Return four topics of ten records."""
    for number in range(4):
        exports.write_log(tmp_path / f"topic{number}-0", 0, 10)
    return sorted(tmp_path.iterdir())


@pytest.fixture
def slow(sources: list[Path], tmp_path: Path) -> Iterator["subprocess.Popen[str]"]:
    """Yield a process that exports the first topic, and waits before its commit."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(sources[0]), str(tmp_path / "out")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == "written\n"
        yield process
        process.kill()


def files(out: Path) -> list[str]:
    """Return all files of a destination except manifests."""
    names = (path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file())
    return sorted(name for name in names if not name.startswith("_kseg/manifest-"))


def whole(*topics: str) -> list[str]:
    """Return the files of an export of these topics."""
    beside = ["_SUCCESS", "_kseg/damages.csv", "_kseg/report.json"]
    return [*beside, *(f"topic={topic}/part-{topic}-0-{0:020}.parquet" for topic in topics)]


def test_a_run_that_three_others_overtake_loses_and_says_so(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"

    def overtaken(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        results = list(execute_here(orders, job))
        for source in sources[1:]:
            exports.export([source], out)
            assert [name for name in files(out) if job.id in name and "/attempts/" in name]
        return results

    with pytest.raises(
        LostError, match="another export wrote to the destination at the same time; run the command again"
    ):
        run_export(Export((str(sources[0]),), str(out)), overtaken)
    assert files(out) == whole("topic1", "topic2", "topic3")
    report = json.loads((out / "_kseg" / "report.json").read_bytes())
    assert [part["topic"] for part in report["partitions"]] == ["topic1", "topic2", "topic3"]
    exports.export([sources[0]], out)
    assert pq.read_table(out).num_rows == 40


def test_the_number_of_an_old_manifest_stays_taken(sources: list[Path], tmp_path: Path) -> None:
    for source in sources:
        exports.export([source], tmp_path / "out")
    manifests = sorted((tmp_path / "out" / "_kseg").glob("manifest-*"))
    assert [path.name for path in manifests] == [f"manifest-{number:08}.json" for number in range(1, 5)]
    assert [json.loads(path.read_bytes()).get("superseded") for path in manifests] == [True, True, True, None]


def test_another_process_overtaken_ends_with_nothing_of_its_left(
    sources: list[Path], tmp_path: Path, slow: "subprocess.Popen[str]"
) -> None:
    out = tmp_path / "out"
    reports = [exports.export([source], out) for source in sources[1:]]
    assert [path for path in files(out) if path.startswith("_kseg/attempts/")]
    assert all(f"process {slow.pid} " in report.left_alone[0] for report in reports)
    _, errors = slow.communicate("\n")
    assert "another export wrote to the destination at the same time" in errors
    assert files(out) == whole("topic1", "topic2", "topic3")


def test_what_a_killed_process_left_is_removed(
    sources: list[Path], tmp_path: Path, slow: "subprocess.Popen[str]"
) -> None:
    os.kill(slow.pid, signal.SIGKILL)
    slow.wait()
    assert len([name for name in files(tmp_path / "out") if name.startswith("_kseg/")]) == 3
    assert exports.export([sources[1]], tmp_path / "out").left_alone == ()
    assert files(tmp_path / "out") == whole("topic1")


class Elsewhere(Processes):
    """Processes of another machine."""

    def own(self) -> dict[str, Any]:
        return {**super().own(), "host": "elsewhere", "boot": "another"}


def foreign_run(out: Path, base: int) -> None:
    """Write the marker and a file of a run on an unknown machine."""
    place = LocalDestination(str(out))
    began = new_run(base)
    assert mark(began, place, Elsewhere())
    place.replace(f"_kseg/attempts/{began.id}-0-{uuid4().hex[:12]}-0.attempt", b"PAR1")


def test_what_a_run_elsewhere_writes_is_left_and_named(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([sources[0]], out)
    foreign_run(out, 1)
    ran = run.kseg(["export", str(sources[0]), str(out), "--target-file-size", "256MiB"], golden.ROOT)
    assert ran.status == 0
    line = next(line for line in ran.stdout.decode().splitlines() if line.startswith("left alone: run "))
    assert "on elsewhere) may still be running; if it has ended, remove _kseg/runs/" in line
    assert [name for name in files(out) if name.startswith("_kseg/attempts/")]


def test_what_a_run_elsewhere_wrote_goes_once_it_has_lost(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([sources[0]], out)
    foreign_run(out, 0)
    exports.export([sources[1]], out)
    assert files(out) == whole("topic0", "topic1")


class WithoutLinks(LocalDestination):
    """A directory on a file system without hard links, where concurrent claims can't be distinguished."""

    def claim(self, name: str, content: bytes) -> bool:
        self.claims_safely = False
        is_there = self.read(name) is not None
        if not is_there:
            self.replace(name, content)
        return not is_there


def test_where_claims_are_not_safe_a_second_run_is_refused(sources: list[Path], tmp_path: Path) -> None:
    out = str(tmp_path / "out")

    def alone(orders: Sequence[WorkOrder], job: Job) -> list[Result]:
        with pytest.raises(KsegError, match=r"accepts only one export at a time, and run .* may still be running"):
            export_into(ParquetCommits(WithoutLinks(out), HERE), Export((str(sources[1]),), out), execute_here)
        return list(execute_here(orders, job))

    export_into(ParquetCommits(WithoutLinks(out), HERE), Export((str(sources[0]),), out), alone)
    export_into(ParquetCommits(WithoutLinks(out), HERE), Export((str(sources[1]),), out), execute_here)
    assert files(tmp_path / "out") == whole("topic0", "topic1")


def test_exports_at_the_same_time_until_each_has_won(sources: list[Path], tmp_path: Path) -> None:
    def insist(source: Path) -> int:
        for tries in range(100):
            with suppress(LostError):
                exports.export([source], tmp_path / "out")
                return tries
        raise AssertionError("never won")

    with ThreadPoolExecutor(len(sources)) as pool:
        list(pool.map(insist, sources))
    assert files(tmp_path / "out") == whole("topic0", "topic1", "topic2", "topic3")
    assert pq.read_table(tmp_path / "out").num_rows == 40


def test_an_overwritten_export_never_has_a_name_twice(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    seen: list[set[str]] = []
    for _ in range(3):
        exports.export([sources[0]], out, overwrite=True)
        seen.append({path.name for path in out.rglob("part-*")})
    assert [len(names) for names in seen] == [1, 1, 1]
    assert len(set.union(*seen)) == 3


def test_success_comes_back_after_a_commit_that_was_broken_off(sources: list[Path], tmp_path: Path) -> None:
    out = tmp_path / "out"
    exports.export([sources[0]], out)
    (out / "_SUCCESS").unlink()
    (out / "_kseg" / "report.json").unlink()
    exports.export([sources[0]], out)
    assert files(out) == whole("topic0")


def test_an_empty_export_can_overwrite_a_full_one(sources: list[Path], tmp_path: Path) -> None:
    out, empty = tmp_path / "out", tmp_path / "empty-0"
    exports.export([sources[0]], out)
    empty.mkdir()
    (empty / f"{0:020}.log").touch()
    report = exports.export([empty], out, overwrite=True)
    assert sum(part.records_out for part in report.partitions) == 0
    assert files(out) == whole()


def test_a_signal_while_the_marker_is_written_leaves_nothing(sources: list[Path], tmp_path: Path) -> None:
    class Interrupted(LocalDestination):
        def claim(self, name: str, content: bytes) -> bool:
            super().claim(name, content)
            raise KeyboardInterrupt

    place = tmp_path / "new" / "out"
    with pytest.raises(KeyboardInterrupt):
        export_into(ParquetCommits(Interrupted(str(place)), HERE), Export((str(sources[0]),), str(place)), execute_here)
    assert not (tmp_path / "new").exists()
