"""`kseg verify`: every check of partitions and disks."""

from collections import Counter
from pathlib import Path
from typing import Any

import click

from kseg.commands.options import (
    gentle_options,
    output_option,
    paths_argument,
    progress_option,
    quiet_option,
    reads_archives,
    selection_of,
    selection_options,
)
from kseg.commands.parameters import int_number
from kseg.errors import UsageError
from kseg.gentle import give_way
from kseg.log.findings import FINDINGS, Severity, explanation
from kseg.log.verify import Verified, plan_verification, verify_paths
from kseg.output.findings import counts_text, finding_line, finding_object, summary_object
from kseg.output.json_lines import write_json
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.stdout import flush_stdout, write_line, write_stdout
from kseg.output.talk import talk
from kseg.views.judged_findings import FindingsJudge


@click.command()
@paths_argument
@click.option("--explain", metavar="ID", help="Say what a finding means, its risk, and what to do; `all` for all.")
@click.option("--processes", type=int_number(1), help="How many partitions to read at once.")
@selection_options("is_followed")
@gentle_options
@output_option("text", "json")
@progress_option
@quiet_option
@reads_archives("paths")
@click.pass_context
def verify(
    command: click.Context,
    /,
    paths: tuple[Path, ...],
    explain: str | None,
    processes: int | None,
    keep_cache: bool,
    gentle: bool,
    output: str,
    progress: bool | None,
    quiet: bool,
    **options: Any,
) -> None:
    """Check logs, indexes, snapshots and checkpoints: all that a broker checks at start, and more.

    \b
    Examples:
      kseg verify kafka-logs/ --gentle
      kseg verify orders-0/ --from-time -1h
      kseg verify orders-0/ -o json | jq -r .id | sort | uniq -c
      kseg verify --explain offsets-lost

    PATHS are partition directories or files in them, which stand for the whole partition, log directories, or parents
    of these; none means the current directory. Prints a line per finding, and `ok` where there are none but notes; ends
    with 1 where there are errors or warnings.

    With a selection, as `kseg dump` takes it, only segments that may hold such records are read, and only findings told
    about batches with such a record, damage where one may have been, and these segments' indexes. What needs the whole
    partition isn't checked then: sequences and transactions of producers, snapshots, checkpoints, directories.
    """
    if explain is not None:
        _explain(explain)
        return
    if gentle:
        give_way()
    selection = selection_of(options)
    refuse = Refusals()
    plan = plan_verification(paths, refuse)
    counts: Counter[Severity] = Counter()
    done = 0
    with ProgressBar(progress) as bar:
        on_read = bar.counting("verify", plan.size)
        found = verify_paths(plan, selection, keep_cache=keep_cache, processes=processes, on_read=on_read)
        for verified in map(FindingsJudge(plan).judged, found):
            _write(verified, output)
            for note in () if quiet else verified.notes:
                talk(f"kseg: {note}")
            counts.update(finding.severity for finding in verified.findings)
            for problem in verified.problems:
                refuse(problem)
            done += verified.size
    is_well = not counts[Severity.ERROR] and not counts[Severity.WARNING]
    if output == "json":
        write_json(summary_object(counts, len(plan.orders), done))
    elif is_well and not refuse.status:
        write_stdout(b"ok\n")
    flush_stdout()
    if not is_well and not quiet:
        talk(f"kseg: {counts_text(counts, len(plan.orders))}; `kseg verify --explain ID` tells more")
    command.exit(max(refuse.status, int(not is_well)))


def _write(verified: Verified, output: str) -> None:
    for finding in verified.findings:
        if output == "json":
            write_json(finding_object(finding))
        else:
            write_line(finding_line(finding))


def _explain(name: str) -> None:
    if name != "all" and name not in FINDINGS:
        raise UsageError(f"--explain: no finding is called {name!r}; there are {', '.join(FINDINGS)}")
    texts = [explanation(each) for each in ([*FINDINGS] if name == "all" else [name])]
    write_stdout("\n".join(texts).encode())
    flush_stdout()
