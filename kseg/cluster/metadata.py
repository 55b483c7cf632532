"""A cluster's metadata at an offset or a time, replayed from the records of `__cluster_metadata`."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kseg.cluster.metadata_access import ACCESS_APPLIES, AccessReplay
from kseg.cluster.metadata_checkpoint import Checkpoint, checkpoint_files, read_checkpoint
from kseg.cluster.model import (
    Broker,
    ClusterMetadata,
    ClusterPartition,
    Config,
    Controller,
    Endpoint,
    Feature,
    SupportedFeature,
    Topic,
    Voters,
)
from kseg.decode.internal_records import NEWER, Framed, is_newer, newer_part, parse_framed
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.messages import Fields, MessageError
from kseg.formats.schemas import METADATA_RECORDS
from kseg.kernel.record import Record
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.replay import Unreadable, partition_batches, unreadable_batch
from kseg.times import parse_time

if TYPE_CHECKING:
    from kseg.reading.batch import Batch
    from kseg.reading.blocks import Damage


NO_LEADER_CHANGE = -2
"""The leader in a change that keeps it. Source: LeaderConstants."""
RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Source: ConfigResource.Type."""
TOPIC_RESOURCE = 2
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


class Effective(NamedTuple):
    """A record that changes the state, and where it is in the log."""

    framed: Framed
    offset: int
    timestamp: int


class Hole(NamedTuple):
    """Offsets that the log skips, the first and the last; unknown_to: the last one whose change isn't known."""

    first: int
    last: int
    unknown_to: int

    def unreadable(self) -> Unreadable:
        """Return it as a part that a view couldn't use."""
        first, last, end = self
        reason = f"offsets {first} to {last} are missing, so changes up to offset {end} aren't known"
        return Unreadable(METADATA_TOPIC, None, reason)


class MetadataReplay:
    """The state after all records so far. Source: MetadataDelta and the images that it builds."""

    def __init__(self) -> None:
        self.offset = -1
        self.timestamp = NO_TIMESTAMP
        self.unapplied = 0
        self.unreadable: list[Unreadable] = []
        self.holes: list[Hole] = []
        self.features: dict[str, int] = {}
        self.brokers: dict[int, Broker] = {}
        self.controllers: dict[int, Controller] = {}
        self.names: dict[str, str] = {}
        """Topic ids to topics."""
        self.partitions: dict[str, dict[int, ClusterPartition]] = {}
        """Topic ids to partitions by number."""
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self.access = AccessReplay()
        self.voters = Voters()
        self.next_producer_id: int | None = None
        self._transaction: list[Effective] | None = None
        """Records of a metadata transaction that has not ended (KIP-868)."""

    def begin_with(self, files: Iterable[tuple[int, Path]], until_ms: int | None = None) -> Checkpoint | None:
        """Takes the first of some checkpoints that is whole, and not later than a time."""
        for end_offset, path in files:
            found = read_checkpoint(path, end_offset)
            if isinstance(found, Unreadable):
                self.unreadable.append(found)
            elif until_ms is None or found.last_timestamp <= until_ms:
                for record in found.control:
                    self.add_control(record)
                for record in found.records:
                    self.add(record)
                self.offset, self.timestamp = found.end_offset - 1, found.last_timestamp
                return found
        return None

    def add(self, record: Record) -> None:
        """Takes a record."""
        for each in self.effective(record):
            self.apply(each.framed)

    def effective(self, record: Record) -> Sequence[Effective]:
        """Add a record, and return the records that take effect now. A transaction takes effect when it ends."""
        self.offset, self.timestamp = record.offset, record.timestamp
        try:
            framed = parse_framed(METADATA_RECORDS, record.value)
        except MessageError as error:
            reason = f"it is {NEWER}: {error.message}" if is_newer(METADATA_RECORDS, record.value) else error.message
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, reason))
            return ()
        newer = newer_part(framed.message, framed.version, framed.fields)
        if newer is not None:
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, newer))
        taken = Effective(framed, record.offset, record.timestamp)
        if framed.message.name == "BeginTransactionRecord":
            self._transaction = []
        elif framed.message.name == "AbortTransactionRecord":
            self._transaction = None
        elif framed.message.name == "EndTransactionRecord":
            ended, self._transaction = self._transaction or [], None
            return ended
        elif self._transaction is not None:
            self._transaction.append(taken)
        else:
            return (taken,)
        return ()

    def add_control(self, record: Record) -> None:
        """Apply a control record, which changes the state of the quorum."""
        problem = self.voters.add(record)
        if problem is not None:
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, problem))

    def apply(self, framed: Framed) -> None:
        """Apply a record to the state."""
        apply, of_access = APPLIES.get(framed.message.name), ACCESS_APPLIES.get(framed.message.name)
        is_known = apply is None or apply(self, framed.fields)
        if not is_known or not (of_access is None or of_access(self.access, framed.fields)):
            self.unapplied += 1

    def topic(self, topic_id: str) -> Topic | None:
        """A topic by its id, with its partitions."""
        if topic_id not in self.names:
            return None
        numbered = self.partitions[topic_id]
        return Topic(self.names[topic_id], topic_id, tuple(numbered[number] for number in sorted(numbered)))

    def configs_of(self, kind: int, resource: str) -> Iterator[Config]:
        """The settings of a resource."""
        for name, value in self.configs.get((kind, resource), {}).items():
            yield Config(RESOURCE_TYPES.get(kind, str(kind)), resource, name, value)

    def result(self, checkpoint: str | None, missing_before: int | None) -> ClusterMetadata:
        """The state as values, everything sorted."""
        configs = (each for resource in self.configs for each in self.configs_of(*resource))
        topics = filter(None, map(self.topic, self.names))
        return ClusterMetadata(
            offset=self.offset,
            timestamp=self.timestamp,
            checkpoint=checkpoint,
            missing_before=missing_before,
            features=tuple(Feature(name, level) for name, level in sorted(self.features.items())),
            brokers=tuple(self.brokers[number] for number in sorted(self.brokers)),
            controllers=tuple(self.controllers[number] for number in sorted(self.controllers)),
            topics=tuple(sorted(topics)),
            configs=tuple(sorted(configs)),
            unapplied=self.unapplied + len(self._transaction or ()),
            unreadable=(*self.unreadable, *(hole.unreadable() for hole in self.holes)),
            acls=self.access.acls,
            quotas=self.access.quotas,
            scram=self.access.scram,
            tokens=self.access.tokens,
            voters=self.voters.voters,
            kraft_version=self.voters.kraft_version,
            next_producer_id=self.next_producer_id,
        )


def _endpoints(fields: Fields) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            endpoint["name"],
            endpoint["host"],
            endpoint["port"],
            SECURITY_PROTOCOLS.get(endpoint["securityProtocol"], str(endpoint["securityProtocol"])),
        )
        for endpoint in fields["endPoints"]
    )


def _features(fields: Fields) -> tuple[SupportedFeature, ...]:
    names = ("name", "minSupportedVersion", "maxSupportedVersion")
    return tuple(SupportedFeature(*(feature[name] for name in names)) for feature in fields["features"])


def _register_broker(replay: MetadataReplay, fields: Fields) -> bool:
    replay.brokers[fields["brokerId"]] = Broker(
        broker_id=fields["brokerId"],
        epoch=fields["brokerEpoch"],
        incarnation_id=fields["incarnationId"],
        endpoints=_endpoints(fields),
        features=_features(fields),
        rack=fields["rack"],
        is_fenced=fields["fenced"],
        is_in_controlled_shutdown=fields.get("inControlledShutdown", False),
        log_dirs=tuple(fields.get("logDirs", ())),
        cordoned_log_dirs=tuple(fields.get("cordonedLogDirs") or ()),
    )
    return True


def _register_controller(replay: MetadataReplay, fields: Fields) -> bool:
    number = fields["controllerId"]
    replay.controllers[number] = Controller(number, fields["incarnationId"], _endpoints(fields), _features(fields))
    return True


def _unregister_controller(replay: MetadataReplay, fields: Fields) -> bool:
    return replay.controllers.pop(fields["controllerId"], None) is not None


def _unregister_broker(replay: MetadataReplay, fields: Fields) -> bool:
    return replay.brokers.pop(fields["brokerId"], None) is not None


def _change_broker(replay: MetadataReplay, fields: Fields) -> bool:
    broker = replay.brokers.get(fields["brokerId"])
    if broker is None:
        return False
    # 1 fences, -1 unfences, 0 changes nothing.
    if fields["fenced"]:
        broker = broker._replace(is_fenced=fields["fenced"] > 0)
    if fields.get("inControlledShutdown"):
        broker = broker._replace(is_in_controlled_shutdown=True)
    if fields.get("logDirs"):
        broker = broker._replace(log_dirs=tuple(fields["logDirs"]))
    if fields.get("cordonedLogDirs") is not None:
        broker = broker._replace(cordoned_log_dirs=tuple(fields["cordonedLogDirs"]))
    replay.brokers[broker.broker_id] = broker
    return True


def _fence(replay: MetadataReplay, fields: Fields) -> bool:
    return _set_fence(replay, fields["id"], is_fenced=True)


def _unfence(replay: MetadataReplay, fields: Fields) -> bool:
    return _set_fence(replay, fields["id"], is_fenced=False)


def _set_fence(replay: MetadataReplay, broker_id: int, *, is_fenced: bool) -> bool:
    broker = replay.brokers.get(broker_id)
    if broker is None:
        return False
    replay.brokers[broker_id] = broker._replace(is_fenced=is_fenced)
    return True


def _add_topic(replay: MetadataReplay, fields: Fields) -> bool:
    replay.names[fields["topicId"]] = fields["name"]
    replay.partitions[fields["topicId"]] = {}
    return True


def _remove_topic(replay: MetadataReplay, fields: Fields) -> bool:
    name = replay.names.pop(fields["topicId"], None)
    replay.partitions.pop(fields["topicId"], None)
    if name is None:
        return False
    replay.configs.pop((TOPIC_RESOURCE, name), None)
    return True


def _add_partition(replay: MetadataReplay, fields: Fields) -> bool:
    topic_id, number = fields["topicId"], fields["partitionId"]
    if topic_id not in replay.names:
        return False
    replay.partitions[topic_id][number] = ClusterPartition(
        topic=replay.names[topic_id],
        topic_id=topic_id,
        partition=number,
        leader=fields["leader"],
        leader_epoch=fields["leaderEpoch"],
        partition_epoch=fields["partitionEpoch"],
        replicas=tuple(fields["replicas"]),
        isr=tuple(fields["isr"]),
        adding_replicas=tuple(fields["addingReplicas"]),
        removing_replicas=tuple(fields["removingReplicas"]),
        elr=tuple(fields.get("eligibleLeaderReplicas") or ()),
        last_known_elr=tuple(fields.get("lastKnownElr") or ()),
        is_recovering=bool(fields["leaderRecoveryState"]),
        directories=tuple(fields.get("directories") or ()),
    )
    return True


CHANGED_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
    "directories": "directories",
}
"""Fields of a change that are null if unchanged, and the fields of a partition."""


def _change_partition(replay: MetadataReplay, fields: Fields) -> bool:
    """Apply a change of a partition. Source: PartitionRegistration.merge."""
    partition = replay.partitions.get(fields["topicId"], {}).get(fields["partitionId"])
    if partition is None:
        return False
    lists = {own: tuple(fields[name]) for name, own in CHANGED_LISTS.items() if fields.get(name) is not None}
    changed = partition._replace(partition_epoch=partition.partition_epoch + 1, **lists)  # type: ignore[arg-type]
    if fields["leader"] != NO_LEADER_CHANGE:
        changed = changed._replace(leader=fields["leader"], leader_epoch=partition.leader_epoch + 1)
    if fields["leaderRecoveryState"] >= 0:
        changed = changed._replace(is_recovering=bool(fields["leaderRecoveryState"]))
    replay.partitions[partition.topic_id][partition.partition] = changed
    return True


def _clear_elr(replay: MetadataReplay, fields: Fields) -> bool:
    """Clear the eligible leader replicas of a topic, or of all topics if none is given."""
    for topic_id, name in replay.names.items():
        if fields["topicName"] in ("", name):
            partitions = replay.partitions[topic_id]
            for number, partition in partitions.items():
                partitions[number] = partition._replace(elr=(), last_known_elr=())
    return True


def _set_config(replay: MetadataReplay, fields: Fields) -> bool:
    values = replay.configs.setdefault((fields["resourceType"], fields["resourceName"]), {})
    if fields["value"] is None:
        values.pop(fields["name"], None)
    else:
        values[fields["name"]] = fields["value"]
    return True


def _set_feature(replay: MetadataReplay, fields: Fields) -> bool:
    if fields["featureLevel"] == 0:
        replay.features.pop(fields["name"], None)
    else:
        replay.features[fields["name"]] = fields["featureLevel"]
    return True


def _set_producer_ids(replay: MetadataReplay, fields: Fields) -> bool:
    replay.next_producer_id = fields["nextProducerId"]
    return True


Apply = Callable[[MetadataReplay, Fields], bool]
"""Applies a record's message; False if it refers to something unknown."""

APPLIES: dict[str, Apply] = {
    "RegisterBrokerRecord": _register_broker,
    "UnregisterBrokerRecord": _unregister_broker,
    "BrokerRegistrationChangeRecord": _change_broker,
    "FenceBrokerRecord": _fence,
    "UnfenceBrokerRecord": _unfence,
    "RegisterControllerRecord": _register_controller,
    "UnregisterControllerRecord": _unregister_controller,
    "TopicRecord": _add_topic,
    "RemoveTopicRecord": _remove_topic,
    "PartitionRecord": _add_partition,
    "PartitionChangeRecord": _change_partition,
    "ClearElrRecord": _clear_elr,
    "ConfigRecord": _set_config,
    "FeatureLevelRecord": _set_feature,
    "ProducerIdsRecord": _set_producer_ids,
}
"""Types of records that the view applies, besides those of `access_replay`."""


LARGEST_OFFSET_DIGITS = 12
"""A number of more digits is a time: milliseconds since 1970 have had 13 since 2001."""


class Until(NamedTuple):
    """The last record to apply: up to and including an offset, or a time (milliseconds since 1970); None: all."""

    offset: int | None = None
    timestamp_ms: int | None = None

    @classmethod
    def parse(cls, text: str | None, zone: tzinfo = UTC, now: int | None = None) -> "Until":
        """Parse an offset or a time; arguments as for `parse_time`. Raises UsageError for anything else."""
        if text is None:
            return cls()
        if re.fullmatch(r"[0-9]+", text) and len(text) <= LARGEST_OFFSET_DIGITS:
            return cls(offset=int(text))
        return cls(timestamp_ms=parse_time(text, zone, now))

    def is_before(self, offset: int, timestamp: int) -> bool:
        """Return True if a record is after it."""
        too_far = self.offset is not None and offset > self.offset
        return too_far or (self.timestamp_ms is not None and timestamp > self.timestamp_ms)


def cluster_metadata_of(partition: PartitionLog, until: Until) -> ClusterMetadata:
    """Return the cluster metadata of the partition."""
    replay = MetadataReplay()
    checkpoint = _load_checkpoint(partition, until, replay)
    start = 0 if checkpoint is None else checkpoint.end_offset
    base_offset = partition.base_offsets[0] if partition.segments else start
    for batch, record in metadata_records(partition, start, until, replay):
        if batch.is_control:
            replay.add_control(record)
        else:
            replay.add(record)
    missing_before = base_offset if base_offset > start else None
    return replay.result(None if checkpoint is None else checkpoint.name, missing_before)


def metadata_records(
    partition: PartitionLog, start: int, until: Until, replay: MetadataReplay
) -> Iterator[tuple["Batch", Record]]:
    """Yield the records of the log with their batches, starting at an offset.

    The log is never compacted, so it has all offsets. Offsets lost to damage are no hole.
    """
    unreadable, is_damaged = replay.unreadable, False
    expected = max(start, partition.base_offsets[0]) if partition.segments else start

    def pass_over(following: int) -> None:
        if expected < following and not is_damaged:
            replay.holes.append(Hole(expected, following - 1, following - 1))

    for item in partition_batches(partition):
        if isinstance(item, Unreadable):
            unreadable.append(item)
            is_damaged = True
        elif item.last_offset >= start:
            pass_over(item.base_offset)
            expected, is_damaged = item.last_offset + 1, False
            damages: list[Damage] = []
            for record in item.records(on_damage=damages.append):
                if until.is_before(record.offset, record.timestamp):
                    return
                if record.offset >= start:
                    yield item, record
            unreadable += [unreadable_batch(partition.path.name, item, damage) for damage in damages]
    pass_over(partition.base_offsets[-1] if partition.segments else start)


def _load_checkpoint(partition: PartitionLog, until: Until, replay: MetadataReplay) -> Checkpoint | None:
    """The newest checkpoint that is whole and not beyond `until`; its records are taken."""
    files = checkpoint_files(partition)
    return replay.begin_with(
        ((end, path) for end, path in files if until.offset is None or end <= until.offset + 1), until.timestamp_ms
    )
