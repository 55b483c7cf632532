"""Commits of tables with database rows: a run's changes are merged into the table's files, in one commit of its log."""

from dataclasses import replace

from kseg.errors import KsegError, OpenError, UsageError
from kseg.export.cdc.merge_rows import Merged, Target, append_changes, merge_changes
from kseg.export.changes import ChangeCounts, Changes
from kseg.export.columns.column_types import ColumnMember, StructType, from_json, unlike
from kseg.export.columns.unwrapped import DELETED_ROWS
from kseg.export.commit.manifest import Manifest
from kseg.export.commit.merge import Joined, condense
from kseg.export.commit.protocol import Commits, Committed, ExportPlan, Overtaken, is_unchanged
from kseg.export.commit.runs import ExportRun, Marker, OvertakenError
from kseg.export.commit.sources import by_partition
from kseg.export.commit.table_commits import TableCommits, rows_that_go
from kseg.export.commit.table_log import TableChange
from kseg.export.settings import ReadOptions
from kseg.export.write.parquet import ATTEMPT, ATTEMPTS, schema_of_files


class RowCommits(TableCommits):
    """The commits of a table with the rows that changes make: a kseg.export.commit.protocol.Commits."""

    @classmethod
    def of(cls, commits: Commits) -> "RowCommits":
        """Return the commits of a table that has a log. Raises UsageError for plain files, which can't lose rows."""
        if not isinstance(commits, TableCommits):
            raise UsageError("--unwrap needs a table with a log; specify --format delta or iceberg")
        return cls(commits.place, commits._log, commits._processes)

    def commit(self, run: ExportRun, plan: ExportPlan, joined: Joined) -> Committed | Overtaken:
        """Merge the run's changes into the table, and commit its new files with the accounts."""
        changes, previous = joined.changes, plan.previous
        assert changes is not None
        joined = joined._replace(new=[result for result in joined.new if result.says_something])
        if (is_unchanged(plan, joined) and not self._log.is_buried()) or not changes.columns:
            counts = ChangeCounts(skipped=changes.skipped)
            return self._commit_result(previous, is_new=False)._replace(changes=counts)
        self._refuse_changed_records(plan, joined)
        if (self._log.number() or 0) != previous.number:
            return Overtaken()
        read = self._grow_columns(previous.read, changes, has_ids=previous.files.format.has_field_ids)
        try:
            merged, read = self._merge(run, plan, read, changes)
        except OpenError:  # another run's commit may have replaced a file
            if (self._log.number() or 0) != previous.number:
                return Overtaken()
            raise
        results = condense([*joined.kept, *joined.new])
        record = run.record or previous.record
        manifest = Manifest(previous.number + 1, read, previous.files, tuple(results), run.id, record=record)
        replaces_all = plan.overwrites and previous.number > 0
        change = TableChange(
            previous.number, manifest, (), replaces_all=replaces_all, removed=merged.removed, added=merged.added
        )
        try:
            self._log.commit(change)
        except OvertakenError:
            for file in merged.added:
                self.place.delete(file.name)
            return Overtaken()
        return self._commit_result(manifest, is_new=True)._replace(changes=merged.counts)

    def _grow_columns(self, read: ReadOptions, changes: Changes, *, has_ids: bool) -> ReadOptions:
        """Return the options with the columns of the changes, and the table's ids of these.

        Raises UsageError for a column that Iceberg can't change.
        """
        assert read.unwrap is not None
        columns = StructType(tuple(ColumnMember(name, from_json(kind)) for name, kind in changes.columns))
        refused = unlike(read.unwrap.row_type(), columns) if has_ids else None
        if refused is not None:
            raise UsageError(
                f"{refused.message} as in the table, and Iceberg's columns can't change so; choose another --table",
                self.place.url,
            )
        grown = replace(read, unwrap=replace(read.unwrap, columns=changes.columns, keys=changes.keys))
        return self._log.with_field_ids(grown)

    def _merge(
        self, run: ExportRun, plan: ExportPlan, read: ReadOptions, changes: Changes
    ) -> tuple[Merged, ReadOptions]:
        """Write the table's new files; return the changed table, and the options with the file of deleted rows."""
        before, unwrap = plan.previous.read.unwrap, read.unwrap
        assert before is not None
        assert unwrap is not None
        names = () if plan.overwrites else tuple(self._log.active_files())
        files = plan.previous.files
        target = Target(self.place, names, before, unwrap, schema_of_files(read, files), files, run.id)
        merged = (append_changes if unwrap.history else merge_changes)(changes, target)
        return merged, replace(read, unwrap=merged.unwrapping)

    def _refuse_changed_records(self, plan: ExportPlan, joined: Joined) -> None:
        """Raise KsegError if exported records have changed since: their changes can't be taken back."""
        if plan.overwrites:
            return
        gone = next(iter(rows_that_go(plan.previous.results, joined.kept, self.place.url)), None)
        ids = {each.topic_id for own in by_partition([*joined.kept, *joined.new]).values() for each in own}
        if gone is not None or len(ids - {None}) > 1:
            what = "the topic was recreated" if gone is None else f"records of {gone.topic} have changed"
            raise KsegError(
                f"{what} since they were exported, so the table's rows may be wrong; export with --overwrite",
                self.place.url,
            )

    def sweep(self, run: ExportRun, done: Committed) -> list[Marker]:
        """Remove also the staged records of the run, and files of deleted rows that the table no longer names."""
        self._remove_staged(run.id)
        # In this order: the file of a run that has lost its marker since the listing is in the newest progress, or old.
        names = list(self.place.names(DELETED_ROWS))
        left = super().sweep(run, done)
        if names:
            unwrap = self._log.progress().read.unwrap
            kept = None if unwrap is None else unwrap.deleted
            running = {marker.run_id for marker in left}
            for name in names:
                if name != kept and name.removeprefix(f"{DELETED_ROWS}/")[:8] not in running:
                    self.place.delete(name)
        return left

    def _remove_files_of(self, run_id: str) -> None:
        super()._remove_files_of(run_id)
        self._remove_staged(run_id)

    def _remove_staged(self, run_id: str) -> None:
        for name in list(self.place.names(ATTEMPTS)):
            match = ATTEMPT.fullmatch(name)
            if match is not None and match[1] == run_id:
                self.place.delete(name)
