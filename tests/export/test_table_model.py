"""Up to three exports into one table, interleaved step by step, killed between any two: no row is lost or duplicated.

The exporters, the libraries and the disk are real; only their waiting is a model: before each operation in the
destination or on the table's log, and after each commit.
"""

import random
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from kseg.export.commit.check import TableContents
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.protocol import NO_TABLE, Commits
from kseg.export.commit.table_commits import TableCommits
from kseg.export.commit.table_log import TableChange, TableLog
from kseg.export.destination import open_destination
from kseg.export.planning import Export
from kseg.export.settings import FileOptions, ReadOptions
from tests.export import exports
from tests.export.exports import table_log
from tests.export.stepped import Exporter, pause_runs
from tests.export.test_tables import FORMATS, log_of, rows
from tests.loops import TAKES_ALL, for_each

PARTITIONS = 3
SEEDS = {"delta": 10, "iceberg": 4} if TAKES_ALL else {"delta": 4, "iceberg": 2}
"""Numbers of random histories by format: the formats differ in the table's log, and pyiceberg's is slow."""


@dataclass
class TableStore:
    """A table on a disk, and its exporters."""

    out: Path
    shares_files: bool = False
    exporters: list[Exporter] = field(default_factory=list)

    def commits(self, exporter: Exporter) -> Commits:
        export = exporter.export
        place = SteppedPlace(self.out, exporter)
        log = SteppedLog(table_log(place, NO_TABLE, export.files), exporter)
        return TableCommits(place, log, exporter)


class SteppedPlace:
    """The destination with waiting operations: a kseg.export.destination.Destination."""

    renames = claims_safely = True

    def __init__(self, out: Path, exporter: Exporter) -> None:
        self._place, self._exporter = open_destination(str(out)), exporter
        self.url = self._place.url

    def __getattr__(self, name: str) -> Any:
        """Return operations without waiting: the checks before and after a commit, and reads of files."""
        return getattr(self._place, name)

    def _wait(self, what: str, name: str) -> None:
        """Wait, unless the library itself is working on its metadata in its own threads."""
        if not name.startswith("metadata/"):
            self._exporter.wait(what)

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        self._wait("open", name)
        with self._place.open(name) as file:
            yield file

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        self._wait("create", name)
        with self._place.create(name) as file:
            yield file
        self._wait("created", name)

    create_unsynced = create

    def read(self, name: str, most: int | None = None) -> bytes | None:
        return self._place.read(name, most)

    def claim(self, name: str, content: bytes) -> bool:
        self._exporter.wait("claim")
        return self._place.claim(name, content)

    def replace(self, name: str, content: bytes) -> None:
        self._exporter.wait("replace")
        self._place.replace(name, content)

    def rename(self, name: str, target: str) -> None:
        raise AssertionError("tables' files are written under the names they keep")

    def delete(self, name: str) -> None:
        self._wait("delete", name)
        self._place.delete(name)

    def names(self, folder: str = "") -> Iterator[str]:
        self._exporter.wait("names")
        return self._place.names(folder)


class SteppedLog:
    """The table log with waiting reads and commits: a kseg.export.commit.table_log.TableLog."""

    needs_conditions = True

    def __init__(self, log: TableLog, exporter: Exporter) -> None:
        self._log, self._exporter = log, exporter

    @property
    def location(self) -> str:
        return self._log.location

    def number(self) -> int | None:
        self._exporter.wait("number")
        return self._log.number()

    def progress(self) -> Manifest:
        self._exporter.wait("progress")
        return self._log.progress()

    def is_buried(self) -> bool:
        return self._log.is_buried()

    def commit(self, change: TableChange) -> None:
        self._exporter.wait("commit")
        self._log.commit(change)
        self._exporter.wait("committed")

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        self._exporter.wait("contents")
        return self._log.contents(manifest, names)

    def batches(self) -> Iterable[pa.RecordBatch]:
        return self._log.batches()

    def active_files(self) -> Iterable[str]:
        self._exporter.wait("active_files")
        return self._log.active_files()

    def has_commit_of(self, run_id: str) -> bool:
        self._exporter.wait("has_commit_of")
        return self._log.has_commit_of(run_id)

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        return self._log.with_field_ids(read)

    def merge(self, target_size: int) -> dict[str, Any]:
        self._exporter.wait("merge")
        merged = self._log.merge(target_size)
        self._exporter.wait("merged")
        return merged


class Table:
    """Partitions that grow and change, and runs that export them."""

    def __init__(self, folder: Path, table_format: str) -> None:
        self.table_format = table_format
        self.sources = [folder / f"orders-{number}" for number in range(PARTITIONS)]
        self.store = TableStore(folder / "out")
        self.ends = [0] * PARTITIONS
        self.values = [b"value"] * PARTITIONS
        for number in range(PARTITIONS):
            self.grow(number)

    def grow(self, number: int) -> None:
        """Add a segment."""
        exports.write_log(self.sources[number], self.ends[number], 10, value=self.values[number])
        self.ends[number] += 10

    def change(self, number: int) -> None:
        """Replace the records."""
        self.values[number] += b"!"
        shutil.rmtree(self.sources[number])
        end, self.ends[number] = self.ends[number], 0
        while self.ends[number] < end:
            self.grow(number)

    def come(self, numbers: Iterable[int] | None = None, **options: bool) -> Exporter:
        """Start a run that exports some partitions, or all."""
        sources = tuple(str(self.sources[number]) for number in (range(PARTITIONS) if numbers is None else numbers))
        files = FileOptions(table_format=self.table_format)
        return Exporter(self.store, Export(sources, str(self.store.out), files=files, **options))

    def check(self, *, is_last: bool = False) -> None:
        """Assert that no offset is there twice and, after the last run, that exactly all are there."""
        found = rows(self.store.out, self.table_format)
        keys = [row[:3] for row in found]
        assert len(set(keys)) == len(keys)
        if is_last:
            assert found == [
                ("orders", number, offset, self.values[number])
                for number in range(PARTITIONS)
                for offset in range(self.ends[number])
            ]

    def end(self) -> None:
        """Let all runs end, and another one; then check everything, and that killed runs left nothing."""
        while any(exporter.outcome is None for exporter in self.store.exporters):
            for exporter in self.store.exporters:
                exporter.go(1)
        for exporter in self.store.exporters:
            assert exporter.outcome in ("done", "crashed", "failed: a fault"), exporter.outcome
        last = self.come()
        assert last.finish() == "done"
        self.check(is_last=True)
        assert not list((self.store.out / "_kseg").glob("runs/*"))


@for_each(
    "table_format, seed",
    [(table_format, seed) for table_format, seeds in SEEDS.items() for seed in range(seeds)],
    ids=lambda case: f"{case[0]}, seed {case[1]}",
    shards=2,
)
def test_runs_that_meet_or_are_killed_anywhere_neither_lose_nor_double_rows(
    table_format: str, seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    table = Table(tmp_path, table_format)
    exporters: list[Exporter] = []
    for _ in range(40):
        exporters = [exporter for exporter in exporters if exporter.outcome is None]
        step = chance.random()
        if len(exporters) < 3 and step < 0.3:
            some = None if chance.random() < 0.6 else chance.sample(range(PARTITIONS), 2)
            exporters.append(table.come(some))
        elif step < 0.35:
            table.grow(chance.randrange(PARTITIONS))
        elif step < 0.38 and not exporters:
            table.change(chance.randrange(PARTITIONS))
        elif exporters and step < 0.45:
            chance.choice(exporters).crash()
        elif exporters and step < 0.5:
            chance.choice(exporters).finish()
            table.check()
        elif exporters:
            chance.choice(exporters).go(chance.randint(1, 12))
    table.end()


def paused_runs(
    folder: Path, table_format: str, change: Callable[[Table], None], first: int = 0, **options: bool
) -> Iterator[tuple[Table, Exporter]]:
    """Yield runs over a table with one partition, after some change, each paused before another step.

    Into a Delta table, a run pauses before each step; pyiceberg is slow, and its steps are the same, so an even sample
    of them suffices. first: the start of the sample in `make test`.
    """
    folders = (folder / str(number) for number in count())

    def begin() -> tuple[Table, Exporter]:
        table = Table(next(folders), table_format)
        table.come([0]).finish()
        change(table)
        return table, table.come(**options)

    stride = 1 if table_format == "delta" else 4 if TAKES_ALL else 2
    return pause_runs(begin, stride, at_least=15, first=first)


@FORMATS
def test_a_run_may_be_killed_before_each_of_its_steps(tmp_path: Path, table_format: str) -> None:
    for table, killed in paused_runs(tmp_path, table_format, lambda table: table.change(0)):
        killed.crash()
        table.end()
        active = set(log_of(table.store.out, table_format).active_files())
        there = {path.relative_to(table.store.out).as_posix() for path in table.store.out.glob("topic=*/*.parquet")}
        assert len(there) <= len(active) + 1, "the file of the change may be one of an older version of the table"


@FORMATS
@pytest.mark.parametrize("overwrite", [False, True], ids=["adding", "overwriting"])
def test_a_run_may_pause_anywhere_while_another_commits(overwrite: bool, tmp_path: Path, table_format: str) -> None:
    runs = paused_runs(
        tmp_path, table_format, lambda table: table.grow(0), first=2 + 3 * overwrite, overwrite=overwrite
    )
    for table, pausing in runs:
        assert table.come([0, 1]).finish() == "done"
        table.check()
        assert pausing.finish() == "done"
        table.check(is_last=not overwrite)
        table.end()


@FORMATS
@pytest.mark.parametrize("merges", [False, True], ids=["adding", "merging"])
def test_a_run_may_pause_anywhere_in_a_merge_while_another_commits(
    merges: bool, tmp_path: Path, table_format: str
) -> None:
    """Each step into a Delta table; into an Iceberg table, half while the other adds, and half while it merges.

    `make test` uses each step into a Delta table in one of the two ways, and fewer into an Iceberg table.
    """
    is_delta = table_format == "delta"
    for number in range(6) if is_delta and TAKES_ALL else range(merges, 6, 2 if is_delta or TAKES_ALL else 3):
        table = Table(tmp_path / str(number), table_format)
        for _ in range(2):
            table.come().finish()
            table.grow(0)
        merging = table.come(merge_files=True)
        merging.go_to("merge", 1)
        merging.go(number)
        table.grow(1)
        assert table.come(merge_files=merges).finish() == "done"
        assert merging.finish() == "done"
        table.check(is_last=True)
        table.end()
