"""Damaged logs, and shared exports of them, which tests only read."""

import shutil
from pathlib import Path
from typing import NamedTuple

import pytest

from kseg.export.report import Report
from tests.export import exports

WIPED = "210-wiped-batch"
"""The directory of a test that depends on the position of the damage."""


class Exported(NamedTuple):
    """A finished export: its report, and its destination."""

    report: Report
    out: Path


@pytest.fixture(scope="session")
def damaged_disk(restored: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a disk with a log for each kind of damage."""
    disk = tmp_path_factory.mktemp("disk") / "damaged"
    for directory in {*exports.damaged_directories(restored), restored / "damaged" / WIPED}:
        shutil.copytree(directory, disk / directory.name)
    return disk


@pytest.fixture(scope="session")
def damaged_logs(damaged_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return an export of all damaged logs, with control records."""
    out = tmp_path_factory.mktemp("damaged")
    return Exported(exports.export([damaged_disk], out, control=True), out)


@pytest.fixture(scope="session")
def damaged_logs_in_small_orders(damaged_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return the same export, cut into orders of few batches."""
    out = tmp_path_factory.mktemp("damaged-cut")
    return Exported(exports.export([damaged_disk], out, control=True, target_size=300), out)


@pytest.fixture(scope="session")
def damaged_logs_without_control(damaged_disk: Path, tmp_path_factory: pytest.TempPathFactory) -> Exported:
    """Return an export of all damaged logs without control records, the default."""
    out = tmp_path_factory.mktemp("damaged-default")
    return Exported(exports.export([damaged_disk], out), out)
