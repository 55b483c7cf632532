"""Columns of `kseg groups`."""

from collections.abc import Callable, Iterable, Iterator
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
)
from kseg.output.table import NOT_SHOWN, Section, TableColumn
from kseg.times import iso_time, time_text

Row = TypeVar("Row")


def column(
    name: str, title: str, value: Callable[[Row], object], show: Callable[[Row], str] | None = None
) -> TableColumn[Row]:
    """A column of texts."""
    return TableColumn(name, title, -1, value, show)


def number_column(name: str, title: str, value: Callable[[Row], object]) -> TableColumn[Row]:
    """A column of numbers, set to the right."""
    return TableColumn(name, title, 1, value, None)


def timestamp_column(name: str, title: str, value: Callable[[Row], int | None], zone: tzinfo = UTC) -> TableColumn[Row]:
    """`nameTimestamp`: milliseconds since 1970, null for none; people see the time in the zone."""

    def milliseconds(row: Row) -> int | None:
        timestamp = value(row)
        return None if timestamp is None or timestamp < 0 else timestamp

    in_zone = partial(timestamp_column, name, title, value)
    return TableColumn(f"{name}Timestamp", title, -1, milliseconds, lambda row: time_text(value(row), zone), in_zone)


def iso_time_column(
    name: str, value: Callable[[Row], int | None], title: str = NOT_SHOWN, zone: tzinfo = UTC
) -> TableColumn[Row]:
    """`nameTime`: the same in ISO 8601."""
    in_zone = partial(iso_time_column, name, value, title)
    return TableColumn(
        f"{name}Time" if name else "time", title, -1, lambda row: iso_time(value(row), zone), None, in_zone
    )


def unless_negative(number: int) -> int | None:
    """A number; None for one below 0, which stands for none."""
    return None if number < 0 else number


def numbers_text(numbers: tuple[int, ...]) -> str:
    """Numbers for people."""
    return ",".join(map(str, numbers))


class MemberRow(NamedTuple):
    """A member with its group."""

    group: Group
    member: GroupMember


def member_rows(groups: Iterable[Group]) -> Iterator[MemberRow]:
    """The members of some groups."""
    return (MemberRow(group, member) for group in groups for member in group.members)


def commit_rows(groups: Iterable[Group]) -> Iterator[OffsetCommit]:
    """The commits of some groups, pending ones after those that count."""
    return (commit for group in groups for commit in (*group.commits, *group.pending_commits))


MOST_TOLD = 20
"""Commits beyond the end of a log that are each told in a line; of more, how many they are."""
BEYOND_END = (
    "records were lost, or the topic was re-created; its consumer gets OFFSET_OUT_OF_RANGE and uses auto.offset.reset"
)


def beyond_end_notes(groups: Iterable[Group]) -> Iterator[str]:
    """Lines about commits that are beyond the end of a log, and what follows for consumers."""
    found = list(commits_beyond_end(groups))
    yield from (f"{beyond_end_sentence(commit)}: {BEYOND_END}" for commit in found[:MOST_TOLD])
    if len(found) > MOST_TOLD:
        yield f"{len(found) - MOST_TOLD} more commits are beyond the log end: negative lags of -o json"


def share_partition_rows(groups: Iterable[Group]) -> Iterator[SharePartition]:
    """The share-partitions of some groups."""
    return (partition for group in groups for partition in group.share_partitions)


def _known_or_dash(name: str, title: str, value: Callable[[Row], int | None]) -> TableColumn[Row]:
    """A column of numbers that may be unknown."""

    def show(row: Row) -> str:
        number = value(row)
        return "-" if number is None else str(number)

    return TableColumn(name, title, 1, value, show)


def _log_end_offset(row: OffsetCommit | SharePartition) -> int | None:
    return None if row.log_end is None else row.log_end.log_end_offset


def _last_stable_offset(row: OffsetCommit) -> int | None:
    return None if row.log_end is None else row.log_end.last_stable_offset


def _assigned_object(topic: AssignedTopic) -> dict[str, object]:
    return {"topic": topic.topic, "topicId": topic.topic_id, "partitions": list(topic.partitions)}


def _task_object(tasks: AssignedTasks) -> dict[str, object]:
    return {"kind": tasks.kind, "subtopologyId": tasks.subtopology_id, "partitions": list(tasks.partitions)}


def _assignment(member: GroupMember) -> list[dict[str, object]] | None:
    """What a member has: topics, or tasks of a streams application; None if that isn't known."""
    return _assigned(member.assignment, member.tasks)


def _target(member: GroupMember) -> list[dict[str, object]] | None:
    return _assigned(member.target, member.target_tasks)


def _assigned(
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
    """What a member is to have, if that is something else than it has."""
    current = _assignment_text(member.assignment, member.tasks)
    target = _assignment_text(member.target, member.target_tasks)
    return "" if target == current else target


def _lags_text(group: Group) -> str:
    return group.lags.text("share-partition" if group.share_partitions else "commit")


GROUPS: Section[Group] = Section(
    "group",
    "Groups",
    (
        column("group", "GROUP", lambda row: row.group),
        number_column("coordinatorPartition", "COORD", lambda row: row.coordinator_partition),
        column("groupType", "TYPE", lambda row: row.type),
        column("state", "STATE", lambda row: row.state),
        column("protocolType", NOT_SHOWN, lambda row: row.protocol_type),
        column("protocol", "PROTOCOL", lambda row: row.protocol),
        column("assignor", "ASSIGNOR", lambda row: row.assignor),
        number_column("epoch", "EPOCH", lambda row: unless_negative(row.epoch)),
        number_column("assignmentEpoch", "TARGET", lambda row: unless_negative(row.assignment_epoch)),
        column("leader", NOT_SHOWN, lambda row: row.leader),
        timestamp_column("state", "SINCE", lambda row: row.state_timestamp),
        iso_time_column("state", lambda row: row.state_timestamp),
        number_column("members", "MEMBERS", lambda row: len(row.members)),
        number_column("commits", "COMMITS", lambda row: len(row.commits)),
        number_column("pendingCommits", "PENDING", lambda row: len(row.pending_commits)),
        TableColumn("lag", "LAG", 1, lambda row: row.lag, _lags_text),
        number_column("beyondLogEnd", NOT_SHOWN, lambda row: row.lags.beyond_end),
        number_column("unknownLags", NOT_SHOWN, lambda row: row.lags.unknown),
    ),
)
COMMITS: Section[OffsetCommit] = Section(
    "commit",
    "Commits",
    (
        column("group", "GROUP", lambda row: row.group),
        column("topic", "TOPIC", lambda row: row.topic),
        number_column("partition", "PART", lambda row: row.partition),
        number_column("offset", "OFFSET", lambda row: row.offset),
        _known_or_dash("logEndOffset", "END", _log_end_offset),
        _known_or_dash("lastStableOffset", "STABLE", _last_stable_offset),
        _known_or_dash("lag", "LAG", lambda row: row.lag),
        number_column("leaderEpoch", "EPOCH", lambda row: unless_negative(row.leader_epoch)),
        timestamp_column("commit", "COMMITTED", lambda row: row.commit_timestamp),
        iso_time_column("commit", lambda row: row.commit_timestamp),
        timestamp_column("expire", NOT_SHOWN, lambda row: row.expire_timestamp),
        iso_time_column("expire", lambda row: row.expire_timestamp),
        column("topicId", NOT_SHOWN, lambda row: row.topic_id),
        number_column("recordOffset", "AT", lambda row: row.record_offset),
        number_column("pendingProducerId", "PENDING", lambda row: row.producer_id),
        column("metadata", "METADATA", lambda row: row.metadata),
    ),
    lambda row: "" if row.producer_id is None else "yellow",
)
SHARE_PARTITIONS: Section[SharePartition] = Section(
    "sharePartition",
    "Share-partitions",
    (
        column("group", "GROUP", lambda row: row.group),
        column("topic", "TOPIC", lambda row: row.topic),
        number_column("partition", "PART", lambda row: row.partition),
        _known_or_dash("startOffset", "START", lambda row: row.start_offset),
        _known_or_dash("deliveryCompleteCount", "COMPLETE", lambda row: row.delivery_complete_count),
        _known_or_dash("logEndOffset", "END", _log_end_offset),
        _known_or_dash("lag", "LAG", lambda row: row.lag),
        number_column("leaderEpoch", "EPOCH", lambda row: row.leader_epoch),
        column("topicId", NOT_SHOWN, lambda row: row.topic_id),
    ),
)
MEMBERS: Section[MemberRow] = Section(
    "member",
    "Members",
    (
        column("group", "GROUP", lambda row: row.group.group),
        column("memberId", "MEMBER", lambda row: row.member.member_id),
        column("groupInstanceId", "INSTANCE", lambda row: row.member.group_instance_id),
        column("clientId", "CLIENT", lambda row: row.member.client_id),
        column("clientHost", "HOST", lambda row: row.member.client_host),
        column("rack", NOT_SHOWN, lambda row: row.member.rack),
        number_column("epoch", "EPOCH", lambda row: unless_negative(row.member.epoch)),
        column(
            "subscribedTopics",
            "SUBSCRIBED",
            lambda row: list(row.member.subscribed_topics),
            lambda row: ",".join(row.member.subscribed_topics) or row.member.subscribed_regex or "",
        ),
        column("subscribedRegex", NOT_SHOWN, lambda row: row.member.subscribed_regex),
        column("assignor", NOT_SHOWN, lambda row: row.member.assignor),
        column(
            "assignment",
            "ASSIGNED",
            lambda row: _assignment(row.member),
            lambda row: _assignment_text(row.member.assignment, row.member.tasks),
        ),
        column("target", "TARGET", lambda row: _target(row.member), lambda row: _target_text(row.member)),
    ),
)
