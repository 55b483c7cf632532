"""Partitions of keys, groups and transactional ids. Source: BuiltInPartitioner, Utils.murmur2."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple
from zlib import crc32

from kseg.errors import UsageError
from kseg.log.partition import PartitionLog

COORDINATOR_PARTITIONS = 50
"""`offsets.topic.num.partitions` and `transaction.state.log.num.partitions`."""

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_UINT32 = 0xFFFFFFFF


class Partitioner(StrEnum):
    """How a client chooses a key's partition.

    MURMUR2: Java's and most clients', librdkafka's `murmur2`. CRC32: librdkafka's `consistent`, its default for keys.
    """

    MURMUR2 = "murmur2"
    CRC32 = "crc32"


def java_string_hash(text: str) -> int:
    """`String.hashCode`: over UTF-16 units, as int32."""
    units = text.encode("utf-16-be", "surrogatepass")
    number = 0
    for at in range(0, len(units), 2):
        number = (31 * number + (units[at] << 8 | units[at + 1])) & _UINT32
    return number - (1 << 32) if number >> 31 else number


def murmur2(key: bytes) -> int:
    """Kafka's murmur2, as uint32. Source: Utils.murmur2."""
    number = _SEED ^ len(key)
    whole = len(key) & ~3
    for at in range(0, whole, 4):
        block = int.from_bytes(key[at : at + 4], "little") * _MULTIPLIER & _UINT32
        block = (block ^ block >> 24) * _MULTIPLIER & _UINT32
        number = number * _MULTIPLIER & _UINT32 ^ block
    if whole < len(key):
        number = (number ^ int.from_bytes(key[whole:], "little")) * _MULTIPLIER & _UINT32
    number = (number ^ number >> 13) * _MULTIPLIER & _UINT32
    return number ^ number >> 15


def coordinator_partition(name: str, partition_count: int = COORDINATOR_PARTITIONS) -> int:
    """The partition for a group's offsets or a transactional id's state.

    Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor.
    """
    number = java_string_hash(name)
    return (0 if number == -(1 << 31) else abs(number)) % partition_count


_HASHES: dict[Partitioner, Callable[[bytes], int]] = {
    Partitioner.MURMUR2: lambda key: murmur2(key) & 0x7FFFFFFF,
    Partitioner.CRC32: crc32,
}


def key_partition(key: bytes, partition_count: int, partitioner: Partitioner = Partitioner.MURMUR2) -> int:
    """The partition that a producer chooses for a record with this key. Source: BuiltInPartitioner.partitionForKey."""
    return _HASHES[partitioner](key) % partition_count


class Home(NamedTuple):
    """A partition of a topic, None if that isn't known, of so many; the directories that hold it, of those at hand.

    note: how the number of partitions was found, where it may be wrong.
    """

    topic: str | None
    partition: int
    partition_count: int
    directories: tuple[str, ...]
    note: str | None

    @property
    def name(self) -> str | None:
        """Topic and number, as in the directory's name; None without a topic."""
        return None if self.topic is None else f"{self.topic}-{self.partition}"

    def as_object(self) -> dict[str, object]:
        """The answer as JSON has it."""
        return {
            "type": "where",
            "topic": self.topic,
            "partition": self.partition,
            "partitions": self.partition_count,
            "directories": list(self.directories),
        }

    def lines(self) -> Iterator[str]:
        """The answer for people: the partition, and its directories."""
        count = self.partition_count
        yield f"partition {self.partition} of {count}" if self.name is None else f"{self.name} of {count} partitions"
        yield from self.directories


def home_of_state(
    topic: str,
    name: str,
    places: Sequence[PartitionLog] | None,
    partition_count: int | None,
    ids: Iterable[tuple[str, int | None]] = (),
) -> Home:
    """The partition of a coordinator's topic that holds the state of a group or of a transactional id.

    `places`: its partitions at hand, the copies that answer; None: nobody said where to look. `partition_count`: None:
    as `internal_count` has it; `ids` are for that.
    """
    found = places or ()
    count, note = partition_count, None
    if not count and found:
        count = internal_count(found, ids)
        is_assumed = count >= COORDINATOR_PARTITIONS and len({place.partition for place in found}) < count
        note = _assumed_note(topic, count) if is_assumed else _shown_note(topic, count)
    count = count or COORDINATOR_PARTITIONS
    return _home(topic, coordinator_partition(name, count), count, found, note)


def home_of_key(
    key: bytes,
    topic: str | None,
    places: Sequence[PartitionLog] | None,
    partition_count: int | None,
    partitioner: Partitioner,
) -> Home:
    """The partition of a topic that a producer gives a key to. Raises UsageError if nothing tells how many there are.

    Arguments are as for `home_of_state`; without a topic `partition_count` is needed.
    """
    found = places or ()
    count, note = partition_count, None
    if not count:
        count = _shown_count(found)
        note = _shown_note(topic, count)
    if not count:
        if topic is not None and places is not None:
            raise UsageError(f"no partition of {topic} is here; `kseg ls` lists topics, or give --partitions")
        raise UsageError("of how many partitions? give --partitions, or --topic and its log directories")
    return _home(topic, key_partition(key, count, partitioner), count, found, note)


def _home(topic: str | None, partition: int, count: int, found: Sequence[PartitionLog], note: str | None) -> Home:
    directories = tuple(str(place.path) for place in found if place.partition == partition)
    return Home(topic, partition, count, directories, note)


def _shown_count(found: Sequence[PartitionLog]) -> int:
    """How many partitions the directories of a topic show; 0 without any."""
    return max((place.partition for place in found if place.partition is not None), default=-1) + 1


def internal_count(found: Sequence[PartitionLog], ids: Iterable[tuple[str, int | None]]) -> int:
    """Return how many partitions a coordinator's topic has, if no metadata are here.

    The default number or more; fewer only if ids prove it, since other brokers may have the missing partitions.

    Args:
        found: its partitions at hand.
        ids: groups or transactional ids, each with the partition that has it; read only as far as they are needed.
    """
    count, is_proven = _shown_count(found), False
    if not 0 < count < COORDINATOR_PARTITIONS:
        return max(count, COORDINATOR_PARTITIONS)
    for name, partition in ids:
        if coordinator_partition(name, count) != partition:
            return COORDINATOR_PARTITIONS
        is_proven = is_proven or coordinator_partition(name) != partition
    return count if is_proven else COORDINATOR_PARTITIONS


def missing_text(topic: str, here: int, count: int) -> str | None:
    """Says how many of a topic's partitions are here, if some aren't."""
    return None if here >= count else f"{here} of {count} partitions of {topic} are here"


def _assumed_note(topic: str, count: int) -> str:
    return f"{topic}: not all partitions are here; {count} are assumed: --partitions says otherwise"


def _shown_note(topic: str | None, count: int) -> str:
    return f"{topic}: {count} partitions, as the directories show: --partitions says otherwise"
