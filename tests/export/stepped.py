"""A destination in memory whose operations wait for permission, so that exports can be interleaved step by step."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError
from kseg.export.commit.order import Job, execute_bundle
from kseg.export.commit.parquet import ParquetCommits
from kseg.export.commit.protocol import Commits
from kseg.export.commit.runs import RUNS
from kseg.export.plan import WorkOrder
from kseg.export.planning import Export
from kseg.export.results import ExportedFile, Result
from kseg.export.run import export_into
from kseg.export.write.parquet import ATTEMPT
from kseg.system.new_directory import Processes
from tests.loops import TAKES_ALL

SAMPLE = 3
"""In `make test`, a run pauses at one in this many of the possible steps."""
World = TypeVar("World")


class CrashError(BaseException):
    """The error of an ended process, whose later operations aren't done."""


def pause_runs(
    begin: Callable[[], tuple[World, "Exporter"]], stride: int, at_least: int, first: int
) -> Iterator[tuple[World, "Exporter"]]:
    """Yield new runs, each paused before a later one of its steps, and finally one that has ended.

    Pauses come before one in `stride` steps, of which there are more than `at_least`, and before each of the last ones.
    `make test` takes one in SAMPLE of them; `first` is the number of the first, so that other starts pause at other
    steps.
    """
    step = stride if TAKES_ALL else stride * SAMPLE
    count = 0 if TAKES_ALL else first % step
    while True:
        world, exporter = begin()
        exporter.go(count)
        has_ended = exporter.outcome is not None
        assert exporter.outcome in (None, "done"), exporter.outcome
        if has_ended and step > 1 and TAKES_ALL:
            count, step = count - step + 1, 1
            continue
        yield world, exporter
        if has_ended:
            break
        count += step
    assert exporter.steps > at_least


class ExporterStore(Protocol):
    """A store of exporters."""

    exporters: list["Exporter"]
    shares_files: bool

    def commits(self, exporter: "Exporter") -> Commits:
        """Return the commits as an exporter sees them: each operation waits for permission."""


@dataclass
class Store:
    """Files in memory, and their history.

    shares_files: whether all orders of a run share files. exporters: all so far; owners: by ids of runs; claims: the
    exported content of each claim of a number, in order; faults: forbidden deletions.
    """

    renames: bool
    claims_safely: bool
    shares_files: bool = False
    files: dict[str, bytes] = field(default_factory=dict)
    exporters: list["Exporter"] = field(default_factory=list)
    owners: dict[str, "Exporter"] = field(default_factory=dict)
    claims: list["Exporter"] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def copy(self) -> "Store":
        """Return a store with the same past, after all exporters have ended."""
        return replace(
            self,
            files=dict(self.files),
            exporters=[*self.exporters],
            owners=dict(self.owners),
            claims=[*self.claims],
            faults=[],
        )

    def rows(self, file: ExportedFile) -> list[tuple[int, bytes]]:
        """Return offsets and values of a result's part of a Parquet file."""
        table = pq.ParquetFile(io.BytesIO(self.files[file.path or ""])).read().slice(file.first_row, file.rows)
        return list(zip(table.column("offset").to_pylist(), table.column("value").to_pylist(), strict=True))

    def row_count(self, path: str) -> int:
        return int(pq.ParquetFile(io.BytesIO(self.files[path])).metadata.num_rows)

    def commits(self, exporter: "Exporter") -> Commits:
        """Return the commits in the store, as an exporter sees them."""
        return ParquetCommits(SteppedDestination(self, exporter), exporter)

    def judge_deletion(self, name: str, exporter: "Exporter") -> None:
        """Record a fault for a deletion of a working run's file, unless it was committed and replaced."""
        match = ATTEMPT.fullmatch(name)
        owner = self.owners.get(match[1] if match else _run_id(name))
        if owner is None or owner is exporter or not owner.is_known or owner.outcome is not None:
            return
        if match is None or owner not in self.claims:
            self.faults.append(f"{name} was removed, whose run was under way")


def _run_id(name: str) -> str:
    return name.removeprefix(f"{RUNS}/").removesuffix(".json")


class SteppedDestination:
    """The store as one exporter sees it: a kseg.export.destination.Destination."""

    url = "memory"
    identity = None

    def __init__(self, store: Store, exporter: "Exporter") -> None:
        self.renames, self.claims_safely = store.renames, store.claims_safely
        self._store, self._exporter = store, exporter

    def keep_outside(self, inputs: Iterable[str | None]) -> None:
        """Do nothing: no input is in the store."""

    def require_plain(self, folder: str = "") -> None:
        """Do nothing: there are no links."""

    def require_alone(self, name: str) -> None:
        """Do nothing: there are no hard links."""

    def require_in_place(self) -> None:
        """Do nothing: the store can't be replaced."""

    def require_unchanged(self) -> None:
        """Do nothing: its folders can't be replaced."""

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        self._exporter.wait("create")
        file = io.BytesIO()
        yield file
        self._exporter.wait("create")
        assert name not in self._store.files
        self._store.files[name] = file.getvalue()

    create_unsynced = create

    def sync(self, names: Iterable[str]) -> None:
        """Do nothing: the store is in memory."""

    def read(self, name: str, most: int | None = None) -> bytes | None:
        self._exporter.wait("read")
        content = self._store.files.get(name)
        return None if content is None else content[:most]

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        self._exporter.wait("open")
        if name not in self._store.files:
            raise OpenError("has gone", name)
        yield io.BytesIO(self._store.files[name])

    def size(self, name: str) -> int | None:
        self._exporter.wait("read")
        content = self._store.files.get(name)
        return None if content is None else len(content)

    def claim(self, name: str, content: bytes) -> bool:
        self._exporter.wait("claim")
        if name in self._store.files:
            return False
        if not self.claims_safely:
            self._exporter.wait("claim")
        self._store.files[name] = content
        if name.startswith(f"{RUNS}/"):
            self._store.owners[_run_id(name)] = self._exporter
        else:
            self._store.claims.append(self._exporter)
        return True

    def replace(self, name: str, content: bytes) -> None:
        self._exporter.wait("replace")
        self._store.files[name] = content

    def rename(self, name: str, target: str) -> None:
        self._exporter.wait("rename")
        content = self._store.files.pop(name, None)
        if content is not None:
            self._store.files[target] = content

    def delete(self, name: str) -> None:
        self._exporter.wait("delete")
        if self._store.files.pop(name, None) is not None:
            self._store.judge_deletion(name, self._exporter)

    def names(self, folder: str = "") -> Iterator[str]:
        """Yield the names in two steps, since no listing is atomic."""
        self._exporter.wait("names")
        own = [name for name in self._store.files if name.startswith("_kseg/")]
        self._exporter.wait("names")
        others = [name for name in self._store.files if not name.startswith("_kseg/")]
        return (name for name in sorted(own + others) if not folder or name.startswith(f"{folder}/"))


class Exporter(Processes):
    """A run in a thread that acts as a process: it does one permitted operation at a time, and only one run works.

    outcome: None while it runs, then "done", "crashed" or the error. next_step: the kind of its next operation.
    is_known: whether others can tell if it has ended. steps: its operations so far.
    """

    def __init__(self, store: ExporterStore, export: Export, *, is_known: bool = True) -> None:
        self.export, self.is_known = export, is_known
        self.outcome: str | None = None
        self.next_step = ""
        self.steps = 0
        self._store, self._is_crashed, self._has_fault = store, False, False
        self._number = len(store.exporters) + 1
        self._may_go, self._has_stopped = threading.Lock(), threading.Lock()
        self._may_go.acquire()
        self._has_stopped.acquire()
        store.exporters.append(self)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._has_stopped.acquire()

    def go(self, count: int) -> None:
        """Permit a number of operations, or fewer if it ends."""
        for _ in range(count):
            if self.outcome is None:
                self._may_go.release()
                self._has_stopped.acquire()
                self.steps += 1

    def go_to(self, kind: str, count: int) -> None:
        """Continue until `count` operations of a kind are next, or the run ends."""
        for _ in range(count):
            self.go(1)
            while self.outcome is None and self.next_step != kind:
                self.go(1)

    def finish(self) -> str:
        """Continue to the end, and return the outcome."""
        while self.outcome is None:
            self.go(1)
        return self.outcome

    def crash(self) -> None:
        """End the run at its current step."""
        self._is_crashed = True
        self.finish()

    def fail(self) -> None:
        """Make its next operation fail, as on a full disk."""
        self._has_fault = True
        self.go(1)

    def wait(self, kind: str) -> None:
        """Wait for permission of an operation of this kind, except in a library's own threads."""
        if threading.current_thread() is not self._thread:
            return
        self.next_step = kind
        if not self._is_crashed:
            self._has_stopped.release()
            self._may_go.acquire()
        if self._is_crashed:
            raise CrashError
        if self._has_fault:
            self._has_fault = False
            raise KsegError("a fault")

    def own(self) -> dict[str, Any]:
        return {"host": "here", "boot": None, "namespace": None, "pid": self._number, "started": None}

    def is_over(self, process: Mapping[str, Any]) -> bool | None:
        other = self._store.exporters[process["pid"] - 1]
        return other.outcome is not None if other.is_known else None

    def _run(self) -> None:
        commits = self._store.commits(self)
        place = commits.place

        def execute(orders: Sequence[WorkOrder], job: Job) -> Iterator[Result]:
            bundles = [tuple(orders)] if self._store.shares_files and orders else [(order,) for order in orders]
            return (result for bundle in bundles for result in execute_bundle(bundle, job, place))

        outcome = "broken"
        try:
            self.wait("begin")
            export_into(commits, self.export, execute)
            outcome = "done"
        except CrashError:
            outcome = "crashed"
        except KsegError as error:
            outcome = f"failed: {error.message}"
        finally:
            self.outcome = outcome
            self._has_stopped.release()
