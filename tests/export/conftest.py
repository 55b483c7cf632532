"""Exports of all damaged logs that several tests look at: made once, and only read."""

from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.export.report import Report
from tests.export import exports


class Exported(NamedTuple):
    """A finished export: its report, and its destination."""

    report: Report
    out: Path


@pytest.fixture(scope="session")
def damaged_logs(restored: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """All damaged logs, with control records."""
    out = tmp_path_factory.mktemp("damaged")
    return Exported(exports.export([restored / "damaged"], out, control=True), out)


@pytest.fixture(scope="session")
def damaged_logs_in_small_orders(restored: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """The same, cut into orders of few batches."""
    out = tmp_path_factory.mktemp("damaged-cut")
    return Exported(exports.export([restored / "damaged"], out, control=True, target_size=300), out)


@pytest.fixture(scope="session")
def damaged_logs_without_control(restored: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """All damaged logs, as exports are by default."""
    out = tmp_path_factory.mktemp("damaged-default")
    return Exported(exports.export([restored / "damaged"], out), out)
