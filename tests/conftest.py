"""What all tests share: the kernels, and a copy of the golden files as Kafka left them."""

import os
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kseg import kernel as kernels
from tests import golden
from tests.run import KERNELS

if TYPE_CHECKING:
    from kseg.kernel.contract import Kernel


def pytest_sessionstart() -> None:
    """Half of the tests must not vanish because nothing was compiled."""
    if os.environ.get("KSEG_KERNEL") == "twin":
        return
    try:
        import_module("kseg.kernel.fast")
    except ImportError as error:
        pytest.exit(f"the compiled kernel is missing ({error}): run `make test`, or set KSEG_KERNEL=twin", 1)


@pytest.fixture(params=KERNELS)
def kernel(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> "Kernel":
    """Runs a test once with each kernel, also where the test only calls what uses one."""
    monkeypatch.setenv(kernels.KERNEL_VARIABLE, request.param)
    return kernels.load()


@pytest.fixture(scope="session")
def restored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root of golden's files with their zero tails put back; tests only read it."""
    return golden.restored(tmp_path_factory)
