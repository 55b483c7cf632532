"""`kseg export`: exports whole topics to Parquet files, with processes on this machine."""

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from kseg.commands.export_options import ExportOptions, export_of
from kseg.commands.export_run import run_tables, write_dry_run, write_outcome
from kseg.commands.options.command import RedactOptions, command
from kseg.errors import UsageError, missing_library
from kseg.output.forms import form_named
from kseg.system.shared_work import processors

if TYPE_CHECKING:
    from kseg.export.planning import Export
    from kseg.export.report import Report


class ExportArguments(NamedTuple):
    """The exported data, the number of processes, and the redaction."""

    options: ExportOptions
    redacting: RedactOptions
    processes: int | None
    verbose: bool


@command(ExportArguments)
def export(given: ExportArguments) -> None:
    """Export topics to Parquet files or tables.

    Use `export` to load topics into a data lake or another database. Each offset is exported once and accounted for;
    the next run adds new records. Sources never change.

    \b
    Examples:
      kseg export kafka-logs/ exported --topic 'orders*'
      kseg export kafka-logs/ 'lake/{topic}' --format iceberg
      kseg export orders-0/ exported --key-regex '^customer-7' --from-time 2026-11-01
      kseg export disk1 disk2 disk3 exported --isolation read_committed --partition-by topic,date
      kseg export kafka-logs/ exported --redact keys --redact values
      kseg export kafka-logs/ 'lake/{topic}' -q -o json --runs-table runs
      kseg export kafka-logs/ exported --dry-run

    SOURCE is a partition directory, a log directory, a parent of these, a glob, or a URL (s3://, hdfs://, …). Several
    sources may have replicas of the same partition. DEST is a directory or a URL. With {topic}
    in it, each topic gets its own table. See docs/how-to/export.md.

    Records are selected as in `kseg dump`, but control records only with --control; the report counts excluded records.
    A later run into the same DEST needs the same selection; only ranges of offsets may differ.

    The exit status is 1 if this run lost records to damage or retention. The report includes losses of earlier runs.
    With `-q -o json`, the output is one object per topic, for schedulers.
    """
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library("pyarrow", "arrow")) from error
    from kseg.arrow import leave_out_pandas

    leave_out_pandas()
    from kseg.export.commit.order import in_processes
    from kseg.export.dead_letters import run_with_dead_letters

    options, count = given.options, given.processes or processors()
    redaction = given.redacting.redaction()
    wanted = export_of(options, count)
    if redaction is not None and wanted.read.unwrap is not None:
        raise UsageError("--unwrap excludes --redact: substitutes are no rows; redact the log directories first")
    wanted = replace(wanted, read=replace(wanted.read, redaction=redaction))
    if options.dry_run:
        write_dry_run(wanted, form_named(options.output), options.talk)
        return
    with options.talk.bar() as bar:

        def run(each: "Export") -> "Report":
            return run_with_dead_letters(
                each, in_processes(count), lambda finished, total: bar.show(each.destination, finished, total)
            )

        outcome = run_tables(wanted, options, run)
    write_outcome(outcome, options, verbose=given.verbose)
