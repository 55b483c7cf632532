"""Replicas of a partition: whether they can be, and which one is the most complete."""

import os
from collections.abc import Iterable

from kseg.errors import KsegError, UsageError
from kseg.log.partition import PartitionLog


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


def topic_id_of(partition: PartitionLog) -> str | None:
    """The id of a partition's topic; None if `partition.metadata` has none that can be read."""
    try:
        return partition.read_topic_id()
    except KsegError:
        return None


def require_one_topic(partitions: Iterable[PartitionLog]) -> None:
    """Raises UsageError if some belong to different topics, of different clusters, or created at different times.

    Topics' ids tell, where `partition.metadata` has one that can be read.
    """
    require_one_topic_id((partition.path, topic_id_of(partition)) for partition in partitions)


def require_one_topic_id(topic_ids: Iterable[tuple[str | os.PathLike[str], str | None]]) -> None:
    """As `require_one_topic`, of paths and the topics' ids there; None for one that isn't known."""
    known: dict[str, str | os.PathLike[str]] = {}
    for path, topic_id in topic_ids:
        if topic_id is not None:
            known.setdefault(topic_id, path)
    if len(known) > 1:
        (one, first), (other, second), *_ = known.items()
        raise UsageError(
            f"{first} and {second} belong to different topics, whose ids are {one} and {other}: "
            "give those of one cluster"
        )


def _reach(partition: PartitionLog) -> tuple[int, int]:
    try:
        epochs = partition.read_leader_epochs() or ()
    except KsegError:
        epochs = ()
    return max((epoch for epoch, _ in epochs), default=-1), partition.read_log_end_offset()
