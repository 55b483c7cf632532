"""The columns of groups, their members and commits, for JSON, CSV and tables."""

from typing import NamedTuple

from kseg.output.row_writer import NOT_SHOWN, Section
from kseg.views.column_kinds import (
    column,
    iso_time_column,
    number_column,
    numbers_text,
    timestamp_column,
    unless_negative,
)
from kseg.views.groups import AssignedTasks, AssignedTopic, Group, GroupMember, OffsetCommit


class MemberRow(NamedTuple):
    """A member with its group."""

    group: Group
    member: GroupMember


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
