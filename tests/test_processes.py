"""The programs that tests start end, whatever became of the test, and however the tests were started themselves."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.processes import ENDING, started
from tests.sandbox import make_programs


@pytest.fixture
def _in_the_background() -> Iterator[None]:
    before = [(number, signal.signal(number, signal.SIG_IGN)) for number in ENDING]
    yield
    for number, handler in before:
        signal.signal(number, handler)


@pytest.mark.parametrize("number", ENDING, ids=lambda number: number.name)
@pytest.mark.usefixtures("_in_the_background")
def test_signals_end_a_program_where_they_are_ignored(number: signal.Signals, tmp_path: Path) -> None:
    with started(["cat", "/dev/zero"], tmp_path) as process:
        process.send_signal(number)
        process.communicate()
    assert process.returncode == -number


def test_program_does_not_outlive_the_test_that_fails(tmp_path: Path) -> None:
    with pytest.raises(AssertionError), started(["cat", "/dev/zero"], tmp_path) as process:
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
