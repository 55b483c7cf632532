"""Columns of `kseg groups`."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from functools import partial
from typing import NamedTuple, TypeVar

from kseg.coordinators.members import (
    AssignedTasks,
    AssignedTopic,
    Group,
    GroupMember,
    OffsetCommit,
    SharePartition,
    beyond_end_sentence,
    commits_beyond_end,
    group_option,
)
from kseg.errors import plural
from kseg.output.chart import BAR_GAP, LEAST_BAR, Canvas, bar
from kseg.output.columns import FOR_PEOPLE, NOT_SHOWN, Column, Field, iso_time_column, timestamp_column
from kseg.output.table import Section, aligned_lines
from kseg.text import fields
from kseg.text.lag_reasons import group_lag_reason, lag_reason

Row = TypeVar("Row")
Lagging = TypeVar("Lagging", OffsetCommit, SharePartition)


def unless_negative(number: int) -> int | None:
    """Return a number, or None for a negative number, which means none."""
    return None if number < 0 else number


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Return numbers for people."""
    return ",".join(map(str, numbers))


class MemberRow(NamedTuple):
    """A member with its group."""

    group: Group
    member: GroupMember


def member_rows(groups: Iterable[Group]) -> Iterator[MemberRow]:
    """Yield the members of the given groups."""
    return (MemberRow(group, member) for group in groups for member in group.members)


def commit_rows(groups: Iterable[Group]) -> list[OffsetCommit]:
    """Return the commits of the given groups, largest lag first."""
    return _largest_lag_first(commit for group in groups for commit in (*group.commits, *group.pending_commits))


def share_partition_rows(groups: Iterable[Group]) -> list[SharePartition]:
    """Return the share-partitions of the given groups, largest lag first."""
    return _largest_lag_first(partition for group in groups for partition in group.share_partitions)


def group_rows(groups: Iterable[Group]) -> list[Group]:
    """Return groups, largest lag first; then groups with only commits beyond the log end, then unknown lags."""

    def order(group: Group) -> tuple[int, int, str]:
        lags = group.lags
        known = None if lags.lag is None and not lags.beyond_end else -1 if lags.lag is None else lags.lag
        return (*_lag_order(known), group.group)

    return sorted(groups, key=order)


def _largest_lag_first(rows: Iterable[Lagging]) -> list[Lagging]:
    """Return rows with known lags, then rows beyond the log end, then unknown lags; equal rows by name."""
    return sorted(rows, key=lambda row: (*_lag_order(row.lag), row.group, row.topic, row.partition))


def _lag_order(lag: int | None) -> tuple[int, int]:
    if lag is None:
        return 2, 0
    return (1, lag) if lag < 0 else (0, -lag)


MOST_TOLD = 20
"""Most commits beyond the end of a log that are listed. If there are more, a note has their number."""
BEYOND_END = (
    "records were lost, or the topic was re-created; the consumer gets OFFSET_OUT_OF_RANGE and uses auto.offset.reset"
)


def beyond_end_notes(groups: Iterable[Group]) -> Iterator[str]:
    """Yield lines about commits beyond the end of a log, and the consequence for consumers."""
    found = list(commits_beyond_end(groups))
    yield from (f"{beyond_end_sentence(commit)}: {BEYOND_END}" for commit in found[:MOST_TOLD])
    if len(found) > MOST_TOLD:
        yield (
            f"{plural(len(found) - MOST_TOLD, 'more commit is', 'more commits are')} beyond the log end; -o json"
            " lists them with negative lags"
        )


def unreadable_notes(groups: Iterable[Group]) -> Iterator[str]:
    """Yield the commands that move groups past offsets that can't be read."""
    found = [commit for group in groups for commit in group.commits if commit.unreadable is not None]
    for commit in found[:MOST_TOLD]:
        from kseg.text.salvage import reset_command

        place = f"group {commit.group}: {commit.topic}-{commit.partition}: offset {commit.offset} can't be read"
        next_good = commit.unreadable and commit.unreadable.next_good
        command = None
        if next_good is not None:
            command = reset_command(commit.topic, commit.partition, next_good, group_option(commit.group))
        yield place if command is None else f"{place}; to move the group past it: {command}"
    if len(found) > MOST_TOLD:
        more = plural(len(found) - MOST_TOLD, "more commit", "more commits")
        yield f"{more} at unreadable offsets; look for `can't be read` in the column WHY"


def _known_or_dash(field: Field, title: str, value: Callable[[Row], int | None], rank: int = 1) -> Column[Row]:
    """Return a column of numbers that may be unknown."""

    def show(row: Row) -> str:
        number = value(row)
        return "-" if number is None else str(number)

    return Column(field, title, value, show, rank=rank)


def _log_end_offset(row: OffsetCommit | SharePartition) -> int | None:
    return None if row.known_end is None else row.known_end.log_end_offset


def _last_stable_offset(row: OffsetCommit) -> int | None:
    return None if row.known_end is None else row.known_end.last_stable_offset


def _assigned_object(topic: AssignedTopic) -> dict[str, object]:
    return {"topic": topic.topic, "topicId": topic.topic_id, "partitions": list(topic.partitions)}


def _task_object(tasks: AssignedTasks) -> dict[str, object]:
    return {"kind": tasks.kind, "subtopologyId": tasks.subtopology_id, "partitions": list(tasks.partitions)}


def _assignment(member: GroupMember) -> list[dict[str, object]] | None:
    """Return the assignment of a member: topics, or tasks of a streams application, or None if unknown."""
    return _format_assigned(member.assignment, member.tasks)


def _target(member: GroupMember) -> list[dict[str, object]] | None:
    return _format_assigned(member.target, member.target_tasks)


def _format_assigned(
    topics: tuple[AssignedTopic, ...] | None, tasks: tuple[AssignedTasks, ...] | None
) -> list[dict[str, object]] | None:
    if tasks is not None:
        return [*map(_task_object, tasks)]
    return None if topics is None else [*map(_assigned_object, topics)]


def _assignment_text(topics: tuple[AssignedTopic, ...] | None, tasks: tuple[AssignedTasks, ...] | None) -> str:
    texts = [f"{topic.topic or topic.topic_id}:{numbers_text(topic.partitions)}" for topic in topics or ()]
    texts += [f"{each.kind} {each.subtopology_id}:{numbers_text(each.partitions)}" for each in tasks or ()]
    return " ".join(texts)


def _target_text(member: GroupMember) -> str:
    """Return the target assignment of a member, if it differs from the current assignment."""
    current = _assignment_text(member.assignment, member.tasks)
    target = _assignment_text(member.target, member.target_tasks)
    return "" if target == current else target


def lags_text(group: Group) -> str:
    """Return the sum of a group's lags, and the commits that the sum omits."""
    return group.lags.text("share-partition" if group.share_partitions else "commit")


def _lag_reason_column(value: Callable[[Row, tzinfo], str | None], zone: tzinfo = UTC) -> Column[Row]:
    """Return the column of reasons for a lag, with times in a zone."""
    in_zone = partial(_lag_reason_column, value)
    return Column(fields.LAG_REASON, "WHY", lambda row: value(row, zone), in_zone=in_zone, rank=0, is_sentence=True)


_GROUP_WHY: Column[Group] = _lag_reason_column(group_lag_reason)
_WHY: Column[OffsetCommit | SharePartition] = _lag_reason_column(lag_reason)
GROUPS: Section[Group] = Section(
    "group",
    "Groups",
    (
        Column(fields.GROUP, "GROUP", lambda row: row.group, rank=0),
        Column(fields.COORDINATOR_PARTITION, "COORDINATOR PARTITION", lambda row: row.coordinator_partition, rank=5),
        Column(fields.GROUP_TYPE, "TYPE", lambda row: row.type, rank=3),
        Column(fields.STATE, "STATE", lambda row: row.state, rank=0),
        Column(fields.PROTOCOL_TYPE, NOT_SHOWN, lambda row: row.protocol_type),
        Column(fields.PROTOCOL, "PROTOCOL", lambda row: row.protocol, rank=5),
        Column(fields.ASSIGNOR, "ASSIGNOR", lambda row: row.assignor, rank=5),
        Column(fields.EPOCH, "GROUP EPOCH", lambda row: unless_negative(row.epoch), rank=4),
        Column(fields.ASSIGNMENT_EPOCH, "TARGET", lambda row: unless_negative(row.assignment_epoch), rank=5),
        Column(fields.LEADER_MEMBER_ID, NOT_SHOWN, lambda row: row.leader),
        timestamp_column(fields.STATE_TIMESTAMP, "SINCE", lambda row: row.state_timestamp, rank=2),
        iso_time_column(fields.STATE_TIME, lambda row: row.state_timestamp),
        Column(fields.MEMBERS, "MEMBERS", lambda row: len(row.members), rank=0),
        Column(fields.COMMITS, "COMMITS", lambda row: len(row.commits), rank=3),
        Column(fields.PENDING_COMMITS, "PENDING COMMITS", lambda row: len(row.pending_commits), rank=4),
        Column(fields.LAG, "LAG", lambda row: row.lag, lags_text, rank=0),
        _GROUP_WHY,
        Column(fields.BEYOND_LOG_END, NOT_SHOWN, lambda row: row.lags.beyond_end),
        Column(fields.UNKNOWN_LAGS, NOT_SHOWN, lambda row: row.lags.unknown),
    ),
)
COMMITS: Section[OffsetCommit] = Section(
    "commit",
    "Commits",
    (
        Column(fields.GROUP, "GROUP", lambda row: row.group, rank=0),
        Column(fields.TOPIC, "TOPIC", lambda row: row.topic, rank=0),
        Column(fields.PARTITION, "PART", lambda row: row.partition, rank=0),
        Column(fields.OFFSET, "OFFSET", lambda row: row.offset, rank=2),
        _known_or_dash(fields.LOG_END_OFFSET, "END", _log_end_offset, rank=2),
        _known_or_dash(fields.LAST_STABLE_OFFSET, "LSO", _last_stable_offset, rank=3),
        _known_or_dash(fields.LAG, "LAG", lambda row: row.lag, rank=0),
        _WHY,
        Column(fields.LEADER_EPOCH, "LEADER EPOCH", lambda row: unless_negative(row.leader_epoch), rank=5),
        timestamp_column(fields.COMMIT_TIMESTAMP, "COMMITTED", lambda row: row.commit_timestamp, rank=3),
        iso_time_column(fields.COMMIT_TIME, lambda row: row.commit_timestamp),
        timestamp_column(fields.EXPIRE_TIMESTAMP, NOT_SHOWN, lambda row: row.expire_timestamp),
        iso_time_column(fields.EXPIRE_TIME, lambda row: row.expire_timestamp),
        Column(fields.TOPIC_ID, NOT_SHOWN, lambda row: row.topic_id),
        Column(fields.RECORD_OFFSET, "COMMIT RECORD", lambda row: row.record_offset, rank=5),
        Column(fields.PENDING_PRODUCER_ID, "PENDING PRODUCER", lambda row: row.producer_id, rank=4),
        Column(fields.METADATA, "METADATA", lambda row: row.metadata, rank=6),
    ),
    lambda row: "" if row.producer_id is None else "yellow",
)
SHARE_PARTITIONS: Section[SharePartition] = Section(
    "sharePartition",
    "Share-partitions",
    (
        Column(fields.GROUP, "GROUP", lambda row: row.group),
        Column(fields.TOPIC, "TOPIC", lambda row: row.topic),
        Column(fields.PARTITION, "PART", lambda row: row.partition),
        _known_or_dash(fields.START_OFFSET, "START", lambda row: row.start_offset),
        _known_or_dash(fields.DELIVERY_COMPLETE_COUNT, "COMPLETE", lambda row: row.delivery_complete_count),
        _known_or_dash(fields.LOG_END_OFFSET, "END", _log_end_offset),
        _known_or_dash(fields.LAG, "LAG", lambda row: row.lag),
        _WHY,
        Column(fields.LEADER_EPOCH, "LEADER EPOCH", lambda row: row.leader_epoch),
        Column(fields.TOPIC_ID, NOT_SHOWN, lambda row: row.topic_id),
    ),
)
MEMBERS: Section[MemberRow] = Section(
    "member",
    "Members",
    (
        Column(fields.GROUP, "GROUP", lambda row: row.group.group),
        Column(fields.MEMBER_ID, "MEMBER", lambda row: row.member.member_id),
        Column(fields.GROUP_INSTANCE_ID, "INSTANCE", lambda row: row.member.group_instance_id),
        Column(fields.CLIENT_ID, "CLIENT", lambda row: row.member.client_id),
        Column(fields.CLIENT_HOST, "HOST", lambda row: row.member.client_host),
        Column(fields.RACK, NOT_SHOWN, lambda row: row.member.rack),
        Column(fields.EPOCH, "MEMBER EPOCH", lambda row: unless_negative(row.member.epoch)),
        Column(
            fields.SUBSCRIBED_TOPICS,
            "SUBSCRIBED",
            lambda row: list(row.member.subscribed_topics),
            lambda row: ",".join(row.member.subscribed_topics) or row.member.subscribed_regex or "",
        ),
        Column(fields.SUBSCRIBED_REGEX, NOT_SHOWN, lambda row: row.member.subscribed_regex),
        Column(fields.ASSIGNOR, NOT_SHOWN, lambda row: row.member.assignor),
        Column(
            fields.ASSIGNMENT,
            "ASSIGNED",
            lambda row: _assignment(row.member),
            lambda row: _assignment_text(row.member.assignment, row.member.tasks),
        ),
        Column(
            fields.TARGET_ASSIGNMENT, "TARGET", lambda row: _target(row.member), lambda row: _target_text(row.member)
        ),
    ),
)


# --- chart ------------------------------------------------------------------------------------------------------------


class _LagRow(NamedTuple):
    """A partition that a group reads, and its lag, or None if unknown."""

    partition: str
    lag: int | None


def lag_charts(groups: Iterable[Group], canvas: Canvas) -> Iterator[str]:
    """Draw the lags of each group's partitions, largest first; the groups have the same order."""
    for group in sorted(groups, key=lambda each: -(each.lag or 0)):
        rows = sorted(_lag_rows(group), key=lambda row: -1 if row.lag is None else row.lag, reverse=True)
        if rows:
            yield from _lag_chart(group, rows, canvas)


def _lag_rows(group: Group) -> list[_LagRow]:
    commits = (_LagRow(f"{each.topic}-{each.partition}", each.lag) for each in group.commits)
    shared = (_LagRow(f"{each.topic or each.topic_id}-{each.partition}", each.lag) for each in group.share_partitions)
    return [*commits, *shared]


def _lag_chart(group: Group, rows: Sequence[_LagRow], canvas: Canvas) -> Iterator[str]:
    yield f"{group.group}: {plural(len(rows), 'partition')}, lag {lags_text(group)}"
    columns: list[Column[_LagRow]] = [
        Column(FOR_PEOPLE, "PARTITION", lambda row: row.partition),
        Column(fields.LAG, "LAG", lambda row: row.lag, lambda row: "-" if row.lag is None else str(row.lag)),
    ]
    labels = aligned_lines(columns, rows)
    widest = max(map(len, labels))
    room = max(canvas.width - widest - 2 * BAR_GAP, LEAST_BAR)
    largest = max((row.lag or 0 for row in rows), default=0)
    yield f"  {labels[0]}"
    for label, row in zip(labels[1:], rows, strict=True):
        drawing = "beyond the log end" if (row.lag or 0) < 0 else _lag_bar(row.lag or 0, largest, room, canvas)
        yield f"  {label:<{widest}}  {drawing}".rstrip()


def _lag_bar(lag: int, largest: int, room: int, canvas: Canvas) -> str:
    return bar(lag, largest, room, has_blocks=canvas.has_blocks)
