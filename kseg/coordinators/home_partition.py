"""Partitions of keys, groups and transactional ids. Source: BuiltInPartitioner, Utils.murmur2."""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from math import gcd
from typing import NamedTuple
from zlib import crc32

from kseg.errors import UsageError, plural
from kseg.log.partition import PartitionLog

COORDINATOR_PARTITIONS = 50
"""The default of `offsets.topic.num.partitions` and `transaction.state.log.num.partitions`."""
MOST_PARTITIONS = 10_000
"""The largest number of a coordinator's partitions that ids can prove."""
ENOUGH_IDS = 16
"""The number of ids that proves the number of partitions: a further common divisor appears once in 65,000 times."""

_MULTIPLIER = 0x5BD1E995
_SEED = 0x9747B28C
_UINT32 = 0xFFFFFFFF


class Partitioner(StrEnum):
    """A client's function from keys to partitions.

    MURMUR2: Java's and most clients', librdkafka's `murmur2`. CRC32: librdkafka's `consistent`, its default for keys.
    """

    MURMUR2 = "murmur2"
    CRC32 = "crc32"


def java_string_hash(text: str) -> int:
    """Return `String.hashCode`: over UTF-16 units, as int32."""
    units = text.encode("utf-16-be", "surrogatepass")
    number = 0
    for at in range(0, len(units), 2):
        number = (31 * number + (units[at] << 8 | units[at + 1])) & _UINT32
    return number - (1 << 32) if number >> 31 else number


def murmur2(key: bytes) -> int:
    """Return Kafka's murmur2, as uint32. Source: Utils.murmur2."""
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
    """Return the partition for a group's offsets or a transactional id's state.

    Source: GroupCoordinatorService.partitionFor, TransactionStateManager.partitionFor.
    """
    return _positive_hash(name) % partition_count


def _positive_hash(name: str) -> int:
    number = java_string_hash(name)
    return 0 if number == -(1 << 31) else abs(number)


_HASHES: dict[Partitioner, Callable[[bytes], int]] = {
    Partitioner.MURMUR2: lambda key: murmur2(key) & 0x7FFFFFFF,
    Partitioner.CRC32: crc32,
}


def key_partition(key: bytes, partition_count: int, partitioner: Partitioner = Partitioner.MURMUR2) -> int:
    """Return a producer's partition for a record with this key. Source: BuiltInPartitioner.partitionForKey."""
    return _HASHES[partitioner](key) % partition_count


class Home(NamedTuple):
    """A partition of a topic, None if unknown; the number of partitions; the directories found with it.

    note: the source of the number of partitions, if it may be wrong. is_supposed: the number isn't known.
    """

    topic: str | None
    partition: int
    partition_count: int
    directories: tuple[str, ...]
    note: str | None
    is_supposed: bool = False

    @property
    def name(self) -> str | None:
        """Topic and number, as in the directory name, or None if there is no topic."""
        return None if self.topic is None else f"{self.topic}-{self.partition}"

    def as_object(self) -> dict[str, object]:
        """Return the answer for JSON."""
        return {
            "type": "where",
            "topic": self.topic,
            "partition": self.partition,
            "partitions": self.partition_count,
            "isSupposed": self.is_supposed,
            "directories": list(self.directories),
        }

    def lines(self) -> Iterator[str]:
        """Yield the answer for people: the partition, and its directories."""
        count = self.partition_count
        yield (
            f"partition {self.partition} of {count}"
            if self.name is None
            else f"{self.name}; the topic has {plural(count, 'partition')}"
        )
        yield from self.directories


def home_of_state(
    topic: str,
    name: str,
    places: Sequence[PartitionLog] | None,
    partition_count: int | None,
    ids: Iterable[tuple[str, int | None]] = (),
) -> Home:
    """Return the partition of a coordinator's topic that holds the state of a group or of a transactional id.

    `places`: its available partitions, the copies that answer; None: no path was given. `partition_count`: None: by
    `internal_count`, which needs `ids`.
    """
    found = places or ()
    count, note, is_supposed = partition_count, None, False
    if not count:
        count, is_supposed = internal_count(found, ids)
        note = _count_note(topic, found, count, is_supposed=is_supposed)
    return _home(topic, coordinator_partition(name, count), count, found, note)._replace(is_supposed=is_supposed)


def _count_note(topic: str, found: Sequence[PartitionLog], count: int, *, is_supposed: bool) -> str:
    """Return the source of the number of the partitions of a coordinator."""
    if not found:
        return (
            f"{topic}: {plural(count, 'partition is', 'partitions are')} assumed, Kafka's default; specify --partitions"
            " to set another number"
        )
    if is_supposed:
        return (
            f"{topic}: not all partitions are here, so kseg assumes {count}; specify --partitions to set another number"
        )
    if count > _shown_count(found):
        return (
            f"{topic}: kseg assumes {plural(count, 'partition')}, by the ids in it; specify --partitions"
            f" to set another number"
        )
    return _shown_note(topic, count)


def home_of_key(
    key: bytes,
    topic: str | None,
    places: Sequence[PartitionLog] | None,
    partition_count: int | None,
    partitioner: Partitioner,
) -> Home:
    """Return a producer's partition for a key. Raises UsageError if the number of partitions is unknown.

    Arguments are as for `home_of_state`; without a topic `partition_count` is needed.
    """
    found = places or ()
    count, note = partition_count, None
    if not count:
        count = _shown_count(found)
        note = _shown_note(topic, count)
    if not count:
        if topic is not None and places is not None:
            raise UsageError(f"no partition of {topic} is here; run `kseg ls` to list topics, or specify --partitions")
        raise UsageError(
            "the number of partitions isn't known; specify --partitions, or --topic and its log directories"
        )
    return _home(topic, key_partition(key, count, partitioner), count, found, note)


def _home(topic: str | None, partition: int, count: int, found: Sequence[PartitionLog], note: str | None) -> Home:
    directories = tuple(str(place.path) for place in found if place.partition == partition)
    return Home(topic, partition, count, directories, note)


def _shown_count(found: Sequence[PartitionLog]) -> int:
    """Return the number of partitions that the directories of a topic show; 0 without any."""
    return max((place.partition for place in found if place.partition is not None), default=-1) + 1


class PartitionCount(NamedTuple):
    """The number of partitions of a coordinator's topic; whether it is an assumption without proof."""

    number: int
    is_supposed: bool = False

    @property
    def text(self) -> str:
        """The number for people."""
        return f"probably {self.number}" if self.is_supposed else str(self.number)


def internal_count(found: Sequence[PartitionLog], ids: Iterable[tuple[str, int | None]]) -> PartitionCount:
    """Return the number of partitions of a coordinator's topic, without metadata.

    An id's partition is the remainder of its hash divided by the number of partitions. So this number divides hash
    minus partition of each id, and is soon the only common divisor that is large enough. With few ids it is the
    default if that is one, else the number of directories or the smallest.

    Args:
        found: its available partitions.
        ids: groups or transactional ids, each with the partition that has it; read only as far as they are needed.
    """
    shown = _shown_count(found)
    if not shown:
        return PartitionCount(COORDINATOR_PARTITIONS, is_supposed=True)
    divisor, seen = _common_divisor(ids)
    if seen >= ENOUGH_IDS and shown <= divisor <= MOST_PARTITIONS:
        return PartitionCount(divisor)
    default = max(shown, COORDINATOR_PARTITIONS)
    number = default if divisor % default == 0 else _smallest_divisor(divisor, shown) or default
    has_all = number == shown == len({place.partition for place in found})
    return PartitionCount(number, is_supposed=not (has_all and divisor in (0, number)))


def _common_divisor(ids: Iterable[tuple[str, int | None]]) -> tuple[int, int]:
    """Return the greatest common divisor of hash minus partition of ids, 0 if all are the same; and the number read."""
    divisor, seen = 0, set[str]()
    for name, partition in ids:
        if partition is not None:
            seen.add(name)
            divisor = gcd(divisor, _positive_hash(name) - partition)
        if len(seen) >= 4 * ENOUGH_IDS:
            break
    return divisor, len(seen)


def count_by_shared_ids(shared: Iterable[Collection[str]]) -> int | None:
    """Return the number of partitions of a coordinator's topic, by ids that are known to share a partition.

    shared: ids of one partition each, whose number isn't known. None if the ids are too few to prove the number, or if
    only one partition is possible: ids of several partitions would show the same.
    """
    divisor = seen = 0
    for first, *others in map(list, filter(None, shared)):
        seen += len(others)
        divisor = gcd(divisor, *(_positive_hash(first) - _positive_hash(other) for other in others))
    return divisor if seen >= ENOUGH_IDS and 1 < divisor <= MOST_PARTITIONS else None


def _smallest_divisor(number: int, least: int) -> int | None:
    return next((each for each in range(least, MOST_PARTITIONS + 1) if number % each == 0), None)


def missing_text(topic: str, here: int, count: PartitionCount) -> str | None:
    """Return how many of the partitions of a topic are here, if some aren't."""
    return None if here >= count.number else f"{here} of {count.text} partitions of {topic} are here"


def _shown_note(topic: str | None, count: int) -> str:
    return (
        f"{topic}: kseg assumes {plural(count, 'partition')}, by the directories; specify --partitions to"
        f" set another number"
    )
