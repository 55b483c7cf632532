"""Consumer groups and their commits, from `__consumer_offsets`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple, TypeVar

from kseg.cluster.cluster import Cluster
from kseg.cluster.directories import Refuse, pass_over, report_once
from kseg.cluster.metadata_copy import partition_count
from kseg.cluster.now import Now
from kseg.cluster.partitions import AdjacentPartitions
from kseg.cluster.schemas_topic import TopicPlaces, find_topic
from kseg.coordinators.departures import Departures
from kseg.coordinators.home_partition import PartitionCount, internal_count, missing_text
from kseg.coordinators.members import (
    AssignedTasks,
    AssignedTopic,
    Group,
    GroupMember,
    OffsetCommit,
    SharePartition,
    ShareStates,
)
from kseg.decode.internal_records import CONSUMER_PROTOCOL_TYPE, EARLY_SHARE_GROUP_VALUES
from kseg.errors import plural
from kseg.formats.codes import NO_TIMESTAMP, VERSION
from kseg.formats.messages import ZERO_UUID, Fields, MessageError, parse_message
from kseg.formats.schemas import OFFSETS_KEYS, OFFSETS_VALUES, MessageSchema, message_schema, version_range
from kseg.kernel.record import Record
from kseg.log.group_loading import GroupLoading
from kseg.log.partition import PartitionLog
from kseg.log.replay import LatestRecords, Unreadable
from kseg.log.selection import PartitionChoice, require_named

TOPIC = "__consumer_offsets"
LEGACY_KEY_TYPE, KEY_TYPE = b"\0\0", b"\0\1"
"""Two types of keys with the same meaning: offset commits of one group and partition."""
STABLE_MEMBER, STABLE_STREAMS_MEMBER = 0, 1
"""The state of a member with its complete assignment. Source: modern.MemberState, streams.MemberState."""
DEFAULT_ASSIGNORS = {"consumer": "uniform", "share": "simple"}
"""The assignor if no member requests one: the first of `group.consumer.assignors`, by default."""
TASK_KINDS = {"activeTasks": "active", "standbyTasks": "standby", "warmupTasks": "warmup"}
"""Fields of a streams member's assignment, and the kinds of their tasks."""


Ending = TypeVar("Ending", OffsetCommit, SharePartition)


@dataclass(frozen=True, slots=True)
class GroupsView:
    """The groups of one or more partitions of `__consumer_offsets`, by name.

    `later_count`: keys with only records later than the requested time; compaction may have removed earlier ones.
    `notes`: partitions that brokers don't load, and missing ones, in words. `partitions`, `records`: the numbers read.
    `unloadable`: the number of partitions that brokers don't load.
    """

    groups: tuple[Group, ...]
    later_count: int
    unreadable: tuple[Unreadable, ...]
    notes: tuple[str, ...] = ()
    partitions: int = 1
    records: int = 0
    unloadable: int = 0

    def reading_text(self) -> str:
        """Return the numbers of read partitions and records in words."""
        read = f"{plural(self.partitions, 'partition')} of {TOPIC} read"
        if not self.records:
            return f"{read}, {'all ' if self.partitions > 1 else ''}empty"
        commits = plural(sum(len(group.commits) for group in self.groups), "commit")
        return f"{read}, {plural(self.records, 'record')}, {plural(len(self.groups), 'group')}, {commits}"


class _Entry(NamedTuple):
    """A key's latest record, decoded."""

    name: str
    """The name of the value's message."""
    key: Fields
    value: Fields
    record: Record


def read_groups(
    paths: Path | Sequence[Path], at_ms: int | None = None, refuse: Refuse | None = None, now: Now | None = None
) -> GroupsView:
    """Read the groups in partition directories of `__consumer_offsets`, or in all of log directories, at a time.

    Topics that records name by their id get their names, if the cluster's metadata are next to them. If the topics'
    partitions and `__share_group_state` are there too, commits get the ends of logs, and share groups their start
    offsets. The ends are unknown for an earlier time.

    Args:
        paths: a directory, or several; parents of log directories too.
        at_ms: milliseconds since 1970; None: at the log's end.
        refuse: takes the errors of paths that can't be listed while others can; None raises them.
        now: the current time for ages in reasons of lags; None omits them.

    Raises:
        OpenError: there is no such directory, or no such topic in it.
    """
    refuse_once = None if refuse is None else report_once(refuse)
    return read_groups_in(find_topic(paths, TOPIC, refuse_once), at_ms, refuse_once, now)


def read_groups_in(
    places: TopicPlaces, at_ms: int | None = None, refuse: Refuse | None = None, now: Now | None = None
) -> GroupsView:
    """Read the groups in partitions of `__consumer_offsets`; arguments are as for `read_groups`.

    The ends of logs are from the searched log directories.
    """
    cluster = Cluster(places.log_dirs, refuse or pass_over, levels=0)
    metadata = cluster.own_metadata
    names = {} if metadata is None else {topic.topic_id: topic.name for topic in metadata.topics}
    views = [partition_groups(partition, at_ms, names) for partition in places.partitions]
    groups = sorted((group for view in views for group in view.groups), key=lambda group: group.group)
    numbers = [place.partition for place in places.partitions]
    ids = ((group.group, group.coordinator_partition) for group in groups)
    told = partition_count(metadata, TOPIC, numbers)
    count = PartitionCount(told) if told else internal_count(places.partitions, ids)
    missing = missing_text(TOPIC, len(places.partitions), count) if places.is_all else None
    beside = AdjacentPartitions(cluster)
    shares = ShareStates(beside, at_ms)
    if any(group.share_partitions for group in groups):
        groups = [_with_start_offsets(group, shares) for group in groups]
    return GroupsView(
        tuple(_complete_group(group, None if at_ms is not None else beside, now) for group in groups),
        sum(view.later_count for view in views),
        (*(unreadable for view in views for unreadable in view.unreadable), *shares.unreadable),
        (
            *(note for view in views for note in view.notes),
            *(() if missing is None else (f"{missing}, so groups of the other partitions aren't shown",)),
        ),
        len(views),
        sum(view.records for view in views),
        sum(view.unloadable for view in views),
    )


def _with_start_offsets(group: Group, shares: ShareStates) -> Group:
    """Return a share group with its partitions' start offsets, as far as they are here."""
    return replace(group, share_partitions=tuple(map(shares.complete, group.share_partitions)))


def _complete_group(group: Group, beside: AdjacentPartitions | None, now: Now | None) -> Group:
    """Return a group whose partitions know whether it has members, and the ends of their logs unless beside is None."""
    presence = group.presence._replace(now=now)

    def with_end(each: Ending) -> Ending:
        end = None if beside is None else beside.end_of(each.topic, each.partition, each.topic_id)
        return each._replace(log_end=end, presence=presence)

    def with_examination(commit: OffsetCommit) -> OffsetCommit:
        """Find the position of the offset if the log continues after it."""
        found = with_end(commit)
        if beside is None or found.known_end is None or not found.known_end.log_start_offset <= found.offset:
            return found
        is_behind = (found.lag or 0) > 0
        problem = beside.unreadable_at(found.topic, found.partition, found.offset) if is_behind else None
        return found._replace(unreadable=problem)

    return replace(
        group,
        commits=tuple(map(with_examination, group.commits)),
        pending_commits=tuple(map(with_end, group.pending_commits)),
        share_partitions=tuple(map(with_end, group.share_partitions)),
    )


def partition_groups(
    partition: PartitionLog, at_ms: int | None = None, topic_names: Mapping[str, str] | None = None
) -> GroupsView:
    """Read the groups of one partition; `topic_names`: of topics that records name by id."""
    loading, departures, count = GroupLoading(), Departures(), 0

    def see(record: Record) -> None:
        nonlocal count
        count += 1
        loading.take(record)
        departures.take(record)

    replay = LatestRecords(at_ms, _key_of, _time_of, see)
    replay.add_partition(partition)
    unreadable = list(replay.unreadable)

    def entries(records: Iterable[Record]) -> list[_Entry]:
        found: list[_Entry] = []
        for record in records:
            try:
                found += _entries(record)
            except MessageError as error:
                unreadable.append(Unreadable(partition.directory_name, record.offset, error.message))
        return found

    groups: dict[str, list[_Entry]] = {}
    for entry in entries(replay.latest.values()):
        groups.setdefault(_group_name(entry), []).append(entry)
    pending: dict[str, list[OffsetCommit]] = {}
    for producer_id, records in replay.pending.items():
        for entry in entries(records.values()):
            if entry.name != COMMIT:
                continue
            commit = _commit(entry)._replace(producer_id=producer_id)
            pending.setdefault(commit.group, []).append(commit)
    found = (
        _name_topics(
            _group(
                Group(name, partition.partition, last_left=departures.last.get(name)),
                groups.get(name, []),
                pending.get(name, []),
            ),
            topic_names or {},
        )
        for name in sorted(groups.keys() | pending.keys())
    )
    notes = tuple(_loading_notes(partition, loading))
    return GroupsView(tuple(found), replay.later_count, tuple(unreadable), notes, records=count, unloadable=len(notes))


def _loading_notes(partition: PartitionLog, loading: GroupLoading) -> Iterator[str]:
    """Yield that no coordinator loads the partition, and the reason."""
    if (found := loading.unloadable) is not None:
        yield f"{partition.path}: offset {found.offset}: brokers don't load these groups: {found.sentence}"


def _name_topics(group: Group, topic_names: Mapping[str, str]) -> Group:
    """Return a group with the known names of its members' topics."""

    def with_names(topics: tuple[AssignedTopic, ...] | None) -> tuple[AssignedTopic, ...] | None:
        if topics is None:
            return None
        known = (each._replace(topic=each.topic or topic_names.get(each.topic_id or "")) for each in topics)
        return tuple(sorted(known, key=lambda each: (each.topic or "" if each.topic_id else "", each.topic_id or "")))

    members = (
        member._replace(assignment=with_names(member.assignment), target=with_names(member.target))
        for member in group.members
    )
    return replace(group, members=tuple(members))


def _key_of(key: bytes) -> bytes:
    return KEY_TYPE + key[VERSION.end :] if key.startswith(LEGACY_KEY_TYPE) else key


def _time_of(record: Record) -> int:
    """Return the record timestamp; v0 messages (up to 0.9) have none, but commits contain theirs."""
    if record.timestamp != NO_TIMESTAMP or record.key is None or not record.key.startswith((LEGACY_KEY_TYPE, KEY_TYPE)):
        return record.timestamp
    try:
        entry = next(_entries(record), None)
    except MessageError:
        return NO_TIMESTAMP
    return NO_TIMESTAMP if entry is None else int(entry.value["commitTimestamp"])


def _entries(record: Record) -> Iterator[_Entry]:
    """Yield the record key and value; nothing for a tombstone. Raises MessageError."""
    key, value = record.key or b"", record.value
    if value is None:
        return
    if len(key) < 2 or len(value) < 2:
        raise MessageError("no type in the key, or no version in the value")
    number = VERSION.read(_key_of(key))
    version = VERSION.read(value)
    if number in EARLY_SHARE_GROUP_VALUES and number not in OFFSETS_KEYS:
        return  # written by 4.0 alone, and of no use here
    if number not in OFFSETS_KEYS:
        raise MessageError(f"key of unknown type {number}")
    message = OFFSETS_VALUES[number]
    if version not in version_range(message.versions):
        raise MessageError(f"{message.name} of unknown version {version}")
    fields = parse_message(OFFSETS_KEYS[number], 0, key, 2).value
    yield _Entry(message.name, fields, _value(number, message, version, value), record)


def _value(number: int, message: MessageSchema, version: int, value: bytes) -> Fields:
    try:
        return parse_message(message, version, value, 2).value
    except MessageError:
        # 4.0 wrote other fields under the same version.
        if number not in EARLY_SHARE_GROUP_VALUES:
            raise
        return parse_message(EARLY_SHARE_GROUP_VALUES[number], version, value, 2).value


def _group_name(entry: _Entry) -> str:
    name: str = entry.key["group"] if "group" in entry.key else entry.key["groupId"]
    return name


def _commit(entry: _Entry) -> OffsetCommit:
    key, value = entry.key, entry.value
    topic_id = value.get("topicId", ZERO_UUID)
    return OffsetCommit(
        group=key["group"],
        topic=key["topic"],
        partition=key["partition"],
        offset=value["offset"],
        leader_epoch=value.get("leaderEpoch", -1),
        metadata=value["metadata"],
        commit_timestamp=value["commitTimestamp"],
        expire_timestamp=value.get("expireTimestamp", -1),
        topic_id=None if topic_id == ZERO_UUID else topic_id,
        record_offset=entry.record.offset,
    )


def _group(bare: Group, entries: list[_Entry], pending: list[OffsetCommit]) -> Group:
    """Return the group that its records, in the log's order, describe."""
    commits = sorted(_commit(entry) for entry in entries if entry.name == COMMIT)
    described = [entry for entry in entries if entry.name in DESCRIBERS]
    group = replace(bare, commits=tuple(commits), pending_commits=tuple(sorted(pending)))
    if not described:
        return group
    latest = max(described, key=lambda entry: (entry.name != SHARE_PARTITIONS, entry.record.offset))
    return DESCRIBERS[latest.name](group, latest, entries)


COMMIT = "OffsetCommitValue"
SHARE_PARTITIONS = "ShareGroupStatePartitionMetadataValue"
"""The only record of a share group that got offsets, and has never had members."""


def _classic(group: Group, entry: _Entry, _: list[_Entry]) -> Group:
    value = entry.value
    is_consumer = value["protocolType"] == CONSUMER_PROTOCOL_TYPE
    members = tuple(_classic_member(member, is_consumer) for member in value["members"])
    return replace(
        group,
        state="Stable" if members else "Empty",
        protocol_type=value["protocolType"],
        protocol=value["protocol"],
        epoch=value["generation"],
        leader=value["leader"],
        state_timestamp=value.get("currentStateTimestamp", NO_TIMESTAMP),
        members=members,
    )


def _classic_member(member: Fields, is_consumer: bool) -> GroupMember:
    subscription = _parse_embedded("ConsumerProtocolSubscription", member["subscription"]) if is_consumer else None
    assignment = _parse_embedded("ConsumerProtocolAssignment", member["assignment"]) if is_consumer else None
    assigned = None
    if assignment is not None:
        assigned = tuple(
            AssignedTopic(topic["topic"], None, tuple(topic["partitions"]))
            for topic in assignment["assignedPartitions"]
        )
    return GroupMember(
        member_id=member["memberId"],
        group_instance_id=member.get("groupInstanceId"),
        client_id=member["clientId"],
        client_host=member["clientHost"],
        rack=None if subscription is None else subscription.get("rackId"),
        epoch=-1,
        subscribed_topics=() if subscription is None else tuple(subscription["topics"]),
        subscribed_regex=None,
        assignment=assigned,
    )


def _parse_embedded(name: str, data: bytes) -> Fields | None:
    """Return a message of the consumer protocol, in which clients may write anything, or None if it can't be read."""
    if len(data) < 2:
        return None
    try:
        return parse_message(message_schema(name), VERSION.read(data), data, 2).value
    except MessageError:
        return None


class _NewGroup(NamedTuple):
    """The names of messages of a type of groups that came with KIP-848 or later.

    `stable`: the state of a member with its complete assignment.
    """

    type: str
    member: str
    assignment: str
    target_metadata: str
    target: str
    stable: int = STABLE_MEMBER


def _new_group(kind: _NewGroup) -> "Describe":
    def describe(group: Group, entry: _Entry, entries: list[_Entry]) -> Group:
        epoch = entry.value["epoch"]
        assigned = _by_member(entries, kind.assignment)
        targets = _by_member(entries, kind.target)
        found = [other for other in entries if other.name == kind.member]
        found.sort(key=lambda member: str(member.key["memberId"]))
        epochs = [other.value["assignmentEpoch"] for other in entries if other.name == kind.target_metadata]
        target_epoch = epochs[-1] if epochs else 0
        ids = [member.key["memberId"] for member in found]
        members = tuple(
            _new_member(member, assigned.get(own), targets.get(own)) for own, member in zip(ids, found, strict=True)
        )
        state = _state(kind, epoch, target_epoch, [assigned.get(own) for own in ids])
        if members and kind.type == "streams" and not _is_ready(entry, entries):
            state = "NotReady"
        return replace(
            group,
            type=kind.type,
            state=state,
            protocol_type=kind.type,
            epoch=epoch,
            assignment_epoch=target_epoch,
            assignor=_assignor(kind, members),
            members=members,
            share_partitions=_share_partitions(group.group, entries) if kind.type == "share" else (),
        )

    return describe


def _unused_share_group(group: Group, _: _Entry, entries: list[_Entry]) -> Group:
    return replace(
        group, type="share", protocol_type="share", epoch=0, share_partitions=_share_partitions(group.group, entries)
    )


def _share_partitions(group: str, entries: list[_Entry]) -> tuple[SharePartition, ...]:
    """Return the partitions that a share group's coordinator has initialized.

    Source: initializedShareGroupPartitions.
    """
    found = [
        SharePartition(group, topic["topicName"], topic["topicId"], partition)
        for entry in entries
        if entry.name == SHARE_PARTITIONS
        for topic in entry.value["initializedTopics"]
        for partition in topic["partitions"]
    ]
    return tuple(sorted(found))


def _by_member(entries: list[_Entry], message: str) -> dict[str, Fields]:
    return {entry.key["memberId"]: entry.value for entry in entries if entry.name == message}


def _state(kind: _NewGroup, epoch: int, target_epoch: int, assigned: list[Fields | None]) -> str:
    """Return the state that a coordinator derives from epochs.

    Source: ConsumerGroup.maybeUpdateGroupState, StreamsGroup.
    """
    if not assigned:
        return "Empty"
    if kind.type == "share":
        return "Stable"
    if epoch > target_epoch:
        return "Assigning"
    if all(value and value["state"] == kind.stable and value["memberEpoch"] == target_epoch for value in assigned):
        return "Stable"
    return "Reconciling"


def _is_ready(entry: _Entry, entries: list[_Entry]) -> bool:
    """Return True if a streams group's topology is valid, with all of its topics."""
    topology = [other.value["epoch"] for other in entries if other.name == TOPOLOGY]
    return bool(topology) and topology[-1] == entry.value.get("validatedTopologyEpoch", -1)


def _assignor(kind: _NewGroup, members: tuple[GroupMember, ...]) -> str | None:
    """Return the assignor that most members request, or the default. Source: ConsumerGroup.preferredServerAssignor."""
    requests = Counter(member.assignor for member in members if member.assignor is not None)
    return requests.most_common(1)[0][0] if requests else DEFAULT_ASSIGNORS.get(kind.type)


def _new_member(member: _Entry, assigned: Fields | None, target: Fields | None) -> GroupMember:
    value = member.value
    return GroupMember(
        member_id=member.key["memberId"],
        group_instance_id=value.get("instanceId"),
        client_id=value["clientId"],
        client_host=value["clientHost"],
        rack=value["rackId"],
        epoch=-1 if assigned is None else assigned["memberEpoch"],
        subscribed_topics=tuple(value.get("subscribedTopicNames", ())),
        subscribed_regex=value.get("subscribedTopicRegex") or None,
        assignment=_topics(assigned, "assignedPartitions"),
        target=_topics(target, "topicPartitions"),
        tasks=_tasks(assigned),
        target_tasks=_tasks(target),
        assignor=value.get("serverAssignor") or None,
    )


def _topics(value: Fields | None, name: str) -> tuple[AssignedTopic, ...] | None:
    if value is None or name not in value:
        return None
    return tuple(AssignedTopic(None, topic["topicId"], tuple(sorted(topic["partitions"]))) for topic in value[name])


def _tasks(value: Fields | None) -> tuple[AssignedTasks, ...] | None:
    if value is None or "activeTasks" not in value:
        return None
    return tuple(
        AssignedTasks(kind, tasks["subtopologyId"], tuple(sorted(tasks["partitions"])))
        for name, kind in TASK_KINDS.items()
        for tasks in value[name]
    )


TOPOLOGY = "StreamsGroupTopologyValue"
Describe = Callable[[Group, _Entry, list[_Entry]], Group]

DESCRIBERS: dict[str, Describe] = {
    SHARE_PARTITIONS: _unused_share_group,
    "GroupMetadataValue": _classic,
    "ConsumerGroupMetadataValue": _new_group(
        _NewGroup(
            "consumer",
            "ConsumerGroupMemberMetadataValue",
            "ConsumerGroupCurrentMemberAssignmentValue",
            "ConsumerGroupTargetAssignmentMetadataValue",
            "ConsumerGroupTargetAssignmentMemberValue",
        )
    ),
    "ShareGroupMetadataValue": _new_group(
        _NewGroup(
            "share",
            "ShareGroupMemberMetadataValue",
            "ShareGroupCurrentMemberAssignmentValue",
            "ShareGroupTargetAssignmentMetadataValue",
            "ShareGroupTargetAssignmentMemberValue",
        )
    ),
    "StreamsGroupMetadataValue": _new_group(
        _NewGroup(
            "streams",
            "StreamsGroupMemberMetadataValue",
            "StreamsGroupCurrentMemberAssignmentValue",
            "StreamsGroupTargetAssignmentMetadataValue",
            "StreamsGroupTargetAssignmentMemberValue",
            STABLE_STREAMS_MEMBER,
        )
    ),
}
"""Functions that build a group from its records, by the message that defines its type."""


ALL_GROUPS = "*"


def choose_groups(groups: Sequence[Group], pattern: str, choice: PartitionChoice) -> list[Group]:
    """Return the groups with matching names that read chosen partitions.

    Raises UsageError if there are groups, but none of this name, or none that reads a chosen topic.
    """
    matching = [group for group in groups if fnmatchcase(group.group, pattern)]
    if groups and not choice.allow_missing:
        require_named((pattern,), [group.group for group in groups], "--group", "group")
    found = list(groups_with_commits_for(choice, matching))
    if not found:
        choice.require_among(_partitions_of(matching))
    return found


def _partitions_of(groups: Iterable[Group]) -> dict[str, set[int]]:
    """Return the numbers of the partitions that groups read, by topic."""
    found: dict[str, set[int]] = {}
    for group in groups:
        for commit in (*group.commits, *group.pending_commits):
            found.setdefault(commit.topic, set()).add(commit.partition)
        for share in group.share_partitions:
            found.setdefault(share.topic, set()).add(share.partition)
    return found


def groups_with_commits_for(choice: PartitionChoice, groups: Iterable[Group]) -> Iterator[Group]:
    """Yield the groups that read chosen partitions, with these alone; all without a choice."""
    for group in groups:
        if choice.is_everything:
            yield group
            continue
        commits, pending = _choose_commits(choice, group.commits), _choose_commits(choice, group.pending_commits)
        shared = tuple(each for each in group.share_partitions if choice.takes(each.topic, each.partition))
        if commits or pending or shared:
            yield replace(group, commits=commits, pending_commits=pending, share_partitions=shared)


def _choose_commits(choice: PartitionChoice, commits: tuple[OffsetCommit, ...]) -> tuple[OffsetCommit, ...]:
    return tuple(commit for commit in commits if choice.takes(commit.topic, commit.partition))
