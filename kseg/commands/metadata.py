"""`kseg metadata`: a cluster's topics, partitions, brokers, configurations and features."""

from pathlib import Path

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.options import (
    color_option,
    csv_safe_option,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    zone_option,
)
from kseg.commands.partition_options import partition_options
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.json_lines import write_json
from kseg.output.refusals import Refusals
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless
from kseg.times import parse_zone
from kseg.views.metadata import Until, read_cluster_metadata
from kseg.views.metadata_columns import METADATA, cluster_sections, require_topic
from kseg.views.replica_places import ReplicaPlaces


@click.command()
@paths_argument
@click.option(
    "--at",
    metavar="OFFSET|TIME",
    help="Show the state after this offset, or at this time: ISO 8601, 13 digits of milliseconds, -1h.",
)
@zone_option
@partition_options
@click.option(
    "--show",
    type=click.Choice(["features", "brokers", "controllers", "topics", "partitions", "configs"]),
    help="Only these rows; by default all, in CSV the partitions.",
)
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
def metadata(
    command: click.Context,
    paths: tuple[Path, ...],
    at: str | None,
    zone: str,
    choice: PartitionChoice,
    show: str | None,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
) -> None:
    """Show a KRaft cluster from its __cluster_metadata: topics, partitions, brokers, configurations, features.

    \b
    Examples:
      kseg metadata kafka-logs/ --show partitions
      kseg metadata __cluster_metadata-0/ --at 2026-11-01T03:00 --topic 'ord*'
      kseg metadata __cluster_metadata-0/ --at 203500 -o json | jq 'select(.type == "topic") | .topicId'

    PATHS are the directory __cluster_metadata-0, log directories (one of which has it), or parents of these; by default
    the current directory. The replay starts with the newest usable checkpoint. Each replica's directory is shown: by
    its path if it is among PATHS, otherwise by its id. With --topic and --partition, `metadata` shows only these
    topics, their partitions and configurations. Passwords are hidden.
    """
    refuse = Refusals()
    place = parse_zone(zone)
    found = read_cluster_metadata(paths, Until.parse(at, place), refuse)
    require_topic(found, choice)
    places = ReplicaPlaces(found.log_dirs, are_of_now=at is None)
    writer = RowWriter(output, color, csv_safe=csv_safe, zone=place)
    wanted = show or ("partitions" if output == "csv" else None)
    if wanted is None and output == "json":
        write_json(METADATA.in_zone(place).as_object(found))
    for name, section, rows in cluster_sections(found, places, choice):
        if wanted in (None, name):
            writer.write(section, rows)
    flush_stdout()
    note = note_unless(quiet=quiet)
    for text in found.notes():
        note(text)
    if not writer.count:
        note(f"no {wanted or 'metadata'} to show")
    command.exit(max(refuse.status, int(bool(found.unreadable) or found.missing_before is not None)))
