"""Records of runs by topic: for the command, the table of runs, and lineage events."""

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from kseg.errors import KsegError
from kseg.export.destination import open_destination
from kseg.export.lineage.collector import Collector
from kseg.export.lineage.datasets import names_of_sources
from kseg.export.lineage.events import EventType, LineageJob
from kseg.export.planning import Export, is_meant
from kseg.export.report import Report
from kseg.export.runs_table import check_runs_table, exported_table, write_rows
from kseg.export.topic_runs import ExportedTable, Outcome, RunStart, TopicRun, committed_runs
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Talk


@dataclass(frozen=True, slots=True)
class Recorder:
    """A recorder of the runs of a command.

    tell: gets each topic of each run when the run ends. collector: gets an event when a run starts, and one when it
    ends. kafka: HOST:PORT by which events name the cluster of the sources. told: the topics so far.
    """

    talk: Talk
    tell: Callable[[TopicRun], None] | None = None
    collector: Collector | None = None
    kafka: str | None = None
    told: list[TopicRun] = field(default_factory=list)

    def record(self, export: Export, run: Callable[[Export], Report]) -> Report:
        """Run an export of one table, and return its report. Raises the errors of the run, and records them first."""
        if self.tell is None and self.collector is None and export.runs_table is None:
            return run(export)
        begun, start, table = time.monotonic(), RunStart.now(), exported_table(export)
        runs_table = export.runs_table and open_destination(export.runs_table).url
        export = replace(export, start=start, runs_table=runs_table)
        try:
            check_runs_table(export)
        except KsegError as error:
            self._tell(_failed_run(export, start, 0.0, error))
            raise
        job = LineageJob(start, table, export.overwrite)
        self._send(job, "START", None)
        try:
            report = run(export)
        except KsegError as error:
            runs = _failed_runs(export, start, time.monotonic() - begun, error)
            self._end(export, runs)
            self._send(job, "FAIL", None, str(error))
            raise
        except BaseException:
            self._send(job, "ABORT", None)
            raise
        self._end(export, list(_finished_runs(report, table, time.monotonic() - begun)))
        self._send(job, "COMPLETE", report)
        return report

    def fail(self, export: Export, error: KsegError, topic: str | None = None) -> None:
        """Record a failure that came before any run: of all topics, or of one that can't be exported."""
        if self.tell is not None:
            self._tell(replace(_failed_run(export, RunStart.now(), 0.0, error), topic=topic))

    def _end(self, export: Export, runs: list[TopicRun]) -> None:
        """Write the rows of a run, and tell its topics."""
        if export.runs_table is not None and runs:
            try:
                write_rows(export.runs_table, runs)
            except KsegError as error:
                self.talk.refuse(error)
                runs = [run.with_problem(error.status, str(error)) for run in runs]
        self._tell(*runs)

    def _tell(self, *runs: TopicRun) -> None:
        self.told.extend(runs)
        if self.tell is not None:
            for run in runs:
                self.tell(run)

    def _send(self, job: LineageJob, kind: EventType, report: Report | None, error: str | None = None) -> None:
        if self.collector is not None:
            inputs = [] if report is None else names_of_sources(report.partitions, self.kafka)
            self.collector.send(job.event(kind, inputs, None if report is None else report.commit, error))


def _finished_runs(report: Report, table: ExportedTable, seconds: float) -> Iterator[TopicRun]:
    """Yield the topics of a run that has succeeded."""
    facts, letters = report.commit, report.dead_letters
    assert facts is not None
    added = None if letters is None else letters.added
    for counts in facts.record.topics:
        refused = [each for each in report.refused if is_meant(each, PartitionChoice(topics=(counts.topic,)))]
        run = TopicRun(
            facts.record.start,
            seconds,
            table,
            counts.outcome if facts.is_new else Outcome.NOTHING_NEW,
            topic=counts.topic,
            status=report.status_of(counts.topic),
            commit=facts.number,
            version=facts.version,
            counts=counts,
            dead_letters=None if added is None else added.get(counts.topic, 0),
        )
        for error in refused:
            run = run.with_problem(error.status, str(error))
        yield run


def _failed_runs(export: Export, start: RunStart, seconds: float, error: KsegError) -> list[TopicRun]:
    """Return the topics of a run that has failed, perhaps after its commit."""
    record = None
    if export.runs_table is not None:
        with suppress(KsegError):
            record = export.commits().read_state(export.read, export.files, overwrite=False).previous.record
    if record is None or record.start != start:
        return [_failed_run(export, start, seconds, error)]
    return [run.with_problem(error.status, str(error)) for run in committed_runs(record, exported_table(export))]


def _failed_run(export: Export, start: RunStart, seconds: float, error: KsegError) -> TopicRun:
    """Return a run without a commit; its topic is known if the table has only one."""
    topics = {each.topic for each in export.listing.replicas} if export.listing is not None else set()
    run = TopicRun(
        start, seconds, exported_table(export), Outcome.FAILED, topic=topics.pop() if len(topics) == 1 else None
    )
    return run.with_problem(error.status, str(error))
