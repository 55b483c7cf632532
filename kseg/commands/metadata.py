"""`kseg metadata`: shows a cluster's metadata, as rows or as commands that re-create it."""

from collections.abc import Mapping
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple, cast

import click

from kseg.cluster.metadata import Until
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import require_topic
from kseg.cluster.partitions import ReplicaPlaces
from kseg.cluster.recreate_script import CarryOver, Target, carry_over_script
from kseg.commands.inputs import reads_archives
from kseg.commands.option_groups import partition_options
from kseg.commands.options import (
    Command,
    RowOptions,
    bootstrap_server_option,
    color_option,
    csv_safe_option,
    option_values,
    output_option,
    paths_argument,
    quiet_option,
    raw_option,
    server_properties_option,
    zone_option,
)
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.progress import Refusals, note_unless
from kseg.output.streams import flush_stdout
from kseg.output.table import RowWriter
from kseg.text.metadata import KINDS, SETTINGS, cluster_sections, setting_rows, write_script, write_sections
from kseg.times import parse_zone


def carry_over_options(command: Command) -> Command:
    """`--as-commands` and what goes with it; the command gets them as one `script`, None without --as-commands."""

    @click.option(
        "--as-commands",
        is_flag=True,
        help="Print a shell script of kafka-topics.sh, kafka-configs.sh, kafka-acls.sh that makes it anew elsewhere.",
    )
    @click.option(
        "--keep-brokers",
        is_flag=True,
        help="With --as-commands: each replica on the broker with the same id, instead of as many replicas.",
    )
    @bootstrap_server_option("With --as-commands: the other cluster's address.")
    @click.option(
        "--command-config",
        metavar="FILE",
        help="With --as-commands: the file of client settings for the tools, if the other cluster wants a login.",
    )
    @wraps(command)
    def describing(*arguments: Any, **options: Any) -> Any:
        return command(*arguments, script=_wanted(options), **options)

    return cast(Command, describing)


def _wanted(options: dict[str, Any]) -> CarryOver | None:
    """The script that the options describe; removes them from `options`."""
    server, config = options.pop("bootstrap_server"), options.pop("command_config")
    keeps_brokers, is_wanted = options.pop("keep_brokers"), options.pop("as_commands")
    if is_wanted and options["output"] != "text":
        raise UsageError("--as-commands prints a shell script: leave -o out")
    if not is_wanted:
        if keeps_brokers or config is not None:
            raise UsageError("--keep-brokers and --command-config need --as-commands")
        return None
    return CarryOver(Target(server, config), options["choice"], options["show"], keeps_brokers)


class MetadataOptions(NamedTuple):
    """Which rows are shown, and as of when."""

    at: str | None
    zone: str
    show: str | None
    settings: bool
    server_properties: Mapping[str, str]
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
@click.option("--settings", is_flag=True, help="Show all settings that are in force for topics, and who sets them.")
@server_properties_option
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
      kseg metadata kafka-logs/ --settings --topic orders
      kseg metadata kafka-logs/ --as-commands --bootstrap-server new:9092 >carry-over.sh
      kseg metadata __cluster_metadata-0/ --at 203500 -o json | jq 'select(.type == "topic") | .topicId'

    PATHS are the directory __cluster_metadata-0, log directories (one of which has it), or parents of these; by default
    the current directory. The replay starts with the newest usable checkpoint. Each replica's directory is shown: by
    its path if it is among PATHS, otherwise by its id. With --topic and --partition, `metadata` shows only these
    topics, their partitions and configurations. Passwords are hidden.

    --settings shows each setting that is in force for a topic, as `kafka-configs.sh --describe --all` does: the topic's
    own, those of the broker, the cluster's defaults, what --server-properties sets, and Kafka's defaults. The broker is
    that of the file, else the only one in PATHS. Without the file, Kafka's defaults are marked where a broker's file
    may set something else.

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
        writer = RowWriter(rows.form(zone))
        if options.settings:
            writer.write(SETTINGS, setting_rows(found, options.server_properties, choice))
        else:
            sections = cluster_sections(found, ReplicaPlaces(found, are_of_now=options.at is None), choice)
            write_sections(found, sections, writer, options.show)
        if not writer.count:
            note(f"no {options.show or 'metadata'} to show")
    flush_stdout()
    for text in found.notes():
        note(text)
    command.exit(max(refuse.status, int(bool(found.unreadable) or found.missing_before is not None)))
