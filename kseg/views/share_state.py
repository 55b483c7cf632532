"""How far share groups got with their partitions, replayed from `__share_group_state`."""

from collections.abc import Iterable, Iterator
from functools import cached_property, partial
from typing import NamedTuple

from kseg.decode.history import EARLY_SHARE_STATE_VALUES
from kseg.errors import KsegError
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.positions import VERSION
from kseg.formats.schemas import SHARE_STATE_KEYS, SHARE_STATE_VALUES, version_range
from kseg.kernel.record import Record
from kseg.log.partition.partition_log import PartitionLog
from kseg.reading.batch import Batch
from kseg.reading.damage import Damage
from kseg.views.group import SharePartition
from kseg.views.partitions_beside import PartitionsBeside
from kseg.views.replay import Unreadable, partition_batches, unreadable_batch

TOPIC = "__share_group_state"
UPDATE = (1).to_bytes(VERSION.size, "big")
"""What the keys of records begin with that only say what has changed since the share-partition's last snapshot."""
UNSET = -1
"""In an update: as it was before. In a snapshot: not known yet."""
ShareKey = tuple[str, str, int]
"""Group, topic id, partition."""


class ShareState(NamedTuple):
    """What a share coordinator knows of a share-partition; -1 for what isn't known yet."""

    start_offset: int
    delivery_complete_count: int
    leader_epoch: int

    def updated(self, update: "ShareState") -> "ShareState":
        """The state after an update. Source: ShareCoordinatorShard.merge."""
        return ShareState(
            self.start_offset if update.start_offset == UNSET else update.start_offset,
            update.delivery_complete_count,
            self.leader_epoch if update.leader_epoch == UNSET else update.leader_epoch,
        )


class ShareStates:
    """The states of share-partitions in the partitions of `__share_group_state` at hand; read when first asked for.

    unreadable: what couldn't be read there. A partition of which that is true tells nothing: newer states may have been
    there.
    """

    def __init__(self, beside: PartitionsBeside, at_ms: int | None = None) -> None:
        """Takes the partitions at hand, and a time: milliseconds since 1970, None for the logs' ends."""
        self._beside = beside
        self._at_ms = at_ms
        self.unreadable: list[Unreadable] = []

    def completed(self, partition: SharePartition) -> SharePartition:
        """A share-partition with what its state says, if there is one and anything was read."""
        state = self._states.get((partition.group, partition.topic_id, partition.partition))
        if state is None or state.start_offset == UNSET:
            return partition
        count = state.delivery_complete_count
        return partition._replace(
            start_offset=state.start_offset,
            delivery_complete_count=None if count == UNSET else count,
            leader_epoch=state.leader_epoch,
        )

    @cached_property
    def _states(self) -> dict[ShareKey, ShareState]:
        found: dict[ShareKey, ShareState] = {}
        for place in self._beside.of_topic(TOPIC):
            states, unreadable = partition_states(place, self._at_ms)
            self.unreadable += unreadable
            if all(each.is_tail for each in unreadable):
                found |= states
        return found


def partition_states(
    place: PartitionLog, at_ms: int | None = None
) -> tuple[dict[ShareKey, ShareState], list[Unreadable]]:
    """The states in one partition, and what couldn't be read there. Source: ShareCoordinatorShard.replay."""
    latest: dict[bytes, list[Record]] = {}
    unreadable: list[Unreadable] = []
    states: dict[ShareKey, ShareState] = {}
    try:
        for record in _records_in(place, unreadable):
            if at_ms is None or record.timestamp <= at_ms:
                _note(record, latest)
        for records in latest.values():
            states[_share_key(records[0])] = _state_after(records)
    except KsegError as error:
        unreadable.append(Unreadable(place.directory_name, None, error.message))
    return states, unreadable


def _records_in(place: PartitionLog, unreadable: list[Unreadable]) -> Iterator[Record]:
    """A partition's records; adds what can't be read."""

    def note_damage(batch: Batch, damage: Damage) -> None:
        unreadable.append(unreadable_batch(place.directory_name, batch, damage))

    for item in partition_batches(place):
        if isinstance(item, Unreadable):
            unreadable.append(item)
        elif not item.is_control:
            yield from item.records(on_damage=partial(note_damage, item))


def _note(record: Record, latest: dict[bytes, list[Record]]) -> None:
    """Remembers of each share-partition the last snapshot, and the updates after it."""
    key = record.key or b""
    name = key[VERSION.end :]
    if not key.startswith(UPDATE):
        latest.pop(name, None)
    if record.value is not None:
        latest.setdefault(name, []).append(record)


def _state_after(records: Iterable[Record]) -> ShareState:
    first, *updates = map(_state_in, records)
    for update in updates:
        first = first.updated(update)
    return first


def _share_key(record: Record) -> ShareKey:
    fields = parse_message(SHARE_STATE_KEYS[_type_of(record)], 0, record.key or b"", VERSION.end).value
    return fields["groupId"], fields["topicId"], fields["partition"]


def _state_in(record: Record) -> ShareState:
    """What a record says. Raises MessageError."""
    number, value = _type_of(record), record.value or b""
    if len(value) < VERSION.size or VERSION.read(value) not in version_range(SHARE_STATE_VALUES[number].versions):
        raise MessageError("a state of unknown version")
    fields = _fields(number, value)
    return ShareState(fields["startOffset"], fields.get("deliveryCompleteCount", UNSET), fields["leaderEpoch"])


def _type_of(record: Record) -> int:
    key = record.key or b""
    number = VERSION.read(key) if len(key) >= VERSION.size else None
    if number is None or number not in SHARE_STATE_KEYS:
        raise MessageError(f"key of unknown type {number}")
    return number


def _fields(number: int, value: bytes) -> Fields:
    version = VERSION.read(value)
    try:
        return parse_message(SHARE_STATE_VALUES[number], version, value, VERSION.end).value
    except MessageError:
        # 4.0 wrote other fields under the same version.
        return parse_message(EARLY_SHARE_STATE_VALUES[number], version, value, VERSION.end).value
