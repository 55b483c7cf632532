"""`kseg groups`: consumer groups and their commits."""

from fnmatch import fnmatchcase
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
from kseg.output.refusals import Refusals
from kseg.output.row_writer import RowWriter
from kseg.output.stdout import flush_stdout
from kseg.output.talk import note_unless
from kseg.times import parse_zone, time_or_none
from kseg.views.chosen_commits import groups_with_commits_for
from kseg.views.group_columns import COMMITS, GROUPS, MEMBERS, MemberRow
from kseg.views.groups import read_groups


@click.command()
@paths_argument
@click.option("--at", metavar="TIME", help="As it was then: ISO 8601, milliseconds, -1h; the log's end by itself.")
@zone_option
@partition_options
@click.option("--group", "pattern", metavar="GLOB", default="*", help="Only groups that match, 'ord*' for example.")
@click.option(
    "--show",
    type=click.Choice(["groups", "commits", "members"]),
    help="Only these rows; by default all, in CSV the commits.",
)
@output_option("text", "json", "csv", "table")
@csv_safe_option
@raw_option
@quiet_option
@color_option
@reads_archives("paths")
@click.pass_context
def groups(
    command: click.Context,
    paths: tuple[Path, ...],
    at: str | None,
    zone: str,
    choice: PartitionChoice,
    pattern: str,
    show: str | None,
    output: str,
    csv_safe: bool,
    quiet: bool,
    color: bool | None,
) -> None:
    """Show who committed what, and when: groups, their members and offsets, replayed from __consumer_offsets.

    \b
    Examples:
      kseg groups kafka-logs/ --group 'ord*'
      kseg groups kafka-logs/ --at 2026-11-01T03:00 -o csv
      kseg groups __consumer_offsets-7/ -o json | jq 'select(.type == "commit")'

    PATHS are partition directories of __consumer_offsets, log directories, or parents of these (such as all disks of a
    broker); by default the current directory. Commits of a transaction that hasn't ended are shown as pending. The
    assignor of a newer group is the brokers' default if no member asks for one. Topics have names instead of ids if
    __cluster_metadata is in one of the log directories.

    With --topic and --partition, `groups` shows only commits for these partitions, and only groups that have some.

    There is no --redact, since the output consists of names of groups, members and topics.
    """
    refuse = Refusals()
    place = parse_zone(zone)
    view = read_groups(paths, time_or_none(at, place), refuse)
    matching = (group for group in view.groups if fnmatchcase(group.group, pattern))
    found = list(groups_with_commits_for(choice, matching))
    writer = RowWriter(output, color, csv_safe=csv_safe, zone=place)
    wanted = show or ("commits" if output == "csv" else None)
    if wanted in (None, "groups"):
        writer.write(GROUPS, found)
    if wanted in (None, "members"):
        writer.write(MEMBERS, (MemberRow(group, member) for group in found for member in group.members))
    if wanted in (None, "commits"):
        writer.write(COMMITS, (commit for group in found for commit in (*group.commits, *group.pending_commits)))
    flush_stdout()
    note = note_unless(quiet=quiet)
    for text in (*(unreadable.line() for unreadable in view.unreadable), *view.notes):
        note(text)
    if not writer.count:
        note(f"no {wanted or 'groups'} to show")
    if view.later_count:
        note(f"{view.later_count} keys have only later records: their earlier state may be compacted away")
    command.exit(max(refuse.status, int(bool(view.unreadable))))
