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
    found: dict[tuple[str, int] | int, list[PartitionLog]] = {}
    for number, partition in enumerate(partitions):
        name = partition.name
        key = number if name is None or name.state is not None else (name.topic, name.partition)
        found.setdefault(key, []).append(partition)
    return [each[0] if len(each) == 1 else max(each, key=_reach) for each in found.values()]


def _reach(partition: PartitionLog) -> tuple[int, int]:
    try:
        epochs = partition.read_leader_epochs() or ()
    except KsegError:
        epochs = ()
    return max((epoch for epoch, _ in epochs), default=-1), partition.read_log_end_offset()
