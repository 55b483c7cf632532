"""Runs of `kseg export` and `kseg spark-export`: one table or a table per topic; their report, plan, and records."""

from typing import TYPE_CHECKING, TypeVar

from kseg.commands.export_options import ExportOptions, note_no_match
from kseg.errors import KsegError
from kseg.output.forms import Form, form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.export.planning import Export
    from kseg.export.recording import Recorder
    from kseg.export.report import Report
    from kseg.export.topic_runs import TopicRun
    from kseg.export.topics import TopicOutcomes

Done = TypeVar("Done")


def run_tables(
    wanted: "Export", options: ExportOptions, run: "Callable[[Export], Report]"
) -> "Report | TopicOutcomes[Report]":
    """Export one table, or a table per topic, and record their runs.

    run: exports one table. Raises KsegError if there is nothing to export, or if the only table fails.
    """
    from kseg.export.topics import TopicOutcomes, is_per_topic, run_topics

    recorder = _recorder_of(wanted, options)
    try:
        outcome = (
            run_topics(wanted, lambda each: recorder.record(each, run))
            if is_per_topic(wanted)
            else recorder.record(wanted, run)
        )
    except KsegError as error:
        if not recorder.told:
            recorder.fail(wanted, error)
        raise
    if isinstance(outcome, TopicOutcomes):
        known = {each.topic for each in recorder.told}
        for topic, reason in outcome.errors:
            if topic not in known:
                recorder.fail(wanted, reason, topic)
    return outcome


def _recorder_of(wanted: "Export", options: ExportOptions) -> "Recorder":
    from kseg.export.lineage.collector import Collector, wanted_place
    from kseg.export.recording import Recorder

    form, place = form_named(options.output), wanted_place(options.run.openlineage)

    def tell(run: "TopicRun") -> None:
        form.write_object({"type": "topic", **run.to_json()})
        flush_stdout()

    return Recorder(
        options.talk,
        tell if options.talk.is_quiet and form.has_objects else None,
        None if place is None else Collector(place, wanted.sources, options.talk),
        options.run.kafka,
    )


def write_outcome(outcome: "Report | TopicOutcomes[Report]", options: ExportOptions, *, verbose: bool = False) -> None:
    """Write the report of an export, and set the exit status: the highest one of all topics."""
    from kseg.export.report import Report
    from kseg.text.export import say_losses, say_refused, say_undecoded, write_report
    from kseg.text.export_topics import write_topic_reports

    form, talk = form_named(options.output), options.talk
    if isinstance(outcome, Report):
        if not talk.is_quiet:
            write_report(outcome, form, verbose=verbose)
        note_no_match([outcome], options)
        say_losses(outcome)
        say_undecoded(outcome)
        say_refused(outcome.refused)
        talk.end_with(outcome.status)
        return
    if not talk.is_quiet:
        write_topic_reports(outcome, form, verbose=verbose)
    if not outcome.errors:
        note_no_match(outcome.done, options)
    for report in outcome.done:
        say_losses(report)
        say_undecoded(report)
    _end_with_errors(outcome, talk)
    talk.end_with(max((report.status for report in outcome.done), default=0))


def write_dry_run(wanted: "Export", form: Form, talk: Talk) -> None:
    """Write the plan of an export."""
    from kseg.export.planning import plan_export
    from kseg.export.topics import is_per_topic, run_topics
    from kseg.text.export import write_plan
    from kseg.text.export_topics import write_topic_plans

    if is_per_topic(wanted):
        outcome = run_topics(wanted, plan_export)
        write_topic_plans(outcome, form)
        _end_with_errors(outcome, talk)
    else:
        write_plan(plan_export(wanted), form)


def _end_with_errors(outcome: "TopicOutcomes[Done]", talk: Talk) -> None:
    """Report unreadable sources and failed topics, and keep the worst status of these topics."""
    from kseg.text.export import say_refused

    say_refused(outcome.refused)
    for topic, error in outcome.errors:
        talk.warn(f"{topic}: {error}")
        talk.end_with(error.status)
