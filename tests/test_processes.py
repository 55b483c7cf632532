"""Programs that tests start end with the test, however it ends and was started."""

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE

import pytest

from tests import golden
from tests.fork_server import ENDING, fork_process
from tests.processes import start_process
from tests.run import kseg, process, run_bounded
from tests.sandbox import make_programs


@pytest.fixture
def _run_in_background() -> Iterator[None]:
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in ENDING]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
@pytest.mark.usefixtures("_run_in_background")
def test_signals_end_a_program_where_they_are_ignored(number: signal.Signals, tmp_path: Path) -> None:
    with start_process(["cat", "/dev/zero"], tmp_path) as process:
        process.send_signal(number)
        process.communicate()
    assert process.returncode == -number


def test_program_does_not_outlive_the_test_that_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), start_process(["cat", "/dev/zero"], tmp_path) as process:
        assert process is None
    assert process.returncode == -signal.SIGKILL


def test_examples_find_no_program_but_their_own(tmp_path: Path) -> None:
    (tmp_path / "clients.pcap").write_text("captured before\n")
    (tmp_path / "programs").mkdir()
    path = make_programs(tmp_path / "programs")
    ran = subprocess.run(
        ["/bin/sh", "-c", "tcpdump -i any; command -v ls"], cwd=tmp_path, env={"PATH": path}, capture_output=True
    )
    assert (ran.stdout, ran.stderr) == (b"captured before\n", b"")


# --- forked processes ------------------------------------------------------------------------------------------------

SHOW = """
import os, signal, sys
print(sys.argv, os.getcwd(), dict(os.environ), __name__, os.getsid(0) == os.getpid(), sys.stdin.read())
print([number for number in range(2000) if os.path.exists(f"/proc/self/fd/{number}")])
print(signal.getsignal(signal.SIGTERM) == signal.SIG_DFL, "ä\\udcff", file=sys.stderr)
"""


def test_forked_program_has_its_own_arguments_directory_environment_and_streams(tmp_path: Path) -> None:
    ran = process(["a", "b"], tmp_path, program=SHOW, environment={"X": "y"})
    shown = f"['-c', 'a', 'b'] {tmp_path} {{'X': 'y'}} __main__ True \n[0, 1, 2]\n"
    assert ran == (0, shown.encode(), "True ä\\udcff\n".encode())


def test_forked_program_starts_where_the_last_one_did(tmp_path: Path) -> None:
    process([], tmp_path, program="import os, sys; os.environ['LEFT'] = '1'; sys.left = 1; os.chdir('/')")
    ran = process(
        [], tmp_path, program="import os, sys; print('LEFT' in os.environ, hasattr(sys, 'left'), os.getcwd())"
    )
    assert ran.stdout == f"False False {tmp_path}\n".encode()


@pytest.mark.parametrize(
    ("program", "status", "said"),
    [
        ("pass", 0, b""),
        ("import sys; sys.exit(3)", 3, b""),
        ("import sys; sys.exit('no')", 1, b"no\n"),
        ("import os; os._exit(4)", 4, b""),
        ("import atexit, sys; atexit.register(print, 'end', file=sys.stderr)", 0, b"end\n"),
        ("import os; os.kill(os.getpid(), 15)", -signal.SIGTERM, b""),
        ("import os; os.kill(os.getpid(), 9)", -signal.SIGKILL, b""),
    ],
    ids=["end", "status", "message", "_exit", "atexit", "SIGTERM", "SIGKILL"],
)
def test_forked_program_ends_as_an_interpreter_does(program: str, status: int, said: bytes, tmp_path: Path) -> None:
    assert process([], tmp_path, program=program) == (status, b"", said)


def test_forked_program_that_raises_shows_a_traceback(tmp_path: Path) -> None:
    ran = process([], tmp_path, program="1 / 0")
    assert ran.status == 1
    assert ran.stderr.startswith(b"Traceback")
    assert ran.stderr.endswith(b"ZeroDivisionError: division by zero\n")


def test_forked_program_runs_kseg(tmp_path: Path) -> None:
    assert run_bounded(["--version"], tmp_path).stdout.startswith(b"kseg ")
    assert run_bounded(["dump", "nowhere.log"], tmp_path) == kseg(["dump", "nowhere.log"], tmp_path)


def test_limits_hold_for_a_forked_program(tmp_path: Path) -> None:
    memory = process([], tmp_path, program="bytes(256 << 20)", limits={resource.RLIMIT_AS: 256 << 20})
    assert memory.stderr.endswith(b"MemoryError\n")
    assert process([], tmp_path, program="bytes(128 << 20)", limits={resource.RLIMIT_AS: 256 << 20}).status == 0
    endless = process([], tmp_path, program="while True: pass", limits={resource.RLIMIT_CPU: 1})
    assert endless.status == -signal.SIGKILL


def test_forked_programs_run_at_the_same_time_and_end_with_their_context(tmp_path: Path) -> None:
    nothing = os.open(os.devnull, os.O_RDWR)
    streams = (nothing, nothing, nothing)
    program = "while True: pass"
    with (
        fork_process([], tmp_path, streams, program=program) as one,
        fork_process([], tmp_path, streams, program=program) as other,
    ):
        assert one.poll() is None
        one.send_signal(signal.SIGKILL)
        assert one.wait() == -signal.SIGKILL
        assert other.poll() is None
    os.close(nothing)
    assert other.wait() == -signal.SIGKILL


def test_forked_programs_end_however_early_their_context_does(tmp_path: Path) -> None:
    limits = {resource.RLIMIT_CPU: 20}  # none remains if this fails
    with Path(os.devnull).open("rb+") as nothing:
        streams = (nothing.fileno(),) * 3
        for _ in range(50):
            with fork_process([], tmp_path, streams, program="while True: pass", limits=limits) as process:
                pass
            assert process.returncode == -signal.SIGKILL


def test_processes_that_outlive_a_forked_program_end_with_its_context(tmp_path: Path) -> None:
    program = "import os\nwhile not os.fork():\n    while True: pass"
    reader, writer = os.pipe()
    with Path(os.devnull).open("rb+") as nothing, os.fdopen(reader, "rb") as held:
        streams = (nothing.fileno(), writer, nothing.fileno())
        with fork_process([], tmp_path, streams, program=program, limits={resource.RLIMIT_CPU: 20}) as process:
            os.close(writer)
            assert process.wait() == 0
            os.set_blocking(reader, False)
            assert held.read() is None
        os.set_blocking(reader, True)
        assert held.read() == b""


ENDLESS = "print('runs', flush=True)\nwhile True: pass"
FORKING = f"""
import sys
from pathlib import Path
from tests.fork_server import fork_process

with fork_process([], Path.cwd(), (0, 1, 2), program={ENDLESS!r}):
    sys.stdin.read()
"""


def test_a_fork_server_and_its_programs_end_when_the_session_was_killed() -> None:
    command = [sys.executable, "-c", FORKING]
    with subprocess.Popen(command, cwd=golden.ROOT.parent, stdin=PIPE, stdout=PIPE, stderr=PIPE) as session:
        assert session.stdout is not None
        assert session.stdout.readline() == b"runs\n"
        session.kill()
        assert session.communicate(timeout=60) == (b"", b"")  # both have the pipes open
