"""Counts of what was compared, shown at the end."""

from collections.abc import Iterator

import pytest

from tests.live.compared import Compared


@pytest.fixture(scope="module")
def compared() -> Iterator[Compared]:
    """What a module's tests compare; `pytest -s` shows the sums when they are done."""
    found = Compared()
    yield found
    print(f"\n{found.summary()}")  # noqa: T201
