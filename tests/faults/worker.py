"""A copy of the tree in which faults are put in order, and its tests run."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.faults.chosen_tests import CHOSEN, LOG
from tests.faults.fault import Fault

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "faults"
KERNEL = Path("kseg", "kernel")
ALL_PASSED, SOME_FAILED, NOTHING_RUN = 0, 1, 5
"""Exit statuses of pytest; all others mean that it didn't come to an end."""
LONGEST_TEST = 300
"""Seconds after which a test has failed: no test of the clean tree takes as long."""


class OutOfTimeError(Exception):
    """The tests of a fault take too long."""


class Worker:
    """A copy of the tree, with a kernel of its own, in build/faults/."""

    def __init__(self, name: str) -> None:
        self.root = BUILD / name
        shutil.rmtree(self.root, ignore_errors=True)
        listed = subprocess.run(
            ["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, check=True, text=True
        ).stdout
        kernels = [str(path.relative_to(ROOT)) for path in (ROOT / KERNEL).glob("fast.*.so")]
        for path in filter(None, (*listed.split("\0"), *kernels)):
            if (ROOT / path).exists():
                (self.root / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, self.root / path)

    @contextmanager
    def faulty(self, fault: Fault) -> Iterator[None]:
        """Put a fault in, and take it out afterwards; times of files change with it, so that Python compiles them."""
        target = self.root / fault.path
        target.write_text(fault.apply(target.read_text(encoding="utf-8")), encoding="utf-8")
        try:
            if fault.is_compiled:
                self._compile(BUILD / f"{fault.name}.so")
            yield
        finally:
            shutil.copy2(ROOT / fault.path, target)
            if fault.is_compiled:
                for own in (ROOT / KERNEL).glob("fast.*.so"):
                    _replace(own, self.root / KERNEL / own.name)

    def _compile(self, kept: Path) -> None:
        """Compile the kernel as it is, or take what was compiled for the same fault before."""
        (own,) = (self.root / KERNEL).glob("fast.*.so")
        if not kept.exists():
            command = [sys.executable, "-W", "ignore", "setup.py", "-q", "build_ext", "--inplace", "--force"]
            own.unlink()
            subprocess.run(command, cwd=self.root, check=True, capture_output=True)
            shutil.copy2(own, kept)
        _replace(kept, own)

    def run(self, *options: str, deadline: float = float("inf"), **variables: str) -> tuple[int, list[list[str]]]:
        """Run pytest; return its exit status, and the log of `chosen_tests`."""
        log = self.root / "build" / "log"
        log.parent.mkdir(exist_ok=True)
        log.write_text("", encoding="utf-8")
        # PYTHONPATH: tests start kseg elsewhere too, and the environment knows only the tree that it was made for.
        environment = {**os.environ, "PYTHONPATH": str(self.root), LOG: str(log), **variables}
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "tests.faults.chosen_tests",
            "-p",
            "no:cacheprovider",
            *options,
        ]
        with (self.root / "build" / "said").open("wb") as said:
            status = _bounded(command, self.root, environment, said.fileno(), deadline)
        return status, [line.split("\t") for line in log.read_text(encoding="utf-8").splitlines()]

    def first_failure(self, tests: Collection[str], deadline: float) -> str | None:
        """Run tests, in the order of their files; return the first that fails, None if all pass."""
        chosen = self.root / "build" / "chosen"
        chosen.parent.mkdir(exist_ok=True)
        chosen.write_text("\n".join(tests), encoding="utf-8")
        files = dict.fromkeys(test.partition("::")[0] for test in tests)
        options = ("-x", "-p", "no:randomly", "--timeout", str(LONGEST_TEST), *files)
        status, log = self.run(*options, deadline=deadline, **{CHOSEN: str(chosen)})
        if status in (ALL_PASSED, NOTHING_RUN):
            return None
        failed = [test for outcome, _, test in log if outcome == "failed"]
        if failed or (status != SOME_FAILED and log):
            return failed[0] if failed else log[-1][2]
        raise RuntimeError(f"pytest ended with {status}: see {self.root}/build/said")


def _replace(source: Path, target: Path) -> None:
    """Copy a library: a process that has loaded the old one keeps it."""
    target.unlink(missing_ok=True)
    shutil.copy2(source, target)


def _bounded(command: list[str], directory: Path, environment: dict[str, str], output: int, deadline: float) -> int:
    """Run a command in a process group, which is ended with all that it started. Raises OutOfTimeError."""
    with subprocess.Popen(
        command, cwd=directory, env=environment, stdout=output, stderr=output, start_new_session=True
    ) as ran:
        try:
            return ran.wait(None if deadline == float("inf") else max(deadline - time.monotonic(), 0))
        except subprocess.TimeoutExpired as error:
            raise OutOfTimeError from error
        finally:
            if ran.poll() is None:
                os.killpg(ran.pid, signal.SIGKILL)
