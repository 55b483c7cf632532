"""The changes that a metadata log tells of, in order, and how far back it tells of any."""

from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kseg.cluster.directories import Refuse
from kseg.cluster.metadata import TOPIC_RESOURCE, Effective, Hole, MetadataReplay, Until, metadata_records
from kseg.cluster.metadata_access import quota_entity
from kseg.cluster.metadata_changes import KRAFT_VERSION, Change, Key, Thing, is_same, key_of
from kseg.cluster.metadata_checkpoint import Checkpoint, checkpoint_files, last_timestamp
from kseg.cluster.model import ClusterMetadata, ClusterPartition, Config, Feature, Topic, static_voters
from kseg.cluster.schemas_topic import TopicPlaces, find_topic
from kseg.formats.messages import Fields
from kseg.kernel.record import Record
from kseg.log.partition import METADATA_TOPIC, PartitionLog
from kseg.log.selection import EVERY_PARTITION, PartitionChoice


class ChangeChoice(NamedTuple):
    """A choice of changes: topics and partitions, a kind, and bounds of time.

    Times are milliseconds since 1970. None: of all kinds, without an end.
    """

    choice: PartitionChoice = EVERY_PARTITION
    kind: str | None = None
    from_ms: int | None = None
    to_ms: int | None = None

    def has_time(self, timestamp: int) -> bool:
        """Return True if the record time is within the given bounds."""
        is_early = self.from_ms is not None and timestamp < self.from_ms
        return not is_early and (self.to_ms is None or timestamp < self.to_ms)

    def takes(self, change: Change) -> bool:
        """Return True if a change is chosen."""
        return self.has_time(change.timestamp) and self.kind in (None, change.kind) and change.is_of(self.choice)


EVERY_CHANGE = ChangeChoice()


class Reach(NamedTuple):
    """Offsets and times of the first and the last record that was read."""

    first_offset: int
    first_timestamp: int
    last_offset: int
    last_timestamp: int


class MetadataChanges:
    """Changes in the order of the log, oldest first, read while they are iterated over, once.

    After that: count of those that were wanted; reach: what was looked through for them, None if no record is of the
    wanted times. base: the snapshot before which nothing is known; None if the log is here from its first record on.
    committed_end: the offset up to which more than half of the voters have the log;
    None if too few of them are here to tell. uncommitted: how many of the changes come after it.

    A change that a transaction of the metadata aborted, or has not ended, is none.
    """

    def __init__(self, places: TopicPlaces, wanted: ChangeChoice) -> None:
        """Reads nothing yet."""
        self._places, self._wanted = places, wanted
        self._partition = places.partitions[0]
        self._replay = MetadataReplay()
        self.count = self.uncommitted = 0
        self.base: Checkpoint | None = None
        self.reach: Reach | None = None
        self.committed_end: int | None = None

    @cached_property
    def end_state(self) -> ClusterMetadata:
        """Return the state at the end of the log, after all changes have been read."""
        start = 0 if self.base is None else self.base.end_offset
        first = self._partition.base_offsets[0] if self._partition.segments else start
        checkpoint = None if self.base is None else self.base.name
        return self._replay.result(checkpoint, first if first > start else None)

    def __iter__(self) -> Iterator[Change]:
        """Read the log and yield the requested changes."""
        self.base = _begin(self._partition, self._wanted.from_ms, self._replay)
        offsets = array("q")
        for change in self._changes():
            if self._wanted.takes(change):
                self.count += 1
                offsets.append(change.offset)
                yield change
        self.committed_end = _committed_end(self._places, self.end_state)
        if self.committed_end is not None:
            self.uncommitted = sum(offset >= self.committed_end for offset in offsets)

    def _changes(self) -> Iterator[Change]:
        start = 0 if self.base is None else self.base.end_offset
        batch_offset, unit, holes = -1, list[Change](), self._replay.holes
        hole_count = 0
        for batch, record in metadata_records(self._partition, start, Until(), self._replay):
            if batch.base_offset != batch_offset:
                yield from _join_creations(unit)
                batch_offset, unit = batch.base_offset, []
            if len(holes) > hole_count:
                hole_count = len(holes)
                start = self._go_on_after(holes[-1])
            if record.offset < start:
                continue
            self._look_at(record)
            if batch.is_control:
                unit += self._control_changes(record)
            else:
                for each in self._replay.effective(record):
                    unit += _effect(self._replay, each)
        yield from _join_creations(unit)

    def _go_on_after(self, hole: Hole) -> int:
        """Take the state of the first snapshot after a hole; return the offset from which on records count."""
        replay = MetadataReplay()
        replay.unreadable, replay.holes, replay.unapplied = (
            self._replay.unreadable,
            self._replay.holes,
            self._replay.unapplied,
        )
        files = [each for each in checkpoint_files(self._partition) if each[0] > hole.last]
        found = replay.begin_with(reversed(files))
        if found is None:
            return hole.last + 1
        self._replay = replay
        replay.holes[-1] = hole._replace(unknown_to=found.end_offset - 1)
        return found.end_offset

    def _look_at(self, record: Record) -> None:
        if self._wanted.has_time(record.timestamp):
            first = Reach(record.offset, record.timestamp, 0, 0) if self.reach is None else self.reach
            self.reach = first._replace(last_offset=record.offset, last_timestamp=record.timestamp)

    def _control_changes(self, record: Record) -> Iterator[Change]:
        """Changes of the voters, and of the feature that control records set."""
        voters = self._replay.voters
        before = _quorum(voters.kraft_version, voters.voters)
        self._replay.add_control(record)
        yield from _differences(before, _quorum(voters.kraft_version, voters.voters), record.offset, record.timestamp)


def read_changes(
    paths: Path | Sequence[Path], wanted: ChangeChoice = EVERY_CHANGE, refuse: Refuse | None = None
) -> MetadataChanges:
    """Find the metadata log that `read_cluster_metadata` would use. Raises the same errors."""
    return MetadataChanges(find_topic(paths, METADATA_TOPIC, refuse), wanted)


def _begin(partition: PartitionLog, from_ms: int | None, replay: MetadataReplay) -> Checkpoint | None:
    """Load the snapshot from which on the log is read, or None if the log is here from its first record on.

    From a time on that is the last snapshot before it. Otherwise, or if there is none, the first that reaches the log.
    """
    start = partition.base_offsets[0] if partition.segments else 0
    files = [(end, path) for end, path in checkpoint_files(partition) if end >= start]
    if from_ms is not None:
        times = ((each, last_timestamp(each[1])) for each in files)
        early = (each for each, last in times if last is not None and last < from_ms)
        found = replay.begin_with(early)
        if found is not None:
            return found if found.end_offset else None
    if start == 0:
        replay.begin_with(each for each in files if each[0] == 0)
        return None
    return replay.begin_with(reversed(files))


def _committed_end(places: TopicPlaces, found: ClusterMetadata) -> int | None:
    """Return the highest offset that a majority of the voters has, or None if it can't be determined."""
    voters = {voter.voter_id for voter in found.voters or static_voters(places.partitions[0])}
    copies = places.replicas[0].copies if places.replicas else ()
    ends = sorted(
        (copy.place.read_log_end_offset() if copy.agreed_end is None else copy.agreed_end)
        for copy in copies
        if copy.broker in voters
    )
    enough = len(voters) // 2 + 1
    return ends[-enough] if voters and len(ends) >= enough else None


def _effect(replay: MetadataReplay, record: Effective) -> Iterator[Change]:
    """Apply a record; the changes that it makes."""
    name, fields = record.framed.message.name, record.framed.fields
    touched = TOUCHED.get(name)
    before = {} if touched is None else {key_of(each): each for each in touched(replay, fields)}
    configs = _topic_configs(replay, fields) if name == "RemoveTopicRecord" else ()
    replay.apply(record.framed)
    if touched is not None:
        after = {key_of(each): each for each in touched(replay, fields)}
        for change in _differences(before, after, record.offset, record.timestamp):
            yield replace(change, configs=configs) if configs else change


def _topic_configs(replay: MetadataReplay, fields: Fields) -> tuple[Config, ...]:
    return tuple(replay.configs_of(TOPIC_RESOURCE, replay.names.get(fields["topicId"], "")))


def _differences(
    before: Mapping[Key, Thing], after: Mapping[Key, Thing], offset: int, timestamp: int
) -> Iterator[Change]:
    for key in {**before, **after}:
        old, new = before.get(key), after.get(key)
        if old is None or new is None or not is_same(old, new):
            yield Change(old, new, offset=offset, timestamp=timestamp)


def _quorum(kraft_version: int, voters: Sequence[Thing]) -> dict[Key, Thing]:
    feature = (Feature(KRAFT_VERSION, kraft_version),) if kraft_version else ()
    return {(type(each), key_of(each)): each for each in (*feature, *voters)}


def _join_creations(unit: Sequence[Change]) -> Iterator[Change]:
    """The changes of a batch; what a new topic was made with is one change with it.

    A controller writes the topic, its settings and its partitions in one batch, in whatever order its release does.
    """
    created = {
        change.after.topic_id: change.after.name
        for change in unit
        if change.before is None and isinstance(change.after, Topic)
    }
    partitions: dict[str, list[ClusterPartition]] = {topic_id: [] for topic_id in created}
    configs: dict[str, dict[str, Config]] = {name: {} for name in created.values()}
    others = list[Change]()
    for change in unit:
        match change.after:
            case ClusterPartition(topic_id=topic_id) if change.before is None and topic_id in partitions:
                partitions[topic_id].append(change.after)
            case Config(resource_type="topic", resource=name) if change.before is None and name in configs:
                configs[name][change.after.name] = change.after
            case _:
                others.append(change)
    for change in others:
        if change.before is None and isinstance(change.after, Topic):
            own = change.after._replace(partitions=tuple(partitions[change.after.topic_id]))
            yield replace(change, after=own, configs=tuple(configs[own.name].values()))
        else:
            yield change


def _only(thing: Thing | None) -> Sequence[Thing]:
    return () if thing is None else (thing,)


def _partition(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.partitions.get(fields["topicId"], {}).get(fields["partitionId"]))


def _with_elr(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    ids = (topic_id for topic_id, name in replay.names.items() if fields["topicName"] in ("", name))
    return [each for topic_id in ids for each in replay.partitions[topic_id].values()]


def _topic(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.topic(fields["topicId"]))


def _broker(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.brokers.get(fields["brokerId"]))


def _fencing(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.brokers.get(fields["id"]))


def _controller(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.controllers.get(fields["controllerId"]))


def _config(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    found = replay.configs_of(fields["resourceType"], fields["resourceName"])
    return [each for each in found if each.name == fields["name"]]


def _feature(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    level = replay.features.get(fields["name"])
    return () if level is None else (Feature(fields["name"], level),)


def _acl(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.access.acl(fields["id"]))


def _quota(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.access.quota(quota_entity(fields), fields["key"]))


def _scram(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.access.credential(fields["name"], fields["mechanism"]))


def _token(replay: MetadataReplay, fields: Fields) -> Sequence[Thing]:
    return _only(replay.access.token(fields["tokenId"]))


TOUCHED: Mapping[str, Callable[[MetadataReplay, Fields], Sequence[Thing]]] = MappingProxyType(
    {
        "RegisterBrokerRecord": _broker,
        "UnregisterBrokerRecord": _broker,
        "BrokerRegistrationChangeRecord": _broker,
        "FenceBrokerRecord": _fencing,
        "UnfenceBrokerRecord": _fencing,
        "RegisterControllerRecord": _controller,
        "UnregisterControllerRecord": _controller,
        "TopicRecord": _topic,
        "RemoveTopicRecord": _topic,
        "PartitionRecord": _partition,
        "PartitionChangeRecord": _partition,
        "ClearElrRecord": _with_elr,
        "ConfigRecord": _config,
        "FeatureLevelRecord": _feature,
        "AccessControlEntryRecord": _acl,
        "RemoveAccessControlEntryRecord": _acl,
        "ClientQuotaRecord": _quota,
        "UserScramCredentialRecord": _scram,
        "RemoveUserScramCredentialRecord": _scram,
        "DelegationTokenRecord": _token,
        "RemoveDelegationTokenRecord": _token,
    }
)
"""The key in the state of the object that a record changes, by type of record."""
