"""`kseg metadata`: shows a cluster's metadata, as rows or as commands that re-create it."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.metadata import Until
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import require_topic
from kseg.cluster.partitions import ReplicaPlaces
from kseg.cluster.recreate_script import CarryOver, Target, carry_over_script
from kseg.commands.options.command import RowOptions, command
from kseg.errors import UsageError
from kseg.log.selection import PartitionChoice
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout
from kseg.text.metadata import SETTINGS, cluster_sections, setting_rows, write_script, write_sections
from kseg.times import parse_zone


class ScriptOptions(NamedTuple):
    """Whether a script is printed instead of rows, and for which cluster."""

    as_commands: bool
    keep_brokers: bool
    bootstrap_server: str
    command_config: str | None


class MetadataOptions(NamedTuple):
    """Which rows are shown, and as of when."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    at: str | None
    zone: str
    show: str | None
    settings: bool
    server_properties: Mapping[str, str]
    talk: Talk
    script: ScriptOptions
    rows: RowOptions

    def carry_over(self) -> CarryOver | None:
        """The script that is to be printed, if one is. Raises UsageError for options that don't go together."""
        script = self.script
        if not script.as_commands:
            if script.keep_brokers or script.command_config is not None:
                raise UsageError("--keep-brokers and --command-config need --as-commands")
            return None
        if self.rows.output != "text":
            raise UsageError("--as-commands prints a shell script: leave -o out")
        target = Target(script.bootstrap_server, script.command_config)
        return CarryOver(target, self.choice, self.show, script.keep_brokers)


@command(MetadataOptions)
def metadata(options: MetadataOptions) -> None:
    """Show a KRaft cluster's metadata.

    __cluster_metadata has topics, brokers, settings, ACLs, quotas, voters and features.

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
    talk, choice, script, zone = options.talk, options.choice, options.carry_over(), parse_zone(options.zone)
    found = read_cluster_metadata(options.paths, Until.parse(options.at, zone), talk.refuse)
    require_topic(found, choice)
    if script is not None:
        write_script(carry_over_script(found, script), talk.note)
    else:
        writer = RowWriter(options.rows.form(zone))
        if options.settings:
            writer.write(SETTINGS, setting_rows(found, options.server_properties, choice))
        else:
            sections = cluster_sections(found, ReplicaPlaces(found, are_of_now=options.at is None), choice)
            write_sections(found, sections, writer, options.show)
        if not writer.count:
            talk.note(f"no {options.show or 'metadata'} to show")
    flush_stdout()
    for text in found.notes():
        talk.note(text)
    talk.end_with(bool(found.unreadable) or found.missing_before is not None)
