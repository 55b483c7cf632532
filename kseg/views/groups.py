"""Groups and what they had committed, replayed from `__consumer_offsets`."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from kseg.batch import Record
from kseg.decode.coordinator import CONSUMER_PROTOCOL_TYPE
from kseg.decode.history import EARLY_SHARE_GROUP_VALUES
from kseg.decode.topic import topic_partitions
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.messages import ZERO_UUID, Fields, MessageError, parse_message
from kseg.formats.schemas import consumer_offsets
from kseg.formats.schemas.consumer_protocol import CONSUMER_PROTOCOL_ASSIGNMENT, CONSUMER_PROTOCOL_SUBSCRIPTION
from kseg.formats.schemas.schema import Message, version_range
from kseg.log.partition import PartitionLog
from kseg.views.replay import LatestRecords, Unreadable

TOPIC = "__consumer_offsets"
LEGACY_KEY_TYPE, KEY_TYPE = b"\0\0", b"\0\1"
"""Both name the same: offset commits of one group and partition."""
STABLE_MEMBER = 0
"""State of a member that has what it is to have. Source: MemberState."""


class OffsetCommit(NamedTuple):
    """An offset that a group committed for a partition: the next one that it is to read.

    Timestamps are milliseconds since 1970. What a version doesn't have is -1, None for `topic_id`. `record_offset` is
    the commit's own place in its partition of `__consumer_offsets`. `producer_id`: of the transaction, not ended yet,
    that it belongs to; None if it counts.
    """

    group: str
    topic: str
    partition: int
    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp: int
    expire_timestamp: int
    topic_id: str | None
    record_offset: int
    producer_id: int | None = None


class AssignedTopic(NamedTuple):
    """Partitions of a topic that a member has; newer groups know the topic by id, classic ones by name."""

    topic: str | None
    topic_id: str | None
    partitions: tuple[int, ...]


class GroupMember(NamedTuple):
    """A member of a group.

    `epoch` is -1 in classic groups. `assignment` None if it isn't known, or not of the consumer protocol.
    """

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    rack: str | None
    epoch: int
    subscribed_topics: tuple[str, ...]
    subscribed_regex: str | None
    assignment: tuple[AssignedTopic, ...] | None


@dataclass(frozen=True, slots=True)
class Group:
    """A group as its coordinator would load it.

    `type`: classic, consumer, share, streams. `state`: Empty, Stable; of newer groups also Assigning, Reconciling.
    `epoch`: the generation of a classic group; -1 for one that only committed. `state_timestamp`: -1 if not known.
    `commits` count; `pending_commits` belong to transactions that have not ended.
    """

    group: str
    coordinator_partition: int | None
    type: str = "classic"
    state: str = "Empty"
    protocol_type: str = ""
    protocol: str | None = None
    epoch: int = -1
    leader: str | None = None
    state_timestamp: int = NO_TIMESTAMP
    members: tuple[GroupMember, ...] = ()
    commits: tuple[OffsetCommit, ...] = ()
    pending_commits: tuple[OffsetCommit, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupsView:
    """The groups of one or more partitions of `__consumer_offsets`, by name.

    `later_count`: keys of which the log has only records later than the time that was asked for; what they said before
    may have been compacted away.
    """

    groups: tuple[Group, ...]
    later_count: int
    unreadable: tuple[Unreadable, ...]


class _Entry(NamedTuple):
    """A key's latest record, decoded."""

    name: str
    """Of the value's message."""
    key: Fields
    value: Fields
    record: Record


def read_groups(path: Path, at_ms: int | None = None) -> GroupsView:
    """The groups in a partition directory of `__consumer_offsets`, or in all of a log directory, at a time.

    Args:
        path: the directory.
        at_ms: milliseconds since 1970; None: at the log's end.

    Raises:
        OpenError: there is no such directory, or no such topic in it.
    """
    views = [partition_groups(partition, at_ms) for partition in topic_partitions(path, TOPIC)]
    return GroupsView(
        tuple(sorted((group for view in views for group in view.groups), key=lambda group: group.group)),
        sum(view.later_count for view in views),
        tuple(unreadable for view in views for unreadable in view.unreadable),
    )


def partition_groups(partition: PartitionLog, at_ms: int | None = None) -> GroupsView:
    """The groups of one partition."""
    replay = LatestRecords(at_ms, _key_of, _time_of)
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
        _group(Group(name, partition.partition), groups.get(name, []), pending.get(name, []))
        for name in sorted(groups.keys() | pending.keys())
    )
    return GroupsView(tuple(found), replay.later_count, tuple(unreadable))


def _key_of(key: bytes) -> bytes:
    return KEY_TYPE + key[2:] if key[:2] == LEGACY_KEY_TYPE else key


def _time_of(record: Record) -> int:
    """The record's time; v0 messages (up to 0.9) have none, but commits tell theirs."""
    if record.timestamp != NO_TIMESTAMP or record.key is None or record.key[:2] not in (LEGACY_KEY_TYPE, KEY_TYPE):
        return record.timestamp
    try:
        entry = next(_entries(record), None)
    except MessageError:
        return NO_TIMESTAMP
    return NO_TIMESTAMP if entry is None else int(entry.value["commitTimestamp"])


def _entries(record: Record) -> Iterator[_Entry]:
    """The record's key and value; nothing for a tombstone. Raises MessageError."""
    key, value = record.key or b"", record.value
    if value is None:
        return
    if len(key) < 2 or len(value) < 2:
        raise MessageError("no type in the key, or no version in the value")
    number = int.from_bytes(_key_of(key)[:2], "big", signed=True)
    version = int.from_bytes(value[:2], "big", signed=True)
    if number in EARLY_SHARE_GROUP_VALUES and number not in consumer_offsets.KEYS:
        return  # written by 4.0 alone, and of no use here
    if number not in consumer_offsets.KEYS:
        raise MessageError(f"key of unknown type {number}")
    message = consumer_offsets.VALUES[number]
    if version not in version_range(message.versions):
        raise MessageError(f"{message.name} of unknown version {version}")
    fields = parse_message(consumer_offsets.KEYS[number], 0, key, 2).value
    yield _Entry(message.name, fields, _value(number, message, version, value), record)


def _value(number: int, message: Message, version: int, value: bytes) -> Fields:
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
        key["group"],
        key["topic"],
        key["partition"],
        value["offset"],
        value.get("leaderEpoch", -1),
        value["metadata"],
        value["commitTimestamp"],
        value.get("expireTimestamp", -1),
        None if topic_id == ZERO_UUID else topic_id,
        entry.record.offset,
    )


def _group(bare: Group, entries: list[_Entry], pending: list[OffsetCommit]) -> Group:
    """The group that its records, in the log's order, tell of."""
    commits = sorted(_commit(entry) for entry in entries if entry.name == COMMIT)
    described = [entry for entry in entries if entry.name in DESCRIBERS]
    group = replace(bare, commits=tuple(commits), pending_commits=tuple(sorted(pending)))
    if not described:
        return group
    latest = max(described, key=lambda entry: entry.record.offset)
    return DESCRIBERS[latest.name](group, latest, entries)


COMMIT = consumer_offsets.OFFSET_COMMIT_VALUE.name


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
    subscription = _embedded(CONSUMER_PROTOCOL_SUBSCRIPTION, member["subscription"]) if is_consumer else None
    assignment = _embedded(CONSUMER_PROTOCOL_ASSIGNMENT, member["assignment"]) if is_consumer else None
    assigned = None
    if assignment is not None:
        assigned = tuple(
            AssignedTopic(topic["topic"], None, tuple(topic["partitions"]))
            for topic in assignment["assignedPartitions"]
        )
    return GroupMember(
        member["memberId"],
        member.get("groupInstanceId"),
        member["clientId"],
        member["clientHost"],
        None if subscription is None else subscription.get("rackId"),
        -1,
        () if subscription is None else tuple(subscription["topics"]),
        None,
        assigned,
    )


def _embedded(message: Message, data: bytes) -> Fields | None:
    """A message of the consumer protocol, which clients write as they like; None if it can't be read."""
    if len(data) < 2:
        return None
    try:
        return parse_message(message, int.from_bytes(data[:2], "big", signed=True), data, 2).value
    except MessageError:
        return None


class _NewGroup(NamedTuple):
    """The messages of a type of groups that came with KIP-848 or later."""

    type: str
    member: str
    assignment: str
    target: str | None


def _new_group(kind: _NewGroup) -> "Describe":
    def describe(group: Group, entry: _Entry, entries: list[_Entry]) -> Group:
        epoch = entry.value["epoch"]
        assigned = {other.key["memberId"]: other.value for other in entries if other.name == kind.assignment}
        found = [other for other in entries if other.name == kind.member]
        found.sort(key=lambda member: str(member.key["memberId"]))
        targets = [other.value["assignmentEpoch"] for other in entries if other.name == kind.target]
        target = targets[-1] if targets else None
        return replace(
            group,
            type=kind.type,
            state=_state(kind, epoch, target, [assigned.get(member.key["memberId"]) for member in found]),
            protocol_type=kind.type,
            epoch=epoch,
            members=tuple(_new_member(member, assigned.get(member.key["memberId"])) for member in found),
        )

    return describe


def _state(kind: _NewGroup, epoch: int, target: int | None, assigned: list[Fields | None]) -> str:
    """The state that a coordinator derives from epochs. Source: ConsumerGroup.maybeUpdateGroupState."""
    if not assigned:
        return "Empty"
    if kind.type == "share":
        return "Stable"
    if target is None or epoch > target:
        return "Assigning"
    if all(value and value["state"] == STABLE_MEMBER and value["memberEpoch"] == target for value in assigned):
        return "Stable"
    return "Reconciling"


def _new_member(member: _Entry, assigned: Fields | None) -> GroupMember:
    value = member.value
    assignment = None
    if assigned is not None and "assignedPartitions" in assigned:
        assignment = tuple(
            AssignedTopic(None, topic["topicId"], tuple(topic["partitions"]))
            for topic in assigned["assignedPartitions"]
        )
    return GroupMember(
        member.key["memberId"],
        value.get("instanceId"),
        value["clientId"],
        value["clientHost"],
        value["rackId"],
        -1 if assigned is None else assigned["memberEpoch"],
        tuple(value.get("subscribedTopicNames", ())),
        value.get("subscribedTopicRegex") or None,
        assignment,
    )


Describe = Callable[[Group, _Entry, list[_Entry]], Group]

DESCRIBERS: dict[str, Describe] = {
    consumer_offsets.GROUP_METADATA_VALUE.name: _classic,
    consumer_offsets.CONSUMER_GROUP_METADATA_VALUE.name: _new_group(
        _NewGroup(
            "consumer",
            consumer_offsets.CONSUMER_GROUP_MEMBER_METADATA_VALUE.name,
            consumer_offsets.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE.name,
            consumer_offsets.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE.name,
        )
    ),
    consumer_offsets.SHARE_GROUP_METADATA_VALUE.name: _new_group(
        _NewGroup(
            "share",
            consumer_offsets.SHARE_GROUP_MEMBER_METADATA_VALUE.name,
            consumer_offsets.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE.name,
            None,
        )
    ),
    consumer_offsets.STREAMS_GROUP_METADATA_VALUE.name: _new_group(
        _NewGroup(
            "streams",
            consumer_offsets.STREAMS_GROUP_MEMBER_METADATA_VALUE.name,
            consumer_offsets.STREAMS_GROUP_CURRENT_MEMBER_ASSIGNMENT_VALUE.name,
            consumer_offsets.STREAMS_GROUP_TARGET_ASSIGNMENT_METADATA_VALUE.name,
        )
    ),
}
"""The message that says of what type a group is, to how the group follows from its records."""
