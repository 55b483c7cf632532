"""What a table format does for an export: five methods, and the values that go in and out of them.

`docs/developers/architecture.md` has the states of a commit, and what a crash in each of them leaves.
"""

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from kseg.cluster.copies import Copies
from kseg.cluster.taken import Taken
from kseg.errors import OpenError
from kseg.export.commit.check import TableContents
from kseg.export.commit.manifest import Key, Manifest
from kseg.export.commit.merge import Joined
from kseg.export.commit.runs import ExportRun, Marker
from kseg.export.destination import Destination
from kseg.export.plan import WorkOrder
from kseg.export.report import Report, compared, reconcile
from kseg.export.results import Result
from kseg.export.settings import FileOptions, ReadOptions


class TableName(NamedTuple):
    """A table of Iceberg's: the catalog by its name in pyiceberg's configuration, None for one at the destination."""

    catalog: str | None = None
    name: str = "kafka.records"


NO_TABLE = TableName()


class State(NamedTuple):
    """What a destination holds when a run is planned.

    previous: what counts, and no results where the run overwrites it: then it has the run's options. with_field_ids:
    gives the options the ids that the table has for its columns; raises UsageError if it can't have them all.
    """

    previous: Manifest
    overwrites: bool
    with_field_ids: Callable[[ReadOptions], ReadOptions]


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """What a run would do: the orders for the best copies; results of earlier runs that stay; what is there.

    read: how records are read, with the typed columns that were found: its `schema()` is the table's.
    kept: results of what is there; absent: of partitions that have gone, or were recreated since. refused: sources that
    can't be opened or listed; the rest is exported. taken_up: files of runs that were broken off; their results are
    among those kept. taken: which copies of the sources answer, and what is left out.
    """

    orders: tuple[WorkOrder, ...]
    kept: tuple[Result, ...]
    absent: tuple[Result, ...]
    previous: Manifest
    copies: Copies
    read: ReadOptions
    overwrites: bool = False
    refused: tuple[OpenError, ...] = ()
    taken_up: int = 0
    taken: Taken | None = None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(order.size for order in self.orders)


class CommittedTable(Protocol):
    """The table after a commit, as readers find it."""

    @property
    def location(self) -> str:
        """The path or URL by which it is read."""

    def contents(self, names: Collection[str]) -> TableContents | None:
        """What is there; None if others have committed since, and it can't be seen.

        names: under which the run wrote the files whose rows are wanted.
        """

    def row_counts(self) -> Counter[Key]:
        """Reads all rows of all columns; how many each partition has."""

    def merge_files(self, target_size: int) -> tuple[int, int] | None:
        """Joins small files; how many there were, and are. None where that is done before the commit."""


class Committed(NamedTuple):
    """What counts now. is_new: a commit of this run; else nothing has changed since the one before."""

    manifest: Manifest
    table: CommittedTable
    is_new: bool


class Overtaken(NamedTuple):
    """Another run has committed since the plan was made, and nothing has changed: this one can go on from there."""


class Commits(Protocol):
    """What counts in a destination, and how that changes. All raise KsegError for what fails or can't be believed."""

    place: Destination

    def read_state(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> State:
        """What a run goes on from. Changes nothing. Raises UsageError where a run mustn't write."""

    def begin(self, plan: ExportPlan) -> AbstractContextManager[ExportRun | None]:
        """Marks a run as under way that does a plan; None if another one has committed since that was made.

        What a broken commit has left undone is done first, and what dead runs have finished is taken up. If the context
        ends with an exception, what the run has written is removed, but for what counts or a later run may take up.
        """

    def commit(self, run: ExportRun, plan: ExportPlan, joined: Joined) -> Committed | Overtaken:
        """Makes results count, all or nothing; if nothing is new, what counts stays.

        Raises LostError, with nothing changed, if another run was there and this one can't go on.
        """

    def settle(self, done: Committed, report: Report) -> None:
        """Finishes a commit, and all that were built on it since, and describes what counts then."""

    def sweep(self, run: ExportRun, done: Committed) -> list[Marker]:
        """Removes what runs have left that are over; gives those whose files it leaves alone. Ends the run."""


def report_of(manifest: Manifest, own: Report) -> Report:
    """The report of a manifest that another run has built on this one's meanwhile."""
    partitions = compared(reconcile(manifest.results), own.partitions)
    return replace(own, partitions=partitions, new_files=manifest.new_files)


def is_unchanged(plan: ExportPlan, joined: Joined) -> bool:
    """Whether the results are those that count already, whatever their order, in the same files."""
    previous = plan.previous
    if plan.overwrites or joined.is_changed or joined.new or not previous.number:
        return False
    old = {id(result): result for result in previous.results}
    changed = [result for result in joined.kept if old.pop(id(result), None) is None]
    left = list(old.values())
    return len(changed) == len(left) and all(result in left for result in changed)
