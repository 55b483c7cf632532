"""`kseg retain`: which segments retention would delete, and when."""

from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import new_directory_option, now_option, paths_argument, report_form_option
from kseg.commands.parameters import int_number, is_given, long_number
from kseg.commands.partition_options import partition_options
from kseg.errors import UsageError
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.log.partition.roll import RETENTION_MS, UNLIMITED, RetentionSettings
from kseg.log.retain import copy_retained, retain_partition
from kseg.output.refusals import Refusals
from kseg.output.retain import RetentionReport
from kseg.output.stdout import flush_stdout
from kseg.times import now_ms, parse_time
from kseg.views.topic_retention import TopicRetention

_HOUR_MS = 3_600_000


@click.command()
@paths_argument
@partition_options
@click.option("--retention-ms", type=long_number(-1), help="As retention.ms, before --retention-hours; -1 none.")
@click.option(
    "--retention-hours", type=int_number(-1), help=f"Like log.retention.hours: {RETENTION_MS // _HOUR_MS}; -1 for none."
)
@click.option(
    "--retention-bytes",
    type=long_number(-1),
    default=UNLIMITED,
    show_default=True,
    help="Like retention.bytes; -1 for none.",
)
@now_option
@report_form_option("text", "json", "timeline")
@new_directory_option(
    "The new directory, for a copy without the segments that would be deleted.", form_option="--format"
)
@reads_archives("paths")
@click.pass_context
def retain(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    retention_ms: int | None,
    retention_hours: int | None,
    retention_bytes: int,
    now: str | None,
    form: str,
    directory: Path | None,
) -> None:
    """Show which segments retention would delete, and when, by time, by size and by log start offset.

    \b
    Examples:
      kseg retain orders-0/ --retention-hours 24
      kseg retain kafka-logs/ --retention-bytes 1073741824 --format json
      kseg retain orders-0/ --now 2026-12-01T00:00 --format timeline

    Settings that you don't give come from the topics' settings, including cleanup.policy, if __cluster_metadata is in
    the same log directory, otherwise from Kafka's defaults. A partition in cleaner-offset-checkpoint is compacted: if
    its policy isn't known, the output says so, and nothing is deleted by age or size. __cluster_metadata itself is
    retained by its snapshots, with the defaults of metadata.max.retention.ms and .bytes. At the end are sums by topic,
    by log directory, and in total.

    PATHS are partition directories, log directories, or parents of these. Nothing is deleted: -o copies one partition
    into a new directory, without the segments that would be deleted. If all would be, the copy has an empty one, as a
    broker rolls it at the log end offset.
    """
    settings = RetentionSettings(
        now_ms() if now is None else parse_time(now), _retention_ms(retention_ms, retention_hours), retention_bytes
    )
    is_known = {
        "retention_ms": retention_ms is not None or retention_hours is not None,
        "retention_bytes": is_given(command, "retention_bytes"),
    }
    topics = TopicRetention(settings, [name for name, is_told in is_known.items() if is_told])
    refuse = Refusals()
    partitions = list(find_partitions(paths, refuse, choice))
    if directory is not None and len(partitions) != 1:
        raise UsageError(f"-o copies one partition, but there are {len(partitions)} here")
    if directory is not None:
        check_outside(directory, paths)
    copied, report = None, RetentionReport(form, settings.now_ms)
    for partition in partitions:
        retained = retain_partition(partition, topics.of(partition))
        copied = None if directory is None else copy_retained(partition, retained, directory)
        report.take(partition, retained)
    report.finish(directory, copied)
    flush_stdout()
    command.exit(refuse.status)


def _retention_ms(milliseconds: int | None, hours: int | None) -> int:
    if milliseconds is not None:
        return milliseconds
    if hours is None:
        return RETENTION_MS
    return hours * _HOUR_MS if hours >= 0 else UNLIMITED
