"""`kseg report`: a page about a disk."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import (
    WorkOptions,
    gentle_options,
    option_values,
    output_option,
    paths_argument,
    processes_option,
    progress_option,
    quiet_option,
    zone_option,
)
from kseg.commands.partition_options import partition_options
from kseg.commands.report_options import ReportOptions, report_options
from kseg.counted import counted
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.progress import ProgressBar
from kseg.output.refusals import Refusals
from kseg.output.sizes import human_size
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless
from kseg.report.page.report_file import check_place, write_report
from kseg.report.reporting import Reading, make_report
from kseg.times import parse_zone
from kseg.views.doctor.examination import plan_examination
from kseg.views.doctor.next_steps import command_line


class PageOptions(NamedTuple):
    """Where the page goes, its form, and the zone of its times."""

    file: Path | None
    zone: str
    output: str


@click.command()
@paths_argument
@partition_options
@click.option("--to", "file", metavar="FILE", type=click.Path(path_type=Path), help="The new file; by default stdout.")
@report_options
@zone_option
@output_option("html", "json", "text")
@processes_option
@gentle_options
@progress_option
@quiet_option
@reads_archives("paths")
@click.pass_context
@option_values(options=PageOptions, work=WorkOptions)
def report(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    shown: ReportOptions,
    options: PageOptions,
    work: WorkOptions,
) -> None:
    """Make a page about a disk: what is wrong, what fills it, what goes when, and what could be saved.

    \b
    Examples:
      kseg report kafka-logs/ --to report.html
      kseg report disk1/ disk2/ --quick --to quick.html
      kseg report kafka-logs/ -o text
      kseg report kafka-logs/ -o json | jq -c 'select(.table == "topics")'

    PATHS are log directories (all disks of a broker together), partition directories, or parents of these; by default
    the current directory. The page begins with verdicts, each with the command that shows more; then come pictures and
    tables: findings as of `kseg doctor`, where the bytes are, segments over time, what retention will delete on which
    day, how much was written when, how full batches are, codecs and what others would save, sizes of messages, hot
    keys, compaction, times out of order, producers, transactions, groups, replicas, settings that disagree. It is one
    file without any other; it needs neither a network nor JavaScript, and has the numbers as JSON too.

    Every byte of the logs is read, once. --quick reads names, indexes and the headers of batches: it knows nothing of
    keys, tombstones, message sizes and codecs' ratios, and can't see damage within logs.

    With --now, how full the disks are now is left out; then the same input gives the same page, byte for byte. The exit
    status is 1 if there are findings that are errors or warnings.
    """
    zone, refuse, note = parse_zone(options.zone), Refusals(), note_unless(quiet=work.quiet)
    file = options.file
    check_place(options.output, file)
    if file is not None:
        check_outside(file, paths)
    choices = shown.choices(zone)
    plan = plan_examination(paths, refuse, choice)
    if not plan.orders:
        command.exit(refuse.status)
    unread = lambda path, reason: note(f"{path}: not read: {reason}: retention is Kafka's default here")  # noqa: E731
    processes = work.begin()
    with ProgressBar(work.has_bar) as bar:
        on_read = bar.counting("report", plan.size)
        reading = Reading(processes, keep_cache=work.keep_cache, refuse=refuse, on_read=on_read, on_unread=unread)
        made = make_report(plan, choices, reading, command_line(command.find_root().obj or ("report",)))
    size = write_report(made, options.output, file, zone)
    flush_stdout()
    if file is not None:
        note(f"{file}: {human_size(size)}, {counted(len(made.verdicts), 'verdict')}")
    command.exit(max(refuse.status, int(not made.is_well)))
