"""Commit logs: the state of a destination, from a manifest or from a table's log."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from typing import Protocol

from kseg.cluster.copies import Copies
from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.commit import commit as commits
from kseg.export.commit import manifest as manifests
from kseg.export.commit.check import TableContents, TableDiffersError, count_rows, have_columns, read_footers
from kseg.export.commit.commit import (
    JOBS,
    ExportRun,
    FinishedOrders,
    Marker,
    files_of_finished,
    mark,
    marker_name,
    new_run,
    read_markers,
)
from kseg.export.commit.manifest import ATTEMPT, FOLDER, Key, Manifest
from kseg.export.commit.merge import Joined, condensed, join_files, without_gone
from kseg.export.commit.order import Job
from kseg.export.commit.table_log import RowRange, TableChange, TableLog
from kseg.export.destination import Destination
from kseg.export.results import Result, intact, missing, row_counts
from kseg.export.settings import FileOptions, OffsetRange, ReadOptions
from kseg.export.write.parquet import ExportedFiles, schema_of_files
from kseg.system.new_directory import Processes


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

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """What is there after the commit of a manifest; None if others have committed since, and it can't be seen.

        names: under which the run wrote the files whose rows are wanted.
        """

    def row_counts(self, manifest: Manifest) -> Counter[Key]:
        """Reads all rows of all columns; how many each partition has."""

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
    """The manifest of plain Parquet files; see kseg.export.commit.commit."""

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

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """By the footers of the files, at their places."""
        if manifests.latest_number(self.place) != manifest.number:
            return None
        paths = manifest.names()
        own = {name: paths[name] for name in names}
        try:
            footers = read_footers(self.place, own.values())
        except (TableDiffersError, OpenError):
            if manifests.latest_number(self.place) != manifest.number:  # another run has replaced them
                return None
            raise
        schema = schema_of_files(manifest.read, manifest.files)
        has_columns = have_columns(footers.values(), schema)
        total = sum(row_counts(manifest.results).values())
        return TableContents(has_columns, {name: footers[path].num_rows for name, path in own.items()}, total)

    def row_counts(self, manifest: Manifest) -> Counter[Key]:
        """Of the files that the manifest names."""
        counts: Counter[Key] = Counter()
        with ExportedFiles(self.place, schema_of_files(manifest.read, manifest.files)) as files:
            for result in manifest.results:
                for part in result.files:
                    counts[result.topic, result.partition] += sum(batch.num_rows for batch in files.rows(part))
        return counts

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


MOST_MERGES = 10
"""How often small files are read, to be joined, while others commit."""


class TableLedger:
    """A table whose log says what counts; `overwrite`: the run's commit replaces all that is there."""

    keeps_columns = True

    def __init__(self, place: Destination, log: TableLog, processes: Processes, *, overwrite: bool) -> None:
        self.place = place
        self._log, self._processes, self._overwrite = log, processes, overwrite

    @property
    def table(self) -> str:
        """Where readers find the table."""
        return self._log.location

    def with_field_ids(self, read: ReadOptions) -> ReadOptions:
        """As the table's format has it."""
        return self._log.with_field_ids(read)

    def previous(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
        """What the log says of kseg's last commit.

        Raises UsageError if the destination holds something else, or an export with other options.
        """
        number = self._log.number()
        if not number:
            if number is None:
                self._require_no_other_files(files.format.own_names)
            return Manifest(0, read, files)
        if overwrite:
            return Manifest(number, read, files)
        found = self._log.progress()
        if (found.read, found.files) != (read, files):
            raise UsageError("was exported with other options: choose another place, or --overwrite", self.place.url)
        return found

    def _require_no_other_files(self, own_names: tuple[str, ...]) -> None:
        """Files of runs that never committed don't matter."""
        if manifests.latest_number(self.place):
            raise UsageError("is an export of plain Parquet files: choose another place for a table", self.place.url)
        for name in self.place.names():
            if not name.startswith((f"{FOLDER}/", *own_names)) and ATTEMPT.fullmatch(name) is None:
                raise UsageError("is not empty, and no export: choose another place", self.place.url)

    def kept(self, previous: Manifest, copies: Copies) -> list[Result]:
        """Those whose sources haven't changed. Which files have their rows is the table's affair."""
        return without_gone(manifests.unchanged(previous.results, previous.read, copies), copies)

    def begin(self, base: int) -> ExportRun:
        """Leaves a marker. Others may commit meanwhile: that shows when this run does."""
        while True:
            run = new_run(base)
            if mark(run, self.place, self._processes):
                return run

    def take_up(self, previous: Manifest) -> None:
        """Nothing: a commit is done or it isn't."""

    def needs_renewal(self, previous: Manifest) -> bool:
        """Whether others' commits may bury kseg's."""
        return previous.number > 0 and self._log.is_buried()

    def joined(self, kept: list[Result], new: list[Result], previous: Manifest, job: Job, *, merges: bool) -> Joined:
        """The results as they are."""
        return Joined(kept, new)

    def commit(self, run: ExportRun, previous: Manifest, kept: list[Result], new: list[Result]) -> Manifest:
        """Adds the files and takes away the rows of results that aren't kept, in one commit with the accounts.

        Raises OvertakenError, and nothing has changed, if another run has committed since `previous` was read.
        """
        telling = tuple(_named(result) for result in new if result.says_something)
        results = condensed(result for result in [*kept, *telling] if result.says_something)
        manifest = Manifest(previous.number + 1, previous.read, previous.files, tuple(results), run.id)
        gone = () if self._overwrite else tuple(_rows_that_go(previous.results, kept, self.place.url))
        replaces_all = self._overwrite and previous.number > 0
        self._log.commit(TableChange(previous.number, manifest, telling, gone, replaces_all))
        return manifest

    def drop(self, results: Iterable[Result]) -> None:
        """Removes the files of results that don't count."""
        drop_files(results, self.place)

    def contents(self, manifest: Manifest, names: Collection[str]) -> TableContents | None:
        """As the format's library opens the table."""
        try:
            return self._log.contents(manifest, names)
        except (TableDiffersError, OpenError):
            if self._log.number() != manifest.number:  # another run has replaced files
                return None
            raise

    def row_counts(self, manifest: Manifest) -> Counter[Key]:
        """Of the table as it is now, by the format's library."""
        return sum(map(count_rows, self._log.batches()), Counter())

    def settle(self, manifest: Manifest, publish: Callable[[Manifest], object]) -> None:
        """Describes what counts, until nobody has committed meanwhile."""
        publish(manifest)
        while (self._log.number() or 0) > manifest.number:
            manifest = self._log.progress()
            publish(manifest)

    def merge_files(self, target_size: int) -> tuple[int, int] | None:
        """By the library of the format, in a commit of its own; where others commit all the time, nothing is joined."""
        before = len(list(self._log.active_files()))
        for _ in range(MOST_MERGES):
            with suppress(OvertakenError):
                self._log.merge(target_size)
                break
        return before, len(list(self._log.active_files()))

    def sweep(self, manifest: Manifest, run: ExportRun) -> list[Marker]:
        """Removes the files of runs that ended without a commit, and their markers; then this run's.

        What nobody can tell about is left: removing files that nothing names is the upkeep of the table's format.
        """
        markers = [marker for marker in read_markers(self.place, self._processes) if marker.run_id != run.id]
        for marker in markers:
            if marker.is_over:
                self._remove_files_of(marker.run_id)
        self._remove_jobs_of(run.id)
        self.place.delete(marker_name(run.id))
        return [marker for marker in markers if not marker.is_over]

    def finished_orders(self, read: ReadOptions, files: FileOptions) -> None:
        """Nothing: a table's commit adds the files of its own run."""

    def leave(self, run: ExportRun) -> None:
        """Removes what a run wrote that failed."""
        self.give_up(run)

    def give_up(self, run: ExportRun) -> None:
        """Removes what a run wrote that failed, unless it has committed after all."""
        with suppress(KsegError, OSError):
            self._remove_files_of(run.id)

    def _remove_files_of(self, run_id: str) -> None:
        """All but those that count. Of a run that has committed, older versions of the table may have the others."""
        if not self._log.has_commit_of(run_id):
            active = set(self._log.active_files())
            for name in list(self.place.names()):
                match = ATTEMPT.fullmatch(name)
                if match is not None and match[1] == run_id and name not in active:
                    self.place.delete(name)
        self._remove_jobs_of(run_id)
        self.place.delete(marker_name(run_id))

    def _remove_jobs_of(self, run_id: str) -> None:
        for name in list(self.place.names(f"{JOBS}/{run_id}")):
            self.place.delete(name)


def _named(result: Result) -> Result:
    """The result with its files under the names they keep."""
    return replace(result, files=tuple(file._replace(path=file.attempt) for file in result.files))


def changed_keys(one: Manifest, other: Manifest) -> frozenset[Key]:
    """The partitions of which two manifests don't say the same."""
    first, second = _by_partition(one.results), _by_partition(other.results)
    return frozenset(key for key in {*first, *second} if first.get(key) != second.get(key))


def _by_partition(results: Iterable[Result]) -> dict[Key, list[Result]]:
    found: dict[Key, list[Result]] = defaultdict(list)
    for result in results:
        found[result.topic, result.partition].append(result)
    return found


def _rows_that_go(previous: Iterable[Result], kept: Iterable[Result], where: str) -> Iterable[RowRange]:
    """The offsets of results that aren't kept, but for those that kept ones of the same topic's partition account for.

    Raises KsegError if an earlier topic of that name has rows of these offsets: a table can't tell whose row is whose.
    """
    kept_of = _by_partition(kept)
    for key, results in _by_partition(previous).items():
        for topic_id in dict.fromkeys(result.topic_id for result in results):
            own, others = _of_topic(topic_id, kept_of.get(key, ()))
            lost = _lost((result for result in results if result.topic_id == topic_id), own)
            for part in lost:
                if list(missing(part, _intact(others))) != [part]:
                    name = key[0] if key[1] is None else f"{key[0]}-{key[1]}"
                    why = f"records of {name} have changed since they were exported, and share offsets with those of"
                    raise KsegError(f"{why} an earlier topic of that name: choose another place for a new table", where)
                if part.first is not None and part.end is not None:
                    yield RowRange(*key, part.first, part.end)


def _lost(results: Iterable[Result], kept: list[Result]) -> Iterable[OffsetRange]:
    """The offsets of a topic's results that aren't among those kept, and that these don't account for."""
    still, present = set(map(_identity, kept)), _intact(kept)
    for result in results:
        first, end = result.tally.first_offset, result.tally.next_offset
        if _identity(result) not in still and first is not None and end is not None and first < end:
            yield from missing(OffsetRange(first, end), present)


def _of_topic(topic_id: str | None, results: Iterable[Result]) -> tuple[list[Result], list[Result]]:
    """The results of the topic with an id, all if that isn't known; and those of others of its name."""
    known = list(results)
    others = [result for result in known if topic_id not in (None, result.topic_id)]
    return [result for result in known if topic_id in (None, result.topic_id)], others


def _intact(results: Iterable[Result]) -> list[OffsetRange]:
    return [part for result in results for part in intact(result.tally)]


def _identity(result: Result) -> tuple[str, int | None, int | None]:
    return result.replica, result.tally.first_offset, result.tally.next_offset
