"""`kseg spark-export`: exports whole topics to Parquet files with Spark, on this machine or a cluster."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kseg.commands.export_options import export_options
from kseg.commands.options import verbose_option
from kseg.commands.parameters import Setting, int_number
from kseg.commands.requested_export import export_of, own_arguments
from kseg.errors import UsageError, missing_library
from kseg.output.stdout import write_line, write_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from kseg.export.run import Execute, Export
    from kseg.spark.job import ByteProgress
    from kseg.spark.submit import Cluster


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
@click.pass_context
def spark_export(
    command: click.Context,
    /,
    master: str,
    remote: str | None,
    deploy_mode: str | None,
    settings: tuple[tuple[str, str], ...],
    packages: tuple[str, ...],
    archive: str | None,
    ship_env: bool,
    tasks: int | None,
    check: bool,
    warm: bool,
    verbose: bool,
    submitted: bool,
    **options: Any,
) -> None:
    """Export topics to Parquet files with Spark, like `kseg export`, on one machine or on a cluster.

    \b
    Examples:
      kseg spark-export kafka-logs/ exported --topic 'orders*'
      kseg spark-export disks/* exported --master spark://head:7077 --ship-env
      kseg spark-export s3://bucket/kafka s3://bucket/exported --master yarn --deploy-mode cluster --ship-env
      kseg spark-export kafka-logs/ exported --dry-run
      kseg spark-export --warm

    SOURCE and DEST are as for `kseg export`; driver and executors must be able to reach them under the same names.
    """
    _require_spark()
    from kseg.spark.submit import Cluster, submit, submit_with_environment

    if check:
        _write_check()
        return
    if warm:
        _warm(master, settings, verbose=verbose)
        return
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).absolute())
    cluster = Cluster(master, deploy_mode, settings, packages, archive)
    if options["dry_run"]:
        _write_dry_run(cluster, own_arguments(command, options), export_of(options, tasks or os.cpu_count() or 1))
    elif remote is not None:
        command.exit(_run_by_server(options, remote, tasks))
    elif submitted or master.startswith("local"):
        command.exit(_run_here(options, (None if submitted else master, dict(settings)), tasks, verbose=verbose))
    else:
        send = submit_with_environment if ship_env else submit
        command.exit(send(cluster, own_arguments(command, options), verbose=verbose))


def _require_spark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise UsageError(missing_library(str(error.name), "spark")) from error


def _write_check() -> None:
    from kseg.spark.versions import versions

    lines, wrong = versions()
    write_lines(lines)
    if wrong is not None:
        raise UsageError(wrong)


def _write_dry_run(cluster: "Cluster", arguments: list[str], wanted: "Export") -> None:
    from kseg.export.run import plan_export
    from kseg.output.export import write_plan
    from kseg.spark.submit import quoted

    write_plan(plan_export(wanted), "text")
    write_line(quoted(cluster, arguments))


def _warm(master: str, settings: tuple[tuple[str, str], ...], *, verbose: bool) -> None:
    from kseg.spark.warm import make_class_archive

    if not master.startswith("local"):
        raise UsageError(f"--warm is for exports on this machine, with --master local[N]; this one is {master}")
    archive = make_class_archive(master, dict(settings), verbose=verbose)
    write_line(f"{archive.path}: {archive.path.stat().st_size >> 20} MiB")


def _run_here(
    options: dict[str, Any], place: tuple[str | None, dict[str, str]], tasks: int | None, *, verbose: bool
) -> int:
    from kseg.spark.job import by_context
    from kseg.spark.session import open_context

    wanted = export_of(options, tasks or 1)
    with open_context(*place, verbose=verbose) as context:
        wanted = replace(wanted, parallelism=tasks or context.defaultParallelism)
        return _run(wanted, options, partial(by_context, context))


def _run_by_server(options: dict[str, Any], url: str, tasks: int | None) -> int:
    from kseg.spark.job import by_server
    from kseg.spark.session import open_server, parallelism_of

    wanted = export_of(options, tasks or 1)
    with open_server(url) as session:
        wanted = replace(wanted, parallelism=tasks or parallelism_of(session))
        return _run(wanted, options, partial(by_server, session))


def _run(wanted: "Export", options: dict[str, Any], by_spark: "Callable[[int, ByteProgress], Execute]") -> int:
    """Exports and reports while Spark is still there: its end takes a while, and changes nothing."""
    from kseg.export.run import run_export
    from kseg.output.export import say_refused, write_report
    from kseg.output.progress import ProgressBar

    with ProgressBar(False if options["quiet"] else options["progress"]) as bar:

        def progress(finished: int, total: int, failed: int) -> None:
            bar.show(f"{wanted.destination}, {failed} tasks failed" if failed else wanted.destination, finished, total)

        report = run_export(wanted, by_spark(wanted.parallelism, progress))
    if not options["quiet"]:
        write_report(report, options["output"])
    say_refused(report.refused)
    return report.status
