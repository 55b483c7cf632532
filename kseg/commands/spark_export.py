"""`kseg spark-export`: exports whole topics to Parquet files with Spark, on this machine or a cluster."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kseg.commands.export_options import export_options
from kseg.commands.parameters import Setting, int_number
from kseg.commands.requested_export import export_of, own_arguments
from kseg.errors import UsageError
from kseg.output.stdout import write_line, write_lines

if TYPE_CHECKING:
    from kseg.export.run import Export
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
@click.option("--tasks", type=int_number(1), help="Tasks that run at once; Spark's default parallelism.")
@click.option("--check", is_flag=True, help="Say which Spark, Python and Java would be used, and end.")
@click.option("-v", "--verbose", is_flag=True, help="Let Spark talk on stderr.")
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

    SOURCE and DEST are as for `kseg export`; driver and executors must be able to reach them under the same names.
    """
    _require_spark()
    from kseg.spark.submit import Cluster, submit, submit_with_environment

    if check:
        _write_check()
        return
    if archive is not None and "://" not in archive:
        archive = str(Path(archive).absolute())
    cluster = Cluster(master, deploy_mode, settings, packages, archive)
    is_here = master.startswith("local") or remote is not None or submitted
    if options["dry_run"]:
        _write_dry_run(cluster, own_arguments(command, options), export_of(options, tasks or os.cpu_count() or 1))
    elif is_here:
        place = (None if submitted else master, dict(settings), remote)
        command.exit(_run_here(options, place, tasks, verbose=verbose))
    else:
        send = submit_with_environment if ship_env else submit
        command.exit(send(cluster, own_arguments(command, options), verbose=verbose))


def _require_spark() -> None:
    try:
        import pyarrow  # noqa: F401
        import pyspark  # noqa: F401
    except ImportError as error:
        raise UsageError(f"{error.name} is missing: install kseg's extra `spark`") from error


def _write_check() -> None:
    from kseg.spark.java import versions

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


def _run_here(
    options: dict[str, Any], place: tuple[str | None, dict[str, str], str | None], tasks: int | None, *, verbose: bool
) -> int:
    from kseg.export.run import run_export
    from kseg.output.export import write_report
    from kseg.output.progress import ProgressBar
    from kseg.spark.job import by_spark
    from kseg.spark.session import QUICK_START, open_session, parallelism_of

    master, settings, remote = place
    if master is not None:
        settings = QUICK_START | settings
    with (
        ProgressBar(False if options["quiet"] else options["progress"]) as bar,
        open_session(master, settings, remote=remote, verbose=verbose) as spark,
    ):
        wanted = export_of(options, tasks or parallelism_of(spark))

        def progress(finished: int, total: int, failed: int) -> None:
            bar.show(f"{wanted.destination}, {failed} tasks failed" if failed else wanted.destination, finished, total)

        report = run_export(wanted, by_spark(spark, wanted.parallelism, progress))
    write_report(report, options["output"])
    return report.status
