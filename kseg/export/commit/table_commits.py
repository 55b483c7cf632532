"""Commits of tables: one commit of the table log adds files, removes rows, and records the export's progress."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace

from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.commit.check import TableContents, TableDiffersError, count_rows
from kseg.export.commit.manifest import FOLDER, Key, Manifest, latest_number
from kseg.export.commit.merge import Joined, condense
from kseg.export.commit.protocol import Committed, ExportPlan, Overtaken, State, is_unchanged, report_of
from kseg.export.commit.runs import (
    JOBS,
    ExportRun,
    Marker,
    OvertakenError,
    mark,
    marker_name,
    new_run,
    read_markers,
    refuse_concurrent,
)
from kseg.export.commit.sources import by_partition
from kseg.export.commit.table_log import RowRange, TableChange, TableLog
from kseg.export.coverage import Coverage
from kseg.export.destination import UNFINISHED, Destination
from kseg.export.report import Report, publish
from kseg.export.results import Result
from kseg.export.settings import FileOptions, ReadOptions
from kseg.export.topic_runs import RunRecord
from kseg.export.write.parquet import ATTEMPT
from kseg.system.new_directory import Processes
from kseg.system.signals import Uninterrupted

MOST_MERGES = 10
"""The most attempts to join small files while others commit."""


class TableCommits:
    """A table whose log decides which files are valid: a kseg.export.commit.protocol.Commits."""

    def __init__(self, place: Destination, log: TableLog, processes: Processes) -> None:
        self.place = place
        self._log, self._processes = log, processes

    def read_state(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> State:
        """Return the state according to kseg's last commit in the log."""
        return State(self._previous(read, files, overwrite=overwrite), overwrite, self._log.with_field_ids)

    def _previous(self, read: ReadOptions, files: FileOptions, *, overwrite: bool) -> Manifest:
        number = self._log.number()
        if not number:
            if number is None:
                self._require_no_other_files(files.format.own_names)
            return Manifest(0, read, files)
        if overwrite:
            return Manifest(number, read, files, record=self._last_record())
        return self._log.progress().with_options(read, files, self.place.url)

    def _last_record(self) -> RunRecord | None:
        """Return the last commit's numbers for the table of runs, if the log still has them."""
        with suppress(KsegError):
            return self._log.progress().record
        return None

    def _require_no_other_files(self, own_names: tuple[str, ...]) -> None:
        """Raise UsageError for files of others; files of uncommitted runs don't matter."""
        if latest_number(self.place):
            raise UsageError(
                "the destination is an export of plain Parquet files; choose another destination for a table",
                self.place.url,
            )
        for name in self.place.names():
            if not name.startswith((f"{FOLDER}/", *own_names)) and ATTEMPT.fullmatch(name) is None:
                raise UsageError(
                    "the destination isn't empty and isn't an export; choose another destination", self.place.url
                )

    @contextmanager
    def begin(self, plan: ExportPlan) -> Iterator[ExportRun]:
        """Write a marker. If others commit in the meantime, the commit of this run detects it."""
        run = new_run(plan.previous.number)
        while not mark(run, self.place, self._processes):
            run = new_run(plan.previous.number)
        try:
            if self._log.needs_conditions:
                refuse_concurrent(run, self.place, self._processes)
            yield run
        except BaseException:
            with Uninterrupted(), suppress(KsegError, OSError):
                self._remove_files_of(run.id)
            raise

    def commit(self, run: ExportRun, plan: ExportPlan, joined: Joined) -> Committed | Overtaken:
        """Add the new files and remove the rows of results that aren't kept, in one commit with the accounts."""
        previous = plan.previous
        if is_unchanged(plan, joined) and not self._log.is_buried():  # others' commits may bury kseg's
            return self._commit_result(previous, is_new=False)
        telling = tuple(_with_permanent_names(result) for result in joined.new)
        results = condense(result for result in [*joined.kept, *telling] if result.says_something)
        manifest = Manifest(
            previous.number + 1,
            previous.read,
            previous.files,
            tuple(results),
            run.id,
            record=run.record or previous.record,
        )
        gone = () if plan.overwrites else tuple(rows_that_go(previous.results, joined.kept, self.place.url))
        replaces_all = plan.overwrites and previous.number > 0
        try:
            self._log.commit(TableChange(previous.number, manifest, telling, gone, replaces_all))
        except OvertakenError:
            return Overtaken()
        return self._commit_result(manifest, is_new=True)

    def _commit_result(self, manifest: Manifest, *, is_new: bool) -> Committed:
        return Committed(manifest, LoggedTable(self._log, manifest), is_new)

    def settle(self, done: Committed, report: Report) -> None:
        """Describe the valid state, until nobody has committed meanwhile."""
        publish(report, self.place)
        number = done.manifest.number
        while (self._log.number() or 0) > number:
            manifest = self._log.progress()
            publish(report_of(manifest, report), self.place)
            number = manifest.number

    def sweep(self, run: ExportRun, done: Committed) -> list[Marker]:
        """Remove the files and markers of runs that ended without a commit; then this run marker.

        Files of unknown origin are left: removing unreferenced files is a maintenance task of the table's format.
        """
        markers = [marker for marker in read_markers(self.place, self._processes) if marker.run_id != run.id]
        for marker in markers:
            if marker.is_over:
                self._remove_files_of(marker.run_id)
        for name in filter(UNFINISHED.fullmatch, list(self.place.names(FOLDER))):
            self.place.delete(name)
        self._remove_jobs_of(run.id)
        self.place.delete(marker_name(run.id))
        return [marker for marker in markers if not marker.is_over]

    def _remove_files_of(self, run_id: str) -> None:
        """Remove a run's orders and marker; if it never committed, also its files that aren't valid."""
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


class LoggedTable:
    """The table after a commit in its log: a kseg.export.commit.protocol.CommittedTable."""

    def __init__(self, log: TableLog, manifest: Manifest) -> None:
        self._log, self._manifest = log, manifest

    @property
    def location(self) -> str:
        """The location that readers open."""
        return self._log.location

    def version(self) -> str | None:
        """Return the version or snapshot of the commit."""
        with suppress(KsegError):  # the commit is valid without it
            return self._log.version(self._manifest.number)
        return None

    def contents(self, names: Collection[str]) -> TableContents | None:
        """Return the contents as the format's library reads the table."""
        try:
            return self._log.contents(self._manifest, names)
        except (TableDiffersError, OpenError):
            if self._log.number() != self._manifest.number:  # another run has replaced files
                return None
            raise

    def row_counts(self) -> Counter[Key]:
        """Return the row counts of the current table, through the format's library."""
        return sum(map(count_rows, self._log.batches()), Counter())

    def merge_files(self, target_size: int) -> tuple[int, int]:
        """Join small files through the format's library, in its own commit; specify up if others keep committing."""
        before = len(list(self._log.active_files()))
        for _ in range(MOST_MERGES):
            with suppress(OvertakenError):
                self._log.merge(target_size)
                break
        return before, len(list(self._log.active_files()))


def _with_permanent_names(result: Result) -> Result:
    return replace(result, files=tuple(file._replace(path=file.attempt) for file in result.files))


def rows_that_go(previous: Iterable[Result], kept: Iterable[Result], where: str) -> Iterable[RowRange]:
    """Yield the offsets of removed results that kept results of the same topic's partition don't cover.

    Raises KsegError if an earlier topic of that name has rows of these offsets: a table can't tell their rows apart.
    """
    kept_of = by_partition(kept)
    for key, results in by_partition(previous).items():
        for topic_id in dict.fromkeys(result.topic_id for result in results):
            own, others = _of_topic(topic_id, kept_of.get(key, ()))
            lost = _find_uncovered((result for result in results if result.topic_id == topic_id), own)
            theirs = Coverage.join([result.tally.intact for result in others])
            for part in lost.ranges:
                if theirs.meets(part):
                    name = key[0] if key[1] is None else f"{key[0]}-{key[1]}"
                    why = f"records of {name} have changed since they were exported, and share offsets with records of"
                    raise KsegError(
                        f"{why} an earlier topic with that name; choose another destination for a new table", where
                    )
                if part.first is not None and part.end is not None:
                    yield RowRange(*key, part.first, part.end)


def _find_uncovered(results: Iterable[Result], kept: list[Result]) -> Coverage:
    """Return the offsets of a topic's removed results, minus the offsets that its kept results cover."""
    still = {(result.replica, result.tally.span) for result in kept}
    spans = [span for each in results if (span := each.tally.span) is not None and (each.replica, span) not in still]
    return Coverage(tuple(spans)).without(Coverage.join([result.tally.intact for result in kept]))


def _of_topic(topic_id: str | None, results: Iterable[Result]) -> tuple[list[Result], list[Result]]:
    """Return the results of a topic id, or all if it is None; and the results of other topics of its name."""
    known = list(results)
    others = [result for result in known if topic_id not in (None, result.topic_id)]
    return [result for result in known if topic_id in (None, result.topic_id)], others
