"""Outcomes of `kseg export` and `kseg spark-export`: the report or the plan of one table, or of a table per topic."""

from typing import TYPE_CHECKING, TypeVar

from kseg.commands.export_options import ExportOptions, note_no_match
from kseg.output.forms import Form, form_named
from kseg.output.progress import Talk

if TYPE_CHECKING:
    from kseg.export.planning import Export
    from kseg.export.report import Report
    from kseg.export.topics import TopicOutcomes

Done = TypeVar("Done")


def write_outcome(outcome: "Report | TopicOutcomes[Report]", options: ExportOptions, *, verbose: bool = False) -> None:
    """Write the report of an export, and set the exit status: the highest one of all topics."""
    from kseg.export.report import Report
    from kseg.text.export import say_refused, say_undecoded, write_report
    from kseg.text.export_topics import write_topic_reports

    form, talk = form_named(options.output), options.talk
    if isinstance(outcome, Report):
        if not talk.is_quiet:
            write_report(outcome, form, verbose=verbose)
        note_no_match([outcome], options)
        say_undecoded(outcome)
        say_refused(outcome.refused)
        talk.end_with(outcome.status)
        return
    if not talk.is_quiet:
        write_topic_reports(outcome, form, verbose=verbose)
    note_no_match(outcome.done, options)
    for report in outcome.done:
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
