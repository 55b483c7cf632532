"""`kseg retain`: which segments retention would delete, and when."""

import time
from pathlib import Path

import click

from kseg.archive.untouched import check_outside
from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import paths_argument
from kseg.commands.parameters import NewDirectory, int_number, is_given, long_number
from kseg.errors import UsageError
from kseg.log.partition.log_dir import find_partitions
from kseg.log.partition.roll import RETENTION_MS, UNLIMITED, RetentionSettings
from kseg.log.retain import retain_partition, write_retained
from kseg.output.json_lines import write_json
from kseg.output.refusals import Refusals
from kseg.output.retain import COLUMNS, RetainedTotals, retained_object, timeline, written_line, written_object
from kseg.output.stdout import flush_stdout, write_line
from kseg.output.table import aligned_lines
from kseg.system.new_directory import new_directory
from kseg.times import parse_time
from kseg.views.topic_retention import TopicRetention

_HOUR_MS = 3_600_000


@click.command()
@paths_argument
@click.option("--retention-ms", type=long_number(-1), help="As retention.ms, before --retention-hours; -1 none.")
@click.option(
    "--retention-hours", type=int_number(-1), help=f"As log.retention.hours: {RETENTION_MS // _HOUR_MS}; -1 none."
)
@click.option(
    "--retention-bytes", type=long_number(-1), default=UNLIMITED, show_default=True, help="As retention.bytes; -1 none."
)
@click.option("--now", metavar="TIME", help="Time to judge by; the clock's by itself.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json", "timeline"]),
    default="text",
    show_default=True,
    help="Of the report.",
)
@click.option(
    "-o",
    "--output",
    "directory",
    type=NewDirectory("--format"),
    help="The new directory, for a copy without what would go.",
)
@reads_archives("paths")
@click.pass_context
def retain(
    command: click.Context,
    paths: tuple[Path, ...],
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

    What isn't given is taken from the topics' settings, cleanup.policy too, where __cluster_metadata lies in the same
    log directory, else it is Kafka's default. A partition that cleaner-offset-checkpoint names is compacted: where its
    policy isn't known that is said, and nothing goes by age or size. __cluster_metadata itself goes by its snapshots,
    as with metadata.max.retention.ms and .bytes by default. At the end are sums by topic, by log directory, and of all.

    PATHS are partition directories, log directories, or parents of these. Nothing is deleted: with -o one partition is
    copied into a new directory, without the segments that would go. If all would, an empty one is there, as a broker
    rolls it at the log end offset.
    """
    given = {"retention_bytes"} if is_given(command, "retention_bytes") else set()
    if retention_ms is not None or retention_hours is not None:
        given.add("retention_ms")
    if retention_ms is None:
        hours = RETENTION_MS // _HOUR_MS if retention_hours is None else retention_hours
        retention_ms = hours * _HOUR_MS if hours >= 0 else UNLIMITED
    now_ms = time.time_ns() // 1_000_000 if now is None else parse_time(now)
    topics = TopicRetention(RetentionSettings(now_ms, retention_ms, retention_bytes), given)
    refuse = Refusals()
    partitions = list(find_partitions(paths, refuse))
    if directory is not None and len(partitions) != 1:
        raise UsageError(f"-o copies one partition, {len(partitions)} are here")
    if directory is not None:
        check_outside(directory, paths)
    written, totals = None, RetainedTotals()
    for partition in partitions:
        retained = retain_partition(partition, topics.of(partition))
        totals.add(partition, retained)
        if directory is not None:
            with new_directory(directory) as unfinished:
                written = write_retained(partition, retained, unfinished)
        if form == "json":
            for each in retained:
                write_json(retained_object(partition, each))
            continue
        lines = aligned_lines(COLUMNS, retained) if form == "text" else timeline(retained, now_ms)
        for line in (str(partition.path), *(f"  {line}" for line in lines)):
            write_line(line)
    if form == "json":
        for sums in totals.objects():
            write_json(sums)
    else:
        for line in totals.lines():
            write_line(line)
    if directory is not None and written is not None:
        if form == "json":
            write_json(written_object(directory, written))
        else:
            write_line(written_line(directory, written))
    flush_stdout()
    command.exit(refuse.status)
