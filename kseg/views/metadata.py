"""A cluster's metadata at an offset or time, replayed from `__cluster_metadata` and its newest usable checkpoint."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from kseg.batch import Batch, Record
from kseg.decode.framed import Framed, parse_framed
from kseg.decode.topic import topic_partitions
from kseg.errors import OpenError
from kseg.formats.codes import NO_TIMESTAMP, ControlType
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.names import parse_file_name
from kseg.formats.schemas import cluster_metadata
from kseg.formats.schemas.control_records import SNAPSHOT_HEADER_RECORD
from kseg.log.partition import PartitionLog
from kseg.segment import open_segment
from kseg.views.replay import Unreadable, partition_batches

TOPIC = "__cluster_metadata"
NO_LEADER = -1
NO_LEADER_CHANGE = -2
"""What a change says of a leader that stays. Source: LeaderConstants."""
RESOURCE_TYPES = {2: "topic", 4: "broker", 8: "broker-logger", 16: "client-metrics", 32: "group"}
"""Source: ConfigResource.Type."""
SECURITY_PROTOCOLS = {0: "PLAINTEXT", 1: "SSL", 2: "SASL_PLAINTEXT", 3: "SASL_SSL"}
SECRET_NAME = re.compile(
    r"password$|secret$|^(.*\.)?sasl\.jaas\.config$|ssl\.keystore\.key$|ssl\.truststore\.certificates$"
)
"""Settings whose values Kafka itself hides, by the ends of their names."""


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


class Partition(NamedTuple):
    """A partition: node ids of its replicas. `leader` -1 for none. `elr`: eligible leader replicas (KIP-966)."""

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


class Topic(NamedTuple):
    """A topic with its partitions, by number."""

    name: str
    topic_id: str
    partitions: tuple[Partition, ...]


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

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """All partitions, by topic and number."""
        return tuple(partition for topic in self.topics for partition in topic.partitions)


class Until(NamedTuple):
    """How far records are taken: up to and with an offset, or a time (milliseconds since 1970); None: all."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def is_before(self, offset: int, timestamp: int) -> bool:
        """Whether a record lies behind it."""
        too_far = self.offset is not None and offset > self.offset
        return too_far or (self.timestamp_ms is not None and timestamp > self.timestamp_ms)


def read_cluster_metadata(path: Path, until: Until | None = None) -> ClusterMetadata:
    """The cluster's metadata in the partition directory of `__cluster_metadata`, or in a log directory that has it.

    A log's end that was never committed is taken for committed: the files alone don't tell.

    Raises:
        OpenError: there is no such directory, or no metadata in it.
    """
    return cluster_metadata_of(topic_partitions(path, TOPIC)[0], until or Until())


def cluster_metadata_of(partition: PartitionLog, until: Until) -> ClusterMetadata:
    """The cluster's metadata of the partition."""
    replay = _Replay()
    checkpoint = _load_checkpoint(partition, until, replay)
    start = 0 if checkpoint is None else checkpoint.end_offset
    base_offset = partition.base_offsets[0] if partition.segments else start
    for record in _records(partition, start, until, replay):
        replay.add(record)
    missing_before = base_offset if base_offset > start else None
    return replay.result(None if checkpoint is None else checkpoint.name, missing_before)


def _records(partition: PartitionLog, start: int, until: Until, replay: "_Replay") -> Iterator[Record]:
    """The log's records from an offset on."""
    for item in partition_batches(partition):
        if isinstance(item, Unreadable):
            replay.unreadable.append(item)
        elif item.last_offset >= start and not item.is_control:
            for record in item.records():
                if until.is_before(record.offset, record.timestamp):
                    return
                if record.offset >= start:
                    yield record


class _Checkpoint(NamedTuple):
    """A snapshot of the metadata up to, not including, an offset."""

    end_offset: int
    name: str
    last_timestamp: int
    """Of the last record that it contains."""
    records: tuple[Record, ...]


def _load_checkpoint(partition: PartitionLog, until: Until, replay: "_Replay") -> _Checkpoint | None:
    """The newest checkpoint that is whole and not beyond `until`; its records are taken."""
    named = [(parse_file_name(file.path), file.path) for file in partition.metadata_snapshots]
    snapshots = [(name.base_offset, name.epoch or 0, path) for name, path in named if name.base_offset is not None]
    for end_offset, _, path in sorted(snapshots, reverse=True):
        if until.offset is not None and end_offset > until.offset + 1:
            continue
        found = _checkpoint(path, end_offset)
        if isinstance(found, Unreadable):
            replay.unreadable.append(found)
        elif until.timestamp_ms is None or found.last_timestamp <= until.timestamp_ms:
            for record in found.records:
                replay.add(record)
            replay.offset, replay.timestamp = end_offset - 1, found.last_timestamp
            return found
    return None


def _checkpoint(path: Path, end_offset: int) -> _Checkpoint | Unreadable:
    """A checkpoint's records, if all are there: it begins with a header and ends with a footer."""

    def bad(reason: str) -> Unreadable:
        return Unreadable(path.name, None, f"checkpoint not used: {reason}")

    records: list[Record] = []
    control: list[Record] = []
    try:
        with open_segment(path) as segment:
            for item in segment.scan():
                if not isinstance(item, Batch):
                    return bad(f"{item.kind} at position {item.position}")
                if not item.is_valid or item.problem() is not None:
                    return bad(f"the batch at position {item.position} can't be read whole")
                (control if item.is_control else records).extend(item.records())
    except OpenError as error:
        return bad(error.message)
    if not control or _control_type(control[0]) != ControlType.SNAPSHOT_HEADER:
        return bad("it doesn't begin with a snapshot's header")
    if _control_type(control[-1]) != ControlType.SNAPSHOT_FOOTER:
        return bad("it doesn't end with a snapshot's footer")
    try:
        header = parse_message(SNAPSHOT_HEADER_RECORD, 0, control[0].value or b"").value
    except MessageError as error:
        return bad(error.message)
    return _Checkpoint(end_offset, path.name, header["lastContainedLogTimestamp"], tuple(records))


def _control_type(record: Record) -> int:
    return int.from_bytes((record.key or b"")[2:4], "big", signed=True)


class _Replay:
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
        self.partitions: dict[str, dict[int, Partition]] = {}
        """Topic ids to partitions by number."""
        self.configs: dict[tuple[int, str], dict[str, str]] = {}
        self._transaction: list[Framed] | None = None
        """Records of a metadata transaction that has not ended (KIP-868)."""

    def add(self, record: Record) -> None:
        """Takes a record."""
        self.offset, self.timestamp = record.offset, record.timestamp
        try:
            framed = parse_framed(cluster_metadata.RECORDS, record.value)
        except MessageError as error:
            self.unreadable.append(Unreadable(TOPIC, record.offset, error.message))
            return
        if framed.message is cluster_metadata.BEGIN_TRANSACTION_RECORD:
            self._transaction = []
        elif framed.message is cluster_metadata.ABORT_TRANSACTION_RECORD:
            self._transaction = None
        elif framed.message is cluster_metadata.END_TRANSACTION_RECORD:
            ended, self._transaction = self._transaction or [], None
            for part in ended:
                self._apply(part)
        elif self._transaction is not None:
            self._transaction.append(framed)
        else:
            self._apply(framed)

    def _apply(self, framed: Framed) -> None:
        apply = APPLIES.get(framed.message.name)
        if apply is not None and not apply(self, framed.fields):
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
            self.offset,
            self.timestamp,
            checkpoint,
            missing_before,
            tuple(Feature(*feature) for feature in sorted(self.features.items())),
            tuple(self.brokers[number] for number in sorted(self.brokers)),
            tuple(self.controllers[number] for number in sorted(self.controllers)),
            tuple(sorted(topics)),
            tuple(sorted(configs)),
            self.unapplied + len(self._transaction or ()),
            tuple(self.unreadable),
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


def _register_broker(replay: _Replay, fields: Fields) -> bool:
    replay.brokers[fields["brokerId"]] = Broker(
        fields["brokerId"],
        fields["brokerEpoch"],
        fields["incarnationId"],
        _endpoints(fields),
        _features(fields),
        fields["rack"],
        fields["fenced"],
        fields.get("inControlledShutdown", False),
        tuple(fields.get("logDirs", ())),
    )
    return True


def _register_controller(replay: _Replay, fields: Fields) -> bool:
    number = fields["controllerId"]
    replay.controllers[number] = Controller(number, fields["incarnationId"], _endpoints(fields), _features(fields))
    return True


def _unregister_broker(replay: _Replay, fields: Fields) -> bool:
    return replay.brokers.pop(fields["brokerId"], None) is not None


def _change_broker(replay: _Replay, fields: Fields) -> bool:
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
    replay.brokers[broker.broker_id] = broker
    return True


def _fence(is_fenced: bool) -> "Apply":
    def apply(replay: _Replay, fields: Fields) -> bool:
        broker = replay.brokers.get(fields["id"])
        if broker is None:
            return False
        replay.brokers[broker.broker_id] = broker._replace(is_fenced=is_fenced)
        return True

    return apply


def _add_topic(replay: _Replay, fields: Fields) -> bool:
    replay.names[fields["topicId"]] = fields["name"]
    replay.partitions[fields["topicId"]] = {}
    return True


def _remove_topic(replay: _Replay, fields: Fields) -> bool:
    name = replay.names.pop(fields["topicId"], None)
    replay.partitions.pop(fields["topicId"], None)
    if name is None:
        return False
    replay.configs.pop((TOPIC_RESOURCE, name), None)
    return True


TOPIC_RESOURCE = 2


def _add_partition(replay: _Replay, fields: Fields) -> bool:
    topic_id, number = fields["topicId"], fields["partitionId"]
    if topic_id not in replay.names:
        return False
    replay.partitions[topic_id][number] = Partition(
        replay.names[topic_id],
        topic_id,
        number,
        fields["leader"],
        fields["leaderEpoch"],
        fields["partitionEpoch"],
        tuple(fields["replicas"]),
        tuple(fields["isr"]),
        tuple(fields["addingReplicas"]),
        tuple(fields["removingReplicas"]),
        tuple(fields.get("eligibleLeaderReplicas") or ()),
        tuple(fields.get("lastKnownElr") or ()),
        bool(fields["leaderRecoveryState"]),
    )
    return True


CHANGED_LISTS = {
    "isr": "isr",
    "replicas": "replicas",
    "removingReplicas": "removing_replicas",
    "addingReplicas": "adding_replicas",
    "eligibleLeaderReplicas": "elr",
    "lastKnownElr": "last_known_elr",
}
"""Fields of a change that are null where nothing changes, to those of a partition."""


def _change_partition(replay: _Replay, fields: Fields) -> bool:
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


def _clear_elr(replay: _Replay, fields: Fields) -> bool:
    """Of one topic, or of all if it names none."""
    for topic_id, name in replay.names.items():
        if fields["topicName"] in ("", name):
            partitions = replay.partitions[topic_id]
            for number, partition in partitions.items():
                partitions[number] = partition._replace(elr=(), last_known_elr=())
    return True


def _set_config(replay: _Replay, fields: Fields) -> bool:
    values = replay.configs.setdefault((fields["resourceType"], fields["resourceName"]), {})
    if fields["value"] is None:
        values.pop(fields["name"], None)
    else:
        values[fields["name"]] = fields["value"]
    return True


def _set_feature(replay: _Replay, fields: Fields) -> bool:
    if fields["featureLevel"] == 0:
        replay.features.pop(fields["name"], None)
    else:
        replay.features[fields["name"]] = fields["featureLevel"]
    return True


Apply = Callable[[_Replay, Fields], bool]
"""Takes a record's message; False if it refers to what isn't known."""

APPLIES: dict[str, Apply] = {
    cluster_metadata.REGISTER_BROKER_RECORD.name: _register_broker,
    cluster_metadata.UNREGISTER_BROKER_RECORD.name: _unregister_broker,
    cluster_metadata.BROKER_REGISTRATION_CHANGE_RECORD.name: _change_broker,
    cluster_metadata.FENCE_BROKER_RECORD.name: _fence(True),
    cluster_metadata.UNFENCE_BROKER_RECORD.name: _fence(False),
    cluster_metadata.REGISTER_CONTROLLER_RECORD.name: _register_controller,
    cluster_metadata.TOPIC_RECORD.name: _add_topic,
    cluster_metadata.REMOVE_TOPIC_RECORD.name: _remove_topic,
    cluster_metadata.PARTITION_RECORD.name: _add_partition,
    cluster_metadata.PARTITION_CHANGE_RECORD.name: _change_partition,
    cluster_metadata.CLEAR_ELR_RECORD.name: _clear_elr,
    cluster_metadata.CONFIG_RECORD.name: _set_config,
    cluster_metadata.FEATURE_LEVEL_RECORD.name: _set_feature,
}
"""Types of records that the view takes; quotas, ACLs, users and tokens aren't shown."""
