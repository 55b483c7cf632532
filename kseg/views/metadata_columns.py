"""The columns of a cluster's metadata, for JSON, CSV and tables."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from kseg.archive.shown_paths import shown
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.output.row_writer import NOT_SHOWN, Section
from kseg.output.table import TableColumn
from kseg.views.access_columns import ACLS, QUOTAS, SCRAM, TOKENS
from kseg.views.cluster import (
    Broker,
    ClusterMetadata,
    ClusterPartition,
    Config,
    Controller,
    Endpoint,
    Feature,
    SupportedFeature,
    Topic,
)
from kseg.views.column_kinds import (
    column,
    iso_time_column,
    number_column,
    numbers_text,
    unless_negative,
)
from kseg.views.quorum import Voter, VoterEndpoint
from kseg.views.replica_places import ReplicaPlace, ReplicaPlaces

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
    path = None if place.path is None else shown(str(place.path))
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
            own = None if path is None else shown(str(path))
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
            lambda row: " ".join(filter(None, (shown(place.text()) for place in row.places))),
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
