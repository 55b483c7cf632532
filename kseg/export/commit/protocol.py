"""The interface of a table format for exports: five methods, and their arguments and results.

`docs/developers/architecture.md` has the states of a commit, and the effects of a crash in each of them.
"""

from collections import Counter
from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from typing import NamedTuple, Protocol

from kseg.cluster.copies import Copies
from kseg.cluster.taken import Taken
from kseg.errors import OpenError
from kseg.export.changes import ChangeCounts
from kseg.export.commit.check import TableContents
from kseg.export.commit.manifest import Key, Manifest
from kseg.export.commit.merge import Joined
from kseg.export.commit.runs import ExportRun, Marker
from kseg.export.destination import Destination
from kseg.export.plan import Splitting, WorkOrder
from kseg.export.report import Report, compare_reports, reconcile
from kseg.export.results import Result
from kseg.export.settings import FileOptions, ReadOptions


class TableName(NamedTuple):
    """The name of an Iceberg table, and its catalog's in pyiceberg's configuration; None for one at the destination.

    file_catalog: the catalog's name in the destination's SQLite file, which separates catalogs by names.
    """

    catalog: str | None = None
    name: str = "kafka.records"
    file_catalog: str = "kseg"


NO_TABLE = TableName()


class State(NamedTuple):
    """The state of a destination when a run is planned.

    previous: the valid manifest. If the run overwrites it, it has no results and the run's options. with_field_ids:
    returns the options with the table's ids of its columns; raises UsageError if the table can't have all columns.
    """

    previous: Manifest
    overwrites: bool
    with_field_ids: Callable[[ReadOptions], ReadOptions]


@dataclass(frozen=True, slots=True)
class ExportPlan:
    """A run's plan: orders for the best copies, results of earlier runs that stay, and the destination's state.

    read: how records are read, with the typed columns that were found; its `schema()` is the table's. splitting: the
    sizes of the orders, also of later ones. kept: results
    that stay; absent: results of partitions that were deleted or recreated since. refused: sources that can't be opened
    or listed; the others are exported. taken_up: the number of files of interrupted runs, whose results are among those
    kept. taken: the chosen copies, and the omitted parts.
    """

    orders: tuple[WorkOrder, ...]
    kept: tuple[Result, ...]
    absent: tuple[Result, ...]
    previous: Manifest
    copies: Copies
    read: ReadOptions
    splitting: Splitting
    overwrites: bool = False
    refused: tuple[OpenError, ...] = ()
    taken_up: int = 0
    taken: Taken | None = None

    @property
    def size(self) -> int:
        """Bytes to read."""
        return sum(order.size for order in self.orders)


class CommittedTable(Protocol):
    """The table after a commit, as its readers see it."""

    @property
    def location(self) -> str:
        """The path or URL that readers open."""

    def version(self) -> str | None:
        """Return the version of the table after the commit: Delta's version, Iceberg's snapshot id. None if unknown."""

    def contents(self, names: Collection[str]) -> TableContents | None:
        """Return the contents of the table, or None if others have committed since, and their commits hide them.

        names: the names under which the run wrote the files whose rows are wanted.
        """

    def row_counts(self) -> Counter[Key]:
        """Read all rows and columns, and return the number of rows per partition."""

    def merge_files(self, target_size: int) -> tuple[int, int] | None:
        """Join small files, and return the number of files before and after, or None if that precedes the commit."""


class Committed(NamedTuple):
    """The valid state after a commit. is_new: whether this run committed; if not, nothing has changed.

    changes: their effects on a table of database rows.
    """

    manifest: Manifest
    table: CommittedTable
    is_new: bool
    changes: ChangeCounts | None = None


class Overtaken(NamedTuple):
    """The result of a commit after another run's: nothing has changed, and this run can continue from there."""


class Commits(Protocol):
    """The commits of a destination. All methods raise KsegError for failures and for invalid contents."""

    place: Destination

    def read_state(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> State:
        """Return the state that a run continues from. Changes nothing. Raises UsageError if a run mustn't write."""

    def begin(self, plan: ExportPlan) -> AbstractContextManager[ExportRun | None]:
        """Mark a run that executes a plan as running, or None if another run has committed since the plan was made.

        First finishes an interrupted commit, and resumes the finished orders of dead runs. If the context ends with an
        exception, it removes the run's files, except valid files and those of resumable orders.
        """

    def commit(self, run: ExportRun, plan: ExportPlan, joined: Joined) -> Committed | Overtaken:
        """Commit results, all or nothing; without new results the valid state stays.

        Raises LostError, with nothing changed, if another run has committed and this one can't continue.
        """

    def settle(self, done: Committed, report: Report) -> None:
        """Finish a commit and all later ones, and describe the valid state."""

    def sweep(self, run: ExportRun, done: Committed) -> list[Marker]:
        """Remove the files of ended runs, and return the markers of runs left alone. Ends the run."""


def report_of(manifest: Manifest, own: Report) -> Report:
    """Return the report of a manifest that another run has meanwhile built on this one's."""
    partitions = compare_reports(reconcile(manifest.results), own.partitions)
    new = manifest.new_files
    return replace(own, partitions=partitions, new_files=len(new), newest_file=new[0] if new else None)


def is_unchanged(plan: ExportPlan, joined: Joined) -> bool:
    """Return True if these are the valid results, in any order and with the same files."""
    previous = plan.previous
    if plan.overwrites or joined.is_changed or joined.new or not previous.number:
        return False
    old = {id(result): result for result in previous.results}
    changed = [result for result in joined.kept if old.pop(id(result), None) is None]
    left = list(old.values())
    return len(changed) == len(left) and all(result in left for result in changed)
