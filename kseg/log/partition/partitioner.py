"""Which partition a key, a group or a transactional id belongs to: the hashes of Kafka's brokers and clients."""

from collections.abc import Callable
from enum import StrEnum
from zlib import crc32

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
