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
from kseg.errors import plural
from kseg.log.selection import PartitionChoice
from kseg.output.columns import NOT_SHOWN, Column, iso_time_column, listed_column, timestamp_column
from kseg.output.forms import RowWriter
from kseg.output.streams import flush_stdout, write_line
from kseg.output.table import Section
from kseg.text import fields
from kseg.text.groups import unless_negative

if TYPE_CHECKING:
    from kseg.rewrite.metadata import DeletedPartition, MetadataCopy, NewerPartition, Rebuilding, RebuiltMetadata

_MOST_SHOWN = 20
"""Most partitions that people see; programs get all."""


class CopyRow(NamedTuple):
    """A copy, and the copy that is used."""

    copy: "MetadataCopy"
    used: "MetadataCopy"

    @property
    def behind(self) -> int:
        """Number of records that the used copy has and this copy lacks."""
        return max(self.used.end_offset - self.copy.end_offset, 0)

    @property
    def behind_ms(self) -> int:
        """Milliseconds between the last records of both copies."""
        return max(self.used.timestamp - self.copy.timestamp, 0)

    def behind_text(self) -> str:
        """Return the distance for people."""
        if self.copy is self.used:
            return "used"
        return f"{plural(self.behind, 'record')}, {self.behind_ms / 1000:.1f} s" if self.behind else "equal"


COPIES: Section[CopyRow] = Section(
    "copy",
    "Copies of __cluster_metadata",
    (
        Column(fields.NODE_ID, "NODE", lambda row: row.copy.owner.broker),
        Column(fields.PATH, "COPY", lambda row: str(row.copy.partition.path)),
        Column(fields.END_OFFSET, "END OFFSET", lambda row: row.copy.end_offset),
        Column(fields.LEADER_EPOCH, "LEADER EPOCH", lambda row: row.copy.leader_epoch),
        Column(fields.KNOWN_EPOCH, NOT_SHOWN, lambda row: unless_negative(row.copy.known_epoch)),
        timestamp_column(fields.LAST_TIMESTAMP, NOT_SHOWN, lambda row: row.copy.timestamp),
        iso_time_column(fields.LAST_TIME, lambda row: row.copy.timestamp, "LAST RECORD"),
        Column(fields.IS_USED, NOT_SHOWN, lambda row: row.copy is row.used),
        Column(fields.BEHIND_RECORDS, NOT_SHOWN, lambda row: row.behind),
        Column(fields.BEHIND_MS, "BEHIND", lambda row: row.behind_ms, lambda row: row.behind_text(), is_right=False),
        Column(fields.PROBLEM, NOT_SHOWN, lambda row: row.copy.problem),
    ),
)
NEWER: "Section[NewerPartition]" = Section(
    "newerPartition",
    "Newer than the used copy",
    (
        Column(fields.PATH, "PARTITION", lambda row: str(row.path)),
        Column(fields.TOPIC_ID, "TOPIC ID", lambda row: row.topic_id),
        Column(fields.LEADER_EPOCH, NOT_SHOWN, lambda row: row.leader_epoch),
        Column(fields.START_OFFSET, NOT_SHOWN, lambda row: row.start_offset),
        Column(fields.KNOWN_EPOCH, NOT_SHOWN, lambda row: row.known_epoch),
        Column(fields.REASON, "WHY", lambda row: row.reason),
    ),
)
DELETED: "Section[DeletedPartition]" = Section(
    "deletedPartition",
    "Deleted and omitted",
    (
        Column(fields.PATH, "PARTITION", lambda row: str(row.path)),
        Column(fields.TOPIC_ID, "TOPIC ID", lambda row: row.topic_id),
        Column(fields.DELETED_AT, NOT_SHOWN, lambda row: row.deleted_at),
        Column(fields.REASON, "WHY", lambda row: row.reason),
    ),
)
REBUILT: "Section[RebuiltMetadata]" = Section(
    "rebuilt",
    "Controller",
    (
        Column(fields.NODE_ID, "NODE", lambda row: row.node_id),
        Column(fields.CLUSTER_ID, "CLUSTER", lambda row: row.cluster_id),
        Column(fields.DIRECTORY_ID, "DIRECTORY", lambda row: row.directory_id),
        Column(fields.QUORUM, "QUORUM", lambda row: "dynamic" if row.is_dynamic else "static"),
        Column(fields.CHECKPOINT, "CHECKPOINT", lambda row: row.copy.found.checkpoint),
        Column(fields.END_OFFSET, "END OFFSET", lambda row: row.end_offset),
        Column(fields.LEADER_EPOCH, "PREVIOUS EPOCH", lambda row: row.leader_epoch),
        listed_column(fields.OLD_VOTERS, "REPLACES", lambda row: tuple(voter.voter_id for voter in row.old_voters)),
    ),
)


def write_rebuilding(rebuilding: "Rebuilding", writer: RowWriter) -> None:
    """Write all results."""
    planned, newer, deleted = rebuilding.planned, rebuilding.newer, rebuilding.deleted
    writer.write(COPIES, [CopyRow(copy, planned.copy) for copy in rebuilding.copies])
    writer.write(NEWER, newer[:_MOST_SHOWN] if writer.form.is_for_people else newer)
    writer.write(DELETED, deleted[:_MOST_SHOWN] if writer.form.is_for_people else deleted)
    writer.write(REBUILT, [planned])


def rebuilding_notes(rebuilding: "Rebuilding", directory: Path | None) -> Iterator[str]:
    """Yield problems and cautions, and the next step if the directory is written."""
    planned = rebuilding.planned
    for copy in rebuilding.copies:
        if copy.problem is not None:
            yield f"{copy.partition.path}: ends before {copy.problem}"
        if copy.known_epoch > copy.leader_epoch:
            known = f"leader epoch {copy.known_epoch}, but has no record of it"
            yield f"{copy.partition.path}: its node knew of {known}: the cluster may have changed after its end"
    if len(rebuilding.newer) > _MOST_SHOWN:
        yield (
            f"{plural(len(rebuilding.newer) - _MOST_SHOWN, 'more partition is', 'more partitions are')} newer than"
            " the copy; -o json lists all"
        )
    if rebuilding.deleted:
        many = plural(len(rebuilding.deleted), "directory", "directories")
        yield f"omitted {many} of deleted partitions"
    if planned.node_id in {broker.broker_id for broker in planned.copy.found.brokers}:
        yield f"{planned.node_id} is a broker's id: use it only for a node that is both broker and controller"
    if directory is not None and planned.is_dynamic and rebuilding.is_behind:
        yield "start brokers that have more of the metadata twice: at first they don't see the new voter"
    if directory is not None:
        yield f"{directory}: read docs/how-to/metadata.md before you start a controller on it"


def _entity_objects(entity: tuple[QuotaEntity, ...]) -> list[dict[str, str | None]]:
    return [{"entityType": part.type, "entityName": part.name} for part in entity]


ACLS: Section[Acl] = Section(
    "acl",
    "ACLs",
    (
        Column(fields.RESOURCE_TYPE, "TYPE", lambda row: row.resource_type),
        Column(fields.RESOURCE, "RESOURCE", lambda row: row.resource),
        Column(fields.PATTERN_TYPE, "PATTERN", lambda row: row.pattern_type),
        Column(fields.PRINCIPAL, "PRINCIPAL", lambda row: row.principal),
        Column(fields.HOST, "HOST", lambda row: row.host),
        Column(fields.OPERATION, "OPERATION", lambda row: row.operation),
        Column(fields.PERMISSION, "PERMISSION", lambda row: row.permission),
    ),
    lambda row: "yellow" if row.permission == "DENY" else "",
)
QUOTAS: Section[Quota] = Section(
    "quota",
    "Quotas",
    (
        Column(fields.ENTITY, "ENTITY", lambda row: _entity_objects(row.entity), lambda row: entity_text(row.entity)),
        Column(fields.NAME, "NAME", lambda row: row.name),
        Column(fields.LIMIT, "VALUE", lambda row: row.value, lambda row: number_text(row.value), is_right=False),
    ),
)
SCRAM: Section[ScramUser] = Section(
    "scram",
    "SCRAM credentials",
    (
        Column(fields.USER, "USER", lambda row: row.user),
        Column(fields.MECHANISM, "MECHANISM", lambda row: row.mechanism),
        Column(fields.ITERATIONS, "ITERATIONS", lambda row: row.iterations),
    ),
)
TOKENS: Section[DelegationToken] = Section(
    "token",
    "Delegation tokens",
    (
        Column(fields.TOKEN_ID, "TOKEN", lambda row: row.token_id),
        Column(fields.OWNER, "OWNER", lambda row: row.owner),
        Column(fields.REQUESTER, "REQUESTER", lambda row: row.requester),
        listed_column(fields.RENEWERS, "RENEWERS", lambda row: row.renewers),
        timestamp_column(fields.ISSUE_TIMESTAMP, NOT_SHOWN, lambda row: row.issued),
        iso_time_column(fields.ISSUE_TIME, lambda row: row.issued, "ISSUED"),
        timestamp_column(fields.EXPIRATION_TIMESTAMP, NOT_SHOWN, lambda row: row.expires),
        iso_time_column(fields.EXPIRATION_TIME, lambda row: row.expires, "EXPIRES"),
        timestamp_column(fields.MAX_TIMESTAMP, NOT_SHOWN, lambda row: row.expires_at_last),
        iso_time_column(fields.MAX_TIME, lambda row: row.expires_at_last, "MAX LIFETIME"),
    ),
)


HIDDEN_VALUE = "(hidden)"
"""Text that replaces passwords."""


class _Node(Protocol):
    """A broker, a controller or a voter."""

    @property
    def endpoints(self) -> tuple[Endpoint, ...] | tuple[VoterEndpoint, ...]: ...


Node = TypeVar("Node", bound=_Node)


def _endpoints_column() -> Column[Node]:
    """Return the column of a node's addresses."""

    def objects(row: Node) -> list[dict[str, object]]:
        names = {"security_protocol": "securityProtocol"}
        return [{names.get(key, key): value for key, value in one._asdict().items()} for one in row.endpoints]

    def text(row: Node) -> str:
        return " ".join(f"{one.name}://{one.host}:{one.port}" for one in row.endpoints)

    return Column(fields.ENDPOINTS, "ENDPOINTS", objects, text)


def _feature_objects(features: tuple[SupportedFeature, ...]) -> list[dict[str, object]]:
    return [{"name": one.name, "minimum": one.minimum, "maximum": one.maximum} for one in features]


def _features_text(features: tuple[SupportedFeature, ...]) -> str:
    return " ".join(f"{one.name} {one.minimum}-{one.maximum}" for one in features)


def _broker_state(broker: Broker) -> str:
    if broker.is_in_controlled_shutdown:
        return "fenced, shut down" if broker.is_fenced else "shutting down"
    return "fenced" if broker.is_fenced else "active"


class PartitionRow(NamedTuple):
    """A partition, and the places of its replicas."""

    partition: ClusterPartition
    places: tuple[ReplicaPlace, ...]


def _place_object(place: ReplicaPlace) -> dict[str, object]:
    path = None if place.path is None else str(place.path)
    return {"replica": place.replica, "directoryId": place.directory_id, "path": path}


class DirectoryRow(NamedTuple):
    """A log directory of a broker: its id, its path if given, whether it is cordoned, its replicas."""

    broker_id: int
    directory_id: str
    path: str | None
    is_cordoned: bool
    replica_count: int


def directory_rows(found: ClusterMetadata, places: ReplicaPlaces) -> Iterator[DirectoryRow]:
    """Yield the log directories that brokers registered (since 3.7)."""
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
    (Column(fields.NAME, "FEATURE", lambda row: row.name), Column(fields.LEVEL, "LEVEL", lambda row: row.level)),
)
BROKERS: Section[Broker] = Section(
    "broker",
    "Brokers",
    (
        Column(fields.BROKER_ID, "BROKER", lambda row: row.broker_id),
        Column(fields.STATE, "STATE", _broker_state),
        Column(fields.EPOCH, "EPOCH", lambda row: row.epoch),
        Column(fields.RACK, "RACK", lambda row: row.rack),
        Column(fields.INCARNATION_ID, NOT_SHOWN, lambda row: row.incarnation_id),
        Column(fields.IS_FENCED, NOT_SHOWN, lambda row: row.is_fenced),
        Column(fields.IS_IN_CONTROLLED_SHUTDOWN, NOT_SHOWN, lambda row: row.is_in_controlled_shutdown),
        _endpoints_column(),
        Column(
            fields.FEATURES,
            NOT_SHOWN,
            lambda row: _feature_objects(row.features),
            lambda row: _features_text(row.features),
        ),
        listed_column(fields.LOG_DIRS, "LOG DIRECTORIES", lambda row: row.log_dirs),
    ),
    lambda row: "yellow" if row.is_fenced else "",
)
CONTROLLERS: Section[Controller] = Section(
    "controller",
    "Controllers",
    (
        Column(fields.CONTROLLER_ID, "CONTROLLER", lambda row: row.controller_id),
        Column(fields.INCARNATION_ID, "INCARNATION", lambda row: row.incarnation_id),
        _endpoints_column(),
        Column(
            fields.FEATURES,
            NOT_SHOWN,
            lambda row: _feature_objects(row.features),
            lambda row: _features_text(row.features),
        ),
    ),
)
VOTERS: Section[Voter] = Section(
    "voter",
    "Voters",
    (
        Column(fields.VOTER_ID, "VOTER", lambda row: row.voter_id),
        Column(fields.DIRECTORY_ID, "DIRECTORY", lambda row: row.directory_id),
        _endpoints_column(),
    ),
)
DIRECTORIES: Section[DirectoryRow] = Section(
    "directory",
    "Log directories",
    (
        Column(fields.BROKER_ID, "BROKER", lambda row: row.broker_id),
        Column(fields.DIRECTORY_ID, "DIRECTORY", lambda row: row.directory_id),
        Column(fields.PATH, "PATH", lambda row: row.path),
        Column(
            fields.IS_CORDONED, "CORDONED", lambda row: row.is_cordoned, lambda row: "yes" if row.is_cordoned else "no"
        ),
        Column(fields.REPLICA_COUNT, "REPLICAS", lambda row: row.replica_count),
    ),
)
TOPICS: Section[Topic] = Section(
    "topic",
    "Topics",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.name),
        Column(fields.TOPIC_ID, "ID", lambda row: row.topic_id),
        Column(fields.PARTITIONS, "PARTITIONS", lambda row: len(row.partitions)),
    ),
)


PARTITIONS: Section[PartitionRow] = Section(
    "partition",
    "Partitions",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.partition.topic),
        Column(fields.TOPIC_ID, NOT_SHOWN, lambda row: row.partition.topic_id),
        Column(fields.PARTITION, "PART", lambda row: row.partition.partition),
        Column(
            fields.LEADER,
            "LEADER",
            lambda row: unless_negative(row.partition.leader),
            lambda row: "none" if row.partition.leader < 0 else str(row.partition.leader),
            is_right=False,
        ),
        Column(fields.LEADER_EPOCH, "EPOCH", lambda row: row.partition.leader_epoch),
        Column(fields.PARTITION_EPOCH, NOT_SHOWN, lambda row: row.partition.partition_epoch),
        listed_column(fields.REPLICAS, "REPLICAS", lambda row: row.partition.replicas),
        listed_column(fields.ISR, "ISR", lambda row: row.partition.isr),
        listed_column(fields.ELIGIBLE_LEADER_REPLICAS, "ELR", lambda row: row.partition.elr),
        Column(fields.LAST_KNOWN_ELR, NOT_SHOWN, lambda row: list(row.partition.last_known_elr)),
        listed_column(fields.ADDING_REPLICAS, "ADDING", lambda row: row.partition.adding_replicas),
        listed_column(fields.REMOVING_REPLICAS, "REMOVING", lambda row: row.partition.removing_replicas),
        Column(fields.IS_RECOVERING, NOT_SHOWN, lambda row: row.partition.is_recovering),
        Column(
            fields.DIRECTORIES,
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
        Column(fields.RESOURCE_TYPE, "TYPE", lambda row: row.resource_type),
        Column(fields.RESOURCE, "RESOURCE", lambda row: row.resource),
        Column(fields.NAME, "NAME", lambda row: row.name),
        Column(fields.VALUE, "VALUE", lambda row: HIDDEN_VALUE if row.is_secret else row.value),
    ),
)
METADATA: Section[ClusterMetadata] = Section(
    "metadata",
    None,
    (
        Column(fields.OFFSET, "OFFSET", lambda row: unless_negative(row.offset)),
        Column(fields.TIMESTAMP, "TIMESTAMP", lambda row: unless_negative(row.timestamp)),
        iso_time_column(fields.TIME, lambda row: row.timestamp, "TIME"),
        Column(fields.CHECKPOINT, "CHECKPOINT", lambda row: row.checkpoint),
        Column(fields.MISSING_BEFORE, "MISSING BEFORE", lambda row: row.missing_before),
        Column(fields.UNAPPLIED, "UNAPPLIED", lambda row: row.unapplied),
        Column(fields.KRAFT_VERSION, "KRAFT VERSION", lambda row: row.kraft_version),
        Column(fields.NEXT_PRODUCER_ID, "NEXT PRODUCER ID", lambda row: row.next_producer_id),
    ),
)
"""Columns about a cluster's metadata as a whole, only in JSON."""


class SettingRow(NamedTuple):
    """A setting in force for a topic; may_differ: an unknown server.properties may set another value."""

    topic: str
    setting: ResolvedSetting
    may_differ: bool

    def source_text(self) -> str:
        """Return the source of the setting for people."""
        text = self.setting.source.text()
        return f"{text}, unless server.properties sets it" if self.may_differ else text


SETTINGS: Section[SettingRow] = Section(
    "setting",
    "Settings",
    (
        Column(fields.TOPIC, "TOPIC", lambda row: row.topic),
        Column(fields.NAME, "NAME", lambda row: row.setting.name),
        Column(fields.VALUE, "VALUE", lambda row: row.setting.value),
        Column(fields.SOURCE, "FROM", lambda row: row.setting.source.name, lambda row: row.source_text()),
        Column(fields.MAY_DIFFER, NOT_SHOWN, lambda row: row.may_differ),
    ),
)


def setting_rows(found: ClusterMetadata, static: Mapping[str, str], choice: PartitionChoice) -> Iterator[SettingRow]:
    """Yield all settings of the chosen topics; static: settings of the broker's server.properties."""
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
    """Yield each kind of row with the name that users choose it by; kinds about topics have only the chosen topics."""
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
"""Names of the kinds of rows, in their order."""


def write_sections(
    found: ClusterMetadata,
    sections: Iterable[tuple[str, Section[Any], list[Any]]],
    writer: RowWriter,
    show: str | None,
) -> None:
    """Write all kinds of rows, or one; CSV can only have one.

    JSON begins with the moment, with one kind only if the state is incomplete or empty.
    """
    wanted = show or ("partitions" if writer.form.has_one_kind else None)
    is_partial = found.missing_before is not None or found.offset < 0
    if (wanted is None or is_partial) and writer.form.has_objects:
        writer.form.write_object(writer.prepare(METADATA).as_object(found))
    for name, section, rows in sections:
        if wanted in (None, name):
            writer.write(section, _worst_first(section, rows) if writer.form.is_for_people else rows)


def _worst_first(section: Section[Any], rows: list[Any]) -> list[Any]:
    """Return rows for people: red rows first, such as partitions without a leader, then yellow rows."""
    style = section.style
    return rows if style is None else sorted(rows, key=lambda row: ("red", "yellow", "").index(style(row)))


def write_script(script: Script, note: Callable[[str], object]) -> None:
    """Write a script, and report its contents and omissions."""
    for line in script.lines:
        write_line(line)
    flush_stdout()
    named = ", listed at the end of the script" if script.left_out else ""
    count = plural(script.command_count, "command")
    note(f"{count}; omitted: {len(script.left_out)}{named}")
