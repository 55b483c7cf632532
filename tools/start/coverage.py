"""Counts of rows, cells not applicable, and cells not run, by release, role and stop."""

import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from start import base
from start.cells import COPIES, STOPS, Cell, disk_cells, donor, partition_cells, put_fault, topics
from start.faults import NotApplicable
from start.rows import ROWS, base_path, key_of, read_rows

HEADINGS = ("nodes", "stop", "cells", "rows", "not run", "not applicable")


def table() -> Iterator[tuple[object, ...]]:
    """Lines of the table: a line per node and stop, then a line per reason why cells aren't applicable."""
    yield HEADINGS
    for rows in sorted(ROWS.glob("*.jsonl")):
        release, _, role = rows.stem.partition("-")
        done = {key_of(row) for row in read_rows(rows)}
        for stop in STOPS:
            measured = [cell for cell in all_cells() if (*cell, stop) in done]
            missing = [cell for cell in all_cells() if (*cell, stop) not in done]
            reasons = Counter(reason for _, reason in not_applicable(missing, base_path(release, role, stop)))
            not_run = len(missing) - reasons.total()
            yield rows.stem, stop, len(measured) + len(missing), len(measured), not_run, reasons.total()
            yield from (("", "", "", "", "", f"{count} {reason}") for reason, count in sorted(reasons.items()))


def all_cells() -> Iterator[Cell]:
    """All cells, of partitions and of the disk."""
    return chain(partition_cells(), disk_cells())


def not_applicable(cells: list[Cell], archive: Path) -> Iterator[tuple[Cell, str]]:
    """The cells that a base disk can't have, and why: each fault is tried on a copy of its files."""
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
