"""The columns of groups, transactions and metadata: declared once for JSON, CSV and tables."""

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from kseg.archive.shown_paths import shown
from kseg.output.table import TableColumn
from kseg.times import duration_text, iso_time, short_time
from kseg.views.cluster import Broker, Config, Controller, Endpoint, Feature, Partition, SupportedFeature, Topic
from kseg.views.coordinators import Verdict
from kseg.views.groups import AssignedTasks, AssignedTopic, Group, GroupMember, OffsetCommit
from kseg.views.replica_places import ReplicaPlace
from kseg.views.rows import NOT_SHOWN, Section
from kseg.views.transactions import CoordinatorTransaction, Transaction

Row = TypeVar("Row")
HIDDEN_VALUE = "(hidden)"
"""In the place of passwords."""


def _column(
    name: str, title: str, value: Callable[[Row], object], show: Callable[[Row], str] | None = None
) -> TableColumn[Row]:
    return TableColumn(name, title, -1, value, show)


def _number(name: str, title: str, value: Callable[[Row], object]) -> TableColumn[Row]:
    return TableColumn(name, title, 1, value, None)


def _timestamp(name: str, title: str, value: Callable[[Row], int | None]) -> TableColumn[Row]:
    """`nameTimestamp`: milliseconds since 1970, null for none."""

    def milliseconds(row: Row) -> int | None:
        timestamp = value(row)
        return None if timestamp is None or timestamp < 0 else timestamp

    return TableColumn(f"{name}Timestamp", title, -1, milliseconds, lambda row: short_time(value(row)))


def _iso_time(name: str, value: Callable[[Row], int | None]) -> TableColumn[Row]:
    """`nameTime`: the same in ISO 8601."""
    return TableColumn(f"{name}Time", NOT_SHOWN, -1, lambda row: iso_time(value(row)))


def _unless_negative(number: int) -> int | None:
    return None if number < 0 else number


def _numbers(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


# --- groups --------------------------------------------------------------------------------------------------------


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
    texts = [f"{topic.topic or topic.topic_id}:{_numbers(topic.partitions)}" for topic in topics or ()]
    texts += [f"{each.kind} {each.subtopology_id}:{_numbers(each.partitions)}" for each in tasks or ()]
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
        _column("group", "GROUP", lambda row: row.group),
        _number("coordinatorPartition", "COORD", lambda row: row.coordinator_partition),
        _column("groupType", "TYPE", lambda row: row.type),
        _column("state", "STATE", lambda row: row.state),
        _column("protocolType", NOT_SHOWN, lambda row: row.protocol_type),
        _column("protocol", "PROTOCOL", lambda row: row.protocol),
        _column("assignor", "ASSIGNOR", lambda row: row.assignor),
        _number("epoch", "EPOCH", lambda row: _unless_negative(row.epoch)),
        _number("assignmentEpoch", "TARGET", lambda row: _unless_negative(row.assignment_epoch)),
        _column("leader", NOT_SHOWN, lambda row: row.leader),
        _timestamp("state", "SINCE", lambda row: row.state_timestamp),
        _iso_time("state", lambda row: row.state_timestamp),
        _number("members", "MEMBERS", lambda row: len(row.members)),
        _number("commits", "COMMITS", lambda row: len(row.commits)),
        _number("pendingCommits", "PENDING", lambda row: len(row.pending_commits)),
    ),
)
COMMITS: Section[OffsetCommit] = Section(
    "commit",
    "Commits",
    (
        _column("group", "GROUP", lambda row: row.group),
        _column("topic", "TOPIC", lambda row: row.topic),
        _number("partition", "PART", lambda row: row.partition),
        _number("offset", "OFFSET", lambda row: row.offset),
        _number("leaderEpoch", "EPOCH", lambda row: _unless_negative(row.leader_epoch)),
        _timestamp("commit", "COMMITTED", lambda row: row.commit_timestamp),
        _iso_time("commit", lambda row: row.commit_timestamp),
        _timestamp("expire", NOT_SHOWN, lambda row: row.expire_timestamp),
        _iso_time("expire", lambda row: row.expire_timestamp),
        _column("topicId", NOT_SHOWN, lambda row: row.topic_id),
        _number("recordOffset", "AT", lambda row: row.record_offset),
        _number("pendingProducerId", "PENDING", lambda row: row.producer_id),
        _column("metadata", "METADATA", lambda row: row.metadata),
    ),
    lambda row: "" if row.producer_id is None else "yellow",
)
MEMBERS: Section[MemberRow] = Section(
    "member",
    "Members",
    (
        _column("group", "GROUP", lambda row: row.group.group),
        _column("memberId", "MEMBER", lambda row: row.member.member_id),
        _column("groupInstanceId", "INSTANCE", lambda row: row.member.group_instance_id),
        _column("clientId", "CLIENT", lambda row: row.member.client_id),
        _column("clientHost", "HOST", lambda row: row.member.client_host),
        _column("rack", NOT_SHOWN, lambda row: row.member.rack),
        _number("epoch", "EPOCH", lambda row: _unless_negative(row.member.epoch)),
        _column(
            "subscribedTopics",
            "SUBSCRIBED",
            lambda row: list(row.member.subscribed_topics),
            lambda row: ",".join(row.member.subscribed_topics) or row.member.subscribed_regex or "",
        ),
        _column("subscribedRegex", NOT_SHOWN, lambda row: row.member.subscribed_regex),
        _column("assignor", NOT_SHOWN, lambda row: row.member.assignor),
        _column(
            "assignment",
            "ASSIGNED",
            lambda row: _assignment(row.member),
            lambda row: _assignment_text(row.member.assignment, row.member.tasks),
        ),
        _column("target", "TARGET", lambda row: _target(row.member), lambda row: _target_text(row.member)),
    ),
)


# --- transactions --------------------------------------------------------------------------------------------------


class TransactionRow(NamedTuple):
    """A transaction of a partition, and the verdict on it if it is open.

    now_ms: the time to judge at, None if none was given. abort_command: the line that aborts it, if it hangs.
    """

    transaction: Transaction
    verdict: Verdict | None
    now_ms: int | None
    abort_command: str | None = None

    @property
    def is_hanging(self) -> bool | None:
        """Whether nobody will end it; None if that can't be known."""
        return False if self.verdict is None else self.verdict.is_hanging

    @property
    def transactional_id(self) -> str | None:
        """The transactional id of the producer, of one that is open, if it is known."""
        coordinator = None if self.verdict is None else self.verdict.coordinator
        return None if coordinator is None else coordinator.transactional_id

    @property
    def duration_ms(self) -> int | None:
        """How long it took or has been open: as its coordinator has it; of one that hangs, since its last record."""
        if self.verdict is None:
            return self.transaction.duration_ms
        if self.verdict.coordinator is not None and self.verdict.is_hanging is False:
            return self.verdict.coordinator.duration_ms(self.now_ms)
        last = self.transaction.last_timestamp
        return None if self.now_ms is None or last is None else max(0, self.now_ms - last)


class CoordinatorRow(NamedTuple):
    """What a coordinator knew of a transactional id; now_ms: the time to judge at, None if none was given."""

    transaction: CoordinatorTransaction
    now_ms: int | None

    @property
    def is_overdue(self) -> bool | None:
        """Whether its coordinator is to abort it."""
        return self.transaction.is_overdue(self.now_ms)

    @property
    def duration_ms(self) -> int | None:
        """How long it took or has been open."""
        return self.transaction.duration_ms(self.now_ms)


class StableRow(NamedTuple):
    """How far a partition can be read by consumers that read committed records only."""

    topic: str | None
    partition: int | None
    last_stable_offset: int
    log_end_offset: int
    open_transactions: int


def _transaction_style(row: TransactionRow) -> str:
    if row.is_hanging:
        return "red"
    return "yellow" if row.transaction.is_open else ""


def _coordinator_style(row: CoordinatorRow) -> str:
    return "yellow" if row.transaction.is_open else ""


def _duration(row: TransactionRow | CoordinatorRow) -> str:
    is_known = row.duration_ms is not None or not row.transaction.is_open
    return duration_text(row.duration_ms) if is_known else "unknown"


def _outcome(row: TransactionRow) -> str:
    return "hanging" if row.is_hanging else str(row.transaction.outcome)


TRANSACTIONS: Section[TransactionRow] = Section(
    "transaction",
    "Transactions",
    (
        _column("topic", "TOPIC", lambda row: row.transaction.topic),
        _number("partition", "PART", lambda row: row.transaction.partition),
        _number("producerId", "PRODUCER", lambda row: row.transaction.producer_id),
        _number("producerEpoch", "EPOCH", lambda row: row.transaction.producer_epoch),
        _column("state", "STATE", lambda row: str(row.transaction.outcome), _outcome),
        _column("isHanging", NOT_SHOWN, lambda row: row.is_hanging),
        _column("blocksLastStableOffset", NOT_SHOWN, lambda row: row.transaction.is_open),
        _number("firstOffset", "FIRST", lambda row: row.transaction.first_offset),
        _number("lastOffset", "LAST", lambda row: row.transaction.last_offset),
        _number("endOffset", "MARKER", lambda row: row.transaction.end_offset),
        _number("records", "RECORDS", lambda row: row.transaction.records),
        _number("batches", NOT_SHOWN, lambda row: row.transaction.batches),
        _timestamp("first", "BEGAN", lambda row: row.transaction.first_timestamp),
        _iso_time("first", lambda row: row.transaction.first_timestamp),
        _timestamp("last", NOT_SHOWN, lambda row: row.transaction.last_timestamp),
        _iso_time("last", lambda row: row.transaction.last_timestamp),
        _timestamp("end", NOT_SHOWN, lambda row: row.transaction.end_timestamp),
        _iso_time("end", lambda row: row.transaction.end_timestamp),
        _column("durationMs", "TOOK", lambda row: row.duration_ms, _duration),
        _number("coordinatorEpoch", "COORD", lambda row: row.transaction.coordinator_epoch),
        _column("transactionalId", NOT_SHOWN, lambda row: row.transactional_id),
        _column(
            "reason",
            "WHY",
            lambda row: None if row.verdict is None else row.verdict.reason,
            lambda row: "" if row.verdict is None else row.verdict.reason,
        ),
        _column("abortCommand", NOT_SHOWN, lambda row: row.abort_command),
    ),
    _transaction_style,
)
COORDINATOR_TRANSACTIONS: Section[CoordinatorRow] = Section(
    "coordinatorTransaction",
    "Transactional ids",
    (
        _column("transactionalId", "TRANSACTIONAL ID", lambda row: row.transaction.transactional_id),
        _number("coordinatorPartition", "COORD", lambda row: row.transaction.coordinator_partition),
        _number("producerId", "PRODUCER", lambda row: row.transaction.producer_id),
        _number("producerEpoch", "EPOCH", lambda row: row.transaction.producer_epoch),
        _column("state", "STATE", lambda row: row.transaction.state),
        _column("isOpen", NOT_SHOWN, lambda row: row.transaction.is_open),
        _column("isOverdue", "OVERDUE", lambda row: row.is_overdue, lambda row: "yes" if row.is_overdue else ""),
        _timestamp("start", "BEGAN", lambda row: row.transaction.start_timestamp),
        _iso_time("start", lambda row: row.transaction.start_timestamp),
        _timestamp("lastUpdate", "CHANGED", lambda row: row.transaction.last_update_timestamp),
        _iso_time("lastUpdate", lambda row: row.transaction.last_update_timestamp),
        _column("durationMs", "TOOK", lambda row: row.duration_ms, _duration),
        _number("timeoutMs", "TIMEOUT MS", lambda row: row.transaction.timeout_ms),
        _number("previousProducerId", NOT_SHOWN, lambda row: _unless_negative(row.transaction.previous_producer_id)),
        _number("nextProducerId", NOT_SHOWN, lambda row: _unless_negative(row.transaction.next_producer_id)),
        _number("clientTransactionVersion", NOT_SHOWN, lambda row: row.transaction.client_transaction_version),
        _number("recordOffset", "AT", lambda row: row.transaction.record_offset),
        _column(
            "partitions",
            "PARTITIONS",
            lambda row: [f"{topic}-{partition}" for topic, partition in row.transaction.partitions],
            lambda row: ",".join(f"{topic}-{partition}" for topic, partition in row.transaction.partitions),
        ),
    ),
    _coordinator_style,
)
STABLE_OFFSETS: Section[StableRow] = Section(
    "partition",
    "Last stable offsets",
    (
        _column("topic", "TOPIC", lambda row: row.topic),
        _number("partition", "PART", lambda row: row.partition),
        _number("lastStableOffset", "STABLE", lambda row: row.last_stable_offset),
        _number("logEndOffset", "END", lambda row: row.log_end_offset),
        _number("openTransactions", "OPEN", lambda row: row.open_transactions),
    ),
    lambda row: "yellow" if row.open_transactions else "",
)


# --- metadata ------------------------------------------------------------------------------------------------------


def _endpoint_text(endpoints: tuple[Endpoint, ...]) -> str:
    return " ".join(f"{one.name}://{one.host}:{one.port}" for one in endpoints)


def _endpoint_objects(endpoints: tuple[Endpoint, ...]) -> list[dict[str, object]]:
    return [
        {"name": one.name, "host": one.host, "port": one.port, "securityProtocol": one.security_protocol}
        for one in endpoints
    ]


def _feature_objects(features: tuple[SupportedFeature, ...]) -> list[dict[str, object]]:
    return [{"name": one.name, "minimum": one.minimum, "maximum": one.maximum} for one in features]


def _broker_state(broker: Broker) -> str:
    if broker.is_in_controlled_shutdown:
        return "fenced, shut down" if broker.is_fenced else "shutting down"
    return "fenced" if broker.is_fenced else "active"


class PartitionRow(NamedTuple):
    """A partition, and where its replicas lie."""

    partition: Partition
    places: tuple[ReplicaPlace, ...]


def _place_object(place: ReplicaPlace) -> dict[str, object]:
    path = None if place.path is None else shown(str(place.path))
    return {"replica": place.replica, "directoryId": place.directory_id, "path": path}


def _partition_style(row: PartitionRow) -> str:
    if row.partition.leader < 0:
        return "red"
    return "yellow" if len(row.partition.isr) < len(row.partition.replicas) else ""


FEATURES: Section[Feature] = Section(
    "feature",
    "Features",
    (_column("name", "FEATURE", lambda row: row.name), _number("level", "LEVEL", lambda row: row.level)),
)
BROKERS: Section[Broker] = Section(
    "broker",
    "Brokers",
    (
        _number("brokerId", "BROKER", lambda row: row.broker_id),
        _column("state", "STATE", _broker_state),
        _number("epoch", "EPOCH", lambda row: row.epoch),
        _column("rack", "RACK", lambda row: row.rack),
        _column("incarnationId", NOT_SHOWN, lambda row: row.incarnation_id),
        _column("isFenced", NOT_SHOWN, lambda row: row.is_fenced),
        _column("isInControlledShutdown", NOT_SHOWN, lambda row: row.is_in_controlled_shutdown),
        _column(
            "endpoints",
            "ENDPOINTS",
            lambda row: _endpoint_objects(row.endpoints),
            lambda row: _endpoint_text(row.endpoints),
        ),
        _column("features", NOT_SHOWN, lambda row: _feature_objects(row.features)),
        _column("logDirs", "LOG DIRECTORIES", lambda row: list(row.log_dirs), lambda row: ",".join(row.log_dirs)),
    ),
    lambda row: "yellow" if row.is_fenced else "",
)
CONTROLLERS: Section[Controller] = Section(
    "controller",
    "Controllers",
    (
        _number("controllerId", "CONTROLLER", lambda row: row.controller_id),
        _column("incarnationId", "INCARNATION", lambda row: row.incarnation_id),
        _column(
            "endpoints",
            "ENDPOINTS",
            lambda row: _endpoint_objects(row.endpoints),
            lambda row: _endpoint_text(row.endpoints),
        ),
        _column("features", NOT_SHOWN, lambda row: _feature_objects(row.features)),
    ),
)
TOPICS: Section[Topic] = Section(
    "topic",
    "Topics",
    (
        _column("topic", "TOPIC", lambda row: row.name),
        _column("topicId", "ID", lambda row: row.topic_id),
        _number("partitions", "PARTITIONS", lambda row: len(row.partitions)),
    ),
)


def _broker_ids(name: str, title: str, value: Callable[[PartitionRow], tuple[int, ...]]) -> TableColumn[PartitionRow]:
    return _column(name, title, lambda row: list(value(row)), lambda row: _numbers(value(row)))


PARTITIONS: Section[PartitionRow] = Section(
    "partition",
    "Partitions",
    (
        _column("topic", "TOPIC", lambda row: row.partition.topic),
        _column("topicId", NOT_SHOWN, lambda row: row.partition.topic_id),
        _number("partition", "PART", lambda row: row.partition.partition),
        _column(
            "leader",
            "LEADER",
            lambda row: _unless_negative(row.partition.leader),
            lambda row: "none" if row.partition.leader < 0 else str(row.partition.leader),
        ),
        _number("leaderEpoch", "EPOCH", lambda row: row.partition.leader_epoch),
        _number("partitionEpoch", NOT_SHOWN, lambda row: row.partition.partition_epoch),
        _broker_ids("replicas", "REPLICAS", lambda row: row.partition.replicas),
        _broker_ids("isr", "ISR", lambda row: row.partition.isr),
        _broker_ids("eligibleLeaderReplicas", "ELR", lambda row: row.partition.elr),
        _column("lastKnownElr", NOT_SHOWN, lambda row: list(row.partition.last_known_elr)),
        _broker_ids("addingReplicas", "ADDING", lambda row: row.partition.adding_replicas),
        _broker_ids("removingReplicas", "REMOVING", lambda row: row.partition.removing_replicas),
        _column("isRecovering", NOT_SHOWN, lambda row: row.partition.is_recovering),
        _column(
            "directories",
            "DIRECTORIES",
            lambda row: [*map(_place_object, row.places)],
            lambda row: " ".join(filter(None, (shown(place.text()) for place in row.places))),
        ),
    ),
    _partition_style,
)
CONFIGS: Section[Config] = Section(
    "config",
    "Configs",
    (
        _column("resourceType", "TYPE", lambda row: row.resource_type),
        _column("resource", "RESOURCE", lambda row: row.resource),
        _column("name", "NAME", lambda row: row.name),
        _column("value", "VALUE", lambda row: HIDDEN_VALUE if row.is_secret else row.value),
    ),
)
