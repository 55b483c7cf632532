"""Every golden case, in this process: kseg's output compared with the output of each release's real tool."""

import os
import re
import traceback
from collections import Counter
from collections.abc import Callable
from itertools import takewhile, zip_longest
from pathlib import Path

import pytest

from tests import golden, run
from tests.golden import GoldenCase, Group
from tests.loops import some_of_each

SHOWN = 5
PRINTERS = golden.printers()
EVERY = {"healthy": 5, "damaged": 3}
"""The share of runs with the same options for the same kind of file that are compared: different ones per kernel."""

# The problem of a run, or None.
Check = Callable[[GoldenCase, run.Run], str | None]
# Runs cases and checks each; returns the text about failed ones.
Compare = Callable[[list[GoldenCase], Check], list[str]]


class Counts:
    """Good and run cases by group and kernel, for the terminal's summary."""

    def __init__(self) -> None:
        self.good: Counter[tuple[str, str]] = Counter()
        self.run: Counter[tuple[str, str]] = Counter()

    def add(self, name: str, kernel: str, is_good: bool) -> None:
        self.run[name, kernel] += 1
        self.good[name, kernel] += is_good

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for (name, kernel), count in sorted(self.run.items()):
            terminalreporter.write_line(f"golden, {kernel} kernel, {name}: {self.good[name, kernel]} of {count}")


@pytest.fixture(scope="module")
def counts(pytestconfig: pytest.Config) -> Counts:
    counts = Counts()
    pytestconfig.pluginmanager.register(counts)
    return counts


@pytest.fixture(params=run.KERNELS)
def compare(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
    counts: Counts,
) -> Compare:
    monkeypatch.setenv("KSEG_KERNEL", request.param)
    root = golden.restored(tmp_path_factory)

    def compare_all(cases: list[GoldenCase], check: Check) -> list[str]:
        failures = []
        for case in sample_cases(cases, request.param):
            ran, wrong = check_case(case, check, root)
            counts.add(case.group, request.param, wrong is None)
            if case.needs_internal_topic_decoder:
                counts.add(f"{case.group}, of them internal topics", request.param, wrong is None)
            if ran is not None and case.group == "healthy":
                counts.add(
                    "healthy, stderr equal too (for information)", request.param, has_same_stderr(case, ran, root)
                )
            if wrong is not None:
                failures.append(f"{case}: {run.command(arguments_of(case))}\n{wrong}")
        return failures

    return compare_all


def sample_cases(cases: list[GoldenCase], kernel: str) -> list[GoldenCase]:
    """Return some cases of each kind; different ones with each release and with each kernel."""
    return some_of_each(
        cases,
        lambda case: (case.kind, *(word.split("=")[0] for word in case.arguments if word.startswith("--"))),
        EVERY.get(cases[0].group, 1) if cases else 1,
        PRINTERS.index(cases[0].printer) + 2 * run.KERNELS.index(kernel) if cases else 0,
    )


@pytest.mark.parametrize("printer", PRINTERS)
def test_healthy_files_print_as_that_release_printed_them(printer: str, compare: Compare) -> None:
    failures = compare(golden.cases("healthy", printer=printer), same_stdout)
    assert failures == [], report(failures)


@pytest.mark.parametrize("printer", PRINTERS)
def test_healthy_files_that_killed_the_tool_print_its_whole_lines_first(printer: str, compare: Compare) -> None:
    failures = compare(golden.cases("died", printer=printer), whole_lines_first)
    assert failures == [], report(failures)


@pytest.mark.parametrize("printer", PRINTERS)
def test_damaged_files_end_with_an_allowed_status_behind_the_tools_lines(printer: str, compare: Compare) -> None:
    failures = compare(golden.cases("damaged", printer=printer), allowed_status)
    assert failures == [], report(failures)


# No status is required: the real tool's own is 1 for --help, and its status for a later format is arbitrary.
@pytest.mark.parametrize("group", ["newer", "usage"])
def test_wrong_usage_and_newer_formats_end_without_a_traceback(group: Group, compare: Compare) -> None:
    cases = [case for printer in PRINTERS for case in golden.cases(group, printer=printer)]
    failures = compare(cases, allowed_status_only)
    assert failures == [], report(failures)


def same_stdout(case: GoldenCase, ran: run.Run) -> str | None:
    wanted = case.stdout()
    if ran.stdout == wanted or (case.hash_order and words_by_line(ran.stdout) == words_by_line(wanted)):
        return None
    return first_difference(wanted, ran.stdout)


def whole_lines_first(case: GoldenCase, ran: run.Run) -> str | None:
    wanted = case.stdout()
    wanted = wanted[: wanted.rfind(b"\n") + 1]
    return None if ran.stdout.startswith(wanted) else first_difference(wanted, ran.stdout[: len(wanted)])


def allowed_status_only(case: GoldenCase, ran: run.Run) -> str | None:
    allowed = case.exit or (0, 1, 2)
    return None if ran.status in allowed else f"  exit status {ran.status}, allowed {allowed}"


def allowed_status(case: GoldenCase, ran: run.Run) -> str | None:
    wrong = allowed_status_only(case, ran)
    return whole_lines_first(case, ran) if wrong is None and case.status != 0 else wrong


def arguments_of(case: GoldenCase) -> list[str]:
    return ["dump", "--like", case.like, *case.arguments]


# Any exception is a failure here, and must not end the run of the other cases.
def check_case(case: GoldenCase, check: Check, root: Path) -> tuple[run.Run | None, str | None]:
    try:
        ran = run.kseg(arguments_of(case), root)
    except (Exception, SystemExit) as error:  # noqa: BLE001
        place = traceback.extract_tb(error.__traceback__)[-1]
        return None, f"  raised {error!r} at {Path(place.filename).name}:{place.lineno}"
    if b"Traceback (most recent call last)" in ran.stderr:
        return ran, f"  traceback on stderr: {ran.stderr.splitlines()[-1]!r}"
    wrong = check(case, ran)
    return ran, wrong if wrong is None or not ran.stderr else f"{wrong}\n  stderr {ran.stderr[-200:]!r}"


def has_same_stderr(case: GoldenCase, ran: run.Run, root: Path) -> bool:
    return ran.stderr.replace(os.fsencode(root) + b"/", b"<ROOT>/") == case.stderr()


def words_by_line(text: bytes) -> list[list[bytes]]:
    """Return each line's words, sorted: equal if lists come in a hash table's order."""
    return [sorted(re.findall(rb"[^\s,\[\]{}()]+", line)) for line in text.split(b"\n")]


def first_difference(wanted: bytes, got: bytes) -> str:
    """Return the first line that differs, from shortly before the first different byte."""
    pairs = zip_longest(wanted.split(b"\n"), got.split(b"\n"))
    number, (want, have) = next((n, pair) for n, pair in enumerate(pairs, 1) if pair[0] != pair[1])
    same = takewhile(lambda pair: pair[0] == pair[1], zip(want or b"", have or b"", strict=False))
    column = len(list(same))
    return f"  line {number}, byte {column}\n  wanted {excerpt(want, column)}\n  got    {excerpt(have, column)}"


def excerpt(line: bytes | None, column: int) -> str:
    return "no more lines" if line is None else repr(line[max(0, column - 60) : column + 100])


def report(failures: list[str]) -> str:
    shown = "\n".join(failures[:SHOWN])
    return f"{len(failures)} cases fail; paths are relative to a copy by tools/show_case.py --restore\n{shown}"
