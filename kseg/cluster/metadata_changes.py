"""Changes of a cluster's metadata, and those between two states."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TypeAlias

from kseg.cluster.model import (
    Acl,
    Broker,
    ClusterMetadata,
    ClusterPartition,
    Config,
    Controller,
    DelegationToken,
    Feature,
    Quota,
    ScramUser,
    Topic,
    Voter,
)
from kseg.formats.codes import NO_TIMESTAMP
from kseg.log.selection import PartitionChoice

Thing: TypeAlias = (
    Feature
    | Voter
    | Controller
    | Broker
    | Topic
    | ClusterPartition
    | Config
    | Acl
    | Quota
    | ScramUser
    | DelegationToken
)
"""Kinds of objects in the metadata, which keep their identity through changes."""
KINDS: Mapping[type, str] = MappingProxyType(
    {
        Feature: "feature",
        Voter: "voter",
        Controller: "controller",
        Broker: "broker",
        Topic: "topic",
        ClusterPartition: "partition",
        Config: "config",
        Acl: "acl",
        Quota: "quota",
        ScramUser: "scram",
        DelegationToken: "token",
    }
)
"""The kinds of things, in the order in which `kseg metadata` prints them."""
KRAFT_VERSION = "kraft.version"
"""The feature that control records set. Source: KRaftVersion."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change of one thing; before: None if it wasn't there, after: None if it exists no more.

    configs: settings that a topic was created with, or that went with it; its partitions are in it. offset, timestamp:
    of the record that changed it, -1 if two states were compared. The timestamp is when a controller wrote it.
    """

    before: Thing | None
    after: Thing | None
    configs: tuple[Config, ...] = ()
    offset: int = -1
    timestamp: int = NO_TIMESTAMP

    @property
    def thing(self) -> Thing:
        """The changed thing after the change, or before it if it is gone."""
        found = self.before if self.after is None else self.after
        assert found is not None
        return found

    @property
    def kind(self) -> str:
        """The kind of what changed, as `kseg metadata` names it in JSON."""
        return KINDS[type(self.thing)]

    @property
    def action(self) -> str:
        """Return the kind of change as a word, such as "created", "set" or "fenced"."""
        begin, end = _FIRST_AND_LAST.get(type(self.thing), ("added", "removed"))
        if self.before is None:
            return begin
        if self.after is None:
            return end
        if isinstance(self.before, Broker) and isinstance(self.after, Broker):
            return _broker_action(self.before, self.after)
        if isinstance(self.before, Topic):
            return "created again"
        return "changed"

    def is_of(self, choice: PartitionChoice) -> bool:
        """Return True if it is about chosen topics or partitions; a change without a topic never is."""
        match self.thing:
            case ClusterPartition(topic=topic, partition=number):
                return choice.takes(topic, number)
            case Topic(name=topic) | Config(resource_type="topic", resource=topic):
                return choice.takes_topic(topic)
        return not choice.topics and not choice.numbers


_FIRST_AND_LAST: Mapping[type, tuple[str, str]] = MappingProxyType(
    {
        Topic: ("created", "deleted"),
        Broker: ("registered", "unregistered"),
        Controller: ("registered", "unregistered"),
        Config: ("set", "removed"),
        Quota: ("set", "removed"),
        Feature: ("set", "removed"),
        ScramUser: ("set", "removed"),
        DelegationToken: ("created", "removed"),
    }
)


def _broker_action(before: Broker, after: Broker) -> str:
    if before.epoch != after.epoch:
        return "registered"
    if before.is_fenced != after.is_fenced:
        return "fenced" if after.is_fenced else "unfenced"
    return "shutting down" if after.is_in_controlled_shutdown > before.is_in_controlled_shutdown else "changed"


Key: TypeAlias = tuple[object, ...]


def key_of(thing: Thing) -> Key:
    """Return the key by which a thing is found again at another time or in another cluster."""
    match thing:
        case ClusterPartition(topic=topic, partition=number):
            return topic, number
        case Config(resource_type=kind, resource=resource, name=name):
            return kind, resource, name
        case Quota(entity=entity, name=name):
            return entity, name
        case ScramUser(user=user, mechanism=mechanism):
            return user, mechanism
        case Acl():
            return thing
        case _:
            return (thing[0],)


def in_order(thing: Thing) -> Thing:
    """Return a copy with sorted lists, because the order is different in snapshots and logs."""
    if isinstance(thing, Broker | Controller):
        return thing._replace(endpoints=tuple(sorted(thing.endpoints)), features=tuple(sorted(thing.features)))
    return thing


def is_same(before: Thing, after: Thing) -> bool:
    """Return True if both are equal but for a partition's epoch, which rises with every record about it."""
    match before, after:
        case ClusterPartition(), ClusterPartition():
            return before == after._replace(partition_epoch=before.partition_epoch, topic_id=before.topic_id)
        case Topic(), Topic():
            return before.topic_id == after.topic_id
        case _:
            return before == after or in_order(before) == in_order(after)


def changes_between(before: ClusterMetadata, after: ClusterMetadata) -> Iterator[Change]:
    """Yield the differences between two states, by kinds and names.

    A topic that came or went includes its parts. The log has no voters of a static quorum, only `quorum-state` has the
    present ones: they are omitted if the other state has none.
    """
    has_voters = all(state.kraft_version or state.voters for state in (before, after))
    old, new = _things_of(before, has_voters), _things_of(after, has_voters)
    moved = {topic.name for topic in before.topics} ^ {topic.name for topic in after.topics}
    configs: dict[str, list[Config]] = {name: [] for name in moved}
    for config in (*before.configs, *after.configs):
        if config.resource_type == "topic" and config.resource in moved:
            configs[config.resource].append(config)
    for place in sorted({*old, *new}, key=_order):
        change = Change(old.get(place), new.get(place))
        if change.before is not None and change.after is not None and is_same(change.before, change.after):
            continue
        match change.thing:
            case Topic(name=name) if name in moved:
                yield replace(change, configs=tuple(configs[name]))
            case ClusterPartition(topic=name) | Config(resource_type="topic", resource=name) if name in moved:
                pass
            case _:
                yield change


def _order(place: tuple[type, Key]) -> tuple[int, str]:
    kind, key = place
    numbers = (f"{part:020}" if isinstance(part, int) else str(part) for part in key)
    return [*KINDS].index(kind), "\0".join(numbers)


def _things_of(found: ClusterMetadata, has_voters: bool) -> dict[tuple[type, Key], Thing]:
    kraft = (Feature(KRAFT_VERSION, found.kraft_version),) if found.kraft_version else ()
    kinds: tuple[Iterable[Thing], ...] = (
        (*found.features, *kraft),
        [each for each in found.voters if has_voters or found.kraft_version],
        found.controllers,
        found.brokers,
        found.topics,
        found.partitions,
        found.configs,
        found.acls,
        found.quotas,
        found.scram,
        found.tokens,
    )
    return {(type(thing), key_of(thing)): thing for things in kinds for thing in things}
