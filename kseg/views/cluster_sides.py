"""What a cluster's metadata say of the sides of `kseg diff`: which should have a partition, and what none has."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kseg.errors import KsegError, UnreadableError
from kseg.log.diff.diff import diff_partitions
from kseg.log.diff.differences import PartitionDiff
from kseg.log.diff.sides import Copies, find_copies
from kseg.log.partition.log_dir import LogDir, directory_at, find_log_dirs
from kseg.log.partition.partition_choice import EVERY_PARTITION, PartitionChoice
from kseg.views.cluster import ClusterPartition
from kseg.views.cluster_copies import broker_of, metadata_in


def as_the_cluster_has_them(
    found: Sequence[Copies], sides: Sequence[Path], choice: PartitionChoice = EVERY_PARTITION
) -> list[Copies]:
    """The same copies: absent from sides whose broker has a replica; and, without a copy, partitions that none has.

    Nothing changes if no side has metadata, or if it isn't known of which broker one is, or they are of two clusters.
    """
    log_dirs = [_log_dirs_of(side) for side in sides]
    brokers = [frozenset(broker for broker in map(broker_of, each) if broker is not None) for each in log_dirs]
    expected = _expected([log_dir for each in log_dirs for log_dir in each], choice) if all(brokers) else {}
    if not expected:
        return list(found)
    judged = [_judged(copies, expected, sides, brokers) for copies in found]
    there = {copies.name for copies in found}
    absent = (partition for name, partition in expected.items() if name not in there)
    return [*judged, *_missing(absent, sides, brokers)]


def all_diffs(
    sides: Sequence[Path],
    note: Callable[[str], None],
    choice: PartitionChoice = EVERY_PARTITION,
    *,
    leader: Path | None = None,
    processes: int | None = None,
) -> tuple[PartitionDiff, ...]:
    """What the copies of all partitions of some sides are to each other; arguments as for `find_copies`.

    Raises:
        UsageError: as `find_copies`.
        OpenError: a side, or a partition on it, can't be opened.
    """
    found = as_the_cluster_has_them(find_copies(sides, _raise, note, choice, leader=leader), sides, choice)
    diffs: list[PartitionDiff] = []
    for item in diff_partitions(found, processes=processes):
        if isinstance(item, PartitionDiff):
            diffs.append(item)
        elif isinstance(item, UnreadableError):
            raise item
    return tuple(diffs)


def _raise(error: KsegError) -> None:
    raise error


def _log_dirs_of(side: Path) -> list[LogDir]:
    """The log directories of a side; none of one that is a single partition, or can't be listed."""
    try:
        return [] if directory_at(side)[1] else find_log_dirs(side, _pass_over)
    except KsegError:
        return []


def _pass_over(_: KsegError) -> None:
    """An error that was told when the side's partitions were listed."""


def _expected(log_dirs: Sequence[LogDir], choice: PartitionChoice) -> dict[str, ClusterPartition]:
    """The cluster's partitions by the names of their directories; none without metadata of one cluster."""
    try:
        are_of_one = len({each.cluster_id() for each in log_dirs}) == 1
        metadata = metadata_in(log_dirs) if are_of_one else None
    except KsegError:
        return {}
    partitions = () if metadata is None else metadata.partitions
    return {f"{each.topic}-{each.partition}": each for each in partitions if choice.takes(each.topic, each.partition)}


def _judged(
    copies: Copies, expected: dict[str, ClusterPartition], sides: Sequence[Path], brokers: Sequence[frozenset[int]]
) -> Copies:
    partition = expected.get(copies.name)
    if partition is None or copies.topic_id not in (None, partition.topic_id):
        return copies
    own = set(_sides_of(partition, sides, brokers))
    return copies._replace(absent_from=tuple(side for side in copies.absent_from if side in own))


def _missing(
    partitions: Iterator[ClusterPartition], sides: Sequence[Path], brokers: Sequence[frozenset[int]]
) -> Iterator[Copies]:
    for each in partitions:
        own = tuple(_sides_of(each, sides, brokers))
        if own:
            yield Copies(f"{each.topic}-{each.partition}", each.topic_id, (), None, own)


def _sides_of(partition: ClusterPartition, sides: Sequence[Path], brokers: Sequence[frozenset[int]]) -> Iterator[Path]:
    """The sides whose brokers have a replica of it."""
    return (side for side, own in zip(sides, brokers, strict=True) if not own.isdisjoint(partition.replicas))
