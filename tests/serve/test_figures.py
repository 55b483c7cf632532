"""The line of live figures."""

import pytest

from kseg.serve.connections import Figures


@pytest.mark.parametrize(
    ("figures", "rate", "line"),
    [
        (Figures(), 0.0, "0 clients, 0.0 MiB/s"),
        (Figures(1, 5, "orders-0"), 0.0, "1 client, 0.0 MiB/s"),
        (Figures(3, 5, "orders-0"), 1.5 * (1 << 20), "3 clients, 1.5 MiB/s, orders-0"),
    ],
)
def test_figures_are_a_line(figures: Figures, rate: float, line: str) -> None:
    assert figures.line(rate) == line
