"""Cases of the fuzzer are read correctly: each case below tests/found/ once failed."""

import os
from pathlib import Path
from random import Random

import pytest

from kseg.kernel import KERNEL_VARIABLE
from tests.fuzz.cases import Case
from tests.fuzz.worker import try_case

FOUND = sorted(path for path in (Path(__file__).parent / "found").iterdir() if path.is_dir())


@pytest.mark.parametrize("directory", FOUND, ids=lambda path: path.name)
def test_every_property_holds_of_what_was_found(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(KERNEL_VARIABLE, os.environ.get(KERNEL_VARIABLE, ""))  # the kernels take turns; restored later
    try_case(Case.read(directory), Random(directory.name), whole=True)
