"""`kseg export`: exports whole topics to Parquet files, with processes on this machine."""

from dataclasses import replace

import click

from kseg.commands.export_options import ExportOptions, export_of, export_options, export_values
from kseg.commands.inputs import reads_archives
from kseg.commands.options import RedactOptions, processes_option, redact_options, verbose_copies_option
from kseg.errors import UsageError, missing_library
from kseg.system.shared_work import processors


@click.command()
@export_options
@redact_options
@processes_option
@verbose_copies_option
@reads_archives("paths")
@click.pass_context
@export_values
def export(
    command: click.Context,
    options: ExportOptions,
    redacting: RedactOptions,
    processes: int | None,
    is_verbose: bool,
) -> None:
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
    from kseg.output.progress import ProgressBar
    from kseg.text.export import say_refused, write_plan, write_report

    count = processes or processors()
    redaction = redacting.redaction()
    wanted = export_of(options, count)
    wanted = replace(wanted, read=replace(wanted.read, redaction=redaction))
    if options.dry_run:
        write_plan(plan_export(wanted), options.output)
        return
    with ProgressBar(options.has_bar) as bar:
        report = run_export(
            wanted, in_processes(count), lambda finished, total: bar.show(wanted.destination, finished, total)
        )
    if not options.quiet:
        write_report(report, options.output, verbose=is_verbose)
    say_refused(report.refused)
    command.exit(report.status)
