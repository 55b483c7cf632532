"""Exports into tables: their log is the truth. The number and the progress of a commit stand in the commit itself.

Files are written under the names they keep, and count from the commit on that adds them. States and
steps are in docs/developers/architecture.md.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from kseg.errors import KsegError, UsageError
from kseg.export import manifest as manifests
from kseg.export.commit import JOBS
from kseg.export.condense import condensed, without_gone
from kseg.export.copies import Copies
from kseg.export.coverage import intact, missing
from kseg.export.destination import Destination
from kseg.export.ledger import OvertakenError, drop_files
from kseg.export.manifest import ATTEMPT, FOLDER, Key, Manifest
from kseg.export.merge import Joined
from kseg.export.order import Job
from kseg.export.result import Result
from kseg.export.runs import ExportRun, Marker, mark, marker_name, new_run, read_markers
from kseg.export.settings import FileOptions, OffsetRange, ReadOptions
from kseg.export.table_log import RowRange, TableChange, TableLog
from kseg.system.known_processes import Processes

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
                self._require_no_other_files()
            return Manifest(0, read, files)
        if overwrite:
            return Manifest(number, read, files)
        found = self._log.progress()
        if (found.read, found.files) != (read, files):
            raise UsageError("was exported with other options: choose another place, or --overwrite", self.place.url)
        return found

    def _require_no_other_files(self) -> None:
        """Files of runs that never committed don't matter."""
        if manifests.latest_number(self.place):
            raise UsageError("is an export of plain Parquet files: choose another place for a table", self.place.url)
        for name in self.place.names():
            if not name.startswith((f"{FOLDER}/", *self._log.own_names)) and ATTEMPT.fullmatch(name) is None:
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
