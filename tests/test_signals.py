"""A run that is ended, by Ctrl-C, SIGTERM or SIGHUP, leaves nothing; what a killed one left goes with the next."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from tests import golden
from tests.export import exports
from tests.process_groups import SIGNALS, interruptible, members

PROGRAM = """
import os, signal, sys

at, every, number = int(sys.argv[1]), sys.argv[2] == "storm", int(sys.argv[3])
del sys.argv[1:4]
WATCHED = "open os.mkdir os.rename os.remove os.rmdir os.truncate os.utime os.chmod os.scandir os.listdir".split()
seen = 0

def watch(event, _):
    global seen
    if counts and event in WATCHED:
        seen += 1
        if seen == at or every and seen > at:
            os.kill(os.getpid(), number)

counts = False
sys.addaudithook(watch)
from kseg.__main__ import main
from kseg.cli import _Commands
resolve = _Commands.resolve_command

def begin(*arguments):
    global counts
    found = resolve(*arguments)
    counts = True
    return found

_Commands.resolve_command = begin
status = main()
counts = False
if not at:
    print(seen, file=sys.stderr)
sys.exit(status)
"""
"""Runs kseg, and sends itself a signal at the so manieth file that it touches; a storm goes on with each later one."""

BETWEEN_LINES = """
import os, signal, sys

at, number = int(sys.argv[1]), int(sys.argv[2])
del sys.argv[1:3]
PLACES = tuple(f"kseg/system/{name}.py" for name in ("processes", "shared_work"))
PLACES += ("multiprocessing/connection.py", "multiprocessing/process.py", "/selectors.py")
seen = 0

def lines(frame, event, _):
    global seen
    seen += 1
    if seen == at:
        os.kill(os.getpid(), number)
    return lines

sys.settrace(lambda frame, event, _: lines if frame.f_code.co_filename.endswith(PLACES) else None)
from kseg.__main__ import main
status = main()
sys.settrace(None)
print(seen, file=sys.stderr)
sys.exit(status)
"""
"""Runs kseg, and sends itself a signal at the so manieth line of what shares work between processes."""

COMMANDS = {
    "salvage": "salvage damaged-0 --to new",
    "salvage of several": "salvage logs --to some/new",
    "reindex": "reindex test-1-0 --to new",
    "slice": "slice test-1-0 --to some/more/new",
    "compact": "compact compacted-txn-0 --to new",
    "retain": "retain test-1-0 --retention-bytes 1 --to new",
    "build": "build records.txt --from text --batch-records 10 --segment-bytes 500 --to new",
    "diff of an archive": "diff bundle.tar.gz bundle.tar.gz",
    "dump of an archive": "dump bundle.tar.gz",
    "salvage of an archive": "salvage bundle.tar.gz --to new",
    "export": "export test-1-0 new",
    "export of an archive": "export bundle.tar.gz new",
}
POINTS = 8
"""At so many points, all over the run, each command is ended; half of them are killed."""
SWALLOWED = "Exception ignored in: "
"""Python drops an interrupt that comes while an object is destroyed: there a second one is needed."""


class Place(NamedTuple):
    """Where a command runs, and its TMPDIR."""

    work: Path
    temporary: Path

    def left(self) -> set[str]:
        """What is there that wasn't before."""
        made = {str(path.relative_to(self.work)) for path in self.work.rglob("*")} - self.before
        return made | {path.name for path in self.temporary.iterdir()}

    def is_whole(self, line: str) -> bool:
        """Whether a signal came too late: the new directory is complete, and nothing else is there."""
        target = line.split()[-1]
        return (self.work / target).exists() and all(
            f"{path}/".startswith(f"{target}/") or f"{target}/".startswith(f"{path}/") for path in self.left()
        )

    def clear(self) -> None:
        """Removes new directories."""
        for name in ("new", "some"):
            shutil.rmtree(self.work / name, ignore_errors=True)

    @property
    def before(self) -> set[str]:
        return set((self.temporary.parent / "before").read_text().splitlines())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    work, temporary = tmp_path / "work", tmp_path / "temporary"
    shutil.copytree(golden.ROOT / "docs/test-1-0", work / "test-1-0")
    shutil.copytree(golden.ROOT / "damaged/210-wiped-batch", work / "damaged-0")
    shutil.copytree(golden.ROOT / "logs/4.3.1/compacted-txn-0", work / "compacted-txn-0")
    shutil.copytree(golden.ROOT / "logs/2.8.2", work / "logs")
    (work / "records.txt").write_text("a value\n" * 500)
    with tarfile.open(work / "bundle.tar.gz", "w:gz") as tar:
        tar.add(work / "logs", "logs")
    temporary.mkdir()
    (tmp_path / "before").write_text("\n".join(str(path.relative_to(work)) for path in work.rglob("*")))
    return Place(work, temporary)


def run(place: Place, line: str, at: int = 0, how: str = "once", number: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command line; where no signal is sent, the last line of stderr tells at how many points one could be."""
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, str(at), how, str(number), *line.split()],
        cwd=place.work,
        env=os.environ | {"TMPDIR": str(place.temporary), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=interruptible,
    )


def points(place: Place, line: str, wanted: int) -> Iterator[int]:
    """Numbers of files touched, spread over a run."""
    ran = run(place, line)
    assert ran.returncode in (0, 1), ran.stderr
    count = int(ran.stderr.splitlines()[-1])
    assert all(path.startswith(("new", "some")) for path in place.left())
    place.clear()
    return iter(sorted({1 + number * (count - 1) // (wanted - 1) for number in range(wanted)}))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_ended_run_leaves_nothing(place: Place, name: str) -> None:
    line = COMMANDS[name]
    for turn, at in enumerate(points(place, line, POINTS)):
        number = SIGNALS[turn % len(SIGNALS)]
        ended = run(place, line, at, ("once", "storm")[turn % 2], number)
        assert ended.returncode == 128 + number, (at, number, ended.stderr)
        assert "Traceback" not in ended.stderr
        if not place.is_whole(line):
            assert place.left() == set(), (at, number)
        place.clear()


@pytest.mark.parametrize("name", COMMANDS)
def test_the_next_run_removes_what_a_killed_one_left(place: Place, name: str) -> None:
    line = COMMANDS[name]
    left = 0
    for at in points(place, line, POINTS // 2):
        assert run(place, line, at, "once", signal.SIGKILL).returncode == -signal.SIGKILL
        left += len(place.left())
        if "export" not in line:
            shutil.rmtree(place.work / line.split()[-1], ignore_errors=True)  # it was complete
        assert run(place, line).returncode in (0, 1)
        assert {path for path in place.left() if not path.startswith(("new", "some"))} == set(), at
        assert not any("-kseg-" in path for path in place.left())
        assert not any("attempts" in path and path.endswith(".attempt") for path in place.left())
        place.clear()
    assert left > 0


def test_a_living_run_is_left_alone_by_others(place: Place) -> None:
    command = [Path(sys.executable).with_name("kseg"), "build", "--from", "text", "--to", "new"]
    with subprocess.Popen(command, cwd=place.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as first:
        assert first.stdin is not None
        first.stdin.write(b"value\n" * 300_000)  # more than pipes and buffers hold: the work has begun
        first.stdin.flush()
        second = subprocess.run(command, cwd=place.work, input=b"other\n", capture_output=True, check=False)
        assert second.returncode == 0
        shutil.rmtree(place.work / "new")
        first.communicate()
    assert first.returncode == 0
    assert place.left() == {"new", *(f"new/{path.name}" for path in (place.work / "new").iterdir())}


@pytest.mark.parametrize("name", [".new-20261101", ".new-kseg-notes.txt", ".new-kseg-abcdefg", "new-kseg-abcdefgh"])
def test_directories_of_others_stay(place: Place, name: str) -> None:
    (place.work / name).mkdir()
    (place.temporary / "kseg-backup").mkdir()
    (place.temporary / "kseg-scratch-abcdefgh").symlink_to(place.work)
    assert run(place, "salvage bundle.tar.gz --to new").returncode == 0
    assert (place.work / name).is_dir()
    assert {path.name for path in place.temporary.iterdir()} == {"kseg-backup", "kseg-scratch-abcdefgh"}
    assert (place.work / "test-1-0").is_dir()


def test_under_nohup_a_hangup_changes_nothing(place: Place) -> None:
    command = [Path(sys.executable).with_name("kseg"), "build", "--from", "text", "--to", "new"]
    with subprocess.Popen(
        command,
        cwd=place.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"value\n" * 300_000)
        process.stdin.flush()
        process.send_signal(signal.SIGHUP)
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_while_kseg_starts_is_quiet(place: Place, number: int) -> None:
    code = "import os, kseg.system.interrupts as i; i.leave_at_interrupt(); "
    code += f"os.kill(os.getpid(), {int(number)}); print(1)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, preexec_fn=interruptible)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, b"", b"")


# --- processes that share the work -----------------------------------------------------------------------------------

MANY = [f"many-{number}" for number in range(20)]
"""Partitions of 40 MB: enough for a signal to come before all is read, also on a machine that has much to do."""
SHARING = {
    "export": f"export {' '.join(MANY)} new -j 2 --target-file-size 1MB",
    "verify": f"verify -j 2 {' '.join(MANY)} test-1-0 damaged-0",
    "diff": f"diff -j 2 {' '.join(MANY)} .",
    "salvage": f"salvage -j 2 {' '.join(MANY)} --to new",
}


@pytest.fixture
def shared(place: Place) -> Place:
    exports.write_log(place.work / MANY[0], 0, 40_000, per_batch=100, value=bytes(1000))
    for name in MANY[1:]:
        (place.work / name).mkdir()
        for path in (place.work / MANY[0]).iterdir():
            (place.work / name / path.name).hardlink_to(path)
    made = {str(path.relative_to(place.work)) for path in place.work.rglob("*")}
    (place.temporary.parent / "before").write_text("\n".join(sorted(made)))
    return place


def started(place: Place, line: str) -> subprocess.Popen[bytes]:
    """A command whose processes are at work, in a group of their own."""
    process = subprocess.Popen(
        [Path(sys.executable).with_name("kseg"), *line.split()],
        cwd=place.work,
        env=os.environ | {"TMPDIR": str(place.temporary)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=interruptible,
    )
    while process.poll() is None and len(members(process.pid)) < 3:
        pass
    return process


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
@pytest.mark.parametrize("to_all", [False, True], ids=["one", "all"])
@pytest.mark.parametrize("name", SHARING)
def test_processes_that_share_the_work_end_with_it(shared: Place, name: str, number: int, to_all: bool) -> None:
    with started(shared, SHARING[name]) as process:
        (os.killpg if to_all else os.kill)(process.pid, number)
        _, stderr = process.communicate()
    assert (process.returncode, stderr.strip()) == (128 + number, b"")
    while members(process.pid):
        pass
    assert shared.left() == set()


@pytest.mark.parametrize("name", SHARING)
def test_a_signal_at_any_line_of_what_shares_the_work_ends_it(shared: Place, name: str) -> None:
    line = SHARING[name].replace(" ".join(MANY), " ".join(MANY[:2]))

    def traced(at: int, number: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", BETWEEN_LINES, str(at), str(number), *line.split()],
            cwd=shared.work,
            env=os.environ | {"TMPDIR": str(shared.temporary), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
            preexec_fn=interruptible,
        )

    whole = traced(0, 0)
    count = int(whole.stderr.splitlines()[-1])
    shared.clear()
    for turn in range(2 * POINTS):
        number, at = SIGNALS[turn % len(SIGNALS)], 1 + turn * (count - 1) // (2 * POINTS)
        ended = traced(at, number)
        if turn > POINTS and ended.returncode == whole.returncode and int(ended.stderr.splitlines()[-1]) < at:
            shared.clear()
            continue  # processes that report at the same time make it shorter
        if SWALLOWED in ended.stderr:
            shared.clear()
            continue
        assert (ended.returncode, "Traceback" in ended.stderr) == (128 + number, False), (turn, number, ended.stderr)
        assert shared.left() == set()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("name", SHARING)
def test_processes_that_share_the_work_end_where_it_was_killed(shared: Place, name: str) -> None:
    with started(shared, SHARING[name]) as process:
        process.kill()
    while members(process.pid):
        pass


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("name", sorted(set(SHARING) - {"export"}))
def test_a_run_one_of_whose_processes_was_killed_says_so_and_leaves_nothing(shared: Place, name: str) -> None:
    assert_tells_of_a_killed_process(shared, SHARING[name])
    assert shared.left() == set()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
def test_an_export_one_of_whose_processes_was_killed_leaves_only_what_the_next_one_takes_up(shared: Place) -> None:
    assert_tells_of_a_killed_process(shared, SHARING["export"])
    assert not [name for name in shared.left() if name.endswith(".parquet")]
    with started(shared, SHARING["export"]) as process:
        process.communicate()
    assert process.returncode == 0
    assert not [name for name in shared.left() if name.endswith(".attempt") or name.startswith("new/_kseg/jobs/")]


def assert_tells_of_a_killed_process(shared: Place, line: str) -> None:
    """A command ends with 2 and says why, if one of its processes is killed."""
    with started(shared, line) as process:
        others = [each for each in members(process.pid) if each != process.pid]
        os.kill(others[-1], signal.SIGKILL)
        _, stderr = process.communicate()
    assert process.returncode == 2
    assert b"a process that shares the work was killed" in stderr


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP], ids=lambda number: number.name)
def test_a_pager_ends_with_it(place: Place, number: int) -> None:
    leader, follower = pty.openpty()
    with subprocess.Popen(
        [Path(sys.executable).with_name("kseg"), "dump", "-o", "table", "bundle.tar.gz"],
        cwd=place.work,
        env=os.environ
        | {"TMPDIR": str(place.temporary), "TERM": "xterm", "KSEG_PAGER": "sh -c 'echo is on; exec cat -'"},
        stdin=follower,
        stdout=follower,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        preexec_fn=interruptible,
    ) as process:
        os.close(follower)
        assert os.read(leader, 1)  # what is printed after that fills the terminal, which nobody reads
        process.send_signal(number)
        assert process.wait() == 128 + number
    os.close(leader)
    while members(process.pid):
        pass
    assert place.left() == set()
