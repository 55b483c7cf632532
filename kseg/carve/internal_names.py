"""Names of carved partitions of internal topics: their records' formats, and the ids in the keys, prove them."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import NamedTuple

from kseg.carve.chains import CarvedPartition
from kseg.carve.contents import is_snapshot, sample_batches
from kseg.carve.names import Name, NameKind
from kseg.carve.runs import Runs
from kseg.carve.topics import KnownTopics
from kseg.coordinators.home_partition import coordinator_partition, count_by_shared_ids
from kseg.coordinators.members import TOPIC as SHARE_STATE_TOPIC
from kseg.decode.internal_records import EARLY_SHARE_GROUP_VALUES, EARLY_SHARE_STATE_VALUES, parse_framed
from kseg.formats.codes import VERSION
from kseg.formats.messages import Fields, MessageError, parse_message
from kseg.formats.schemas import (
    METADATA_RECORDS,
    OFFSETS_KEYS,
    OFFSETS_VALUES,
    OFFSETS_VALUES_TO_4_0,
    REMOTE_LOG_RECORDS,
    SHARE_STATE_KEYS,
    SHARE_STATE_VALUES,
    TRANSACTION_KEYS,
    TRANSACTION_VALUES,
    MessageSchema,
    MessageTable,
    version_range,
)
from kseg.kernel.record import Record
from kseg.log.partition import METADATA_TOPIC, OFFSETS_TOPIC, TRANSACTIONS_TOPIC

_MOST_BATCHES = 64
"""Batches of a partition that are read."""
_MOST_RECORDS = 256
"""Records of a batch that are read."""
_MOST_ELEMENTS = 100_000
"""Elements of a message: an image may hold anything."""


class _Format(NamedTuple):
    """The format of a coordinator's topic. id_of: the id in a key that decides about its partition."""

    keys: MessageTable
    values: tuple[MessageTable, ...]
    id_of: Callable[[Fields], str]


_FORMATS = {
    OFFSETS_TOPIC: _Format(
        OFFSETS_KEYS,
        (OFFSETS_VALUES, OFFSETS_VALUES_TO_4_0, EARLY_SHARE_GROUP_VALUES),
        lambda key: key["group"] if "group" in key else key["groupId"],
    ),
    TRANSACTIONS_TOPIC: _Format(TRANSACTION_KEYS, (TRANSACTION_VALUES,), lambda key: key["transactionalId"]),
    # Source: SharePartitionKey.asCoordinatorKey
    SHARE_STATE_TOPIC: _Format(
        SHARE_STATE_KEYS,
        (SHARE_STATE_VALUES, EARLY_SHARE_STATE_VALUES),
        lambda key: f"{key['groupId']}:{key['topicId']}:{key['partition']}",
    ),
}


class InternalPartition(NamedTuple):
    """A carved partition of an internal topic. ids: groups and so on, which all have this partition.

    is_snapshot: its batches are a snapshot of the metadata, not a log.
    """

    number: int
    topic: str
    ids: frozenset[str]
    is_snapshot: bool = False


def find_internal(runs: Runs, partitions: Iterable[CarvedPartition]) -> Iterator[InternalPartition]:
    """Yield the partitions whose records all have the formats of one internal topic.

    Reads some batches of each.
    """
    for partition in partitions:
        found = _recognize(runs, partition)
        if found is not None:
            yield found


def internal_names(found: Iterable[InternalPartition], topics: KnownTopics) -> dict[int, Name]:
    """Return names by number of partitions.

    The number of a coordinator's partition follows from the ids in its keys and the topic's number of partitions. That
    comes from the metadata, or from many ids that share a partition. If both are missing, or the ids don't agree, the
    partition gets no name.
    """
    by_topic: dict[str, list[InternalPartition]] = {}
    for each in found:
        if not each.is_snapshot:
            by_topic.setdefault(each.topic, []).append(each)
    names: dict[int, Name] = {}
    for topic, members in by_topic.items():
        if topic == METADATA_TOPIC:
            names |= {each.number: Name(f"{topic}-0", NameKind.INTERNAL) for each in members}
            continue
        count = topics.partition_count(topic) or count_by_shared_ids(each.ids for each in members)
        for each in members if count else ():
            numbers = {coordinator_partition(name, count or 1) for name in each.ids}
            if len(numbers) == 1:
                facts = {"ids": len(each.ids), "partitionCount": count or 1}
                names[each.number] = Name(f"{topic}-{numbers.pop()}", NameKind.INTERNAL, facts)
    return names


def _recognize(runs: Runs, partition: CarvedPartition) -> InternalPartition | None:
    """Return the internal topic that the records of some batches fit."""
    candidates = _Candidates()
    for batch in sample_batches(runs, partition, _MOST_BATCHES):
        records = islice(batch.records(on_damage="skip"), _MOST_RECORDS)
        if not batch.is_control and not all(map(candidates.take, records)):
            return None
    found = candidates.result(partition.number)
    return found and found._replace(is_snapshot=is_snapshot(runs, partition))


class _Candidates:
    """The internal topics whose formats all records have so far."""

    def __init__(self) -> None:
        self._is_metadata = True
        self._ids = {topic: set[str]() for topic in _FORMATS}
        self._has_value = False

    def take(self, record: Record) -> bool:
        """Add a record; return False if no topic is left."""
        self._has_value |= record.value is not None
        self._is_metadata = self._is_metadata and _is_metadata(record)
        for topic in tuple(self._ids):
            found = _id_in(_FORMATS[topic], record)
            if found:
                self._ids[topic].add(found)
            else:
                del self._ids[topic]
        return self._is_metadata or bool(self._ids)

    def result(self, number: int) -> InternalPartition | None:
        """Return the only topic that is left. A key alone proves nothing: a value must fit too."""
        if not self._has_value or self._is_metadata + len(self._ids) != 1:
            return None
        for topic, ids in self._ids.items():
            return InternalPartition(number, topic, frozenset(ids))
        return InternalPartition(number, METADATA_TOPIC, frozenset())


def _is_metadata(record: Record) -> bool:
    return record.key is None and _is_framed(METADATA_RECORDS, record) and not _is_framed(REMOTE_LOG_RECORDS, record)


def _is_framed(table: MessageTable, record: Record) -> bool:
    try:
        found = parse_framed(table, record.value)
    except MessageError:
        return False
    return found.version in version_range(found.message.versions)


def _id_in(form: _Format, record: Record) -> str | None:
    """Return the id in a record's key if key and value fill their messages exactly."""
    key, value = record.key or b"", record.value
    number = VERSION.read(key) if len(key) >= VERSION.end else None
    if number is None or number not in form.keys:
        return None
    fields = _fields(form.keys[number], 0, key)
    if fields is None or (value is not None and not any(_fits(table, number, value) for table in form.values)):
        return None
    return form.id_of(fields)


def _fits(table: MessageTable, number: int, value: bytes) -> bool:
    if number not in table or len(value) < VERSION.end:
        return False
    version = VERSION.read(value)
    return version in version_range(table[number].versions) and _fields(table[number], version, value) is not None


def _fields(message: MessageSchema, version: int, data: bytes) -> Fields | None:
    """Return the fields of a message that follows its version and has all other bytes, or None."""
    try:
        fields, end = parse_message(message, version, data, VERSION.end, most_elements=_MOST_ELEMENTS)
    except MessageError:
        return None
    return fields if end == len(data) else None
