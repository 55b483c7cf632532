"""`kseg groups`: consumer groups and their commits."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import click

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import pass_over
from kseg.cluster.now import nothing_written, origin_of_ages, settle_now
from kseg.cluster.schemas_topic import find_topic
from kseg.commands.options.command import RowOptions, command
from kseg.coordinators.groups import TOPIC, choose_groups, read_groups
from kseg.coordinators.members import Group, ResetPlan, reset_plan
from kseg.coordinators.offset_map import read_offset_map
from kseg.errors import plural
from kseg.log.selection import PartitionChoice
from kseg.output.chart import CHART, canvas_of_stdout
from kseg.output.forms import RowWriter
from kseg.output.progress import Talk
from kseg.output.streams import flush_stdout, write_lines, write_stdout
from kseg.text.groups import (
    COMMITS,
    GROUPS,
    MEMBERS,
    SHARE_PARTITIONS,
    beyond_end_notes,
    commit_rows,
    group_rows,
    lag_charts,
    member_rows,
    share_partition_rows,
    unreadable_notes,
)
from kseg.text.retention import total_object
from kseg.times import parse_zone, time_or_none

RESET_CSV = "reset-csv"
NOT_A_GLOB = re.compile(r"[^*?\[]+")
"""Pattern that names one group."""
SECTIONS: dict[str, Callable[[RowWriter, list[Group]], None]] = {
    "groups": lambda writer, found: writer.write(GROUPS, group_rows(found)),
    "commits": lambda writer, found: writer.write(COMMITS, commit_rows(found)),
    "share-partitions": lambda writer, found: writer.write(SHARE_PARTITIONS, share_partition_rows(found)),
    "members": lambda writer, found: writer.write(MEMBERS, member_rows(found)),
}
"""Sections that --show can choose, in the order of the output."""
ALONE = {"csv": "commits", RESET_CSV: "reset plan"}
"""Forms of output with one kind of rows, and their kind without --show."""


class GroupsOptions(NamedTuple):
    """The shown groups and rows, and the time that they are shown for."""

    paths: tuple[Path, ...]
    choice: PartitionChoice
    at: str | None
    now: str | None
    zone: str
    pattern: str
    show: str | None
    mapping: Path | None
    talk: Talk
    rows: RowOptions


@command(GroupsOptions)
def groups(options: GroupsOptions) -> None:
    """Show consumer groups, their members and their commits.

    Use `groups` to see the lag of consumer groups, and its cause. It replays __consumer_offsets and compares the
    commits with the ends of logs. Commits never change.

    \b
    Examples:
      kseg groups kafka-logs/ --group 'ord*'
      kseg groups kafka-logs/ --at 2026-11-01T03:00 -o csv
      kseg groups kafka-logs/ -o chart
      kseg groups kafka-logs/ --group orders-billing --at 2026-11-01T03:00 -o reset-csv >orders-billing.csv
      kseg groups __consumer_offsets-7/ -o json | jq 'select(.type == "commit")'

    PATHS are partition directories of __consumer_offsets, log directories, or parents of these (such as all disks of a
    broker); by default the current directory. With --topic and --partition, `groups` shows only commits for these
    partitions, and only groups that have some. Topics have names instead of ids if __cluster_metadata is in one of the
    log directories.

    LAG is the log end offset minus the committed offset, as in kafka-consumer-groups.sh. - means unknown: the partition
    isn't in these log directories, its replica isn't in sync, its topic has another id, its end is damaged, or you gave
    --at. A negative lag means that records were lost, or that the topic was re-created. Its consumer gets
    OFFSET_OUT_OF_RANGE and uses auto.offset.reset. The lag of a group is the sum of the known lags that aren't
    negative, with the number of the others.

    WHY is the cause of a lag: an unreadable batch (stderr has the command that moves the group past it), a group
    without members, an open transaction, or deletion by retention. A group has the cause of its largest lag and, if
    older records still have it, the member that left last. Ages are relative to --now; WHY says if this isn't the
    clock's time.

    The largest lags come first, in JSON and CSV too; then commits beyond the log end, then unknown lags. COORDINATOR
    PARTITION and COMMIT RECORD are the partition and offset in __consumer_offsets. LSO is the last stable offset.
    Commits of an open transaction are pending. Share groups have start offsets if __share_group_state is in PATHS. The
    assignor of a newer group is the brokers' default if no member asks for one.

    -o chart draws the lags of each group's partitions as bars, largest first.

    -o reset-csv is the file for `kafka-consumer-groups.sh --reset-offsets --from-file`, which brings a group back to
    its commits. Lines begin with the group unless --group names one. stderr has the command, with one `--group NAME`
    per group: `--all-groups` would skip groups that a cluster doesn't have yet. With --mapping, it has the offsets of a
    cluster that `kseg restore` filled.

    The exit status is 1 if records can't be read, or if brokers fail at a record and don't load its groups. There is no
    --redact: the output consists of names.
    """
    talk, rows = options.talk, options.rows
    zone = parse_zone(options.zone)
    is_reset, is_chart = rows.output == RESET_CSV, rows.output == CHART
    if (is_reset or is_chart) and options.show is not None:
        raise click.UsageError(f"-o {rows.output} prints only commits; omit --show")
    if options.mapping is not None and not is_reset:
        raise click.UsageError(f"--mapping needs -o {RESET_CSV}")
    given_ms = time_or_none(options.now, zone)
    origin = origin_of_ages([options.at], given_ms, options.paths)
    at_ms = time_or_none(options.at, zone, None if origin is None else origin.ms)
    now = settle_now(at_ms if given_ms is None else given_ms, Cluster(options.paths, pass_over))
    view = read_groups(options.paths, at_ms, talk.refuse, now)
    found = choose_groups(view.groups, options.pattern, options.choice)
    writer = RowWriter(rows.form(zone))
    unmapped = 0
    if options.mapping is not None:
        commits = sum(len(group.commits) for group in found)
        found = read_offset_map(options.mapping).translate_groups(found)
        unmapped = commits - sum(len(group.commits) for group in found)
    plan = reset_plan(found, names_groups=not NOT_A_GLOB.fullmatch(options.pattern)) if is_reset else ResetPlan()
    write_stdout(plan.text.encode("utf-8", "surrogateescape"))
    wanted = options.show or ALONE.get(rows.output)
    charted = list(lag_charts(found, canvas_of_stdout())) if is_chart else []
    write_lines(charted)
    for name, write in SECTIONS.items():
        if wanted in (None, name) and not is_chart:
            write(writer, found)
    if writer.form.has_objects and not talk.is_quiet:
        writer.form.write_object(total_object(writer.count, now, zone))
    flush_stdout()
    has_ages = wanted not in ("members", ALONE[RESET_CSV]) and any(group.lag for group in found) and writer.count
    talk.note(
        *(() if origin is None else (origin.origin(zone),)),
        *(now.sentences() if has_ages else ()),
        *(unreadable.line() for unreadable in view.unreadable),
        *view.notes,
        *beyond_end_notes(found),
        *unreadable_notes(found),
        *((f"commits are omitted, since the map doesn't have their partitions: {unmapped}",) if unmapped else ()),
        *plan.notes,
    )
    if not writer.count and not plan.lines and not charted:
        talk.note(f"no {wanted or 'groups'} to show: {view.reading_text()}")
        if at_ms is not None and not view.groups:
            talk.note(nothing_written(find_topic(options.paths, TOPIC, pass_over).partitions, zone))
    if view.later_count:
        talk.note(
            f"{plural(view.later_count, 'key has', 'keys have')} only later records: their earlier state may"
            " be compacted away"
        )
    has_no_plan = is_reset and not plan.lines
    talk.end_with(bool(view.unreadable or view.unloadable) or has_no_plan)
