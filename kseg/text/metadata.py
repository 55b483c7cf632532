"""Columns and text of `kseg metadata` and `kseg rebuild-metadata`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from kseg.cluster.directories import identity_of
from kseg.cluster.model import (
    Acl,
    Broker,
    ClusterMetadata,
    ClusterPartition,
    Config,
    Controller,
    DelegationToken,
    Endpoint,
    Feature,
    Quota,
    QuotaEntity,
    ScramUser,
    SupportedFeature,
    Topic,
    Voter,
    VoterEndpoint,
    entity_text,
    number_text,
)
from kseg.cluster.partitions import ReplicaPlace, ReplicaPlaces
from kseg.cluster.recreate_script import Script
from kseg.cluster.settings import DynamicSettings, ResolvedSetting, SettingSource, resolve_all
from kseg.errors import counted
from kseg.log.selection import PartitionChoice
from kseg.output.forms import RowWriter
from kseg.output.streams import flush_stdout, write_line
from kseg.output.table import NOT_SHOWN, Section, TableColumn
from kseg.text.groups import column, iso_time_column, number_column, numbers_text, timestamp_column, unless_negative

if TYPE_CHECKING:
    from kseg.rewrite.metadata import DeletedPartition, MetadataCopy, NewerPartition, Rebuilding, RebuiltMetadata

_MOST_SHOWN = 20
"""Partitions that people are shown; programs get all."""


class CopyRow(NamedTuple):
    """A copy, and the one that is used."""

    copy: "MetadataCopy"
    used: "MetadataCopy"

    @property
    def behind(self) -> int:
        """Records that the used copy has and this one doesn't."""
        return max(self.used.end_offset - self.copy.end_offset, 0)

    @property
    def behind_ms(self) -> int:
        """Milliseconds between the last records of both."""
        return max(self.used.timestamp - self.copy.timestamp, 0)

    def behind_text(self) -> str:
        """For people."""
        if self.copy is self.used:
            return "used"
        return f"{self.behind} records, {self.behind_ms / 1000:.1f} s" if self.behind else "as far"


COPIES: Section[CopyRow] = Section(
    "copy",
    "Copies of __cluster_metadata",
    (
        number_column("nodeId", "NODE", lambda row: row.copy.owner.broker),
        column("path", "COPY", lambda row: str(row.copy.partition.path)),
        number_column("endOffset", "END OFFSET", lambda row: row.copy.end_offset),
        number_column("leaderEpoch", "LEADER EPOCH", lambda row: row.copy.leader_epoch),
        number_column("knownEpoch", NOT_SHOWN, lambda row: unless_negative(row.copy.known_epoch)),
        timestamp_column("last", NOT_SHOWN, lambda row: row.copy.timestamp),
        iso_time_column("last", lambda row: row.copy.timestamp, "LAST RECORD"),
        column("isUsed", NOT_SHOWN, lambda row: row.copy is row.used),
        number_column("behindRecords", NOT_SHOWN, lambda row: row.behind),
        column("behindMs", "BEHIND", lambda row: row.behind_ms, lambda row: row.behind_text()),
        column("problem", NOT_SHOWN, lambda row: row.copy.problem),
    ),
)
NEWER: "Section[NewerPartition]" = Section(
    "newerPartition",
    "Newer than the copy that is used",
    (
        column("path", "PARTITION", lambda row: str(row.path)),
        column("topicId", "TOPIC ID", lambda row: row.topic_id),
        number_column("leaderEpoch", NOT_SHOWN, lambda row: row.leader_epoch),
        number_column("startOffset", NOT_SHOWN, lambda row: row.start_offset),
        number_column("knownEpoch", NOT_SHOWN, lambda row: row.known_epoch),
        column("reason", "WHY", lambda row: row.reason),
    ),
)
DELETED: "Section[DeletedPartition]" = Section(
    "deletedPartition",
    "Deleted, and left out",
    (
        column("path", "PARTITION", lambda row: str(row.path)),
        column("topicId", "TOPIC ID", lambda row: row.topic_id),
        number_column("deletedAt", NOT_SHOWN, lambda row: row.deleted_at),
        column("reason", "WHY", lambda row: row.reason),
    ),
)
REBUILT: "Section[RebuiltMetadata]" = Section(
    "rebuilt",
    "Controller",
    (
        number_column("nodeId", "NODE", lambda row: row.node_id),
        column("clusterId", "CLUSTER", lambda row: row.cluster_id),
        column("directoryId", "DIRECTORY", lambda row: row.directory_id),
        column("quorum", "QUORUM", lambda row: "dynamic" if row.is_dynamic else "static"),
        column("checkpoint", "CHECKPOINT", lambda row: row.copy.found.checkpoint),
        number_column("endOffset", "END OFFSET", lambda row: row.end_offset),
        number_column("leaderEpoch", "AFTER EPOCH", lambda row: row.leader_epoch),
        column(
            "oldVoters",
            "INSTEAD OF",
            lambda row: [voter.voter_id for voter in row.old_voters],
            lambda row: ",".join(str(voter.voter_id) for voter in row.old_voters),
        ),
    ),
)


def write_rebuilding(rebuilding: "Rebuilding", writer: RowWriter) -> None:
    """Writes all that was found."""
    planned, newer, deleted = rebuilding.planned, rebuilding.newer, rebuilding.deleted
    writer.write(COPIES, [CopyRow(copy, planned.copy) for copy in rebuilding.copies])
    writer.write(NEWER, newer[:_MOST_SHOWN] if writer.form.is_for_people else newer)
    writer.write(DELETED, deleted[:_MOST_SHOWN] if writer.form.is_for_people else deleted)
    writer.write(REBUILT, [planned])


def rebuilding_notes(rebuilding: "Rebuilding", directory: Path | None) -> Iterator[str]:
    """What is wrong or to be minded, and the next step, if the directory is written."""
    planned = rebuilding.planned
    for copy in rebuilding.copies:
        if copy.problem is not None:
            yield f"{copy.partition.path}: ends before {copy.problem}"
        if copy.known_epoch > copy.leader_epoch:
            known = f"leader epoch {copy.known_epoch}, of which it has no record"
            yield f"{copy.partition.path}: its node knew of {known}: something may have been decided after its end"
    if len(rebuilding.newer) > _MOST_SHOWN:
        yield f"{len(rebuilding.newer) - _MOST_SHOWN} more partitions are newer than the copy: -o json has all"
    if rebuilding.deleted:
        many = counted(len(rebuilding.deleted), "directory", "directories")
        yield f"{many} of deleted partitions {'is' if len(rebuilding.deleted) == 1 else 'are'} left out"
    if planned.node_id in {broker.broker_id for broker in planned.copy.found.brokers}:
        yield f"{planned.node_id} is a broker's id: right only for a node that is broker and controller at once"
    if directory is not None and planned.is_dynamic and rebuilding.is_behind:
        yield "a broker that has more of the metadata has to be started twice: at first it doesn't see the new voter"
    if directory is not None:
        yield f"{directory}: start no controller on it before you have read docs/how-to/metadata.md"


def _entity_objects(entity: tuple[QuotaEntity, ...]) -> list[dict[str, str | None]]:
    return [{"entityType": part.type, "entityName": part.name} for part in entity]


ACLS: Section[Acl] = Section(
    "acl",
    "ACLs",
    (
        column("resourceType", "TYPE", lambda row: row.resource_type),
        column("resource", "RESOURCE", lambda row: row.resource),
        column("patternType", "PATTERN", lambda row: row.pattern_type),
        column("principal", "PRINCIPAL", lambda row: row.principal),
        column("host", "HOST", lambda row: row.host),
        column("operation", "OPERATION", lambda row: row.operation),
        column("permission", "PERMISSION", lambda row: row.permission),
    ),
    lambda row: "yellow" if row.permission == "DENY" else "",
)
QUOTAS: Section[Quota] = Section(
    "quota",
    "Quotas",
    (
        column("entity", "ENTITY", lambda row: _entity_objects(row.entity), lambda row: entity_text(row.entity)),
        column("name", "NAME", lambda row: row.name),
        column("value", "VALUE", lambda row: row.value, lambda row: number_text(row.value)),
    ),
)
SCRAM: Section[ScramUser] = Section(
    "scram",
    "SCRAM credentials",
    (
        column("user", "USER", lambda row: row.user),
        column("mechanism", "MECHANISM", lambda row: row.mechanism),
        number_column("iterations", "ITERATIONS", lambda row: row.iterations),
    ),
)
TOKENS: Section[DelegationToken] = Section(
    "token",
    "Delegation tokens",
    (
        column("tokenId", "TOKEN", lambda row: row.token_id),
        column("owner", "OWNER", lambda row: row.owner),
        column("requester", "REQUESTER", lambda row: row.requester),
        column("renewers", "RENEWERS", lambda row: list(row.renewers), lambda row: ",".join(row.renewers)),
        timestamp_column("issue", NOT_SHOWN, lambda row: row.issued),
        iso_time_column("issue", lambda row: row.issued, "ISSUED"),
        timestamp_column("expiration", NOT_SHOWN, lambda row: row.expires),
        iso_time_column("expiration", lambda row: row.expires, "EXPIRES"),
        timestamp_column("max", NOT_SHOWN, lambda row: row.expires_at_last),
        iso_time_column("max", lambda row: row.expires_at_last, "AT LAST"),
    ),
)


HIDDEN_VALUE = "(hidden)"
"""In the place of passwords."""


class _Node(Protocol):
    """A broker, a controller or a voter."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...] | tuple[VoterEndpoint, ...]: ...


Node = TypeVar("Node", bound=_Node)


def _endpoints_column() -> TableColumn[Node]:
    """Where a node is reached."""

    def objects(row: Node) -> list[dict[str, object]]:
        names = {"security_protocol": "securityProtocol"}
        return [{names.get(key, key): value for key, value in one._asdict().items()} for one in row.endpoints]

    def text(row: Node) -> str:
        return " ".join(f"{one.name}://{one.host}:{one.port}" for one in row.endpoints)

    return column("endpoints", "ENDPOINTS", objects, text)


def _feature_objects(features: tuple[SupportedFeature, ...]) -> list[dict[str, object]]:
    return [{"name": one.name, "minimum": one.minimum, "maximum": one.maximum} for one in features]


def _broker_state(broker: Broker) -> str:
    if broker.is_in_controlled_shutdown:
        return "fenced, shut down" if broker.is_fenced else "shutting down"
    return "fenced" if broker.is_fenced else "active"


class PartitionRow(NamedTuple):
    """A partition, and where its replicas lie."""

    partition: ClusterPartition
    places: tuple[ReplicaPlace, ...]


def _place_object(place: ReplicaPlace) -> dict[str, object]:
    path = None if place.path is None else str(place.path)
    return {"replica": place.replica, "directoryId": place.directory_id, "path": path}


class DirectoryRow(NamedTuple):
    """A log directory of a broker: its id, its path if it is here, whether it is cordoned, its replicas."""

    broker_id: int
    directory_id: str
    path: str | None
    is_cordoned: bool
    replica_count: int


def directory_rows(found: ClusterMetadata, places: ReplicaPlaces) -> Iterator[DirectoryRow]:
    """The log directories that brokers registered (3.7 on)."""
    counts = Counter(directory for partition in found.partitions for directory in partition.directories)
    for broker in found.brokers:
        for directory_id in broker.log_dirs:
            path = places.path_of(directory_id)
            own = None if path is None else str(path)
            is_cordoned = directory_id in broker.cordoned_log_dirs
            yield DirectoryRow(broker.broker_id, directory_id, own, is_cordoned, counts[directory_id])


def _partition_style(row: PartitionRow) -> str:
    if row.partition.leader < 0:
        return "red"
    return "yellow" if len(row.partition.isr) < len(row.partition.replicas) else ""


FEATURES: Section[Feature] = Section(
    "feature",
    "Features",
    (column("name", "FEATURE", lambda row: row.name), number_column("level", "LEVEL", lambda row: row.level)),
)
BROKERS: Section[Broker] = Section(
    "broker",
    "Brokers",
    (
        number_column("brokerId", "BROKER", lambda row: row.broker_id),
        column("state", "STATE", _broker_state),
        number_column("epoch", "EPOCH", lambda row: row.epoch),
        column("rack", "RACK", lambda row: row.rack),
        column("incarnationId", NOT_SHOWN, lambda row: row.incarnation_id),
        column("isFenced", NOT_SHOWN, lambda row: row.is_fenced),
        column("isInControlledShutdown", NOT_SHOWN, lambda row: row.is_in_controlled_shutdown),
        _endpoints_column(),
        column("features", NOT_SHOWN, lambda row: _feature_objects(row.features)),
        column("logDirs", "LOG DIRECTORIES", lambda row: list(row.log_dirs), lambda row: ",".join(row.log_dirs)),
    ),
    lambda row: "yellow" if row.is_fenced else "",
)
CONTROLLERS: Section[Controller] = Section(
    "controller",
    "Controllers",
    (
        number_column("controllerId", "CONTROLLER", lambda row: row.controller_id),
        column("incarnationId", "INCARNATION", lambda row: row.incarnation_id),
        _endpoints_column(),
        column("features", NOT_SHOWN, lambda row: _feature_objects(row.features)),
    ),
)
VOTERS: Section[Voter] = Section(
    "voter",
    "Voters",
    (
        number_column("voterId", "VOTER", lambda row: row.voter_id),
        column("directoryId", "DIRECTORY", lambda row: row.directory_id),
        _endpoints_column(),
    ),
)
DIRECTORIES: Section[DirectoryRow] = Section(
    "directory",
    "Log directories",
    (
        number_column("brokerId", "BROKER", lambda row: row.broker_id),
        column("directoryId", "DIRECTORY", lambda row: row.directory_id),
        column("path", "PATH", lambda row: row.path),
        column("isCordoned", "CORDONED", lambda row: row.is_cordoned, lambda row: "yes" if row.is_cordoned else "no"),
        number_column("replicas", "REPLICAS", lambda row: row.replica_count),
    ),
)
TOPICS: Section[Topic] = Section(
    "topic",
    "Topics",
    (
        column("topic", "TOPIC", lambda row: row.name),
        column("topicId", "ID", lambda row: row.topic_id),
        number_column("partitions", "PARTITIONS", lambda row: len(row.partitions)),
    ),
)


def _broker_ids(name: str, title: str, value: Callable[[PartitionRow], tuple[int, ...]]) -> TableColumn[PartitionRow]:
    return column(name, title, lambda row: list(value(row)), lambda row: numbers_text(value(row)))


PARTITIONS: Section[PartitionRow] = Section(
    "partition",
    "Partitions",
    (
        column("topic", "TOPIC", lambda row: row.partition.topic),
        column("topicId", NOT_SHOWN, lambda row: row.partition.topic_id),
        number_column("partition", "PART", lambda row: row.partition.partition),
        column(
            "leader",
            "LEADER",
            lambda row: unless_negative(row.partition.leader),
            lambda row: "none" if row.partition.leader < 0 else str(row.partition.leader),
        ),
        number_column("leaderEpoch", "EPOCH", lambda row: row.partition.leader_epoch),
        number_column("partitionEpoch", NOT_SHOWN, lambda row: row.partition.partition_epoch),
        _broker_ids("replicas", "REPLICAS", lambda row: row.partition.replicas),
        _broker_ids("isr", "ISR", lambda row: row.partition.isr),
        _broker_ids("eligibleLeaderReplicas", "ELR", lambda row: row.partition.elr),
        column("lastKnownElr", NOT_SHOWN, lambda row: list(row.partition.last_known_elr)),
        _broker_ids("addingReplicas", "ADDING", lambda row: row.partition.adding_replicas),
        _broker_ids("removingReplicas", "REMOVING", lambda row: row.partition.removing_replicas),
        column("isRecovering", NOT_SHOWN, lambda row: row.partition.is_recovering),
        column(
            "directories",
            "DIRECTORIES",
            lambda row: [*map(_place_object, row.places)],
            lambda row: " ".join(filter(None, (place.text() for place in row.places))),
        ),
    ),
    _partition_style,
)
CONFIGS: Section[Config] = Section(
    "config",
    "Configs",
    (
        column("resourceType", "TYPE", lambda row: row.resource_type),
        column("resource", "RESOURCE", lambda row: row.resource),
        column("name", "NAME", lambda row: row.name),
        column("value", "VALUE", lambda row: HIDDEN_VALUE if row.is_secret else row.value),
    ),
)
METADATA: Section[ClusterMetadata] = Section(
    "metadata",
    None,
    (
        number_column("offset", "OFFSET", lambda row: unless_negative(row.offset)),
        number_column("timestamp", "TIMESTAMP", lambda row: unless_negative(row.timestamp)),
        iso_time_column("", lambda row: row.timestamp, "TIME"),
        column("checkpoint", "CHECKPOINT", lambda row: row.checkpoint),
        number_column("missingBefore", "MISSING BEFORE", lambda row: row.missing_before),
        number_column("unapplied", "UNAPPLIED", lambda row: row.unapplied),
        number_column("kraftVersion", "KRAFT VERSION", lambda row: row.kraft_version),
        number_column("nextProducerId", "NEXT PRODUCER ID", lambda row: row.next_producer_id),
    ),
)
"""Columns about a cluster's metadata as a whole, only in JSON."""


class SettingRow(NamedTuple):
    """A setting in force for a topic; may_differ: a server.properties that isn't known may set something else."""

    topic: str
    setting: ResolvedSetting
    may_differ: bool

    def source_text(self) -> str:
        """Who sets it, for people."""
        text = self.setting.source.text()
        return f"{text}, unless server.properties sets it" if self.may_differ else text


SETTINGS: Section[SettingRow] = Section(
    "setting",
    "Settings",
    (
        column("topic", "TOPIC", lambda row: row.topic),
        column("name", "NAME", lambda row: row.setting.name),
        column("value", "VALUE", lambda row: row.setting.value),
        column("source", "FROM", lambda row: row.setting.source.name, lambda row: row.source_text()),
        column("mayDiffer", NOT_SHOWN, lambda row: row.may_differ),
    ),
)


def setting_rows(found: ClusterMetadata, static: Mapping[str, str], choice: PartitionChoice) -> Iterator[SettingRow]:
    """All settings of the topics that are meant; static: of the server.properties of the broker that is asked."""
    known = DynamicSettings(found)
    brokers = known.of_the_broker((identity_of(log_dir).broker for log_dir in found.log_dirs), static)
    for topic in found.topics:
        if choice.takes_topic(topic.name):
            for setting in resolve_all(known.of("topic", topic.name), brokers):
                may_differ = not static and setting.source is SettingSource.DEFAULT and setting.has_broker_name
                yield SettingRow(topic.name, setting, may_differ)


def cluster_sections(
    found: ClusterMetadata, places: ReplicaPlaces, choice: PartitionChoice
) -> Iterator[tuple[str, Section[Any], list[Any]]]:
    """All kinds of rows by the names that users choose them by, those of topics as far as these are meant."""
    yield "features", FEATURES, [*found.features]
    yield "voters", VOTERS, [*found.voters]
    yield "controllers", CONTROLLERS, [*found.controllers]
    yield "brokers", BROKERS, [*found.brokers]
    yield "directories", DIRECTORIES, [*directory_rows(found, places)]
    yield "topics", TOPICS, [row for row in found.topics if choice.takes_topic(row.name)]
    partitions = (row for row in found.partitions if choice.takes(row.topic, row.partition))
    yield "partitions", PARTITIONS, [PartitionRow(row, places.of(row)) for row in partitions]
    configs = (row for row in found.configs if row.resource_type != "topic" or choice.takes_topic(row.resource))
    yield "configs", CONFIGS, [*configs]
    yield "acls", ACLS, [*found.acls]
    yield "quotas", QUOTAS, [*found.quotas]
    yield "scram", SCRAM, [*found.scram]
    yield "tokens", TOKENS, [*found.tokens]


KINDS = (
    "features",
    "voters",
    "controllers",
    "brokers",
    "directories",
    "topics",
    "partitions",
    "configs",
    "acls",
    "quotas",
    "scram",
    "tokens",
)
"""The names of the kinds of rows, in their order."""


def write_sections(
    found: ClusterMetadata,
    sections: Iterable[tuple[str, Section[Any], list[Any]]],
    writer: RowWriter,
    show: str | None,
) -> None:
    """Writes all kinds of rows, or one; CSV can have one only. JSON begins with the moment."""
    wanted = show or ("partitions" if writer.form.has_one_kind else None)
    if wanted is None and writer.form.has_objects:
        writer.form.write_object(writer.in_zone(METADATA).as_object(found))
    for name, section, rows in sections:
        if wanted in (None, name):
            writer.write(section, rows)


def write_script(script: Script, note: Callable[[str], object]) -> None:
    """Writes a script, and says how much it carries over and what it doesn't."""
    for line in script.lines:
        write_line(line)
    flush_stdout()
    named = ", which the script's end names" if script.left_out else ""
    count = "1 command" if script.command_count == 1 else f"{script.command_count} commands"
    note(f"{count}; left out: {len(script.left_out)}{named}")
