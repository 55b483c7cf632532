"""`kseg metadata`: a cluster's topics, brokers, settings, ACLs, quotas; as rows, or commands that create them."""

from pathlib import Path
from typing import NamedTuple

import click

from kseg.commands.archive_inputs import reads_archives
from kseg.commands.carry_over_options import carry_over_options
from kseg.commands.options import (
    RowOptions,
    color_option,
    csv_safe_option,
    option_values,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    zone_option,
)
from kseg.commands.partition_options import partition_options
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.refusals import Refusals
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless
from kseg.times import parse_zone
from kseg.views.carry_over.carried_script import CarryOver, carry_over_script
from kseg.views.cluster import require_topic
from kseg.views.metadata import Until, read_cluster_metadata
from kseg.views.metadata_columns import KINDS, cluster_sections
from kseg.views.metadata_output import write_script, write_sections
from kseg.views.replica_places import ReplicaPlaces


class MetadataOptions(NamedTuple):
    """Which rows are shown, and as of when."""

    at: str | None
    zone: str
    show: str | None
    quiet: bool


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
    type=click.Choice(KINDS),
    help="Only these rows; by default all, in CSV the partitions.",
)
@carry_over_options
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
@option_values(options=MetadataOptions, rows=RowOptions)
def metadata(
    command: click.Context,
    paths: tuple[Path, ...],
    choice: PartitionChoice,
    script: CarryOver | None,
    options: MetadataOptions,
    rows: RowOptions,
) -> None:
    """Show a KRaft cluster from its __cluster_metadata: topics, brokers, settings, ACLs, quotas, voters, features.

    \b
    Examples:
      kseg metadata kafka-logs/ --show partitions
      kseg metadata __cluster_metadata-0/ --at 2026-11-01T03:00 --topic 'ord*'
      kseg metadata kafka-logs/ --as-commands --bootstrap-server new:9092 >carry-over.sh
      kseg metadata __cluster_metadata-0/ --at 203500 -o json | jq 'select(.type == "topic") | .topicId'

    PATHS are the directory __cluster_metadata-0, log directories (one of which has it), or parents of these; by default
    the current directory. The replay starts with the newest usable checkpoint. Each replica's directory is shown: by
    its path if it is among PATHS, otherwise by its id. With --topic and --partition, `metadata` shows only these
    topics, their partitions and configurations. Passwords are hidden.

    --as-commands prints a shell script of Kafka's own tools that makes features, topics, settings, ACLs and quotas anew
    in another cluster; with --show only those. Passwords, SCRAM credentials and tokens are left out and named.
    """
    refuse = Refusals()
    zone, note = parse_zone(options.zone), note_unless(quiet=options.quiet)
    found = read_cluster_metadata(paths, Until.parse(options.at, zone), refuse)
    require_topic(found, choice)
    if script is not None:
        write_script(carry_over_script(found, script), note)
    else:
        sections = cluster_sections(found, ReplicaPlaces(found.log_dirs, are_of_now=options.at is None), choice)
        writer = RowWriter(rows.form(zone))
        write_sections(found, sections, writer, options.show)
        if not writer.count:
            note(f"no {options.show or 'metadata'} to show")
    flush_stdout()
    for text in found.notes():
        note(text)
    command.exit(max(refuse.status, int(bool(found.unreadable) or found.missing_before is not None)))
