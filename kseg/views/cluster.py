"""A cluster as values: topics, partitions, brokers, controllers, settings, features, ACLs, quotas, voters."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from kseg.errors import UsageError
from kseg.formats.names import plain_text
from kseg.log.partition.partition_choice import PartitionChoice
from kseg.views.access import Acl, DelegationToken, Quota, ScramUser
from kseg.views.quorum import Voter
from kseg.views.replay import Unreadable

SECRET_NAME = re.compile(
    r"password$|secret$|^(.*\.)?sasl\.jaas\.config$|ssl\.keystore\.key$|ssl\.truststore\.certificates$"
)
"""Settings whose values Kafka itself hides, by the ends of their names."""
_SHOWN_TOPICS = 8
"""The most topics that an error lists."""


class Endpoint(NamedTuple):
    """Where a broker or controller can be reached."""

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
    """A broker's registration; `epoch` is its broker epoch, `rack` None for none."""

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
    """Those that get no new partitions (4.3 on)."""


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
        """Whether the value is better not shown."""
        return bool(SECRET_NAME.search(self.name))


class Feature(NamedTuple):
    """A finalized feature, `metadata.version` among them."""

    name: str
    level: int


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    """A cluster as its metadata log tells it.

    `offset` and `timestamp` (milliseconds since 1970) are of the last record that was taken, -1 if there was none.
    `checkpoint`: name of the snapshot that it began with, None if it began with the log. `missing_before`: the offset
    before which records are missing, as neither the log nor a checkpoint has them; None if nothing is missing.
    `unapplied`: records that refer to what is not known, or belong to a metadata transaction that has not ended.
    `kraft_version`: from 1 on the quorum is dynamic, and its voters stand in the metadata; those of a static one are
    known only from the `quorum-state` beside the log. `next_producer_id`: the first that no broker was given.
    `log_dirs`: the log directories where the metadata were looked for.
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

    def notes(self) -> Iterator[str]:
        """What couldn't be read, or isn't there."""
        yield from (unreadable.line() for unreadable in self.unreadable)
        if self.missing_before is not None:
            yield f"records before offset {self.missing_before} are missing, and no checkpoint has them: incomplete"
        if self.unapplied:
            yield f"{self.unapplied} records belong to what isn't known, or to a transaction that has not ended"


def require_topic(found: ClusterMetadata, choice: PartitionChoice) -> None:
    """Raises UsageError if there are topics, but none that is meant."""
    names = [topic.name for topic in found.topics]
    if names and not any(map(choice.takes_topic, names)):
        shown = ", ".join(plain_text(name) for name in names[:_SHOWN_TOPICS])
        more = f" and {len(names) - _SHOWN_TOPICS} more" if len(names) > _SHOWN_TOPICS else ""
        raise UsageError(f"{choice}: no such topic here; there are {shown}{more}")
