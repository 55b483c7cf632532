"""`kseg metadata`: shows a cluster's metadata, as rows or as commands that re-create it."""

from collections.abc import Iterable, Mapping
from datetime import tzinfo
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.change_log import ChangeChoice, read_changes
from kseg.cluster.directories import pass_over
from kseg.cluster.metadata import Until
from kseg.cluster.metadata_changes import changes_between
from kseg.cluster.metadata_copy import read_cluster_metadata
from kseg.cluster.model import ClusterMetadata
from kseg.cluster.now import nothing_written, origin_of_ages
from kseg.cluster.partitions import ReplicaPlaces
from kseg.cluster.recreate_script import CarryOver, Target, carry_over_script
from kseg.cluster.schemas_topic import find_topic
from kseg.commands.options.command import RowOptions, command
from kseg.errors import OpenError, UsageError, plural
from kseg.log.partition import METADATA_TOPIC
from kseg.log.selection import PartitionChoice
from kseg.output.forms import RowWriter, TextForm
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines
from kseg.text.metadata import SETTINGS, cluster_sections, setting_rows, write_script, write_sections
from kseg.text.metadata_changes import (
    CHANGES,
    DIFFERENCES,
    SUMMARY,
    ChangeRow,
    change_notes,
    changed_kind,
    summary,
)
from kseg.times import parse_zone, time_or_none, time_text

COMMANDS = "commands"
"""The form of output that is a shell script."""


class ScriptOptions(NamedTuple):
    """The cluster of a script, and the kept broker ids."""

    keep_brokers: bool
    bootstrap_server: str
    command_config: str | None


class ChangeOptions(NamedTuple):
    """Options of printed changes and differences, which take the place of rows."""

    changes: bool
    diff: str | None
    from_time: str | None
    to_time: str | None

    def check(self, others: Mapping[str, object]) -> None:
        """Raise UsageError for options that don't go together; others: what else is asked for, by its option."""
        if not self.changes and (self.from_time is not None or self.to_time is not None):
            raise UsageError("--from-time and --to-time need --changes")
        for option, is_given in (("--changes", self.changes), ("--diff", self.diff is not None)):
            given = [name for name, value in others.items() if value] if is_given else []
            if given:
                raise UsageError(f"{option} prints its own rows; omit {given[0]}")
        if self.changes and self.diff is not None:
            raise UsageError("--changes lists all changes, --diff compares two states; specify one of them")


class MetadataOptions(NamedTuple):
    """The shown rows, and the time that they are shown for."""

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
    moments: ChangeOptions

    def carry_over(self) -> CarryOver | None:
        """Return the script to print, or None if there isn't one.

        Raises UsageError for options that exclude each other.
        """
        script = self.script
        if self.rows.output != COMMANDS:
            if script.keep_brokers or script.command_config is not None:
                raise UsageError("--keep-brokers and --command-config need -o commands")
            return None
        target = Target(script.bootstrap_server, script.command_config)
        return CarryOver(target, self.choice, self.show, script.keep_brokers)


@command(MetadataOptions)
def metadata(options: MetadataOptions) -> None:
    """Show a KRaft cluster's metadata.

    Use `metadata` to see topics, brokers, settings, ACLs, quotas, voters and features as the controllers wrote them,
    now or at an earlier time. It replays __cluster_metadata, which never changes.

    \b
    Examples:
      kseg metadata kafka-logs/ --show partitions
      kseg metadata __cluster_metadata-0/ --at 2026-11-01T03:00 --topic 'ord*'
      kseg metadata kafka-logs/ --changes --from-time -2d
      kseg metadata kafka-logs/ --at -2d --diff now
      kseg metadata kafka-logs/ --settings --topic orders
      kseg metadata kafka-logs/ -o commands --bootstrap-server new:9092 >carry-over.sh
      kseg metadata __cluster_metadata-0/ --at 203500 -o json | jq 'select(.type == "topic") | .topicId'

    PATHS are the directory __cluster_metadata-0, log directories (one of which has it), or parents of these; by default
    the current directory. The replay starts with the newest usable checkpoint. With --topic and --partition, `metadata`
    shows only these topics, their partitions and configurations. A replica's directory is shown by its path if it is in
    PATHS, otherwise by its id. 13 digits in --at or --diff are a time in milliseconds. Passwords are hidden.

    --changes prints one line per change, with the values before and after: topics, partitions, leaders, replicas,
    settings, ACLs, quotas, brokers, features, users and tokens. The time is when a controller wrote the change. If the
    log begins with a snapshot, earlier changes are unknown.

    --diff compares the shown state with another one: at an offset or time, or in another directory, both at --at. The
    exit status is 1 if they differ.

    --settings shows each setting that is in force for a topic, as `kafka-configs.sh --describe --all` does. Its source
    is the topic, the broker, the cluster's defaults, --server-properties, or Kafka's defaults. The broker is the one in
    that file, otherwise the only one in PATHS. Without the file, a mark shows Kafka's defaults that a broker's file may
    override.

    -o commands is a shell script for Kafka's tools that re-creates features, topics, settings, ACLs and quotas in
    another cluster; --show limits it to one of these. It omits passwords, SCRAM credentials and tokens, and lists
    them.
    """
    talk, choice, script, zone = options.talk, options.choice, options.carry_over(), parse_zone(options.zone)
    own_rows = {"--settings": options.settings, "-o commands": script}
    if options.moments.changes:
        options.moments.check({**own_rows, "--at": options.at})
        _write_changes(options, zone)
        return
    options.moments.check(own_rows)
    now = _now_of_ages(options, (options.at, str(options.moments.diff)), zone)  # a member of an archive is no text
    found = read_cluster_metadata(options.paths, Until.parse(options.at, zone, now), talk.refuse)
    if options.moments.diff is not None:
        _write_differences(options, found, _other_state(options, options.moments.diff, zone, now), zone)
        return
    notes = list(found.notes())
    choice.require_topics([topic.name for topic in found.topics])
    if script is not None:
        write_script(carry_over_script(found, script), talk.note)
    else:
        writer = RowWriter(options.rows.form(zone))
        if options.at is not None and isinstance(writer.form, TextForm):
            write_lines(f"Incomplete: {note}" for note in notes)
            notes = []
        if options.settings:
            writer.write(SETTINGS, setting_rows(found, options.server_properties, choice))
        else:
            sections = cluster_sections(found, ReplicaPlaces(found, are_of_now=options.at is None), choice)
            write_sections(found, sections, writer, options.show)
        if not writer.count:
            talk.note(f"no {options.show or 'metadata'} to show")
        if found.offset < 0 and options.at is not None:
            talk.note(_nothing_written(options, zone))
    flush_stdout()
    _end(options, found, notes)


def _now_of_ages(options: MetadataOptions, times: Iterable[str | None], zone: tzinfo) -> int | None:
    """Return the time that ages such as -1d count back from, with a note of it; None without such a time."""
    now = origin_of_ages(times, None, options.paths)
    if now is None:
        return None
    options.talk.note(now.origin(zone))
    return now.ms


def _end(options: MetadataOptions, found: ClusterMetadata, notes: Iterable[str]) -> None:
    """Say what a state lacks."""
    options.talk.note(*notes)
    options.talk.end_with(bool(found.unreadable) or found.missing_before is not None)


def _write_changes(options: MetadataOptions, zone: tzinfo) -> None:
    """Write the changes that are wanted, and what was looked through for them."""
    talk, moments = options.talk, options.moments
    now = _now_of_ages(options, (moments.from_time, moments.to_time), zone)
    times = time_or_none(moments.from_time, zone, now), time_or_none(moments.to_time, zone, now)
    if times[0] is not None and times[1] is not None and times[0] > times[1]:
        raise UsageError("--from-time is later than --to-time")
    wanted = ChangeChoice(options.choice, changed_kind(options.show), *times)
    changes = read_changes(options.paths, wanted, talk.refuse)
    writer = RowWriter(options.rows.form(zone))
    writer.write(CHANGES, map(ChangeRow.of, changes))
    if writer.form.has_objects and not talk.is_quiet:
        writer.form.write_object(writer.prepare(SUMMARY).as_object(changes))
    flush_stdout()
    talk.note(summary(changes, wanted.from_ms, zone))
    _end(options, changes.end_state, change_notes(changes))


def _other_state(options: MetadataOptions, other: str, zone: tzinfo, now: int | None) -> ClusterMetadata:
    """Read the state to compare with: of the same log at another moment, or at a path that exists."""
    path = Path(other)
    if path.exists():
        return read_cluster_metadata(path, Until.parse(options.at, zone, now), options.talk.refuse)
    if "/" in other:
        raise OpenError("no such file or directory", path)
    return read_cluster_metadata(options.paths, Until.parse(other, zone, now), options.talk.refuse)


def _write_differences(options: MetadataOptions, before: ClusterMetadata, after: ClusterMetadata, zone: tzinfo) -> None:
    """Write what differs between two states, and end with 1 if anything does."""
    talk, wanted = options.talk, ChangeChoice(options.choice, changed_kind(options.show))
    writer = RowWriter(options.rows.form(zone))
    writer.write(DIFFERENCES, map(ChangeRow.of, filter(wanted.takes, changes_between(before, after))))
    flush_stdout()
    moments = (_moment(each, zone) for each in (before, after))
    many = plural(writer.count, "difference") if writer.count else "no difference"
    talk.note(f"{many} between {' and '.join(moments)}")
    if min(before.offset, after.offset) < 0:
        talk.note(_nothing_written(options, zone))
    told = dict.fromkeys(before.notes())
    _end(options, before, told)
    _end(options, after, (note for note in after.notes() if note not in told))
    talk.end_with(writer.count > 0)


def _moment(state: ClusterMetadata, zone: tzinfo) -> str:
    """Return the last record of a state, in words."""
    return "the empty state" if state.offset < 0 else f"offset {state.offset}, {time_text(state.timestamp, zone)}"


def _nothing_written(options: MetadataOptions, zone: tzinfo) -> str:
    return nothing_written(find_topic(options.paths, METADATA_TOPIC, pass_over).partitions, zone)
