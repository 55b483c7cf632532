"""A run of an export: plan, read, write, commit."""

import time
from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import pyarrow as pa

from kseg.cluster.copies import Copies, metadata_dirs_of
from kseg.export.cdc.change_reader import read_changes
from kseg.export.commit.check import check_contents, check_rows, rows_of_run
from kseg.export.commit.manifest import Key
from kseg.export.commit.merge import Joined, join_files
from kseg.export.commit.order import Execute, Job
from kseg.export.commit.protocol import Commits, Committed, ExportPlan, Overtaken
from kseg.export.commit.runs import ExportRun, OvertakenError
from kseg.export.commit.sources import changed_keys, find_deleted_topics
from kseg.export.destination import Destination
from kseg.export.plan import find_remote_parts
from kseg.export.planning import Export, plan_export, require_same_columns, resume_plan
from kseg.export.report import CommitFacts, PartitionReport, Report, compare_reports, reconcile
from kseg.export.results import Result
from kseg.export.rounds import Progress, Reading, RunResults, read_plan
from kseg.export.run_counts import Accounts, count_topics, files_of_run
from kseg.export.runs_table import write_missing_rows
from kseg.export.topic_runs import RunRecord
from kseg.export.write.folders import folder_columns
from kseg.export.write.parquet import schema_of_files
from kseg.system.signals import Uninterrupted

MOST_ATTEMPTS = 100
"""The most attempts to plan or commit while other runs are faster."""


def run_export(export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Export, and return the accounts of the complete destination.

    If a partition has several copies, offsets that are lost or missing in the best one are taken from the next. Raises
    the errors of `plan_export` and `execute`; LostError if another run was faster, with nothing changed in the
    destination. If a table's log has the other run's commit, this run continues from there.
    """
    return export_into(export.commits(), export, execute, progress)


def export_into(commits: Commits, export: Export, execute: Execute, progress: Progress | None = None) -> Report:
    """Export to an open destination."""
    start = time.monotonic()
    for _ in range(MOST_ATTEMPTS):
        plan = plan_export(export, commits)
        with commits.begin(plan) as run:
            if run is None:  # another run has committed since the plan was made
                continue
            files = export.files if export.read.unwrap is None else export.files.for_staging()
            job = Job(
                run.id,
                commits.place.url,
                plan.read,
                files,
                commits.place.identity,
                shares_files=not export.files.format.has_log and "partition" not in files.folder_columns,
            )
            outcome = _read_and_commit(commits, run, plan, Reading(export, job, execute, progress, start))
        report = _check(outcome, export)
        return report if outcome.record is None else replace(report, commit=_facts(outcome, outcome.record))
    raise OvertakenError(commits.place.url)


class _Outcome(NamedTuple):
    """The last commit of a run, including its plan, its report, and its numbers by topic if they are wanted."""

    plan: ExportPlan
    joined: Joined
    done: Committed
    report: Report
    record: RunRecord | None


def _read_and_commit(commits: Commits, run: ExportRun, plan: ExportPlan, reading: Reading) -> _Outcome:
    """Execute the plan, and commit; if other runs commit first, continue from there."""
    export = reading.export
    plan = resume_plan(plan, run.resumed, export)
    results = read_plan(plan, reading)
    remote = find_remote_parts(plan.copies, export.selection, metadata_dirs_of(export.sources))
    for _ in range(MOST_ATTEMPTS):
        joined = _join_files(plan, results, reading, commits.place)
        gone = find_deleted_topics(plan.absent, plan.copies, export.sources)
        new = results.new if joined.changes is None else joined.new
        accounts = _accounts(plan, reconcile([*plan.absent, *results.kept], new, remote, gone))
        record = _record(plan, accounts, [*run.resumed, *new], joined, reading)
        if record is not None and export.runs_table is not None:
            write_missing_rows(plan.previous, export)
            run = run._replace(record=record)
        with Uninterrupted():  # all of it, or nothing
            match commits.commit(run, plan, joined):
                case Committed() as done:
                    report = _report(plan, accounts.after, joined, done, reading)
                    commits.settle(done, report)
                    left = commits.sweep(run, done)
                    commits.place.require_unchanged()
                    return _Outcome(plan, joined, done, replace(report, left_alone=tuple(map(str, left))), record)
                case Overtaken():
                    pass
        plan, results = _after_others(commits, plan, results, reading)
    raise OvertakenError(commits.place.url)


def _join_files(plan: ExportPlan, results: RunResults, reading: Reading, place: Destination) -> Joined:
    """Return the results to commit, in their final files; with a table's own log, small files are joined later."""
    if plan.previous.read.unwrap is not None:
        return read_changes(plan, results.kept, results.new, place)
    given = Joined([*plan.absent, *results.kept], [result for result in results.new if result.says_something])
    if reading.export.files.format.has_log:
        return given
    return join_files(given, plan.previous, results.rows, reading.job, place, merges=reading.export.merge_files)


def _accounts(plan: ExportPlan, now: Iterable[PartitionReport]) -> Accounts:
    before = reconcile(plan.previous.results)
    return Accounts(before, compare_reports(_with_given_names(now, plan.copies), before))


def _record(
    plan: ExportPlan, accounts: Accounts, read: Iterable[Result], joined: Joined, reading: Reading
) -> RunRecord | None:
    """Return the numbers of the run by topic, if they are wanted."""
    export = reading.export
    if export.start is None:
        return None
    is_unwrapped = joined.changes is not None
    files = None if is_unwrapped else files_of_run([*joined.kept, *joined.new], reading.job.id)
    topics = count_topics(accounts, export.selection.partitions, read, files)
    return RunRecord(
        export.start, export.runs_table, plan.previous.number + 1, round(time.monotonic() - reading.start, 3), topics
    )


def _facts(outcome: _Outcome, record: RunRecord) -> CommitFacts:
    plan, done = outcome.plan, outcome.done
    is_first = done.is_new and not plan.previous.number
    if done.changes is not None:
        topics = tuple(replace(each, files=len(done.changes.files)) for each in record.topics)
        record = record._replace(topics=topics)
    read, files = done.manifest.read, done.manifest.files
    folders = [] if read.unwrap is not None else folder_columns(read, files)
    schema = pa.schema([*schema_of_files(read, files), *(pa.field(each.name, each.kind) for each in folders)])
    return CommitFacts(done.manifest.number, done.table.version(), done.is_new, is_first, record, schema)


def _report(
    plan: ExportPlan, partitions: tuple[PartitionReport, ...], joined: Joined, done: Committed, reading: Reading
) -> Report:
    export, newest = reading.export, done.manifest.new_files
    return Report(
        reading.job.destination,
        partitions,
        joined.new_files if done.changes is None else len(done.changes.files),
        time.monotonic() - reading.start,
        plan.refused,
        folders=tuple((each.name, str(each.kind)) for each in folder_columns(plan.read, export.files)),
        table_format=export.files.table_format,
        table=done.table.location,
        merged=joined.counts if export.merge_files else None,
        taken_up=plan.taken_up,
        decode=plan.read.decode,
        taken=plan.taken,
        has_milliseconds=plan.read.has_milliseconds,
        undecoded_limit=export.undecoded_limit,
        changes=done.changes,
        newest_file=newest[0] if newest else None,
    )


def _with_given_names(partitions: Iterable[PartitionReport], copies: Copies) -> list[PartitionReport]:
    """Return the partitions with the names that the user gave their copies."""
    names = {copy.path: str(copy.place) for known in copies.values() for copy in known}
    return [replace(each, copies=[names.get(path, path) for path in each.copies]) for each in partitions]


def _after_others(
    commits: Commits, plan: ExportPlan, results: RunResults, reading: Reading
) -> tuple[ExportPlan, RunResults]:
    """Return the plan and the results after others have committed meanwhile.

    This run's results stay, except for partitions of which others have committed a part: these are planned again.
    """
    again = plan_export(reading.export, commits)
    require_same_columns(plan, again, reading.export.files, commits.place.url)
    touched = changed_keys(plan.previous, again.previous)
    lost, new = _split(results.new, touched)
    for file in (file for result in lost for file in result.files):
        commits.place.delete(file.attempt)
    _, kept = _split(results.kept, touched)
    theirs, _ = _split(again.kept, touched)
    orders = tuple(order for order in again.orders if (order.topic, order.partition) in touched)
    copies = {key: known for key, known in again.copies.items() if key in touched}
    more = read_plan(replace(again, orders=orders, kept=tuple(theirs), copies=copies), reading)
    return again, RunResults([*kept, *more.kept], [*new, *more.new], {**results.rows, **more.rows})


def _split(results: Iterable[Result], keys: frozenset[Key]) -> tuple[list[Result], list[Result]]:
    """Return the results of the given partitions, and those of others."""
    results = list(results)
    own = [result for result in results if (result.topic, result.partition) in keys]
    return own, [result for result in results if (result.topic, result.partition) not in keys]


def _check(outcome: _Outcome, export: Export) -> Report:
    """Open the table, compare it with the report, join its small files, and return the report.

    Raises TableDiffersError.
    """
    plan, joined, done, report, _ = outcome
    if done.is_new and done.changes is not None:
        found = done.table.contents(done.changes.files)
        if found is not None:
            check_contents(found, done.changes.files, done.changes.total, done.table.location)
    elif done.is_new:
        written = rows_of_run([*joined.kept, *joined.new], done.manifest.run)
        found = done.table.contents(written)
        if found is not None:  # the report's rows must be all, unless others have added some
            is_all = export.overwrite or not plan.previous.number
            total = sum(part.records_out for part in report.partitions) if is_all else None
            check_contents(found, written, total, done.table.location)
    merged = done.table.merge_files(export.files.target_size) if export.merge_files else None
    if export.reads_back:
        check_rows(done.table.row_counts, report.partitions, done.table.location)
    return report if merged is None else replace(report, merged=merged)
