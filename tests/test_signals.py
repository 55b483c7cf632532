"""A run that ends by Ctrl-C, SIGTERM or SIGHUP leaves nothing; remains of a killed run are removed by the next."""

import itertools
import os
import pty
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, NamedTuple

import pytest

from tests import golden
from tests.export import exports
from tests.fork_server import Forked, fork_process
from tests.loops import TAKES_ALL, for_each
from tests.process_groups import SIGNALS, interruptible, members, wait_for_end
from tests.run import Run, process

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
"""Runs kseg, and sends itself a signal at the n-th file that it opens; a storm continues with each later one."""

BETWEEN_LINES = """
import dis, os, signal, sys

at, number, function = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
del sys.argv[1:4]
PLACES = tuple(f"kseg/system/{name}.py" for name in ("processes", "shared_work"))
PLACES += ("multiprocessing/connection.py", "multiprocessing/process.py", "/selectors.py")
watched = {}
seen = 0

def lines(frame, event, _):
    global seen
    if event == "line" and frame.f_code.co_code[frame.f_lasti] != dis.opmap["NOP"]:
        seen += 1
        if seen == at:
            os.kill(os.getpid(), number)
    return lines

def calls(frame, event, _):
    code = frame.f_code
    if code not in watched:
        is_watched = code.co_filename.endswith(PLACES) and function in ("", code.co_qualname)
        watched[code] = lines if is_watched else None
    return watched[code]

sys.settrace(calls)
from kseg.__main__ import main
status = main()
sys.settrace(None)
print(seen, file=sys.stderr)
sys.exit(status)
"""
"""Runs kseg, and sends itself a signal at the n-th line of shared work, or of one of its functions.

Only tracing can raise anything at the NOP of a `try` or at a return, and there no handler of the function would get it.
"""

COMMANDS = {
    "salvage": "salvage damaged-0 --to new",
    "salvage of several": "salvage logs --to some/new",
    "reindex": "reindex test-1-0 --to new",
    "slice": "slice test-1-0 --to some/more/new",
    "compact": "compact compacted-txn-0 --to new",
    "retain": "retain test-1-0 --retention-bytes 1 --to new",
    "build": "build records.txt --input-format text --batch-records 10 --segment-bytes 500 --to new",
    "diff of an archive": "diff bundle.tar.gz bundle.tar.gz",
    "dump of an archive": "dump bundle.tar.gz",
    "salvage of an archive": "salvage bundle.tar.gz --to new",
    "export": "export test-1-0 new",
    "export of an archive": "export bundle.tar.gz new",
}
POINTS = 8 if TAKES_ALL else 4
"""Number of points all over the run at which each command is ended; half of them are killed."""
SWALLOWED = b"Exception ignored in: "
"""Python drops an interrupt while an object is destroyed: then a second one is needed."""


class Place(NamedTuple):
    """The directory of a command, and its TMPDIR."""

    work: Path
    temporary: Path

    def new_names(self) -> set[str]:
        """Return new names."""
        made = {str(path.relative_to(self.work)) for path in self.work.rglob("*")} - self.before
        return made | {path.name for path in self.temporary.iterdir()}

    def is_whole(self, line: str) -> bool:
        """Return True if a signal came too late: the new directory is complete, and nothing else is new."""
        target = line.split()[-1]
        return (self.work / target).exists() and all(
            f"{path}/".startswith(f"{target}/") or f"{target}/".startswith(f"{path}/") for path in self.new_names()
        )

    def clear(self) -> None:
        """Remove new directories."""
        for name in ("new", "some"):
            shutil.rmtree(self.work / name, ignore_errors=True)

    @property
    def before(self) -> set[str]:
        return set((self.temporary.parent / "before").read_text().splitlines())

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"TMPDIR": str(self.temporary), "PYTHONDONTWRITEBYTECODE": "1"}


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


def run(place: Place, line: str, at: int = 0, how: str = "once", number: int = 0, *, imports_late: bool = False) -> Run:
    """Run a command line; without a signal, the last line of stderr has the number of possible points.

    imports_late: in a fresh interpreter, which also opens the files of modules.
    """
    arguments = [str(at), how, str(number), *line.split()]
    if imports_late:
        command = [sys.executable, "-P", "-c", PROGRAM, *arguments]
        ran = subprocess.run(
            command,
            cwd=place.work,
            env=place.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            preexec_fn=interruptible,
        )
        return Run(ran.returncode, ran.stdout, ran.stderr)
    return process(arguments, place.work, program=PROGRAM, environment=place.environment, with_arrow="export" in line)


def points(place: Place, line: str, wanted: int, *, imports_late: bool = False) -> Iterator[int]:
    """Return numbers of opened files, spread over a run."""
    ran = run(place, line, imports_late=imports_late)
    assert ran.status in (0, 1), ran.stderr
    count = int(ran.stderr.splitlines()[-1])
    assert all(path.startswith(("new", "some")) for path in place.new_names())
    place.clear()
    return iter(sorted({1 + number * (count - 1) // (wanted - 1) for number in range(wanted)}))


@pytest.mark.parametrize("name", COMMANDS)
def test_an_ended_run_leaves_nothing(place: Place, name: str) -> None:
    assert_ended_runs_leave_nothing(place, COMMANDS[name], POINTS, [*COMMANDS].index(name))


def test_an_export_that_is_ended_among_its_imports_leaves_nothing(place: Place) -> None:
    assert_ended_runs_leave_nothing(place, COMMANDS["export"], 4, imports_late=True)


def assert_ended_runs_leave_nothing(
    place: Place, line: str, wanted: int, first_turn: int = 0, *, imports_late: bool = False
) -> None:
    """Assert that a command ends at once and leaves nothing after a signal at any point.

    The signal changes in turns.
    """
    for turn, at in enumerate(points(place, line, wanted, imports_late=imports_late), first_turn):
        number = SIGNALS[turn % len(SIGNALS)]
        ended = run(place, line, at, ("once", "storm")[turn % 2], number, imports_late=imports_late)
        assert ended.status == 128 + number, (at, number, ended.stderr)
        assert b"Traceback" not in ended.stderr
        if not place.is_whole(line):
            assert place.new_names() == set(), (at, number)
        place.clear()


def killing_points(place: Place, line: str) -> list[int]:
    """Return numbers of opened files at which a run is killed.

    A small number is taken from its middle, where a killed run leaves files.
    """
    inner = list(points(place, line, 4))
    return inner if TAKES_ALL else inner[1:3]


@pytest.mark.parametrize("name", COMMANDS)
def test_the_next_run_removes_what_a_killed_one_left(place: Place, name: str) -> None:
    line = COMMANDS[name]
    left = 0
    for at in killing_points(place, line):
        assert run(place, line, at, "once", signal.SIGKILL).status == -signal.SIGKILL
        left += len(place.new_names())
        if "export" not in line:
            shutil.rmtree(place.work / line.split()[-1], ignore_errors=True)  # it was complete
        assert run(place, line).status in (0, 1)
        assert {path for path in place.new_names() if not path.startswith(("new", "some"))} == set(), at
        assert not any("-kseg-" in path for path in place.new_names())
        assert not any("attempts" in path and path.endswith(".attempt") for path in place.new_names())
        place.clear()
    assert left > 0


def test_a_living_run_is_left_alone_by_others(place: Place) -> None:
    command = [Path(sys.executable).with_name("kseg"), "build", "--input-format", "text", "--to", "new"]
    with subprocess.Popen(command, cwd=place.work, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as first:
        assert first.stdin is not None
        first.stdin.write(b"value\n" * 50_000)  # more than pipes and buffers hold, so that work has begun
        first.stdin.flush()
        second = subprocess.run(command, cwd=place.work, input=b"other\n", capture_output=True, check=False)
        assert second.returncode == 0
        shutil.rmtree(place.work / "new")
        first.communicate()
    assert first.returncode == 0
    assert place.new_names() == {"new", *(f"new/{path.name}" for path in (place.work / "new").iterdir())}


@pytest.mark.parametrize("name", [".new-20261101", ".new-kseg-notes.txt", ".new-kseg-abcdefg", "new-kseg-abcdefgh"])
def test_directories_of_others_stay(place: Place, name: str) -> None:
    (place.work / name).mkdir()
    (place.temporary / "kseg-backup").mkdir()
    (place.temporary / "kseg-scratch-abcdefgh").symlink_to(place.work)
    assert run(place, "salvage bundle.tar.gz --to new").status == 0
    assert (place.work / name).is_dir()
    assert {path.name for path in place.temporary.iterdir()} == {"kseg-backup", "kseg-scratch-abcdefgh"}
    assert (place.work / "test-1-0").is_dir()


def test_under_nohup_a_hangup_changes_nothing(place: Place) -> None:
    command = [Path(sys.executable).with_name("kseg"), "build", "--input-format", "text", "--to", "new"]
    with subprocess.Popen(
        command,
        cwd=place.work,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN),
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"value\n" * 50_000)
        process.stdin.flush()
        process.send_signal(signal.SIGHUP)
        process.communicate()
    assert process.returncode == 0


@pytest.mark.parametrize("number", SIGNALS, ids=lambda number: number.name)
def test_a_signal_while_kseg_starts_is_quiet(place: Place, number: int) -> None:
    code = "import os, kseg.system.signals as i; i.leave_at_interrupt(); "
    code += f"os.kill(os.getpid(), {int(number)}); print(1)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False, preexec_fn=interruptible)
    assert (ran.returncode, ran.stdout, ran.stderr) == (128 + number, b"", b"")


# --- processes that share the work -----------------------------------------------------------------------------------

MANY = [f"many-{number}" for number in range(20)]
"""Partitions of 40 MB: enough for a signal to come before all is read, also on a busy machine."""
SHARING = {
    "export": "export PARTITIONS new -j 2 --target-file-size 1MB",
    "verify": "verify -j 2 PARTITIONS test-1-0 damaged-0",
    "diff": "diff -q -j 2 PARTITIONS .",
    "salvage": "salvage -j 2 PARTITIONS --to new",
}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a partition directory of 40 MB."""
    directory = tmp_path_factory.mktemp("large") / MANY[0]
    exports.write_log(directory, 0, 40_000, per_batch=100, value=bytes(1000))
    return directory


@pytest.fixture
def shared_place(place: Place, large: Path) -> Place:
    for name in MANY:
        shutil.copytree(large, place.work / name, copy_function=os.link)
    remember(place)
    return place


def remember(place: Place) -> None:
    """Take the current names as the old ones."""
    made = {str(path.relative_to(place.work)) for path in place.work.rglob("*")}
    (place.temporary.parent / "before").write_text("\n".join(sorted(made)))


@contextmanager
def start_command(place: Place, name: str) -> Iterator[tuple[Forked, IO[bytes]]]:
    """Run a command with worker processes in a group of their own; yield it, and its stderr."""
    partitions = MANY[:5] if name == "export" else MANY  # each takes long
    arguments = SHARING[name].replace("PARTITIONS", " ".join(partitions)).split()
    with TemporaryFile() as stderr, Path(os.devnull).open("rb+") as nothing:
        streams = (nothing.fileno(), nothing.fileno(), stderr.fileno())
        with fork_process(
            arguments, place.work, streams, environment=place.environment, with_arrow=name == "export"
        ) as process:
            while process.poll(0.002) is None and len(members(process.pid)) < 3:
                pass
            yield process, stderr


def wait_and_read(process: Forked, stderr: IO[bytes]) -> tuple[int, bytes]:
    """Return the exit status, and its output."""
    status = process.wait()
    stderr.seek(0)
    return status, stderr.read()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("name", SHARING)
@for_each("number, to_all", list(itertools.product(SIGNALS, (False, True))))
def test_processes_that_share_the_work_end_with_it(shared_place: Place, name: str, number: int, to_all: bool) -> None:
    with start_command(shared_place, name) as (process, stderr):
        (os.killpg if to_all else os.kill)(process.pid, number)
        status, said = wait_and_read(process, stderr)
        wait_for_end(process.pid)
    assert (status, said.strip()) == (128 + number, b"")
    assert shared_place.new_names() == set()


@pytest.mark.parametrize("name", SHARING)
def test_a_signal_at_any_line_of_what_shares_the_work_ends_it(place: Place, name: str) -> None:
    write_two(place)
    whole = run_traced(place, name, 0, 0)
    count = int(whole.stderr.splitlines()[-1])
    turns = POINTS if name == "export" else 2 * POINTS  # its processes don't fork: they take long to start
    for turn in range(turns):
        number, at = SIGNALS[turn % len(SIGNALS)], 1 + turn * (count - 1) // turns
        ran = run_traced(place, name, at, number)
        if turn > turns // 2 and ran.status == whole.status and int(ran.stderr.splitlines()[-1]) < at:
            place.clear()
            continue  # fewer if processes report at the same time
        if SWALLOWED in ran.stderr:
            place.clear()
            continue
        assert (ran.status, b"Traceback" in ran.stderr) == (128 + number, False), (turn, number, ran.stderr)
        assert place.new_names() == set()


def test_a_signal_at_any_line_of_closing_a_pipe_ends_the_run(place: Place) -> None:
    write_two(place)
    close = "_ConnectionBase.close"
    count = int(run_traced(place, "salvage", 0, 0, close).stderr.splitlines()[-1])
    assert count > 10
    for at in range(1, count + 1):
        ran = run_traced(place, "salvage", at, signal.SIGTERM, close)
        assert (ran.status, b"kseg:" in ran.stderr, place.new_names()) == (128 + signal.SIGTERM, False, set()), (
            ran.stderr
        )


def write_two(place: Place) -> None:
    for partition in MANY[:2]:
        exports.write_log(place.work / partition, 0, 3000, per_batch=100, value=bytes(1000))
    remember(place)


def run_traced(place: Place, name: str, at: int, number: int, function: str = "") -> Run:
    """Run BETWEEN_LINES on the two partitions; without a signal, its last line on stderr is the number of lines."""
    line = SHARING[name].replace("PARTITIONS", " ".join(MANY[:2]))
    ran = process(
        [str(at), str(number), function, *line.split()],
        place.work,
        program=BETWEEN_LINES,
        environment=place.environment,
        with_arrow=name == "export",
        timeout=120,
    )
    if number == 0:
        place.clear()
    return ran


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("name", SHARING)
def test_processes_that_share_the_work_end_where_it_was_killed(shared_place: Place, name: str) -> None:
    with start_command(shared_place, name) as (process, _):
        process.send_signal(signal.SIGKILL)
        wait_for_end(process.pid)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
@pytest.mark.parametrize("name", sorted(set(SHARING) - {"export"}))
def test_a_run_one_of_whose_processes_was_killed_says_so_and_leaves_nothing(shared_place: Place, name: str) -> None:
    assert_tells_of_a_killed_process(shared_place, name)
    assert shared_place.new_names() == set()


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="processes of a group are looked up in /proc")
def test_an_export_one_of_whose_processes_was_killed_leaves_only_what_the_next_one_takes_up(
    shared_place: Place,
) -> None:
    assert_tells_of_a_killed_process(shared_place, "export")
    assert not [name for name in shared_place.new_names() if name.endswith(".parquet")]
    with start_command(shared_place, "export") as (process, _):
        assert process.wait() == 0
    assert not [
        name for name in shared_place.new_names() if name.endswith(".attempt") or name.startswith("new/_kseg/jobs/")
    ]


def assert_tells_of_a_killed_process(shared: Place, name: str) -> None:
    """Assert that a command ends with 2 and the reason, if one of its processes is killed."""
    with start_command(shared, name) as (process, stderr):
        others = [each for each in members(process.pid) if each != process.pid]
        os.kill(others[-1], signal.SIGKILL)
        status, said = wait_and_read(process, stderr)
    assert status == 2
    assert b"a worker process was killed" in said


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
        assert os.read(leader, 1)  # later output fills the terminal, which nobody reads
        process.send_signal(number)
        assert process.wait() == 128 + number
    os.close(leader)
    wait_for_end(process.pid)
    assert place.new_names() == set()
