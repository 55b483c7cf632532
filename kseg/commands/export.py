"""`kseg export`: exports whole topics to Parquet files, with processes on this machine."""

from dataclasses import replace
from typing import Any

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.export_options import export_options
from kseg.commands.options import processes_option, redact_options, redaction_of
from kseg.commands.requested_export import export_of
from kseg.errors import UsageError, missing_library
from kseg.system.shared_work import processors


@click.command()
@export_options
@redact_options
@processes_option
@reads_archives("paths")
@click.pass_context
def export(command: click.Context, /, processes: int | None, **options: Any) -> None:
    """Export topics to Parquet files: each offset once, and all accounted for; a second run adds what is new.

    \b
    Examples:
      kseg export kafka-logs/ exported --topic 'orders*'
      kseg export orders-0/ exported --key-regex '^customer-7' --from-time 2026-11-01
      kseg export disk1 disk2 disk3 exported --isolation read_committed --partition-by topic,date
      kseg export kafka-logs/ exported --redact keys --redact values
      kseg export kafka-logs/ exported --dry-run

    SOURCE is a partition's directory, a log directory, a parent of these, a glob, or a URL (s3://, hdfs://, …); several
    may have copies of the same partition. DEST is a directory or a URL. The exit status is 1 if this run found that
    damage or retention cost anything; the report has what earlier runs found too.

    Records are selected as in `kseg dump`, but control records only with --control; the report counts those left out.
    A later run into the same DEST needs the same selection; only ranges of offsets may differ.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library("pyarrow", "arrow")) from error
    from kseg.export.run import in_processes, plan_export, run_export
    from kseg.output.export import say_refused, write_plan, write_report
    from kseg.output.progress import ProgressBar

    count = processes or processors()
    redaction = redaction_of(options)
    wanted = export_of(options, count)
    wanted = replace(wanted, read=replace(wanted.read, redaction=redaction))
    if options["dry_run"]:
        write_plan(plan_export(wanted), options["output"])
        return
    with ProgressBar(False if options["quiet"] else options["progress"]) as bar:
        report = run_export(
            wanted, in_processes(count), lambda finished, total: bar.show(wanted.destination, finished, total)
        )
    if not options["quiet"]:
        write_report(report, options["output"])
    say_refused(report.refused)
    command.exit(report.status)
