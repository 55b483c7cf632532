"""Counts of comparisons with Kafka's own tools, shown at the end."""

import pytest

from tests.live.compared import Compared

_COMPARED = pytest.StashKey[dict[str, Compared]]()


@pytest.fixture(scope="module")
def compared(request: pytest.FixtureRequest) -> Compared:
    """The comparisons of a module's tests."""
    found = Compared()
    request.config.stash.setdefault(_COMPARED, {})[request.module.__name__] = found
    return found


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print a line per module."""
    for name, found in config.stash.get(_COMPARED, {}).items():
        terminalreporter.write_line(f"{name}: {found.summary()}")
