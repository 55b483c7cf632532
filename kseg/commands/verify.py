"""`kseg verify`: checks partitions and disks."""

from pathlib import Path
from typing import NamedTuple

from kseg.commands.options.command import GivenSelection, WorkOptions, command
from kseg.coordinators.transactions import judged_findings
from kseg.findings.kinds import ALL_FINDINGS
from kseg.log.selection import PartitionChoice
from kseg.output.forms import form_named
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.text.findings import FindingsReport, passed_over_line, write_explanation
from kseg.text.selected import no_match_line
from kseg.times import parse_zone
from kseg.verify.start_effects import StartForecast
from kseg.verify.verify import plan_verification


class VerifyOptions(NamedTuple):
    """Additional checks, and the form of findings."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    selected: GivenSelection
    explain: str | None
    cluster: bool
    verbose: bool
    output: str
    color: bool | None
    work: WorkOptions
    talk: Talk


@command(VerifyOptions)
def verify(options: VerifyOptions) -> None:
    """Check logs, indexes, snapshots and checkpoints.

    Use `verify` to check a partition or a disk as a broker does at its start, and further. It reads every byte, and
    changes nothing.

    \b
    Examples:
      kseg verify kafka-logs/ --gentle
      kseg verify orders-0/ --from-time -1h
      kseg verify orders-0/ -o json | jq -r .id | sort | uniq -c
      kseg verify --cluster kafka-logs/ --topic orders -v
      kseg verify --explain offsets-lost

    PATHS are partition directories or files in them (which mean the whole partition), log directories, parents of
    these, or remote tiers; by default the current directory. `verify` prints one line per finding, errors first, then
    warnings, or `ok` if there are none. Notes are counted; -v lists them, and first forecasts a broker's start on these
    disks, like `kseg doctor`. stderr lists skipped files that aren't Kafka's. The exit status is 1 if there are errors
    or warnings.

    --cluster compares PATHS with the cluster's metadata in one of them. It checks that each partition has a copy, that
    one is of an in-sync replica, and that copies have the right topic id and no gaps. -v lists all copies, the longest
    first.

    With record filters (--key, …), `verify` reads only segments that may have selected records. It reports
    findings about batches with such records, about damage where one may have been, and about indexes of these segments.
    It skips checks that need the whole partition: sequences and transactions of producers, snapshots, checkpoints,
    directories.
    """
    if options.explain is not None:
        write_explanation(options.explain, ALL_FINDINGS)
        return
    work, choice, talk = options.work, options.choice, options.talk
    processes, selection = work.begin(), options.selected.selection()
    plan = plan_verification(options.paths, talk.refuse, choice)
    if not plan.orders and choice.allow_missing:
        talk.note(f"{choice}: no such partition here: nothing was verified")
    for passed_over in plan.passed_over:
        talk.note(passed_over_line(passed_over))
    is_judged = selection.is_everything and bool(plan.orders) and not talk.is_quiet
    forecast = StartForecast(plan.cluster, choice) if is_judged else None
    report = FindingsReport(
        form_named(options.output), len(plan.orders), forecast, verbose=options.verbose, color=options.color
    )
    with report, talk.bar() as bar:
        on_read = bar.counting("verify", plan.size)
        results = judged_findings(plan, selection, keep_cache=work.keep_cache, processes=processes, on_read=on_read)
        report.take_all(results, talk.note, talk.refuse)
        if options.cluster:
            from kseg.diff.copies import find_cluster_copies, verified_copies
            from kseg.text.diff import copies_line, write_copies

            copies = find_cluster_copies(plan.cluster, choice)
            report.take(verified_copies(copies))
            write_copies(copies, form_named(options.output), verbose=options.verbose)
            talk.note(copies_line(copies))
        report.is_complete = not talk.status
    if not talk.is_quiet:
        report.finish()
    flush_stdout()
    if plan.orders and not report.has_selected and not selection.is_everything:
        talk.note(no_match_line(selection, [order.path for order in plan.orders], parse_zone(options.selected.zone)))
    if report.has_any:
        talk.note(report.counts_line())
    talk.end_with(not report.is_well)
