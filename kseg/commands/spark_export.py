"""`kseg spark-export`: exports whole topics to Parquet files with Spark, on this machine or a cluster."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.commands.export_options import ExportOptions, export_of, own_arguments, sources_and_destination
from kseg.commands.export_run import run_tables, write_dry_run, write_outcome
from kseg.commands.options.command import command
from kseg.errors import UsageError, missing_library
from kseg.output.forms import TextForm, form_named
from kseg.output.streams import write_line, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.export.commit.order import Execute
    from kseg.export.planning import Export
    from kseg.export.report import Report
    from kseg.spark.job import ByteProgress
    from kseg.spark.submit import Cluster


QUICKER = "on one machine `kseg export` does the same, and is quicker: it needs no Spark"
REPORT = "_kseg/report.json"


class SparkOptions(NamedTuple):
    """The Spark that exports, and its settings."""

    export: ExportOptions
    master: str
    remote: str | None
    deploy_mode: str | None
    settings: tuple[tuple[str, str], ...]
    packages: tuple[str, ...]
    archive: str | None
    ship_env: bool
    tasks: int | None
    check: bool
    prepare_jvm: bool
    verbose: bool
    submitted: bool


@command(SparkOptions)
def spark_export(spark: SparkOptions) -> None:
    """Export topics to Parquet files or tables with Spark.

    Use `spark-export` for exports that one process or one machine can't do. The result is the same as of `kseg export`.
    Sources never change.

    \b
    Examples:
      kseg spark-export kafka-logs/ exported --topic 'orders*'
      kseg spark-export disks/* exported --master spark://head:7077 --ship-env
      kseg spark-export s3://bucket/kafka s3://bucket/exported --master yarn --deploy-mode cluster --ship-env
      kseg spark-export kafka-logs/ exported --dry-run
      kseg spark-export --prepare-jvm

    SOURCE and DEST are as for `kseg export`; driver and executors must reach them under the same names. The exit status
    is the same too, or 3 if Spark or the cluster fails. A message then names the file with Spark's output. See
    docs/how-to/spark.md.
    """
    _require_spark()
    options, talk = spark.export, spark.export.talk
    from kseg.spark.submit import Cluster, quote_command

    if spark.check:
        _write_check()
        return
    if spark.prepare_jvm:
        _prepare_jvm(spark)
        return
    archive = spark.archive
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).absolute())
    cluster = Cluster(spark.master, spark.deploy_mode, spark.settings, spark.packages, archive, spark.ship_env)
    is_here = spark.remote is not None or spark.master.startswith("local")
    if options.dry_run:
        sent = None if is_here else quote_command(cluster, own_arguments(options))
        _write_dry_run(export_of(options, spark.tasks or os.cpu_count() or 1), options, sent)
    elif spark.remote is not None:
        _run_by_server(options, spark.remote, spark.tasks)
    elif spark.submitted or is_here:
        if not spark.submitted:
            talk.note(QUICKER)
        _run_here(spark)
    else:
        talk.end_with(_submit(cluster, own_arguments(options), options, verbose=spark.verbose))


def _require_spark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "spark")) from error
    from kseg.arrow import leave_out_pandas

    leave_out_pandas()


def _write_check() -> None:
    from kseg.spark.class_archive import versions

    lines, wrong = versions()
    write_lines(lines)
    if wrong is not None:
        raise UsageError(wrong)


def _write_dry_run(wanted: "Export", options: ExportOptions, sent: str | None) -> None:
    """Write the plan, and the command line of the submission, if it exists.

    The command line is also written if the sources aren't on this machine.
    """
    try:
        write_dry_run(wanted, TextForm(), options.talk)
    finally:
        if sent is not None:
            write_line(sent)


def _submit(cluster: "Cluster", arguments: list[str], options: ExportOptions, *, verbose: bool) -> int:
    """Export by spark-submit.

    A driver on the cluster prints its report there, so the report is read from the destination.
    """
    from kseg.export.destination import open_destination
    from kseg.export.topics import PLACEHOLDER
    from kseg.spark.submit import submit
    from kseg.text.export import write_kept_report

    status = submit(cluster, arguments, verbose=verbose)
    destination = sources_and_destination(options)[1]
    if not cluster.drives_here and PLACEHOLDER in destination:
        options.talk.note(f"{destination}: the report of each topic is in {REPORT} there")
    elif not cluster.drives_here and not options.talk.is_quiet:
        write_kept_report(open_destination(destination).read(REPORT), destination, form_named(options.output))
    return status


def _prepare_jvm(spark: SparkOptions) -> None:
    from kseg.spark.job import make_class_archive

    master = spark.master
    if not master.startswith("local"):
        raise UsageError(f"--prepare-jvm needs --master local[N]; this one is {master}")
    archive = make_class_archive(master, dict(spark.settings), verbose=spark.verbose)
    write_line(f"{archive.path}: {archive.path.stat().st_size >> 20} MiB")


def _run_here(spark: SparkOptions) -> None:
    from kseg.spark.job import by_context, open_context

    options = spark.export
    wanted = export_of(options, spark.tasks or 1)
    master = None if spark.submitted else spark.master
    with open_context(master, dict(spark.settings), verbose=spark.verbose) as context:
        wanted = replace(wanted, parallelism=spark.tasks or context.defaultParallelism)
        _run(wanted, options, partial(by_context, context))


def _run_by_server(options: ExportOptions, url: str, tasks: int | None) -> None:
    from kseg.spark.job import by_server, open_server, parallelism_of

    wanted = export_of(options, tasks or 1)
    with open_server(url) as session:
        wanted = replace(wanted, parallelism=tasks or parallelism_of(session))
        _run(wanted, options, partial(by_server, session))


def _run(wanted: "Export", options: ExportOptions, by_spark: "Callable[[int, ByteProgress], Execute]") -> None:
    """Export and report while Spark is still running: its end takes a while, and changes nothing."""
    from kseg.export.dead_letters import run_with_dead_letters

    with options.talk.bar() as bar:

        def run(each: "Export") -> "Report":
            def progress(finished: int, total: int, failed: int) -> None:
                bar.show(f"{each.destination}, {failed} tasks failed" if failed else each.destination, finished, total)

            return run_with_dead_letters(each, by_spark(each.parallelism, progress))

        outcome = run_tables(wanted, options, run)
    write_outcome(outcome, options)
