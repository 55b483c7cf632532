"""`kseg spark-export`: exports whole topics to Parquet files with Spark, on this machine or a cluster."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import click

from kseg.commands.export_options import (
    ExportOptions,
    export_of,
    export_options,
    export_values,
    own_arguments,
    sources_and_destination,
)
from kseg.commands.inputs import reads_tiers
from kseg.commands.options import Setting, int_number, option_values, verbose_option
from kseg.errors import UsageError, missing_library
from kseg.output.progress import note_unless
from kseg.output.streams import write_line, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.export.run import Execute, Export
    from kseg.spark.job import ByteProgress
    from kseg.spark.submit import Cluster


QUICKER = "on one machine `kseg export` does the same, and is quicker: it needs no Spark"
REPORT = "_kseg/report.json"


class SparkOptions(NamedTuple):
    """Which Spark exports, and what it is given."""

    master: str
    remote: str | None
    deploy_mode: str | None
    settings: tuple[tuple[str, str], ...]
    packages: tuple[str, ...]
    archive: str | None
    ship_env: bool
    tasks: int | None
    check: bool
    warm: bool
    verbose: bool
    submitted: bool


@click.command("spark-export")
@export_options
@click.option("--master", default="local[*]", show_default=True, help="local[N], spark://…, yarn, k8s://…")
@click.option("--remote", metavar="sc://HOST:PORT", help="A Spark Connect server, in place of a master.")
@click.option("--deploy-mode", type=click.Choice(["client", "cluster"]), help="Of spark-submit.")
@click.option("--conf", "settings", type=Setting(), multiple=True, help="A setting of Spark's; may be repeated.")
@click.option("--packages", multiple=True, help="Maven packages that Spark is to fetch.")
@click.option("--archives", "archive", metavar="FILE", help="A packed environment for the executors.")
@click.option("--ship-env", is_flag=True, help="Pack this virtual environment, and send it to the executors.")
@click.option(
    "-j", "tasks", metavar="N", type=int_number(1), help="How many tasks run at once; Spark's default parallelism."
)
@click.option("--check", is_flag=True, help="Say which Spark, Python and Java would be used, and end.")
@click.option("--warm", is_flag=True, help="Make what lets later exports on this machine start faster, and end.")
@verbose_option("Let Spark talk on stderr")
@click.option("--submitted", is_flag=True, hidden=True, help="Run within spark-submit.")
@reads_tiers("paths")
@click.pass_context
@export_values
@option_values(spark=SparkOptions)
def spark_export(
    command: click.Context,
    options: ExportOptions,
    spark: SparkOptions,
) -> None:
    """Export topics to Parquet files with Spark, like `kseg export`, on one machine or on a cluster.

    \b
    Examples:
      kseg spark-export kafka-logs/ exported --topic 'orders*'
      kseg spark-export disks/* exported --master spark://head:7077 --ship-env
      kseg spark-export s3://bucket/kafka s3://bucket/exported --master yarn --deploy-mode cluster --ship-env
      kseg spark-export kafka-logs/ exported --dry-run
      kseg spark-export --warm

    SOURCE and DEST are as for `kseg export`; driver and executors must be able to reach them under the same names. The
    exit status is that of `kseg export`, and 3 if Spark or the cluster fails; a file that is named then has all that
    Spark said.
    """
    _require_spark()
    from kseg.spark.submit import Cluster, quoted

    if spark.check:
        _write_check()
        return
    if spark.warm:
        _warm(spark)
        return
    archive = spark.archive
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).absolute())
    cluster = Cluster(spark.master, spark.deploy_mode, spark.settings, spark.packages, archive, spark.ship_env)
    is_here = spark.remote is not None or spark.master.startswith("local")
    if options.dry_run:
        sent = None if is_here else quoted(cluster, own_arguments(command, options))
        _write_dry_run(export_of(options, spark.tasks or os.cpu_count() or 1), sent)
    elif spark.remote is not None:
        command.exit(_run_by_server(options, spark.remote, spark.tasks))
    elif spark.submitted or is_here:
        note_unless(quiet=spark.submitted or options.quiet)(QUICKER)
        command.exit(_run_here(options, spark))
    else:
        command.exit(_submit(cluster, own_arguments(command, options), options, verbose=spark.verbose))


def _require_spark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "spark")) from error


def _write_check() -> None:
    from kseg.spark.class_archive import versions

    lines, wrong = versions()
    write_lines(lines)
    if wrong is not None:
        raise UsageError(wrong)


def _write_dry_run(wanted: "Export", sent: str | None) -> None:
    """The plan, and the command line that would be run, if one is; that also where the sources aren't here."""
    from kseg.export.run import plan_export
    from kseg.text.export import write_plan

    try:
        write_plan(plan_export(wanted), "text")
    finally:
        if sent is not None:
            write_line(sent)


def _submit(cluster: "Cluster", arguments: list[str], options: ExportOptions, *, verbose: bool) -> int:
    """Lets spark-submit export. A driver on the cluster prints its report there: it is read from the destination."""
    from kseg.export.destination import open_destination
    from kseg.spark.submit import submit
    from kseg.text.export import write_kept_report

    status = submit(cluster, arguments, verbose=verbose)
    if not cluster.drives_here and not options.quiet:
        destination = sources_and_destination(options)[1]
        write_kept_report(open_destination(destination).read(REPORT), destination, options.output)
    return status


def _warm(spark: SparkOptions) -> None:
    from kseg.spark.job import make_class_archive

    master = spark.master
    if not master.startswith("local"):
        raise UsageError(f"--warm is for exports on this machine, with --master local[N]; this one is {master}")
    archive = make_class_archive(master, dict(spark.settings), verbose=spark.verbose)
    write_line(f"{archive.path}: {archive.path.stat().st_size >> 20} MiB")


def _run_here(options: ExportOptions, spark: SparkOptions) -> int:
    from kseg.spark.job import by_context, open_context

    wanted = export_of(options, spark.tasks or 1)
    master = None if spark.submitted else spark.master
    with open_context(master, dict(spark.settings), verbose=spark.verbose) as context:
        wanted = replace(wanted, parallelism=spark.tasks or context.defaultParallelism)
        return _run(wanted, options, partial(by_context, context))


def _run_by_server(options: ExportOptions, url: str, tasks: int | None) -> int:
    from kseg.spark.job import by_server, open_server, parallelism_of

    wanted = export_of(options, tasks or 1)
    with open_server(url) as session:
        wanted = replace(wanted, parallelism=tasks or parallelism_of(session))
        return _run(wanted, options, partial(by_server, session))


def _run(wanted: "Export", options: ExportOptions, by_spark: "Callable[[int, ByteProgress], Execute]") -> int:
    """Exports and reports while Spark is still there: its end takes a while, and changes nothing."""
    from kseg.export.run import run_export
    from kseg.output.progress import ProgressBar
    from kseg.text.export import say_refused, write_report

    with ProgressBar(options.has_bar) as bar:

        def progress(finished: int, total: int, failed: int) -> None:
            bar.show(f"{wanted.destination}, {failed} tasks failed" if failed else wanted.destination, finished, total)

        report = run_export(wanted, by_spark(wanted.parallelism, progress))
    if not options.quiet:
        write_report(report, options.output)
    say_refused(report.refused)
    return report.status
