"""Upserts of change events into a Delta table: kseg's merge and deltalake's own, of the same rows into the same table.

python -m bench.upsert [--rows N] [--repeat N]      needs the extra delta
"""

import argparse
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from kseg.export.cdc.merge_rows import Target, merge_changes
from kseg.export.changes import Changes
from kseg.export.columns.column_types import Scalar, to_json
from kseg.export.columns.unwrapped import OFFSET, OP, ORIGIN, Unwrapping
from kseg.export.commit.delta import DeltaLog
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.table_log import TableChange
from kseg.export.destination import open_destination
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.write.parquet import schema_of_files

COLUMNS = (("id", Scalar.LONG), ("name", Scalar.STRING), ("amount", Scalar.DOUBLE))
ROWS = Unwrapping(columns=tuple((name, to_json(kind)) for name, kind in COLUMNS), keys=("id",))
FILES = FileOptions(partition_by=(), table_format="delta")


class Cost(NamedTuple):
    """Seconds of a clock, and of the processors."""

    wall: float
    cpu: float


def changes_of(ids: np.ndarray, first_offset: int, op: str) -> Changes:
    """Return a change per id."""
    count = len(ids)
    offsets = np.arange(first_offset, first_offset + count)
    columns = {
        "id": pa.array(ids),
        "name": pa.array([f"name {number}" for number in ids % 99_991 + first_offset]),
        "amount": pa.array(ids % 1000 + 0.5),
    }
    own = [
        pa.array(np.zeros(count, np.int32)),
        pa.array(offsets),
        pa.array([f"lsn:{number:020}" for number in offsets]),
        pa.array(offsets + 1_700_000_000_000),
    ]
    origin = dict(zip((field.name for field in ORIGIN), own, strict=True))
    return Changes(pa.table({**columns, **origin, OP.name: pa.repeat(op, count)}), ROWS.columns, ("id",))


def merge_by_kseg(table: Path, changes: Changes) -> None:
    """Merge changes, and commit, as a run of an export does."""
    place = open_destination(str(table))
    log = DeltaLog(place, FILES)
    number = log.number() or 0
    read = ReadOptions(unwrap=ROWS)
    names = tuple(log.active_files()) if number else ()
    target = Target(place, names, ROWS, ROWS, schema_of_files(read, FILES), FILES, f"{number:08x}")
    merged = merge_changes(changes, target)
    manifest = Manifest(number + 1, read, FILES, (), target.run_id)
    log.commit(TableChange(number, manifest, (), removed=merged.removed, added=merged.added))


def merge_by_deltalake(table: Path, changes: Changes) -> None:
    """Merge the same rows, unless the table has a later change."""
    source = changes.rows.drop_columns([OP.name])
    merger = DeltaTable(str(table)).merge(source, "t.id = s.id", source_alias="s", target_alias="t")
    is_later = f"s.{OFFSET.name} > t.{OFFSET.name}"
    merger.when_matched_update_all(predicate=is_later).when_not_matched_insert_all().execute()


def measure(merge: Callable[[Path, Changes], None], table: Path, changes: Changes, work: Path) -> Cost:
    """Return the cost of a merge into a copy of the table."""
    copy = work / "copy"
    shutil.copytree(table, copy)
    wall, cpu = time.perf_counter(), time.process_time()
    merge(copy, changes)
    cost = Cost(time.perf_counter() - wall, time.process_time() - cpu)
    assert len(DeltaTable(str(copy)).to_pyarrow_table(columns=["id"])) == changes.rows.num_rows * 3 // 2
    shutil.rmtree(copy)
    return cost


def main() -> None:
    """Measure both in turns, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--repeat", type=int, default=5)
    given = parser.parse_args()
    chance = np.random.default_rng(1)
    ways = {"kseg": merge_by_kseg, "deltalake": merge_by_deltalake}
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    with TemporaryDirectory() as folder:
        table = Path(folder, "table")
        merge_by_kseg(table, changes_of(np.arange(given.rows), 0, "c"))
        half = given.rows // 2
        ids = np.concatenate([chance.choice(given.rows, half, replace=False), np.arange(given.rows, given.rows + half)])
        changes = changes_of(chance.permutation(ids), given.rows, "u")
        for _ in range(given.repeat):
            for name, merge in ways.items():
                costs[name].append(measure(merge, table, changes, Path(folder)))
    found = {name: Cost(*(median(each) for each in zip(*own, strict=True))) for name, own in costs.items()}
    for name, cost in found.items():
        print(f"{name:<10} {cost.wall:6.2f} s, {cost.cpu:6.2f} s of CPU time")
    ratio = Cost(*(one / other for one, other in zip(found["kseg"], found["deltalake"], strict=True)))
    print(f"ratio      {ratio.wall:6.2f}    {ratio.cpu:6.2f}")


if __name__ == "__main__":
    main()
