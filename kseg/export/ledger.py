"""The truth about a destination: what of an export counts, and what went into it. Of plain Parquet files the manifest.

A run asks it what is there, says what it has added, and learns if another one was there in between.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol

from kseg.errors import KsegError, OpenError
from kseg.export import commit as commits
from kseg.export import manifest as manifests
from kseg.export.copies import Copies
from kseg.export.destination import Destination
from kseg.export.finished import FinishedOrders, files_of_finished
from kseg.export.manifest import Manifest
from kseg.export.merge import Joined, join_files
from kseg.export.order import Job
from kseg.export.result import Result
from kseg.export.runs import ExportRun, Marker
from kseg.export.settings import FileOptions, ReadOptions
from kseg.system.known_processes import Processes


class OvertakenError(KsegError):
    """Another run has committed since the plan was made; what it has left to do can be committed after it."""

    def __init__(self, url: str) -> None:
        super().__init__("other exports come here faster than this one can commit; run it again", url)


class Ledger(Protocol):
    """What counts in a destination. All raise KsegError where something can't be done, or can't be believed."""

    place: Destination
    keeps_columns: bool
    """Whether the columns of what is there stay when all its rows go."""

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """The same with the ids that the table has for its columns. Raises UsageError if it can't have them all."""

    @property
    def table(self) -> str:
        """The path or URL by which a table is read; as far as it is known."""

    def previous(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
        """What a run goes on from; with no results where it overwrites. Raises UsageError where it mustn't write."""

    def kept(self, previous: Manifest, copies: Copies) -> list[Result]:
        """The results that needn't be read again."""

    def begin(self, base: int) -> ExportRun | None:
        """Marks a run as under way that goes on from a number; None if that isn't the last one any more."""

    def take_up(self, previous: Manifest) -> None:
        """Does what a broken commit has left undone."""

    def needs_renewal(self, previous: Manifest) -> bool:
        """Whether it is to be committed again, though nothing is new."""

    def joined(self, kept: list[Result], new: list[Result], previous: Manifest, job: Job, *, merges: bool) -> Joined:
        """The results in the files that are to be committed: of small ones, if asked, and where it is done before."""

    def commit(self, run: ExportRun, previous: Manifest, kept: list[Result], new: list[Result]) -> Manifest:
        """Makes the results count. Raises LostError or OvertakenError, with nothing changed, if another was there."""

    def drop(self, results: Iterable[Result]) -> None:
        """Removes the files of results that don't count."""

    def settle(self, manifest: Manifest, publish: Callable[[Manifest], object]) -> None:
        """Finishes a commit, and all that were built on it since; publish: writes the files that describe one."""

    def merge_files(self, target_size: int) -> tuple[int, int] | None:
        """Joins small files after the commit; how many there were, and are. None where it is done before."""

    def sweep(self, manifest: Manifest, run: ExportRun) -> list[Marker]:
        """Removes what runs have left that are over; gives those whose files it leaves alone."""

    def finished_orders(self, read: ReadOptions, files: FileOptions) -> FinishedOrders | None:
        """What dead runs have finished that a later run may take up; None if that isn't kept."""

    def give_up(self, run: ExportRun) -> None:
        """Removes what a run has written."""

    def leave(self, run: ExportRun) -> None:
        """Ends a run that failed: a later one may take up what it has finished, the rest is removed."""


class ManifestLedger:
    """The manifest of plain Parquet files; see kseg.export.commit."""

    keeps_columns = False

    def __init__(self, place: Destination, processes: Processes) -> None:
        self.place = place
        self.table = place.url
        self._processes = processes

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """As it is: columns have names."""
        return read

    def previous(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
        """The manifest that counts."""
        return commits.previous_manifest(self.place, read, files, overwrite=overwrite)

    def kept(self, previous: Manifest, copies: Copies) -> list[Result]:
        """Those whose sources haven't changed, and whose files are there."""
        return manifests.still_valid(previous, copies, self.place)

    def begin(self, base: int) -> ExportRun | None:
        """Leaves a marker."""
        return commits.begin(base, self.place, self._processes)

    def take_up(self, previous: Manifest) -> None:
        """Moves files to their places that an earlier run has claimed."""
        if previous.number:
            current = manifests.read_manifest(self.place)
            if current is not None:
                commits.finish(current, self.place)

    def needs_renewal(self, previous: Manifest) -> bool:
        """Never: a manifest stays."""
        return False

    def joined(self, kept: list[Result], new: list[Result], previous: Manifest, job: Job, *, merges: bool) -> Joined:
        """What shares a file with a result that has gone is rewritten too. Raises LostError if files go away."""
        try:
            return join_files(kept, new, previous.results, job, self.place, merges=merges)
        except OpenError as error:
            if manifests.latest_number(self.place) != previous.number:
                raise commits.LostError(self.place.url) from error
            raise

    def commit(self, run: ExportRun, previous: Manifest, kept: list[Result], new: list[Result]) -> Manifest:
        """Claims the next number."""
        return commits.commit(run, previous, [*kept, *new], self.place)

    def drop(self, results: Iterable[Result]) -> None:
        """Removes the files of results."""
        drop_files(results, self.place)

    def settle(self, manifest: Manifest, publish: Callable[[Manifest], object]) -> None:
        """Moves files to their places, and looks that they are there."""
        commits.settle(manifest, self.place, publish)

    def merge_files(self, target_size: int) -> tuple[int, int] | None:
        """Nothing: files are joined by the commit."""
        return None

    def sweep(self, manifest: Manifest, run: ExportRun) -> list[Marker]:
        """Removes attempts, old manifests and markers."""
        return commits.sweep(manifest.number, self.place, self._processes, run)

    def finished_orders(self, read: ReadOptions, files: FileOptions) -> FinishedOrders:
        """Those whose results are there."""
        return FinishedOrders(self.place, self._processes, read, files)

    def give_up(self, run: ExportRun) -> None:
        """Removes the run's attempts."""
        commits.give_up(run, self.place)

    def leave(self, run: ExportRun) -> None:
        """Removes the run's marker, and attempts without a result."""
        with suppress(KsegError, OSError):
            commits.give_up(run, self.place, files_of_finished(run.id, self.place))


def drop_files(results: Iterable[Result], place: Destination) -> None:
    """Removes the files of results that don't count."""
    for result in results:
        for file in result.files:
            place.delete(file.attempt)
