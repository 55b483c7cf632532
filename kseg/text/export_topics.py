"""Plans and reports of exports that write a table per topic."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kseg.errors import plural
from kseg.output.forms import Form
from kseg.text.export import (
    account_lines,
    account_objects,
    partition_lines,
    plan_lines,
    plan_objects,
    reader_lines,
    sums_line,
    sums_of,
    table_members,
    write_each,
)

if TYPE_CHECKING:  # these import pyarrow
    from kseg.export.commit.protocol import ExportPlan
    from kseg.export.report import Report
    from kseg.export.topics import TopicOutcomes


def write_topic_plans(outcomes: "TopicOutcomes[ExportPlan]", form: Form) -> None:
    """Write the plans of all topics to standard output, as one."""
    orders = [order for plan in outcomes.done for order in plan.orders]
    write_each(form, plan_objects(orders) if form.has_objects else plan_lines(orders))


def write_topic_reports(outcomes: "TopicOutcomes[Report]", form: Form, *, verbose: bool = False) -> None:
    """Write the reports of all topics to standard output.

    verbose: the text lists the copy that each partition was read from.
    """
    write_each(form, _objects(outcomes) if form.has_objects else _lines(outcomes, verbose=verbose))


def _objects(outcomes: "TopicOutcomes[Report]") -> Iterator[dict[str, Any]]:
    """Yield each topic's accounts and its table, and a summary."""
    for each in outcomes.topics:
        table = {"type": "table", "topic": each.topic, "destination": each.destination}
        if each.done is not None:
            yield from account_objects(each.done)
            yield {**table, "status": each.done.status, **table_members(each.done)}
        elif each.error is not None:
            yield {**table, "status": each.error.status, "error": str(each.error)}
    yield {"type": "summary", "tables": len(outcomes.done), "failed": len(outcomes.errors), **sums_of(outcomes.done)}


def _lines(outcomes: "TopicOutcomes[Report]", *, verbose: bool) -> Iterator[str]:
    """Yield a table of all partitions, followed by details of each topic and the totals.

    The commands that read an export are those of the first table: there may be thousands.
    """
    reports = outcomes.done
    yield from partition_lines([partition for report in reports for partition in report.partitions])
    yield from (line for report in reports for line in account_lines(report))
    sentences = [each for report in reports if report.taken for each in report.taken.sentences(verbose=verbose)]
    yield from dict.fromkeys(sentences)
    count = plural(len(reports), "table")
    failed = f", {plural(len(outcomes.errors), 'topic')} failed" if outcomes.errors else ""
    yield f"{count}{failed}: {sums_line(sums_of(reports), outcomes.destination)}"
    first = next((report for report in reports if report.has_files), None)
    yield from () if first is None else reader_lines(first)
