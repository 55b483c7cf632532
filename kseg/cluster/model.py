"""A cluster as values: topics, partitions, brokers, settings, ACLs, quotas, and its quorum of controllers."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kseg.errors import FileError, plural
from kseg.formats.checkpoints import QuorumState, parse_quorum_state
from kseg.formats.codes import ControlType
from kseg.formats.header_fields import CONTROL_KEY_TYPE
from kseg.formats.message_json import double_text
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import message_schema
from kseg.kernel.record import Record
from kseg.log.partition import PartitionLog, read_small_file
from kseg.log.replay import Unreadable

DEFAULT = "<default>"
"""For people: all users, clients or addresses without their own quota, as Kafka's tools write it."""


class Acl(NamedTuple):
    """An ACL, in the words of Kafka's enums: resource type `TOPIC`, pattern `LITERAL`, operation `READ`."""

    resource_type: str
    resource: str
    pattern_type: str
    principal: str
    host: str
    operation: str
    permission: str


class QuotaEntity(NamedTuple):
    """A part of a quota's entity: `type` user, client-id or ip; `name` None stands for the default of all others."""

    type: str
    name: str | None


class Quota(NamedTuple):
    """A quota of a user, a client, both together, or an IP address."""

    entity: tuple[QuotaEntity, ...]
    name: str
    value: float


class ScramUser(NamedTuple):
    """The SCRAM credential of a user. `mechanism` is SCRAM-SHA-256 or SCRAM-SHA-512.

    digest: of salt and keys. It changes with the password, and tells nothing about it.
    """

    user: str
    mechanism: str
    iterations: int
    digest: str = ""


class DelegationToken(NamedTuple):
    """A delegation token; times are milliseconds since 1970."""

    token_id: str
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issued: int
    expires: int
    expires_at_last: int
    """The time beyond which nobody can renew it."""


def number_text(value: float) -> str:
    """Return a quota's value for Kafka's tools; whole numbers without a point."""
    return str(int(value)) if value.is_integer() else double_text(value)


def entity_text(entity: tuple[QuotaEntity, ...]) -> str:
    """Return a quota's entity for people: `user alice, client-id <default>`."""
    return ", ".join(f"{part.type} {DEFAULT if part.name is None else part.name}" for part in entity)


QUORUM_STATE = "quorum-state"
NO_DIRECTORY = "A" * 22
"""The id of an unknown voter's directory."""


class VoterEndpoint(NamedTuple):
    """The address where other voters reach a voter."""

    name: str
    host: str
    port: int


class Voter(NamedTuple):
    """A controller that votes. Directories and endpoints are only known for dynamic quorums (KIP-853)."""

    voter_id: int
    directory_id: str | None
    endpoints: tuple[VoterEndpoint, ...]
    kraft_versions: tuple[int, int] = (0, 1)
    """The lowest and the highest `kraft.version` that it supports."""


class Voters:
    """The voters by the latest control records. Source: KRaftControlRecordStateMachine."""

    def __init__(self) -> None:
        self.kraft_version = 0
        self.voters: tuple[Voter, ...] = ()

    def add(self, record: Record) -> str | None:
        """Apply a control record. Returns the reason if the record can't be read."""
        kind = control_type(record)
        try:
            if kind == ControlType.KRAFT_VERSION:
                fields = parse_message(message_schema("KRaftVersionRecord"), 0, record.value or b"").value
                self.kraft_version = fields["kRaftVersion"]
            elif kind == ControlType.KRAFT_VOTERS:
                fields = parse_message(message_schema("VotersRecord"), 0, record.value or b"").value
                self.voters = tuple(sorted(map(_voter, fields["voters"])))
        except MessageError as error:
            return error.message
        return None

    @property
    def is_dynamic(self) -> bool:
        """Return True if the quorum is dynamic, which means that voters can be added and removed (KIP-853)."""
        return self.kraft_version > 0


def control_type(record: Record) -> int | None:
    """Return the type of a control record, or None if its key is too short for one."""
    key = record.key or b""
    return CONTROL_KEY_TYPE.read(key) if len(key) >= CONTROL_KEY_TYPE.end else None


def _voter(fields: Fields) -> Voter:
    endpoints = tuple(VoterEndpoint(each["name"], each["host"], each["port"]) for each in fields["endpoints"])
    feature = fields["kRaftVersionFeature"]
    supported = feature["minSupportedVersion"], feature["maxSupportedVersion"]
    return Voter(fields["voterId"], fields["voterDirectoryId"], endpoints, supported)


def read_quorum_state(partition: PartitionLog) -> QuorumState | None:
    """Read the state of leader and votes from a node's copy of the metadata, or None if there is no file.

    Raises KsegError if the file can't be read.
    """
    content = read_small_file(partition.path / QUORUM_STATE)
    return None if content is None else parse_quorum_state(content)


def static_voters(partition: PartitionLog) -> tuple[Voter, ...]:
    """Return the voters of a static quorum, by the file next to the log; none if it doesn't have them."""
    try:
        state = read_quorum_state(partition)
    except FileError:
        return ()
    found = () if state is None else state.current_voters or ()
    return tuple(Voter(number, None, ()) for number in sorted(found))


SECRET_NAME = re.compile(
    r"password$|secret$|^(.*\.)?sasl\.jaas\.config$|ssl\.keystore\.key$|ssl\.truststore\.certificates$"
)
"""Settings whose values Kafka itself hides, by the ends of their names."""
_SHOWN_TOPICS = 8
"""The most topics that an error lists."""


class Endpoint(NamedTuple):
    """The address of a broker or controller."""

    name: str
    host: str
    port: int
    security_protocol: str


class SupportedFeature(NamedTuple):
    """Levels of a feature that a node supports."""

    name: str
    minimum: int
    maximum: int


class ClusterPartition(NamedTuple):
    """A partition: node ids of its replicas. `leader` -1 for none. `elr`: eligible leader replicas (KIP-966).

    `directories`: ids of the directories that hold the replicas, in their order; empty before 3.7.
    """

    topic: str
    topic_id: str
    partition: int
    leader: int
    leader_epoch: int
    partition_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]
    elr: tuple[int, ...]
    last_known_elr: tuple[int, ...]
    is_recovering: bool
    """The leader was elected uncleanly and has not recovered yet."""
    directories: tuple[str | None, ...] = ()


class Topic(NamedTuple):
    """A topic with its partitions, by number."""

    name: str
    topic_id: str
    partitions: tuple[ClusterPartition, ...]


class Broker(NamedTuple):
    """The registration of a broker. `epoch` is its broker epoch."""

    broker_id: int
    epoch: int
    incarnation_id: str
    endpoints: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]
    rack: str | None
    is_fenced: bool
    is_in_controlled_shutdown: bool
    log_dirs: tuple[str, ...]
    cordoned_log_dirs: tuple[str, ...] = ()
    """Log directories that get no new partitions (4.3 on)."""


class Controller(NamedTuple):
    """A controller's registration."""

    controller_id: int
    incarnation_id: str
    endpoints: tuple[Endpoint, ...]
    features: tuple[SupportedFeature, ...]


class Config(NamedTuple):
    """A setting of a resource: `resource_type` topic, broker, …; `resource` "" for all brokers."""

    resource_type: str
    resource: str
    name: str
    value: str

    @property
    def is_secret(self) -> bool:
        """True if the value should stay hidden."""
        return bool(SECRET_NAME.search(self.name))


METADATA_VERSION = "metadata.version"
"""The feature whose level limits the records in a cluster's metadata, and so shows the release."""


class Feature(NamedTuple):
    """A finalized feature, METADATA_VERSION among them."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A cluster by its metadata log.

    `offset` and `timestamp` (milliseconds since 1970) are of the last applied record, -1 if there was none.
    `checkpoint`: name of the snapshot at its beginning, None if it began with the log. `missing_before`: the offset
    before which records are missing, as neither the log nor a checkpoint has them; None if nothing is missing.
    `unapplied`: records that refer to something unknown, or belong to a metadata transaction that has not ended.
    `kraft_version`: from 1 on the quorum is dynamic, and its voters are in the metadata; those of a static one are
    known only from the `quorum-state` next to the log. `next_producer_id`: the first that no broker was given.
    `log_dirs`: the log directories searched for the metadata.
    """

    offset: int
    timestamp: int
    checkpoint: str | None
    missing_before: int | None
    features: tuple[Feature, ...]
    brokers: tuple[Broker, ...]
    controllers: tuple[Controller, ...]
    topics: tuple[Topic, ...]
    configs: tuple[Config, ...]
    unapplied: int
    unreadable: tuple[Unreadable, ...]
    acls: tuple[Acl, ...] = ()
    quotas: tuple[Quota, ...] = ()
    scram: tuple[ScramUser, ...] = ()
    tokens: tuple[DelegationToken, ...] = ()
    voters: tuple[Voter, ...] = ()
    kraft_version: int = 0
    next_producer_id: int | None = None
    log_dirs: tuple[Path, ...] = field(default=(), compare=False)

    @property
    def partitions(self) -> tuple[ClusterPartition, ...]:
        """All partitions, by topic and number."""
        return tuple(partition for topic in self.topics for partition in topic.partitions)

    def topic(self, name: str) -> Topic | None:
        """Return a topic by its name, or None if the cluster doesn't have it."""
        return next((each for each in self.topics if each.name == name), None)

    def notes(self) -> Iterator[str]:
        """Yield notes on unreadable or missing parts."""
        yield from (unreadable.line() for unreadable in self.unreadable)
        if self.missing_before is not None:
            yield (
                f"the metadata is incomplete: records before offset {self.missing_before} are missing,"
                f" and no checkpoint has them"
            )
        if self.unapplied:
            yield (
                f"{plural(self.unapplied, 'record belongs', 'records belong')} to unknown objects, or to a"
                " transaction that has not ended"
            )
