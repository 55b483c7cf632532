"""Chooses the most complete of several replicas of a partition."""

from collections.abc import Iterable

from kseg.errors import KsegError
from kseg.log.partition.partition_log import PartitionLog


def one_of_each(partitions: Iterable[PartitionLog]) -> list[PartitionLog]:
    """One replica of each partition, in the given order: the one whose log ends last.

    Compares them by the latest leader epoch, then by the log end offset. Keeps all directories that aren't named after
    a partition, or are being added or removed. Raises OpenError if the log of one of several
    replicas can't be opened.
    """
    found: dict[tuple[str, int] | int, PartitionLog] = {}
    for number, partition in enumerate(partitions):
        name = partition.name
        key = number if name is None or name.state is not None else (name.topic, name.partition)
        known = found.get(key)
        found[key] = partition if known is None else max(known, partition, key=_reach)
    return list(found.values())


def _reach(partition: PartitionLog) -> tuple[int, int]:
    try:
        epochs = partition.read_leader_epochs() or ()
    except KsegError:
        epochs = ()
    return max((epoch for epoch, _ in epochs), default=-1), partition.read_log_end_offset()
