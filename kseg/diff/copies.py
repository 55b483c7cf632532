"""Copies of the partitions of a cluster: the given and the missing ones, and whether they are enough."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property, partial
from pathlib import Path
from typing import NamedTuple

from kseg.cluster.cluster import Cluster
from kseg.cluster.metadata_copy import AdjacentMetadata
from kseg.cluster.model import ClusterMetadata, ClusterPartition
from kseg.cluster.remote_tier import find_tier
from kseg.cluster.replicas import (
    Copy,
    CopyStatus,
    PartitionReplicas,
    in_sync_replicas,
    topic_id_of,
)
from kseg.diff.comparison import diff_partitions
from kseg.diff.differences import Copies, PartitionDiff, Sides, find_copies
from kseg.errors import FileError, KsegError, OpenError, UnreadableError, UsageError, plural
from kseg.findings.findings import Finding
from kseg.log.lineage import latest_epoch
from kseg.log.partition import METADATA_TOPIC, PartitionLog, RemoteTier
from kseg.log.segments import read_tail
from kseg.log.selection import EVERY_PARTITION, PartitionChoice
from kseg.system.placed_path import is_far
from kseg.verify.start_effects import effects_on_node
from kseg.verify.verify import Verified

NO_COPY, NO_IN_SYNC_COPY, OFFSETS_IN_NO_COPY = "no-copy", "no-in-sync-copy", "offsets-in-no-copy"
COPY_ABSENT = "copy-absent"


class CopiesVerdict(StrEnum):
    """A verdict on whether the copies of a partition are sufficient to restore it."""

    ENOUGH = "enough"
    """An in-sync replica's copy is here, and no offsets are missing in all copies."""
    GAPS = "gaps"
    """There are offsets that no copy has."""
    BEHIND = "behind"
    """No in-sync replica's copy is here: acknowledged records may be missing."""
    MISSING = "missing"
    """No copy is here."""


class ClusterCopy(NamedTuple):
    """A copy of a partition, and its extent.

    broker: of its log directory; None if its `meta.properties` doesn't have it. agreed_end: the offset below which it
    has the partition's records; None: all of its records are the partition's. extents: first offsets and ends
    (excluded) of its segments up to agreed_end; one extent after the cleaner, which leaves gaps. tier: the remote
    tier, None if it has none.
    """

    path: Path
    broker: int | None
    topic_id: str | None
    log_start_offset: int
    log_end_offset: int
    last_epoch: int
    agreed_end: int | None
    extents: tuple[tuple[int, int], ...]
    tier: RemoteTier | None

    def text(self) -> str:
        """Return its broker and its extent, for people."""
        broker = "an unknown broker" if self.broker is None else f"broker {self.broker}"
        offsets = f"offsets {self.log_start_offset} to {self.log_end_offset - 1}"
        if self.log_end_offset == self.log_start_offset:
            offsets = f"no offsets from {self.log_start_offset} on"
        abandoned = "" if self.agreed_end is None else f", abandoned from offset {self.agreed_end} on"
        tier = "" if self.tier is None or not self.tier.has_remote_part else f", {self.tier.text()}"
        return f"{broker}, {offsets}, last leader epoch {self.last_epoch}{tier}{abandoned}"


@dataclass(frozen=True)
class PartitionCopies:
    """A partition of the cluster, and its copies; the one that answers for it comes first.

    strangers: directories of its name that belong to a topic of another id.
    """

    expected: ClusterPartition
    copies: tuple[ClusterCopy, ...]
    strangers: tuple[ClusterCopy, ...]

    @property
    def name(self) -> str:
        """The name of its directories."""
        return f"{self.expected.topic}-{self.expected.partition}"

    @property
    def absent(self) -> tuple[int, ...]:
        """Replicas whose copies aren't here."""
        return tuple(each for each in self.expected.replicas if each not in self._brokers)

    @property
    def in_sync(self) -> tuple[int, ...]:
        """Replicas that have all acknowledged records; none if unknown."""
        return in_sync_replicas(self.expected, (copy.last_epoch for copy in self.copies))

    @property
    def has_in_sync(self) -> bool:
        """True if an in-sync replica's copy is here, or may be: not every log directory shows its broker."""
        return None in self._brokers or not self.in_sync or not self._brokers.isdisjoint(self.in_sync)

    @cached_property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """Ranges of offsets between the copies' first and last ones that none of them has: first and last."""
        found: list[tuple[int, int]] = []
        reached: int | None = None
        for first, end in sorted(extent for copy in self.copies for extent in copy.extents):
            if reached is not None and first > reached:
                found.append((reached, first - 1))
            reached = end if reached is None else max(reached, end)
        return tuple(found)

    @property
    def verdict(self) -> CopiesVerdict:
        """Return whether the partition can be restored."""
        if not self.copies:
            return CopiesVerdict.MISSING
        if not self.has_in_sync:
            return CopiesVerdict.BEHIND
        return CopiesVerdict.GAPS if self.gaps else CopiesVerdict.ENOUGH

    @cached_property
    def _brokers(self) -> frozenset[int | None]:
        return frozenset(copy.broker for copy in self.copies)


@dataclass(frozen=True)
class ClusterCopies:
    """The cluster's partitions with their copies, and directories of partitions unknown to the cluster.

    metadata: the furthest found; path: the directory searched for them first.
    """

    metadata: ClusterMetadata
    path: Path
    partitions: tuple[PartitionCopies, ...]
    unknown: tuple[ClusterCopy, ...]


def find_cluster_copies(cluster: Cluster, choice: PartitionChoice = EVERY_PARTITION) -> ClusterCopies:
    """Return all copies in some brokers' log directories of the chosen partitions that their cluster has.

    Raises:
        OpenError: there are no readable metadata here.
        UsageError: the metadata are of several clusters.
    """
    metadata = cluster.own_metadata
    if metadata is None:
        raise OpenError(
            f"no given log directory has {METADATA_TOPIC}-0; specify one of a broker or controller", cluster.paths[0]
        )
    found: dict[str, list[PartitionReplicas[PartitionLog]]] = {}
    for each in cluster.partitions_of_all(choice):
        if each.partition is not None and each.topic != METADATA_TOPIC:
            found.setdefault(each.name, []).append(each)
    expected = [each for each in metadata.partitions if choice.takes(each.topic, each.partition)]
    copy_of = partial(_copy, AdjacentMetadata(cluster=cluster))
    partitions = tuple(
        _with_copies(each, map(copy_of, _counted_copies(found.pop(f"{each.topic}-{each.partition}", []))))
        for each in expected
    )
    unknown = (copy_of(copy) for of_name in found.values() for copy in _counted_copies(of_name))
    return ClusterCopies(metadata, cluster.paths[0], partitions, tuple(unknown))


_COUNTED = (CopyStatus.CURRENT, CopyStatus.DUPLICATE, CopyStatus.STALE)
"""Copies that a broker would use if the topic were that one, without moved or set-aside ones."""


def _counted_copies(found: Iterable[PartitionReplicas[PartitionLog]]) -> Iterator[Copy[PartitionLog]]:
    return (copy for each in found for copy in (*each.copies, *each.set_aside) if copy.status in _COUNTED)


def _copy(beside: AdjacentMetadata, copy: Copy[PartitionLog]) -> ClusterCopy:
    partition, agreed = copy.place, copy.agreed_end
    tier = find_tier(partition, beside)
    start, end = partition.log_start_offset(), partition.read_end()
    extents = ((start, end.offset),) if partition.was_compacted() else _extents(partition)
    bounded = ((first, after if agreed is None else min(after, agreed)) for first, after in extents)
    return ClusterCopy(
        partition.path,
        copy.broker,
        topic_id_of(partition),
        partition.log_start_offset(tier),
        end.offset,
        latest_epoch(partition, end),
        agreed,
        tuple((first, after) for first, after in bounded if first < after),
        tier,
    )


def _extents(partition: PartitionLog) -> Iterator[tuple[int, int]]:
    for segment in partition.segments:
        last = read_tail(segment).last
        if last is not None and segment.base_offset is not None:
            yield segment.base_offset, last.last_offset + 1


def _with_copies(expected: ClusterPartition, found: Iterable[ClusterCopy]) -> PartitionCopies:
    copies = list(found)
    own = tuple(copy for copy in copies if copy.topic_id in (None, expected.topic_id))
    return PartitionCopies(expected, own, tuple(copy for copy in copies if copy not in own))


# --- findings --------------------------------------------------------------------------------------------------------


def verified_copies(copies: ClusterCopies) -> Verified:
    """Return the problems of a cluster's partition copies as findings."""
    findings = tuple(finding for each in copies.partitions for finding in _findings(each, copies.path))
    return Verified(copies.path, findings, effects=tuple(effects_on_node(findings)))


def _findings(partition: PartitionCopies, path: Path) -> Iterator[Finding]:
    expected = partition.expected
    place = partition.copies[0].path if partition.copies else path / partition.name
    replicas = f"replicas are on brokers {_numbers(expected.replicas)}, in sync {_numbers(partition.in_sync)}"
    if not partition.copies:
        yield Finding(NO_COPY, place, f"no copy here; {replicas}")
    elif not partition.has_in_sync:
        yield Finding(NO_IN_SYNC_COPY, place, f"only copy here: {partition.copies[0].text()}; {replicas}")
    elif partition.absent:
        yield Finding(COPY_ABSENT, place, f"no copy of broker {_numbers(partition.absent)} here; {replicas}")
    for first, last in partition.gaps:
        which = f"offset {first}" if first == last else f"offsets {first} to {last}"
        sentence = f"none of {plural(len(partition.copies), 'copy', 'copies')} has {which}"
        yield Finding(OFFSETS_IN_NO_COPY, place, sentence, first_offset=first, last_offset=last)


def _numbers(brokers: Iterable[int]) -> str:
    return ", ".join(map(str, brokers)) or "unknown"


def as_the_cluster_has_them(
    found: Sequence[Copies], sides: Sides, choice: PartitionChoice = EVERY_PARTITION
) -> list[Copies]:
    """Return the same copies with absent sides by the cluster: their brokers have a replica.

    Adds partitions without any copy. Nothing changes if no side has metadata, if a side's broker is unknown, or if
    they are of two clusters. Raises NoSuchPartitionError for a chosen name that neither a side nor the cluster has.
    """
    brokers = [
        frozenset(each.identity.broker for each in side.log_dirs if each.identity.broker is not None)
        for side in sides.clusters
        if side is not None
    ]
    is_known = len(brokers) == len(sides.paths) and all(brokers)
    expected = _expected_partitions(sides.whole, choice) if is_known else {}
    sides.whole.require(choice, expected)
    if not expected:
        return list(found)
    judged_copies = [_judge_absence(copies, expected, sides.paths, brokers) for copies in found]
    existing_names = {copies.name for copies in found}
    absent = (partition for name, partition in expected.items() if name not in existing_names)
    return [*judged_copies, *_missing(absent, sides.paths, brokers)]


def all_diffs(
    paths: Sequence[Path],
    note: Callable[[str], None],
    choice: PartitionChoice = EVERY_PARTITION,
    *,
    leader: Path | None = None,
    processes: int | None = None,
) -> tuple[PartitionDiff, ...]:
    """Compare the copies of all partitions of some sides; arguments as for `find_copies`.

    Raises:
        UsageError: like `Sides` and `find_copies`.
        OpenError: a side, or a partition on it, can't be opened.
    """
    sides = Sides(paths, _raise)
    found = as_the_cluster_has_them(find_copies(sides, note, choice, leader=leader), sides, choice)
    diffs: list[PartitionDiff] = []
    for item in diff_partitions(found, processes=processes, is_far=any(map(is_far, paths))):
        if isinstance(item, PartitionDiff):
            diffs.append(item)
        elif isinstance(item, UnreadableError):
            raise item
    return tuple(diffs)


def _raise(error: KsegError) -> None:
    raise error


def _expected_partitions(cluster: Cluster, choice: PartitionChoice) -> dict[str, ClusterPartition]:
    """Return the cluster's partitions by the names of their directories; none without metadata of one cluster."""
    try:
        metadata = cluster.own_metadata
    except (FileError, UsageError):  # of several clusters
        return {}
    partitions = () if metadata is None else metadata.partitions
    return {f"{each.topic}-{each.partition}": each for each in partitions if choice.takes(each.topic, each.partition)}


def _judge_absence(
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
    """Yield the sides whose brokers have a replica of it."""
    return (side for side, own in zip(sides, brokers, strict=True) if not own.isdisjoint(partition.replicas))
