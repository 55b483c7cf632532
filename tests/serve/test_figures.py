"""The line of live figures."""

from pathlib import Path

import pytest

from kseg.serve.connections import Figures

LOG = Path("orders-0") / f"{0:020}.log"


@pytest.mark.parametrize(
    ("figures", "rate", "line"),
    [
        (Figures(), 0.0, "0 clients, 0.0 MiB/s"),
        (Figures(1, 5, LOG), 0.0, "1 client, 0.0 MiB/s"),
        (Figures(3, 5, LOG), 1.5 * (1 << 20), "3 clients, 1.5 MiB/s, orders-0"),
    ],
)
def test_figures_are_a_line(figures: Figures, rate: float, line: str) -> None:
    assert figures.line(rate) == line
