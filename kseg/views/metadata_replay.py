"""What the records of `__cluster_metadata` add up to, one after another."""

from collections.abc import Callable

from kseg.decode.framed import Framed, is_newer, parse_framed
from kseg.decode.newer import NEWER, newer_part
from kseg.formats.codes import NO_TIMESTAMP
from kseg.formats.messages import Fields, MessageError
from kseg.formats.schemas import METADATA_RECORDS
from kseg.kernel.record import Record
from kseg.log.partition.partition_log import METADATA_TOPIC
from kseg.views.access_replay import ACCESS_APPLIES, AccessReplay
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
from kseg.views.quorum import Voters
from kseg.views.replay import Unreadable

NO_LEADER_CHANGE = -2
"""What a change says of a leader that stays. Source: LeaderConstants."""
RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Source: ConfigResource.Type."""
TOPIC_RESOURCE = 2
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}


class MetadataReplay:
    """The state that records add up to. Source: MetadataDelta and the images that it makes."""

    def __init__(self) -> None:
        self.offset = -1
        self.timestamp = NO_TIMESTAMP
        self.unapplied = 0
        self.unreadable: list[Unreadable] = []
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
        self._transaction: list[Framed] | None = None
        """Records of a metadata transaction that has not ended (KIP-868)."""

    def add(self, record: Record) -> None:
        """Takes a record."""
        self.offset, self.timestamp = record.offset, record.timestamp
        try:
            framed = parse_framed(METADATA_RECORDS, record.value)
        except MessageError as error:
            reason = f"it is {NEWER}: {error.message}" if is_newer(METADATA_RECORDS, record.value) else error.message
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, reason))
            return
        newer = newer_part(framed.message, framed.version, framed.fields)
        if newer is not None:
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, newer))
        if framed.message.name == "BeginTransactionRecord":
            self._transaction = []
        elif framed.message.name == "AbortTransactionRecord":
            self._transaction = None
        elif framed.message.name == "EndTransactionRecord":
            ended, self._transaction = self._transaction or [], None
            for part in ended:
                self._apply(part)
        elif self._transaction is not None:
            self._transaction.append(framed)
        else:
            self._apply(framed)

    def add_control(self, record: Record) -> None:
        """Takes a control record: what it says of the quorum."""
        problem = self.voters.add(record)
        if problem is not None:
            self.unreadable.append(Unreadable(METADATA_TOPIC, record.offset, problem))

    def _apply(self, framed: Framed) -> None:
        apply, of_access = APPLIES.get(framed.message.name), ACCESS_APPLIES.get(framed.message.name)
        is_known = apply is None or apply(self, framed.fields)
        if not is_known or not (of_access is None or of_access(self.access, framed.fields)):
            self.unapplied += 1

    def result(self, checkpoint: str | None, missing_before: int | None) -> ClusterMetadata:
        """The state as values, everything sorted."""
        configs = (
            Config(RESOURCE_TYPES.get(kind, str(kind)), resource, name, value)
            for (kind, resource), values in self.configs.items()
            for name, value in values.items()
        )
        topics = (
            Topic(
                name, topic_id, tuple(self.partitions[topic_id][number] for number in sorted(self.partitions[topic_id]))
            )
            for topic_id, name in self.names.items()
        )
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
            unreadable=tuple(self.unreadable),
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
    # 1 fences, -1 unfences, 0 leaves it.
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
"""Fields of a change that are null where nothing changes, to those of a partition."""


def _change_partition(replay: MetadataReplay, fields: Fields) -> bool:
    """A change of a partition. Source: PartitionRegistration.merge."""
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
    """Of one topic, or of all if it names none."""
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
"""Takes a record's message; False if it refers to what isn't known."""

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
"""Types of records that the view takes, besides those of `access_replay`."""
