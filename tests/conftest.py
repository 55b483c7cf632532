"""Fixtures of all tests: the kernels, and a copy of the golden files as Kafka left them."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from kseg import kernel as kernels
from tests import golden
from tests.failing_disk import FailingDisk
from tests.run import KERNELS

pytest_plugins = ["pytester"]

if TYPE_CHECKING:
    from kseg.kernel.entry_points import Kernel


# The same examples in every run, on a slow machine too; `--hypothesis-profile=search` draws new ones.
_ALLOWED = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
settings.register_profile("steady", deadline=None, derandomize=True, suppress_health_check=_ALLOWED)
settings.register_profile("search", deadline=None, print_blob=True, suppress_health_check=_ALLOWED)
settings.load_profile("steady")


def pytest_sessionstart(session: pytest.Session) -> None:
    """Fail without a compiled kernel, and print the seed of the run.

    Otherwise half of the tests would vanish silently. The seed repeats the order.
    """
    _tell_order(session.config)
    if os.environ.get("KSEG_KERNEL") == "twin":
        return
    try:
        from kseg.kernel.fast import NAME
    except ImportError as error:
        pytest.exit(f"the compiled kernel is missing ({error}): run `make test`, or set KSEG_KERNEL=twin", 1)
    assert NAME == "fast"


def _tell_order(config: pytest.Config) -> None:
    """Print the seed of the random order, also with -q, which hides pytest's own header; workers have no terminal."""
    terminal = config.pluginmanager.get_plugin("terminalreporter")
    seed = config.getoption("randomly_seed", None)
    if terminal is not None and isinstance(seed, int):
        terminal.write_line(f"the tests' order is that of --randomly-seed={seed}")


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Kernel":
    """Run a test once with each kernel, also if it only calls users of a kernel."""
    monkeypatch.setenv(kernels.KERNEL_VARIABLE, request.param)
    return kernels.load()


@pytest.fixture
def failing_disk(monkeypatch: pytest.MonkeyPatch) -> FailingDisk:
    """Return a disk that can lose blocks and files."""
    return FailingDisk(monkeypatch)


@pytest.fixture(scope="session")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the root of golden's files with their zero tails restored; tests only read it."""
    return golden.restored(tmp_path_factory)


@pytest.fixture
def unpacked_into(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Yield the temporary directory, which must be empty at the end."""
    directory = tmp_path / "unpacked"
    directory.mkdir()
    monkeypatch.setenv("TMPDIR", str(directory))
    yield directory
    assert list(directory.iterdir()) == []
