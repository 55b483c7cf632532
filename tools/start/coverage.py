"""Counts of rows, cells not applicable, and cells not run, by release, role and stop."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import NamedTuple

from start import base
from start.cells import COPIES, STOPS, Cell, disk_cells, donor, partition_cells, put_fault, topics
from start.faults import NotApplicable
from start.rows import ROWS, base_path, key_of, read_rows, rows_path

HEADINGS = ("node", "stop", "cells", "rows", "not run", "not applicable")


class Coverage(NamedTuple):
    """Numbers of cells of a release, role and stop. reasons: why cells aren't applicable, and how many."""

    cells: int
    rows: int
    reasons: Mapping[str, int]

    @property
    def not_applicable(self) -> int:
        """Number of cells that the base disk can't have."""
        return sum(self.reasons.values())

    @property
    def not_run(self) -> int:
        """Number of cells that could have a row, and have none."""
        return self.cells - self.rows - self.not_applicable


def coverage(release: str, role: str, stop: str) -> Coverage:
    """Count the measured and unmeasured cells of a node."""
    done = {key_of(row) for row in read_rows(rows_path(release, role))}
    missing = [cell for cell in all_cells() if (*cell, stop) not in done]
    reasons = Counter(reason for _, reason in not_applicable(missing, base_path(release, role, stop)))
    cells = len(list(all_cells()))
    return Coverage(cells, cells - len(missing), dict(sorted(reasons.items())))


def table() -> Iterator[tuple[object, ...]]:
    """Yield lines of the table: one per node and stop, then one per reason why cells aren't applicable."""
    yield HEADINGS
    for rows in sorted(ROWS.glob("*.jsonl")):
        release, _, role = rows.stem.partition("-")
        for stop in STOPS:
            counted = coverage(release, role, stop)
            yield rows.stem, stop, counted.cells, counted.rows, counted.not_run, counted.not_applicable
            yield from (("", "", "", "", "", f"{count} {reason}") for reason, count in counted.reasons.items())


def all_cells() -> Iterator[Cell]:
    """Return all cells, of partitions and of the disk."""
    return chain(partition_cells(), disk_cells())


def not_applicable(cells: list[Cell], archive: Path) -> Iterator[tuple[Cell, str]]:
    """Yield the cells that a base disk can't have, and the reason: each fault is tried on a copy of its files."""
    with tempfile.TemporaryDirectory() as directory:
        sound = Path(directory) / "sound"
        base.unpack(archive, sound)
        for kind in COPIES:
            for topic in topics(kind)[1:]:
                if topic != donor(kind):
                    shutil.rmtree(sound / f"{topic}-0", ignore_errors=True)
        for cell in cells:
            with tempfile.TemporaryDirectory(dir=directory) as parent:
                disk = shutil.copytree(sound, Path(parent) / "disk")
                try:
                    put_fault(cell, disk, topics(cell.kind)[0] if cell.kind else None)
                except NotApplicable as reason:
                    yield cell, str(reason)
