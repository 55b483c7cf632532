"""A plugin for pytest: runs only the tests that a file names, and logs how each ended and how long it took."""

import os
from pathlib import Path

import pytest

CHOSEN, LOG = "FAULTS_CHOSEN", "FAULTS_LOG"
"""Variables, which must not begin with KSEG_: a file with an id of a test or of a test file per line; the log."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Drops all tests that aren't named."""
    if CHOSEN not in os.environ:
        return
    chosen = set(Path(os.environ[CHOSEN]).read_text(encoding="utf-8").splitlines())
    kept = [item for item in items if not chosen.isdisjoint((item.nodeid, item.nodeid.partition("::")[0]))]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


def pytest_runtest_logstart(nodeid: str) -> None:
    """A test that ends the whole process is the last that was begun."""
    _log("begun", 0, nodeid)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A failure in setup or teardown is one too."""
    _log(report.outcome, report.duration, report.nodeid)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """A test file that can't be imported has failed."""
    if report.failed:
        _log("failed", 0, report.nodeid)


def _log(outcome: str, seconds: float, nodeid: str) -> None:
    if LOG in os.environ and "PYTEST_XDIST_WORKER" not in os.environ:
        with Path(os.environ[LOG]).open("a", encoding="utf-8") as log:
            log.write(f"{outcome}\t{seconds:.3f}\t{nodeid}\n")
