"""A destination in memory whose every operation waits until it may be done: exports, interleaved step by step."""

import io
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import pyarrow.parquet as pq

from kseg.errors import KsegError, OpenError
from kseg.export.commit.order import Job, execute_order
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
"""One in so many steps at which a run may pause is one at which it does in `make test`."""
World = TypeVar("World")


class CrashError(BaseException):
    """The process has ended: nothing that it would do next is done."""


def paused(
    begin: Callable[[], tuple[World, "Exporter"]], stride: int, at_least: int, first: int
) -> Iterator[tuple[World, "Exporter"]]:
    """A new run again and again, that has paused before another one of its steps, and at last one that has ended.

    It pauses before one in `stride` of its steps, which are more than `at_least`, and before each of the last ones. Of
    those, `make test` takes one in SAMPLE; `first` is the number of the first, and where others begin with other ones,
    they pause at other steps.
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
    """Where exporters export to."""

    exporters: list["Exporter"]

    def commits(self, exporter: "Exporter") -> Commits:
        """What counts there, as an exporter sees it: each operation waits until it may be done."""


@dataclass
class Store:
    """Files in memory, and what was done to them.

    exporters: all that ever came; owners: of ids of runs; claims: what was exported by whoever took a number, in order;
    faults: deletions that must not be.
    """

    renames: bool
    claims_safely: bool
    files: dict[str, bytes] = field(default_factory=dict)
    exporters: list["Exporter"] = field(default_factory=list)
    owners: dict[str, "Exporter"] = field(default_factory=dict)
    claims: list["Exporter"] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    def copy(self) -> "Store":
        """A store with the same past, for exporters that have all ended."""
        return Store(
            self.renames, self.claims_safely, dict(self.files), [*self.exporters], dict(self.owners), [*self.claims]
        )

    def rows(self, file: ExportedFile) -> list[tuple[int, bytes]]:
        """Offsets and values of a result's part of a Parquet file."""
        table = pq.ParquetFile(io.BytesIO(self.files[file.path or ""])).read().slice(file.first_row, file.rows)
        return list(zip(table.column("offset").to_pylist(), table.column("value").to_pylist(), strict=True))

    def row_count(self, path: str) -> int:
        """How many rows a Parquet file has."""
        return int(pq.ParquetFile(io.BytesIO(self.files[path])).metadata.num_rows)

    def commits(self, exporter: "Exporter") -> Commits:
        """What counts in the store, as an exporter sees it."""
        return ParquetCommits(SteppedDestination(self, exporter), exporter)

    def judge_deletion(self, name: str, exporter: "Exporter") -> None:
        """Nobody removes what another run wrote that is known to be at work, unless it was committed and replaced."""
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
        """Nothing is read from there."""

    def require_plain(self, folder: str = "") -> None:
        """There are no links."""

    def require_alone(self, name: str) -> None:
        """There are no hard links either."""

    def require_in_place(self) -> None:
        """Nobody replaces it."""

    def require_unchanged(self) -> None:
        """Nor anything in it."""

    @contextmanager
    def create(self, name: str) -> Iterator[Any]:
        self._exporter.wait("create")
        file = io.BytesIO()
        yield file
        self._exporter.wait("create")
        assert name not in self._store.files
        self._store.files[name] = file.getvalue()

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
        """Listed in two steps, as no listing is done at once."""
        self._exporter.wait("names")
        own = [name for name in self._store.files if name.startswith("_kseg/")]
        self._exporter.wait("names")
        others = [name for name in self._store.files if not name.startswith("_kseg/")]
        return (name for name in sorted(own + others) if not folder or name.startswith(f"{folder}/"))


class Exporter(Processes):
    """A run in a thread, as if it were a process: it does an operation when it is let, and only one of all is at work.

    outcome: None while it is under way, then "done", "crashed" or why it failed. next_step: the kind of operation that
    it would do next. is_known: whether others can tell if it is over. steps: the operations that it has done.
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
        """Lets it do so many operations, or fewer if it ends."""
        for _ in range(count):
            if self.outcome is None:
                self._may_go.release()
                self._has_stopped.acquire()
                self.steps += 1

    def go_to(self, kind: str, count: int) -> None:
        """Lets it go on until it would do an operation of that kind for so many times, or ends."""
        for _ in range(count):
            self.go(1)
            while self.outcome is None and self.next_step != kind:
                self.go(1)

    def finish(self) -> str:
        """Lets it go on to its end; gives the outcome."""
        while self.outcome is None:
            self.go(1)
        return self.outcome

    def crash(self) -> None:
        """Ends it where it stands."""
        self._is_crashed = True
        self.finish()

    def fail(self) -> None:
        """Lets its next operation fail, as on a full disk."""
        self._has_fault = True
        self.go(1)

    def wait(self, kind: str) -> None:
        """Waits until the next operation may be done, which is of that kind; not in a library's own threads."""
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
            return (execute_order(order, job, place) for order in orders)

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
